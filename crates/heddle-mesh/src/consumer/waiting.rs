//! What waits in memory for its first attempt: in line, behind another event with its key, or because it could not be read.
//!
//! Invariant: an event waits in one of the three places. Dead letters on their way again may wait for a key or for the log
//! too, and are not what a first attempt is about.

use std::collections::VecDeque;

use super::keys::Keys;
use super::unreadable::UnreadableJobs;
use super::{Job, JobKind};
use crate::shared::Shared;

#[derive(Debug, Default)]
pub(super) struct WaitingJobs {
    /// In the order of the log.
    pub(super) queue: VecDeque<Job>,
    pub(super) keys: Keys,
    pub(super) unreadable: UnreadableJobs,
}

impl WaitingJobs {
    pub(super) fn len(&self) -> usize {
        self.queue.len() + self.keys.blocked_count() + self.unreadable.len()
    }

    /// Puts an event at its place: another of its key may have been let go before it and not have been taken yet.
    pub(super) fn requeue(&mut self, job: Job) {
        insert_in_order(&mut self.queue, job);
    }

    /// What waits for its first attempt. Dead letters on their way again are not among them, wherever they wait.
    pub(super) fn untried(&self) -> impl Iterator<Item = &Job> {
        let waiting = self.queue.iter().chain(self.keys.blocked());
        let waiting = waiting.chain(self.unreadable.jobs());
        waiting.filter(|job| job.kind == JobKind::Event && job.attempts == 0)
    }

    pub(super) fn retain(&mut self, stays: impl Fn(&Job) -> bool) {
        self.unreadable.retain(&stays);
        self.queue.retain(&stays);
        self.keys.retain(stays);
    }

    /// Forgets all of it. Whether some keys could not be read is known as before: nothing holds them now.
    pub(super) fn clear(&mut self, shared: &Shared) {
        let waiting = self.queue.iter().chain(self.keys.blocked());
        for record in waiting.filter_map(|job| job.record.as_ref()) {
            shared.give_back(record.payload.len());
        }
        self.queue.clear();
        self.keys.clear();
        self.unreadable = UnreadableJobs::default();
    }
}

/// Most come in order; one that was overtaken goes back to its place.
pub(super) fn insert_in_order(queue: &mut VecDeque<Job>, job: Job) {
    let place = queue.partition_point(|waiting| waiting.offset < job.offset);
    queue.insert(place, job);
}
