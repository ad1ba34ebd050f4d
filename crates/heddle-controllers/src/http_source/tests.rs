use heddle_api::http_source::HTTPSourceStatus;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::observe::World;
use super::status;

fn channel(address: Value) -> Value {
    json!({
        "apiVersion": "messaging.knative.dev/v1", "kind": "Channel",
        "metadata": {"name": "shop", "namespace": "ns"}, "spec": {},
        "status": {"address": address, "conditions": [
            {"type": "Ready", "status": "False", "reason": "AddressMissing", "message": "no listener"},
        ]},
    })
}

fn world(channel: Value, open: Option<Result<(), String>>) -> World {
    let source = json!({
        "apiVersion": "sources.kyma-project.io/v1alpha1", "kind": "HTTPSource",
        "metadata": {"name": "shop", "namespace": "ns", "generation": 1}, "spec": {"source": "shop"},
    });
    World {
        source: serde_json::from_value(source).unwrap(),
        channel: serde_json::from_value(channel).unwrap(),
        open,
    }
}

fn check(world: &World, ready: &str, sink: Option<&str>, message: &str) {
    let status = status::status(world, Timestamp::UNIX_EPOCH).unwrap();
    let status: HTTPSourceStatus = serde_json::from_value(status).unwrap();
    let found = status.conditions.find("Ready").unwrap();
    let reason = found.reason.as_ref().map(|reason| format!(":{reason}"));
    assert_eq!(
        format!("{:?}{}", found.status, reason.unwrap_or_default()),
        ready
    );
    let told = found.message.clone().unwrap_or_default();
    assert!(told.contains(message), "{told}");
    assert_eq!(status.sink_uri.as_deref(), sink);
}

#[test]
fn a_source_is_ready_when_its_channel_has_an_address_and_its_door_is_open() {
    let url = Some("http://mesh:1/channel/ns/shop");
    let there = || channel(json!({"url": "http://mesh:1/channel/ns/shop"}));
    check(&world(there(), Some(Ok(()))), "True", url, "");
    let closed = world(there(), Some(Err("it skips its installation".to_owned())));
    check(
        &closed,
        "False:ServiceNotReady",
        url,
        "events of shop are not accepted: it skips its installation",
    );
    check(&world(there(), None), "Unknown:NoMesh", url, "no mesh");
    let unaddressed = world(channel(json!(null)), Some(Ok(())));
    check(
        &unaddressed,
        "False:EmptySinkURI",
        None,
        "Channel ns/shop has no address",
    );
    let absent = world(Value::Null, Some(Ok(())));
    check(
        &absent,
        "False:SinkNotFound",
        None,
        "Channel ns/shop does not exist",
    );
    let mut leaving = there();
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    check(
        &world(leaving, Some(Ok(()))),
        "False:SinkNotFound",
        None,
        "being deleted",
    );
}
