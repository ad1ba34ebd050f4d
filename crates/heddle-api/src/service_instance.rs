//! `ServiceInstance`: what a platform provisioned through OSB.
//!
//! The OSB front writes the spec and answers; controllers do the work and the front reads the status back. An instance is
//! pinned to the revision it was provisioned with, so it can be updated, bound and removed after its offering is gone.

pub mod waits;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::conditions::{ConditionSet, Conditions};
use crate::event_flow::OnDeprovision;
use crate::operation::{
    MaintenanceInfo, OperationProgress, OperationRequest, OriginatingIdentity, RevisionReference,
    RunReport,
};
use crate::schema::{free_form, structural, timestamp};

/// What was asked for.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[kube(
    group = "heddle.dev",
    version = "v1alpha1",
    kind = "ServiceInstance",
    plural = "serviceinstances",
    namespaced,
    shortname = "si",
    category = "heddle",
    status = "ServiceInstanceStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "What a platform provisioned through OSB.",
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Service","type":"string","jsonPath":".spec.serviceID"}"#,
    printcolumn = r#"{"name":"Plan","type":"string","jsonPath":".spec.planID"}"#,
    printcolumn = r#"{"name":"Operation","type":"string","jsonPath":".status.operation.state"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Version","type":"string","jsonPath":".spec.revisionRef.bundleVersion","priority":1}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = structural)]
pub struct ServiceInstanceSpec {
    /// The id under which the platform knows the instance: any string, not only a UUID.
    #[serde(rename = "instanceID")]
    #[schemars(
        length(min = 1, max = 1024),
        extend("x-kubernetes-validations" = [{"rule": "self == oldSelf", "message": "instanceID is immutable"}])
    )]
    pub instance_id: String,
    /// Id of the offering.
    #[serde(rename = "serviceID")]
    #[schemars(
        length(min = 1, max = 253),
        extend("x-kubernetes-validations" = [{"rule": "self == oldSelf", "message": "serviceID is immutable"}])
    )]
    pub service_id: String,
    /// Id of the plan.
    #[serde(rename = "planID")]
    #[schemars(length(min = 1, max = 253))]
    pub plan_id: String,
    /// Settings, as the platform's user gave them.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "free_form")]
    pub parameters: Map<String, Value>,
    /// Where in the platform the instance lives, as the platform describes it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "free_form")]
    pub context: Map<String, Value>,
    /// Id of the platform's organisation; part of the request's identity.
    #[serde(
        rename = "organizationGUID",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub organization_guid: Option<String>,
    /// Id of the platform's space; part of the request's identity.
    #[serde(rename = "spaceGUID", default, skip_serializing_if = "Option::is_none")]
    pub space_guid: Option<String>,
    /// On whose behalf the platform asked last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub originating_identity: Option<OriginatingIdentity>,
    /// The version of the plan's implementation that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintenance_info: Option<MaintenanceInfo>,
    /// The Application's service that the offering stands for; absent for bundles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<ApplicationService>,
    /// The revision that all actions on the instance use; absent for services of Applications.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision_ref: Option<RevisionReference>,
    /// What becomes of accepted but undelivered events when the instance is removed.
    #[serde(default)]
    pub on_deprovision: OnDeprovision,
    /// The operation that was accepted last; absent for an instance that somebody wrote by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<OperationRequest>,
    /// How the operations before that one ended, the last first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub earlier_operations: Vec<OperationProgress>,
}

/// One service of one Application: what an instance stays pinned to, whatever becomes of the catalog.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationService {
    /// Name of the Application.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Id of its service, which is not always the id of the offering.
    #[serde(rename = "serviceID")]
    #[schemars(length(min = 1, max = 253))]
    pub service_id: String,
}

/// What is known about a ServiceInstance.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = structural)]
pub struct ServiceInstanceStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What holds for the instance; `Ready` sums it up.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// How the instance is, in one word for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// How far the last operation has come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<OperationProgress>,
    /// What is in force, which differs from the spec while an update runs and after one failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<Applied>,
    /// The bundle's action that was started last, for bundles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunReport>,
    /// Where people manage the instance.
    #[serde(
        rename = "dashboardURL",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub dashboard_url: Option<String>,
}

/// How an instance is, in one word.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
pub enum Phase {
    /// Work is under way, and nobody has reason to worry.
    Provisioning,
    /// It does what it is for.
    Running,
    /// It did once, and something is amiss now; it is mended without help where that can be done.
    Degraded,
    /// The last operation failed, and what was asked for is not so.
    Failed,
    /// It is being removed.
    Deprovisioning,
}

/// What is in force for an instance.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Applied {
    /// Id of the plan.
    #[serde(rename = "planID")]
    pub plan_id: String,
    /// Settings.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "free_form")]
    pub parameters: Map<String, Value>,
    /// Version of the plan's implementation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintenance_info: Option<MaintenanceInfo>,
    /// The revision that actions use, for bundles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision_ref: Option<RevisionReference>,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "timestamp")]
    pub since: Option<Time>,
}

/// Name of the Secret with what a bundle handed out when the instance was made, in the instance's namespace.
#[must_use]
pub fn provision_secret(instance: &str) -> String {
    let plain = format!("{instance}-provision");
    match plain.len() <= OBJECT_NAME_CHARS_MAX {
        true => plain,
        false => crate::names::hashed("provision", &[instance]),
    }
}

/// The longest name of an object.
const OBJECT_NAME_CHARS_MAX: usize = 253;

/// What a ServiceInstance promises.
pub mod condition {
    use super::reason;
    use crate::conditions::ConditionType;

    /// The catalog knows what was asked for.
    pub const OFFERING_RESOLVED: ConditionType = ConditionType {
        name: "OfferingResolved",
        meaning: "The offering and plan were found and the instance is pinned to them.",
        reasons: &[
            reason::AWAITING_CATALOG,
            reason::SERVICE_UNKNOWN,
            reason::SERVICE_WITHDRAWN,
            reason::PLAN_WITHDRAWN,
            reason::REVISION_MISSING,
        ],
    };
    /// The namespace may use the service.
    pub const ALLOWED: ConditionType = ConditionType {
        name: "Allowed",
        meaning: "An ApplicationMapping of the namespace enables the service.",
        reasons: &[
            reason::MAPPING_MISSING,
            reason::SERVICE_NOT_ENABLED,
            reason::SERVICE_UNKNOWN,
        ],
    };
    /// The work is done.
    pub const PROVISIONED: ConditionType = ConditionType {
        name: "Provisioned",
        meaning: "Everything the instance consists of exists, as the spec asks for it.",
        reasons: &[
            reason::IN_PROGRESS,
            reason::DEPROVISIONING,
            reason::FLOW_TAKEN,
            reason::FLOW_NOT_READY,
            reason::DEADLINE_REACHED,
            reason::ACTION_FAILED,
        ],
    };
}

/// Why a ServiceInstance is not ready.
pub mod reason {
    use crate::conditions::Reason;

    pub use crate::operation::{ACTION_FAILED, IN_PROGRESS};

    /// A registry has not been read yet.
    pub const AWAITING_CATALOG: Reason = Reason {
        name: "AwaitingCatalog",
        meaning: "A registry that may hold the offering has not been read yet; the instance waits.",
    };
    /// Nobody offers it.
    pub const SERVICE_UNKNOWN: Reason = Reason {
        name: "ServiceUnknown",
        meaning: "No registry and no Application offers the service.",
    };
    /// It is no longer offered.
    pub const SERVICE_WITHDRAWN: Reason = Reason {
        name: "ServiceWithdrawn",
        meaning: "The service is no longer offered; refresh the platform's catalog.",
    };
    /// The plan is no longer offered.
    pub const PLAN_WITHDRAWN: Reason = Reason {
        name: "PlanWithdrawn",
        meaning: "The plan is no longer offered; refresh the platform's catalog.",
    };
    /// What the instance is pinned to is gone.
    pub const REVISION_MISSING: Reason = Reason {
        name: "RevisionMissing",
        meaning: "The BundleRevision that the instance is pinned to does not exist, so no action can run; restore it.",
    };
    /// The namespace has no mapping.
    pub const MAPPING_MISSING: Reason = Reason {
        name: "MappingMissing",
        meaning: "The namespace has no ApplicationMapping for the Application; create one.",
    };
    /// The mapping leaves the service out.
    pub const SERVICE_NOT_ENABLED: Reason = Reason {
        name: "ServiceNotEnabled",
        meaning: "The namespace's ApplicationMapping does not enable the service; add it there.",
    };
    /// The instance is on its way out.
    pub const DEPROVISIONING: Reason = Reason {
        name: "Deprovisioning",
        meaning: "The instance is being removed; the message says what that waits for.",
    };
    /// The flow's name belongs to somebody else.
    pub const FLOW_TAKEN: Reason = Reason {
        name: "FlowTaken",
        meaning: "An EventFlow of the instance's name is controlled by another object; delete it.",
    };
    /// The instance's flow is not ready.
    pub const FLOW_NOT_READY: Reason = Reason {
        name: "FlowNotReady",
        meaning: "The instance's EventFlow says why it is not ready.",
    };
    /// The platform's patience ended.
    pub const DEADLINE_REACHED: Reason = Reason {
        name: "DeadlineReached",
        meaning: "The operation did not end before the platform stops asking; work goes on until the instance is removed.",
    };
}

/// The conditions of a ServiceInstance.
pub const CONDITIONS: ConditionSet = ConditionSet {
    dependents: &[
        condition::OFFERING_RESOLVED,
        condition::ALLOWED,
        condition::PROVISIONED,
    ],
    informational: &[],
};
