//! What the controllers ask of whoever reads registries and keeps images, as plain data.
//!
//! A reading is answered with [`crate::evidence`]; keeping an image succeeds, or says whether trying again may help.

use std::sync::Arc;

use crate::evidence::{Credentials, Known};
use crate::registry::RegistrySpec;

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
    /// Where the image was when the revision was made: `host/repository`. Says where the runner of a chart is, whatever
    /// the settings say now.
    pub location: String,
    pub manifest_digest: String,
}

/// Why an image is not kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The registry sent other content than the digest names.
    #[error("the registry sent other content than the digest names: {0}")]
    Mismatch(String),
    /// What the image consists of is not allowed: too large, of an unknown kind, reaching outside of itself. It will be
    /// the same next time.
    #[error("the image is refused: {0}")]
    Refused(String),
    /// Trying again may help.
    #[error("the image cannot be fetched: {0}")]
    Unavailable(String),
}
