//! The mesh as a picture: every hop of every flow, and how well each is. `GET /heddle/v1/topology`.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::HealthCounts;
use crate::schema::timestamp;

/// Nodes in the columns of their hops, and what leads from one to the next.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopologyGraph {
    /// When it was so.
    #[schemars(schema_with = "timestamp")]
    pub at: Timestamp,
    /// Where the log ended then: what was published before is at smaller offsets. Told to whoever may look at the whole mesh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// In the order of hops, then of names.
    pub nodes: Vec<GraphNode>,
    /// In the order of their ends.
    pub links: Vec<GraphLink>,
    /// What is summed up because there is too much of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<Truncation>,
}

/// A place that events pass, or many of them in one.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GraphNode {
    /// Such as `trigger/team-a/orders`.
    pub id: String,
    /// The hop that it is.
    pub hop: String,
    /// The application whose it is alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    /// Its namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns: Option<String>,
    /// `healthy`, `degraded`, `unknown` or `unhealthy`.
    pub verdict: String,
    /// Why, unless it is healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How many it stands for, if it is not one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<u32>,
    /// How well those are that it stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdicts: Option<HealthCounts>,
}

/// From one node to the next.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GraphLink {
    /// Id of a node.
    pub from: String,
    /// Id of a node.
    pub to: String,
    /// The hop that takes events there.
    pub hop: String,
    /// How well that works: `healthy`, `degraded`, `unknown` or `unhealthy`.
    pub verdict: String,
    /// Whose verdict that is, and where the evidence for it is found: an object such as `subscription/kyma-integration/shop`.
    pub object: String,
    /// Why no event is led there, if no EventPolicy allows it, and what would.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied: Option<String>,
    /// Since when it has been so, where a verdict on the way tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "timestamp")]
    pub since: Option<Timestamp>,
}

/// What is not shown one by one.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Truncation {
    /// How many nodes are summed up.
    pub hidden: u32,
    /// By what.
    pub by: String,
    /// How well those are.
    #[serde(default)]
    pub verdicts: HealthCounts,
}
