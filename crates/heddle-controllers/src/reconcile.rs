//! The reconcile loop, written once for every kind.
//!
//! ```text
//!   wake -> live read -> observe -> plan -> [step]* -> reach out -> conclude -> [step]* -> status
//!                |                            |            |                      |
//!            gone: forget                     |    what no API server can do      |
//!                                      answers are folded into the world, so that the status speaks of what
//!                                      the server has, not of what we sent
//! ```
//! Promises: at the fixpoint a reconcile writes nothing; a failed round is tried again with a growing, jittered
//! pause of its own, and harms no other key; a panic in one reconcile is an error of that key; a status never claims
//! a generation that was not read.

use std::fmt::Debug;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use heddle_rt::backoff::KeyedBackoff;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{ListParams, Patch, PatchParams};
use kube::core::{ClusterResourceScope, NamespaceResourceScope, Request};
use kube::runtime::controller::Action;
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Client, Resource, ResourceExt as _};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::pulse::{Pulse, ReconcileUnderWay};
use crate::references::{Index, Target};
use crate::routing::entry_of;
use crate::watch::{Watched, sorted};
use crate::watch_cache::WatchCache;
use crate::{Bundles, DataPlane, Options};

mod controller;
mod notices;
mod own_status_writes;
mod reconciler;
mod recorder;
mod step;

pub(crate) use controller::{Controller, referenced_state_changed};
pub use notices::Notices;
use own_status_writes::OwnStatusWrites;
pub use reconciler::Reconciler;
use recorder::Recorder;
pub use step::{Step, StepName};

/// What a reconcile may use.
#[derive(Clone)]
pub struct Ctx {
    pub client: Client,
    pub options: Options,
    cache: WatchCache,
    recorder: Recorder,
}

impl Debug for Ctx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ctx")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Ctx {
    /// The mesh, where there is one.
    pub fn plane(&self) -> Option<&dyn DataPlane> {
        self.options.data_plane.as_deref()
    }

    pub(crate) fn new(client: Client, options: Options, cache: WatchCache, reporter: &str) -> Self {
        let (clock, chance) = (options.clock.clone(), options.chance.clone());
        let recorder = Recorder::new(client.clone(), clock, chance, reporter);
        Self {
            client,
            options,
            cache,
            recorder,
        }
    }

    /// What the watches know of one namespaced object, for a status that follows it; `None` when there is none. Who calls
    /// this for a kind is woken by that kind, and removes nothing because of the answer.
    pub(crate) async fn cached<K>(&self, namespace: &str, name: &str) -> Result<Option<K>, Error>
    where
        K: Watched + Resource<Scope = NamespaceResourceScope>,
    {
        match self.cache.find(Some(namespace), name) {
            Some(known) => Ok(known),
            // Rare, so it costs the others no room.
            None => Box::pin(self.find(namespace, name)).await,
        }
    }

    /// The same of an object that has no namespace.
    pub(crate) async fn cached_global<K>(&self, name: &str) -> Result<Option<K>, Error>
    where
        K: Watched + Resource<Scope = ClusterResourceScope>,
    {
        match self.cache.find(None, name) {
            Some(known) => Ok(known),
            None => Box::pin(self.find_global(name)).await,
        }
    }

    /// The same of all objects of a kind, in all namespaces.
    pub(crate) async fn cached_all<K: Watched>(&self) -> Result<Vec<Arc<K>>, Error> {
        match self.cache.all() {
            Some(known) => Ok(sorted(known)),
            None => {
                let live = Box::pin(self.list_all(&ListParams::default())).await?;
                Ok(live.into_iter().map(Arc::new).collect())
            }
        }
    }

    /// The same of those of a kind that refer to `target`, by an index of what `refers` says. A list by a field would look
    /// into all of them each time.
    pub(crate) async fn cached_by<K: Watched>(
        &self,
        index: &Index<K>,
        target: &Target,
        refers: fn(&K) -> Vec<Target>,
    ) -> Result<Vec<K>, Error> {
        match self.cache.some(&index.referring(target)) {
            Some(known) => Ok(known),
            None => {
                let mut live = Box::pin(self.list_all(&ListParams::default())).await?;
                live.retain(|object| refers(object).contains(target));
                Ok(live)
            }
        }
    }

    /// A live read of one namespaced object; `None` when there is none.
    pub async fn find<K>(&self, namespace: &str, name: &str) -> Result<Option<K>, Error>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Debug,
    {
        Ok(Api::<K>::namespaced(self.client.clone(), namespace)
            .get_opt(name)
            .await?)
    }

    /// The store of bundles, where there is one.
    pub fn bundles(&self) -> Option<&dyn Bundles> {
        self.options.bundles.as_deref()
    }

    /// A live read of one object that has no namespace; `None` when there is none.
    pub async fn find_global<K>(&self, name: &str) -> Result<Option<K>, Error>
    where
        K: Resource<DynamicType = (), Scope = ClusterResourceScope>
            + Clone
            + DeserializeOwned
            + Debug,
    {
        let api = Api::<K>::all(self.client.clone());
        Ok(api.get_opt(name).await?)
    }

    /// A live read of all objects of a kind that `params` choose, in all namespaces.
    pub async fn list_all<K>(&self, params: &ListParams) -> Result<Vec<K>, Error>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        let api = Api::<K>::all(self.client.clone());
        Ok(api.list(params).await?.items)
    }

    /// A live read of all objects of a kind in a namespace that have these labels (`a=b,c=d`, or empty for all).
    pub async fn list<K>(&self, namespace: &str, labels: &str) -> Result<Vec<K>, Error>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Debug,
    {
        let params = ListParams::default().labels(labels);
        let api = Api::<K>::namespaced(self.client.clone(), namespace);
        Ok(api.list(&params).await?.items)
    }

    /// A live read of all objects of a kind in a namespace, of which there may be many: of each only what `shorten` leaves is
    /// held, and the rest of one page at a time. All pages show one moment.
    pub(crate) async fn list_trimmed<K>(
        &self,
        namespace: &str,
        shorten: fn(&mut K),
    ) -> Result<Vec<K>, Error>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Debug,
    {
        let api = Api::<K>::namespaced(self.client.clone(), namespace);
        let mut params = ListParams::default().limit(PAGE);
        let mut objects = Vec::new();
        loop {
            let mut page = api.list(&params).await?;
            page.items.iter_mut().for_each(shorten);
            objects.append(&mut page.items);
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(objects),
            }
        }
    }
}

/// How many objects of a long list are read at once. Not what watches ask for: the simulation tells live reads by it.
const PAGE: u32 = 250;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused or could not be reached; trying again is always the remedy.
    #[error("{0}")]
    Api(#[from] kube::Error),
    /// The object that a step was to change is no longer what was looked at.
    #[error("{0} changed since it was looked at")]
    Moved(String),
    /// An object is not of the shape its kind promises.
    #[error("cannot read {what}: {source}")]
    Shape {
        what: String,
        source: serde_json::Error,
    },
    /// The mesh could not do what it was asked for; it is asked again.
    #[error("the mesh cannot do its part: {0}")]
    Mesh(String),
    /// Whoever keeps images and runs actions could not do what it was asked for; it is asked again.
    #[error("the keeper of bundles cannot do its part: {0}")]
    Bundles(String),
    /// A bug of ours, confined to one object.
    #[error("the reconciler of {0} panicked")]
    Panicked(String),
}

struct ReconcileLoop<B: Reconciler> {
    reconciler: B,
    ctx: Ctx,
    backoff: Mutex<KeyedBackoff<ObjectRef<B::Kind>>>,
    own_writes: OwnStatusWrites<B>,
    pulse: Arc<Pulse>,
}

fn on_error<B: Reconciler>(
    object: Arc<B::Kind>,
    error: &Error,
    reconcile_loop: Arc<ReconcileLoop<B>>,
) -> Action {
    let key = ObjectRef::from_obj(&*object);
    let pause = reconcile_loop.backoff.lock().failed(&key);
    if let Error::Moved(_) = error {
        // Somebody else wrote first, as happens; the next reconcile starts from what they wrote.
        tracing::debug!(controller = B::NAME, object = %key, %error, "will look again");
        return Action::requeue(pause);
    }
    tracing::warn!(controller = B::NAME, object = %key, %error, retry_ms = pause.as_millis(), "will try again");
    Action::requeue(pause)
}

async fn reconcile<B: Reconciler>(
    wake: Arc<B::Kind>,
    reconcile_loop: Arc<ReconcileLoop<B>>,
) -> Result<Action, Error> {
    let key = ObjectRef::from_obj(&*wake);
    let object = object_name(&key);
    let clock = &reconcile_loop.ctx.options.clock;
    let under_way = reconcile_loop.pulse.begin(clock.monotonic());
    let round = AssertUnwindSafe(reconcile_once(&reconcile_loop, &wake, &under_way))
        .catch_unwind()
        .await;
    let outcome = round.unwrap_or_else(|_| Err(Error::Panicked(key.to_string())));
    match &outcome {
        Ok(_) => {
            reconcile_loop.backoff.lock().reset(&key);
            reconcile_loop.pulse.succeeded(&object);
        }
        // Somebody else wrote first, which is no fault.
        Err(Error::Moved(_)) => reconcile_loop.pulse.succeeded(&object),
        Err(error) => {
            let before = reconcile_loop.backoff.lock().failures(&key);
            let in_a_row = before.saturating_add(1);
            let now = clock.monotonic();
            reconcile_loop.pulse.failed(now, &object, in_a_row, error);
        }
    }
    outcome.map(|again| again.map_or_else(Action::await_change, Action::requeue))
}

/// As verdicts name it, such as `broker/team-a/default`.
fn object_name<K: Resource<DynamicType = ()>>(key: &ObjectRef<K>) -> String {
    let kind = K::kind(&()).to_lowercase();
    match &key.namespace {
        Some(namespace) => entry_of(&kind, namespace, &key.name),
        None => format!("{kind}/{}", key.name),
    }
}

/// One reconcile of one object. The answer is when to look again, if time alone would change something.
async fn reconcile_once<B: Reconciler>(
    reconcile_loop: &ReconcileLoop<B>,
    wake: &B::Kind,
    under_way: &ReconcileUnderWay,
) -> Result<Option<Duration>, Error> {
    let (reconciler, ctx) = (&reconcile_loop.reconciler, &reconcile_loop.ctx);
    if let Some(rest) = reconciler.defer(ctx, wake) {
        return Ok(Some(rest));
    }
    let Some(object) = step::read::<B::Kind>(&ctx.client, wake).await? else {
        return Ok(None);
    };
    let before = own_status_writes::status_of::<B>(&object).map_err(|source| Error::Shape {
        what: wake.name_any(),
        source,
    })?;
    let reference = object.object_ref(&());
    let is_leaving = object.meta().deletion_timestamp.is_some();
    let mut world = reconciler.observe(ctx, object).await?;
    let planned = run_plan(reconcile_loop, wake, under_way, &mut world).await;
    let trouble = planned.err();
    if let Some(status) = reconciler.status(&world, ctx.options.clock.now())
        && status != before
    {
        let (key, now) = (ObjectRef::from_obj(wake), ctx.options.clock.monotonic());
        let pause = reconcile_loop
            .own_writes
            .throttle(&key, &before, &status, now);
        if let Some(pause) = pause.filter(|_| !is_leaving && trouble.is_none()) {
            return Ok(Some(pause));
        }
        reconcile_loop.own_writes.expect(key.clone(), &status);
        match write_status::<B>(ctx, &reference, &status).await? {
            StatusWrite::Yes => reconcile_loop.own_writes.written(&key, now),
            StatusWrite::Gone => reconcile_loop.own_writes.forget(&key),
        }
        record_notices::<B>(ctx, &reference, &before, &status).await;
    }
    match trouble {
        Some(error) => Err(error),
        None => Ok(reconciler.requeue_after(&world, ctx.options.clock.now())),
    }
}

/// Everything between looking and telling: the plan, what lies outside, and what follows from that.
async fn run_plan<B: Reconciler>(
    reconcile_loop: &ReconcileLoop<B>,
    wake: &B::Kind,
    under_way: &ReconcileUnderWay,
    world: &mut B::World,
) -> Result<(), Error> {
    let (reconciler, ctx) = (&reconcile_loop.reconciler, &reconcile_loop.ctx);
    execute(reconcile_loop, wake, world, reconciler.plan(world)).await?;
    under_way.pause();
    let called = reconciler.call_out(ctx, world).await;
    under_way.resume(ctx.options.clock.monotonic());
    called?;
    execute(
        reconcile_loop,
        wake,
        world,
        reconciler.plan_after_call(world),
    )
    .await
}

/// Takes steps in order; the first that cannot be done is the last that is tried.
async fn execute<B: Reconciler>(
    reconcile_loop: &ReconcileLoop<B>,
    wake: &B::Kind,
    world: &mut B::World,
    steps: Vec<Step>,
) -> Result<(), Error> {
    let (reconciler, ctx) = (&reconcile_loop.reconciler, &reconcile_loop.ctx);
    for step in steps {
        let step_name = step.step_name();
        match step.execute(&ctx.client, B::NAME).await {
            Ok(answer) => reconciler.on_applied(world, step_name, answer),
            Err(error) => {
                let failures = reconcile_loop
                    .backoff
                    .lock()
                    .failures(&ObjectRef::from_obj(wake));
                reconciler.on_step_error(world, step_name, &error, failures.saturating_add(1));
                return Err(error);
            }
        }
    }
    Ok(())
}

/// What became of a status.
enum StatusWrite {
    Yes,
    /// The object was deleted, or deleted and made again, since it was read: its own change wakes us.
    Gone,
}

/// One request: this controller's fields of the status, and only of the object that was read.
async fn write_status<B: Reconciler>(
    ctx: &Ctx,
    object: &ObjectReference,
    status: &Value,
) -> Result<StatusWrite, Error> {
    let name = object.name.as_deref().unwrap_or_default();
    let patch = json!({
        "apiVersion": B::Kind::api_version(&()), "kind": B::Kind::kind(&()),
        // The uid makes this a write to that object, not to a namesake made since.
        "metadata": {"name": name, "uid": object.uid}, "status": status,
    });
    let params = PatchParams::apply(B::NAME).force();
    let request = Request::new(B::Kind::url_path(&(), object.namespace.as_deref()))
        .patch_subresource("status", name, &params, &Patch::Apply(&patch))
        .map_err(kube::Error::BuildRequest)?;
    // Nobody looks at the answer, so nobody reads it.
    match ctx.client.request_text(request).await {
        Ok(_) => Ok(StatusWrite::Yes),
        Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => {
            Ok(StatusWrite::Gone)
        }
        Err(error) => Err(error.into()),
    }
}

/// Tells people what is news. Best effort: the status is the truth, an Event is news about it.
async fn record_notices<B: Reconciler>(
    ctx: &Ctx,
    object: &ObjectReference,
    before: &Value,
    after: &Value,
) {
    for event in notices::notices(&B::NOTICES, before, after) {
        if let Err(error) = ctx.recorder.publish(&event, object).await {
            tracing::debug!(controller = B::NAME, %error, "an event could not be recorded");
        }
    }
}
