//! Which events are a consumer's own: the revision that was in force when an event came decides, for ever.

use std::sync::Arc;

use super::State;
use crate::envelope;
use crate::log::{Offset, Record};
use crate::path::trigger::Predicate;

/// Which events are the consumer's own, from an offset on.
#[derive(Clone, Debug)]
pub(crate) struct Revision {
    pub(crate) from: Offset,
    pub(crate) until: Option<Offset>,
    pub(crate) uid: String,
    pub(crate) generation: i64,
    pub(crate) fingerprint: u64,
    pub(crate) feeds: Vec<(String, Vec<String>)>,
    pub(crate) predicate: Arc<Predicate>,
}

impl State {
    /// Whether the event is the consumer's own, by the revision that decides about it.
    pub(crate) fn is_own(&self, record: &Record) -> bool {
        is_own(&self.revisions, record)
    }

    pub(crate) fn revision_at(&self, offset: Offset) -> Option<&Revision> {
        revision_at(&self.revisions, offset)
    }
}

/// Whether an event belongs to whoever has these revisions.
pub(crate) fn is_own(revisions: &[Revision], record: &Record) -> bool {
    let Some(revision) = revision_at(revisions, record.offset) else {
        return false;
    };
    let Ok((entry, event)) = envelope::entry_and_event(&record.payload) else {
        return false;
    };
    revision.feeds.iter().any(|(feed, _)| feed == entry) && revision.predicate.matches(&event)
}

fn revision_at(revisions: &[Revision], offset: Offset) -> Option<&Revision> {
    let mut newest = revisions.iter().rev();
    let found = newest.find(|revision| revision.from <= offset)?;
    found
        .until
        .is_none_or(|until| offset < until)
        .then_some(found)
}
