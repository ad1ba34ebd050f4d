//! `ApplicationMapping`: which services of an Application a namespace may use.
//!
//! A mapping has the name of the Application it is about. `services` absent (or null) enables all services, an empty list
//! enables none, and a list enables those it names; the two must never be confused, so the field is an `Option`.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conditions::{ConditionSet, Conditions};
use crate::schema::structural;

/// Which services a namespace may use.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[kube(
    group = "applicationconnector.kyma-project.io",
    version = "v1alpha1",
    kind = "ApplicationMapping",
    plural = "applicationmappings",
    namespaced,
    shortname = "am",
    category = "heddle",
    status = "ApplicationMappingStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Lets a namespace use the Application of the same name, wholly or in part.",
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Services","type":"integer","jsonPath":".status.enabledServiceCount"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = structural)]
pub struct ApplicationMappingSpec {
    /// The enabled services: absent or null enables all, an empty list none, a list those it names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("nullable" = true, "x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["id"]))]
    pub services: Option<Vec<EnabledService>>,
}

impl ApplicationMappingSpec {
    /// Whether the mapping enables the service with this id, should the Application offer it.
    pub fn enables(&self, service_id: &str) -> bool {
        self.services
            .as_ref()
            .is_none_or(|services| services.iter().any(|service| service.id == service_id))
    }
}

/// A service that a namespace may use.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnabledService {
    /// Id of the service in the Application.
    #[schemars(length(min = 1, max = 253))]
    pub id: String,
}

/// What is known about an ApplicationMapping.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = structural)]
pub struct ApplicationMappingStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What holds for the mapping; `Ready` sums it up.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// How many services the mapping enables at present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled_service_count: Option<i32>,
}

/// What an ApplicationMapping promises.
pub mod condition {
    use super::reason;
    use crate::conditions::ConditionType;

    /// There is an Application of that name.
    pub const APPLICATION_FOUND: ConditionType = ConditionType {
        name: "ApplicationFound",
        meaning: "The Application of the same name exists.",
        reasons: &[
            reason::APPLICATION_NOT_FOUND,
            reason::APPLICATION_TERMINATING,
        ],
    };
    /// Every enabled service is one of the Application's.
    pub const SERVICES_RESOLVED: ConditionType = ConditionType {
        name: "ServicesResolved",
        meaning: "Every service that the mapping names is offered by the Application.",
        reasons: &[
            reason::SERVICE_NOT_FOUND,
            reason::APPLICATION_NOT_FOUND,
            reason::SERVICE_NOT_OFFERED,
            reason::NOTHING_ENABLED,
            reason::NOTHING_OFFERED,
        ],
    };
    /// The namespace stays.
    pub const NAMESPACE_ACTIVE: ConditionType = ConditionType {
        name: "NamespaceActive",
        meaning: "The namespace that the mapping is in is not being deleted.",
        reasons: &[reason::NAMESPACE_TERMINATING],
    };
}

/// Why an ApplicationMapping is not ready, or enables less than it says.
pub mod reason {
    use crate::conditions::Reason;

    /// No such Application.
    pub const APPLICATION_NOT_FOUND: Reason = Reason {
        name: "ApplicationNotFound",
        meaning: "No Application has the mapping's name; create it, or rename the mapping.",
    };
    /// The Application is on its way out.
    pub const APPLICATION_TERMINATING: Reason = Reason {
        name: "ApplicationTerminating",
        meaning: "The Application is being deleted; delete the mapping as well, or create the Application again.",
    };
    /// The service exists but cannot be offered.
    pub const SERVICE_NOT_OFFERED: Reason = Reason {
        name: "ServiceNotOffered",
        meaning: "The Application has the service but rejects it; its `status.rejectedServices` says why.",
    };
    /// There is nothing to enable.
    pub const NOTHING_OFFERED: Reason = Reason {
        name: "NothingOffered",
        meaning: "The Application offers no service; add one, or correct those it rejects.",
    };
    /// The namespace is on its way out.
    pub const NAMESPACE_TERMINATING: Reason = Reason {
        name: "NamespaceTerminating",
        meaning: "The mapping's namespace is being deleted, and the mapping with it.",
    };
    /// No such service.
    pub const SERVICE_NOT_FOUND: Reason = Reason {
        name: "ServiceNotFound",
        meaning: "The Application does not offer a service that the mapping names; such ids enable nothing.",
    };
    /// The list is empty on purpose.
    pub const NOTHING_ENABLED: Reason = Reason {
        name: "NothingEnabled",
        meaning: "`spec.services` is an empty list, which enables no service; remove the field to enable all.",
    };
}

/// The conditions of an ApplicationMapping.
pub const CONDITIONS: ConditionSet = ConditionSet {
    dependents: &[
        condition::APPLICATION_FOUND,
        condition::SERVICES_RESOLVED,
        condition::NAMESPACE_ACTIVE,
    ],
    informational: &[],
};
