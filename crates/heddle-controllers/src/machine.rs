//! The four beats, once, for every kind.
//!
//! ```text
//!   wake -> live read -> observe -> plan -> [step]* -> reach out -> conclude -> [step]* -> status
//!                |                            |            |                      |
//!            gone: forget                     |    what no API server can do      |
//!                                      answers are folded into the world, so that the status speaks of what
//!                                      the server has, not of what we sent
//! ```
//! Promises: at the fixpoint a round writes nothing; a failed round is tried again with a growing, jittered
//! pause of its own, and harms no other key; a panic in one round is an error of that key; a status never claims
//! a generation that was not read.

use std::fmt::Debug;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use heddle_rt::backoff::KeyedBackoff;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{ClusterResourceScope, NamespaceResourceScope, Request};
use kube::runtime::controller::Action;
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Client, Resource, ResourceExt as _};
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::references::{Index, Target};
use crate::sight::Sight;
use crate::watch::{Watched, sorted};
use crate::{Bundles, DataPlane, Options};

mod controller;
mod echo;
mod news;
mod recorder;
mod step;

pub(crate) use controller::{Controller, looks_different};
use echo::Echo;
pub use news::News;
use recorder::Recorder;
pub use step::{Step, Ticket};

/// One controller: what differs between kinds.
pub trait Beats: Send + Sync + Sized + 'static {
    type Kind: Resource<DynamicType = ()>
        + Clone
        + DeserializeOwned
        + Serialize
        + Debug
        + Send
        + Sync
        + 'static;
    /// Everything the plan and the status depend on, in one value.
    type World: Debug + Send;

    /// Field manager, event reporter and span of this controller.
    const NAME: &'static str;
    /// Fields of the status that another controller writes.
    const FOREIGN: &'static [&'static str] = &[];
    /// Whether the plan or the next look depends on what this controller itself has written into the status. Where it does
    /// not, its own writes do not wake it (see `echo`).
    const HEEDS_OWN_STATUS: bool = true;
    /// Whether people need not be told of every step on the way to being ready (see `echo`).
    const PROGRESS_WAITS: bool = !Self::HEEDS_OWN_STATUS;
    /// What of a change of status people are told.
    const NEWS: News = News::PLAIN;

    /// For how long the object must not be looked at yet; it is requeued until then. Rounds share their slots, so none of
    /// them sleeps: whoever would have to wait says so here.
    fn rest(&self, _: &Ctx, _: &Self::Kind) -> Option<Duration> {
        None
    }

    /// Gathers the world around an object that was just read.
    fn observe(
        &self,
        ctx: &Ctx,
        object: Self::Kind,
    ) -> impl Future<Output = Result<Self::World, Error>> + Send;

    /// What is to be done. Pure: the same world gives the same steps, and a world at rest gives none. Many controllers
    /// make nothing and only say how things are.
    fn plan(&self, _: &Self::World) -> Vec<Step> {
        Vec::new()
    }

    /// Takes in what the server answered to a step: the world has moved.
    fn absorb(&self, _: &mut Self::World, _: Ticket, _: Option<DynamicObject>) {}

    /// Asks others than the API server (the mesh, registries, runners) for what no request to it can do, after the
    /// steps. Safe to repeat, like a step, and bounded by whoever is asked: the round waits for it.
    fn reach_out(
        &self,
        _: &Ctx,
        _: &mut Self::World,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        std::future::ready(Ok(()))
    }

    /// What is to be done about what [`Beats::reach_out`] brought. Pure, like the plan.
    fn conclude(&self, _: &Self::World) -> Vec<Step> {
        Vec::new()
    }

    /// Takes in that a step could not be done, so that the status can say so.
    fn stumble(&self, _: &mut Self::World, _: Ticket, _: &Error) {}

    /// Takes in how many rounds in a row have failed, this one included.
    fn tried(&self, _: &mut Self::World, _: u32) {}

    /// The status of the object in this world, or `None` to leave it alone. Pure, given the time.
    fn status(&self, world: &Self::World, now: Timestamp) -> Option<Value>;

    /// When the object must be looked at again although nothing changes: a deadline, the end of a grace period. Pure,
    /// given the time.
    fn again(&self, _: &Self::World, _: Timestamp) -> Option<Duration> {
        None
    }
}

/// What a round may use.
#[derive(Clone)]
pub struct Ctx {
    pub client: Client,
    pub options: Options,
    sight: Sight,
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

    pub(crate) fn new(client: Client, options: Options, sight: Sight, reporter: &str) -> Self {
        let (clock, chance) = (options.clock.clone(), options.chance.clone());
        let recorder = Recorder::new(client.clone(), clock, chance, reporter);
        Self {
            client,
            options,
            sight,
            recorder,
        }
    }

    /// What the watches know of one namespaced object, for a status that follows it; `None` when there is none. Who calls
    /// this for a kind is woken by that kind, and removes nothing because of the answer.
    pub(crate) async fn known<K>(&self, namespace: &str, name: &str) -> Result<Option<K>, Error>
    where
        K: Watched + Resource<Scope = NamespaceResourceScope>,
    {
        match self.sight.find(Some(namespace), name) {
            Some(known) => Ok(known),
            // Rare, so it costs the others no room.
            None => Box::pin(self.find(namespace, name)).await,
        }
    }

    /// The same of an object that has no namespace.
    pub(crate) async fn known_global<K>(&self, name: &str) -> Result<Option<K>, Error>
    where
        K: Watched + Resource<Scope = ClusterResourceScope>,
    {
        match self.sight.find(None, name) {
            Some(known) => Ok(known),
            None => Box::pin(self.find_global(name)).await,
        }
    }

    /// The same of all objects of a kind, in all namespaces.
    pub(crate) async fn known_all<K: Watched>(&self) -> Result<Vec<Arc<K>>, Error> {
        match self.sight.all() {
            Some(known) => Ok(sorted(known)),
            None => {
                let live = Box::pin(self.list_all(&ListParams::default())).await?;
                Ok(live.into_iter().map(Arc::new).collect())
            }
        }
    }

    /// The same of those of a kind that refer to `target`, by an index of what `refers` says. A list by a field would look
    /// into all of them each time.
    pub(crate) async fn known_by<K: Watched>(
        &self,
        index: &Index<K>,
        target: &Target,
        refers: fn(&K) -> Vec<Target>,
    ) -> Result<Vec<K>, Error> {
        match self.sight.some(&index.referring(target)) {
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
    pub(crate) async fn list_in_short<K>(
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

struct Machine<B: Beats> {
    beats: B,
    ctx: Ctx,
    backoff: Mutex<KeyedBackoff<ObjectRef<B::Kind>>>,
    echo: Echo<B>,
}

fn on_error<B: Beats>(object: Arc<B::Kind>, error: &Error, machine: Arc<Machine<B>>) -> Action {
    let key = ObjectRef::from_obj(&*object);
    let pause = machine.backoff.lock().failed(&key);
    if let Error::Moved(_) = error {
        // Somebody else wrote first, as happens; the next round starts from what they wrote.
        tracing::debug!(controller = B::NAME, object = %key, %error, "will look again");
        return Action::requeue(pause);
    }
    tracing::warn!(controller = B::NAME, object = %key, %error, retry_ms = pause.as_millis(), "will try again");
    Action::requeue(pause)
}

async fn reconcile<B: Beats>(
    wake: Arc<B::Kind>,
    machine: Arc<Machine<B>>,
) -> Result<Action, Error> {
    let key = ObjectRef::from_obj(&*wake);
    let round = AssertUnwindSafe(round(&machine, &wake))
        .catch_unwind()
        .await;
    let outcome = round.unwrap_or_else(|_| Err(Error::Panicked(key.to_string())));
    if outcome.is_ok() {
        machine.backoff.lock().reset(&key);
    }
    outcome.map(|again| again.map_or_else(Action::await_change, Action::requeue))
}

/// One round of one object. The answer is when to look again, if time alone would change something.
async fn round<B: Beats>(machine: &Machine<B>, wake: &B::Kind) -> Result<Option<Duration>, Error> {
    let (beats, ctx) = (&machine.beats, &machine.ctx);
    if let Some(rest) = beats.rest(ctx, wake) {
        return Ok(Some(rest));
    }
    let Some(object) = step::read::<B::Kind>(&ctx.client, wake).await? else {
        return Ok(None);
    };
    let before = echo::status_of::<B>(&object).map_err(|source| Error::Shape {
        what: wake.name_any(),
        source,
    })?;
    let reference = object.object_ref(&());
    let is_leaving = object.meta().deletion_timestamp.is_some();
    let mut world = beats.observe(ctx, object).await?;
    let trouble = work(machine, wake, &mut world).await.err();
    if let Some(status) = beats.status(&world, ctx.options.clock.now())
        && status != before
    {
        let (key, now) = (ObjectRef::from_obj(wake), ctx.options.clock.monotonic());
        let pause = machine.echo.pause(&key, &before, &status, now);
        if let Some(pause) = pause.filter(|_| !is_leaving && trouble.is_none()) {
            return Ok(Some(pause));
        }
        machine.echo.note(key.clone(), &status);
        match write_status::<B>(ctx, &reference, &status).await? {
            Written::Yes => machine.echo.written(&key, now),
            Written::Gone => machine.echo.forget(&key),
        }
        announce::<B>(ctx, &reference, &before, &status).await;
    }
    match trouble {
        Some(error) => Err(error),
        None => Ok(beats.again(&world, ctx.options.clock.now())),
    }
}

/// Everything between looking and telling: the plan, what lies outside, and what follows from that.
async fn work<B: Beats>(
    machine: &Machine<B>,
    wake: &B::Kind,
    world: &mut B::World,
) -> Result<(), Error> {
    let beats = &machine.beats;
    carry_out(machine, wake, world, beats.plan(world)).await?;
    beats.reach_out(&machine.ctx, world).await?;
    carry_out(machine, wake, world, beats.conclude(world)).await
}

/// Takes steps in order; the first that cannot be done is the last that is tried.
async fn carry_out<B: Beats>(
    machine: &Machine<B>,
    wake: &B::Kind,
    world: &mut B::World,
    steps: Vec<Step>,
) -> Result<(), Error> {
    let (beats, ctx) = (&machine.beats, &machine.ctx);
    for step in steps {
        let ticket = step.ticket();
        match step.carry_out(&ctx.client, B::NAME).await {
            Ok(answer) => beats.absorb(world, ticket, answer),
            Err(error) => {
                beats.stumble(world, ticket, &error);
                let failures = machine.backoff.lock().failures(&ObjectRef::from_obj(wake));
                beats.tried(world, failures.saturating_add(1));
                return Err(error);
            }
        }
    }
    Ok(())
}

/// What became of a status.
enum Written {
    Yes,
    /// The object was deleted, or deleted and made again, since it was read: its own change wakes us.
    Gone,
}

/// One request: this controller's fields of the status, and only of the object that was read.
async fn write_status<B: Beats>(
    ctx: &Ctx,
    object: &ObjectReference,
    status: &Value,
) -> Result<Written, Error> {
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
        Ok(_) => Ok(Written::Yes),
        Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => {
            Ok(Written::Gone)
        }
        Err(error) => Err(error.into()),
    }
}

/// Tells people what is news. Best effort: the status is the truth, an Event is news about it.
async fn announce<B: Beats>(ctx: &Ctx, object: &ObjectReference, before: &Value, after: &Value) {
    for event in news::news(&B::NEWS, before, after) {
        if let Err(error) = ctx.recorder.publish(&event, object).await {
            tracing::debug!(controller = B::NAME, %error, "an event could not be recorded");
        }
    }
}
