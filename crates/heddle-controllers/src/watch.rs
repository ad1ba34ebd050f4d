//! One watch per kind, shared by every controller and by the routes.
//!
//! A [`Hub`] keeps the newest known state of a kind and tells its listeners about each change, in order. Every resync
//! period it starts anew from a fresh list, so that not even a change that a watch failed to deliver is missed for longer
//! than that. Listeners run inside the watch and therefore only take notes.

use std::fmt::Debug;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use heddle_rt::Chance;
use heddle_rt::backoff::{Backoff, Limits};
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
        old: Option<&'a Arc<K>>,
        new: &'a Arc<K>,
    },
    Deleted(&'a Arc<K>),
    /// It was in a fresh list, whatever was known before.
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

impl<K: Resource> Change<'_, K> {
    /// Whether anything but the status may have changed.
    pub(crate) fn is_written(&self) -> bool {
        let Change::Applied {
            old: Some(old),
            new,
        } = self
        else {
            return true;
        };
        let (a, b) = (old.meta(), new.meta());
        (&a.uid, a.generation, &a.labels, &a.annotations)
            != (&b.uid, b.generation, &b.labels, &b.annotations)
            || (&a.finalizers, &a.owner_references) != (&b.finalizers, &b.owner_references)
            || a.deletion_timestamp != b.deletion_timestamp
    }
}

type Listener<K> = Box<dyn Fn(&Change<'_, K>) + Send>;

pub(crate) struct Hub<K: Watched> {
    api: Api<K>,
    store: Store<K>,
    writer: Writer<K>,
    /// The store has such a signal too, but wakes only the last who asked.
    is_complete: watch::Sender<bool>,
    listeners: Vec<Listener<K>>,
}

impl<K: Watched> Hub<K> {
    pub(crate) fn new(client: &Client) -> Self {
        Self::over(Api::all(client.clone()))
    }

    fn over(api: Api<K>) -> Self {
        let (store, writer) = reflector::store();
        Self {
            api,
            store,
            writer,
            is_complete: watch::Sender::new(false),
            listeners: Vec::new(),
        }
    }

    /// Of one namespace only.
    pub(crate) fn within(client: &Client, namespace: &str) -> Self
    where
        K: Resource<Scope = NamespaceResourceScope>,
    {
        Self::over(Api::namespaced(client.clone(), namespace))
    }

    /// Everything known. Empty before the first list is in.
    pub(crate) fn store(&self) -> Store<K> {
        self.store.clone()
    }

    /// Turns true when the first list is in, and stays so.
    pub(crate) fn is_complete(&self) -> watch::Receiver<bool> {
        self.is_complete.subscribe()
    }

    pub(crate) fn listen(&mut self, listener: impl Fn(&Change<'_, K>) + Send + 'static) {
        self.listeners.push(Box::new(listener));
    }

    /// Watches until the future is dropped.
    pub(crate) async fn run(mut self, options: Options) {
        let mut pauses = pauses(options.chance.clone());
        loop {
            let period = options.resync + options.chance.jitter(options.resync / 10);
            let watch = watcher::watcher(self.api.clone(), config());
            let mut events = pin!(watch.take_until(options.clock.sleep(period)));
            while let Some(event) = events.next().await {
                match event {
                    Ok(event) => {
                        pauses.reset();
                        self.take_in(&event);
                    }
                    Err(error) => {
                        tracing::debug!(kind = %K::kind(&()), %error, "a watch broke off");
                        options.clock.sleep(pauses.failed()).await;
                    }
                }
            }
        }
    }

    fn take_in(&mut self, event: &Event<K>) {
        match event {
            Event::Apply(object) => {
                let key = ObjectRef::from_obj(object);
                let old = self.store.get(&key);
                self.writer.apply_watcher_event(event);
                if let Some(new) = self.store.get(&key) {
                    self.tell(&Change::Applied {
                        old: old.as_ref(),
                        new: &new,
                    });
                }
            }
            Event::Delete(object) => {
                let last = self.store.get(&ObjectRef::from_obj(object));
                self.writer.apply_watcher_event(event);
                self.tell(&Change::Deleted(
                    &last.unwrap_or_else(|| Arc::new(object.clone())),
                ));
            }
            Event::Init | Event::InitApply(_) => self.writer.apply_watcher_event(event),
            Event::InitDone => {
                let before = self.store.state();
                self.writer.apply_watcher_event(event);
                for gone in &before {
                    if self.store.get(&ObjectRef::from_obj(&**gone)).is_none() {
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
