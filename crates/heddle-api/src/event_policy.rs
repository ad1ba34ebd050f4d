//! `EventPolicy`: who may publish to which Channels and Brokers of a namespace.
//!
//! The shape is Knative's. Enforcing a policy is left to the mesh. Publishers are known as `application/NAME`; Channels and
//! other places of the mesh are named by reference.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::conditions::{ConditionSet, Conditions};
use crate::duck::KReference;
use crate::filter::Filter;
use crate::schema::structural;

/// Who may publish what to whom.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[kube(
    group = "eventing.knative.dev",
    version = "v1alpha1",
    kind = "EventPolicy",
    plural = "eventpolicies",
    namespaced,
    shortname = "evp",
    category = "all",
    category = "knative",
    category = "eventing",
    category = "heddle",
    status = "EventPolicyStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Who may publish to which Channels and Brokers of a namespace.",
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = structural)]
pub struct EventPolicySpec {
    /// What is published to; an empty list means everything in the policy's namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub to: Vec<Target>,
    /// Who may publish; an empty list means nobody.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub from: Vec<Publisher>,
    /// Which events they may publish: those that match every one of these filters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub filters: Vec<Filter>,
}

/// Something that is published to.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.ref) != has(self.selector)",
    "message": "a target is either a ref or a selector"
}]))]
pub struct Target {
    /// One object, in the policy's namespace.
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<TargetReference>,
    /// All objects of a kind with certain labels, in the policy's namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<TargetSelector>,
}

/// One object in the policy's namespace.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetReference {
    /// Group and version of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Kind of the object.
    #[schemars(length(min = 1))]
    pub kind: String,
    /// Name of the object.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// All objects of a kind with certain labels.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetSelector {
    /// Group and version of the objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Kind of the objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Labels that the objects must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// Further demands on their labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<LabelRequirement>,
}

/// A demand on one label.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LabelRequirement {
    /// The label's key.
    pub key: String,
    /// What is asked of it.
    pub operator: LabelOperator,
    /// The values it is compared with, for `In` and `NotIn`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// What is asked of a label.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
pub enum LabelOperator {
    /// It has one of the values.
    In,
    /// It has none of the values, or is absent.
    NotIn,
    /// It is there.
    Exists,
    /// It is absent.
    DoesNotExist,
}

/// Somebody who may publish.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.ref) != has(self.sub)",
    "message": "a publisher is either a ref or a sub"
}]))]
pub struct Publisher {
    /// An object that events may come from: a Channel, Broker, Subscription or Trigger, whose events the mesh may lead here,
    /// or an Application or its HTTPSource, which may publish here as well.
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<KReference>,
    /// Subject of a publisher's credentials, `application/NAME`; a trailing `*` stands for any ending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub sub: Option<String>,
}

/// The subject of an Application's credentials.
#[must_use]
pub fn application_subject(name: &str) -> String {
    format!("{APPLICATION_SUBJECT}{name}")
}

/// How subjects of Applications begin.
pub const APPLICATION_SUBJECT: &str = "application/";

/// What is known about an EventPolicy.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = structural)]
pub struct EventPolicyStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What holds for the policy; `Ready` sums it up.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
    /// The subjects that `spec.from` stands for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<String>,
}

/// What an EventPolicy promises.
pub mod condition {
    use super::reason;
    use crate::conditions::ConditionType;

    /// Publishers can prove who they are.
    pub const AUTHENTICATION_ENABLED: ConditionType = ConditionType {
        name: "AuthenticationEnabled",
        meaning: "The listener for events asks publishers who they are, or the policy is about no publisher.",
        reasons: &[reason::AUTHENTICATION_DISABLED, reason::NO_MESH],
    };
    /// Publishers have identities.
    pub const SUBJECTS_RESOLVED: ConditionType = ConditionType {
        name: "SubjectsResolved",
        meaning: "Every publisher that the policy names has an identity.",
        reasons: &[reason::SUBJECT_NOT_FOUND],
    };
    /// Filters can be understood.
    pub const FILTERS_VALID: ConditionType = ConditionType {
        name: "FiltersValid",
        meaning: "The filters can be understood, or there are none.",
        reasons: &[reason::FILTER_INVALID],
    };
}

/// Why an EventPolicy is not ready.
pub mod reason {
    use crate::conditions::Reason;

    pub use crate::conditions::NO_MESH;

    /// Nobody is asked.
    pub const AUTHENTICATION_DISABLED: Reason = Reason {
        name: "AuthenticationDisabled",
        meaning: "The listener for events accepts publishers without credentials, so the policy cannot be enforced.",
    };
    /// A filter means nothing.
    pub const FILTER_INVALID: Reason = Reason {
        name: "FilterInvalid",
        meaning: "A filter cannot be understood, so the policy allows nothing; correct it.",
    };
    /// A publisher does not exist.
    pub const SUBJECT_NOT_FOUND: Reason = Reason {
        name: "SubjectNotFound",
        meaning: "A publisher that the policy names does not exist.",
    };
}

/// The conditions of an EventPolicy.
pub const CONDITIONS: ConditionSet = ConditionSet {
    dependents: &[
        condition::AUTHENTICATION_ENABLED,
        condition::SUBJECTS_RESOLVED,
        condition::FILTERS_VALID,
    ],
    informational: &[],
};
