//! A Kubernetes-style resource API over the durable store.
//!
//! ```text
//!  kube::Client ---in process---+                       +-> read   (get, list, pages)
//!                               v                       +-> watch  (cursor over the store's history)
//!  kubectl, curl --listener--> serve -- who? what? -----+-> write  (claim, prune, patch, strategy, commit)
//!                                                       +-> delete (finalizers, propagation)
//!                              janitor: owners, namespaces, old events - through the same doors
//! ```
//! Promises: a write is answered after it is durable; every write path passes the same rules (`strategy`);
//! a watch hands out each change once, in order, or says 410; what is refused is refused with a `Status` that
//! says what to change. The server keeps no truth of its own: it is a view of the store.
//!
//! It knows nothing of controllers, and serves exactly the kinds of its registry: it is not a cluster.

mod account;
mod apply;
mod auth;
mod body;
mod cel;
mod delete;
mod discovery;
mod events;
mod fields;
#[doc(hidden)]
pub mod fuzzing;
mod janitor;
mod jsonpath;
mod metrics;
mod names;
mod negotiate;
mod object;
mod openapi;
mod pages;
mod patch;
mod protobuf;
mod read;
mod registry;
mod request;
mod reviews;
mod schema;
mod seed;
mod select;
mod serve;
mod status;
mod strategy;
mod table;
mod view;
mod watch;
mod write;

use std::sync::Arc;

use heddle_rt::{Chance, Clock};
use heddle_store::Store;

pub use auth::{
    ADMINS, CONTROLLERS, Identity, IssuedTokens, OPERATORS, SCRAPERS, TokenDigest, TokenHolder,
    Tokens, VIEWERS, digest, impersonates,
};
pub use registry::{Error as RegistryError, Registry, Resource};
pub use serve::{InProcess, Remote};
pub use status::StatusError;

use metrics::Metrics;
use pages::Pages;

/// What a server is made of.
#[derive(Debug)]
pub struct Options {
    pub store: Store,
    pub clock: Clock,
    pub chance: Chance,
    /// The kinds to serve. Compiling it takes longer than opening a server, so it can be shared.
    pub registry: Arc<Registry>,
    /// Namespaces that must exist.
    pub namespaces: Vec<&'static str>,
    pub tokens: Tokens,
    pub limits: Limits,
}

/// Bounds, each with its reason.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Requests under way at once, watches aside: beyond it 429, before memory is what gives way.
    pub inflight_count_max: usize,
    /// Watches open at once: each costs a cursor and a task's worth of memory.
    pub watch_count_max: usize,
    /// How long a request other than a watch may take; kube-apiserver's own figure.
    pub request_seconds_max: u64,
    /// How long an Event is kept.
    pub event_seconds_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            inflight_count_max: 2_000,
            watch_count_max: 10_000,
            request_seconds_max: 60,
            event_seconds_max: 3_600,
        }
    }
}

/// A cheap handle; clones share one server.
#[derive(Debug, Clone)]
pub struct ApiServer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Store,
    clock: Clock,
    chance: Chance,
    registry: Arc<Registry>,
    tokens: Tokens,
    pages: Pages,
    metrics: Metrics,
    limits: Limits,
    inflight: tokio::sync::Semaphore,
    watches: Arc<tokio::sync::Semaphore>,
}

impl ApiServer {
    /// Makes sure that what every client expects to find (definitions, namespaces) is there. Returns once that is
    /// durable.
    pub async fn open(options: Options) -> Result<Self, StatusError> {
        let server = Self(Arc::new(Inner {
            pages: Pages::new(options.clock.clone()),
            inflight: tokio::sync::Semaphore::new(options.limits.inflight_count_max),
            watches: Arc::new(tokio::sync::Semaphore::new(options.limits.watch_count_max)),
            metrics: Metrics::default(),
            store: options.store,
            clock: options.clock,
            chance: options.chance,
            registry: options.registry,
            tokens: options.tokens,
            limits: options.limits,
        }));
        seed::seed(&server.0, &options.namespaces).await?;
        Ok(server)
    }

    pub fn registry(&self) -> &Registry {
        &self.0.registry
    }

    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// The service for peers: they authenticate with a bearer token, unless the door told already who they are by an
    /// [`Identity`] or a `heddle_api::access::Access` among the request's extensions.
    pub fn remote(&self) -> Remote {
        Remote::new(Arc::clone(&self.0))
    }

    /// The service for this process: no socket, no token, the identity is given here.
    pub fn in_process(&self, identity: Identity) -> InProcess {
        InProcess::new(Arc::clone(&self.0), identity)
    }

    /// Runs garbage collection, namespace termination and event expiry until the future is dropped.
    pub async fn run_janitor(&self) {
        janitor::run(Arc::clone(&self.0)).await;
    }

    /// Whose rights a request has by its bearer token, for doors of other parts that ask for the same credentials.
    pub fn who(&self, headers: &http::HeaderMap) -> Option<Identity> {
        self.holder(headers).map(|holder| holder.identity)
    }

    /// The same, with how long that lasts.
    pub fn holder(&self, headers: &http::HeaderMap) -> Option<TokenHolder> {
        let now = self.0.clock.now();
        self.0.tokens.authenticate(headers, now).ok()
    }

    /// Whose the bearer token of a request is, whomever it asks to act as.
    pub fn token_owner(&self, headers: &http::HeaderMap) -> Option<Identity> {
        self.0.tokens.owner(headers, self.0.clock.now())
    }

    /// Whose a token is that was shown in another way than in a header.
    pub fn holder_of(&self, token: &str) -> Option<TokenHolder> {
        self.0.tokens.holder(token, self.0.clock.now())
    }

    /// The tokens that come and go.
    pub fn issued(&self) -> IssuedTokens {
        self.0.tokens.issued()
    }

    /// Prometheus text: requests, commits, watchers, objects.
    pub fn metrics_text(&self) -> String {
        self.0.metrics.render(&self.0.store)
    }
}
