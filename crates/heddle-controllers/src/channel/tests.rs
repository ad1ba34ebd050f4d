use heddle_api::channel::ChannelStatus;
use jiff::Timestamp;
use serde_json::json;

use super::observe::World;
use super::status;
use crate::dataplane::EntryState;
use crate::resolve::Resolved;

fn world() -> World {
    let channel = json!({
        "apiVersion": "messaging.knative.dev/v1", "kind": "Channel",
        "metadata": {"name": "shop", "namespace": "ns", "generation": 2}, "spec": {},
    });
    World {
        channel: serde_json::from_value(channel).unwrap(),
        dead_letter_sink: None,
        door: Some(EntryState {
            base_url: Some("http://mesh:1".to_owned()),
            log: Ok(()),
            in_force: true,
        }),
    }
}

fn check(world: &World, ready: &str, address: Option<&str>) -> ChannelStatus {
    let status = status::status(world, Timestamp::UNIX_EPOCH).unwrap();
    let status: ChannelStatus = serde_json::from_value(status).unwrap();
    let found = status.conditions.find("Ready").unwrap();
    let reason = found.reason.as_ref().map(|reason| format!(":{reason}"));
    let found = format!("{:?}{}", found.status, reason.unwrap_or_default());
    assert_eq!(found, ready, "{status:#?}");
    let url = status.address.as_ref().and_then(|a| a.url.as_deref());
    assert_eq!(url, address);
    status
}

#[test]
fn a_channel_is_ready_when_it_is_kept_routed_and_reached() {
    let url = Some("http://mesh:1/channel/ns/shop");
    let status = check(&world(), "True", url);
    assert_eq!(status.observed_generation, Some(2));
    let with = |change: fn(&mut EntryState)| {
        let mut world = world();
        change(world.door.as_mut().unwrap());
        world
    };
    let full = with(|door| door.log = Err("the disk is full".to_owned()));
    let status = check(&full, "False:LogUnavailable", url);
    let message = status.conditions.find("Ready").unwrap().message.clone();
    assert!(message.unwrap().contains("the disk is full"));
    check(
        &with(|door| door.in_force = false),
        "Unknown:NotYetRouted",
        url,
    );
    check(
        &with(|door| door.base_url = None),
        "False:AddressMissing",
        None,
    );
    let alone = World {
        door: None,
        ..world()
    };
    check(&alone, "Unknown:NoMesh", None);
}

#[test]
fn a_dead_letter_sink_must_resolve() {
    let mut world = world();
    world.dead_letter_sink = Some(Err("Broker ns/x does not exist".to_owned()));
    check(
        &world,
        "False:DeadLetterSinkNotFound",
        Some("http://mesh:1/channel/ns/shop"),
    );
    world.dead_letter_sink = Some(Ok(Resolved {
        uri: "http://dls.example/".to_owned(),
        ..Resolved::default()
    }));
    let status = check(&world, "True", Some("http://mesh:1/channel/ns/shop"));
    assert_eq!(
        status.dead_letter_sink_uri.as_deref(),
        Some("http://dls.example/")
    );
}

#[test]
fn a_status_at_rest_does_not_change_with_time() {
    let mut world = world();
    let first = status::status(&world, Timestamp::from_second(10).unwrap()).unwrap();
    world.channel.status = serde_json::from_value(first.clone()).unwrap();
    let second = status::status(&world, Timestamp::from_second(99).unwrap()).unwrap();
    assert_eq!(first, second);
}
