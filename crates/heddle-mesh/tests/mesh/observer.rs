//! Whoever watches sees every acceptance and every attempt, in one trace, under the ids that travel.

use heddle_mesh::Span;
use serde_json::json;

use crate::world::{Manner, Sight, World};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: u64 = 0xb7ad_6b71_6920_3331;

fn context(flags: &str) -> String {
    format!("00-{TRACE}-{PARENT:016x}-{flags}")
}

/// The span a subscriber was told to be part of.
fn told(world: &World, host: &str, number: usize) -> Span {
    let delivery = world.deliveries(host).remove(number);
    let parent = delivery.headers["traceparent"].to_str().unwrap().to_owned();
    Span::read(&parent).unwrap()
}

async fn watched() -> World {
    let mut world = World::watched();
    world.broker("ns", "default");
    world
}

#[tokio::test(start_paused = true)]
async fn an_attempt_is_part_of_the_coming_and_the_coming_of_what_the_publisher_did() {
    let mut world = watched().await;
    world.trigger(
        "t",
        "a",
        json!({"spec": {"delivery": {"retry": 3, "backoffDelay": "PT1S"}}}),
    );
    world.manner("a", Manner::FailFirst(1));
    world.route().await;
    let headers = [("traceparent", &*context("01")), ("tracestate", "vendor=1")];
    assert_eq!(world.publish_with("1", &headers).await, 202);
    world.until_delivered("t", 1).await;
    let seen = world.seen();
    let [coming, first, second] = &seen[..] else {
        panic!("{seen:#?}");
    };
    let trace = u128::from_str_radix(TRACE, 16).unwrap();
    assert!(seen.iter().all(|sight| sight.span.trace() == trace));
    assert!(seen.iter().all(|sight| sight.state == "vendor=1"));
    assert_eq!(
        (&*coming.place, coming.parent),
        ("broker/ns/default", Some(PARENT))
    );
    assert_eq!(coming.number, 0);
    for (number, attempt, status) in [(1, first, 500), (2, second, 200)] {
        assert_eq!(attempt.parent, Some(coming.span.id()));
        assert_eq!((attempt.number, attempt.status), (number, status));
        assert_eq!(&*attempt.place, "trigger/ns/t");
        assert_eq!(attempt.span, told(&world, "a", number as usize - 1));
        assert_eq!(attempt.offset, coming.offset);
    }
    assert_ne!(first.span, second.span);
    assert_eq!(first.error.as_deref(), Some("the subscriber answered 500"));
    assert_eq!(second.error, None);
    assert_eq!(world.deliveries("a")[0].headers["tracestate"], "vendor=1");
}

#[tokio::test(start_paused = true)]
async fn an_event_without_context_begins_a_trace_and_one_with_an_attribute_goes_on_from_it() {
    let mut world = watched().await;
    world.trigger("t", "a", json!({}));
    world.route().await;
    world.publish("new", &[]).await;
    world
        .publish("attribute", &[("traceparent", &context("01"))])
        .await;
    world.until_delivered("t", 2).await;
    let seen = world.seen();
    let of = |id: &str| -> Vec<&Sight> { seen.iter().filter(|sight| sight.id == id).collect() };
    let (new, attribute) = (of("new"), of("attribute"));
    assert_eq!((new[0].parent, new.len()), (None, 2));
    assert_eq!(new[0].span.trace(), new[1].span.trace());
    assert!(new[0].span.is_sampled());
    assert_eq!(attribute[0].parent, Some(PARENT));
    let delivery = world.deliveries("a");
    let carried = delivery.iter().find(|one| one.id == "attribute").unwrap();
    assert_eq!(
        carried.headers["ce-traceparent"],
        context("01"),
        "where a trace began does not change on the way"
    );
}

#[tokio::test(start_paused = true)]
async fn what_the_publisher_does_not_record_is_carried_and_not_told() {
    let mut world = watched().await;
    world.trigger("t", "a", json!({}));
    world.route().await;
    let headers = [("traceparent", &*context("00"))];
    world.publish_with("1", &headers).await;
    world.until_delivered("t", 1).await;
    assert!(world.seen().is_empty());
    let span = told(&world, "a", 0);
    assert_eq!(format!("{:032x}", span.trace()), TRACE);
    assert!(!span.is_sampled());
}

#[tokio::test(start_paused = true)]
async fn each_event_of_a_batch_has_a_span_of_its_own() {
    let mut world = watched().await;
    world.trigger("t", "a", json!({}));
    world.route().await;
    let event = |id: &str| json!({"specversion": "1.0", "id": id, "source": "/test", "type": "t"});
    let (status, ..) = world.post_batch(&json!([event("1"), event("2")])).await;
    assert_eq!(status, 202);
    world.until_delivered("t", 2).await;
    let seen = world.seen();
    let comings: Vec<&Sight> = seen.iter().filter(|sight| sight.number == 0).collect();
    let offsets: Vec<u64> = comings.iter().map(|sight| sight.offset).collect();
    assert_eq!((offsets, seen.len()), (vec![1, 2], 4));
    assert_ne!(comings[0].span.trace(), comings[1].span.trace());
    for attempt in seen.iter().filter(|sight| sight.number > 0) {
        let coming = comings
            .iter()
            .find(|coming| coming.id == attempt.id)
            .unwrap();
        assert_eq!(attempt.parent, Some(coming.span.id()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_goes_on_from_the_attempt_that_brought_it_also_over_a_crash() {
    let mut world = watched().await;
    world.deliver_a_reply_over_a_crash().await;
    let seen = world.seen();
    let asked = seen.iter().find(|sight| sight.place == "trigger/ns/asks");
    let asked = asked.unwrap().span;
    let hears: Vec<&Sight> = seen
        .iter()
        .filter(|sight| sight.place == "trigger/ns/hears")
        .collect();
    assert_eq!(hears.len(), 2);
    for (number, sight) in hears.iter().enumerate() {
        assert_eq!(sight.span.trace(), asked.trace());
        assert_eq!(sight.parent, Some(asked.id()));
        assert_eq!(sight.span, told(&world, "b", number));
    }
}

#[tokio::test(start_paused = true)]
async fn the_sink_for_dead_letters_is_told_apart() {
    let mut world = watched().await;
    world.trigger(
        "t",
        "a",
        json!({
            "spec": {"delivery": {"retry": 0, "deadLetterSink": {"uri": "http://sink/"}}},
            "status": {"deadLetterSinkUri": "http://sink/"},
        }),
    );
    world.manner("a", Manner::Answer(400));
    world.route().await;
    world.publish("1", &[]).await;
    world.until("told", |world| world.seen().len() == 3).await;
    let seen = world.seen();
    let attempts: Vec<_> = seen[1..]
        .iter()
        .map(|sight| (sight.sink, sight.status))
        .collect();
    assert_eq!(attempts, [(false, 400), (true, 202)]);
    assert_eq!(seen[2].span, told(&world, "sink", 0));
}
