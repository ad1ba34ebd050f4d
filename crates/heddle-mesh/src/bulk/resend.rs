//! Events of the log that are sent again to one consumer, a few at a time and in the order of the log.
//!
//! ```text
//!   place ──(read aside, a megabyte)──> found ──(as the consumer has room)──> a line each, on its way ──> place
//! ```
//! Which events are meant is worked out anew from the log, by the filter that is in force; how far the operation is follows from
//! the lines of those that were sent, so each is sent once, whenever the process ends. One that is on its way already, or rests,
//! is left alone: two copies of one event are never under way at a time.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use heddle_api::access::{Access, Role, Scope};
use heddle_api::search::{EventQuery, QueryFault};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::BulkStep;
use crate::consumer::{CompiledRevision, Consumer, revision_at};
use crate::envelope::Envelope;
use crate::heartbeat;
use crate::journal::bulk::BulkEntry;
use crate::ledger::{Error, SoughtRecord, Visible, held};
use crate::log::{Offset, Record};
use crate::path::trigger::Predicate;
use crate::shared::Shared;

/// Bytes of the log that are read in one go.
const READ_BYTES: usize = 1 << 20;
/// With fewer found than this, more is read.
const FOUND_MIN: usize = 256;

/// What somebody asked for, as the journal has it.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResendOrder {
    pub(crate) consumer: String,
    pub(crate) query: String,
    /// What the times of the query are counted from.
    pub(crate) asked_at: Timestamp,
    pub(crate) from: Offset,
    pub(crate) before: Offset,
    /// What whoever asked may see: everything, or what belongs to these namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) within: Option<BTreeSet<String>>,
    pub(crate) payloads: bool,
    /// Whether nothing is hidden from them in data.
    #[serde(default)]
    pub(crate) administrator: bool,
}

/// What decides about an event that might be sent again.
pub(crate) struct ResendPicker {
    query: EventQuery,
    visible: Visible,
    pub(crate) range: Range<Offset>,
    /// The consumer as it is now, and which events were its own.
    current: CompiledRevision,
    revisions: Vec<CompiledRevision>,
}

/// What is found out about one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResendVerdict {
    /// Not one of those that are asked for.
    Other,
    /// The filter does not want it.
    Filtered,
    /// It never led to this consumer, and whoever asked may not read its data.
    Withheld,
    /// It goes; and whether it was the consumer's own when it came.
    Goes { own: bool },
}

impl ResendOrder {
    /// The query, with times as they were meant.
    pub(crate) fn query(&self) -> Result<EventQuery, QueryFault> {
        EventQuery::parse(&self.query, self.asked_at)
    }

    /// Whoever asked, as far as it matters.
    fn access(&self, by: &str) -> Access {
        Access {
            user: by.to_owned(),
            role: match self.administrator {
                true => Role::Administrator,
                false => Role::Operator,
            },
            scope: match &self.within {
                Some(within) => Scope::Namespaces(within.clone()),
                None => Scope::All,
            },
            payloads: self.payloads,
        }
    }
}

impl ResendPicker {
    /// `None` while the consumer takes no part.
    pub(crate) fn new(
        shared: &Shared,
        consumer: &Consumer,
        order: &ResendOrder,
        by: &str,
    ) -> Result<Option<Self>, Error> {
        let query = order.query()?;
        let revisions = {
            let state = consumer.lock();
            match state.routing.spec.is_some() {
                true => state.routing.revisions.clone(),
                false => return Ok(None),
            }
        };
        let Some(current) = revision_at(&revisions, Offset::MAX).cloned() else {
            return Ok(None);
        };
        let mut range = order.from..order.before;
        if let Some(since) = query.since() {
            range.start = range.start.max(shared.log.at_time(since));
        }
        if let Some(until) = query.until() {
            range.end = range.end.min(shared.log.at_time(until));
        }
        if let Some(place) = query.place() {
            range.start = range.start.max(place);
            range.end = range.end.min(place.saturating_add(1));
        }
        Ok(Some(Self {
            visible: Visible::of(shared, &order.access(by)),
            query,
            range,
            current,
            revisions,
        }))
    }

    pub(crate) fn query(&self) -> &EventQuery {
        &self.query
    }

    pub(crate) fn judge(&self, record: &Record, envelope: &Envelope) -> ResendVerdict {
        let (entry, event) = (&*envelope.entry, &envelope.event);
        if !self.range.contains(&record.offset)
            || heartbeat::is_reserved(event.type_())
            || !leads_from(&self.current, entry)
            || !self.visible.shows(entry, record.offset)
        {
            return ResendVerdict::Other;
        }
        let data = self.visible.data(entry, record.offset, event);
        let sought = SoughtRecord {
            record,
            envelope,
            data: data.bytes(),
        };
        if !self.query.matches(&sought) {
            return ResendVerdict::Other;
        }
        if !self.current.predicate.matches(event) {
            return ResendVerdict::Filtered;
        }
        // What led to the consumer when it came is no news to whoever is behind it.
        let then = revision_at(&self.revisions, record.offset);
        let then = then.filter(|revision| leads_from(revision, entry));
        let predicate =
            |revision: &CompiledRevision| -> Arc<Predicate> { Arc::clone(&revision.predicate) };
        match then.map(predicate) {
            None if !self.visible.shows_all_data(entry, record.offset) => ResendVerdict::Withheld,
            None => ResendVerdict::Goes { own: false },
            Some(predicate) => ResendVerdict::Goes {
                own: predicate.matches(event),
            },
        }
    }
}

fn leads_from(revision: &CompiledRevision, entry: &str) -> bool {
    revision.feeds.iter().any(|(feed, _)| feed == entry)
}

/// The offsets at which events of a consumer rest.
#[derive(Debug, Default)]
pub(crate) struct RestingOffsets {
    offsets: HashSet<Offset>,
    /// The last dead letter that was taken note of.
    known_to: u64,
}

impl RestingOffsets {
    /// Takes note of those that came to rest since.
    pub(crate) fn refresh(&mut self, shared: &Shared, consumer: &Consumer) {
        let letters = shared.dead.lock();
        for (name, rest) in letters.of_consumer(consumer.id, self.known_to) {
            self.known_to = name;
            if rest.reply.is_none() {
                self.offsets.insert(rest.offset);
            }
        }
    }

    pub(crate) fn contains(&self, offset: Offset) -> bool {
        self.offsets.contains(&offset)
    }
}

/// An operation of this kind while it runs.
#[derive(Debug)]
pub(super) struct ResendWork {
    pub(super) order: Arc<ResendOrder>,
    /// What was read so far.
    next: Offset,
    /// Read, and not sent yet.
    found: VecDeque<FoundAgain>,
    resting: RestingOffsets,
}

/// An event that is to be sent again.
#[derive(Clone, Copy, Debug)]
struct FoundAgain {
    offset: Offset,
    /// Whether it was the consumer's own when it came.
    own: bool,
}

/// What one read brought.
pub(super) struct ReadAhead {
    from: Offset,
    next: Offset,
    found: Vec<FoundAgain>,
}

impl ResendWork {
    pub(super) fn new(order: ResendOrder, place: Offset) -> Self {
        Self {
            next: place.max(order.from),
            order: Arc::new(order),
            found: VecDeque::new(),
            resting: RestingOffsets::default(),
        }
    }

    /// From where more is to be read, if it is.
    pub(super) fn reads_from(&self) -> Option<Offset> {
        (self.found.len() < FOUND_MIN && self.next < self.order.before).then_some(self.next)
    }

    pub(super) fn take_in(&mut self, read: ReadAhead) {
        if self.next == read.from {
            self.next = read.next;
            self.found.extend(read.found);
        }
    }
}

/// Reads a piece of the log. `None` while the consumer takes no part. Blocks.
pub(super) fn read_ahead(
    shared: &Shared,
    order: &ResendOrder,
    by: &str,
    from: Offset,
) -> Result<Option<ReadAhead>, Error> {
    let Some(consumer) = consumer_of(shared, &order.consumer) else {
        return Ok(None);
    };
    let Some(picker) = ResendPicker::new(shared, &consumer, order, by)? else {
        return Ok(None);
    };
    let mut read = ReadAhead {
        from,
        next: order.before,
        found: Vec::new(),
    };
    let start = from.max(picker.range.start);
    if start >= picker.range.end {
        return Ok(Some(read));
    }
    let batch = shared.log.read(start, READ_BYTES)?;
    for record in &batch.records {
        let Ok(envelope) = Envelope::decode(&record.payload) else {
            continue;
        };
        if let ResendVerdict::Goes { own } = picker.judge(record, &envelope) {
            let offset = record.offset;
            read.found.push(FoundAgain { offset, own });
        }
    }
    // Where nothing more is to be read, everything was.
    if batch.next > start && batch.next < picker.range.end {
        read.next = batch.next;
    }
    Ok(Some(read))
}

pub(crate) fn consumer_of(shared: &Shared, key: &str) -> Option<Arc<Consumer>> {
    let consumers = shared.consumers.read();
    let consumer = consumers.by_key.get(key).cloned();
    consumer.filter(|consumer| !consumer.hears_heartbeats())
}

/// Sends a few. Gives the work back to whoever keeps it.
pub(super) fn take_of(
    shared: &Arc<Shared>,
    consumer: &Arc<Consumer>,
    entry: &BulkEntry,
    work: &mut ResendWork,
) -> BulkStep {
    let mut step = BulkStep::default();
    let mut state = consumer.lock();
    let room = match state.routing.spec.is_some() {
        true => state.redrive_room(),
        false => 0,
    };
    work.resting.refresh(shared, consumer);
    let waiting = state.waiting_offsets();
    while step.taken < room as u64 {
        let Some(one) = work.found.pop_front() else {
            break;
        };
        if work.resting.contains(one.offset) || state.is_unfinished(one.offset, one.own, &waiting) {
            step.left += 1;
            continue;
        }
        consumer.resend(shared, &mut state, one.offset, entry.id, &entry.by);
        step.taken += 1;
    }
    step.ended = work.found.is_empty() && work.next >= work.order.before;
    if room == 0 && !step.ended {
        let why = held(&state).unwrap_or_else(|| "as many as may are on their way".to_owned());
        step.waits = Some(format!("{}: {why}", consumer.key));
    }
    step
}
