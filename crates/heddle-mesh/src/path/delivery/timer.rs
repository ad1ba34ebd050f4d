//! Wakes deliveries that wait for their next attempt.
//!
//! One task for all of them: a heap ordered by time. A wake-up that came too late for its consumer (the event has ended,
//! the consumer is gone) is simply ignored there.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Weak;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::journal::line::ConsumerId;
use crate::log::Offset;
use crate::shared::Shared;

/// A time for one event of one consumer, on the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Due {
    pub(crate) at: Duration,
    pub(crate) consumer: ConsumerId,
    pub(crate) what: What,
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    Event(Offset),
    /// A dead letter for the external sink.
    Sink(u64, u32),
    /// Its turn at a destination that takes only so many.
    Turn,
}

pub(crate) async fn run(shared: Weak<Shared>, mut added: mpsc::UnboundedReceiver<Due>) {
    let mut heap: BinaryHeap<Reverse<Due>> = BinaryHeap::new();
    loop {
        let Some(mesh) = shared.upgrade() else { return };
        let clock = mesh.clock.clone();
        let now = clock.monotonic();
        while heap.peek().is_some_and(|Reverse(due)| due.at <= now) {
            let Some(Reverse(due)) = heap.pop() else {
                break;
            };
            let consumer = mesh.consumers.read().by_id.get(&due.consumer).cloned();
            if let Some(consumer) = consumer {
                consumer.due(&mesh, due.what);
            }
        }
        drop(mesh);
        let wait = heap.peek().map(|Reverse(due)| due.at.saturating_sub(now));
        tokio::select! {
            biased;
            due = added.recv() => match due {
                Some(due) => heap.push(Reverse(due)),
                None => return,
            },
            () = clock.sleep(wait.unwrap_or(IDLE)), if wait.is_some() => {}
        }
    }
}

/// Never waited for: without anything due only an addition wakes.
const IDLE: Duration = Duration::from_secs(3600);
