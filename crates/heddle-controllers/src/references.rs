//! Who refers to whom, so that a change finds the objects it concerns without looking at all of them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use kube::runtime::reflector::ObjectRef;
use kube::{Resource, ResourceExt as _};
use parking_lot::Mutex;

use crate::watch::{Change, Watched, key_of};

/// Something that can be referred to. Namespaceless kinds have an empty namespace.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Target {
    kind: String,
    namespace: String,
    name: String,
}

impl Target {
    pub(crate) fn new(kind: &str, namespace: &str, name: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    pub(crate) fn of<K: Resource<DynamicType = ()>>(namespace: &str, name: &str) -> Self {
        Self::new(&K::kind(&()), namespace, name)
    }

    fn from<K: Resource<DynamicType = ()>>(object: &K) -> Self {
        Self::of::<K>(&object.namespace().unwrap_or_default(), &object.name_any())
    }
}

/// Referrers of one kind, by what they refer to.
pub(crate) struct Index<K: Watched>(Arc<Mutex<Maps<K>>>);

struct Maps<K: Watched> {
    targets: HashMap<ObjectRef<K>, Vec<Target>>,
    referrers: HashMap<Target, BTreeSet<(Option<String>, String)>>,
}

impl<K: Watched> Clone for Index<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: Watched> Index<K> {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Maps {
            targets: HashMap::new(),
            referrers: HashMap::new(),
        })))
    }

    /// Takes in a change of a referrer; `targets` says what an object refers to.
    pub(crate) fn update(&self, change: &Change<'_, K>, targets: fn(&K) -> Vec<Target>) {
        let object = change.object();
        let key = key_of(&**object);
        let name = (object.meta().namespace.clone(), object.name_any());
        let now = match change {
            Change::Deleted(_) => Vec::new(),
            _ => targets(object),
        };
        let mut maps = self.0.lock();
        if maps.targets.get(&key).map_or(&[][..], Vec::as_slice) == now {
            return;
        }
        for target in maps.targets.remove(&key).unwrap_or_default() {
            if let Some(names) = maps.referrers.get_mut(&target) {
                names.remove(&name);
                if names.is_empty() {
                    maps.referrers.remove(&target);
                }
            }
        }
        for target in &now {
            let names = maps.referrers.entry(target.clone()).or_default();
            names.insert(name.clone());
        }
        if !now.is_empty() {
            maps.targets.insert(key, now);
        }
    }

    /// Everybody who refers to `object`, in order.
    pub(crate) fn referrers<T: Resource<DynamicType = ()>>(&self, object: &T) -> Vec<ObjectRef<K>> {
        self.referring(&Target::from(object))
    }

    /// Everybody who refers to `target`, in order.
    pub(crate) fn referring(&self, target: &Target) -> Vec<ObjectRef<K>> {
        let maps = self.0.lock();
        let names = maps.referrers.get(target);
        names
            .into_iter()
            .flatten()
            .map(|(namespace, name)| match namespace {
                Some(namespace) => ObjectRef::new(name).within(namespace),
                None => ObjectRef::new(name),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
