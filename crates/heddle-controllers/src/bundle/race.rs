//! Every order of what fronts do to get an instance and what the controllers of bundles and revisions do to get rid of
//! both: in none is an instance accepted whose bundle or revision is gone.
//!
//! Requests are atomic, and anything can happen between two of them. Fronts and controllers are little machines, one
//! request a step; what the controllers decide is decided by the functions they really use. States that were met before are
//! not explored again, but the orders that lead through them are counted.

use std::collections::HashMap;
use std::sync::LazyLock;

use heddle_api::bundle::{Absence, BundlePhase, BundleStatus, Mark, MarkReason, Seen};
use heddle_api::evidence::Credentials;
use heddle_api::{Bundle, BundleRevision, Registry};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{ApiResource, DynamicObject};
use parking_lot::Mutex;
use serde_json::json;

use super::phase::{self, PhaseInputs, RegistryView};
use crate::bundle_revision;
use crate::usage::Usage;

/// Rounds of each controller; more would only repeat what these have done.
const ROUNDS: u8 = 4;

/// What a careless author would have done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Planted {
    Nothing,
    /// The sweeper looks for users, writes that it sweeps, and removes.
    LooksBeforeItWrites,
    /// The front looks at the bundle and makes the instance then.
    FrontLooksFirst,
    /// The front does not look whether the revision stays.
    FrontTrustsItsPin,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    bundle: Option<Kept>,
    revision: Option<Kept>,
    /// Whether the registry's readings prove the bundle's absence.
    is_absent: bool,
    /// Whether new instances get the revision.
    is_current: bool,
    /// One bit per instance.
    instances: u8,
    fronts: Vec<Front>,
    sweeper: Round,
    collector: Round,
    /// Whether the registry will show the bundle again at some time.
    comes_back: bool,
    /// Bit of an instance that was there before, and will go at some time.
    leaver: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Kept {
    phase: Phase,
    is_deleted: bool,
    version: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Phase {
    Live,
    Marked,
    Sweeping,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Front {
    Make,
    LookAtBundle,
    LookAtRevision,
    Undo,
    Accepted,
    Refused,
}

/// Where a controller is in its reconcile, and what it knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Round {
    step: u8,
    left: u8,
    copy: Option<Kept>,
    is_absent: bool,
    /// What the collector read of the bundle: whether it is there.
    has_bundle: bool,
    is_current: bool,
    users: u8,
    is_used: Option<bool>,
}

const IDLE: Round = Round {
    step: 0,
    left: ROUNDS,
    copy: None,
    is_absent: false,
    has_bundle: false,
    is_current: false,
    users: 0,
    is_used: None,
};

fn beginning(fronts: usize) -> State {
    let kept = |phase| {
        Some(Kept {
            phase,
            is_deleted: false,
            version: 0,
        })
    };
    State {
        bundle: kept(Phase::Marked),
        revision: kept(Phase::Live),
        is_absent: true,
        is_current: true,
        instances: 0,
        fronts: vec![Front::Make; fronts],
        sweeper: IDLE,
        collector: IDLE,
        comes_back: false,
        leaver: 0,
    }
}

fn now() -> Timestamp {
    Timestamp::from_second(1_000_000).unwrap()
}

/// What the controller of bundles makes of what it read.
fn inputs(copy: Kept, is_absent: bool, is_used: Option<bool>) -> PhaseInputs {
    static VIEW: LazyLock<RegistryView> = LazyLock::new(|| {
        let registry: Registry = serde_json::from_value(json!({
            "apiVersion": "heddle.dev/v1alpha1", "kind": "Registry", "metadata": {"name": "hub"},
            "spec": {"type": "apiv2"},
        }))
        .unwrap();
        phase::view(&registry)
    });
    let absence = Absence {
        reason: MarkReason::TagRemoved,
        readings: 1,
        sync_run: "run".to_owned(),
    };
    let mark = Mark {
        reason: MarkReason::TagRemoved,
        since: Time(Timestamp::UNIX_EPOCH),
        sync_run: Some("run".to_owned()),
    };
    PhaseInputs {
        before: BundleStatus {
            phase: match copy.phase {
                Phase::Live => BundlePhase::Live,
                Phase::Marked => BundlePhase::Marked,
                Phase::Sweeping => BundlePhase::Sweeping,
            },
            mark: (copy.phase != Phase::Live).then_some(mark),
            seen: Some(Seen {
                absence: is_absent.then_some(absence),
                ..Seen::default()
            }),
            ..BundleStatus::default()
        },
        is_withdrawn: false,
        is_deleted: copy.is_deleted,
        registry: Some(VIEW.clone()),
        is_used,
    }
}

impl State {
    /// The state after the next request of a process; `None` if it has nothing left to do.
    fn next(&self, process: usize, planted: Planted) -> Option<Self> {
        let mut state = self.clone();
        let fronts = self.fronts.len();
        match process {
            number if number < fronts => state.front(number, planted)?,
            number if number == fronts => state.sweep(planted)?,
            number if number == fronts + 1 => state.collect()?,
            number if number == fronts + 2 => {
                (state.comes_back && state.bundle.is_some()).then_some(())?;
                state.comes_back = false;
                state.is_absent = false;
                write(&mut state.bundle, |_| {});
            }
            _ => {
                (state.leaver != 0).then_some(())?;
                state.instances &= !state.leaver;
                state.leaver = 0;
            }
        }
        Some(state)
    }

    fn processes(&self) -> usize {
        self.fronts.len() + 4
    }

    fn front(&mut self, number: usize, planted: Planted) -> Option<()> {
        let looks_first = planted == Planted::FrontLooksFirst;
        let is_offered = (self.bundle).is_some_and(|bundle| bundle.phase != Phase::Sweeping);
        let after_looking = if planted == Planted::FrontTrustsItsPin {
            Front::Accepted
        } else {
            Front::LookAtRevision
        };
        let front = &mut self.fronts[number];
        *front = match *front {
            // Its catalog may be old, so it begins whatever is so by now.
            Front::Make if looks_first && is_offered => Front::LookAtRevision,
            Front::Make if looks_first => Front::Refused,
            Front::LookAtRevision if looks_first => {
                self.instances |= 1 << number;
                Front::Accepted
            }
            Front::Make => {
                self.instances |= 1 << number;
                Front::LookAtBundle
            }
            Front::LookAtBundle if is_offered => after_looking,
            Front::LookAtBundle => Front::Undo,
            Front::LookAtRevision => match self.revision {
                Some(revision) if !revision.is_deleted => Front::Accepted,
                _ => Front::Undo,
            },
            Front::Undo => {
                self.instances &= !(1 << number);
                Front::Refused
            }
            Front::Accepted | Front::Refused => return None,
        };
        Some(())
    }

    /// One request of the controller of bundles.
    fn sweep(&mut self, planted: Planted) -> Option<()> {
        let mut round = self.sweeper;
        match round.step {
            0 => {
                (round.left > 0).then_some(())?;
                round.copy = Some(self.bundle?);
                round.is_absent = self.is_absent;
                round.is_used = None;
                round.step = 1;
            }
            1 => {
                let inputs = inputs(round.copy?, round.is_absent, None);
                if phase::is_to_look(&inputs, now()) {
                    round.is_used = Some(self.instances != 0);
                }
                round.step = 2;
            }
            2 => {
                round.step = 3;
                let copy = round.copy?;
                let inputs = inputs(copy, round.is_absent, round.is_used);
                let is_same = self.bundle.is_some_and(|live| live.version == copy.version);
                if phase::is_to_go(&inputs, now()) && is_same {
                    remove(&mut self.bundle);
                } else if phase::is_to_sweep(&inputs, now()) && is_same {
                    write(&mut self.bundle, |bundle| bundle.phase = Phase::Sweeping);
                    round.copy = self.bundle;
                    if planted == Planted::LooksBeforeItWrites {
                        round.step = 4;
                    }
                }
            }
            3 => {
                let inputs = inputs(round.copy?, round.is_absent, round.is_used);
                let phase = match phase::phase(&inputs, now()).0 {
                    BundlePhase::Live => Phase::Live,
                    BundlePhase::Marked => Phase::Marked,
                    BundlePhase::Sweeping => Phase::Sweeping,
                };
                if phase != round.copy?.phase {
                    write(&mut self.bundle, |bundle| bundle.phase = phase);
                }
                round = Round {
                    left: round.left - 1,
                    ..IDLE
                };
            }
            _ => {
                remove(&mut self.bundle);
                let is_gone = self.bundle.is_none();
                round.step = if is_gone { 0 } else { 4 };
                round.left = if is_gone { 0 } else { round.left };
            }
        }
        self.sweeper = round;
        Some(())
    }

    /// One request of the controller of revisions.
    fn collect(&mut self) -> Option<()> {
        let mut round = self.collector;
        match round.step {
            0 => {
                (round.left > 0).then_some(())?;
                round.copy = Some(self.revision?);
                round.step = 1;
            }
            1 => {
                round.has_bundle = self.bundle.is_some();
                round.is_current = self.is_current;
                round.step = 2;
            }
            2 => {
                round.users = self.instances;
                round.step = 3;
            }
            _ => {
                let copy = round.copy?;
                let is_same = self
                    .revision
                    .is_some_and(|live| live.version == copy.version);
                if decides_to_remove(&round) && is_same {
                    remove(&mut self.revision);
                }
                round = Round {
                    left: round.left - 1,
                    ..IDLE
                };
            }
        }
        self.collector = round;
        Some(())
    }

    /// Nobody was promised what is not there.
    fn check(&self) -> Result<(), String> {
        for (number, front) in self.fronts.iter().enumerate() {
            if *front != Front::Accepted {
                continue;
            }
            if self.bundle.is_none() || self.revision.is_none() {
                return Err(format!("instance {number} was accepted: {self:?}"));
            }
        }
        Ok(())
    }
}

fn write(kept: &mut Option<Kept>, change: impl FnOnce(&mut Kept)) {
    if let Some(kept) = kept {
        change(kept);
        kept.version += 1;
    }
}

/// Deletion is written down, and the finalizer released in another reconcile.
fn remove(kept: &mut Option<Kept>) {
    match kept {
        Some(deleted) if deleted.is_deleted => *kept = None,
        _ => write(kept, |kept| kept.is_deleted = true),
    }
}

/// What the controller of revisions makes of what it read. There is little that it can read, so each answer is asked for
/// once.
fn decides_to_remove(round: &Round) -> bool {
    type Read = (bool, bool, bool, bool);
    static KNOWN: LazyLock<Mutex<HashMap<Read, bool>>> = LazyLock::new(Mutex::default);
    let is_deleted = round.copy.is_some_and(|copy| copy.is_deleted);
    let read = (
        is_deleted,
        round.has_bundle,
        round.is_current,
        round.users != 0,
    );
    let mut known = KNOWN.lock();
    *known
        .entry(read)
        .or_insert_with(|| plans_to_remove(round, is_deleted))
}

fn plans_to_remove(round: &Round, is_deleted: bool) -> bool {
    let mut revision: BundleRevision = serde_json::from_value(json!({
        "apiVersion": "heddle.dev/v1alpha1", "kind": "BundleRevision",
        "metadata": {
            "name": "r", "uid": "u", "resourceVersion": "1",
            "finalizers": [heddle_api::well_known::FINALIZER],
        },
        "spec": {
            "bundle": "b", "registry": "hub", "image": "i", "manifestDigest": "d",
            "configDigest": "c", "description": {},
        },
    }))
    .unwrap();
    revision.metadata.deletion_timestamp = is_deleted.then(|| Time(now()));
    let current = if round.is_current { "r" } else { "other" };
    let bundle: Bundle = serde_json::from_value(json!({
        "apiVersion": "heddle.dev/v1alpha1", "kind": "Bundle", "metadata": {"name": "b"},
        "spec": {"registry": "hub", "repository": "r", "track": "latest", "serviceID": "s"},
        "status": {"currentRevision": current, "seen": {"revision": current}},
    }))
    .unwrap();
    let resource = ApiResource::erase::<heddle_api::ServiceInstance>(&());
    let user = json!({"spec": {"serviceID": "s", "revisionRef": {"name": "r"}}});
    let user = DynamicObject::new("i", &resource).within("team").data(user);
    let users = if round.users == 0 { vec![] } else { vec![user] };
    let world = bundle_revision::World {
        siblings: vec![revision.clone()],
        revision,
        bundle: round.has_bundle.then_some(bundle),
        registry: None,
        credentials: Ok(Credentials::None),
        used: Default::default(),
        usage: Some(Usage::of(&users)),
        is_kept: None,
        trouble: None,
        is_released: false,
    };
    !bundle_revision::plan::plan(&world).is_empty()
}

/// Goes through every order, and counts them.
fn explore(
    state: &State,
    planted: Planted,
    known: &mut HashMap<State, u128>,
) -> Result<u128, String> {
    if let Some(orders) = known.get(state) {
        return Ok(*orders);
    }
    state.check()?;
    let mut orders = 0_u128;
    for process in 0..state.processes() {
        if let Some(next) = state.next(process, planted) {
            orders = orders.saturating_add(explore(&next, planted, known)?);
        }
    }
    let orders = orders.max(1);
    known.insert(state.clone(), orders);
    Ok(orders)
}

fn all_orders(state: &State, planted: Planted) -> Result<u128, String> {
    explore(state, planted, &mut HashMap::new())
}

#[test]
fn no_order_of_three_fronts_and_a_sweep_leaves_an_instance_without_its_bundle() {
    let orders = all_orders(&beginning(3), Planted::Nothing).unwrap();
    println!("{orders} orders of three fronts");
    assert!(orders > 100_000, "{orders} orders");
}

#[test]
fn nor_does_one_in_which_the_bundle_comes_back_and_an_earlier_instance_goes() {
    let mut state = beginning(2);
    state.comes_back = true;
    state.leaver = 1 << 7;
    state.instances = state.leaver;
    let orders = all_orders(&state, Planted::Nothing).unwrap();
    println!("{orders} orders of two fronts, a return and a farewell");
    assert!(orders > 100_000, "{orders} orders");
}

#[test]
fn nor_does_one_in_which_an_old_catalog_names_a_revision_that_is_collected() {
    let mut state = beginning(2);
    state.is_absent = false;
    state.is_current = false;
    state.bundle.as_mut().unwrap().phase = Phase::Live;
    let orders = all_orders(&state, Planted::Nothing).unwrap();
    println!("{orders} orders of two fronts with an old catalog");
    assert!(orders > 100_000, "{orders} orders");
    let trusting = all_orders(&state, Planted::FrontTrustsItsPin);
    assert!(
        trusting.is_err(),
        "a front that does not look again is caught"
    );
}

#[test]
fn a_sweep_that_comes_to_an_end_removes_what_nobody_wants() {
    // Without fronts there is one order, and in its end everything is gone.
    let mut state = beginning(0);
    while let Some(next) = state.next(0, Planted::Nothing) {
        state = next;
    }
    assert_eq!(state.bundle, None);
    while let Some(next) = state.next(1, Planted::Nothing) {
        state = next;
    }
    assert_eq!(state.revision, None);
}

#[test]
fn wrong_orders_of_writing_and_looking_are_caught() {
    for planted in [Planted::LooksBeforeItWrites, Planted::FrontLooksFirst] {
        let outcome = all_orders(&beginning(2), planted);
        assert!(outcome.is_err(), "{planted:?}: {outcome:?}");
    }
}
