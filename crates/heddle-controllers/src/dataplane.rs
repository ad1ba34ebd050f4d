//! The port to the mesh: what the controllers tell it, and what they ask before they promise anything.
//!
//! The mesh does not read resources, and the controllers do not route events. Resources go one way ([`DataPlane::route`]);
//! what the table in force says comes back the other. A condition about routing is `True` only when the table in force
//! says so for the uid and the generation at hand.
//!
//! ```text
//!   watches ──> Resources ──route──> mesh: compile, swap ──changed──> wake whoever is answered differently now
//! ```

use std::fmt::Debug;

use futures::future::BoxFuture;
use heddle_api::conditions::{Condition, ConditionType, NO_MESH, Reason};
use heddle_api::dataplane::{Fate, GivenUp, Held, MeshReading, Resources, RoutedConsumer};
use heddle_api::delivery::reason::{
    BACKLOG_OVER_QUOTA, BAD_REPLIES, CONSENT_MISSING, DELIVERY_HELD, SETTINGS_IGNORED,
    SIGNING_KEY_UNREADABLE, SUBSCRIBER_GONE,
};

/// How many events were given up, or why they could not be.
pub type GivingUp = BoxFuture<'static, Result<GivenUp, String>>;

/// A mesh, as the controllers know it. Every answer is about the routing table in force, and none of them waits.
pub trait DataPlane: Send + Sync + Debug {
    /// Where publishers reach the mesh, such as `http://127.0.0.1:4334`; `None` while the listener is closed.
    fn base_url(&self) -> Option<String>;

    /// Whether appends are accepted; if not, why.
    fn log_health(&self) -> Result<(), String>;

    /// What is in force for `trigger/NAMESPACE/NAME` or `subscription/NAMESPACE/NAME`. A Subscription that only links
    /// a Channel to a Broker or another Channel has no consumer of its own, and is answered for all the same.
    fn consumer(&self, key: &str) -> Option<RoutedConsumer>;

    /// Why that consumer or link was left out of the table, or leads nowhere in it, if so.
    fn rejected(&self, key: &str) -> Option<String>;

    /// Whether `channel/NAMESPACE/NAME` or `broker/NAMESPACE/NAME` is part of the table.
    fn entry(&self, name: &str) -> bool;

    /// Whether the listener for events asks publishers who they are.
    fn asks_who(&self) -> bool;

    /// Whether events of an Application are accepted; if not, why.
    fn application_open(&self, application: &str) -> Result<(), String>;

    /// How many events were accepted for consumers of `broker/NAMESPACE/NAME` and have not ended.
    fn pending(&self, broker: &str) -> u64;

    /// How many of those came in at `channel/NAMESPACE/NAME`.
    fn pending_through(&self, channel: &str, broker: &str) -> u64;

    /// Ends what came in at a channel and is pending for consumers of a broker, and answers how much that was once it is
    /// written down. Nothing is left to end when it is asked again, so asking twice does no harm.
    fn give_up(&self, channel: &str, broker: &str, fate: Fate, why: &str) -> GivingUp;

    /// What the evidence for health is made of, read in one go and without reading the log. It changes all the time and
    /// counts for nothing in [`DataPlane::changed`].
    fn reading(&self) -> MeshReading;

    /// Takes resources to compile a table from, and returns at once. The table comes into force a little later.
    fn route(&self, resources: Resources);

    /// Completes when any answer may have changed since the revision `seen`, with the new one. Revisions begin at zero and
    /// grow; answers asked for afterwards are at least as new. How much is pending changes with every event
    /// and therefore counts for nothing here: who waits for it looks again after a while.
    fn changed(&self, seen: u64) -> BoxFuture<'static, u64>;
}

/// How one object stands in the table in force.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum RoutingState {
    NoMesh,
    Absent,
    Rejected(String),
    /// It was compiled from another state of the object.
    Stale,
    Yes {
        held: Option<Held>,
        over_quota: Option<String>,
        bad_replies: Option<String>,
        faults: Vec<String>,
    },
}

impl RoutingState {
    /// Asks for the consumer `key`, which is to be in force with this uid and generation.
    pub(crate) fn ask(
        plane: Option<&dyn DataPlane>,
        key: &str,
        uid: Option<&str>,
        generation: Option<i64>,
    ) -> Self {
        let Some(plane) = plane else {
            return Self::NoMesh;
        };
        if let Some(why) = plane.rejected(key) {
            return Self::Rejected(why);
        }
        match plane.consumer(key) {
            Some(found) if Some(&*found.uid) == uid && Some(found.generation) == generation => {
                Self::Yes {
                    held: found.held,
                    over_quota: found.over_quota,
                    bad_replies: found.bad_replies,
                    faults: found.faults,
                }
            }
            Some(_) => Self::Stale,
            None => Self::Absent,
        }
    }

    /// The same as a condition, in the words of a kind.
    pub(crate) fn condition(&self, words: &RoutingWords) -> Condition {
        let kind = words.kind;
        match self {
            Self::NoMesh => {
                let message = format!("no mesh runs here that could route the {kind}");
                Condition::unknown(words.condition, NO_MESH, message)
            }
            Self::Absent => {
                let message = format!("the routing table in force does not have the {kind} yet");
                Condition::unknown(words.condition, words.not_yet, message)
            }
            Self::Stale => {
                let message =
                    format!("the routing table in force has an earlier state of the {kind}");
                Condition::unknown(words.condition, words.not_yet, message)
            }
            Self::Rejected(why) => Condition::unmet(words.condition, words.rejected, why.as_str()),
            Self::Yes {
                held: Some(Held::Gone(why)),
                ..
            } => Condition::unmet(words.condition, SUBSCRIBER_GONE, why.as_str()),
            Self::Yes {
                held: Some(Held::Unconsented(why)),
                ..
            } => Condition::unmet(words.condition, CONSENT_MISSING, why.as_str()),
            Self::Yes {
                held: Some(Held::Unsigned(why)),
                ..
            } => Condition::unmet(words.condition, SIGNING_KEY_UNREADABLE, why.as_str()),
            Self::Yes {
                over_quota: Some(why),
                ..
            } => Condition::unmet(words.condition, BACKLOG_OVER_QUOTA, why.as_str()),
            Self::Yes {
                held,
                faults,
                bad_replies,
                ..
            } => {
                let mut notes = faults.clone();
                let mut reason = SETTINGS_IGNORED;
                if let Some(why) = bad_replies {
                    notes.insert(0, why.clone());
                    reason = BAD_REPLIES;
                }
                if let Some(Held::Waiting(why)) = held {
                    notes.insert(0, why.clone());
                    reason = DELIVERY_HELD;
                }
                if notes.is_empty() {
                    Condition::met(words.condition)
                } else {
                    Condition::met_because(words.condition, reason, notes.join("; "))
                }
            }
        }
    }
}

/// What a kind calls its being routed or not. Why nothing is sent to its subscriber is called the same in all.
pub(crate) struct RoutingWords {
    pub kind: &'static str,
    pub condition: ConditionType,
    pub not_yet: Reason,
    pub rejected: Reason,
}

/// What the controllers of things with an address ask, once per reconcile.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct EntryState {
    pub base_url: Option<String>,
    pub log: Result<(), String>,
    /// Whether the entry is part of the table in force.
    pub in_force: bool,
}

impl EntryState {
    pub(crate) fn ask(plane: &dyn DataPlane, entry: &str) -> Self {
        Self {
            base_url: plane.base_url(),
            log: plane.log_health(),
            in_force: plane.entry(entry),
        }
    }

    /// Where the entry is published to.
    pub(crate) fn url(&self, entry: &str) -> Option<String> {
        self.base_url
            .as_ref()
            .map(|base| format!("{}/{entry}", base.trim_end_matches('/')))
    }
}

#[cfg(test)]
mod tests;
