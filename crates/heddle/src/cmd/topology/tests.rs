use serde_json::json;

use super::*;

#[test]
fn a_flow_is_shown_from_its_application_to_its_subscriber() {
    let node = |id: &str, verdict: &str| json!({"id": id, "hop": "x", "verdict": verdict});
    let mut broken = node("trigger/team-a/refunds", "unhealthy");
    broken["reason"] = json!("its subscriber has no address");
    let graph: TopologyGraph = serde_json::from_value(json!({
        "at": "2026-01-01T00:00:00Z",
        "nodes": [node("application/shop", "healthy"), node("channel/k/shop", "healthy"),
            node("broker/team-a/default", "healthy"), node("trigger/team-a/orders", "healthy"), broken],
        "links": [
            {"from": "application/shop", "to": "channel/k/shop", "hop": "source", "verdict": "healthy", "object": "application/shop"},
            {"from": "channel/k/shop", "to": "broker/team-a/default", "hop": "channel", "verdict": "healthy", "object": "x", "denied": "apply an EventPolicy"},
            {"from": "broker/team-a/default", "to": "trigger/team-a/orders", "hop": "broker", "verdict": "healthy", "object": "broker/team-a/default"},
            {"from": "broker/team-a/default", "to": "trigger/team-a/refunds", "hop": "broker", "verdict": "healthy", "object": "broker/team-a/default"},
        ],
    }))
    .unwrap();
    let expected = "\
application/shop  healthy
  channel/k/shop  healthy
    denied: apply an EventPolicy
    broker/team-a/default  healthy
      trigger/team-a/orders  healthy
      trigger/team-a/refunds  unhealthy: its subscriber has no address
";
    assert_eq!(tree(&graph, false), expected);
    assert_eq!(
        tree(&TopologyGraph::default(), false),
        "there is nothing that events could pass\n"
    );
}
