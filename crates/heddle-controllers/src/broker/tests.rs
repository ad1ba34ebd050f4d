use heddle_api::broker::{BrokerStatus, CLASS_ANNOTATION, Classes};
use jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::json;

use super::observe::{self, World};
use super::status;
use crate::dataplane::EntryState;

fn world() -> World {
    let broker = json!({
        "apiVersion": "eventing.knative.dev/v1", "kind": "Broker",
        "metadata": {"name": "default", "namespace": "ns", "generation": 2}, "spec": {},
    });
    World {
        broker: serde_json::from_value(broker).unwrap(),
        dead_letter_sink: None,
        foreign: None,
        door: Some(EntryState {
            base_url: Some("http://mesh:1/".to_owned()),
            log: Ok(()),
            in_force: true,
        }),
        unclaimed: None,
        is_removed: false,
        now: Timestamp::UNIX_EPOCH,
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
    let with = |change: fn(&mut EntryState)| {
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
fn a_broker_of_a_class_that_is_not_served_is_told_so() {
    let classes = |names: &[&str]| Classes::new(names.iter().map(|name| (*name).to_owned()));
    let foreign = |classes: &Classes, class: &str| {
        let mut world = world();
        let annotations = world.broker.annotations_mut();
        annotations.insert(CLASS_ANNOTATION.to_owned(), class.to_owned());
        world.foreign = observe::foreign(classes, &world.broker);
        world
    };
    for class in ["heddle", "MTChannelBasedBroker", "ChannelBasedBroker"] {
        assert_eq!(foreign(&Classes::default(), class).foreign, None, "{class}");
    }
    assert_eq!(foreign(&classes(&["Kafka"]), "Kafka").foreign, None);
    assert_eq!(foreign(&classes(&["Kafka"]), "heddle").foreign, None);
    assert!(
        foreign(&classes(&[]), "MTChannelBasedBroker")
            .foreign
            .is_some()
    );

    let world = foreign(&Classes::default(), "Kafka");
    check(
        &world,
        [
            "IngressReady=False",
            "TriggerChannelReady=False",
            "FilterReady=False",
            "Addressable=False",
            "DeadLetterSinkResolved=True",
            "Ready=False",
        ],
        None,
    );
    let status = status::status(&world, Timestamp::UNIX_EPOCH).unwrap();
    let ready = &status["conditions"][5];
    assert_eq!(ready["reason"], "ClassNotServed", "{ready}");
    let message = ready["message"].as_str().unwrap();
    assert!(message.contains("its class is Kafka"), "{message}");
    assert!(message.contains("brokerClasses"), "{message}");
}

#[test]
fn a_status_at_rest_does_not_change_with_time() {
    let mut world = world();
    let first = status::status(&world, Timestamp::from_second(10).unwrap()).unwrap();
    world.broker.status = serde_json::from_value(first.clone()).unwrap();
    let second = status::status(&world, Timestamp::from_second(99).unwrap()).unwrap();
    assert_eq!(first, second);
}

mod retention {
    use std::time::Duration;

    use heddle_api::broker::{BrokerStatus, condition};

    use super::super::retention::{Unclaimed, removal, requeue_after};
    use super::{Timestamp, World, json, status, world};
    use crate::reconcile::Step;

    const LINGER: Duration = Duration::from_secs(600);

    /// A Broker that nobody has claimed for so many seconds.
    fn unclaimed(seconds: i64, triggers: &[&str], pending: u64) -> World {
        let since = Timestamp::from_second(1_000).unwrap();
        let mut world = world();
        world.broker.metadata.uid = Some("u".to_owned());
        world.broker.metadata.resource_version = Some("9".to_owned());
        world.unclaimed = Some(Unclaimed {
            triggers: triggers.iter().map(|name| (*name).to_owned()).collect(),
            pending,
            linger: LINGER,
        });
        let first = status::status(&world, since).unwrap();
        world.broker.status = serde_json::from_value(first).unwrap();
        world.now = Timestamp::from_second(1_000 + seconds).unwrap();
        world
    }

    fn reason(world: &World) -> Option<String> {
        let status = status::status(world, world.now).unwrap();
        let status: BrokerStatus = serde_json::from_value(status).unwrap();
        let retained = status.conditions.find(condition::RETAINED.name)?.clone();
        assert!(
            status.conditions.is_ready(),
            "what keeps it does not spoil it"
        );
        retained.reason
    }

    #[test]
    fn a_broker_that_nobody_claims_goes_when_nothing_keeps_it_and_a_while_has_passed() {
        for (seconds, triggers, pending, goes, why) in [
            (599, &[][..], 0, false, "Lingering"),
            (600, &[], 0, true, "Lingering"),
            (900, &["orders"], 0, false, "HasTriggers"),
            (900, &[], 7, false, "EventsPending"),
            (900, &["orders"], 7, false, "HasTriggers"),
        ] {
            let world = unclaimed(seconds, triggers, pending);
            assert_eq!(
                removal(&world).is_some(),
                goes,
                "{seconds} {triggers:?} {pending}"
            );
            assert_eq!(reason(&world).as_deref(), Some(why));
        }
    }

    #[test]
    fn it_is_removed_only_in_the_state_that_was_looked_at() {
        let Some(Step::Delete { uid, version, .. }) = removal(&unclaimed(600, &[], 0)) else {
            panic!("it goes");
        };
        assert_eq!((uid.as_str(), version.as_deref()), ("u", Some("9")));
    }

    #[test]
    fn nothing_is_removed_before_it_is_written_down_that_nobody_claims_it() {
        let mut world = unclaimed(9_000, &[], 0);
        world.broker.status = None;
        assert!(removal(&world).is_none());
    }

    #[test]
    fn a_claimed_broker_is_not_retained_and_waits_anew_when_the_claim_goes() {
        let mut world = unclaimed(300, &[], 0);
        world.unclaimed = None;
        assert_eq!(reason(&world), None);
        assert!(removal(&world).is_none());
        assert_eq!(requeue_after(&world, world.now), None);
        let claimed = status::status(&world, world.now).unwrap();
        assert!(
            !claimed["conditions"].to_string().contains("Retained"),
            "{}",
            json!(claimed)
        );
    }

    #[test]
    fn it_is_looked_at_again_when_time_alone_could_let_it_go() {
        let requeue_after = |world: &World| requeue_after(world, world.now);
        assert_eq!(
            requeue_after(&unclaimed(100, &[], 0)),
            Some(Duration::from_secs(501))
        );
        assert_eq!(
            requeue_after(&unclaimed(900, &[], 7)),
            Some(Duration::from_secs(30))
        );
        assert_eq!(
            requeue_after(&unclaimed(100, &[], 7)),
            Some(Duration::from_secs(500))
        );
        assert_eq!(
            requeue_after(&unclaimed(900, &["t"], 0)),
            None,
            "a Trigger tells when it goes"
        );
    }
}
