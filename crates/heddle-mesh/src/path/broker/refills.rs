//! Consumers that fell behind and have room again, in the order in which they asked.
//!
//! Each is there at most once, so there are never more than there are consumers.

use std::collections::{HashSet, VecDeque};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::journal::record::ConsumerId;

#[derive(Debug, Default)]
pub(crate) struct Refills {
    queue: Mutex<RefillQueue>,
    asked: Notify,
}

#[derive(Debug, Default)]
struct RefillQueue {
    order: VecDeque<ConsumerId>,
    waiting: HashSet<ConsumerId>,
}

impl Refills {
    pub(crate) fn ask(&self, id: ConsumerId) {
        let mut queue = self.queue.lock();
        if queue.waiting.insert(id) {
            queue.order.push_back(id);
            drop(queue);
            self.asked.notify_one();
        }
    }

    /// The next one, once there is one. Only the scanner asks.
    pub(super) async fn next(&self) -> ConsumerId {
        loop {
            if let Some(id) = self.take() {
                return id;
            }
            self.asked.notified().await;
        }
    }

    fn take(&self) -> Option<ConsumerId> {
        let mut queue = self.queue.lock();
        let id = queue.order.pop_front()?;
        queue.waiting.remove(&id);
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_consumer_waits_once_however_often_it_asks() {
        let refills = Refills::default();
        for id in (1..=3).cycle().take(1000) {
            refills.ask(id);
        }
        assert_eq!(refills.queue.lock().order, [1, 2, 3]);
        assert_eq!(refills.next().await, 1);
        refills.ask(1);
        refills.ask(1);
        assert_eq!(refills.queue.lock().order, [2, 3, 1]);
    }
}
