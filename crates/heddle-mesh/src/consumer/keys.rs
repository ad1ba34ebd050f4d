//! The order that a consumer keeps: which event holds its key, and who waits for it.
//!
//! An event that was attempted holds its key until it has ended; the others with that key wait in the order of the log.
//! A consumer that asks for no order holds no keys.

use heddle_api::attributes::Attributes as _;

use super::{Job, JobKind, State};
use crate::envelope;
use crate::log::Unavailable;
use crate::path::delivery::lane;
use crate::shared::Shared;

impl State {
    /// An event has ended: the next one with its key may go.
    pub(crate) fn release_key(&mut self, job: &Job) {
        let Some(key) = job.lane_key else { return };
        self.keys_held.remove(&key);
        let Some(queue) = self.blocked.get_mut(&key) else {
            return;
        };
        let next = queue.pop_front();
        if queue.is_empty() {
            self.blocked.remove(&key);
        }
        if let Some(next) = next {
            self.blocked_count -= 1;
            self.let_go(next);
        }
    }

    /// Order is no longer asked for: nobody waits for anybody.
    pub(crate) fn let_go_of_keys(&mut self) {
        self.keys_held.clear();
        self.blocked_count = 0;
        let mut waiting: Vec<Job> = self.blocked.drain().flat_map(|(_, queue)| queue).collect();
        waiting.sort_unstable_by_key(|job| job.offset);
        for mut job in waiting.into_iter().rev() {
            job.lane_key = None;
            self.let_go(job);
        }
    }

    /// Some of those that held keys or waited for them are gone: who holds what is worked out anew. Until that can be read,
    /// nothing may be taken.
    pub(super) fn work_out_keys(&mut self, shared: &Shared) -> Result<(), Unavailable> {
        self.let_go_of_keys();
        self.keys_unknown = true;
        self.hold_keys_of_tried(shared)?;
        let flying = self.in_flight.keys().filter(|(_, sink)| !sink);
        // Those that could not be read were taken, and hold their key until they have been.
        let postponed = self.postponed.jobs().map(|job| job.offset);
        let taken = flying.map(|(offset, _)| *offset).chain(postponed);
        for offset in taken {
            let redriven = self.retrying.get(&offset).and_then(|retry| retry.redriven);
            let job = Job {
                offset,
                attempts: 0,
                kind: redriven.map_or(JobKind::Event, JobKind::Redriven),
                record: None,
                lane_key: None,
            };
            self.keys_held.insert(lane_key(shared, &job)?);
        }
        self.keys_unknown = false;
        Ok(())
    }

    /// An event that waited for its key may go, before all that came after it.
    fn let_go(&mut self, job: Job) {
        match job.kind {
            JobKind::Event => self.requeue(job),
            // It is on record, and not one of those that the floor is about.
            JobKind::Redriven(_) | JobKind::Sink(_) => self.retry_queue.push_front(job),
        }
    }

    /// Events that were tried hold their keys, also when order is asked for only now, or after a restart. A dead letter
    /// that was sent on its way and not tried since asks for its key like everybody else.
    pub(crate) fn hold_keys_on_record(&mut self, shared: &Shared) {
        if self.hold_keys_of_tried(shared).is_err() {
            self.keys_unknown = true;
        }
    }

    fn hold_keys_of_tried(&mut self, shared: &Shared) -> Result<(), Unavailable> {
        let tried = self.retrying.iter().filter(|(_, retry)| retry.attempts > 0);
        for (offset, retry) in tried {
            let job = Job {
                offset: *offset,
                attempts: retry.attempts,
                kind: retry.redriven.map_or(JobKind::Event, JobKind::Redriven),
                record: None,
                lane_key: None,
            };
            self.keys_held.insert(lane_key(shared, &job)?);
        }
        Ok(())
    }
}

/// What an ordered consumer keeps in order: the event's `partitionkey`; events without one are one sequence, and so are
/// those whose bytes are lost.
pub(super) fn lane_key(shared: &Shared, job: &Job) -> Result<u64, Unavailable> {
    let record = match &job.record {
        Some(record) => Some(record.payload.clone()),
        None => lane::find(shared, job)?.found().map(|(payload, _)| payload),
    };
    let key = record.and_then(|payload| {
        let (_, event) = envelope::entry_and_event(&payload).ok()?;
        let key = event.text("partitionkey")?;
        Some(crate::event::key_of("partitionkey", key))
    });
    Ok(key.unwrap_or(0))
}
