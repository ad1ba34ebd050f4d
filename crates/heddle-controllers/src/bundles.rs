//! The port to registries, images and runs: what controllers of bundles ask for that no API server can do.
//!
//! Registries are read, images are kept, actions are run. Each request is safe to repeat: a reading changes nothing, an
//! image that is kept is kept, and a run that was started under an id is not started again.

use std::fmt::Debug;
use std::sync::Arc;

use futures::future::BoxFuture;
use heddle_api::action::{Run, RunState};
use heddle_api::evidence::{Credentials, Known, Reading};
use heddle_api::registry::RegistrySpec;
use serde_json::{Map, Value};

/// Registries, images and runs, as the controllers know them.
pub trait Bundles: Send + Sync + Debug {
    /// Reads a registry, within bounded time. What cannot be found out is part of the answer.
    fn read(&self, request: ReadRequest) -> BoxFuture<'static, Reading>;

    /// Whether all of an image is kept here, verified.
    fn is_kept(&self, manifest_digest: &str) -> bool;

    /// Keeps all of an image, verified, from now on.
    fn keep(&self, fetch: Fetch) -> BoxFuture<'static, Result<(), FetchTrouble>>;

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

/// Which registry to read, and what is known of it.
#[derive(Debug, Clone)]
pub struct ReadRequest {
    /// Name of the Registry.
    pub registry: String,
    pub spec: Arc<RegistrySpec>,
    pub credentials: Credentials,
    /// Every bundle of the registry. Each gets a sighting, whatever the listing says.
    pub known: Vec<Known>,
    /// Name of the SyncRun, for logs.
    pub run: String,
}

/// Which image to keep.
#[derive(Debug, Clone)]
pub struct Fetch {
    /// Name of the Registry.
    pub registry: String,
    pub spec: Arc<RegistrySpec>,
    pub credentials: Credentials,
    /// The repository, with its organisation.
    pub repository: String,
    /// Where the image was when the revision was made: `host/repository`.
    pub location: String,
    pub manifest_digest: String,
}

/// Why an image is not kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchTrouble {
    /// The registry sent other content than the digest names.
    #[error("the registry sent other content than the digest names: {0}")]
    Mismatch(String),
    /// What the image consists of is not allowed: too large, of an unknown kind, reaching outside of itself.
    #[error("the image is refused: {0}")]
    Refused(String),
    /// Trying again may help.
    #[error("the image cannot be fetched: {0}")]
    Unavailable(String),
}
