//! Subscribers that are tried between events: what is sent, how often, to whom, and what is known from it.

use std::time::Duration;

use heddle_api::dataplane::SubscriberReading;
use heddle_mesh::heartbeat::TYPE;
use serde_json::{Value, json};

use crate::world::{Consent, Manner, World};

const REFUSED: i32 = 111;
const EXHAUSTED: i32 = 24;

fn annotated(more: &[(&str, &str)]) -> Value {
    let annotations: serde_json::Map<String, Value> = more
        .iter()
        .map(|(name, value)| (format!("heddle.dev/{name}"), json!(value)))
        .collect();
    json!({"metadata": {"annotations": annotations}})
}

/// A trigger `t` whose subscriber, host `a`, is tried in this way.
async fn tried(how: &str) -> World {
    let mut world = World::with_broker();
    world.trigger("t", "a", annotated(&[("subscriber-probe", how)]));
    world.route().await;
    world
}

fn probe(world: &World) -> Option<SubscriberReading> {
    let consumers = world.mesh.reading().consumers.into_iter();
    let mut own = consumers.filter(|one| one.key == "trigger/ns/t");
    own.next().expect("it is routed").probe
}

async fn until(world: &World, what: &str, wanted: impl Fn(&SubscriberReading) -> bool) {
    let found = |world: &World| probe(world).is_some_and(|probe| wanted(&probe));
    world.until(what, found).await;
}

#[tokio::test(start_paused = true)]
async fn nobody_is_tried_who_did_not_ask_for_it() {
    let mut world = World::with_broker();
    world.trigger("t", "a", json!({}));
    world.trigger("wrong", "b", annotated(&[("subscriber-probe", "often")]));
    let paused = [("subscriber-probe", "heartbeat"), ("paused", "true")];
    world.trigger("paused", "c", annotated(&paused));
    world.route().await;
    world.pass(300).await;
    assert_eq!(probe(&world), None);
    for host in ["a", "b", "c"] {
        assert!(world.received(host).is_empty(), "{host}");
        assert!(world.asked(host).is_empty(), "{host}");
    }
    let faults = world.mesh.consumer("trigger/ns/wrong").unwrap().faults;
    assert!(
        faults[0].contains("tcp, options or heartbeat"),
        "{faults:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_dead_subscriber_is_found_in_each_of_three_ways_and_so_is_its_return() {
    for how in ["tcp", "options", "heartbeat"] {
        let world = tried(how).await;
        until(&world, "it answers", |probe| probe.age.is_some()).await;
        let well = probe(&world).unwrap();
        assert_eq!((well.how.as_str(), well.misses), (how, 0));
        assert_eq!(well.failed, None);
        world.manner("a", Manner::Exhausted(REFUSED));
        // What rested may still answer for a while; what is new does not.
        until(&world, how, |probe| probe.misses >= 3).await;
        let dead = probe(&world).unwrap();
        assert!(
            dead.failed.is_some_and(|why| why.contains("refused")),
            "{how}"
        );
        assert!(dead.age < Some(Duration::from_secs(6)), "tried more often");
        world.manner("a", Manner::Accept);
        until(&world, how, |probe| probe.failed.is_none()).await;
        // None of it is anybody's event.
        let account = world.account("t");
        assert_eq!((account.matched, account.delivered), (0, 0), "{how}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_way_sends_what_it_says_and_not_too_often() {
    let world = tried("tcp").await;
    world.pass(300).await;
    assert!(probe(&world).unwrap().age.is_some());
    assert!(world.received("a").is_empty() && world.asked("a").is_empty());

    let world = tried("options").await;
    world.pass(300).await;
    let asked = world.asked("a");
    assert!((10..=11).contains(&asked.len()), "{}", asked.len());
    assert_eq!(asked[0].headers["webhook-request-origin"], "heddle");
    assert!(world.received("a").is_empty());

    let world = tried("heartbeat").await;
    world.pass(300).await;
    let received = world.deliveries("a");
    assert!((10..=11).contains(&received.len()), "{}", received.len());
    assert!(received.iter().all(|one| one.headers["ce-type"] == TYPE));
    let mut ids = world.received_sorted("a");
    ids.dedup();
    assert_eq!(ids.len(), received.len(), "each has an id of its own");
    assert_eq!(world.log.bounds().end, 1, "none of them is kept");
}

#[tokio::test(start_paused = true)]
async fn what_is_no_fault_of_the_server_answers_and_what_is_refused_does_not() {
    let answers = async |how: &'static str, status: u16| {
        let world = tried(how).await;
        world.consent("a", Consent(status, Vec::new()));
        world.manner("a", Manner::Answer(status));
        world.pass(60).await;
        probe(&world).unwrap().misses == 0
    };
    for (how, status, expected) in [
        ("options", 204, true),
        ("options", 405, true),
        ("options", 503, false),
        ("heartbeat", 204, true),
        ("heartbeat", 400, false),
        ("heartbeat", 410, false),
        ("heartbeat", 500, false),
    ] {
        assert_eq!(answers(how, status).await, expected, "{how} {status}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_without_descriptors_blames_nobody() {
    let world = tried("tcp").await;
    until(&world, "it answers", |probe| probe.age.is_some()).await;
    world.manner("a", Manner::Exhausted(EXHAUSTED));
    world.pass(300).await;
    let probe = probe(&world).unwrap();
    assert_eq!((probe.failed, probe.misses), (None, 0));
    assert!(probe.age > Some(Duration::from_secs(200)), "nobody knows");
}

#[tokio::test(start_paused = true)]
async fn a_destination_of_many_triggers_is_tried_once() {
    let mut world = World::with_broker();
    for name in ["t", "u", "v"] {
        world.trigger(name, "a", annotated(&[("subscriber-probe", "options")]));
    }
    world.route().await;
    world.pass(100).await;
    assert!((4..=5).contains(&world.asked("a").len()));
    // Nor is it tried at once again when a table comes into force.
    let before = world.asked("a").len();
    for _ in 0..5 {
        world.route().await;
    }
    assert_eq!(world.asked("a").len(), before);
    for name in ["t", "u", "v"] {
        world.trigger(name, "a", json!({}));
    }
    world.route().await;
    world.pass(100).await;
    assert_eq!(world.asked("a").len(), before, "nobody wants it any more");
}

#[tokio::test(start_paused = true)]
async fn who_has_not_consented_gets_no_heartbeat() {
    let mut world = World::with_broker();
    let asks = [
        ("subscriber-probe", "heartbeat"),
        ("webhook-origin", "mesh.example"),
    ];
    world.trigger("t", "a", annotated(&asks));
    world.route().await;
    world.pass(120).await;
    assert!(world.received("a").is_empty());
    assert_eq!(probe(&world).unwrap().age, None);
    let allowed = vec![
        ("webhook-allowed-origin", "mesh.example"),
        ("webhook-allowed-rate", "*"),
    ];
    world.consent("a", Consent(200, allowed));
    until(&world, "consent", |probe| probe.age.is_some()).await;
    let received = &world.deliveries("a")[0];
    assert_eq!(received.headers["webhook-request-origin"], "mesh.example");
}

/// More of them than are tried at once, and each allows one event a minute.
#[tokio::test(start_paused = true)]
async fn destinations_that_allow_little_keep_nobody_else_waiting() {
    let mut world = World::with_broker();
    let paced = annotated(&[
        ("subscriber-probe", "heartbeat"),
        ("webhook-origin", "mesh.example"),
    ]);
    for number in 0..20 {
        let host = format!("slow-{number}");
        let allowed = vec![
            ("webhook-allowed-origin", "mesh.example"),
            ("webhook-allowed-rate", "1"),
        ];
        world.consent(&host, Consent(200, allowed));
        world.trigger(&host, &host, paced.clone());
    }
    world.trigger("t", "a", annotated(&[("subscriber-probe", "tcp")]));
    world.route().await;
    let heard = |world: &World| !world.received("slow-19").is_empty();
    world.until("all consent", heard).await;
    for _ in 0..120 {
        world.pass(1).await;
        let age = probe(&world).unwrap().age;
        assert!(age <= Some(Duration::from_secs(32)), "{age:?}");
    }
    assert!(world.received("slow-0").len() <= 4, "one a minute");
}
