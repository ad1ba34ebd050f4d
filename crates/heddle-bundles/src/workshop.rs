//! Registries, images and the sandbox under one roof: what a server opens, and what its controllers ask.
//!
//! ```text
//!   DIR/images/     images by digest        DIR/pushed/     what was pushed to heddle itself
//!   DIR/sandbox/    runs, and what instances own
//! ```
//! Whatever may block for long is done on a thread of its own.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use heddle_api::action::{Run, RunState};
use heddle_api::bundle_source::{Fetch, FetchError, ReadRequest};
use heddle_api::evidence::Reading;
use heddle_rt::net::dial::Connect;
use heddle_rt::{Chance, Clock, Tasks, Vfs};
use serde_json::{Map, Value};

use crate::images::{self, Image, Store};
use crate::registries::{self, PAGE, Patience, Registries, push};
use crate::sandbox::{self, Capabilities, NetworkRules, Program, Runner, SandboxError};

/// What a workshop is made of.
#[derive(Clone, Debug)]
pub struct Options {
    /// Only one process may have it.
    pub directory: PathBuf,
    /// The command that becomes a shim, without its last argument.
    pub shim: Vec<OsString>,
    pub limits: images::Limits,
    pub vfs: Arc<dyn Vfs>,
    pub clock: Clock,
    pub chance: Chance,
    pub tasks: Tasks,
    /// The network, with its policy.
    pub connect: Arc<dyn Connect>,
    /// The same policy, for actions that may use the network.
    pub network: NetworkRules,
}

/// Why a workshop cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot open the images: {0}")]
    Images(String),
    #[error("cannot open what was pushed: {0}")]
    Pushed(#[from] push::Error),
    #[error("cannot open the sandbox: {0}")]
    Sandbox(#[from] SandboxError),
}

/// The workshop. Cheap to clone; clones are the same.
#[derive(Clone, Debug)]
pub struct Workshop(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    tasks: Tasks,
    store: Store,
    pushed: push::PushStore,
    registries: Registries,
    runner: Runner,
}

impl Workshop {
    pub fn open(options: Options) -> Result<Self, Error> {
        // Shims start elsewhere.
        let directory = &std::path::absolute(&options.directory)
            .map_err(|error| Error::Images(error.to_string()))?;
        let store = Store::open(&directory.join("images"), options.limits)
            .map_err(|error| Error::Images(error.in_words()))?;
        let pushed = push::PushStore::open(options.vfs.clone(), &directory.join("pushed"))?;
        let mut sandbox = sandbox::Options::new(directory.join("sandbox"), options.shim);
        sandbox.network = options.network;
        let runner = Runner::open(sandbox, options.clock.clone(), options.chance.clone())?;
        let registries = Registries::new(registries::Options {
            tasks: options.tasks.clone(),
            clock: options.clock,
            chance: options.chance,
            connect: options.connect,
            store: store.clone(),
            pushed: pushed.clone(),
            patience: Patience::default(),
            page: PAGE,
        });
        Ok(Self(Arc::new(Inner {
            tasks: options.tasks,
            store,
            pushed,
            registries,
            runner,
        })))
    }

    /// Whether actions can be run here; if not, why.
    pub async fn check(&self) -> Result<Capabilities, String> {
        self.aside("check", |inner| inner.runner.check()).await
    }

    pub async fn read(&self, request: ReadRequest) -> Reading {
        self.0.registries.read(request).await
    }

    #[must_use]
    pub fn is_kept(&self, manifest_digest: &str) -> bool {
        self.0.store.is_kept(manifest_digest)
    }

    pub async fn keep(&self, fetch: Fetch) -> Result<(), FetchError> {
        self.0.registries.keep(fetch).await
    }

    pub async fn keep_only(&self, manifest_digests: Vec<String>) -> Result<(), String> {
        self.aside("sweep images", move |inner| {
            let swept = inner.store.keep_only(&manifest_digests);
            swept.map_err(|error| error.in_words())
        })
        .await
    }

    /// Takes an image that somebody pushes to heddle itself. Gives the digest of its manifest.
    pub async fn push(
        &self,
        repository: String,
        tag: String,
        image: Image,
    ) -> Result<String, push::Error> {
        let inner = Arc::clone(&self.0);
        let put = move || inner.pushed.put(&repository, &tag, &image);
        let put = self.0.tasks.blocking("push", put).await;
        put.map_err(|source| push::Error::Io {
            what: "start a thread".to_owned(),
            source,
        })?
    }

    /// Starts a run, unless it was started before.
    pub async fn start(&self, run: Run) -> Result<(), String> {
        self.aside("start a run", move |inner| {
            let digest = &run.manifest_digest;
            let unpacked = inner.store.config(digest).and_then(|config| {
                let root = inner.store.unpack(digest)?;
                Ok((config, root))
            });
            let (config, root) = unpacked.map_err(|error| error.in_words())?;
            let program = Program {
                entrypoint: config.entrypoint,
                cmd: config.cmd,
                env: config.env,
                working_dir: config.working_dir,
            };
            let started = inner.runner.start(&run, &root, &program);
            started.map_err(in_words)
        })
        .await
    }

    /// How a run stands. One that cannot be looked at is taken to be under way: to take it for unknown would start it again.
    #[must_use]
    pub fn look(&self, id: &str) -> RunState {
        self.0.runner.look(id).unwrap_or_else(|refusal| {
            let progress = format!("it cannot be looked at: {}", in_words(refusal));
            tracing::warn!(run = id, progress, "a run cannot be looked at");
            RunState::Running {
                progress: Some(progress),
            }
        })
    }

    pub fn credentials(&self, id: &str) -> Result<Option<Map<String, Value>>, String> {
        self.0.runner.credentials(id).map_err(in_words)
    }

    pub fn log(&self, id: &str) -> Result<String, String> {
        self.0.runner.log(id).map_err(in_words)
    }

    pub async fn cancel(&self, id: String) -> Result<(), String> {
        self.aside("cancel a run", move |inner| inner.runner.cancel(&id))
            .await
    }

    pub async fn forget(&self, id: String) -> Result<(), String> {
        self.aside("forget a run", move |inner| inner.runner.forget(&id))
            .await
    }

    pub async fn forget_instance(&self, instance: String) -> Result<(), String> {
        self.aside("forget an instance", move |inner| {
            inner.runner.forget_instance(&instance)
        })
        .await
    }

    pub async fn changed(&self, seen: u64) -> u64 {
        self.0.runner.changed(seen).await
    }

    async fn aside<T: Send + 'static, E: Words + Send + 'static>(
        &self,
        name: &str,
        work: impl FnOnce(&Inner) -> Result<T, E> + Send + 'static,
    ) -> Result<T, String> {
        let inner = Arc::clone(&self.0);
        let done = self.0.tasks.blocking(name, move || work(&inner)).await;
        done.map_err(|error| error.to_string())?
            .map_err(Words::words)
    }
}

/// An error that can be told to people in one line.
trait Words {
    fn words(self) -> String;
}

impl Words for String {
    fn words(self) -> String {
        self
    }
}

impl Words for SandboxError {
    fn words(self) -> String {
        in_words(self)
    }
}

/// With what caused it.
fn in_words(refusal: SandboxError) -> String {
    match &refusal {
        SandboxError::Io { source, .. } => format!("{refusal}: {source}"),
        _ => refusal.to_string(),
    }
}
