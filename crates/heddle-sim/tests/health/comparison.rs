//! Which detector sees what: measured while each fault lasts, and compared with the table that the documents show.
//!
//! ```text
//!   resources   conditions, pulses of controllers, the disk         found in the verdict by the detector of its code
//!   heartbeat   synthetic events on the real path                   likewise
//!   accounting  the accounts of real events                         likewise
//!   trace       asking where one event is                           asked of the ledger
//!   smoke       an application made for the purpose, used once      made, used and removed
//! ```

use std::path::Path;
use std::time::Duration;

use heddle_api::health::catalogue::{self, Detector};
use heddle_api::health::{HealthPlane, HealthStatus, NamespaceHealth};
use heddle_api::ledger::{ConsumerTrace, EventState};
use heddle_api::{Application, ApplicationMapping, EventFlow, Trigger};
use heddle_rt::{DiskVfs, Vfs as _};
use kube::Resource;

use crate::faults::Culprit;
use crate::sweep::CaseOutcome;
use crate::users::Users;
use crate::world::World;

/// What a detector says of a fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mark {
    /// All is well, for all it knows.
    #[default]
    Blind,
    /// Something is wrong.
    Detects,
    /// This is wrong.
    Names,
}

impl Mark {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Blind => "no",
            Self::Detects => "something is wrong",
            Self::Names => "yes",
        }
    }
}

/// What every detector said while a fault lasted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Detections {
    pub(crate) resources: Mark,
    pub(crate) trace: Mark,
    pub(crate) smoke: Mark,
    pub(crate) heartbeat: Mark,
    pub(crate) accounting: Mark,
}

impl Detections {
    /// In the order of the columns.
    pub(crate) fn marks(&self) -> [Mark; 5] {
        [
            self.resources,
            self.trace,
            self.smoke,
            self.heartbeat,
            self.accounting,
        ]
    }

    /// Takes in what one verdict rests on.
    pub(crate) fn note(&mut self, found: &NamespaceHealth, culprit: Option<&Culprit>) {
        for (_, plane) in found.verdict.planes.iter() {
            // What has not been measured yet is no finding.
            let pending = [
                catalogue::SUBSCRIBER_UNTRIED.code,
                catalogue::HEARTBEAT_PENDING.code,
            ];
            let Some(fault) = catalogue::find(&plane.reason) else {
                continue;
            };
            if plane.health == HealthStatus::Healthy || pending.contains(&fault.code) {
                continue;
            }
            let object = culprit.and_then(|culprit| culprit.object.as_ref());
            let names = plane.object.is_some() && plane.object.as_ref() == object;
            let mark = if names { Mark::Names } else { Mark::Detects };
            let said = match fault.detector {
                Detector::Resources | Detector::Dependency => &mut self.resources,
                Detector::Heartbeat => &mut self.heartbeat,
                Detector::Accounting => &mut self.accounting,
            };
            *said = mark.max(*said);
        }
    }
}

/// What the ledger says when it is asked where an event is.
pub(crate) fn trace(world: &World, id: &str, culprit: Option<&Culprit>) -> Mark {
    let trace = world.mesh().trace(id, "/test").unwrap();
    let object = culprit.and_then(|culprit| culprit.object.as_deref());
    let Some(event) = trace.events.first() else {
        // One that was refused is told with where it was published, which is the door of the Application.
        let door = trace.refused.first().map(|refused| refused.door.as_str());
        let name = door.and_then(|door| door.rsplit('/').next());
        let own = object.and_then(|object| object.strip_prefix("application/"));
        return match (name, own) {
            (None, _) => Mark::Blind,
            (Some(name), Some(own)) if name == own => Mark::Names,
            (Some(_), _) => Mark::Detects,
        };
    };
    let hop = culprit.and_then(|culprit| culprit.hop.as_deref());
    let is_of_users = culprit.is_some_and(|culprit| culprit.plane == HealthPlane::User);
    let wanted = event.verdicts.iter();
    let wanted: Vec<&ConsumerTrace> = wanted
        .filter(|one| one.state != EventState::Filtered)
        .collect();
    let undelivered = |one: &&&ConsumerTrace| one.state != EventState::Delivered;
    let undelivered: Vec<_> = wanted.iter().filter(undelivered).collect();
    let unmatched = event.summary.contains("not matched");
    // Where nobody wants it, the trace says which term of each filter did not hold.
    let unwanted = wanted.is_empty() && !event.verdicts.is_empty();
    if undelivered.is_empty() && !unmatched && !unwanted {
        return Mark::Blind;
    }
    let waits_at_it = undelivered
        .iter()
        .any(|one| Some(one.consumer.as_str()) == object);
    match waits_at_it || (unmatched && hop == Some("broker")) || (unwanted && is_of_users) {
        true => Mark::Names,
        false => Mark::Detects,
    }
}

/// Whether an event of an application that is made for the purpose arrives. Whoever makes it meets the same API server as the
/// controllers.
pub(crate) async fn smoke(world: &World) -> Mark {
    const HOST: &str = "smoke.example";
    const PATIENCE: Duration = Duration::from_secs(30);
    let users = Users::new(world.api.client(), &world.clock);
    let running = async {
        users.application("smoke", &["smoke"]).await;
        users.mapping("smoke", "default").await;
        users.flow("default", "smoke", "smoke", "smoke").await;
        users.trigger("default", "smoke", HOST).await;
        for number in 0.. {
            let id = format!("smoke-{number}");
            world.publish("smoke", &id, "order.created").await;
            world.pass(1).await;
            if !world.network.received(HOST).is_empty() {
                return;
            }
        }
    };
    let arrived = world.clock.timeout(PATIENCE, running).await.is_ok();
    remove::<Trigger>(world, "default").await;
    remove::<EventFlow>(world, "default").await;
    remove::<ApplicationMapping>(world, "default").await;
    remove::<Application>(world, "").await;
    match arrived {
        true => Mark::Blind,
        false => Mark::Detects,
    }
}

/// It may not have come so far.
async fn remove<K: Resource<DynamicType = ()>>(world: &World, namespace: &str) {
    let api = world.users.api::<K>(namespace);
    drop(api.delete("smoke", &Default::default()).await);
}

/// The table of scenarios and detectors.
pub(crate) fn table(outcomes: &[CaseOutcome]) -> String {
    let mut table = "| what happens | resources | trace | smoke | heartbeat | accounting |\n|---|---|---|---|---|---|\n".to_owned();
    for outcome in outcomes {
        let Some(scenario) = outcome.scenario else {
            continue;
        };
        let marks = outcome.detections.marks().map(Mark::word).join(" | ");
        table.push_str(&format!("| {scenario} | {marks} |\n"));
    }
    table
}

/// A part of the page on health is what was measured. With `HEDDLE_REFRESH` set it becomes so.
pub(crate) fn keep(part: &str, measured: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operating/health.md");
    let page = String::from_utf8(DiskVfs.read(&path).unwrap()).unwrap();
    let (begin, end) = (
        format!("<!-- measured: {part} -->\n\n"),
        "\n<!-- until here -->\n",
    );
    let (before, rest) = page.split_once(&begin).expect("the page has this part");
    let (written, after) = rest.split_once(end).expect("it has an end");
    if std::env::var_os("HEDDLE_REFRESH").is_some() {
        let page = format!("{before}{begin}{measured}{end}{after}");
        DiskVfs.write_atomic(&path, page.as_bytes(), 0o644).unwrap();
        return;
    }
    assert_eq!(
        written, measured,
        "docs/operating/health.md does not tell what was measured; run the test with HEDDLE_REFRESH=1"
    );
}
