//! Every fault that one machine can have: how it is injected into the running product, how it is repaired, and what must be
//! named meanwhile.

mod beneath;
mod control;
mod data;
mod harmless;
mod user;

use futures::future::BoxFuture;
use heddle_api::health::HealthPlane;

use crate::world::{Pair, SHOP_A, World};

/// Something that is done to a world.
pub(crate) type Deed = for<'a> fn(&'a World) -> BoxFuture<'a, ()>;

/// Where a verdict says that something is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Culprit {
    pub(crate) plane: HealthPlane,
    pub(crate) hop: Option<String>,
    pub(crate) object: Option<String>,
}

/// One fault.
pub(crate) struct FaultCase {
    pub(crate) what: &'static str,
    /// Whose verdict is looked at.
    pub(crate) pair: Pair,
    /// What must be named; nothing where the mesh is well all the same.
    pub(crate) culprit: Option<Culprit>,
    /// Those that must stay well all along.
    pub(crate) spared: &'static [Pair],
    /// Its row in the comparison of detectors.
    pub(crate) scenario: Option<&'static str>,
    /// Published by the deed and traced; otherwise an ordinary event is.
    pub(crate) traced: Option<&'static str>,
    pub(crate) inject: Deed,
    /// Absent where what is lost cannot come back.
    pub(crate) repair: Option<Deed>,
}

impl FaultCase {
    fn new(what: &'static str, culprit: Option<Culprit>, inject: Deed, repair: Deed) -> Self {
        Self {
            what,
            pair: SHOP_A,
            culprit,
            spared: &[],
            scenario: None,
            traced: None,
            inject,
            repair: Some(repair),
        }
    }

    fn of(mut self, pair: Pair) -> Self {
        self.pair = pair;
        self
    }

    fn sparing(mut self, pairs: &'static [Pair]) -> Self {
        self.spared = pairs;
        self
    }

    fn compared_as(mut self, scenario: &'static str) -> Self {
        self.scenario = Some(scenario);
        self
    }

    fn tracing(mut self, id: &'static str) -> Self {
        self.traced = Some(id);
        self
    }

    fn for_good(mut self) -> Self {
        self.repair = None;
        self
    }
}

fn on(plane: HealthPlane, hop: &str, object: &str) -> Option<Culprit> {
    let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    Some(Culprit {
        plane,
        hop: given(hop),
        object: given(object),
    })
}

/// All of them.
pub(crate) fn all() -> Vec<FaultCase> {
    let parts = [
        control::cases(),
        data::cases(),
        user::cases(),
        beneath::cases(),
        harmless::cases(),
    ];
    parts.into_iter().flatten().collect()
}

/// Faults that no single machine has, and why.
pub(crate) const NOT_HERE: &[(&str, &str)] = &[
    (
        "Two replicas, one of them cut off",
        "one process serves; a second on the same directory does not start",
    ),
    (
        "A consumer is deleted behind the back of the mesh, or its cursor is lost there",
        "cursors are in the journal beside the log, which no other program writes",
    ),
    (
        "The message store is restarted or loses its connection",
        "it is part of the process, whose end is a fault of its own above",
    ),
    (
        "A producer publishes to the old mesh after it was fenced, or its counter is falsified",
        "needs a migration under way",
    ),
    (
        "The snapshot of a migration is corrupted, or an old subscription dangles",
        "needs a migration under way",
    ),
    (
        "The definition of a kind is deleted while objects of it exist",
        "kinds are built in and cannot be deleted",
    ),
];
