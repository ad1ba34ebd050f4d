//! How well the mesh is: one verdict for every scope, and the bodies under `/heddle/v1/health`.
//!
//! ```text
//!   evidence ──judge──> planes of one application in one namespace ──roll up──> application, namespace, mesh
//! ```
//! A verdict is worked out in one place (the controllers' `health`) and written to `status.eventing` of the Application;
//! REST, commands and metrics show the same value. Every verdict that is not [`HealthStatus::Healthy`] names what is broken, by a
//! code of the [`catalogue`].

pub mod alerts;
pub mod catalogue;
pub mod dashboards;
pub mod inventory;
mod narrow;
pub mod stream;
#[cfg(test)]
mod tests;
pub mod topology;

use jiff::Timestamp;
use schemars::{JsonSchema, schema_for};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::schema::timestamp;

/// How well something is.
#[derive(
    Serialize,
    Deserialize,
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    JsonSchema,
)]
pub enum HealthStatus {
    /// An event that is published now would be delivered, and what was accepted before is delivered or on record.
    Healthy,
    /// It works, and something needs a look.
    Degraded,
    /// Nobody can tell: there is no evidence yet, or none any more.
    #[default]
    Unknown,
    /// It does not work.
    Unhealthy,
}

impl HealthStatus {
    /// All of them, the best first.
    pub const ALL: [Self; 4] = [
        Self::Healthy,
        Self::Degraded,
        Self::Unknown,
        Self::Unhealthy,
    ];

    /// As metrics say it: 3 is well, 0 is not, and nothing known is nearer to the second.
    #[must_use]
    pub const fn level(self) -> u8 {
        match self {
            Self::Healthy => 3,
            Self::Degraded => 2,
            Self::Unknown => 1,
            Self::Unhealthy => 0,
        }
    }

    /// The same as a word in small letters, for drawings and labels.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Degraded => "degraded",
            Self::Unknown => "unknown",
            Self::Unhealthy => "unhealthy",
        }
    }
}

/// The side on which something is broken.
#[derive(
    Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum HealthPlane {
    /// Objects and the controllers that keep them.
    Control,
    /// The path that events take.
    Data,
    /// What users bring: subscribers, filters, publishers.
    User,
    /// What everything stands on: disk, store, clock.
    Dependencies,
}

impl HealthPlane {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 4] = [Self::Control, Self::Data, Self::User, Self::Dependencies];

    /// As it is spelled on the wire.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Data => "data",
            Self::User => "user",
            Self::Dependencies => "dependencies",
        }
    }
}

/// What is known of one plane of one scope.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlaneHealth {
    /// How well it is.
    pub health: HealthStatus,
    /// A code of the catalogue, or the reason that a condition gives.
    pub reason: String,
    /// The same for people.
    pub message: String,
    /// What to do about it; empty when there is nothing to do.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remedy: String,
    /// The hop that is broken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hop: Option<String>,
    /// The object that is at fault, such as `broker/team-a/default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// What was seen: the last error, a count, how long ago.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
}

/// The planes of one scope.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Planes {
    /// Objects and the controllers that keep them.
    pub control: PlaneHealth,
    /// The path that events take.
    pub data: PlaneHealth,
    /// What users bring. It has no say in the health of the mesh.
    pub user: PlaneHealth,
    /// What everything stands on.
    pub dependencies: PlaneHealth,
}

impl Planes {
    /// With their names, in the order in which they are shown.
    pub fn iter(&self) -> impl Iterator<Item = (HealthPlane, &PlaneHealth)> {
        HealthPlane::ALL.into_iter().zip([
            &self.control,
            &self.data,
            &self.user,
            &self.dependencies,
        ])
    }
}

/// The verdict on one scope: what decided it, and how each plane is.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// How well it is. The user plane has no say in it.
    pub health: HealthStatus,
    /// Since when it has been so.
    #[schemars(schema_with = "timestamp")]
    pub since: Timestamp,
    /// Why: a code of the catalogue, or the reason that a condition gives.
    pub reason: String,
    /// The same for people.
    pub message: String,
    /// What to do about it; empty when there is nothing to do.
    #[serde(default)]
    pub remedy: String,
    /// The plane that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plane: Option<HealthPlane>,
    /// The hop that is broken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hop: Option<String>,
    /// The object that is at fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// What was seen of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// Each plane by itself.
    #[serde(default)]
    pub planes: Planes,
}

/// `status.eventing` of an Application: how well its events get where they should.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventingStatus {
    /// The verdict on the application as a whole.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// How far the application has come in the namespace where it has come furthest: 1 created, 2 bound, 3 enabled, 4 triggered.
    pub state: u8,
    /// The verdict for each namespace that it is bound to; the worst first when there are more than a hundred.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<NamespaceHealth>,
    /// How many namespaces are left out of the list.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub namespaces_left_out: u32,
}

/// How well one application is in one namespace: `GET /heddle/v1/health/applications/{app}/namespaces/{ns}`.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceHealth {
    /// Name of the namespace.
    pub name: String,
    /// The verdict.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// How far the application has come here: 1 created, 2 bound, 3 enabled, 4 triggered.
    pub state: u8,
    /// What the synthetic events say; only where the question is asked, for it changes all the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat: Option<HeartbeatHealth>,
}

/// What synthetic events say about one way.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeartbeatHealth {
    /// How long ago one arrived; absent before the first.
    #[serde(default)]
    pub age_seconds: Option<f64>,
    /// How long that one took from the source to the end.
    #[serde(default)]
    pub end_to_end_seconds: Option<f64>,
    /// How many seconds lie between two of them.
    pub interval_seconds: f64,
    /// When one was last sent or arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "timestamp")]
    pub last_probe: Option<Timestamp>,
}

/// `GET /heddle/v1/health/applications/{app}`.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationHealth {
    /// Name of the application.
    pub name: String,
    /// As its status has it.
    #[serde(flatten)]
    pub eventing: EventingStatus,
}

/// `GET /heddle/v1/health/applications`, the worst first.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationHealthList {
    /// Each without its namespaces; those are told where one application is asked for.
    pub items: Vec<ApplicationHealth>,
}

/// `GET /heddle/v1/health`: the mesh as a whole.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MeshHealth {
    /// Always `mesh`.
    pub name: String,
    /// The verdict.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// When it was worked out.
    #[schemars(schema_with = "timestamp")]
    pub at: Timestamp,
    /// How many applications are how well.
    pub applications: HealthCounts,
    /// Each namespace that some application is bound to, the worst first; at most a hundred.
    #[serde(default)]
    pub namespaces: Vec<NamespaceSummary>,
    /// What the canary says, which crosses a path that belongs to nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat: Option<HeartbeatHealth>,
    /// Where `?applications` asks for them: all, without their namespaces, the worst first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application_list: Option<Vec<ApplicationHealth>>,
}

/// All applications of one namespace in a word.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceSummary {
    /// Name of the namespace.
    pub name: String,
    /// The worst of its applications.
    pub health: HealthStatus,
    /// How many of them are how well.
    pub applications: HealthCounts,
}

/// How many are how well.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HealthCounts {
    /// Well.
    pub healthy: u32,
    /// Working, with something that needs a look.
    pub degraded: u32,
    /// Nobody can tell.
    pub unknown: u32,
    /// Broken.
    pub unhealthy: u32,
}

impl HealthCounts {
    /// Counts one more.
    pub fn add(&mut self, health: HealthStatus) {
        *self.of_mut(health) += 1;
    }

    /// How many are of that health.
    #[must_use]
    pub const fn of(&self, health: HealthStatus) -> u32 {
        match health {
            HealthStatus::Healthy => self.healthy,
            HealthStatus::Degraded => self.degraded,
            HealthStatus::Unknown => self.unknown,
            HealthStatus::Unhealthy => self.unhealthy,
        }
    }

    /// How many there are in all.
    #[must_use]
    pub const fn all(&self) -> u32 {
        self.healthy + self.degraded + self.unknown + self.unhealthy
    }

    /// Those that are counted, in words: `3 unhealthy, 1 degraded`.
    #[must_use]
    pub fn said(&self) -> String {
        let worst_first = [
            HealthStatus::Unhealthy,
            HealthStatus::Degraded,
            HealthStatus::Unknown,
            HealthStatus::Healthy,
        ];
        let counted = worst_first.into_iter().filter(|one| self.of(*one) > 0);
        let words: Vec<String> = counted
            .map(|one| format!("{} {}", self.of(one), one.word()))
            .collect();
        words.join(", ")
    }

    fn of_mut(&mut self, health: HealthStatus) -> &mut u32 {
        match health {
            HealthStatus::Healthy => &mut self.healthy,
            HealthStatus::Degraded => &mut self.degraded,
            HealthStatus::Unknown => &mut self.unknown,
            HealthStatus::Unhealthy => &mut self.unhealthy,
        }
    }
}

/// How far an application has come in a namespace.
pub mod state {
    /// The application can publish.
    pub const CREATED: u8 = 1;
    /// A namespace may use it.
    pub const BOUND: u8 = 2;
    /// Its events flow into the namespace.
    pub const ENABLED: u8 = 3;
    /// A Trigger receives them.
    pub const TRIGGERED: u8 = 4;
}

/// The shape of every body below `/heddle/v1/health`, of the topology and of what the stream tells, by what it is about.
#[must_use]
pub fn schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The health of the mesh: /heddle/v1/health, /heddle/v1/topology and /heddle/v1/stream",
        "$defs": {
            "mesh": schema_for!(MeshHealth),
            "applications": schema_for!(ApplicationHealthList),
            "application": schema_for!(ApplicationHealth),
            "namespace": schema_for!(NamespaceHealth),
            "topology": schema_for!(topology::TopologyGraph),
            "inventory": schema_for!(inventory::Inventory),
            "streamReset": schema_for!(stream::StreamReset),
            "streamVerdict": schema_for!(stream::VerdictEvent),
            "streamPulse": schema_for!(stream::PulseEvent),
        },
    })
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}
