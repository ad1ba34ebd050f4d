//! What a consumer is: its spec and plan of delivery while it is routed, and which events are its own. About an event the
//! revision decides that was in force when it came, for ever.

use std::ops::Range;
use std::sync::Arc;

use heddle_api::pause::DeliveryPause;
use jiff::Timestamp;

use crate::envelope;
use crate::log::{Offset, Record};
use crate::path::delivery::plan::DeliveryPlan;
use crate::path::trigger::Predicate;
use crate::routes;

#[derive(Debug)]
pub(crate) struct Routing {
    /// What it is now; `None` while only its name's place is kept.
    pub(crate) spec: Option<Arc<routes::ConsumerSpec>>,
    pub(crate) plan: Arc<DeliveryPlan>,
    /// In order of their offsets.
    pub(crate) revisions: Vec<CompiledRevision>,
    /// The pause that its time has ended.
    pub(crate) pause_over: Option<DeliveryPause>,
    /// Since when it takes no part.
    pub(crate) unrouted: Option<(Offset, Timestamp)>,
}

/// Which events are the consumer's own, from an offset on.
#[derive(Clone, Debug)]
pub(crate) struct CompiledRevision {
    pub(crate) from: Offset,
    pub(crate) until: Option<Offset>,
    pub(crate) uid: String,
    pub(crate) generation: i64,
    pub(crate) fingerprint: u64,
    pub(crate) feeds: Vec<(String, Vec<String>)>,
    pub(crate) predicate: Arc<Predicate>,
}

impl Default for Routing {
    fn default() -> Self {
        Self {
            spec: None,
            plan: Arc::new(DeliveryPlan::nowhere()),
            revisions: Vec::new(),
            pause_over: None,
            unrouted: None,
        }
    }
}

impl Routing {
    /// Whether it has somewhere to send to, and is not kept from it.
    pub(super) fn may_send(&self) -> bool {
        self.spec.is_some()
            && self.plan.pause.is_none()
            && self.plan.has_target()
            && self.plan.has_consent()
    }

    /// Whether the event is the consumer's own, by the revision that decides about it.
    pub(crate) fn is_own(&self, record: &Record) -> bool {
        is_own(&self.revisions, record)
    }

    pub(crate) fn revision_at(&self, offset: Offset) -> Option<&CompiledRevision> {
        revision_at(&self.revisions, offset)
    }
}

/// Whether an event belongs to whoever has these revisions.
pub(crate) fn is_own(revisions: &[CompiledRevision], record: &Record) -> bool {
    let Some(revision) = revision_at(revisions, record.offset) else {
        return false;
    };
    let Ok((entry, event)) = envelope::entry_and_event(&record.payload) else {
        return false;
    };
    revision.feeds.iter().any(|(feed, _)| feed == entry) && revision.predicate.matches(&event)
}

/// The revisions, each with the places of the log about which it decides.
pub(crate) fn decided_ranges(
    revisions: &[CompiledRevision],
) -> impl Iterator<Item = (&CompiledRevision, Range<Offset>)> {
    let next = revisions.iter().skip(1).map(|revision| revision.from);
    let ends = next.chain([Offset::MAX]);
    revisions.iter().zip(ends).map(|(revision, end)| {
        let end = revision.until.map_or(end, |until| until.min(end));
        (revision, revision.from..end)
    })
}

/// The one that decides about an event.
pub(crate) fn revision_at(
    revisions: &[CompiledRevision],
    offset: Offset,
) -> Option<&CompiledRevision> {
    let mut newest = revisions.iter().rev();
    let found = newest.find(|revision| revision.from <= offset)?;
    found
        .until
        .is_none_or(|until| offset < until)
        .then_some(found)
}
