use heddle_api::broker::BrokerStatus;
use jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::json;

use super::observe::World;
use super::status;
use crate::dataplane::Door;

fn world() -> World {
    let broker = json!({
        "apiVersion": "eventing.knative.dev/v1", "kind": "Broker",
        "metadata": {"name": "default", "namespace": "ns", "generation": 2}, "spec": {},
    });
    World {
        broker: serde_json::from_value(broker).unwrap(),
        dead_letter_sink: None,
        door: Some(Door {
            base_url: Some("http://mesh:1/".to_owned()),
            log: Ok(()),
            in_force: true,
        }),
    }
}

fn check(world: &World, expected: [&str; 6], address: Option<&str>) {
    let status = status::status(world, Timestamp::UNIX_EPOCH).unwrap();
    let status: BrokerStatus = serde_json::from_value(status).unwrap();
    let found: Vec<String> = (status.conditions.iter())
        .map(|condition| format!("{}={:?}", condition.type_, condition.status))
        .collect();
    assert_eq!(found, expected, "{status:#?}");
    let url = status.address.as_ref().and_then(|a| a.url.as_deref());
    assert_eq!(url, address);
}

#[test]
fn each_condition_of_a_broker_has_one_cause() {
    let url = Some("http://mesh:1/broker/ns/default");
    let [ingress, channel, filter, addressable, sink, ready] = [
        "IngressReady=True",
        "TriggerChannelReady=True",
        "FilterReady=True",
        "Addressable=True",
        "DeadLetterSinkResolved=True",
        "Ready=True",
    ];
    check(
        &world(),
        [ingress, channel, filter, addressable, sink, ready],
        url,
    );
    let with = |change: fn(&mut Door)| {
        let mut world = world();
        change(world.door.as_mut().unwrap());
        world
    };
    check(
        &with(|door| door.base_url = None),
        [
            "IngressReady=False",
            channel,
            filter,
            "Addressable=False",
            sink,
            "Ready=False",
        ],
        None,
    );
    check(
        &with(|door| door.log = Err("poisoned".to_owned())),
        [
            ingress,
            "TriggerChannelReady=False",
            filter,
            addressable,
            sink,
            "Ready=False",
        ],
        url,
    );
    check(
        &with(|door| door.in_force = false),
        [
            ingress,
            channel,
            "FilterReady=Unknown",
            addressable,
            sink,
            "Ready=Unknown",
        ],
        url,
    );
    let mut broken = world();
    broken.dead_letter_sink = Some(Err("Channel ns/x does not exist".to_owned()));
    check(
        &broken,
        [
            ingress,
            channel,
            filter,
            addressable,
            "DeadLetterSinkResolved=False",
            "Ready=False",
        ],
        url,
    );
    let alone = World {
        door: None,
        ..world()
    };
    check(
        &alone,
        [
            "IngressReady=Unknown",
            "TriggerChannelReady=Unknown",
            "FilterReady=Unknown",
            "Addressable=Unknown",
            sink,
            "Ready=Unknown",
        ],
        None,
    );
}

#[test]
fn a_broker_of_another_class_is_left_to_who_serves_it() {
    let mut world = world();
    let mut class = |class: &str| {
        let annotations = world.broker.annotations_mut();
        annotations.insert(
            "eventing.knative.dev/broker.class".to_owned(),
            class.to_owned(),
        );
        status::status(&world, Timestamp::UNIX_EPOCH).is_some()
    };
    assert!(class("heddle"));
    assert!(!class("Kafka"));
}

#[test]
fn a_status_at_rest_does_not_change_with_time() {
    let mut world = world();
    let first = status::status(&world, Timestamp::from_second(10).unwrap()).unwrap();
    world.broker.status = serde_json::from_value(first.clone()).unwrap();
    let second = status::status(&world, Timestamp::from_second(99).unwrap()).unwrap();
    assert_eq!(first, second);
}
