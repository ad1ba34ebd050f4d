//! The feed of the mesh: everything routes are compiled from, handed over whenever it has changed.
//!
//! Promises: the first snapshot is complete; a burst of changes is handed over once; a status that says nothing about
//! routes is not handed over at all. Objects are shared with the watches, not copied.

use std::sync::Arc;
use std::time::Duration;

use heddle_api::broker::Classes;
use heddle_api::dataplane::Resources;
use heddle_api::signing::SigningSecret;
use heddle_api::{
    Application, Broker, Channel, EventFlow, EventPolicy, HTTPSource, Subscription, Trigger,
};
use heddle_rt::Clock;
use k8s_openapi::api::core::v1::Secret;
use kube::runtime::reflector::Store;
use kube::{Resource, ResourceExt as _};
use tokio::sync::{Notify, watch};

use crate::health;
use crate::watch::{Change, SharedWatch, Watched, sorted};
use crate::{DataPlane, Watches};

/// A burst is over when nothing has changed for this long.
const DEBOUNCE: Duration = Duration::from_millis(20);
/// However long the burst, routes wait no longer than this, or than so long for each object they are made from: a table
/// costs what there is in it, and others would have to wait for the time that it takes.
const DEBOUNCE_MAX: Duration = Duration::from_millis(200);
const DEBOUNCE_MAX_PER_OBJECT: Duration = Duration::from_micros(20);
/// How long the first table and the listener may take before controllers say that they are missing.
const FIRST_TABLE: Duration = Duration::from_secs(5);

pub(crate) struct RouteFeed {
    plane: Arc<dyn DataPlane>,
    clock: Clock,
    stores: Stores,
    changed: Arc<Notify>,
    begun: watch::Sender<bool>,
}

struct Stores {
    applications: Store<Application>,
    http_sources: Store<HTTPSource>,
    channels: Store<Channel>,
    subscriptions: Store<Subscription>,
    brokers: Store<Broker>,
    triggers: Store<Trigger>,
    policies: Store<EventPolicy>,
    signing_secrets: Store<Secret>,
    /// Only for where synthetic events are to arrive.
    flows: Store<EventFlow>,
    /// Which Brokers there are for the mesh.
    classes: Classes,
    /// Of each of them, whether its first list is in.
    complete: Vec<watch::Receiver<bool>>,
}

/// Opens when the first table is in force and the listener is open. Controllers wait for it, so that a restart does not
/// tell every object for a moment that it is neither routed nor reached.
#[derive(Clone)]
pub(crate) struct RouteGate(Option<watch::Receiver<bool>>);

impl RouteGate {
    /// A gate without a wall: there is no mesh to wait for.
    pub(crate) fn open() -> Self {
        Self(None)
    }

    pub(crate) async fn pass(self) {
        if let Some(mut begun) = self.0
            && begun.wait_for(|begun| *begun).await.is_err()
        {
            // A feed that is gone opens no gate; everything goes down together.
            std::future::pending().await
        }
    }
}

impl RouteFeed {
    pub(crate) fn new(
        plane: Arc<dyn DataPlane>,
        clock: Clock,
        classes: Classes,
        watches: &mut Watches,
    ) -> Self {
        let changed = Arc::new(Notify::new());
        Self {
            stores: Stores {
                applications: follow(&mut watches.applications, &changed),
                http_sources: follow(&mut watches.http_sources, &changed),
                channels: follow(&mut watches.channels, &changed),
                subscriptions: follow(&mut watches.subscriptions, &changed),
                brokers: follow(&mut watches.brokers, &changed),
                triggers: follow(&mut watches.triggers, &changed),
                policies: follow(&mut watches.policies, &changed),
                signing_secrets: follow_secrets(&mut watches.signing_secrets, &changed),
                flows: follow_targets(&mut watches.flows, &changed),
                classes,
                complete: vec![
                    watches.applications.is_complete(),
                    watches.http_sources.is_complete(),
                    watches.channels.is_complete(),
                    watches.subscriptions.is_complete(),
                    watches.brokers.is_complete(),
                    watches.triggers.is_complete(),
                    watches.policies.is_complete(),
                    watches.signing_secrets.is_complete(),
                    watches.flows.is_complete(),
                ],
            },
            plane,
            clock,
            changed,
            begun: watch::Sender::new(false),
        }
    }

    pub(crate) fn gate(&self) -> RouteGate {
        RouteGate(Some(self.begun.subscribe()))
    }

    /// Feeds the mesh until the future is dropped.
    pub(crate) async fn run(self) {
        if self.stores.complete().await.is_err() {
            // The watches are gone, and this future goes with them.
            return;
        }
        let first = self.stores.snapshot();
        let (wanted, mut size) = (entries(&first), first.count());
        self.plane.route(first);
        let serving = self.serving(&wanted);
        if self.clock.timeout(FIRST_TABLE, serving).await.is_err() {
            tracing::warn!(
                "the mesh has not brought its first routing table into force, or does not listen yet"
            );
        }
        self.begun.send_replace(true);
        loop {
            self.changed.notified().await;
            self.debounce(debounce_max(size)).await;
            let next = self.stores.snapshot();
            size = next.count();
            self.plane.route(next);
        }
    }

    /// Waits for the rest of a burst.
    async fn debounce(&self, patience: Duration) {
        let deadline = self.clock.monotonic() + patience;
        loop {
            let left = deadline.saturating_sub(self.clock.monotonic());
            let more = self.changed.notified();
            if left.is_zero() || self.clock.timeout(DEBOUNCE.min(left), more).await.is_err() {
                return;
            }
        }
    }

    async fn serving(&self, entries: &[String]) {
        let is_serving = || {
            self.plane.base_url().is_some() && entries.iter().all(|entry| self.plane.entry(entry))
        };
        let mut seen = 0;
        while !is_serving() {
            seen = self.plane.changed(seen).await;
        }
    }
}

fn debounce_max(objects: usize) -> Duration {
    let objects = u32::try_from(objects).unwrap_or(u32::MAX);
    DEBOUNCE_MAX.max(DEBOUNCE_MAX_PER_OBJECT * objects)
}

impl Stores {
    async fn complete(&self) -> Result<(), watch::error::RecvError> {
        for kind in &self.complete {
            kind.clone().wait_for(|complete| *complete).await?;
        }
        Ok(())
    }

    fn snapshot(&self) -> Resources {
        let subscriptions = sorted(self.subscriptions.state());
        let mut brokers = sorted(self.brokers.state());
        brokers.retain(|broker| self.classes.foreign(broker).is_none());
        Resources {
            applications: sorted(self.applications.state()),
            http_sources: sorted(self.http_sources.state()),
            channels: sorted(self.channels.state()),
            heartbeats: health::targets(&self.flows.state(), &subscriptions),
            subscriptions,
            brokers,
            triggers: sorted(self.triggers.state()),
            policies: sorted(self.policies.state()),
            signing_secrets: sorted(self.signing_secrets.state())
                .into_iter()
                .map(SigningSecret::from)
                .collect(),
        }
    }
}

/// What a first table must have: consumers come into force together with the entries they choose from.
fn entries(resources: &Resources) -> Vec<String> {
    let stays = |meta: &kube::api::ObjectMeta| meta.deletion_timestamp.is_none();
    let channels = resources.channels.iter().filter(|c| stays(c.meta()));
    let brokers = resources.brokers.iter().filter(|b| stays(b.meta()));
    channels
        .map(|channel| entry("channel", &**channel))
        .chain(brokers.map(|broker| entry("broker", &**broker)))
        .collect()
}

/// `channel/NAMESPACE/NAME`: how the mesh names a place or a consumer.
pub(crate) fn entry<K: Resource>(word: &str, object: &K) -> String {
    let namespace = object.namespace().unwrap_or_default();
    entry_of(word, &namespace, &object.name_any())
}

/// The same for something that may not exist.
pub(crate) fn entry_of(word: &str, namespace: &str, name: &str) -> String {
    format!("{word}/{namespace}/{name}")
}

fn follow<K: Watched + Routes>(
    shared_watch: &mut SharedWatch<K>,
    changed: &Arc<Notify>,
) -> Store<K> {
    let changed = Arc::clone(changed);
    shared_watch.on_change(move |change| {
        let same = matches!(change, Change::Applied { old: Some(old), new, .. } if same_routes(&***old, &***new));
        if !same {
            changed.notify_one();
        }
    });
    shared_watch.store()
}

/// Of a Secret, only what gives other signatures.
fn follow_secrets(shared_watch: &mut SharedWatch<Secret>, changed: &Arc<Notify>) -> Store<Secret> {
    let changed = Arc::clone(changed);
    shared_watch.on_change(move |change| {
        let known = |secret: &Arc<Secret>| SigningSecret::from(Arc::clone(secret));
        let same = matches!(change, Change::Applied { old: Some(old), new, .. } if known(old) == known(new));
        if !same {
            changed.notify_one();
        }
    });
    shared_watch.store()
}

/// Of a flow, only where synthetic events are to arrive has a say in routes.
fn follow_targets(
    shared_watch: &mut SharedWatch<EventFlow>,
    changed: &Arc<Notify>,
) -> Store<EventFlow> {
    let changed = Arc::clone(changed);
    shared_watch.on_change(move |change| {
        let (old, new) = match change {
            Change::Applied { old, new, .. } => {
                (old.and_then(|old| health::target(old)), health::target(new))
            }
            Change::Deleted(old) => (health::target(old), None),
            Change::Listed(new) => (None, health::target(new)),
        };
        if old != new {
            changed.notify_one();
        }
    });
    shared_watch.store()
}

/// Whether two states of an object give the same routes. Only what certainly has no say in them is left out of the
/// comparison: conditions, and who wrote what when.
fn same_routes<K: Routes>(old: &K, new: &K) -> bool {
    let (a, b) = (old.meta(), new.meta());
    (&a.uid, &a.labels, &a.annotations) == (&b.uid, &b.labels, &b.annotations)
        && a.deletion_timestamp == b.deletion_timestamp
        && old.same_spec(new)
        && old.same_addresses(new)
}

trait Routes: Resource<DynamicType = ()> {
    /// Whether two states of one object ask for the same.
    fn same_spec(&self, other: &Self) -> bool;
    /// Whether two states have the same status, conditions aside.
    fn same_addresses(&self, other: &Self) -> bool;
}

macro_rules! routes {
    ($($kind:ty: $same_spec:expr),*) => {$(
        impl Routes for $kind {
            fn same_spec(&self, other: &Self) -> bool {
                $same_spec(self, other)
            }

            fn same_addresses(&self, other: &Self) -> bool {
                let plain = |object: &Self| {
                    let mut status = object.status.clone().unwrap_or_default();
                    status.conditions = Default::default();
                    status.observed_generation = None;
                    status
                };
                plain(self) == plain(other)
            }
        }
    )*};
}

routes!(
    Application: same_generation,
    HTTPSource: same_generation,
    Channel: same_generation,
    Subscription: same_generation,
    // Claims have no say in routes, and come with every flow.
    Broker: |a: &Broker, b: &Broker| a.spec.settings() == b.spec.settings(),
    Trigger: same_generation,
    EventPolicy: same_generation
);

fn same_generation<K: Resource>(old: &K, new: &K) -> bool {
    old.meta().generation == new.meta().generation
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn broker(generation: i64, spec: &Value) -> Broker {
        let metadata =
            json!({"name": "default", "namespace": "team", "uid": "b", "generation": generation});
        let object = json!({
            "apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "metadata": metadata, "spec": spec,
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn a_claim_on_a_broker_gives_no_other_routes_and_its_settings_do() {
        let before = broker(1, &json!({}));
        let claimed = broker(2, &json!({"claims": [{"uid": "one"}]}));
        let changed = broker(2, &json!({"delivery": {"retry": 3}}));
        assert!(same_routes(&before, &claimed));
        assert!(!same_routes(&before, &changed));
    }

    #[test]
    fn a_burst_may_wait_longer_the_larger_the_table_is() {
        assert_eq!(debounce_max(0), DEBOUNCE_MAX);
        assert_eq!(debounce_max(10_000), DEBOUNCE_MAX);
        assert_eq!(debounce_max(100_000), Duration::from_secs(2));
    }
}
