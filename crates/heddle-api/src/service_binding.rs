//! `ServiceBinding`: credentials for a ServiceInstance, handed out through OSB.
//!
//! Credentials themselves are kept in a Secret that the status names; nothing secret is part of this object.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::conditions::{ConditionSet, Conditions};
use crate::operation::{
    OperationProgress, OperationRequest, OriginatingIdentity, RevisionReference, RunReport,
};
use crate::schema::{free_form, free_form_list, structural, timestamp};

/// Type of the Secrets that hold credentials.
pub const SECRET_TYPE: &str = "heddle.dev/credentials";
/// Key of such a Secret: the credentials, as the one JSON object that OSB hands out.
pub const SECRET_KEY: &str = "credentials";

/// What was asked for.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[kube(
    group = "heddle.dev",
    version = "v1alpha1",
    kind = "ServiceBinding",
    plural = "servicebindings",
    namespaced,
    shortname = "sb",
    category = "heddle",
    status = "ServiceBindingStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Credentials for a ServiceInstance, handed out through OSB.",
    selectable = ".spec.instanceRef.name",
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Instance","type":"string","jsonPath":".spec.instanceRef.name"}"#,
    printcolumn = r#"{"name":"Expires","type":"date","jsonPath":".status.expiresAt","priority":1}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = structural)]
pub struct ServiceBindingSpec {
    /// The id under which the platform knows the binding: any string, not only a UUID.
    #[serde(rename = "bindingID")]
    #[schemars(
        length(min = 1, max = 1024),
        extend("x-kubernetes-validations" = [{"rule": "self == oldSelf", "message": "bindingID is immutable"}])
    )]
    pub binding_id: String,
    /// The instance that is bound, in the same namespace.
    #[schemars(extend("x-kubernetes-validations" = [{"rule": "self == oldSelf", "message": "instanceRef is immutable"}]))]
    pub instance_ref: InstanceReference,
    /// Id of the offering, as the platform gave it.
    #[serde(rename = "serviceID")]
    #[schemars(length(min = 1, max = 253))]
    pub service_id: String,
    /// Id of the plan, as the platform gave it.
    #[serde(rename = "planID")]
    #[schemars(length(min = 1, max = 253))]
    pub plan_id: String,
    /// Settings, as the platform's user gave them.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "free_form")]
    pub parameters: Map<String, Value>,
    /// Where in the platform the binding lives, as the platform describes it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "free_form")]
    pub context: Map<String, Value>,
    /// What the instance is bound to, as the platform describes it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "free_form")]
    pub bind_resource: Map<String, Value>,
    /// Id of the binding whose credentials this one succeeds.
    #[serde(
        rename = "predecessorBindingID",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(length(min = 1, max = 1024))]
    pub predecessor_binding_id: Option<String>,
    /// On whose behalf the platform asked last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub originating_identity: Option<OriginatingIdentity>,
    /// The revision that all actions on the binding use; absent for services of Applications.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision_ref: Option<RevisionReference>,
    /// The operation that was accepted last; absent for a binding that somebody wrote by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<OperationRequest>,
    /// How the operations before that one ended, the last first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub earlier_operations: Vec<OperationProgress>,
}

/// A ServiceInstance in the same namespace.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstanceReference {
    /// Name of the ServiceInstance.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// What is known about a ServiceBinding.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = structural)]
pub struct ServiceBindingStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What holds for the binding; `Ready` sums it up.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// How far the last operation has come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<OperationProgress>,
    /// The bundle's action that was started last, for bundles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunReport>,
    /// The Secret that holds the credentials, in the same namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretReference>,
    /// Names of the Secrets that the credentials are taken from: of the binding's namespace, or else of the Applications'.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// Network addresses that the credentials are for; complete if present.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub endpoints: Vec<Endpoint>,
    /// Where the bound application's log is to be sent.
    #[serde(
        rename = "syslogDrainURL",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub syslog_drain_url: Option<String>,
    /// Through which address requests to the bound route are to pass.
    #[serde(
        rename = "routeServiceURL",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub route_service_url: Option<String>,
    /// Volumes for the bound application, as OSB describes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "free_form_list")]
    pub volume_mounts: Vec<Map<String, Value>>,
    /// When the credentials cease to work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "timestamp")]
    pub expires_at: Option<Time>,
    /// When new credentials should be asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "timestamp")]
    pub renew_before: Option<Time>,
}

/// A Secret in the same namespace.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretReference {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// A network address.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// Host name or address.
    pub host: String,
    /// Ports or ranges of ports, such as `443` or `9000-9010`.
    pub ports: Vec<String>,
    /// What is spoken there.
    #[serde(default)]
    pub protocol: Protocol,
}

/// What is spoken at an endpoint.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Protocol {
    /// TCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
    /// Both.
    All,
}

/// What a ServiceBinding promises.
pub mod condition {
    use super::reason;
    use crate::conditions::ConditionType;

    /// There is something to bind.
    pub const INSTANCE_READY: ConditionType = ConditionType {
        name: "InstanceReady",
        meaning: "The ServiceInstance exists and is ready.",
        reasons: &[reason::INSTANCE_NOT_FOUND, reason::INSTANCE_NOT_READY],
    };
    /// The credentials exist.
    pub const BOUND: ConditionType = ConditionType {
        name: "Bound",
        meaning: "The credentials exist and work.",
        reasons: &[
            reason::IN_PROGRESS,
            reason::UNBINDING,
            reason::NOT_BINDABLE,
            reason::SECRET_TAKEN,
            reason::CREDENTIALS_MISSING,
            reason::DEADLINE_REACHED,
            reason::EXPIRED,
            reason::ACTION_FAILED,
            reason::REVISION_MISSING,
            reason::CREDENTIALS_LOST,
        ],
    };
}

/// Why a ServiceBinding is not ready.
pub mod reason {
    use crate::conditions::Reason;

    pub use crate::operation::{ACTION_FAILED, IN_PROGRESS};

    /// There is no instance.
    pub const INSTANCE_NOT_FOUND: Reason = Reason {
        name: "InstanceNotFound",
        meaning: "The ServiceInstance does not exist.",
    };
    /// The instance is not ready.
    pub const INSTANCE_NOT_READY: Reason = Reason {
        name: "InstanceNotReady",
        meaning: "The ServiceInstance says why it is not ready.",
    };
    /// The binding is on its way out.
    pub const UNBINDING: Reason = Reason {
        name: "Unbinding",
        meaning: "The binding is being removed, and its credentials with it.",
    };
    /// There is nothing to hand out.
    pub const NOT_BINDABLE: Reason = Reason {
        name: "NotBindable",
        meaning: "The service has no API, so there are no credentials for it; remove the binding.",
    };
    /// What is to be handed on is not there.
    pub const CREDENTIALS_MISSING: Reason = Reason {
        name: "CredentialsMissing",
        meaning: "The Application names a Secret with credentials that does not exist; create it. The binding follows it.",
    };
    /// The Secret's name belongs to somebody else.
    pub const SECRET_TAKEN: Reason = Reason {
        name: "SecretTaken",
        meaning: "A Secret of the binding's name exists and is not the binding's; delete it, or bind under another id.",
    };
    /// The platform's patience ended.
    pub const DEADLINE_REACHED: Reason = Reason {
        name: "DeadlineReached",
        meaning: "The operation did not end before the platform stops asking; work goes on until the binding is removed.",
    };
    /// The credentials are too old.
    pub const EXPIRED: Reason = Reason {
        name: "Expired",
        meaning: "The credentials have expired; make a new binding.",
    };
    /// What the binding is pinned to is gone.
    pub const REVISION_MISSING: Reason = Reason {
        name: "RevisionMissing",
        meaning: "The BundleRevision that the binding is pinned to does not exist, so no action can run; restore it.",
    };
    /// A bundle hands out credentials once.
    pub const CREDENTIALS_LOST: Reason = Reason {
        name: "CredentialsLost",
        meaning: "The Secret with what the bundle handed out was removed by force; make a new binding.",
    };
}

/// The conditions of a ServiceBinding.
pub const CONDITIONS: ConditionSet = ConditionSet {
    dependents: &[condition::INSTANCE_READY, condition::BOUND],
    informational: &[],
};
