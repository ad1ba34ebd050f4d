//! What Kubernetes leaves to its controller manager: owners, namespaces, old events.
//!
//! One loop consumes the same history that watches read, looks only at what a change could have affected, and
//! acts through the same doors as clients. It keeps no state that matters: after a restart, or after falling off
//! the history, it scans everything once and goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, BoxStream, SelectAll};
use futures::{FutureExt as _, StreamExt as _};
use heddle_store::{Change, ChangeKind, Expired, Key, Object};

use crate::Inner;
use crate::registry::BuiltIn;

mod expiry;
mod namespaces;
mod owners;

/// Ready changes are taken together, so that ten thousand dependents cost dozens of commits, not thousands.
const BATCH: usize = 1_024;
/// How soon something that could not be done (a full disk, a lost race) is tried again.
const RETRY: Duration = Duration::from_secs(1);
const EXPIRY: Duration = Duration::from_secs(60);

type Changes = SelectAll<BoxStream<'static, Result<Change, Expired>>>;

pub(crate) async fn run(inner: Arc<Inner>) {
    loop {
        let (mut changes, objects) = subscribe(&inner);
        let mut todo = Todo::default();
        for object in &objects {
            todo.consider(&inner, object);
        }
        drop(objects);
        let mut expire_at = inner.clock.monotonic();
        loop {
            todo.work(&inner).await;
            if inner.clock.monotonic() >= expire_at {
                expiry::sweep(&inner).await;
                expire_at = inner.clock.monotonic() + EXPIRY;
            }
            let patience = if todo.is_empty() {
                expire_at.saturating_sub(inner.clock.monotonic())
            } else {
                RETRY
            };
            let Ok(first) = inner.clock.timeout(patience, changes.next()).await else {
                continue;
            };
            if !todo.take(&inner, first, &mut changes) {
                tracing::info!(
                    "the garbage collector fell behind the history; scanning everything again"
                );
                break;
            }
        }
    }
}

fn subscribe(inner: &Inner) -> (Changes, Vec<Arc<Object>>) {
    let mut changes = SelectAll::new();
    let mut objects = Vec::new();
    for resource in inner.registry.stored() {
        let (listing, watch) = inner.store.list_and_watch(&resource.storage);
        objects.extend(listing.items);
        changes.push(
            stream::unfold(watch, |mut watch| async move {
                Some((watch.next().await, watch))
            })
            .boxed(),
        );
    }
    (changes, objects)
}

/// Keys whose situation may have changed. Level-triggered: what to do is decided by looking, not by the change.
#[derive(Debug, Default)]
struct Todo {
    /// Objects whose owners may be gone, or that are being deleted in the foreground or with orphans.
    objects: BTreeSet<Key>,
    /// Namespaces that may be terminating.
    namespaces: BTreeSet<String>,
}

impl Todo {
    fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.namespaces.is_empty()
    }

    /// Adds what these changes may have affected; false if the history was lost.
    fn take(
        &mut self,
        inner: &Inner,
        first: Option<Result<Change, Expired>>,
        changes: &mut Changes,
    ) -> bool {
        let mut next = first;
        for _ in 0..BATCH {
            match next {
                Some(Ok(change)) => self.affected(inner, &change),
                Some(Err(_)) | None => return false,
            }
            match changes.next().now_or_never() {
                Some(more) => next = more,
                None => return true,
            }
        }
        true
    }

    fn affected(&mut self, inner: &Inner, change: &Change) {
        let object = &change.object;
        if change.kind != ChangeKind::Deleted {
            self.consider(inner, object);
            return;
        }
        let dependents = inner.store.dependents(&object.facts.uid);
        self.objects
            .extend(dependents.iter().map(|dependent| dependent.key.clone()));
        for owner in object
            .facts
            .owners
            .iter()
            .filter_map(|uid| inner.store.by_uid(uid))
        {
            self.consider(inner, &owner);
        }
        let namespaces = inner.registry.builtin(BuiltIn::Namespace);
        let namespace = crate::object::key(namespaces, None, &object.key.namespace);
        if inner
            .store
            .get(&namespace)
            .is_some_and(|namespace| namespace.facts.deleting)
        {
            self.namespaces.insert(object.key.namespace.to_string());
        }
    }

    fn consider(&mut self, inner: &Inner, object: &Object) {
        if !object.facts.owners.is_empty() || object.facts.deleting {
            self.objects.insert(object.key.clone());
        }
        // An owner that waits for its dependents has to see them asked to go; they do not change by themselves.
        if object.facts.deleting {
            let dependents = inner.store.dependents(&object.facts.uid);
            self.objects
                .extend(dependents.iter().map(|dependent| dependent.key.clone()));
        }
        if object.facts.deleting
            && object.key.resource == inner.registry.builtin(BuiltIn::Namespace).storage
        {
            self.namespaces.insert(object.key.name.to_string());
        }
    }

    /// Does what can be done; what could not is kept for another try.
    async fn work(&mut self, inner: &Inner) {
        let mut by_resource: BTreeMap<Arc<str>, Vec<Key>> = BTreeMap::new();
        for key in std::mem::take(&mut self.objects) {
            by_resource
                .entry(Arc::clone(&key.resource))
                .or_default()
                .push(key);
        }
        for (resource, keys) in by_resource {
            let Some(resource) = inner.registry.by_storage(&resource) else {
                continue;
            };
            self.objects
                .extend(owners::settle(inner, resource, &keys).await);
        }
        for namespace in std::mem::take(&mut self.namespaces) {
            if let Err(refusal) = namespaces::terminate(inner, &namespace).await {
                tracing::warn!(namespace, %refusal, "the namespace cannot be emptied yet");
                self.namespaces.insert(namespace);
            }
        }
    }
}
