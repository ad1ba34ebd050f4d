//! Shapes that several kinds share: references, destinations, addresses and delivery settings.
//!
//! They are Knative's, field for field, so that existing manifests apply unchanged. Resolving a reference to an address is
//! left to the controllers, carrying out a delivery to the mesh.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::DURATION_PATTERN;

/// A reference to another object.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, Hash, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KReference {
    /// Group and version of the object, such as `messaging.knative.dev/v1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 317))]
    pub api_version: Option<String>,
    /// Kind of the object.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// Name of the object.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Namespace of the object; absent means the namespace of whoever refers to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub namespace: Option<String>,
}

/// Where events go: an object that has an address, a URI, or a URI relative to the object's address.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.ref) || has(self.uri)",
    "message": "a destination needs a ref, a uri, or both"
}]))]
pub struct Destination {
    /// An object with an address.
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<KReference>,
    /// An absolute URI, or one that is resolved against the address of `ref`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2048))]
    pub uri: Option<String>,
    /// Certificates, in PEM, that the destination's TLS certificate is verified against in addition to the system's.
    #[serde(rename = "CACerts", default, skip_serializing_if = "Option::is_none")]
    pub ca_certs: Option<String>,
    /// Audience that the destination asks for in tokens. It is kept and shown for others to see; heddle sends no tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
}

/// An address that events can be sent to.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Addressable {
    /// Name of the address, such as `http` or `https`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The URL to send to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Certificates, in PEM, that the address presents a certificate of.
    #[serde(rename = "CACerts", default, skip_serializing_if = "Option::is_none")]
    pub ca_certs: Option<String>,
    /// Audience that a token sent to this address must have. Addresses of heddle ask for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
}

/// How hard to try, and where an event rests when trying ends.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeliverySpec {
    /// Where an event is sent that could not be delivered; it stays in the internal dead-letter store as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_letter_sink: Option<Destination>,
    /// How often an event is tried again after the first attempt failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub retry: Option<i32>,
    /// How the delay between attempts grows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_policy: Option<BackoffPolicy>,
    /// The delay before the first repetition, as an ISO 8601 duration such as `PT0.2S`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 3, max = 64), regex(pattern = DURATION_PATTERN))]
    pub backoff_delay: Option<String>,
    /// How long one attempt may take, as an ISO 8601 duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 3, max = 64), regex(pattern = DURATION_PATTERN))]
    pub timeout: Option<String>,
    /// The longest `Retry-After` of a 429 or 503 that is honoured, as an ISO 8601 duration; `PT0S` ignores the header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 3, max = 64), regex(pattern = DURATION_PATTERN))]
    pub retry_after_max: Option<String>,
    /// The form in which events are sent; absent keeps the form in which they came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<DeliveryFormat>,
}

/// How the delay between attempts grows.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum BackoffPolicy {
    /// The delay times the number of the repetition.
    Linear,
    /// The delay doubles with each repetition.
    Exponential,
}

/// The form in which a CloudEvent travels over HTTP.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DeliveryFormat {
    /// Structured mode: one JSON document.
    Json,
    /// Binary mode: attributes as headers, data as the body.
    Binary,
}

/// An EventPolicy that applies to an object.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedPolicy {
    /// Group and version of the policy.
    pub api_version: String,
    /// Name of the policy.
    pub name: String,
}
