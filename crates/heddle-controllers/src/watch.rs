//! One watch per kind, shared by every controller and by the routes.
//!
//! A [`SharedWatch`] keeps the newest known state of a kind and tells its listeners about each change, in order. Every resync
//! period it starts anew from a fresh list, so that not even a change that a watch failed to deliver is missed for longer
//! than that. Listeners run inside the watch and therefore only take notes.
//!
//! Of kinds that there may be many thousands of, a shared watch keeps no more than its listeners look at ([`SharedWatch::trimmed`]).

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use heddle_rt::Chance;
use heddle_rt::backoff::{Backoff, Limits};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::NamespaceResourceScope;
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use crate::Options;

/// What controllers know a kind by.
pub(crate) trait Watched:
    Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static
{
}

impl<K> Watched for K where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static
{
}

/// One change, as listeners see it.
pub(crate) enum Change<'a, K> {
    /// It came, or is not what it was.
    Applied {
        /// As far as it is kept.
        old: Option<&'a Arc<K>>,
        /// All of it.
        new: &'a Arc<K>,
        /// Whether anything but the status may have changed.
        is_written: bool,
    },
    /// As far as it was kept.
    Deleted(&'a Arc<K>),
    /// It was in a fresh list, whatever was known before; as far as it is kept.
    Listed(&'a Arc<K>),
}

impl<'a, K> Change<'a, K> {
    /// The object, in its last known state.
    pub(crate) fn object(&self) -> &'a Arc<K> {
        match self {
            Self::Applied { new: object, .. } | Self::Deleted(object) | Self::Listed(object) => {
                object
            }
        }
    }
}

impl<'a, K: Resource> Change<'a, K> {
    /// One state after another, both known whole.
    #[cfg(test)]
    pub(crate) fn between(old: Option<&'a Arc<K>>, new: &'a Arc<K>) -> Self {
        Self::Applied {
            old,
            new,
            is_written: is_written_since(old.map(|old| &**old), new),
        }
    }

    /// Whether anything but the status may have changed.
    pub(crate) fn is_written(&self) -> bool {
        !matches!(
            self,
            Change::Applied {
                is_written: false,
                ..
            }
        )
    }
}

fn is_written_since<K: Resource>(old: Option<&K>, new: &K) -> bool {
    old.is_none_or(|old| written(old) != written(new))
}

/// Everything in an object but its status, as one number: the spec by its generation, and what metadata people write.
fn written<K: Resource>(object: &K) -> u64 {
    let meta = object.meta();
    let mut hasher = DefaultHasher::new();
    (&meta.uid, meta.generation, &meta.labels, &meta.annotations).hash(&mut hasher);
    meta.finalizers.hash(&mut hasher);
    meta.deletion_timestamp.is_some().hash(&mut hasher);
    for owner in meta.owner_references.iter().flatten() {
        (&owner.uid, &owner.name, &owner.kind, &owner.api_version).hash(&mut hasher);
        (owner.controller, owner.block_owner_deletion).hash(&mut hasher);
    }
    hasher.finish()
}

type WatchListener<K> = Box<dyn Fn(&Change<'_, K>) + Send>;
/// Sees whole states.
type StateListener<K> = Box<dyn Fn(&K) + Send>;

pub(crate) struct SharedWatch<K: Watched> {
    api: Api<K>,
    /// What is watched of the kind; everything without.
    fields: Option<String>,
    store: Store<K>,
    writer: Writer<K>,
    /// The store has such a signal too, but wakes only the last who asked.
    is_complete: watch::Sender<bool>,
    listeners: Vec<WatchListener<K>>,
    state_listeners: Vec<StateListener<K>>,
    /// `None` when objects are kept whole.
    keeping: Option<Trimmed<K>>,
}

/// How objects are kept that are not kept whole.
struct Trimmed<K> {
    trim: fn(&K) -> K,
    /// What was written into each, as a number (see [`written`]), by a hash of its name. Two that share a hash are taken to
    /// be written more often than they are.
    writings: HashMap<u64, u64>,
}

impl<K: Watched> Trimmed<K> {
    /// Takes note of a state. Answers whether something was written since the last one.
    fn note(&mut self, key: &ObjectRef<K>, object: &K) -> bool {
        let now = written(object);
        self.writings.insert(hash(key), now) != Some(now)
    }

    fn forget(&mut self, key: &ObjectRef<K>) {
        self.writings.remove(&hash(key));
    }
}

/// The same in every process of this version.
pub(crate) fn hash<T: Hash>(value: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

impl<K: Watched> SharedWatch<K> {
    pub(crate) fn new(client: &Client) -> Self {
        Self::over(Api::all(client.clone()))
    }

    fn over(api: Api<K>) -> Self {
        let (store, writer) = reflector::store();
        Self {
            api,
            fields: None,
            store,
            writer,
            is_complete: watch::Sender::new(false),
            listeners: Vec::new(),
            state_listeners: Vec::new(),
            keeping: None,
        }
    }

    /// Keeps only the gist of each object: its name, and what listeners look at in a state that was listed, that is gone
    /// or that is no longer the newest. What has just changed they see whole.
    pub(crate) fn trimmed(mut self, gist: fn(&K) -> K) -> Self {
        self.keeping = Some(Trimmed {
            trim: gist,
            writings: HashMap::new(),
        });
        self
    }

    pub(crate) fn is_untrimmed(&self) -> bool {
        self.keeping.is_none()
    }

    /// Of one namespace only.
    pub(crate) fn within(client: &Client, namespace: &str) -> Self
    where
        K: Resource<Scope = NamespaceResourceScope>,
    {
        Self::over(Api::namespaced(client.clone(), namespace))
    }

    /// Of those only for which a field selector holds.
    pub(crate) fn of(mut self, fields: &str) -> Self {
        self.fields = Some(fields.to_owned());
        self
    }

    /// Everything known. Empty before the first list is in.
    pub(crate) fn store(&self) -> Store<K> {
        self.store.clone()
    }

    /// Turns true when the first list is in, and stays so.
    pub(crate) fn is_complete(&self) -> watch::Receiver<bool> {
        self.is_complete.subscribe()
    }

    pub(crate) fn on_change(&mut self, listener: impl Fn(&Change<'_, K>) + Send + 'static) {
        self.listeners.push(Box::new(listener));
    }

    /// Shows every state of every object, whole and before it is kept, be it new, changed or listed again. That an object
    /// is gone is only told to those who listen for changes.
    pub(crate) fn on_seen(&mut self, listener: impl Fn(&K) + Send + 'static) {
        self.state_listeners.push(Box::new(listener));
    }

    /// Watches until the future is dropped.
    pub(crate) async fn run(mut self, options: Options) {
        let mut pauses = pauses(options.chance.clone());
        loop {
            let period = options.resync + options.chance.jitter(options.resync / 10);
            let mut config = config();
            config.field_selector.clone_from(&self.fields);
            let watch = watcher::watcher(self.api.clone(), config);
            let mut events = pin!(watch.take_until(options.clock.sleep(period)));
            while let Some(event) = events.next().await {
                match event {
                    Ok(event) => {
                        pauses.reset();
                        self.take_in(event);
                    }
                    Err(error) => {
                        tracing::debug!(kind = %K::kind(&()), %error, "a watch broke off");
                        options.clock.sleep(pauses.failed()).await;
                    }
                }
            }
        }
    }

    fn take_in(&mut self, event: Event<K>) {
        if let Event::Apply(object) | Event::InitApply(object) = &event {
            for listener in &self.state_listeners {
                listener(object);
            }
        }
        match event {
            Event::Apply(object) => self.apply(object),
            Event::Delete(object) => {
                let key = ObjectRef::from_obj(&object);
                let last = self.store.get(&key);
                let last = last.unwrap_or_else(|| Arc::new(object.clone()));
                self.writer.apply_watcher_event(&Event::Delete(object));
                if let Some(keeping) = &mut self.keeping {
                    keeping.forget(&key);
                }
                self.tell(&Change::Deleted(&last));
            }
            Event::Init => self.writer.apply_watcher_event(&event),
            Event::InitApply(object) => {
                let kept = match &mut self.keeping {
                    None => object,
                    Some(keeping) => {
                        keeping.note(&ObjectRef::from_obj(&object), &object);
                        (keeping.trim)(&object)
                    }
                };
                self.writer.apply_watcher_event(&Event::InitApply(kept));
            }
            Event::InitDone => {
                let before = self.store.state();
                self.writer.apply_watcher_event(&event);
                for gone in &before {
                    let key = ObjectRef::from_obj(&**gone);
                    if self.store.get(&key).is_none() {
                        if let Some(keeping) = &mut self.keeping {
                            keeping.forget(&key);
                        }
                        self.tell(&Change::Deleted(gone));
                    }
                }
                for object in sorted(self.store.state()) {
                    self.tell(&Change::Listed(&object));
                }
                // Only now do those know of all of them who keep an index of their own.
                self.is_complete.send_replace(true);
            }
        }
    }

    fn apply(&mut self, object: K) {
        let key = ObjectRef::from_obj(&object);
        let old = self.store.get(&key);
        let (new, is_written) = match &mut self.keeping {
            None => {
                self.writer.apply_watcher_event(&Event::Apply(object));
                let Some(new) = self.store.get(&key) else {
                    return;
                };
                let is_written = is_written_since(old.as_deref(), &new);
                (new, is_written)
            }
            Some(keeping) => {
                let is_written = keeping.note(&key, &object);
                let kept = Event::Apply((keeping.trim)(&object));
                self.writer.apply_watcher_event(&kept);
                (Arc::new(object), is_written)
            }
        };
        self.tell(&Change::Applied {
            old: old.as_ref(),
            new: &new,
            is_written,
        });
    }

    fn tell(&self, change: &Change<'_, K>) {
        for listener in &self.listeners {
            listener(change);
        }
    }
}

/// By namespace and name: stores have no order of their own, and equal histories must give equal runs.
pub(crate) fn sorted<K: Resource>(mut objects: Vec<Arc<K>>) -> Vec<Arc<K>> {
    objects.sort_by(|a, b| {
        let (a, b) = (a.meta(), b.meta());
        (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name))
    });
    objects
}

/// What every gist has: which object it is of, and whether that is to go.
pub(crate) fn name_of<K: Resource>(object: &K) -> ObjectMeta {
    let meta = object.meta();
    ObjectMeta {
        name: meta.name.clone(),
        namespace: meta.namespace.clone(),
        deletion_timestamp: meta.deletion_timestamp.clone(),
        ..ObjectMeta::default()
    }
}

/// The key of an object, without what differs between its states.
pub(crate) fn key_of<K: Resource<DynamicType = ()>>(object: &K) -> ObjectRef<K> {
    let key = ObjectRef::new(&object.name_any());
    match &object.meta().namespace {
        Some(namespace) => key.within(namespace),
        None => key,
    }
}

fn config() -> watcher::Config {
    // Pages keep the first list of a large kind from being one large body.
    watcher::Config::default().page_size(500)
}

/// Pauses after a broken watch. kube's default grows to half a minute; a server that is back is back within a second.
fn pauses(chance: Chance) -> Backoff {
    let limits = Limits {
        min: Duration::from_millis(50),
        max: Duration::from_secs(2),
    };
    Backoff::new(limits, chance)
}

#[cfg(test)]
mod tests;
