//! What `GET /heddle/v1/stream` tells: verdicts that changed, and the numbers of whoever receives or publishes events.
//!
//! ```text
//!   event: reset     everything known so far is void; the verdicts of all scopes follow
//!   event: verdict   one scope, as it is now
//!   event: pulse     the numbers that changed
//! ```

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{HealthStatus, PlaneHealth, Verdict};
use crate::schema::timestamp;

/// The `event:` of a [`StreamReset`].
pub const RESET: &str = "reset";
/// The `event:` of a [`VerdictEvent`].
pub const VERDICT: &str = "verdict";
/// The `event:` of a [`PulseEvent`].
pub const PULSE: &str = "pulse";
/// The `event:` with a whole body, where one scope is watched.
pub const HEALTH: &str = "health";
/// The `event:` that says that a watched scope is no longer there.
pub const GONE: &str = "gone";

/// Comes before the verdicts of all scopes: at the beginning, and whenever changes were missed.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StreamReset {
    /// Number of the batch that follows.
    pub seq: u64,
    /// When it was so.
    #[schemars(schema_with = "timestamp")]
    pub at: Timestamp,
    /// How many verdicts follow.
    pub scopes: u64,
}

/// How one scope is now.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerdictEvent {
    /// `mesh`, `application/NAME` or `application/NAME/NAMESPACE`.
    pub scope: String,
    /// `healthy`, `degraded`, `unknown` or `unhealthy`; `gone` when there is no such scope any more.
    pub verdict: String,
    /// Since when it has been so.
    #[schemars(schema_with = "timestamp")]
    pub since: Timestamp,
    /// Why: a code of the catalogue, or the reason that a condition gives.
    pub code: String,
    /// The same for people.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remedy: String,
    /// The plane that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plane: Option<String>,
    /// The hop that is broken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hop: Option<String>,
    /// What was seen when the verdict changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// The object that is at fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// The planes that are not well, by name: also those that have no say in the verdict.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub planes: BTreeMap<String, PlaneHealth>,
}

impl VerdictEvent {
    /// The verdict on a scope.
    #[must_use]
    pub fn of(scope: String, verdict: &Verdict) -> Self {
        let unwell = verdict
            .planes
            .iter()
            .filter(|(_, plane)| plane.health != HealthStatus::Healthy)
            .map(|(name, plane)| (name.word().to_owned(), plane.clone()));
        Self {
            scope,
            verdict: verdict.health.word().to_owned(),
            since: verdict.since,
            code: verdict.reason.clone(),
            message: verdict.message.clone(),
            plane: verdict.plane.map(|plane| plane.word().to_owned()),
            hop: verdict.hop.clone(),
            object: verdict.object.clone(),
            evidence: verdict.evidence.clone(),
            remedy: verdict.remedy.clone(),
            planes: unwell.collect(),
        }
    }

    /// A scope that is no longer there.
    #[must_use]
    pub fn gone(scope: String, since: Timestamp) -> Self {
        Self {
            scope,
            since,
            verdict: GONE.to_owned(),
            ..Self::default()
        }
    }

    /// Whether two say the same, whatever was seen as evidence.
    #[must_use]
    pub fn says_the_same(&self, other: &Self) -> bool {
        self.without_evidence() == other.without_evidence()
    }

    fn without_evidence(&self) -> Self {
        let mut still = self.clone();
        still.evidence = None;
        for plane in still.planes.values_mut() {
            plane.evidence = None;
        }
        still
    }
}

/// What a consumer does: matched, delivered and failed per second, pending now, seconds that the oldest has waited, in flight now.
pub type ConsumerNumbers = [f64; 6];
/// What is published to an application: accepted, refused, failed and wanted by nobody, each per second.
pub type SourceNumbers = [f64; 4];

/// Numbers that changed. Whoever is not mentioned is as before; `null` means that everything about it is 0.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PulseEvent {
    /// Number of the batch.
    pub seq: u64,
    /// When it was so.
    #[schemars(schema_with = "timestamp")]
    pub at: Timestamp,
    /// Everything is told: whoever is not mentioned is idle.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub full: bool,
    /// By consumer, such as `trigger/team-a/orders`.
    pub n: BTreeMap<String, Option<ConsumerNumbers>>,
    /// By application, such as `application/shop`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, Option<SourceNumbers>>,
    /// How many are busy and left out, because there are too many.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub left_out: u32,
}
