//! The mesh as the controllers know it: the one place where the two meet.
//!
//! Tables are compiled and brought into force one after the other; when resources come faster than that, only the newest
//! are compiled.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use heddle_api::dataplane::{EdgeReading, Fate, MeshReading, Resources, RoutedConsumer};
use heddle_controllers::{DataPlane, GivingUp};
use heddle_mesh::Mesh;
use heddle_mesh::routes::Door;
use heddle_rt::{OnError, Tasks};
use heddle_store::{Health, Store};
use parking_lot::Mutex;
use tokio::sync::watch;

/// Who tries the listener from outside.
pub(crate) trait EdgeReader: std::fmt::Debug + Send + Sync {
    /// What came of it, at this moment.
    fn reading(&self) -> EdgeReading;
}

/// A mesh behind a listener.
#[derive(Debug)]
pub(crate) struct Plane {
    mesh: Mesh,
    /// Where the resources are kept, which the controllers cannot see.
    store: Store,
    resources: watch::Sender<Option<Resources>>,
    base_url: Mutex<Option<String>>,
    /// Whether the listener asks publishers who they are.
    asks_who: bool,
    /// `None` when nobody tries the listener from outside.
    edge: Option<Box<dyn EdgeReader>>,
}

impl Plane {
    /// Starts taking resources.
    pub(crate) fn start(
        mesh: Mesh,
        store: Store,
        tasks: &Tasks,
        asks_who: bool,
        edge: Option<Box<dyn EdgeReader>>,
    ) -> Arc<Self> {
        let (resources, mut newest) = watch::channel(None::<Resources>);
        let routed = mesh.clone();
        tasks.spawn("routes", OnError::EndProcess, async move {
            while newest.changed().await.is_ok() {
                let resources = newest.borrow_and_update().clone();
                if let Some(resources) = resources {
                    routed.route(&resources).await;
                }
            }
        });
        Arc::new(Self {
            mesh,
            store,
            resources,
            base_url: Mutex::new(None),
            asks_who,
            edge,
        })
    }

    /// The listener is open, or closed again.
    pub(crate) fn serve_at(&self, url: Option<String>) {
        self.mesh.serve_at(url.clone());
        *self.base_url.lock() = url;
        self.mesh.announce();
    }
}

impl DataPlane for Plane {
    fn base_url(&self) -> Option<String> {
        self.base_url.lock().clone()
    }

    fn log_health(&self) -> Result<(), String> {
        self.mesh.health()
    }

    fn consumer(&self, key: &str) -> Option<RoutedConsumer> {
        self.mesh.consumer(key)
    }

    fn rejected(&self, key: &str) -> Option<String> {
        let table = self.mesh.table();
        let rejected = table.rejected().iter().find(|rejected| rejected.key == key);
        rejected.map(|rejected| rejected.reason.clone())
    }

    fn entry(&self, name: &str) -> bool {
        self.mesh.table().entry(name).is_some()
    }

    fn asks_who(&self) -> bool {
        self.asks_who
    }

    fn application_open(&self, application: &str) -> Result<(), String> {
        match self.mesh.table().application(application) {
            Some(Door::Open { .. }) => Ok(()),
            Some(Door::NotReady { reason }) => Err(reason.clone()),
            None => Err(format!(
                "the mesh does not know the Application {application:?} yet"
            )),
        }
    }

    fn pending(&self, broker: &str) -> u64 {
        self.mesh.pending(broker)
    }

    fn pending_through(&self, channel: &str, broker: &str) -> u64 {
        self.mesh.pending_through(channel, broker)
    }

    fn give_up(&self, channel: &str, broker: &str, fate: Fate, why: &str) -> GivingUp {
        let mesh = self.mesh.clone();
        let [channel, broker, why] = [channel, broker, why].map(str::to_owned);
        async move {
            let given_up = mesh.give_up(&channel, &broker, fate, &why).await;
            given_up.map_err(|error| error.to_string())
        }
        .boxed()
    }

    fn reading(&self) -> MeshReading {
        let store = match self.store.health() {
            Health::Serving => None,
            Health::Full => Some("the disk is full".to_owned()),
            Health::Exhausted(why) | Health::Poisoned(why) => Some(why),
        };
        MeshReading {
            store,
            edge: self.edge.as_ref().map(|edge| edge.reading()),
            ..self.mesh.reading()
        }
    }

    fn route(&self, resources: Resources) {
        self.resources.send_replace(Some(resources));
    }

    fn changed(&self, seen: u64) -> BoxFuture<'static, u64> {
        self.mesh.changed(seen)
    }
}
