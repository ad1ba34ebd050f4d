//! The sweep: each fault in a world of its own, watched every second from the outside, repaired, and watched until it heals.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use heddle_api::health::{HealthPlane, HealthStatus, NamespaceHealth, catalogue};
use parking_lot::Mutex;

use crate::comparison::{self, Detections, Mark};
use crate::faults::{self, Culprit, FaultCase, NOT_HERE};
use crate::world::{PAIRS, World, tell};

/// How long a fault is watched after it was injected. Accounts tell of backlogs after a minute.
const WATCHED_SECONDS: u64 = 75;
/// How long it may take to heal: what publishers were told counts for five minutes.
const HEALING_SECONDS: u64 = 420;
/// Of the faults, so many in a hundred must be named exactly. The plane must always be right.
const EXACT_PERCENT: usize = 95;

/// Entries of the catalogue that no fault here brings about, and who does.
const FOUND_ELSEWHERE: &[(&str, &str)] = &[
    (
        "BalanceViolated",
        "a fault of heddle itself; the judge is tried with invented accounts",
    ),
    (
        "HeartbeatStale",
        "needs a process that sleeps; the judge is tried with invented ages",
    ),
    (
        "HeartbeatMissing",
        "told only where no hop is known; the judge is tried without one",
    ),
    (
        "JournalStalled",
        "the journal shares the disk of the log, which is told first; the mesh's own tests fill it alone",
    ),
    (
        "LogFilling",
        "the mesh's own tests read how full a disk is; the judge is tried with invented numbers",
    ),
    (
        "NotRouting",
        "told in the first moments of a process; the judge is tried without a table",
    ),
    (
        "FlowNotReady",
        "told only where everything that a flow waits for is well",
    ),
    (
        "SubscriberUnreachable",
        "a subscriber is tried only where that is asked for, by the mesh's own tests and the end-to-end suite",
    ),
    ("EdgeCertificateExpired", OF_THE_EDGE),
    ("EdgeCertificateUntrusted", OF_THE_EDGE),
    ("EdgeRefuses", OF_THE_EDGE),
    ("EdgeTimedOut", OF_THE_EDGE),
    ("EdgeUnreachable", OF_THE_EDGE),
    ("EdgeUnproven", OF_THE_EDGE),
];

/// There is no network before the listener here.
const OF_THE_EDGE: &str =
    "real listeners are tried, each wrong in its own way, and the binary behind a proxy";

/// What came of one fault.
pub(crate) struct CaseOutcome {
    pub(crate) what: &'static str,
    expected: Option<Culprit>,
    named: Option<Culprit>,
    /// When it was first named as it should be.
    pub(crate) seconds: Option<u64>,
    health: HealthStatus,
    reasons: BTreeSet<String>,
    pub(crate) scenario: Option<&'static str>,
    pub(crate) detections: Detections,
    /// Whoever should have been spared, and what did not heal.
    troubles: BTreeSet<String>,
}

impl CaseOutcome {
    fn new(case: &FaultCase) -> Self {
        Self {
            what: case.what,
            expected: case.culprit.clone(),
            named: None,
            seconds: None,
            health: HealthStatus::Unknown,
            reasons: BTreeSet::new(),
            scenario: case.scenario,
            detections: Detections::default(),
            troubles: BTreeSet::new(),
        }
    }

    fn is_exact(&self) -> bool {
        self.named == self.expected
    }

    fn is_right_plane(&self) -> bool {
        let plane = |culprit: &Option<Culprit>| culprit.as_ref().map(|one| one.plane);
        plane(&self.named) == plane(&self.expected)
    }

    /// One look at the board.
    fn look(&mut self, world: &World, case: &FaultCase, second: u64) {
        let mesh = world.mesh_health();
        for (_, plane) in mesh.verdict.planes.iter() {
            self.reasons.insert(plane.reason.clone());
        }
        if let Some(found) = world.pair(case.pair) {
            self.health = found.verdict.health;
            self.named = named(&found, case.culprit.as_ref());
            self.reasons.insert(found.verdict.reason.clone());
            for (_, plane) in found.verdict.planes.iter() {
                self.reasons.insert(plane.reason.clone());
            }
            self.detections.note(&found, case.culprit.as_ref());
            if self.is_exact() {
                self.seconds.get_or_insert(second);
            }
        }
        for pair in case.spared {
            let found = world.pair(*pair);
            if !world.is_well(*pair) {
                let said = found.map(|found| (found.verdict.health, found.verdict.reason));
                self.troubles
                    .insert(format!("{pair:?} should have been spared: {said:?}"));
            }
        }
    }
}

/// What a verdict says is broken. What users bring is told on their plane alone.
fn named(found: &NamespaceHealth, expected: Option<&Culprit>) -> Option<Culprit> {
    let user = &found.verdict.planes.user;
    let is_told = matches!(
        user.health,
        HealthStatus::Unhealthy | HealthStatus::Degraded
    );
    if expected.is_some_and(|one| one.plane == HealthPlane::User) && is_told {
        return Some(Culprit {
            plane: HealthPlane::User,
            hop: user.hop.clone(),
            object: user.object.clone(),
        });
    }
    let verdict = &found.verdict;
    Some(Culprit {
        plane: verdict.plane?,
        hop: verdict.hop.clone(),
        object: verdict.object.clone(),
    })
}

/// Injects a fault, watches it, repairs it and waits until all is well again.
pub(crate) fn run(case: &FaultCase) -> CaseOutcome {
    tell(|world| async move {
        world.set_up().await;
        let mut outcome = CaseOutcome::new(case);
        let breaking = async {
            (case.inject)(&world).await;
            if case.traced.is_none() {
                world.pass(5).await;
                world.publish(case.pair.0, "traced", "order.created").await;
            }
            world.pass(WATCHED_SECONDS).await;
        };
        let looking = async {
            for second in 0_u64.. {
                outcome.look(&world, case, second);
                world.pass(1).await;
            }
        };
        tokio::select! {
            () = breaking => {}
            () = looking => {}
        }
        if case.scenario.is_some() {
            let traced = case.traced.unwrap_or("traced");
            outcome.detections.trace = comparison::trace(&world, traced, case.culprit.as_ref());
            outcome.detections.smoke = comparison::smoke(&world).await;
        }
        if let Some(repair) = case.repair {
            repair(&world).await;
            if !heals(&world, case).await {
                let said: Vec<_> = PAIRS.iter().map(|pair| world.pair(*pair)).collect();
                let said = format!("it does not heal: {said:#?}");
                outcome.troubles.insert(said);
            }
        }
        outcome
    })
}

/// Waits until all is well, of the pair that was looked at its user plane too.
async fn heals(world: &World, case: &FaultCase) -> bool {
    let is_well = |world: &World| {
        let own = world.pair(case.pair);
        let user_is_well = own.as_ref().is_none_or(|own| {
            let user = own.verdict.planes.user.health;
            matches!(user, HealthStatus::Healthy | HealthStatus::Unknown)
        });
        let own_is_well = own.is_none_or(|own| own.verdict.health == HealthStatus::Healthy);
        own_is_well && user_is_well && PAIRS.iter().all(|pair| world.is_well(*pair))
    };
    for _ in 0..HEALING_SECONDS {
        if is_well(world) {
            return true;
        }
        world.pass(1).await;
    }
    false
}

/// Those of which something is not as it should be; all of them if nothing is wrong with any.
fn report(outcomes: &[CaseOutcome]) -> String {
    let is_wrong = |one: &&CaseOutcome| !one.is_exact() || !one.troubles.is_empty();
    let wrong = outcomes.iter().filter(is_wrong);
    let told: Vec<&CaseOutcome> = match wrong.clone().count() {
        0 => outcomes.iter().collect(),
        _ => wrong.collect(),
    };
    let line = |outcome: &CaseOutcome| {
        format!(
            "{}: {:?} after {:?} s, {:?}\n   expected {:?}\n   named    {:?}\n   reasons  {:?}\n   {:?}",
            outcome.what,
            outcome.health,
            outcome.seconds,
            outcome.detections,
            outcome.expected,
            outcome.named,
            outcome.reasons,
            outcome.troubles,
        )
    };
    let lines: Vec<String> = told.into_iter().map(line).collect();
    lines.join("\n")
}

/// Every fault in a world of its own. Two threads, because they know nothing of each other.
fn outcomes(cases: &[FaultCase]) -> Vec<CaseOutcome> {
    let (next, found) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((index, case)) = cases
                    .iter()
                    .enumerate()
                    .nth(next.fetch_add(1, Ordering::Relaxed))
                {
                    let outcome = run(case);
                    found.lock().insert(index, outcome);
                }
            });
        }
    });
    found.into_inner().into_values().collect()
}

/// What was injected and named, and what cannot be injected here.
fn faults_table(outcomes: &[CaseOutcome]) -> String {
    let mut table = "| fault | plane | hop | object |\n|---|---|---|---|\n".to_owned();
    for outcome in outcomes {
        let (plane, hop, object) = match &outcome.named {
            None => ("none: it stays Healthy", "", ""),
            Some(culprit) => (
                culprit.plane.word(),
                culprit.hop.as_deref().unwrap_or_default(),
                culprit.object.as_deref().unwrap_or_default(),
            ),
        };
        let object = match object {
            "" => String::new(),
            object => format!("`{object}`"),
        };
        table.push_str(&format!(
            "| {} | {plane} | {hop} | {object} |\n",
            outcome.what
        ));
    }
    table.push_str("\n| not tried | because |\n|---|---|\n");
    for (what, why) in NOT_HERE {
        table.push_str(&format!("| {what} | {why} |\n"));
    }
    table
}

#[test]
fn every_fault_is_named_spares_others_and_heals_by_itself() {
    // One of them, to look at it closely: a part of what it is called.
    let only = std::env::var_os("HEDDLE_FAULT").map(|only| only.to_string_lossy().into_owned());
    let mut cases = faults::all();
    cases.retain(|case| only.as_ref().is_none_or(|only| case.what.contains(only)));
    let outcomes = outcomes(&cases);
    assert!(only.is_none(), "{}", report(&outcomes));
    let troubled = outcomes.iter().filter(|one| !one.troubles.is_empty());
    assert_eq!(troubled.count(), 0, "{}", report(&outcomes));
    let wrong_planes = outcomes.iter().filter(|one| !one.is_right_plane());
    assert_eq!(wrong_planes.count(), 0, "{}", report(&outcomes));
    let exact = outcomes.iter().filter(|one| one.is_exact()).count();
    let enough = exact * 100 >= outcomes.len() * EXACT_PERCENT;
    assert!(enough, "{exact} are exact\n{}", report(&outcomes));
    // Whoever adds to the catalogue says how it comes about.
    let reasons: BTreeSet<&str> = outcomes
        .iter()
        .flat_map(|one| one.reasons.iter().map(String::as_str))
        .collect();
    let elsewhere = |code: &str| FOUND_ELSEWHERE.iter().any(|(known, _)| *known == code);
    let codes = catalogue::ALL.iter().map(|fault| fault.code);
    let missing: Vec<&str> = codes
        .filter(|code| !reasons.contains(code) && !elsewhere(code))
        .collect();
    assert!(
        missing.is_empty(),
        "no fault brings these about: {missing:?}"
    );
    // What conditions, heartbeats and accounts see together is everything.
    for outcome in outcomes.iter().filter(|one| one.scenario.is_some()) {
        let marks = outcome.detections;
        let best = marks.resources.max(marks.heartbeat).max(marks.accounting);
        assert_ne!(best, Mark::Blind, "{} is seen by nobody", outcome.what);
    }
    comparison::keep("detectors", &comparison::table(&outcomes));
    comparison::keep("faults", &faults_table(&outcomes));
}
