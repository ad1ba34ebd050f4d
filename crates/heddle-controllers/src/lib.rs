//! The loops that make the world match what was asked.
//!
//! Every controller implements the same contract ([`Reconciler`]), and whoever has read one has read them all (what no API
//! server can do is asked for between steps and status):
//!
//! ```text
//!  wake (a change, a timer)  ->  observe   gather into one value: the object by a live read, what a status
//!                                          only has to follow from the watches (see `cache`)
//!                            ->  plan      pure: value in, steps out
//!                            ->  apply     one request per step, each idempotent
//!                            ->  status    pure: what was observed, as conditions
//! ```
//! A wake-up carries no data: the object is read again, so a stale cache can delay a controller but not mislead
//! it. Nothing is destroyed for what is only known from a cache, nor without the uid it had when it was looked at.
//!
//! Each kind is watched once; controllers and the routes of the mesh listen to the same watches. This crate knows a
//! `kube::Client`, the port to a mesh ([`DataPlane`]) and the one to registries and runners ([`Bundles`]); it cannot tell
//! heddle's own API server from a cluster's, nor one mesh from another.

mod actions;
mod application;
mod application_mapping;
mod broker;
mod bundle;
mod bundle_index;
mod bundle_revision;
mod bundles;
mod channel;
mod dataplane;
mod event_activation;
mod event_flow;
mod event_policy;
mod eventing;
#[cfg(test)]
mod flow_model;
mod health;
mod http_source;
mod leader;
mod metrics;
mod operation;
mod pulse;
mod reconcile;
mod records;
mod referenced;
mod references;
mod registry;
mod resolve;
mod routing;
mod service_binding;
mod service_instance;
mod subscription;
mod trigger;
mod usage;
mod watch;
mod watch_cache;
mod work_queue;

use std::hash::DefaultHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt as _, future};
use heddle_api::broker::Classes;
use heddle_api::offer::Mode;
use heddle_api::well_known::{INTEGRATION_NAMESPACE, SIGNING_SECRET_TYPE, SYSTEM_NAMESPACE};
use heddle_api::{
    Application, ApplicationMapping, Broker, Bundle, BundleRevision, Channel, EventActivation,
    EventFlow, EventPolicy, HTTPSource, Registry, ServiceBinding, ServiceInstance, Subscription,
    Trigger,
};
use heddle_rt::{Chance, Clock};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::Client;
use tokio::sync::watch::Receiver;

pub use bundles::Bundles;
pub use dataplane::{DataPlane, GivingUp};
pub use health::{
    HealthBoard, Report, TopologyQuestion, draw_topology, draw_way, metrics_text as health_metrics,
};
pub use leader::{Leadership, lead};
pub use metrics::Metrics;
pub use pulse::{FailingObject, PulseReading, Pulses};
pub use reconcile::{Ctx, Error, Notices, Reconciler, Step, StepName};

use reconcile::Controller;
use routing::{RouteFeed, RouteGate};
use watch::{SharedWatch, Watched};
use watch_cache::WatchCache;

/// What all controllers share.
#[derive(Debug, Clone)]
pub struct Options {
    pub clock: Clock,
    pub chance: Chance,
    /// Objects of one kind reconciled at once. More hides the latency of the API server; the store batches them.
    pub concurrency: u16,
    /// Everything is looked at again this often, however quiet the watches are.
    pub resync: Duration,
    /// How long a Broker that heddle made stays after its last claim went.
    pub broker_linger: Duration,
    /// Which Brokers are served here. All others are told that they are not.
    pub broker_classes: Classes,
    /// The mesh that is fed with routes and asked about them. Without one, whatever only a mesh could promise is
    /// `Unknown`, and an Application is ready when its children exist as asked.
    pub data_plane: Option<Arc<dyn DataPlane>>,
    /// Where bundles come from and run. Without it no registry is read and no action is run, and objects say so.
    pub bundles: Option<Arc<dyn Bundles>>,
    /// Numbers about registries, bundles, flows and operations, for whoever serves metrics.
    pub numbers: Metrics,
    /// That each controller is at work.
    pub pulses: Pulses,
    /// Where verdicts on the health of the mesh are published.
    pub health: HealthBoard,
    /// Set once the controllers know everything that there is, and work.
    pub started: Arc<AtomicBool>,
    /// How Applications become offerings, which decides what clashes. The front must be told the same.
    pub offers: Mode,
}

impl Options {
    pub fn new(clock: Clock, chance: Chance) -> Self {
        Self {
            clock,
            chance,
            concurrency: 32,
            resync: Duration::from_secs(600),
            broker_linger: Duration::from_secs(600),
            broker_classes: Classes::default(),
            data_plane: None,
            bundles: None,
            numbers: Metrics::default(),
            pulses: Pulses::default(),
            health: HealthBoard::default(),
            started: Arc::default(),
            offers: Mode::default(),
        }
    }
}

/// One watch per kind.
pub(crate) struct Watches {
    applications: SharedWatch<Application>,
    mappings: SharedWatch<ApplicationMapping>,
    http_sources: SharedWatch<HTTPSource>,
    channels: SharedWatch<Channel>,
    subscriptions: SharedWatch<Subscription>,
    brokers: SharedWatch<Broker>,
    triggers: SharedWatch<Trigger>,
    namespaces: SharedWatch<Namespace>,
    policies: SharedWatch<EventPolicy>,
    activations: SharedWatch<EventActivation>,
    flows: SharedWatch<EventFlow>,
    instances: SharedWatch<ServiceInstance>,
    bindings: SharedWatch<ServiceBinding>,
    registries: SharedWatch<Registry>,
    bundles: SharedWatch<Bundle>,
    revisions: SharedWatch<BundleRevision>,
    /// Of the integration namespace.
    secrets: SharedWatch<Secret>,
    /// Of heddle's own namespace.
    system_secrets: SharedWatch<Secret>,
    /// Of all namespaces, those with keys that sign events. The mesh has them at hand while an event waits.
    signing_secrets: SharedWatch<Secret>,
    /// Of all namespaces, by name only: what a Secret holds is read where it is needed and kept nowhere.
    all_secrets: SharedWatch<Secret>,
}

impl Watches {
    /// Of every kind, whether its first list is in.
    fn complete(&self) -> Vec<Receiver<bool>> {
        vec![
            self.applications.is_complete(),
            self.mappings.is_complete(),
            self.http_sources.is_complete(),
            self.channels.is_complete(),
            self.subscriptions.is_complete(),
            self.brokers.is_complete(),
            self.triggers.is_complete(),
            self.namespaces.is_complete(),
            self.policies.is_complete(),
            self.activations.is_complete(),
            self.flows.is_complete(),
            self.instances.is_complete(),
            self.bindings.is_complete(),
            self.registries.is_complete(),
            self.bundles.is_complete(),
            self.revisions.is_complete(),
            self.secrets.is_complete(),
            self.system_secrets.is_complete(),
            self.signing_secrets.is_complete(),
        ]
    }

    /// The kinds of which a reconcile may take what the watches know.
    fn cache(&self) -> WatchCache {
        WatchCache::default()
            .with(&self.applications)
            .with(&self.mappings)
            .with(&self.http_sources)
            .with(&self.channels)
            .with(&self.subscriptions)
            .with(&self.brokers)
            .with(&self.triggers)
            .with(&self.namespaces)
            .with(&self.policies)
            .with(&self.activations)
            .with(&self.registries)
            .with(&self.bundles)
            .with(&self.revisions)
    }
}

/// The futures that make up a run.
type Parts = Vec<BoxFuture<'static, ()>>;

/// Runs every controller until the future is dropped.
pub async fn run(client: Client, options: Options) {
    let mut watches = Watches {
        applications: SharedWatch::new(&client),
        mappings: SharedWatch::new(&client),
        http_sources: SharedWatch::new(&client),
        channels: SharedWatch::new(&client),
        subscriptions: SharedWatch::new(&client),
        brokers: SharedWatch::new(&client),
        triggers: SharedWatch::new(&client),
        namespaces: SharedWatch::new(&client),
        policies: SharedWatch::new(&client),
        activations: SharedWatch::new(&client),
        flows: SharedWatch::new(&client).trimmed(event_flow::trim),
        instances: SharedWatch::new(&client).trimmed(service_instance::trim),
        bindings: SharedWatch::new(&client),
        registries: SharedWatch::new(&client),
        bundles: SharedWatch::new(&client),
        revisions: SharedWatch::new(&client),
        secrets: SharedWatch::within(&client, INTEGRATION_NAMESPACE),
        system_secrets: SharedWatch::within(&client, SYSTEM_NAMESPACE),
        signing_secrets: SharedWatch::new(&client).of(&format!("type={SIGNING_SECRET_TYPE}")),
        all_secrets: SharedWatch::new(&client).trimmed(service_binding::trim),
    };
    options.numbers.follow(&mut watches);
    let feed = options.data_plane.as_ref().map(|plane| {
        let (plane, clock) = (Arc::clone(plane), options.clock.clone());
        RouteFeed::new(plane, clock, options.broker_classes.clone(), &mut watches)
    });
    let start = ControllerStart {
        gate: feed.as_ref().map_or_else(RouteGate::open, RouteFeed::gate),
        cache: watches.cache(),
        client,
        options: options.clone(),
    };
    // Later listeners hear of a change later: what feeds the mesh comes first.
    let mut parts: Parts = Vec::new();
    application::start(&start, &mut watches, &mut parts);
    application_mapping::start(&start, &mut watches, &mut parts);
    http_source::start(&start, &mut watches, &mut parts);
    channel::start(&start, &mut watches, &mut parts);
    subscription::start(&start, &mut watches, &mut parts);
    broker::start(&start, &mut watches, &mut parts);
    trigger::start(&start, &mut watches, &mut parts);
    eventing::start(&start, &mut watches, &mut parts);
    event_flow::start(&start, &mut watches, &mut parts);
    event_activation::start(&start, &mut watches, &mut parts);
    service_instance::start(&start, &mut watches, &mut parts);
    service_binding::start(&start, &mut watches, &mut parts);
    registry::start(&start, &mut watches, &mut parts);
    bundle::start(&start, &mut watches, &mut parts);
    bundle_revision::start(&start, &mut watches, &mut parts);
    parts.push(records::expire(start.client.clone(), options.clone()).boxed());
    let judged = health::PathStores::of(&watches);
    options
        .health
        .count_by(health::KindTallies::of(&watches, start.client.clone()));
    let gate = start.gate.clone();
    let judging = health::run(start.client.clone(), options.clone(), judged).boxed();
    parts.push(gate.pass().then(|()| judging).boxed());
    event_policy::start(&start, &mut watches, &mut parts);
    parts.extend(feed.map(|feed| feed.run().boxed()));
    parts.push(tell_started(watches.complete(), Arc::clone(&options.started)).boxed());
    parts.extend([
        watches.applications.run(options.clone()).boxed(),
        watches.mappings.run(options.clone()).boxed(),
        watches.http_sources.run(options.clone()).boxed(),
        watches.channels.run(options.clone()).boxed(),
        watches.subscriptions.run(options.clone()).boxed(),
        watches.brokers.run(options.clone()).boxed(),
        watches.triggers.run(options.clone()).boxed(),
        watches.namespaces.run(options.clone()).boxed(),
        watches.policies.run(options.clone()).boxed(),
        watches.activations.run(options.clone()).boxed(),
        watches.flows.run(options.clone()).boxed(),
        watches.instances.run(options.clone()).boxed(),
        watches.bindings.run(options.clone()).boxed(),
        watches.registries.run(options.clone()).boxed(),
        watches.bundles.run(options.clone()).boxed(),
        watches.revisions.run(options.clone()).boxed(),
        watches.secrets.run(options.clone()).boxed(),
        watches.system_secrets.run(options.clone()).boxed(),
        watches.signing_secrets.run(options.clone()).boxed(),
        watches.all_secrets.run(options).boxed(),
    ]);
    future::join_all(parts).await;
}

/// Waits for the first lists of all kinds, and tells that they are in.
async fn tell_started(complete: Vec<Receiver<bool>>, started: Arc<AtomicBool>) {
    for mut kind in complete {
        if kind.wait_for(|complete| *complete).await.is_err() {
            // The watches are gone, and everything goes down with them.
            return;
        }
    }
    started.store(true, Ordering::Release);
}

/// What a controller is started with.
pub(crate) struct ControllerStart {
    client: Client,
    options: Options,
    gate: RouteGate,
    cache: WatchCache,
}

impl ControllerStart {
    /// Adds a controller that never asks the mesh.
    fn add<B: Reconciler<Kind: Watched>>(&self, controller: Controller<B>, parts: &mut Parts) {
        parts.push(controller.run(self.ctx::<B>()).boxed());
    }

    fn ctx<B: Reconciler>(&self) -> Ctx {
        let (client, options) = (self.client.clone(), self.options.clone());
        Ctx::new(client, options, self.cache.clone(), B::NAME)
    }

    /// Adds a controller of objects that have runs; `is_under_way` says which of them have one now.
    fn add_with_runs<B: Reconciler<Kind: Watched>>(
        &self,
        controller: Controller<B>,
        is_under_way: fn(&B::Kind) -> bool,
        parts: &mut Parts,
    ) {
        if let Some(bundles) = &self.options.bundles {
            parts.push(controller.requeue_on_run_change(Arc::clone(bundles), is_under_way));
        }
        self.add(controller, parts);
    }

    /// Adds a controller whose statuses depend on the mesh: it begins when the mesh serves, and is woken
    /// for every object for which `view` changes.
    fn add_with_mesh<B: Reconciler<Kind: Watched>>(
        &self,
        controller: Controller<B>,
        view: fn(&dyn DataPlane, &B::Kind, &mut DefaultHasher),
        parts: &mut Parts,
    ) {
        if let Some(plane) = &self.options.data_plane {
            parts.push(controller.requeue_on_mesh_change(Arc::clone(plane), view));
        }
        let gate = self.gate.clone();
        let run = controller.run(self.ctx::<B>());
        parts.push(gate.pass().then(|()| run).boxed());
    }
}
