//! The work queue of one controller: keys to reconcile, deduplicated, and nothing about why.
//!
//! However often an object is named before the controller gets to it, it is waiting once; the queue is therefore bounded by
//! the number of objects.

use std::collections::{HashSet, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;

use futures::{Stream, stream};
use kube::Resource;
use kube::runtime::controller::ReconcileRequest;
use kube::runtime::reflector::ObjectRef;
use parking_lot::Mutex;
use tokio::sync::Notify;

pub(crate) struct WorkQueue<K: Resource<DynamicType = ()>>(Arc<Inner<K>>);

struct Inner<K: Resource<DynamicType = ()>> {
    waiting: Mutex<QueuedKeys<K>>,
    not_empty: Notify,
}

struct QueuedKeys<K: Resource<DynamicType = ()>> {
    order: VecDeque<ObjectRef<K>>,
    known: HashSet<ObjectRef<K>>,
    /// Since the queue was made.
    taken: u64,
}

impl<K: Resource<DynamicType = ()>> Clone for WorkQueue<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: Resource<DynamicType = ()>> WorkQueue<K> {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Inner {
            waiting: Mutex::new(QueuedKeys {
                order: VecDeque::new(),
                known: HashSet::new(),
                taken: 0,
            }),
            not_empty: Notify::new(),
        }))
    }

    pub(crate) fn enqueue(&self, key: ObjectRef<K>) {
        let mut waiting = self.0.waiting.lock();
        if waiting.known.insert(key.clone()) {
            waiting.order.push_back(key);
            self.0.not_empty.notify_one();
        }
    }

    fn pop(&self) -> Option<ObjectRef<K>> {
        let mut waiting = self.0.waiting.lock();
        let key = waiting.order.pop_front()?;
        waiting.known.remove(&key);
        waiting.taken += 1;
        Some(key)
    }

    /// How many wait, and how many were taken so far.
    pub(crate) fn depth(&self) -> (usize, u64) {
        let waiting = self.0.waiting.lock();
        (waiting.order.len(), waiting.taken)
    }

    /// What is waiting, as long as there is somebody to look at it. One reader at a time.
    pub(crate) fn stream(self) -> impl Stream<Item = Result<ReconcileRequest<K>, Infallible>> {
        stream::unfold(self, |queue| async move {
            loop {
                if let Some(key) = queue.pop() {
                    return Some((Ok(key.into()), queue));
                }
                queue.0.not_empty.notified().await;
            }
        })
    }
}
