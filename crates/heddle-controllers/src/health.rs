//! The controller of health: judges every second, and says so on each Application.
//!
//! ```text
//!   watches ─┐
//!   mesh ────┼─> gather ─> judge ─> roll up ─> board ─> REST, commands, metrics, EventFlows
//!   pulses ──┘                         └─────> status.eventing of the Application
//! ```
//! Promises: a verdict is worked out from what is known now, never carried over; a status is written when the verdict has
//! changed and at most once in ten seconds and object, and what the board shows of an application changes no more often than
//! that; at rest nothing is written. It reconciles no kind of its own and destroys nothing.

mod board;
mod edge;
mod evidence;
mod gather;
mod inventory;
mod judge;
mod metrics;
mod roll_up;
mod subscriber_probe;
#[cfg(test)]
mod tests;
mod topology;
mod way;
mod within;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _};
use heddle_api::dataplane::{DoorReading, MeshReading};
use heddle_api::health::{
    ApplicationHealth, EventingStatus, HealthStatus, MeshHealth, NamespaceHealth, PlaneHealth,
    Verdict,
};
use heddle_api::well_known::{SYSTEM_NAMESPACE, field_manager};
use heddle_api::{Application, Trigger};
use jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

pub use board::{HealthBoard, Report};
use evidence::{ApplicationEvidence, BrokerEvidence, DoorWindow, SharedEvidence};
pub(crate) use gather::{PathStores, target, targets};
pub(crate) use inventory::KindTallies;
pub use metrics::text as metrics_text;
pub use topology::{TopologyQuestion, draw as draw_topology};
pub use way::draw as draw_way;

use crate::{DataPlane, Options};

/// How often everything is judged.
const PERIOD: Duration = Duration::from_secs(1);
/// Judging takes at most this part of the time: with very many applications it is done less often.
const SHARE: u32 = 50;
/// The least time between two changes of what is said of one application.
const THROTTLE: Duration = Duration::from_secs(10);
/// Of something new nobody can tell anything yet; it is not written down unless it stays so.
const SETTLING: Duration = Duration::from_secs(5);
/// How often a trial object is offered to the API server.
const ADMISSION_PERIOD: Duration = Duration::from_secs(30);
/// How long its answers may take. Judging goes on without them.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// What publishers were told counts for so long, looked at in so many pieces.
const DOOR_PIECE: Duration = Duration::from_secs(60);
const DOOR_PIECES: usize = 5;
/// Statuses written at once.
const WRITES_MAX: usize = 16;

/// Judges until the future is dropped.
pub(crate) async fn run(client: Client, options: Options, stores: PathStores) {
    let Some(plane) = options.data_plane.clone() else {
        // Without a mesh there is nothing to be healthy.
        return;
    };
    let mut judge = HealthLoop {
        plane,
        stores,
        admission: Ok(()),
        admitted: None,
        doors: Vec::new(),
        said: HashMap::new(),
        client,
        options,
    };
    loop {
        let took = judge.round().await;
        let clock = judge.options.clock.clone();
        clock.sleep(PERIOD.max(took * SHARE)).await;
    }
}

struct HealthLoop {
    client: Client,
    options: Options,
    plane: Arc<dyn DataPlane>,
    stores: PathStores,
    admission: Result<(), String>,
    /// When admission was last tried.
    admitted: Option<Duration>,
    /// Doors as they were at the beginning of each piece, the oldest first.
    doors: Vec<(Duration, HashMap<String, DoorReading>)>,
    said: HashMap<String, PublishedHealth>,
}

/// What was last said of an application.
struct PublishedHealth {
    uid: Option<String>,
    eventing: EventingStatus,
    pairs: Vec<NamespaceHealth>,
    /// When it last changed; `None` while nobody can tell anything yet, which may become news at once.
    changed: Option<Duration>,
    /// When it was first looked at.
    begun: Duration,
    /// When a write of it was last tried.
    written: Option<Duration>,
}

impl HealthLoop {
    /// Gives how long judging took, without waiting for anybody: an API server that does not answer makes no pause longer.
    async fn round(&mut self) -> Duration {
        self.try_admission().await;
        let (now, clock) = (self.options.clock.now(), self.options.clock.monotonic());
        let now = whole_seconds(now);
        let reading = self.plane.reading();
        self.turn_doors(&reading, clock);
        let shared = self.shared(&reading, clock);
        let (evidence, brokers) = {
            let doors = self.door_windows(&reading);
            self.stores.gather(&reading, |name| {
                doors.get(name).copied().unwrap_or_default()
            })
        };
        let mut changed = self.forget_absent(&evidence);
        for application in &evidence {
            changed |= self.judge(application, &shared, now, clock);
        }
        let gathered = (evidence, brokers);
        self.publish(reading, &shared, gathered, changed, now, clock);
        let took = self.options.clock.monotonic().saturating_sub(clock);
        self.write(clock).await;
        took
    }

    fn shared(&self, reading: &MeshReading, now: Duration) -> SharedEvidence {
        let unaccounted = reading.consumers.iter().filter(|one| one.unaccounted > 0);
        SharedEvidence {
            log: Some(reading.log.clone()),
            routing: reading.routing,
            store: reading.store.clone(),
            admission: self.admission.clone(),
            pulses: self.options.pulses.read(now),
            canary: reading.canary.clone(),
            edge: reading.edge.clone(),
            unaccounted: unaccounted.map(|one| one.key.clone()).collect(),
        }
    }

    /// Works out what is to be said of an application. Gives whether that is news.
    fn judge(
        &mut self,
        evidence: &ApplicationEvidence,
        shared: &SharedEvidence,
        now: Timestamp,
        clock: Duration,
    ) -> bool {
        let known = self.said.get(&evidence.name);
        let pairs: Vec<NamespaceHealth> = evidence
            .namespaces
            .iter()
            .map(|pair| {
                let before = known.and_then(|said| said.pair(&pair.namespace));
                let verdict = judge::pair(evidence, pair, shared, before, now);
                NamespaceHealth {
                    name: pair.namespace.clone(),
                    state: judge::reached(evidence, pair, verdict.planes.data.health),
                    verdict,
                    heartbeat: None,
                }
            })
            .collect();
        let own = judge::application(evidence, shared, None, now);
        let before = known.map(|said| &said.eventing.verdict);
        let eventing = roll_up::application(own, pairs.clone(), before, now);
        let uid = self
            .stores
            .applications
            .get(&ObjectRef::new(&evidence.name))
            .and_then(|application| application.uid());
        match self
            .said
            .get_mut(&evidence.name)
            .filter(|said| said.uid == uid)
        {
            Some(said) if essence(&said.eventing) == essence(&eventing) => {
                // Evidence may be newer; that is no news.
                (said.eventing, said.pairs) = (eventing, pairs);
                false
            }
            Some(said)
                if said
                    .changed
                    .is_some_and(|at| clock.saturating_sub(at) < THROTTLE) =>
            {
                false
            }
            Some(said) => {
                (said.eventing, said.pairs, said.changed) = (eventing, pairs, Some(clock));
                true
            }
            None => {
                let said = PublishedHealth {
                    uid,
                    changed: Some(clock)
                        .filter(|_| eventing.verdict.health != HealthStatus::Unknown),
                    eventing,
                    pairs,
                    begun: clock,
                    written: None,
                };
                self.said.insert(evidence.name.clone(), said);
                true
            }
        }
    }

    fn forget_absent(&mut self, evidence: &[ApplicationEvidence]) -> bool {
        let before = self.said.len();
        let is_known = |name: &String| {
            evidence
                .binary_search_by(|one| one.name.as_str().cmp(name))
                .is_ok()
        };
        self.said.retain(|name, _| is_known(name));
        self.said.len() != before
    }

    fn publish(
        &self,
        reading: MeshReading,
        shared: &SharedEvidence,
        (evidence, brokers): (Vec<ApplicationEvidence>, Vec<BrokerEvidence>),
        changed: bool,
        now: Timestamp,
        clock: Duration,
    ) {
        let board = &self.options.health;
        let before = board.published();
        let applications: BTreeMap<String, ApplicationHealth> = self
            .said
            .iter()
            .map(|(name, said)| {
                let health = ApplicationHealth {
                    name: name.clone(),
                    eventing: said.eventing.clone(),
                };
                (name.clone(), health)
            })
            .collect();
        let heartbeats: HashMap<(&str, &str), _> = reading
            .heartbeats
            .iter()
            .map(|one| ((&*one.application, &*one.namespace), one))
            .collect();
        let pairs: BTreeMap<(String, String), NamespaceHealth> = self
            .said
            .iter()
            .flat_map(|(name, said)| said.pairs.iter().map(move |pair| (name, pair)))
            .map(|(name, pair)| {
                let mut pair = pair.clone();
                let reading = heartbeats.get(&(&**name, &*pair.name));
                pair.heartbeat = reading.map(|reading| board::heartbeat_of(reading, now));
                ((name.clone(), pair.name.clone()), pair)
            })
            .collect();
        let known = before.as_ref().map(|before| &before.mesh.verdict);
        let (verdict, counts) = roll_up::mesh(applications.values(), shared, known, now);
        let turned = known.is_none_or(|known| stilled(known) != stilled(&verdict));
        let healths = pairs
            .iter()
            .map(|((_, namespace), pair)| (namespace.as_str(), pair.verdict.health));
        let mesh = MeshHealth {
            name: "mesh".to_owned(),
            verdict,
            at: now,
            applications: counts,
            namespaces: roll_up::namespaces(healths),
            heartbeat: Some(board::heartbeat_of(&reading.canary, now)),
            application_list: None,
        };
        let revision = before.as_ref().map_or(0, |before| before.revision);
        let revision = revision + u64::from(changed || turned);
        let earlier = before.map(|before| (before.judged, Arc::clone(&before.reading)));
        board.publish(Report {
            judged: clock,
            revision,
            mesh,
            applications,
            pairs,
            pulses: shared.pulses.clone(),
            reading: Arc::new(reading),
            earlier,
            silent: false,
            admission: self.admission.clone().err(),
            evidence: Arc::new(evidence),
            brokers: Arc::new(brokers),
        });
    }

    /// Writes the statuses that do not say what was found.
    async fn write(&mut self, clock: Duration) {
        let mut due: Vec<(Arc<Application>, EventingStatus)> = Vec::new();
        for (name, said) in &mut self.said {
            let Some(application) = self.stores.applications.get(&ObjectRef::new(name)) else {
                continue;
            };
            let known = application
                .status
                .as_ref()
                .and_then(|status| status.eventing.as_ref());
            let same = known.is_some_and(|known| essence(known) == essence(&said.eventing));
            // What was just written may not have come back yet.
            let recent = |at: Duration| clock.saturating_sub(at) < THROTTLE;
            let early = clock.saturating_sub(said.begun) < SETTLING;
            let unsettled = early && said.eventing.verdict.health == HealthStatus::Unknown;
            if same || unsettled || said.written.is_some_and(recent) {
                continue;
            }
            said.written = Some(clock);
            // Evidence is told where it is asked for: here it would be that of the moment in which this was written.
            due.push((application, essence(&said.eventing)));
        }
        let mut writes = Vec::with_capacity(due.len());
        for (application, eventing) in due {
            writes.push(write_status(self.client.clone(), application, eventing).boxed());
        }
        let mut writing = futures::stream::iter(writes).buffer_unordered(WRITES_MAX);
        let written = async { while let Some(()) = writing.next().await {} };
        let clock = self.options.clock.clone();
        if clock.timeout(REQUEST_TIMEOUT, written).await.is_err() {
            tracing::debug!("the health could not be written in time; it is tried again");
        }
    }

    /// Offers a Trigger for a trial now and then: whether anything can be declared is known before somebody needs it.
    async fn try_admission(&mut self) {
        let now = self.options.clock.monotonic();
        let recent = |at: Duration| now.saturating_sub(at) < ADMISSION_PERIOD;
        if self.admitted.is_some_and(recent) {
            return;
        }
        self.admitted = Some(now);
        let api = Api::<Trigger>::namespaced(self.client.clone(), SYSTEM_NAMESPACE);
        let params = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let trial = trial();
        let creating = api.create(&params, &trial);
        let clock = self.options.clock.clone();
        self.admission = match clock.timeout(REQUEST_TIMEOUT, creating).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(late) => Err(format!("no answer within {:?}", late.0)),
        };
    }

    /// Begins a new piece of the time in which doors are looked at.
    fn turn_doors(&mut self, reading: &MeshReading, now: Duration) {
        let begun = self.doors.last().map(|(begun, _)| *begun);
        if begun.is_some_and(|begun| now.saturating_sub(begun) < DOOR_PIECE) {
            return;
        }
        let doors = reading.doors.iter();
        let doors = doors.map(|door| (door.application.clone(), door.clone()));
        self.doors.push((now, doors.collect()));
        if self.doors.len() > DOOR_PIECES {
            self.doors.remove(0);
        }
    }

    fn door_windows(&self, reading: &MeshReading) -> HashMap<String, DoorWindow> {
        let earliest = self.doors.first().map(|(_, doors)| doors);
        let windows = reading.doors.iter().map(|door| {
            let earlier = earliest.and_then(|doors| doors.get(&door.application));
            (door.application.clone(), gather::between(earlier, door))
        });
        windows.collect()
    }
}

impl PublishedHealth {
    fn pair(&self, namespace: &str) -> Option<&Verdict> {
        let found = self.pairs.iter().find(|pair| pair.name == namespace)?;
        Some(&found.verdict)
    }
}

/// What of a status is news when it changes: not what was seen as evidence, which changes all the time.
fn essence(eventing: &EventingStatus) -> EventingStatus {
    let mut eventing = eventing.clone();
    quiet(&mut eventing.verdict);
    for namespace in &mut eventing.namespaces {
        quiet(&mut namespace.verdict);
        namespace.heartbeat = None;
    }
    eventing
}

/// A verdict without what was seen as evidence.
fn stilled(verdict: &Verdict) -> Verdict {
    let mut verdict = verdict.clone();
    quiet(&mut verdict);
    verdict
}

fn quiet(verdict: &mut Verdict) {
    verdict.evidence = None;
    let planes = &mut verdict.planes;
    let planes: [&mut PlaneHealth; 4] = [
        &mut planes.control,
        &mut planes.data,
        &mut planes.user,
        &mut planes.dependencies,
    ];
    for plane in planes {
        plane.evidence = None;
    }
}

/// One request, and only to the object that was looked at. Whether it succeeded is seen by the watch.
async fn write_status(client: Client, application: Arc<Application>, eventing: EventingStatus) {
    let name = application.name_any();
    let patch = json!({
        "apiVersion": "applicationconnector.kyma-project.io/v1alpha1", "kind": "Application",
        "metadata": {"name": name, "uid": application.uid()}, "status": {"eventing": eventing},
    });
    let api = Api::<Application>::all(client);
    let params = PatchParams::apply(field_manager::HEALTH).force();
    if let Err(error) = api
        .patch_status(&name, &params, &Patch::Apply(&patch))
        .await
    {
        tracing::debug!(application = name, %error, "the health could not be written; it is tried again");
    }
}

/// A Trigger that nobody will see.
fn trial() -> Trigger {
    let trial = json!({
        "apiVersion": "eventing.knative.dev/v1", "kind": "Trigger",
        "metadata": {"name": "heddle-admission-trial", "namespace": SYSTEM_NAMESPACE},
        "spec": {"broker": "heddle-admission-trial", "subscriber": {"uri": "http://127.0.0.1/"}},
    });
    serde_json::from_value(trial).expect("a Trigger with a broker and a subscriber")
}

fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
