//! A running product: API server, controllers, judge and mesh, with applications, mappings, instances, flows and triggers.
//!
//! ```text
//!   shop  ── instance ─> team-a ─> trigger orders ─> orders.example
//!         └─ flow ─────> team-b ─> trigger audit ──> audit.example
//!   depot ── flow ─────> team-a
//! ```
//! Both triggers want `order.created` and nothing else. The process can be killed and begins again on what its disk knows.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use heddle_api::health::{HealthStatus, MeshHealth, NamespaceHealth};
use heddle_api::operation::OperationKind;
use heddle_api::well_known::FINALIZER;
use heddle_api::{Application, ApplicationMapping, EventFlow, ServiceInstance, Trigger, names};
use heddle_controllers::{HealthBoard, Options};
use heddle_mesh::log::Reserve;
use heddle_mesh::log::embedded::{self, EmbeddedLog};
use heddle_mesh::path::delivery::ConnectionLimits;
use heddle_mesh::path::delivery::courier::{Courier, CourierOptions};
use heddle_mesh::who::Who;
use heddle_mesh::{FaultPair, Mesh, Quota, Retention};
use heddle_rt::vfs::MemoryVfs;
use heddle_rt::{Chance, Clock, Tasks};
use heddle_sim::stage::{NAMESPACES, Stage, on_stage};
use heddle_store::{Mode, Store};
use http::Request;
use http_body_util::Full;
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Api;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::network::{Network, SINK_HOST, Wires};
use crate::plane::Plane;
use crate::trouble::TroubledApi;
use crate::users::Users;

/// An application and a namespace.
pub(crate) type Pair = (&'static str, &'static str);

pub(crate) const SHOP_A: Pair = ("shop", "team-a");
pub(crate) const SHOP_B: Pair = ("shop", "team-b");
pub(crate) const DEPOT_A: Pair = ("depot", "team-a");
pub(crate) const PAIRS: [Pair; 3] = [SHOP_A, SHOP_B, DEPOT_A];

/// Small, so that segments are sealed during a story.
const SEGMENT_BYTES: u64 = 4 << 10;
/// Long enough for everything to be made and measured.
const PATIENCE: u64 = 300;

pub(crate) struct World {
    pub(crate) users: Users,
    pub(crate) clock: Clock,
    pub(crate) api: TroubledApi,
    pub(crate) network: Arc<Network>,
    /// Where resources are kept.
    pub(crate) resources_disk: MemoryVfs,
    store: Store,
    events_disk: Mutex<MemoryVfs>,
    life: Mutex<Option<Life>>,
    death: Notify,
    /// What happens to the disk of the events while no process lives.
    meanwhile: Mutex<Option<fn(&MemoryVfs)>>,
}

/// One process.
#[derive(Clone)]
struct Life {
    number: u64,
    mesh: Mesh,
    board: HealthBoard,
    tasks: Tasks,
}

/// Tells a story in a world in which nothing is declared yet.
pub(crate) fn tell<T, F: Future<Output = T>>(story: impl FnOnce(Arc<World>) -> F) -> T {
    let namespaces = [&NAMESPACES[..], &["team-b", "team-c"]].concat();
    on_stage(&namespaces, |stage| async move {
        let world = Arc::new(World::new(&stage));
        let telling = async {
            world.until("a process lives", 10, World::lives).await;
            story(Arc::clone(&world)).await
        };
        stage.play(telling, world.live()).await
    })
}

impl World {
    fn new(stage: &Stage) -> Self {
        Self {
            users: Users::new(stage.users(), &stage.clock),
            clock: stage.clock.clone(),
            api: TroubledApi::new(stage),
            network: Network::new(stage.clock.clone()),
            resources_disk: stage.disk.clone(),
            store: stage.server.store().clone(),
            events_disk: Mutex::new(MemoryVfs::new()),
            life: Mutex::default(),
            death: Notify::new(),
            meanwhile: Mutex::default(),
        }
    }

    /// One process after the other.
    async fn live(&self) {
        for number in 0.. {
            let tasks = Tasks::new("process");
            let mesh = self.open(&tasks);
            self.network.lead_to(mesh.heartbeat_sink());
            let plane = Plane::start(mesh.clone(), self.store.clone(), &tasks, true, None);
            plane.serve_at(Some("http://mesh.example".to_owned()));
            let mut options = Options::new(self.clock.clone(), Chance::seeded(2));
            options.data_plane = Some(plane);
            let life = Life {
                number,
                mesh,
                board: options.health.clone(),
                tasks,
            };
            *self.life.lock() = Some(life.clone());
            tokio::select! {
                () = heddle_controllers::run(self.api.client(), options) => {}
                () = self.death.notified() => {}
            }
            self.life.lock().take();
            life.tasks.cancel();
            life.tasks.join().await;
            let disk = self.events_disk.lock().kill();
            if let Some(happens) = self.meanwhile.lock().take() {
                happens(&disk);
            }
            *self.events_disk.lock() = disk;
        }
    }

    fn open(&self, tasks: &Tasks) -> Mesh {
        let clock = self.clock.clone();
        let log = EmbeddedLog::open(embedded::Options {
            vfs: self.events_disk().shared(),
            dir: "/mesh".into(),
            clock: clock.clone(),
            tasks: tasks.child("log"),
            mode: Mode::Inline,
            segment_bytes: Some(SEGMENT_BYTES),
            reserve: Reserve::default(),
        });
        let limits = heddle_mesh::event::http::Limits::default();
        let courier = Courier::new(CourierOptions {
            tasks: tasks.child("connections"),
            clock: clock.clone(),
            connect: Arc::new(Wires(Arc::clone(&self.network))),
            limits: ConnectionLimits::default(),
            replies: limits,
            budget: heddle_rt::Budget::default(),
        });
        let options = heddle_mesh::Options {
            clock,
            chance: Chance::seeded(3),
            tasks: tasks.clone(),
            log: Arc::new(log.unwrap()),
            courier,
            retention: Retention::default(),
            quota: Quota::default(),
            limits,
            observer: None,
            mask: Arc::default(),
            heartbeat_sink: Some(format!("http://{SINK_HOST}")),
        };
        Mesh::open(options).unwrap()
    }

    /// Ends the process without a word; another one begins. `happens` to the disk in between.
    pub(crate) async fn kill(&self, happens: Option<fn(&MemoryVfs)>) {
        *self.meanwhile.lock() = happens;
        let before = self.life().number;
        self.death.notify_one();
        self.until("another process lives", 10, |world| {
            let life = world.life.lock();
            life.as_ref().is_some_and(|life| life.number > before)
        })
        .await;
    }

    fn lives(&self) -> bool {
        self.life.lock().is_some()
    }

    fn life(&self) -> Life {
        self.life.lock().clone().expect("a process lives")
    }

    pub(crate) fn mesh(&self) -> Mesh {
        self.life().mesh
    }

    pub(crate) fn board(&self) -> HealthBoard {
        self.life().board
    }

    pub(crate) fn events_disk(&self) -> MemoryVfs {
        self.events_disk.lock().clone()
    }

    /// What is said of an application in a namespace, if anything.
    pub(crate) fn pair(&self, (application, namespace): Pair) -> Option<NamespaceHealth> {
        let report = self.board().report(&self.clock);
        let key = (application.to_owned(), namespace.to_owned());
        report.pairs.get(&key).cloned()
    }

    pub(crate) fn is_well(&self, pair: Pair) -> bool {
        let found = self.pair(pair);
        found.is_some_and(|found| found.verdict.health == HealthStatus::Healthy)
    }

    pub(crate) fn mesh_health(&self) -> MeshHealth {
        self.board().report(&self.clock).mesh.clone()
    }

    /// Waits for something, looking every second.
    pub(crate) async fn until(&self, what: &str, seconds: u64, is: impl Fn(&Self) -> bool) {
        for _ in 0..seconds {
            if is(self) {
                return;
            }
            self.pass(1).await;
        }
        let said = self.life.lock().as_ref().map(|life| {
            let report = life.board.report(&self.clock);
            let pairs = report.pairs.iter();
            let mut said: Vec<String> = pairs
                .map(|(pair, found)| format!("{pair:?}: {:#?}", found.verdict))
                .collect();
            said.push(format!("{:#?}", report.mesh.verdict));
            said.join("\n")
        });
        panic!(
            "never within {seconds} s: {what}\n{}",
            said.unwrap_or_default()
        );
    }

    pub(crate) async fn pass(&self, seconds: u64) {
        self.clock.sleep(Duration::from_secs(seconds)).await;
    }

    /// Declares everything, and waits until all of it is measured to be well.
    pub(crate) async fn set_up(&self) {
        self.users.application("shop", &["orders", "returns"]).await;
        self.users.application("depot", &["stock"]).await;
        for (application, namespace) in PAIRS {
            self.users.mapping(application, namespace).await;
        }
        self.provision("one", "orders", 3240).await;
        self.users.flow("team-b", "orders", "shop", "orders").await;
        self.users.flow("team-a", "stock", "depot", "stock").await;
        self.users
            .trigger("team-a", "orders", "orders.example")
            .await;
        self.users.trigger("team-b", "audit", "audit.example").await;
        self.until("everything is well", PATIENCE, |world| {
            PAIRS.iter().all(|pair| {
                let found = world.pair(*pair);
                found.is_some_and(|found| {
                    found.verdict.health == HealthStatus::Healthy && found.state == 4
                })
            })
        })
        .await;
    }

    /// An instance of a service of the shop in `team-a`, as a platform asks for it. It may take so long.
    pub(crate) async fn provision(&self, id: &str, service: &str, seconds: i64) {
        let mut operation = self
            .users
            .operation(&format!("make-{id}"), OperationKind::Provision);
        let deadline = self.clock.now() + SignedDuration::from_secs(seconds);
        operation["deadline"] = json!(Time(deadline));
        let instance = json!({
            "metadata": {"name": names::instance(id), "finalizers": [FINALIZER]},
            "spec": {
                "instanceID": id, "serviceID": service, "planID": format!("{service}-plan"),
                "application": {"name": "shop", "serviceID": service}, "operation": operation,
            },
        });
        let api: Api<ServiceInstance> = self.users.team();
        self.users.create(api, instance).await;
    }

    /// Publishes an event, and gives the status of the answer.
    pub(crate) async fn publish(&self, application: &str, id: &str, type_: &str) -> u16 {
        let event = self.event(application, id, type_, Bytes::from_static(b"{}"));
        self.send(&Who::Anonymous, event).await
    }

    pub(crate) fn event(
        &self,
        application: &str,
        id: &str,
        type_: &str,
        data: Bytes,
    ) -> Request<Full<Bytes>> {
        Request::post(format!("/{application}/events"))
            .header("ce-specversion", "1.0")
            .header("ce-id", id)
            .header("ce-source", "/test")
            .header("ce-type", type_)
            .header("content-type", "application/json")
            .body(Full::from(data))
            .unwrap()
    }

    /// What a publisher is answered, whoever they say they are.
    pub(crate) async fn send(&self, who: &Who, event: Request<Full<Bytes>>) -> u16 {
        let answer = self.mesh().source().handle(who, event).await;
        answer.status().as_u16()
    }
}

pub(crate) fn fault_pair((application, namespace): Pair) -> FaultPair {
    FaultPair {
        application: application.to_owned(),
        namespace: namespace.to_owned(),
    }
}

/// What people declare.
impl Users {
    pub(crate) async fn application(&self, name: &str, services: &[&str]) {
        let service = |id: &&str| {
            json!({
                "id": id, "name": id, "displayName": id, "description": id, "providerDisplayName": "acme",
                "entries": [{"type": "Events"}],
            })
        };
        let services: Vec<Value> = services.iter().map(service).collect();
        let spec = json!({"services": services});
        self.apply::<Application>("", name, spec).await;
    }

    pub(crate) async fn mapping(&self, application: &str, namespace: &str) {
        self.apply::<ApplicationMapping>(namespace, application, json!({}))
            .await;
    }

    pub(crate) async fn flow(&self, namespace: &str, name: &str, application: &str, service: &str) {
        let spec = json!({"application": application, "serviceID": service});
        self.apply::<EventFlow>(namespace, name, spec).await;
    }

    pub(crate) async fn trigger(&self, namespace: &str, name: &str, host: &str) {
        let spec = json!({
            "broker": "default", "subscriber": {"uri": format!("http://{host}/")},
            "filter": {"attributes": {"type": "order.created"}},
            "delivery": {"retry": 5, "backoffPolicy": "linear", "backoffDelay": "PT1S", "timeout": "PT5S"},
        });
        self.apply::<Trigger>(namespace, name, spec).await;
    }
}
