//! What stands before anything answers: the store, the API server on it, and the controllers that work over it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use heddle_api::well_known::{INTEGRATION_NAMESPACE, SYSTEM_NAMESPACE};
use heddle_apiserver::{ApiServer, CONTROLLERS, Identity as User, Registry, Tokens};
use heddle_controllers::{Bundles, DataPlane, HealthBoard, Leadership, Metrics};
use heddle_rt::{Clock, OnError, Tasks};
use heddle_store::{Key, Store};

use super::{STORE, World, refuse_store};
use crate::config::Config;

/// Store and API server over a directory, without a door: the part that `serve` and the benchmark share.
#[derive(Debug)]
pub struct Ground {
    pub server: ApiServer,
    pub tasks: Tasks,
}

impl Ground {
    /// Opens the store below `dir` and the API server on it.
    pub async fn open(
        world: &World,
        dir: &Path,
        tasks: &Tasks,
        tokens: Tokens,
    ) -> anyhow::Result<Self> {
        let mut options =
            heddle_store::Options::new(world.vfs.clone(), dir.join(STORE), world.clock.clone());
        options.tasks = tasks.child("store");
        let store = Store::open(options).map_err(|error| refuse_store(dir, error))?;
        let server = ApiServer::open(heddle_apiserver::Options {
            store,
            clock: world.clock.clone(),
            chance: world.chance.clone(),
            registry: Arc::new(Registry::heddle()?),
            namespaces: vec!["default", SYSTEM_NAMESPACE, INTEGRATION_NAMESPACE],
            tokens,
            limits: heddle_apiserver::Limits::default(),
        })
        .await?;
        Ok(Self {
            server,
            tasks: tasks.child("control"),
        })
    }

    /// A client without a socket, as the controllers use it.
    pub fn client(&self) -> kube::Client {
        let user = User::new("system:heddle:controllers", &[CONTROLLERS]);
        kube::Client::new(self.server.in_process(user).lean(), "default")
    }

    /// Starts what tidies up after objects.
    pub fn start_janitor(&self) {
        let server = self.server.clone();
        self.tasks
            .spawn("janitor", OnError::EndProcess, async move {
                server.run_janitor().await
            });
    }

    /// Starts what keeps verified copies of the store beside it.
    pub(super) fn start_copies(&self, clock: &Clock) {
        let (store, clock) = (self.server.store().clone(), clock.clone());
        self.tasks.spawn("copies", OnError::EndProcess, async move {
            store.keep_copies(&clock).await;
        });
    }

    /// Starts the controllers of a fresh configuration, without a mesh and without bundles.
    pub fn start_bare_controllers(&self, world: &World) {
        self.start_controllers(world, None, None, &Config::default());
    }

    /// Starts the controllers, led by a lease like everywhere else.
    ///
    /// The directory is locked, so nobody else stands under its name: after a restart the lease is taken up again at
    /// once, however the last process ended.
    pub(crate) fn start_controllers(
        &self,
        world: &World,
        plane: Option<Arc<dyn DataPlane>>,
        bundles: Option<Arc<dyn Bundles>>,
        config: &Config,
    ) -> Controllers {
        let leadership = Leadership {
            lease: "heddle-controllers".to_owned(),
            identity: format!("heddle-{}", self.instance()),
        };
        let client = self.client();
        let mut options =
            heddle_controllers::Options::new(world.clock.clone(), world.chance.clone());
        options.data_plane = plane;
        options.bundles = bundles;
        options.offers = config.catalog.mode;
        options.broker_classes = config.broker_classes.clone();
        let controllers = Controllers {
            numbers: options.numbers.clone(),
            health: options.health.clone(),
            started: Arc::clone(&options.started),
        };
        let clock = world.clock.clone();
        self.tasks
            .spawn("controllers", OnError::EndProcess, async move {
                let work = || heddle_controllers::run(client.clone(), options.clone());
                heddle_controllers::lead(client.clone(), clock, leadership, work).await;
            });
        controllers
    }

    /// A name that no other store has and that outlives restarts: the uid of the system namespace.
    pub(super) fn instance(&self) -> String {
        let key = Key::new("namespaces", "", SYSTEM_NAMESPACE);
        let namespace = self.server.store().get(&key);
        namespace
            .map(|namespace| namespace.facts.uid.to_string())
            .unwrap_or_default()
    }

    /// Stops controllers and janitor, then closes the store.
    pub async fn close(&self) {
        self.tasks.cancel();
        self.tasks.join().await;
        self.server.store().close().await;
    }
}

/// What is known of controllers that run.
#[derive(Debug)]
pub(crate) struct Controllers {
    pub(super) numbers: Metrics,
    pub(super) health: HealthBoard,
    /// Set once they know everything that there is, and work.
    pub(super) started: Arc<AtomicBool>,
}

impl Controllers {
    /// Whoever asked for none does not wait for any.
    pub(super) fn none() -> Self {
        Self {
            numbers: Metrics::default(),
            health: HealthBoard::default(),
            started: Arc::new(AtomicBool::new(true)),
        }
    }
}

/// Starts the controllers as tasks of `tasks`.
pub fn start_controllers(tasks: &Tasks, world: &World, client: kube::Client) {
    let options = heddle_controllers::Options::new(world.clock.clone(), world.chance.clone());
    tasks.spawn(
        "controllers",
        OnError::EndProcess,
        heddle_controllers::run(client, options),
    );
}
