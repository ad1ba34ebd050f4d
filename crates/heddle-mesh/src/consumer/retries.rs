//! Events that are tried again: those on record, and the jobs whose time has come.
//!
//! ```text
//!   failed, redriven, or resent ──> on record ──(timer)──> due ──> in flight ──> ended, or on record with a later time
//! ```
//! Invariant: an event is on record from its first failure, or since it is sent again, until it has ended; an attempt under way
//! leaves it there, so a crash loses no count of attempts. Jobs for the external sink are due without being on record:
//! their event has ended, and the dead letter knows of them.

use std::collections::{BTreeMap, VecDeque};

use super::backpressure::Backpressure;
use super::{Job, JobKind};
use crate::journal::positions::Retry;
use crate::log::Offset;

/// Events on record with a failed attempt; beyond that nothing is tried for the first time until one has ended.
const RETRYING_MAX: usize = 2048;

#[derive(Debug, Default)]
pub(crate) struct Retries {
    pub(crate) on_record: BTreeMap<Offset, Retry>,
    /// Before all that was never tried.
    pub(crate) due: VecDeque<Job>,
    /// Those that this mesh had no room for.
    pub(crate) backpressure: Backpressure,
}

impl Retries {
    /// Whether so many are on record that nothing is tried for the first time.
    pub(super) fn is_full(&self) -> bool {
        self.on_record.len() >= RETRYING_MAX
    }

    pub(crate) fn contains(&self, offset: Offset) -> bool {
        self.on_record.contains_key(&offset)
    }

    /// The next attempt of an event on record.
    pub(super) fn job(&self, offset: Offset) -> Option<Job> {
        let retry = self.on_record.get(&offset)?;
        Some(job_of(offset, retry))
    }

    /// The next attempts of those that were tried since they are on record.
    pub(super) fn tried(&self) -> impl Iterator<Item = Job> {
        let tried = self.on_record.iter();
        let tried = tried.filter(|(_, retry)| retry.attempts > 0);
        tried.map(|(offset, retry)| job_of(*offset, retry))
    }

    /// Events whose bytes are in the log. Those of dead letters on their way again are in the journal.
    pub(crate) fn in_log(&self) -> impl Iterator<Item = Offset> {
        let in_log = self.on_record.iter();
        let in_log = in_log.filter(|(_, retry)| retry.redriven.is_none());
        in_log.map(|(offset, _)| *offset)
    }

    /// The names of dead letters on their way again.
    pub(super) fn redriven(&self) -> impl Iterator<Item = u64> {
        self.on_record.values().filter_map(|retry| retry.redriven)
    }

    /// A dead letter goes on its way again, as if never tried.
    pub(crate) fn redrive(&mut self, offset: Offset, name: u64, at: jiff::Timestamp) {
        let retry = Retry::untried(at, Some(name));
        self.on_record.insert(offset, retry);
        self.due.push_back(job_of(offset, &retry));
    }

    /// An event of the log goes on its way again, as if never tried.
    pub(super) fn resend(&mut self, offset: Offset, at: jiff::Timestamp) {
        let retry = Retry::resent(at);
        self.on_record.insert(offset, retry);
        self.due.push_back(job_of(offset, &retry));
    }

    /// Whether somebody had this one sent again from the log.
    pub(super) fn is_resent(&self, offset: Offset) -> bool {
        let retry = self.on_record.get(&offset);
        retry.is_some_and(|retry| retry.resent)
    }

    /// Forgets all of it; gives the dead letters that were on their way again.
    pub(super) fn clear(&mut self) -> Vec<u64> {
        let redriven = self.redriven().collect();
        *self = Self::default();
        redriven
    }
}

fn job_of(offset: Offset, retry: &Retry) -> Job {
    let kind = match retry.redriven {
        Some(name) => JobKind::Redriven(name),
        None if retry.resent => JobKind::Resent,
        None => JobKind::Event,
    };
    Job::new(kind, offset, retry.attempts)
}
