//! The newest verdicts, for whoever shows them: REST, commands, metrics, other controllers.
//!
//! One writer, the judge; readers share what it published and never wait. A judge that has fallen silent is noticed here: what
//! it last said is then shown as unknown.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use heddle_api::dataplane::MeshReading;
use heddle_api::health::inventory::Inventory;
use heddle_api::health::{ApplicationHealth, HeartbeatHealth, MeshHealth, NamespaceHealth};
use heddle_rt::Clock;
use tokio::sync::watch;

use super::evidence::{ApplicationEvidence, BrokerEvidence};
use super::inventory::{self, KindTallies};
use super::roll_up;
use crate::pulse::{PulseReading, STALLED_AFTER};

/// Everything that was judged at one moment.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// When, by the monotonic clock.
    pub judged: Duration,
    /// Grows with each report in which some verdict differs from the one before.
    pub revision: u64,
    pub mesh: MeshHealth,
    /// By name; as their status has it.
    pub applications: BTreeMap<String, ApplicationHealth>,
    /// All of them, however many an application has.
    pub pairs: BTreeMap<(String, String), NamespaceHealth>,
    pub pulses: Vec<PulseReading>,
    /// What the mesh said of itself.
    pub reading: Arc<MeshReading>,
    /// What it had said for the report before, and when by the monotonic clock: what lies between the two gives rates.
    pub earlier: Option<(Duration, Arc<MeshReading>)>,
    /// Whether the judge has fallen silent, so that nothing is known any more.
    pub silent: bool,
    /// Whether a trial object was admitted; if not, the answer.
    pub admission: Option<String>,
    /// What the verdicts were made from.
    pub(super) evidence: Arc<Vec<ApplicationEvidence>>,
    /// Brokers that no application leads to, for who looks at the whole picture.
    pub(super) brokers: Arc<Vec<BrokerEvidence>>,
}

/// Where reports are published. Clones are the same board.
#[derive(Debug, Clone)]
pub struct HealthBoard {
    newest: Arc<ArcSwapOption<Report>>,
    tallies: Arc<ArcSwapOption<KindTallies>>,
    changes: watch::Sender<u64>,
}

impl Default for HealthBoard {
    fn default() -> Self {
        Self {
            newest: Arc::default(),
            tallies: Arc::default(),
            changes: watch::Sender::new(0),
        }
    }
}

impl HealthBoard {
    /// For the judge, and for tests of whoever reads.
    pub fn publish(&self, report: Report) {
        let revision = report.revision;
        self.newest.store(Some(Arc::new(report)));
        self.changes.send_replace(revision);
    }

    /// The newest report as it was published; `None` before the first.
    #[must_use]
    pub fn published(&self) -> Option<Arc<Report>> {
        self.newest.load_full()
    }

    /// The newest report, as it may be shown now: nothing is known of what nobody has judged for a while.
    #[must_use]
    pub fn report(&self, clock: &Clock) -> Arc<Report> {
        let Some(newest) = self.newest.load_full() else {
            return Arc::new(unjudged(clock));
        };
        let age = clock.monotonic().saturating_sub(newest.judged);
        if age <= STALLED_AFTER {
            return newest;
        }
        let mut silent = Report::clone(&newest);
        (silent.silent, silent.earlier) = (true, None);
        let seconds = age.as_secs();
        roll_up::silent(&mut silent.mesh.verdict, seconds);
        for application in silent.applications.values_mut() {
            roll_up::silent(&mut application.eventing.verdict, seconds);
            for namespace in &mut application.eventing.namespaces {
                roll_up::silent(&mut namespace.verdict, seconds);
            }
        }
        for pair in silent.pairs.values_mut() {
            roll_up::silent(&mut pair.verdict, seconds);
        }
        Arc::new(silent)
    }

    /// The judge can count objects from now on.
    pub(crate) fn count_by(&self, tallies: KindTallies) {
        self.tallies.store(Some(Arc::new(tallies)));
    }

    /// Everything that is looked at, counted now.
    pub async fn inventory(&self, clock: &Clock) -> Inventory {
        let report = self.report(clock);
        let tallies = self.tallies.load_full();
        let mut inventory = inventory::of(&report, tallies.as_deref());
        if let Some(tallies) = tallies {
            tallies.count_records(&mut inventory).await;
        }
        inventory
    }

    /// Told of each report, with its revision.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

/// What is shown before anything was judged.
fn unjudged(clock: &Clock) -> Report {
    let mut report = Report {
        mesh: MeshHealth {
            name: "mesh".to_owned(),
            at: clock.now(),
            ..MeshHealth::default()
        },
        ..Report::default()
    };
    let verdict = &mut report.mesh.verdict;
    verdict.since = clock.now();
    verdict.reason = "NotYetObserved".to_owned();
    verdict.message = "nothing was judged yet".to_owned();
    verdict.remedy = "wait a moment".to_owned();
    report
}

/// The numbers of synthetic events, as they are told.
pub(super) fn heartbeat_of(
    reading: &heddle_api::dataplane::HeartbeatReading,
    now: jiff::Timestamp,
) -> HeartbeatHealth {
    let seconds = |duration: Option<Duration>| duration.map(|one| one.as_secs_f64());
    let probed = reading.age.or(reading.since);
    HeartbeatHealth {
        age_seconds: seconds(reading.age),
        end_to_end_seconds: seconds(reading.end_to_end),
        interval_seconds: reading.interval.as_secs_f64(),
        last_probe: probed.and_then(|age| now.checked_sub(age).ok()),
    }
}
