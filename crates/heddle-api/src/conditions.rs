//! Conditions in Knative's manner: what an object promises, each promise with a status, a reason and a message.
//!
//! A kind declares its conditions once, as [`ConditionType`]s gathered in a [`ConditionSet`] beside the kind. Controllers
//! state what they saw with [`Conditions::set`] and then let [`ConditionSet::conclude`] derive `Ready`. Everything here is
//! pure: the caller brings the time.
//!
//! Promises: a condition's `lastTransitionTime` moves only when its status does; types are unique; `Ready` is the last entry.
//! Which conditions are set, and when, is left to the controllers.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The name of the condition that sums up all others.
pub const READY: &str = "Ready";

/// Why `Ready` is unknown before every dependent condition has been set at least once.
pub const NOT_YET_OBSERVED: Reason = Reason {
    name: "NotYetObserved",
    meaning: "No controller has looked at this part of the object yet.",
};

/// Why something that the mesh decides is unknown where no mesh runs.
pub const NO_MESH: Reason = Reason {
    name: "NoMesh",
    meaning: "No mesh runs beside these controllers, so nobody can tell; start the server with its listener for events.",
};

/// Why something that a registry or a runner decides is unknown where neither is served.
pub const NO_BUNDLES: Reason = Reason {
    name: "NoBundles",
    meaning: "No store of bundles runs beside these controllers, so no registry is read and no image is kept.",
};

/// A condition that a kind may show, and the reasons it may give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConditionType {
    /// The `type` on the wire, such as `ApplicationFound`.
    pub name: &'static str,
    /// What is true of the object when the condition is.
    pub meaning: &'static str,
    /// Reasons given when it is not `True`.
    pub reasons: &'static [Reason],
}

/// One machine-readable cause, with what it means for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The `reason` on the wire, one CamelCase word.
    pub name: &'static str,
    /// What happened, and what would change it.
    pub meaning: &'static str,
}

/// The conditions of one kind.
#[derive(Clone, Copy, Debug)]
pub struct ConditionSet {
    /// `Ready` is the conjunction of these, in the order in which they are usually met.
    pub dependents: &'static [ConditionType],
    /// Shown, but without a say in `Ready`.
    pub informational: &'static [ConditionType],
}

impl ConditionSet {
    /// All declared conditions except `Ready`, in the order in which an object shows them.
    pub fn iter(&self) -> impl Iterator<Item = &'static ConditionType> + use<> {
        self.dependents.iter().chain(self.informational)
    }

    /// Derives `Ready` and puts the conditions in their declared order, `Ready` last.
    ///
    /// `False` beats `Unknown` beats `True`. `Ready` carries the reason and message of the first dependent condition that
    /// decided it; one that was never set counts as `Unknown`. Conditions nobody declared are kept, in front of `Ready`.
    pub fn conclude(&self, conditions: &mut Conditions, now: Timestamp) {
        let ready = self.verdict(conditions);
        conditions.set(ready, now);
        let order = |condition: &Condition| match condition.type_.as_str() {
            READY => usize::MAX,
            name => self
                .iter()
                .position(|declared| declared.name == name)
                .unwrap_or(usize::MAX - 1),
        };
        conditions.0.sort_by_key(order);
    }

    fn verdict(&self, conditions: &Conditions) -> Condition {
        let first = |status: Status| {
            self.dependents
                .iter()
                .filter_map(|d| conditions.find(d.name))
                .find(|condition| condition.status == status)
        };
        if let Some(decider) = first(Status::False).or_else(|| first(Status::Unknown)) {
            return Condition {
                type_: READY.to_owned(),
                severity: None,
                last_transition_time: None,
                ..decider.clone()
            };
        }
        match self
            .dependents
            .iter()
            .find(|declared| conditions.find(declared.name).is_none())
        {
            Some(missing) => Condition {
                type_: READY.to_owned(),
                status: Status::Unknown,
                reason: Some(NOT_YET_OBSERVED.name.to_owned()),
                message: Some(format!("{} has not been observed yet", missing.name)),
                ..Condition::default()
            },
            None => Condition {
                type_: READY.to_owned(),
                status: Status::True,
                ..Condition::default()
            },
        }
    }
}

/// Whether a condition holds.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum Status {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Nobody knows yet, or nobody can tell any more.
    #[default]
    Unknown,
}

/// How bad a condition is when it is `False`; absent means that it is an error.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
pub enum Severity {
    /// Worth a look; the object still serves.
    Warning,
    /// Only information.
    Info,
}

/// One entry of `status.conditions`.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Which promise this is about.
    #[serde(rename = "type")]
    pub type_: String,
    /// Whether it holds.
    pub status: Status,
    /// How bad it is when it does not; absent for an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// One CamelCase word saying why it does not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The same for people: which object, what was expected, what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When the status last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
}

impl Condition {
    /// The condition holds.
    pub fn met(type_: ConditionType) -> Self {
        Self {
            type_: type_.name.to_owned(),
            status: Status::True,
            ..Self::default()
        }
    }

    /// The condition holds, and there is something to say about how.
    pub fn met_because(type_: ConditionType, reason: Reason, message: impl Into<String>) -> Self {
        Self {
            status: Status::True,
            ..Self::unknown(type_, reason, message)
        }
    }

    /// The condition does not hold.
    pub fn unmet(type_: ConditionType, reason: Reason, message: impl Into<String>) -> Self {
        Self {
            status: Status::False,
            ..Self::unknown(type_, reason, message)
        }
    }

    /// Whether the condition holds cannot be told.
    pub fn unknown(type_: ConditionType, reason: Reason, message: impl Into<String>) -> Self {
        Self {
            type_: type_.name.to_owned(),
            status: Status::Unknown,
            reason: Some(reason.name.to_owned()),
            message: Some(message.into()),
            ..Self::default()
        }
    }

    /// The same condition, marked as less than an error.
    #[must_use]
    pub fn with_severity(self, severity: Severity) -> Self {
        Self {
            severity: Some(severity),
            ..self
        }
    }
}

/// `status.conditions`: unique by type.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(transparent)]
pub struct Conditions(Vec<Condition>);

impl Conditions {
    /// States a condition, and answers whether anything changed.
    ///
    /// The time of the last transition is kept while the status stays the same, whatever `condition` says about it, and is
    /// otherwise `now` in whole seconds (more would not survive the wire).
    pub fn set(&mut self, mut condition: Condition, now: Timestamp) -> bool {
        let position = self
            .0
            .iter()
            .position(|known| known.type_ == condition.type_);
        let kept = position.and_then(|index| {
            let known = &self.0[index];
            known
                .last_transition_time
                .clone()
                .filter(|_| known.status == condition.status)
        });
        let whole_seconds = || {
            Timestamp::from_second(now.as_second())
                .expect("a second of a timestamp is in its range")
        };
        condition.last_transition_time = kept.or_else(|| Some(Time(whole_seconds())));
        match position {
            Some(index) if self.0[index] == condition => false,
            Some(index) => {
                self.0[index] = condition;
                true
            }
            None => {
                self.0.push(condition);
                true
            }
        }
    }

    /// The condition of that type, if it was ever set.
    pub fn find(&self, name: &str) -> Option<&Condition> {
        self.0.iter().find(|condition| condition.type_ == name)
    }

    /// Whether the condition of that type was set and holds.
    pub fn is_true(&self, name: &str) -> bool {
        self.find(name)
            .is_some_and(|condition| condition.status == Status::True)
    }

    /// Whether the object as a whole is ready.
    pub fn is_ready(&self) -> bool {
        self.is_true(READY)
    }

    /// Forgets a condition that no longer applies; answers whether it was there.
    pub fn remove(&mut self, name: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|condition| condition.type_ != name);
        self.0.len() != before
    }

    /// Whether nothing was ever set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All conditions, in the order in which they are shown.
    pub fn iter(&self) -> std::slice::Iter<'_, Condition> {
        self.0.iter()
    }
}

/// The last of a type counts.
impl FromIterator<Condition> for Conditions {
    fn from_iter<I: IntoIterator<Item = Condition>>(conditions: I) -> Self {
        let mut all = Self::default();
        for condition in conditions {
            all.remove(&condition.type_);
            all.0.push(condition);
        }
        all
    }
}

impl<'a> IntoIterator for &'a Conditions {
    type Item = &'a Condition;
    type IntoIter = std::slice::Iter<'a, Condition>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Written by hand: the derived schema of `Time` would need k8s-openapi's `schemars` feature, which costs more to compile
/// than the rest of this crate.
impl JsonSchema for Conditions {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Conditions".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
            "items": {
                "type": "object",
                "required": ["status", "type"],
                "properties": {
                    "type": {"type": "string", "description": "Which promise this is about."},
                    "status": {"type": "string", "enum": ["True", "False", "Unknown"], "description": "Whether it holds."},
                    "severity": {
                        "type": "string", "enum": ["Warning", "Info"],
                        "description": "How bad it is when it does not hold; absent for an error."
                    },
                    "reason": {"type": "string", "description": "One word saying why it does not hold."},
                    "message": {"type": "string", "description": "The same for people."},
                    "lastTransitionTime": {
                        "type": "string", "format": "date-time", "description": "When the status last changed."
                    }
                }
            }
        })
    }
}

#[cfg(test)]
mod tests;
