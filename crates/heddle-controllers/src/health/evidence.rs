//! Evidence: everything a verdict is made from, as plain data at one moment.
//!
//! Gathering it is left to [`super::gather`], judging it to [`super::judge`].

use heddle_api::dataplane::{ConsumerReading, EdgeReading, HeartbeatReading, LogReading};

use crate::pulse::PulseReading;

/// How one object of the path is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PathObject {
    /// Such as `broker/team-a/default`.
    pub object: String,
    pub state: ObjectState,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ObjectState {
    Missing,
    /// It says itself why.
    NotReady(String),
    /// It has not been looked at as it is written now.
    Unobserved(String),
    Ready,
}

impl PathObject {
    pub(crate) fn is_ready(&self) -> bool {
        self.state == ObjectState::Ready
    }
}

/// What is known of one application.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ApplicationEvidence {
    pub name: String,
    /// It asks for nothing to be set up, so nothing is missed.
    pub skipped: bool,
    pub application: PathObject,
    pub source: PathObject,
    pub channel: PathObject,
    pub door: DoorWindow,
    /// In the order of their names.
    pub namespaces: Vec<PairEvidence>,
}

/// What is known of one application in one namespace.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PairEvidence {
    pub namespace: String,
    /// Absent when there is neither a mapping nor anything that needs one.
    pub mapping: Option<PathObject>,
    /// An instance that asks for the application's events and failed.
    pub failed_instance: Option<PathObject>,
    /// Those that stay.
    pub flows: Vec<PathObject>,
    /// Where flows lead to; absent without flows.
    pub broker: Option<PathObject>,
    pub link: Option<PathObject>,
    /// Those that the application's events can reach.
    pub triggers: Vec<TriggerEvidence>,
    pub probing: Probing,
}

/// Whether synthetic events go this way.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Probing {
    /// Nothing flows here, or nothing ever did.
    Unneeded,
    /// Every flow has them switched off.
    Off,
    /// What the mesh says of them; nothing before it has heard that they are wanted.
    On(Option<Box<HeartbeatReading>>),
}

/// A Broker that no application's events are led to: somebody publishes to it, or nobody does.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BrokerEvidence {
    pub namespace: String,
    /// It may be missing: a Trigger can name one that nobody made.
    pub broker: PathObject,
    pub triggers: Vec<TriggerEvidence>,
}

/// A Trigger, and what became of its events.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TriggerEvidence {
    pub trigger: PathObject,
    pub reading: Option<ConsumerReading>,
}

/// What was published in the last minutes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DoorWindow {
    pub accepted: u64,
    pub refused: u64,
    pub unmatched: u64,
}

/// What all applications stand on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SharedEvidence {
    /// What the mesh says of its log; `None` where no mesh runs.
    pub log: Option<LogReading>,
    pub routing: bool,
    /// Why resources cannot be written, if so.
    pub store: Option<String>,
    /// Whether a trial object is admitted; if not, the answer.
    pub admission: Result<(), String>,
    pub pulses: Vec<PulseReading>,
    pub canary: HeartbeatReading,
    /// What the probe from outside says, where one was asked for.
    pub edge: Option<EdgeReading>,
    /// Consumers whose accounts do not add up.
    pub unaccounted: Vec<String>,
}
