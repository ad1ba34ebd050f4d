//! What readers see: the objects, their indexes, and the history, all of one version.
//!
//! Guarded by one lock, so that a list and the start of a watch can be taken together.
//! Invariant: nothing gets in here before it is safe on disk.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::{RwLock, RwLockReadGuard};

use crate::history::History;
use crate::recovery::TombstoneSet;
use crate::{Change, ChangeKind, Health, Key, Listing, Object, ResourceVersion};

type ByName = BTreeMap<Arc<str>, Arc<Object>>;

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) version: ResourceVersion,
    pub(crate) history: History,
    pub(crate) tombstone_set: TombstoneSet,
    pub(crate) health: Health,
    pub(crate) closed: bool,
    objects_count: usize,
    /// By resource, namespace and name.
    resources: BTreeMap<Arc<str>, BTreeMap<Arc<str>, ByName>>,
    by_uid: HashMap<Arc<str>, Key>,
    /// Uids of owners with the keys of what they own: most own one object or none.
    by_owner: BTreeSet<(Arc<str>, Key)>,
}

impl State {
    pub(crate) fn new(version: ResourceVersion, history_bytes_max: usize) -> Self {
        Self {
            version,
            history: History::new(history_bytes_max, version),
            tombstone_set: TombstoneSet::default(),
            health: Health::Serving,
            closed: false,
            objects_count: 0,
            resources: BTreeMap::new(),
            by_uid: HashMap::new(),
            by_owner: BTreeSet::new(),
        }
    }

    /// For reading, and sure that the history has a ring for `resource`. Only the first reader of a
    /// resource keeps others out, and only for a moment.
    pub(crate) fn read_with_ring<'a>(
        shared: &'a RwLock<Self>,
        resource: &str,
    ) -> RwLockReadGuard<'a, Self> {
        if !shared.read().history.has_ring(resource) {
            shared.write().history.add_ring(resource);
        }
        shared.read()
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<Object>> {
        self.resources
            .get(&key.resource)?
            .get(&key.namespace)?
            .get(&key.name)
    }

    /// The same key, made of texts that are kept already.
    pub(crate) fn share(&self, key: Key) -> Key {
        let Some((resource, namespaces)) = self.resources.get_key_value(&key.resource) else {
            return key;
        };
        let namespace = namespaces.get_key_value(&key.namespace);
        Key {
            resource: resource.clone(),
            namespace: namespace.map_or(key.namespace, |(namespace, _)| namespace.clone()),
            name: key.name,
        }
    }

    pub(crate) fn objects_count(&self) -> usize {
        self.objects_count
    }

    /// Sorted by namespace and name.
    pub(crate) fn objects(
        &self,
        resource: &str,
        namespace: Option<&str>,
    ) -> impl Iterator<Item = &Arc<Object>> {
        let namespaces = self.resources.get(resource);
        let one = namespace.and_then(|name| namespaces?.get(name));
        let all = namespaces.filter(|_| namespace.is_none());
        let all = all.into_iter().flat_map(BTreeMap::values);
        one.into_iter().chain(all).flat_map(BTreeMap::values)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.resources
            .values()
            .flat_map(BTreeMap::values)
            .flat_map(BTreeMap::values)
    }

    /// One look per namespace, however many objects they have.
    pub(crate) fn list_named(&self, resource: &str, name: &str) -> Listing {
        let namespaces = self.resources.get(resource);
        let namespaces = namespaces.into_iter().flat_map(BTreeMap::values);
        Listing {
            version: self.version,
            items: namespaces
                .filter_map(|names| names.get(name).cloned())
                .collect(),
        }
    }

    pub(crate) fn list(&self, resource: &str, namespace: Option<&str>) -> Listing {
        let items = self.objects(resource, namespace).cloned().collect();
        Listing {
            version: self.version,
            items,
        }
    }

    pub(crate) fn by_uid(&self, uid: &str) -> Option<&Arc<Object>> {
        self.get(self.by_uid.get(uid)?)
    }

    pub(crate) fn dependents(&self, owner_uid: &str) -> Vec<Arc<Object>> {
        let first = (Arc::from(owner_uid), Key::new("", "", ""));
        let owned = self.by_owner.range(first..);
        let owned = owned.take_while(|(owner, _)| &**owner == owner_uid);
        owned
            .filter_map(|(_, key)| self.get(key).cloned())
            .collect()
    }

    pub(crate) fn counts(&self) -> Vec<(Arc<str>, usize)> {
        let count = |namespaces: &BTreeMap<_, ByName>| namespaces.values().map(BTreeMap::len).sum();
        self.resources
            .iter()
            .map(|(name, namespaces)| (name.clone(), count(namespaces)))
            .collect()
    }

    /// Applies a change that is safe and remembers it. The version moves with the whole group.
    pub(crate) fn apply(&mut self, change: Change) {
        match change.kind {
            ChangeKind::Added | ChangeKind::Modified => self.insert(change.object.clone()),
            ChangeKind::Deleted => self.remove(&change.object.key),
        }
        self.history.push(change);
    }

    pub(crate) fn insert(&mut self, object: Arc<Object>) {
        let key = &object.key;
        let namespaces = self.resources.entry(key.resource.clone()).or_default();
        let names = namespaces.entry(key.namespace.clone()).or_default();
        let previous = names.insert(key.name.clone(), object.clone());
        match previous {
            // Most updates leave the facts as they are, and the indexes with them.
            Some(previous)
                if previous.facts.uid == object.facts.uid
                    && previous.facts.owners == object.facts.owners =>
            {
                return;
            }
            Some(previous) => self.unindex(&previous),
            None => self.objects_count += 1,
        }
        if !object.facts.uid.is_empty() {
            self.by_uid
                .insert(object.facts.uid.clone(), object.key.clone());
        }
        for owner in &object.facts.owners {
            self.by_owner.insert((owner.clone(), object.key.clone()));
        }
    }

    fn remove(&mut self, key: &Key) {
        let Some(namespaces) = self.resources.get_mut(&key.resource) else {
            return;
        };
        let Some(names) = namespaces.get_mut(&key.namespace) else {
            return;
        };
        let Some(removed) = names.remove(&key.name) else {
            return;
        };
        if names.is_empty() {
            namespaces.remove(&key.namespace);
        }
        if namespaces.is_empty() {
            self.resources.remove(&key.resource);
        }
        self.objects_count -= 1;
        self.unindex(&removed);
    }

    fn unindex(&mut self, object: &Object) {
        // Another object may carry the same uid by now; its entry stays.
        if self.by_uid.get(&object.facts.uid) == Some(&object.key) {
            self.by_uid.remove(&object.facts.uid);
        }
        for owner in &object.facts.owners {
            self.by_owner.remove(&(owner.clone(), object.key.clone()));
        }
    }
}
