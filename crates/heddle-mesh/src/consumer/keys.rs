//! The order that a consumer keeps: which event holds its key, and who waits for it.
//!
//! An event that was attempted holds its key until it has ended; the others with that key wait in the order of the log.
//! A consumer that asks for no order holds no keys.

use std::collections::{HashMap, HashSet, VecDeque};

use heddle_api::attributes::Attributes as _;

use super::waiting::insert_in_order;
use super::{Job, JobKind, State};
use crate::envelope;
use crate::log::Unavailable;
use crate::shared::Shared;

#[derive(Debug, Default)]
pub(super) struct Keys {
    held: HashSet<u64>,
    /// Events that wait for an earlier one with the same key.
    blocked: HashMap<u64, VecDeque<Job>>,
    /// Invariant: as many as `blocked` has.
    blocked_count: usize,
    /// Events hold keys that nobody could read yet.
    unknown: bool,
}

impl Keys {
    pub(super) fn blocked_count(&self) -> usize {
        self.blocked_count
    }

    pub(super) fn blocked(&self) -> impl Iterator<Item = &Job> {
        self.blocked.values().flatten()
    }

    /// Gives the event back if it may go, which holds its key from then on. Else it waits for whoever holds it.
    fn acquire(&mut self, key: u64, mut job: Job) -> Option<Job> {
        job.lane_key = Some(key);
        // One that was tried before holds its key until it has ended.
        if self.held.insert(key) || job.attempts > 0 {
            return Some(job);
        }
        insert_in_order(self.blocked.entry(key).or_default(), job);
        self.blocked_count += 1;
        None
    }

    /// An event that was taken and not tried asks for its key again, as the first; those that wait for it go on waiting.
    pub(super) fn put_back(&mut self, job: &Job) {
        if let Some(key) = job.lane_key.filter(|_| job.attempts == 0) {
            self.held.remove(&key);
        }
    }

    /// An event has ended. Gives the next with its key.
    fn release(&mut self, job: &Job) -> Option<Job> {
        let key = job.lane_key?;
        self.held.remove(&key);
        let queue = self.blocked.get_mut(&key)?;
        let next = queue.pop_front();
        if queue.is_empty() {
            self.blocked.remove(&key);
        }
        self.blocked_count -= usize::from(next.is_some());
        next
    }

    pub(super) fn retain(&mut self, stays: impl Fn(&Job) -> bool) {
        for queue in self.blocked.values_mut() {
            queue.retain(&stays);
        }
        self.blocked.retain(|_, queue| !queue.is_empty());
        self.blocked_count = self.blocked().count();
    }

    /// Nobody holds a key any more, nor waits for one. Whether some were unknown stays to be found out.
    pub(super) fn clear(&mut self) {
        self.held.clear();
        self.blocked.clear();
        self.blocked_count = 0;
    }

    /// The same. Gives those that waited, in the order of the log.
    fn take_blocked(&mut self) -> Vec<Job> {
        let mut waiting: Vec<Job> = self.blocked.drain().flat_map(|(_, queue)| queue).collect();
        debug_assert_eq!(waiting.len(), self.blocked_count);
        self.clear();
        waiting.sort_unstable_by_key(|job| job.offset);
        waiting
    }
}

impl State {
    /// The next event that may be attempted: what is due before what was never tried.
    pub(super) fn next_job(&mut self, shared: &Shared) -> Result<Option<Job>, Unavailable> {
        if self.routing.plan.ordered && self.waiting.keys.unknown {
            self.work_out_keys(shared)?;
        }
        loop {
            let next = match self.retries.due.pop_front() {
                Some(job) => Some(job),
                None if !self.retries.is_full() => self.waiting.queue.pop_front(),
                None => None,
            };
            let Some(job) = next else { return Ok(None) };
            if !self.routing.plan.ordered || job.is_sink() {
                return Ok(Some(job));
            }
            let key = match job.lane_key {
                Some(key) => Ok(key),
                None => lane_key(shared, &job),
            };
            let key = match key {
                Ok(key) => key,
                Err(unavailable) => {
                    self.return_job(job);
                    return Err(unavailable);
                }
            };
            if let Some(job) = self.waiting.keys.acquire(key, job) {
                return Ok(Some(job));
            }
        }
    }

    /// An event has ended: the next one with its key may go.
    pub(crate) fn release_key(&mut self, job: &Job) {
        if let Some(next) = self.waiting.keys.release(job) {
            self.let_go(next);
        }
    }

    /// Order is no longer asked for: nobody waits for anybody.
    pub(crate) fn let_go_of_keys(&mut self) {
        for mut job in self.waiting.keys.take_blocked().into_iter().rev() {
            job.lane_key = None;
            self.let_go(job);
        }
    }

    /// Some of those that held keys or waited for them are gone: who holds what is worked out anew. Until that can be read,
    /// nothing may be taken.
    pub(super) fn work_out_keys(&mut self, shared: &Shared) -> Result<(), Unavailable> {
        self.let_go_of_keys();
        self.waiting.keys.unknown = true;
        self.hold_keys_of_tried(shared)?;
        let flying = self.window.events().map(|(offset, _)| offset);
        // Those that could not be read were taken, and hold their key until they have been.
        let unreadable = self.waiting.unreadable.jobs().map(|job| job.offset);
        for offset in flying.chain(unreadable) {
            let on_record = self.retries.job(offset);
            let job = on_record.unwrap_or_else(|| Job::new(JobKind::Event, offset, 0));
            self.waiting.keys.held.insert(lane_key(shared, &job)?);
        }
        self.waiting.keys.unknown = false;
        Ok(())
    }

    /// An event that waited for its key may go, before all that came after it.
    fn let_go(&mut self, job: Job) {
        match job.kind {
            JobKind::Event => self.waiting.requeue(job),
            // It is on record, and not one of those that the floor is about.
            JobKind::Resent | JobKind::Redriven(_) | JobKind::Sink(_) => {
                self.retries.due.push_front(job);
            }
        }
    }

    /// Events that were tried hold their keys, also when order is asked for only now, or after a restart. A dead letter
    /// that was sent on its way and not tried since asks for its key like everybody else.
    pub(crate) fn hold_keys_on_record(&mut self, shared: &Shared) {
        if self.hold_keys_of_tried(shared).is_err() {
            self.waiting.keys.unknown = true;
        }
    }

    fn hold_keys_of_tried(&mut self, shared: &Shared) -> Result<(), Unavailable> {
        for job in self.retries.tried() {
            self.waiting.keys.held.insert(lane_key(shared, &job)?);
        }
        Ok(())
    }
}

/// What an ordered consumer keeps in order: the event's `partitionkey`; events without one are one sequence, and so are
/// those whose bytes are lost.
fn lane_key(shared: &Shared, job: &Job) -> Result<u64, Unavailable> {
    let record = match &job.record {
        Some(record) => Some(record.payload.clone()),
        None => job.find(shared)?.found().map(|(payload, _)| payload),
    };
    let key = record.and_then(|payload| {
        let (_, event) = envelope::entry_and_event(&payload).ok()?;
        let key = event.text("partitionkey")?;
        Some(crate::event::key_of("partitionkey", key))
    });
    Ok(key.unwrap_or(0))
}
