//! Which instances there are, as far as the catalog is concerned: pinned to a revision, or waiting for an offering.
//!
//! Kept by a watch, so it may be a moment behind. What this front has just accepted is counted at once, so that a burst of
//! requests does not pass a bound before the watch has told of the first.

use std::collections::BTreeMap;
use std::sync::Arc;

use heddle_api::ServiceInstance;
use heddle_api::operation::OperationState;
use kube::ResourceExt as _;
use kube::runtime::watcher::Event;
use parking_lot::Mutex;

/// How many instances stand where. Clones are one.
#[derive(Debug, Clone, Default)]
pub struct Census(Arc<Mutex<CensusCounts>>);

#[derive(Debug, Default)]
struct CensusCounts {
    instances: BTreeMap<Key, Entry>,
    /// A list on its way in.
    coming: BTreeMap<Key, Entry>,
    listed: bool,
}

/// Namespace and name.
type Key = (String, String);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    /// It waits for a registry that may have what it asks for.
    Awaiting,
    /// It is pinned to the revision of that name.
    Pinned(String),
}

impl Entry {
    /// Instances of Applications are counted elsewhere, and what has failed waits no longer.
    fn of(instance: &ServiceInstance) -> Option<Self> {
        let spec = &instance.spec;
        if let Some(revision) = &spec.revision_ref {
            return Some(Self::Pinned(revision.name.clone()));
        }
        let status = instance.status.as_ref();
        let told = status.and_then(|status| status.operation.as_ref());
        let asked = spec.operation.as_ref().map(|operation| &operation.id);
        let failed = told
            .is_some_and(|told| told.state == OperationState::Failed && Some(&told.id) == asked);
        let leaving = instance.metadata.deletion_timestamp.is_some();
        (spec.application.is_none() && !failed && !leaving).then_some(Self::Awaiting)
    }
}

impl Census {
    /// How many instances wait for the catalog.
    #[must_use]
    pub fn awaiting(&self) -> usize {
        let counted = self.0.lock();
        let waiting = |entry: &&Entry| **entry == Entry::Awaiting;
        counted.instances.values().filter(waiting).count()
    }

    /// How many instances are pinned to each revision, by its name.
    #[must_use]
    pub fn pinned(&self) -> BTreeMap<String, u64> {
        let mut pinned = BTreeMap::new();
        for entry in self.0.lock().instances.values() {
            if let Entry::Pinned(revision) = entry {
                *pinned.entry(revision.clone()).or_default() += 1;
            }
        }
        pinned
    }

    /// Whether everything was listed once, so that none means none.
    #[must_use]
    pub fn is_listed(&self) -> bool {
        self.0.lock().listed
    }

    /// Counts an instance that was just accepted, before any watch tells of it.
    pub(crate) fn expect(&self, instance: &ServiceInstance) {
        self.put(instance);
    }

    pub(super) fn take(&self, events: Vec<Event<ServiceInstance>>) {
        for event in events {
            match event {
                Event::Init => self.0.lock().coming.clear(),
                Event::InitApply(instance) => {
                    if let Some(entry) = Entry::of(&instance) {
                        self.0.lock().coming.insert(key(&instance), entry);
                    }
                }
                Event::InitDone => {
                    let mut counted = self.0.lock();
                    counted.instances = std::mem::take(&mut counted.coming);
                    counted.listed = true;
                }
                Event::Apply(instance) => self.put(&instance),
                Event::Delete(instance) => {
                    self.0.lock().instances.remove(&key(&instance));
                }
            }
        }
    }

    fn put(&self, instance: &ServiceInstance) {
        let mut counted = self.0.lock();
        match Entry::of(instance) {
            Some(entry) => counted.instances.insert(key(instance), entry),
            None => counted.instances.remove(&key(instance)),
        };
    }
}

fn key(instance: &ServiceInstance) -> Key {
    (
        instance.namespace().unwrap_or_default(),
        instance.name_any(),
    )
}
