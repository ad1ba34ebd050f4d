//! The port to registries, images and runs: what controllers of bundles ask for that no API server can do.
//!
//! Registries are read, images are kept, actions are run. Each request is safe to repeat: a reading changes nothing, an
//! image that is kept is kept, and a run that was started under an id is not started again.

use std::fmt::Debug;

use futures::future::BoxFuture;
use heddle_api::action::{Run, RunState};
use heddle_api::bundle_source::{Fetch, FetchError, ReadRequest};
use heddle_api::evidence::Reading;
use serde_json::{Map, Value};

/// Registries, images and runs, as the controllers know them.
pub trait Bundles: Send + Sync + Debug {
    /// Reads a registry, within bounded time. What cannot be found out is part of the answer.
    fn read(&self, request: ReadRequest) -> BoxFuture<'static, Reading>;

    /// Whether all of an image is kept here, verified.
    fn is_kept(&self, manifest_digest: &str) -> bool;

    /// Keeps all of an image, verified, from now on.
    fn keep(&self, fetch: Fetch) -> BoxFuture<'static, Result<(), FetchError>>;

    /// Lets everything go that none of these images needs.
    fn keep_only(&self, manifest_digests: Vec<String>) -> BoxFuture<'static, Result<(), String>>;

    /// Starts a run unless it was started before. Once this has answered, the run's id is known for ever, also after a
    /// crash. An error means that nothing ran.
    fn start(&self, run: Run) -> BoxFuture<'static, Result<(), String>>;

    /// How a run stands.
    fn look(&self, id: &str) -> BoxFuture<'static, RunState>;

    /// The credentials that a run which succeeded handed out, if it did.
    fn credentials(
        &self,
        id: &str,
    ) -> BoxFuture<'static, Result<Option<Map<String, Value>>, String>>;

    /// Kills a run with all its processes; it ends as cancelled unless it ended before.
    fn cancel(&self, id: &str) -> BoxFuture<'static, Result<(), String>>;

    /// Forgets a run that ended: its secrets, its outcome. Its log stays for a while.
    fn forget(&self, id: &str) -> BoxFuture<'static, Result<(), String>>;

    /// Removes what an instance kept from action to action, when it is gone.
    fn forget_instance(&self, instance: &str) -> BoxFuture<'static, Result<(), String>>;

    /// Completes when some run may have ended or said something new since the mark `seen`, with the new mark. Marks begin
    /// at zero and grow.
    fn changed(&self, seen: u64) -> BoxFuture<'static, u64>;
}
