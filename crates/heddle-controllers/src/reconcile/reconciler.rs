//! The contract of a controller: four functions, and what they may ask for besides.
//!
//! | function | does | purity |
//! |---|---|---|
//! | `observe` | gathers everything the object depends on into one value | reads only |
//! | `plan` | turns that value into steps, one idempotent request each | pure |
//! | `call_out` | what no API server can do: the mesh, registries, runners | safe to repeat |
//! | `status` | turns that value into conditions | pure, given the time |
//!
//! Everything else has a default. The loop that calls them is [`super`]: it executes steps, retries with backoff, suppresses
//! status writes that change nothing, and requeues when [`Reconciler::requeue_after`] asks for it.

use std::fmt::Debug;
use std::time::Duration;

use jiff::Timestamp;
use kube::Resource;
use kube::api::DynamicObject;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Ctx, Error, Notices, Step, StepName};

/// One controller: what differs between kinds.
pub trait Reconciler: Send + Sync + Sized + 'static {
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
    const FOREIGN_FIELDS: &'static [&'static str] = &[];
    /// Whether the plan or the next look depends on what this controller itself has written into the status. Where it does
    /// not, its own writes do not wake it (see `own_writes`).
    const READS_OWN_STATUS: bool = true;
    /// Whether people need not be told of every step on the way to being ready (see `own_writes`).
    const THROTTLES_PROGRESS: bool = !Self::READS_OWN_STATUS;
    /// What of a change of status people are told.
    const NOTICES: Notices = Notices::PLAIN;

    /// For how long the object must not be looked at yet; it is requeued until then. Rounds share their slots, so none of
    /// them sleeps: whoever would have to wait says so here.
    fn defer(&self, _: &Ctx, _: &Self::Kind) -> Option<Duration> {
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
    fn on_applied(&self, _: &mut Self::World, _: StepName, _: Option<DynamicObject>) {}

    /// Asks others than the API server (the mesh, registries, runners) for what no request to it can do, after the
    /// steps. Safe to repeat, like a step, and bounded by whoever is asked: the reconcile waits for it.
    fn call_out(
        &self,
        _: &Ctx,
        _: &mut Self::World,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        std::future::ready(Ok(()))
    }

    /// What is to be done about what [`Reconciler::call_out`] brought. Pure, like the plan.
    fn plan_after_call(&self, _: &Self::World) -> Vec<Step> {
        Vec::new()
    }

    /// Takes in that a step could not be done, so that the status can say so, and how many reconciles in a row have
    /// failed, this one included.
    fn on_step_error(&self, _: &mut Self::World, _: StepName, _: &Error, _: u32) {}

    /// The status of the object in this world, or `None` to leave it alone. Pure, given the time.
    fn status(&self, world: &Self::World, now: Timestamp) -> Option<Value>;

    /// When the object must be looked at again although nothing changes: a deadline, the end of a grace period. Pure,
    /// given the time.
    fn requeue_after(&self, _: &Self::World, _: Timestamp) -> Option<Duration> {
        None
    }
}
