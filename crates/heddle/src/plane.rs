//! The mesh as the controllers know it: the one place where the two meet.
//!
//! Tables are compiled and brought into force one after the other; when resources come faster than that, only the newest
//! are compiled.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use heddle_controllers::{DataPlane, Fate, GivenUp, Held, InForce, Resources};
use heddle_mesh::Mesh;
use heddle_mesh::routes::{self, Door};
use heddle_rt::{OnError, Tasks};
use parking_lot::Mutex;
use tokio::sync::watch;

/// A mesh behind a listener.
#[derive(Debug)]
pub(crate) struct Plane {
    mesh: Mesh,
    resources: watch::Sender<Option<Resources>>,
    base_url: Mutex<Option<String>>,
    /// Whether the listener asks publishers who they are.
    asks_who: bool,
}

impl Plane {
    /// Starts taking resources.
    pub(crate) fn start(mesh: Mesh, tasks: &Tasks, asks_who: bool) -> Arc<Self> {
        let (resources, mut newest) = watch::channel(None::<Resources>);
        let routed = mesh.clone();
        tasks.spawn("routes", OnError::EndProcess, async move {
            while newest.changed().await.is_ok() {
                let resources = newest.borrow_and_update().clone();
                if let Some(resources) = resources {
                    routed.route(&owned(resources)).await;
                }
            }
        });
        Arc::new(Self {
            mesh,
            resources,
            base_url: Mutex::new(None),
            asks_who,
        })
    }

    /// The listener is open, or closed again.
    pub(crate) fn serve_at(&self, url: Option<String>) {
        self.mesh.serve_at(url.clone());
        *self.base_url.lock() = url;
        self.mesh.announce();
    }
}

/// The same resources in the words of the mesh.
fn owned(resources: Resources) -> routes::Resources {
    routes::Resources {
        applications: resources.applications,
        http_sources: resources.http_sources,
        channels: resources.channels,
        subscriptions: resources.subscriptions,
        brokers: resources.brokers,
        triggers: resources.triggers,
        policies: resources.policies,
    }
}

fn held(held: heddle_mesh::Held) -> Held {
    match held {
        heddle_mesh::Held::Gone(why) => Held::Gone(why),
        heddle_mesh::Held::NoConsent(why) => Held::Unconsented(why),
        heddle_mesh::Held::NoRoom(why) => Held::Waiting(why),
    }
}

impl DataPlane for Plane {
    fn base_url(&self) -> Option<String> {
        self.base_url.lock().clone()
    }

    fn log_health(&self) -> Result<(), String> {
        self.mesh.health()
    }

    fn consumer(&self, key: &str) -> Option<InForce> {
        let routed = self.mesh.consumer(key)?;
        Some(InForce {
            uid: routed.uid,
            generation: routed.generation,
            held: routed.held.map(held),
            over_quota: routed.over_quota,
            bad_replies: routed.bad_replies,
            faults: routed.faults,
        })
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

    fn give_up(
        &self,
        channel: &str,
        broker: &str,
        fate: Fate,
        why: &str,
    ) -> BoxFuture<'static, Result<GivenUp, String>> {
        let mesh = self.mesh.clone();
        let [channel, broker, why] = [channel, broker, why].map(str::to_owned);
        let fate = match fate {
            Fate::DeadLetter => heddle_mesh::Fate::DeadLetter,
            Fate::Discard => heddle_mesh::Fate::Discard,
        };
        async move {
            let given_up = mesh.give_up(&channel, &broker, fate, &why).await;
            let given_up = given_up.map_err(|error| error.to_string())?;
            Ok(GivenUp {
                dead_lettered: given_up.dead_lettered,
                discarded: given_up.discarded,
            })
        }
        .boxed()
    }

    fn route(&self, resources: Resources) {
        self.resources.send_replace(Some(resources));
    }

    fn changed(&self, seen: u64) -> BoxFuture<'static, u64> {
        self.mesh.changed(seen)
    }
}
