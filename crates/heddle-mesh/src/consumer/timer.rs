//! Wakes deliveries that wait for their next attempt.
//!
//! One task for all of them, and at most one wake-up for each thing that waits: scheduling it again replaces the wake-up
//! before. So there are never more than what waits, which its consumer bounds. A wake-up that came too late for its
//! consumer (the event has ended, the consumer is gone) is simply ignored there.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::journal::record::ConsumerId;
use crate::log::Offset;
use crate::shared::Shared;

/// A time for one event of one consumer, on the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TimerEntry {
    pub(crate) at: Duration,
    pub(crate) consumer: ConsumerId,
    pub(crate) what: TimerTask,
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum TimerTask {
    Event(Offset),
    /// A dead letter for the external sink.
    Sink(u64, u32),
    /// Its turn at a destination that takes only so many, or of its own rate.
    Throttle,
    /// A pause that may be over.
    Resume,
}

/// Everything that waits for its time.
#[derive(Debug, Default)]
pub(crate) struct Timer {
    waiting: Mutex<TimerQueue>,
    /// The next time is another one.
    changed: Notify,
}

#[derive(Debug, Default)]
struct TimerQueue {
    by_time: BTreeSet<TimerEntry>,
    times: HashMap<(ConsumerId, TimerTask), Duration>,
}

impl Timer {
    pub(crate) fn add(&self, due: TimerEntry) {
        let mut waiting = self.waiting.lock();
        if let Some(at) = waiting.times.insert((due.consumer, due.what), due.at) {
            waiting.by_time.remove(&TimerEntry { at, ..due });
        }
        waiting.by_time.insert(due);
        let is_next = waiting.by_time.first() == Some(&due);
        drop(waiting);
        if is_next {
            self.changed.notify_one();
        }
    }

    /// Lets the task look whether there is still a mesh.
    pub(crate) fn wake(&self) {
        self.changed.notify_one();
    }

    fn take_due(&self, now: Duration) -> Option<TimerEntry> {
        let mut waiting = self.waiting.lock();
        let due = waiting
            .by_time
            .first()
            .filter(|due| due.at <= now)
            .copied()?;
        waiting.by_time.remove(&due);
        waiting.times.remove(&(due.consumer, due.what));
        Some(due)
    }

    fn next_at(&self) -> Option<Duration> {
        let waiting = self.waiting.lock();
        waiting.by_time.first().map(|due| due.at)
    }
}

pub(crate) async fn run(shared: Weak<Shared>, timer: Arc<Timer>) {
    loop {
        let Some(mesh) = shared.upgrade() else { return };
        let clock = mesh.clock.clone();
        let now = clock.monotonic();
        while let Some(due) = timer.take_due(now) {
            let consumer = mesh.consumers.read().by_id.get(&due.consumer).cloned();
            if let Some(consumer) = consumer {
                consumer.due(&mesh, due.what);
            }
        }
        drop(mesh);
        let wait = timer.next_at().map(|at| at.saturating_sub(now));
        tokio::select! {
            biased;
            () = timer.changed.notified() => {}
            () = clock.sleep(wait.unwrap_or(IDLE)), if wait.is_some() => {}
        }
    }
}

/// Never waited for: without anything due only an addition wakes.
const IDLE: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thing_has_one_wake_up_however_often_it_is_scheduled() {
        let timer = Timer::default();
        let due = |seconds, what| TimerEntry {
            at: Duration::from_secs(seconds),
            consumer: 1,
            what,
        };
        for seconds in (1..=1000).rev() {
            timer.add(due(seconds, TimerTask::Event(7)));
            timer.add(due(seconds, TimerTask::Throttle));
        }
        timer.add(due(5, TimerTask::Event(7)));
        let waiting = timer.waiting.lock();
        assert_eq!((waiting.by_time.len(), waiting.times.len()), (2, 2));
        drop(waiting);
        let later = Duration::from_secs(10_000);
        assert_eq!(timer.take_due(later), Some(due(1, TimerTask::Throttle)));
        assert_eq!(timer.take_due(later), Some(due(5, TimerTask::Event(7))));
        assert_eq!(timer.take_due(later), None);
        assert!(timer.waiting.lock().times.is_empty());
    }
}
