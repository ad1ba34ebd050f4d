//! What is to be expected of the disk and of a consumer if it goes on so: numbers of now against those of the last minutes.
//!
//! The arithmetic is `heddle_api::forecast`; trends are gathered with the readings of health, about once a second.

use std::time::Duration;

use heddle_api::forecast::{self, FailingEvent, Forecast};
use heddle_api::ledger::Account;
use jiff::Timestamp;

use crate::consumer::{Consumer, State};
use crate::log::Room;
use crate::mesh::Mesh;

impl Mesh {
    /// When the disk of the log is full.
    pub(super) fn disk_full(&self, room: &Room) -> Option<Forecast> {
        let usable = room.free_bytes.saturating_sub(room.reserve_bytes());
        let now = self.shared.clock.monotonic();
        let samples = self.shared.samples.lock();
        samples.disk_full(now, room.free_bytes, usable)
    }

    /// When nothing waits for a consumer any more, unless nothing is sent to it.
    pub(super) fn backlog_done(&self, consumer: &Consumer, account: &Account) -> Option<Forecast> {
        if account.pending == 0 || account.held.is_some() {
            return None;
        }
        let now = self.shared.clock.monotonic();
        let samples = self.shared.samples.lock();
        samples.backlog_done(consumer.id, now, account.pending)
    }
}

/// When the first event that a consumer retries runs out of attempts. One whose attempts found no room in this mesh, which
/// counts for nothing, has no such time.
pub(super) fn dead_letters_begin(state: &State, now: Timestamp) -> Option<Forecast> {
    let policy = &state.routing.plan.policy;
    let on_record = state.retries.on_record.iter();
    let failing = on_record.filter(|(offset, retry)| {
        retry.attempts > retry.excused && !state.retries.backpressure.contains(**offset)
    });
    // Who has failed most often is nearest to its end.
    let (place, retry) = failing.min_by_key(|(_, retry)| {
        let failed = retry.attempts - retry.excused;
        (std::cmp::Reverse(failed), retry.next_at)
    })?;
    let event = FailingEvent {
        place: *place,
        failed: retry.attempts - retry.excused,
        attempts: policy.retry_max.saturating_add(1),
        next_in: Duration::try_from(retry.next_at.duration_since(now)).unwrap_or_default(),
        attempt: state.last_attempts.latency.unwrap_or_default(),
    };
    forecast::dead_letters_begin(&event, |failed| policy.scheduled(failed))
}
