//! The cache that the watches fill, for whoever needs no live read.
//!
//! A reconcile reads the object that it is about from the server. Of what stands around that object, a status only has to
//! follow: whatever is newer than what is known here requeues the same object when it arrives. Two rules make that
//! true. A controller takes from here only what it is woken for, and it takes away nothing for a reason that it knows
//! from here only: what goes is decided by live reads.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

use kube::runtime::reflector::{ObjectRef, Store};
use tokio::sync::watch;

use crate::watch::{SharedWatch, Watched};

/// The states that all watches have brought so far, by kind.
#[derive(Clone, Default)]
pub(crate) struct WatchCache(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

struct CachedKind<K: Watched> {
    store: Store<K>,
    is_complete: watch::Receiver<bool>,
}

impl Debug for WatchCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Sight").field(&self.0.len()).finish()
    }
}

impl WatchCache {
    /// Adds a kind. The watch must be of all namespaces, for what is not seen here is not there, and keep objects whole.
    pub(crate) fn with<K: Watched>(self, shared_watch: &SharedWatch<K>) -> Self {
        assert!(
            shared_watch.is_untrimmed(),
            "a status cannot follow the gist of {}",
            K::kind(&())
        );
        self.over(shared_watch.store(), shared_watch.is_complete())
    }

    fn over<K: Watched>(mut self, store: Store<K>, is_complete: watch::Receiver<bool>) -> Self {
        let seen = CachedKind { store, is_complete };
        self.0.insert(TypeId::of::<K>(), Arc::new(seen));
        self
    }

    /// Adds a kind of which one object is there, and no other.
    #[cfg(test)]
    pub(crate) fn containing<K: Watched>(self, object: K) -> Self {
        use kube::runtime::reflector;
        use kube::runtime::watcher::Event;

        let (store, mut writer) = reflector::store();
        for event in [Event::Init, Event::InitApply(object), Event::InitDone] {
            writer.apply_watcher_event(&event);
        }
        self.over(store, watch::Sender::new(true).subscribe())
    }

    /// What is known of one object; the outer `None` means that nothing is known of its kind yet.
    pub(crate) fn find<K: Watched>(
        &self,
        namespace: Option<&str>,
        name: &str,
    ) -> Option<Option<K>> {
        let key = ObjectRef::new(name);
        let key = match namespace {
            Some(namespace) => key.within(namespace),
            None => key,
        };
        let found = self.store::<K>()?.get(&key);
        Some(found.map(|found| K::clone(&found)))
    }

    /// All that are known of a kind, in no order; `None` means that nothing is known yet.
    pub(crate) fn all<K: Watched>(&self) -> Option<Vec<Arc<K>>> {
        Some(self.store::<K>()?.state())
    }

    /// Those of a kind that are known of some, in their order; `None` means that nothing is known yet.
    pub(crate) fn some<K: Watched>(&self, keys: &[ObjectRef<K>]) -> Option<Vec<K>> {
        let store = self.store::<K>()?;
        let found = keys.iter().filter_map(|key| store.get(key));
        Some(found.map(|found| K::clone(&found)).collect())
    }

    /// The states of a kind, once its first list is in.
    fn store<K: Watched>(&self) -> Option<&Store<K>> {
        let seen = self
            .0
            .get(&TypeId::of::<K>())?
            .downcast_ref::<CachedKind<K>>()?;
        seen.is_complete.borrow().then_some(&seen.store)
    }
}

#[cfg(test)]
mod tests {
    use heddle_api::{Application, Channel};
    use kube::runtime::reflector;
    use kube::runtime::watcher::Event;
    use serde_json::json;

    use super::*;

    fn channel(name: &str) -> Channel {
        let metadata = json!({"name": name, "namespace": "team"});
        serde_json::from_value(json!({"metadata": metadata, "spec": {}})).unwrap()
    }

    #[test]
    fn nothing_counts_as_absent_before_all_that_is_there_was_seen() {
        let (store, mut writer) = reflector::store();
        let is_complete = watch::Sender::new(false);
        let cache = WatchCache::default().over(store, is_complete.subscribe());
        let found = |name: &str| -> Option<Option<String>> {
            let found = cache.find::<Channel>(Some("team"), name)?;
            Some(found.and_then(|channel| channel.metadata.name))
        };
        assert_eq!(found("a"), None);
        writer.apply_watcher_event(&Event::Init);
        writer.apply_watcher_event(&Event::InitApply(channel("a")));
        assert_eq!(found("a"), None);
        assert_eq!(found("b"), None);
        assert!(cache.some::<Channel>(&[]).is_none());
        writer.apply_watcher_event(&Event::InitDone);
        is_complete.send_replace(true);
        assert_eq!(found("a"), Some(Some("a".to_owned())));
        assert_eq!(found("b"), Some(None));
        assert_eq!(cache.all::<Channel>().map(|all| all.len()), Some(1));
        let keys = ["b", "a"].map(|name| ObjectRef::new(name).within("team"));
        assert_eq!(
            cache.some::<Channel>(&keys).map(|some| some.len()),
            Some(1),
            "of what is not there nothing is known"
        );
        assert!(
            cache.find::<Application>(None, "a").is_none(),
            "nobody watches that kind"
        );
    }
}
