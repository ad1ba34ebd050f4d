//! One after the other: requests that may create something under the same id.
//!
//! At the front of a namespace the API server sees to it that a name is there once. The front of all may be asked for the
//! same id in two namespaces at once, where both would find nothing and both create; so whoever looks for an id and creates
//! it does so while nobody else does. One process serves the front, so this is kept in memory, for as long as somebody asks or
//! something is being created: whoever asked may go away before that is done.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

type Id = (&'static str, String);

/// The ids that somebody looks for at present.
#[derive(Debug, Default)]
pub(crate) struct IdLocks {
    busy: Arc<Busy>,
}

type Busy = Mutex<HashMap<Id, Arc<tokio::sync::Mutex<()>>>>;

/// The right to look for an id and to create it, until this is dropped.
#[derive(Debug)]
pub(crate) struct IdLock {
    busy: Arc<Busy>,
    id: Id,
    guard: Option<OwnedMutexGuard<()>>,
}

impl IdLocks {
    /// Waits until nobody else creates something of this kind and id.
    pub(crate) async fn lock(&self, noun: &'static str, id: &str) -> IdLock {
        let id = (noun, id.to_owned());
        let lock = Arc::clone(self.busy.lock().entry(id.clone()).or_default());
        // Made before waiting: whoever stops waiting tidies up as well.
        let mut held = IdLock {
            busy: Arc::clone(&self.busy),
            id,
            guard: None,
        };
        held.guard = Some(lock.lock_owned().await);
        held
    }
}

impl Drop for IdLock {
    fn drop(&mut self) {
        self.guard = None;
        let mut busy = self.busy.lock();
        // Whoever else has or waits for it holds the lock too.
        if busy
            .get(&self.id)
            .is_some_and(|lock| Arc::strong_count(lock) == 1)
        {
            busy.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_id_is_had_by_one_at_a_time_and_forgotten_afterwards() {
        let locks = IdLocks::default();
        let first = locks.lock("instance", "a").await;
        let other = locks.lock("binding", "a").await;
        let mut second = std::pin::pin!(locks.lock("instance", "a"));
        assert!(futures::poll!(second.as_mut()).is_pending());
        {
            let mut impatient = std::pin::pin!(locks.lock("instance", "a"));
            assert!(futures::poll!(impatient.as_mut()).is_pending());
        }
        drop(first);
        let second = second.await;
        assert_eq!(locks.busy.lock().len(), 2);
        drop((second, other));
        assert!(locks.busy.lock().is_empty());
    }
}
