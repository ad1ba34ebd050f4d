//! Who refers to whom, so that a change finds the objects it concerns without looking at all of them.

use std::collections::{BTreeSet, HashMap};
use std::marker::PhantomData;
use std::sync::Arc;

use kube::runtime::reflector::ObjectRef;
use kube::{Resource, ResourceExt as _};
use parking_lot::Mutex;

use crate::watch::{Change, Watched};

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

/// Referrers of one kind, by what they refer to. There may be many thousands, and each refers to much that others refer to
/// as well: names and targets are kept once.
pub(crate) struct Index<K: Watched>(Arc<Mutex<Maps>>, PhantomData<fn() -> K>);

/// Namespace and name of a referrer.
type Name = (Option<String>, String);

#[derive(Default)]
struct Maps {
    targets: HashMap<Arc<Name>, Box<[Arc<Target>]>>,
    referrers: HashMap<Arc<Target>, BTreeSet<Arc<Name>>>,
}

impl<K: Watched> Clone for Index<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0), PhantomData)
    }
}

impl<K: Watched> Index<K> {
    pub(crate) fn new() -> Self {
        Self(Arc::default(), PhantomData)
    }

    /// Takes in a change of a referrer; `targets` says what an object refers to.
    pub(crate) fn update(&self, change: &Change<'_, K>, targets: fn(&K) -> Vec<Target>) {
        let object = change.object();
        let name = (object.meta().namespace.clone(), object.name_any());
        let now = match change {
            Change::Deleted(_) => Vec::new(),
            _ => targets(object),
        };
        self.0.lock().update(name, now);
    }

    /// Everybody who refers to `object`, in order.
    pub(crate) fn referrers<T: Resource<DynamicType = ()>>(&self, object: &T) -> Vec<ObjectRef<K>> {
        self.referring(&Target::from(object))
    }

    /// Everybody who refers to `target`, in order.
    pub(crate) fn referring(&self, target: &Target) -> Vec<ObjectRef<K>> {
        let maps = self.0.lock();
        let names = maps.referrers.get(target);
        let key = |name: &Arc<Name>| match &**name {
            (Some(namespace), name) => ObjectRef::new(name).within(namespace),
            (None, name) => ObjectRef::new(name),
        };
        names.into_iter().flatten().map(key).collect()
    }
}

impl Maps {
    fn update(&mut self, name: Name, now: Vec<Target>) {
        let name = match self.targets.remove_entry(&name) {
            Some((name, before)) if before.iter().map(|target| &**target).eq(&now) => {
                self.targets.insert(name, before);
                return;
            }
            Some((name, before)) => {
                before.iter().for_each(|target| self.part(&name, target));
                name
            }
            None => Arc::new(name),
        };
        if now.is_empty() {
            return;
        }
        let now: Box<[_]> = now
            .into_iter()
            .map(|target| self.join(&name, target))
            .collect();
        self.targets.insert(name, now);
    }

    fn part(&mut self, name: &Arc<Name>, target: &Arc<Target>) {
        if let Some(names) = self.referrers.get_mut(target) {
            names.remove(name);
            if names.is_empty() {
                self.referrers.remove(target);
            }
        }
    }

    fn join(&mut self, name: &Arc<Name>, target: Target) -> Arc<Target> {
        let known = self.referrers.get_key_value(&target);
        let target = known.map_or_else(|| Arc::new(target), |(known, _)| Arc::clone(known));
        let names = self.referrers.entry(Arc::clone(&target)).or_default();
        names.insert(Arc::clone(name));
        target
    }
}

#[cfg(test)]
mod tests;
