//! `Application`: an external system, the services it offers and the events it sends.
//!
//! The shape is the one that existing manifests use; heddle adds `status.conditions`. The schema asks of a service only what
//! the original definition asked of it. Everything finer (entry types, addresses, clashes with other Applications) is judged
//! per service by a controller and reported in the status, so that one bad service does not reject its neighbours.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::conditions::{ConditionSet, Conditions};
use crate::health::EventingStatus;
use crate::schema::structural;

/// What an Application is and which services it offers.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[kube(
    group = "applicationconnector.kyma-project.io",
    version = "v1alpha1",
    kind = "Application",
    plural = "applications",
    shortname = "app",
    category = "heddle",
    status = "ApplicationStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "An external system: the services it offers and the events it sends. Its name is the CloudEvents source of those events.",
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Health","type":"string","jsonPath":".status.eventing.health"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Description","type":"string","jsonPath":".spec.description","priority":1}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = structural)]
pub struct ApplicationSpec {
    /// What the application is, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Display name, used when each service becomes a plan of one offering.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// Name of whoever provides the application, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_display_name: Option<String>,
    /// A longer description, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long_description: Option<String>,
    /// Words under which the application can be found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Labels that offerings made from this application carry.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The services that the application offers. A service is known by its id: another id is another service.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["id"]))]
    pub services: Vec<Service>,
    /// Whether nothing shall be set up for this application.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skip_installation: bool,
    /// Organisation (O) that a client certificate must name to publish for this application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Organisational unit (OU) that a client certificate must name to publish for this application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Deprecated: label that gave workloads access to the application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub access_label: Option<String>,
    /// What a directory of applications knows about this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compass_metadata: Option<CompassMetadata>,
}

/// What a directory of applications knows about one of them.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompassMetadata {
    /// Id of the application in that directory; the offering's id when each service becomes a plan.
    #[serde(rename = "applicationId")]
    pub application_id: String,
    /// Who may act for the application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authentication: Option<Authentication>,
}

/// Who may act for an application.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Authentication {
    /// Common names of accepted client certificates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub client_ids: Vec<String>,
}

/// One service of an application: an API, a source of events, or both.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Service {
    /// Stable id, also the id of the offering (or plan) made from the service.
    #[schemars(length(min = 1, max = 253))]
    pub id: String,
    /// Id under which the application itself knows the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identifier: Option<String>,
    /// Name of the offering (or plan) made from the service.
    pub name: String,
    /// The name for people.
    pub display_name: String,
    /// What the service does, for people.
    pub description: String,
    /// A longer description, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long_description: Option<String>,
    /// Name of whoever provides the service, for people.
    pub provider_display_name: String,
    /// Words under which the service can be found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Labels that the offering made from the service carries.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// JSON schema, as text, of the parameters with which credentials for the service are asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_create_parameter_schema: Option<String>,
    /// What the service consists of.
    pub entries: Vec<Entry>,
}

impl Service {
    /// Whether provisioning the service makes events flow.
    pub fn sends_events(&self) -> bool {
        self.entries.iter().any(|entry| entry.type_ == ENTRY_EVENTS)
    }

    /// Whether the service has an API, and hence credentials to bind.
    pub fn has_api(&self) -> bool {
        self.entries.iter().any(|entry| entry.type_ == ENTRY_API)
    }
}

/// [`Entry::type_`] of an API.
pub const ENTRY_API: &str = "API";
/// [`Entry::type_`] of a source of events; such an entry carries no further data.
pub const ENTRY_EVENTS: &str = "Events";

/// One part of a service.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// `API` or `Events`; a service with an entry of any other type is left out and reported.
    #[serde(rename = "type")]
    pub type_: String,
    /// Id of the API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Name of the API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Address of the gateway through which workloads call the API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway_url: Option<String>,
    /// Label that gave workloads access to the gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_label: Option<String>,
    /// Address of the API itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_url: Option<String>,
    /// Address of the API's description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub specification_url: Option<String>,
    /// Kind of the API's description, such as `OpenApi` or `OData`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_type: Option<String>,
    /// How calls to the API are authenticated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Credentials>,
    /// Secret with headers and query parameters that are added to each call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_parameters_secret_name: Option<String>,
}

/// How calls to an API are authenticated.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Credentials {
    /// The method, such as `Basic`, `OAuth` or `CertificateGen`.
    #[serde(rename = "type")]
    pub type_: String,
    /// Secret that holds the credentials.
    pub secret_name: String,
    /// Where a token is obtained, for methods that need one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authentication_url: Option<String>,
    /// Where a token against request forgery is obtained, if the API wants one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csrf_info: Option<CsrfInfo>,
}

/// Where a token against request forgery is obtained.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
pub struct CsrfInfo {
    /// Address of the token endpoint.
    #[serde(rename = "tokenEndpointURL")]
    pub token_endpoint_url: String,
}

/// What is known about an Application.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = structural)]
pub struct ApplicationStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What holds for the application; `Ready` sums it up.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// Services that are not offered, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["id"]))]
    pub rejected_services: Vec<RejectedService>,
    /// The installation state as older tools read it; follows `Ready`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installation_status: Option<InstallationStatus>,
    /// How well the application's events get where they should, as measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eventing: Option<EventingStatus>,
}

/// A service that is not offered.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RejectedService {
    /// Id of the service.
    pub id: String,
    /// One word saying why.
    pub reason: String,
    /// The same for people.
    pub message: String,
}

/// The installation state as older tools read it.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstallationStatus {
    /// `DEPLOYED`, `INSTALLATION_SKIPPED`, `PENDING_INSTALL` or `FAILED`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub status: String,
    /// More about it, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// Values of [`InstallationStatus::status`].
pub mod installation {
    /// Everything the application needs exists and is ready.
    pub const DEPLOYED: &str = "DEPLOYED";
    /// The spec asks for nothing to be set up.
    pub const SKIPPED: &str = "INSTALLATION_SKIPPED";
    /// Something the application needs is not ready yet.
    pub const PENDING: &str = "PENDING_INSTALL";
    /// Something the application needs cannot become ready without help.
    pub const FAILED: &str = "FAILED";
}

/// What an Application promises.
pub mod condition {
    use super::reason;
    use crate::conditions::ConditionType;

    /// The door for the application's events is set up.
    pub const SOURCE_PROVIDED: ConditionType = ConditionType {
        name: "SourceProvided",
        meaning: "The HTTPSource through which the application publishes exists as asked, belongs to it and is ready.",
        reasons: &[
            reason::SOURCE_MISSING,
            reason::SOURCE_TAKEN,
            reason::SOURCE_NOT_READY,
            reason::INSTALLATION_SKIPPED,
        ],
    };
    /// The log for the application's events is set up.
    pub const CHANNEL_PROVIDED: ConditionType = ConditionType {
        name: "ChannelProvided",
        meaning: "The Channel that keeps the application's events exists as asked, belongs to it and is ready.",
        reasons: &[
            reason::CHANNEL_MISSING,
            reason::CHANNEL_TAKEN,
            reason::CHANNEL_NOT_READY,
            reason::INSTALLATION_SKIPPED,
        ],
    };
    /// All services are offered.
    pub const SERVICES_VALID: ConditionType = ConditionType {
        name: "ServicesValid",
        meaning: "Every service can be offered; those that cannot are listed in `status.rejectedServices`.",
        reasons: &[
            reason::SERVICE_INVALID,
            reason::ID_TAKEN,
            reason::NAME_TAKEN,
        ],
    };
}

/// Why an Application is not ready, or not wholly offered.
pub mod reason {
    use crate::conditions::Reason;

    /// The source was not created yet, or somebody removed it.
    pub const SOURCE_MISSING: Reason = Reason {
        name: "SourceMissing",
        meaning: "The application's HTTPSource does not exist; it is created again without help.",
    };
    /// The source belongs to somebody else.
    pub const SOURCE_TAKEN: Reason = Reason {
        name: "SourceTaken",
        meaning: "An HTTPSource of that name is controlled by another object; delete it, or rename the Application.",
    };
    /// The source is there and not ready.
    pub const SOURCE_NOT_READY: Reason = Reason {
        name: "SourceNotReady",
        meaning: "The application's HTTPSource exists and says in its conditions why it is not ready.",
    };
    /// The channel was not created yet, or somebody removed it.
    pub const CHANNEL_MISSING: Reason = Reason {
        name: "ChannelMissing",
        meaning: "The application's Channel does not exist; it is created again without help.",
    };
    /// The channel belongs to somebody else.
    pub const CHANNEL_TAKEN: Reason = Reason {
        name: "ChannelTaken",
        meaning: "A Channel of that name is controlled by another object; delete it, or rename the Application.",
    };
    /// The channel is there and not ready.
    pub const CHANNEL_NOT_READY: Reason = Reason {
        name: "ChannelNotReady",
        meaning: "The application's Channel exists and says in its conditions why it is not ready.",
    };
    /// Nothing was asked for.
    pub const INSTALLATION_SKIPPED: Reason = Reason {
        name: "InstallationSkipped",
        meaning: "`spec.skipInstallation` asks for nothing to be set up.",
    };
    /// A service cannot be offered as it is written.
    pub const SERVICE_INVALID: Reason = Reason {
        name: "ServiceInvalid",
        meaning: "A service lacks something an offering needs; correct it in the spec.",
    };
    /// Somebody older has the id.
    pub const ID_TAKEN: Reason = Reason {
        name: "IdTaken",
        meaning: "An older Application has a service of the same id, and keeps it; give this one another id, or remove the other.",
    };
    /// Somebody older has the name.
    pub const NAME_TAKEN: Reason = Reason {
        name: "NameTaken",
        meaning: "A service of an older Application is offered under the same name, and keeps it; rename one of the two.",
    };
}

/// The conditions of an Application. A rejected service does not make the application unready.
pub const CONDITIONS: ConditionSet = ConditionSet {
    dependents: &[condition::SOURCE_PROVIDED, condition::CHANNEL_PROVIDED],
    informational: &[condition::SERVICES_VALID],
};
