//! Wake-ups on their way to one controller: which objects to look at, and nothing about why.
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

pub(crate) struct Inbox<K: Resource<DynamicType = ()>>(Arc<Inner<K>>);

struct Inner<K: Resource<DynamicType = ()>> {
    waiting: Mutex<Waiting<K>>,
    bell: Notify,
}

struct Waiting<K: Resource<DynamicType = ()>> {
    order: VecDeque<ObjectRef<K>>,
    known: HashSet<ObjectRef<K>>,
}

impl<K: Resource<DynamicType = ()>> Clone for Inbox<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: Resource<DynamicType = ()>> Inbox<K> {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Inner {
            waiting: Mutex::new(Waiting {
                order: VecDeque::new(),
                known: HashSet::new(),
            }),
            bell: Notify::new(),
        }))
    }

    pub(crate) fn wake(&self, key: ObjectRef<K>) {
        let mut waiting = self.0.waiting.lock();
        if waiting.known.insert(key.clone()) {
            waiting.order.push_back(key);
            self.0.bell.notify_one();
        }
    }

    fn take(&self) -> Option<ObjectRef<K>> {
        let mut waiting = self.0.waiting.lock();
        let key = waiting.order.pop_front()?;
        waiting.known.remove(&key);
        Some(key)
    }

    /// What is waiting, as long as there is somebody to look at it. One reader at a time.
    pub(crate) fn stream(self) -> impl Stream<Item = Result<ReconcileRequest<K>, Infallible>> {
        stream::unfold(self, |inbox| async move {
            loop {
                if let Some(key) = inbox.take() {
                    return Some((Ok(key.into()), inbox));
                }
                inbox.0.bell.notified().await;
            }
        })
    }
}
