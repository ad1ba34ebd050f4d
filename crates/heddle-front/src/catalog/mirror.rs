//! A copy of one kind, kept by a watch.
//!
//! The copy is what was last known, whatever becomes of the watch: a broken one leaves it as it is, and a fresh list takes its
//! place only when it is whole. So an API server that is away for a while takes nothing out of the catalog.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use heddle_api::{Application, ApplicationMapping, Bundle, BundleRevision, Registry};
use heddle_rt::backoff::{Backoff, Limits};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;

use super::Options;

/// Changes taken in at once, so that a burst of them is one new catalog.
const BATCH: usize = 1_000;

/// After changes were taken in, those that follow are left to gather for so many times as long, and no longer than that. What
/// a change costs grows with the catalog; so do the batches then, and many changes are not the square of their work.
const REST_SHARE: u32 = 4;
const REST_MAX: Duration = Duration::from_millis(250);

/// Namespace, empty for kinds that have none, and name.
pub(super) type Key = (String, String);

#[derive(Debug)]
pub(super) struct Mirror<K> {
    objects: BTreeMap<Key, Arc<K>>,
    /// A list on its way in.
    coming: BTreeMap<Key, Arc<K>>,
    listed: bool,
}

impl<K> Default for Mirror<K> {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            coming: BTreeMap::new(),
            listed: false,
        }
    }
}

/// A kind, and which writes of it matter to the catalog.
pub(super) trait Watched: Resource<DynamicType = ()> {
    /// Whether a write left everything as it was that the catalog is made from. Without anything else said, a status is not.
    fn is_same(&self, other: &Self) -> bool {
        is_same(self.meta(), other.meta())
    }
}

impl Watched for Application {}
impl Watched for ApplicationMapping {}
impl Watched for BundleRevision {}

impl Watched for Bundle {
    fn is_same(&self, other: &Self) -> bool {
        let told = |bundle: &Self| {
            let status = bundle.status.as_ref()?;
            Some((
                status.phase,
                status.mark.clone(),
                status.current_revision.clone(),
            ))
        };
        is_same(&self.metadata, &other.metadata) && told(self) == told(other)
    }
}

impl Watched for Registry {
    fn is_same(&self, other: &Self) -> bool {
        let converged = |registry: &Self| registry.status.as_ref()?.converged_generation;
        is_same(&self.metadata, &other.metadata) && converged(self) == converged(other)
    }
}

/// Tombstones.
impl Watched for ConfigMap {
    fn is_same(&self, other: &Self) -> bool {
        self.metadata.uid == other.metadata.uid && self.data == other.data
    }
}

impl<K: Watched> Mirror<K> {
    /// Whether a whole list was taken in at some time.
    pub(super) fn is_listed(&self) -> bool {
        self.listed
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &K> {
        self.objects.values().map(|object| &**object)
    }

    /// An object of a kind that has no namespaces.
    pub(super) fn get(&self, name: &str) -> Option<&K> {
        let key = (String::new(), name.to_owned());
        self.objects.get(&key).map(|object| &**object)
    }

    pub(super) fn in_namespace<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a K> {
        let start = (namespace.to_owned(), String::new());
        let objects = self.objects.range(start..);
        let there = objects.take_while(move |((other, _), _)| other == namespace);
        there.map(|(_, object)| &**object)
    }

    pub(super) fn namespaces(&self) -> BTreeSet<String> {
        let keys = self.objects.keys();
        keys.map(|(namespace, _)| namespace.clone()).collect()
    }

    /// Takes in what a watch says, and returns what moved. Writes that leave what was asked for as it is, such as those of a
    /// status, move nothing.
    pub(super) fn take_in(&mut self, event: Event<K>) -> Moved {
        match event {
            Event::Init => self.coming.clear(),
            Event::InitApply(object) => {
                self.coming.insert(key(&object), Arc::new(lean(object)));
            }
            Event::InitDone => {
                self.objects = std::mem::take(&mut self.coming);
                self.listed = true;
                return Moved::All;
            }
            Event::Apply(object) => {
                let key = key(&object);
                let old = self.objects.insert(key.clone(), Arc::new(lean(object)));
                let new = &self.objects[&key];
                if !old.is_some_and(|old| old.is_same(new)) {
                    return Moved::Object(key);
                }
            }
            Event::Delete(object) => {
                let key = key(&object);
                if self.objects.remove(&key).is_some() {
                    return Moved::Object(key);
                }
            }
        }
        Moved::Nothing
    }
}

/// What a change is about.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Moved {
    Nothing,
    /// The object of that namespace and name.
    Object(Key),
    All,
}

fn key<K: Resource<DynamicType = ()>>(object: &K) -> Key {
    (object.namespace().unwrap_or_default(), object.name_any())
}

/// Without the part that only servers need, which is often the larger.
fn lean<K: Resource>(mut object: K) -> K {
    object.meta_mut().managed_fields = None;
    object
}

fn is_same(old: &ObjectMeta, new: &ObjectMeta) -> bool {
    old.generation.is_some()
        && old.generation == new.generation
        && old.uid == new.uid
        && old.creation_timestamp == new.creation_timestamp
        && old.deletion_timestamp == new.deletion_timestamp
}

/// Hands over what the API server says of a kind, in batches, until the future is dropped. Every now and then it lists
/// anew, so that nothing hangs on a watch being perfect.
pub(super) async fn follow<K>(
    api: Api<K>,
    labels: Option<&str>,
    options: Options,
    mut tell: impl FnMut(Vec<Event<K>>),
) where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    // As everywhere: a server that is back is back within a second.
    let limits = Limits {
        min: Duration::from_millis(50),
        max: Duration::from_secs(2),
    };
    let mut pauses = Backoff::new(limits, options.chance.clone());
    loop {
        let period = options.resync + options.chance.jitter(options.resync / 10);
        // Pages keep the first list of a large kind from being one large body.
        let mut config = watcher::Config::default().page_size(500);
        config.label_selector = labels.map(str::to_owned);
        let watch = watcher::watcher(api.clone(), config);
        let watch = watch.take_until(options.clock.sleep(period));
        let mut batches = pin!(batches(watch));
        while let Some((events, error)) = batches.next().await {
            if !events.is_empty() {
                pauses.reset();
                let began = options.clock.monotonic();
                tell(events);
                let took = options.clock.monotonic().saturating_sub(began);
                let rest = took.saturating_mul(REST_SHARE).min(REST_MAX);
                if !rest.is_zero() {
                    options.clock.sleep(rest).await;
                }
            }
            if let Some(error) = error {
                tracing::debug!(kind = %K::kind(&()), %error, "a watch broke off");
                options.clock.sleep(pauses.failed()).await;
            }
        }
    }
}

/// What is there already, at once; an error is the last of its batch that counts.
fn batches<K, E>(
    events: impl Stream<Item = Result<Event<K>, E>>,
) -> impl Stream<Item = (Vec<Event<K>>, Option<E>)> {
    events.ready_chunks(BATCH).map(|batch| {
        let (mut events, mut error) = (Vec::with_capacity(batch.len()), None);
        for event in batch {
            match event {
                Ok(event) => events.push(event),
                Err(broken) => error = Some(broken),
            }
        }
        (events, error)
    })
}
