//! The catalog: what can be provisioned, as a value.
//!
//! A catalog is compiled by a pure function from resources and swapped whole, so a request sees one state of it from
//! beginning to end. Being in the catalog means being known; being *offered* depends on the namespace that asks. An
//! offering that is withdrawn stays known as long as instances of it may exist.

use serde_json::{Map, Value};

/// Everything that can be provisioned, ordered by name and id.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Catalog {
    pub offerings: Vec<Offering>,
}

/// One offering: an OSB service.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Offering {
    /// Stable over restarts and re-imports.
    pub id: String,
    /// Unique in the catalog.
    pub name: String,
    pub description: String,
    pub tags: Vec<String>,
    pub requires: Vec<String>,
    pub bindable: bool,
    pub plan_updateable: bool,
    pub allow_context_updates: bool,
    pub metadata: Map<String, Value>,
    pub plans: Vec<Plan>,
}

/// One plan of an offering.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Stable, and unique over the whole catalog.
    pub id: String,
    /// Unique in its offering.
    pub name: String,
    pub description: String,
    pub free: bool,
    /// Absent means what the offering says.
    pub bindable: Option<bool>,
    /// Absent means what the offering says.
    pub plan_updateable: Option<bool>,
    pub binding_rotatable: bool,
    /// The platform must name the application that a binding is for.
    pub requires_app: bool,
    /// Seconds after which the platform gives an operation up; ours ends earlier.
    pub maximum_polling_duration: u32,
    /// Version of the implementation, for maintenance updates.
    pub maintenance_version: Option<String>,
    pub metadata: Map<String, Value>,
    /// JSON schemas of parameters.
    pub schemas: Schemas,
    /// Whether an instance can be made while the platform waits.
    pub instances: Pace,
    /// The same for bindings.
    pub bindings: Pace,
    pub backing: Backing,
}

/// JSON schemas of the parameters of each request; absent means that anything goes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Schemas {
    pub create: Option<Value>,
    pub update: Option<Value>,
    pub bind: Option<Value>,
}

/// How long an operation takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// It is done in a moment; the platform may wait for it.
    Prompt,
    /// It may take longer than a request; the platform must agree to ask again.
    Patient,
}

/// What stands behind a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backing {
    /// A service of an Application.
    Application {
        name: String,
        service_id: String,
        /// Provisioning it makes events flow.
        events: bool,
        /// It has an API, and so something to bind.
        api: bool,
    },
}
