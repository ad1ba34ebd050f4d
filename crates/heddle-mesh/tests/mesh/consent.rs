//! Subscribers that are asked before anything is sent to them: what consents, what does not, and how much may be sent.

use std::time::Duration;

use bytes::Bytes;
use heddle_api::dataplane::Held;
use heddle_api::ledger::EventState;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};

use crate::world::{Consent, Manner, World};

const ORIGIN: &str = "webhook-allowed-origin";
const RATE: &str = "webhook-allowed-rate";

fn asks(extra: Value) -> Value {
    let mut annotations = json!({"heddle.dev/webhook-origin": "mesh.example"});
    let extra = extra.as_object().unwrap().clone();
    annotations.as_object_mut().unwrap().extend(extra);
    json!({"metadata": {"annotations": annotations}})
}

/// A world with a trigger `t` whose subscriber, host `a`, is asked first.
async fn asking(consent: Consent) -> World {
    let mut world = World::with_broker();
    world.trigger("t", "a", asks(json!({})));
    world.consent("a", consent);
    world.route().await;
    world
}

fn missing(world: &World) -> Option<String> {
    match world.mesh.consumer("trigger/ns/t").unwrap().held {
        None => None,
        Some(Held::Unconsented(why)) => Some(why),
        Some(other) => panic!("{other:?}"),
    }
}

async fn delivered(world: &World, count: u64) {
    world.until_delivered("t", count).await;
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_that_consents_gets_its_events_and_hears_from_whom() {
    let mut world = World::with_broker();
    let mut trigger = asks(json!({"heddle.dev/webhook-rate": "120"}));
    trigger["status"] = json!({"subscriberUri": "http://a/hooks?tenant=7"});
    world.trigger("t", "a", trigger);
    world.consent(
        "a",
        Consent(204, vec![(ORIGIN, "mesh.example"), (RATE, "*")]),
    );
    world.route().await;
    world.publish("1", &[]).await;
    delivered(&world, 1).await;
    let [asked] = &world.asked("a")[..] else {
        panic!("asked once for all events");
    };
    assert_eq!(asked.path, "/hooks?tenant=7", "the exact URL");
    assert_eq!(asked.headers["webhook-request-origin"], "mesh.example");
    assert_eq!(asked.headers["webhook-request-rate"], "120");
    assert!(!asked.headers.contains_key("webhook-request-callback"));
    let delivery = &world.deliveries("a")[0];
    assert_eq!(delivery.headers["webhook-request-origin"], "mesh.example");
    assert!(!delivery.headers.contains_key("webhook-request-rate"));
    assert_eq!(missing(&world), None);
}

#[tokio::test(start_paused = true)]
async fn without_consent_nothing_is_sent_and_the_condition_says_what_is_missing() {
    for (consent, part) in [
        (Consent(200, vec![]), "without WebHook-Allowed-Origin"),
        (
            Consent(200, vec![(ORIGIN, "other.example"), (RATE, "*")]),
            "other.example",
        ),
        (Consent(200, vec![(ORIGIN, "*"), (RATE, "0")]), "above 0"),
        (
            Consent(302, vec![("location", "http://b/")]),
            "it answered 302",
        ),
        (Consent(503, vec![]), "it answered 503"),
        (Consent(405, vec![("allow", "POST")]), "it answered 405"),
    ] {
        let world = asking(consent).await;
        world.publish("1", &[]).await;
        world.pass(600).await;
        assert_eq!(world.received("a").len(), 0, "{part}");
        let why = missing(&world).unwrap();
        assert!(why.contains(part), "{why}");
        assert!(
            why.contains("WebHook-Allowed-Origin: mesh.example"),
            "{why}"
        );
        let verdict = world.trace("1").await.events[0].verdicts[0].clone();
        assert_eq!(verdict.state, EventState::Waiting);
        assert!(verdict.reason.contains(part), "{verdict:?}");
        assert!(world.account("t").held.unwrap().contains(part));
        assert!(world.asked("b").is_empty(), "redirects are not followed");
        let asked = world.asked("a").len();
        assert!((10..60).contains(&asked), "again and ever later: {asked}");
        // Nobody has to touch anything here once it does.
        world.consent("a", Consent(500, vec![(ORIGIN, "*"), (RATE, "*")]));
        delivered(&world, 1).await;
        assert_eq!(missing(&world), None);
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_is_sent_in_a_minute_than_was_allowed_and_nothing_is_lost() {
    let mut world = asking(Consent(200, vec![(ORIGIN, "*"), (RATE, "30")])).await;
    // The allowance is the destination's, however many send to it.
    world.trigger("u", "a", asks(json!({})));
    world.route().await;
    let begun = world.clock.monotonic();
    world
        .publish_many((0..100).map(|number| number.to_string()))
        .await;
    let mut last = 0;
    for minute in 1..7 {
        world.pass(60).await;
        let received = world.received("a").len();
        assert!(received - last <= 30, "{received} after minute {minute}");
        assert!(received - last >= 29, "{received} after minute {minute}");
        last = received;
    }
    for trigger in ["t", "u"] {
        world
            .until("delivered", |world| {
                let account = world.account(trigger);
                assert_eq!(account.dead_lettered, 0);
                account.delivered == 100
            })
            .await;
    }
    let took = world.clock.monotonic() - begun;
    assert!(took >= Duration::from_secs(199 * 2), "{took:?}");
    assert!(took < Duration::from_secs(199 * 2 + 30), "{took:?}");
    assert_eq!(world.asked("a").len(), 1, "one consent for both");
}

#[tokio::test(start_paused = true)]
async fn an_allowance_holds_for_attempts_that_fail_too() {
    let world = asking(Consent(200, vec![(ORIGIN, "*"), (RATE, "6")])).await;
    world.manner("a", Manner::FailFirst(2));
    for id in ["1", "2", "3"] {
        world.publish(id, &[]).await;
    }
    world.pass(59).await;
    assert_eq!(world.received("a").len(), 6);
    delivered(&world, 3).await;
    assert_eq!(world.received("a").len(), 9);
}

#[tokio::test(start_paused = true)]
async fn another_url_is_asked_anew_and_the_old_consent_says_nothing_about_it() {
    let mut world = asking(Consent(200, vec![(ORIGIN, "*"), (RATE, "*")])).await;
    world.publish("1", &[]).await;
    delivered(&world, 1).await;
    world.route().await;
    assert_eq!(world.asked("a").len(), 1, "the same URL need not be asked");
    world.trigger("t", "b", asks(json!({})));
    world.route().await;
    world.publish("2", &[]).await;
    world.pass(60).await;
    assert_eq!(world.received("b").len(), 0);
    assert!(missing(&world).unwrap().contains("http://b/"));
    world.consent(
        "b",
        Consent(200, vec![(ORIGIN, "mesh.example"), (RATE, "*")]),
    );
    delivered(&world, 2).await;
    assert_eq!(world.received("b"), ["2"]);
}

#[tokio::test(start_paused = true)]
async fn consent_is_asked_for_again_and_can_be_taken_back() {
    let world = asking(Consent(200, vec![(ORIGIN, "*"), (RATE, "*")])).await;
    world.publish("1", &[]).await;
    delivered(&world, 1).await;
    // Somebody in between who fails takes nothing back.
    world.consent("a", Consent(502, vec![]));
    world.pass(2 * 3600).await;
    assert!(world.asked("a").len() > 2);
    world.publish("2", &[]).await;
    delivered(&world, 2).await;
    world.consent(
        "a",
        Consent(200, vec![(ORIGIN, "other.example"), (RATE, "*")]),
    );
    world
        .until("taken back", |world| missing(world).is_some())
        .await;
    world.publish("3", &[]).await;
    world.pass(60).await;
    assert_eq!(world.received("a"), ["1", "2"]);
    world.consent("a", Consent(200, vec![(ORIGIN, "*"), (RATE, "*")]));
    delivered(&world, 3).await;
}

#[tokio::test(start_paused = true)]
async fn consent_ends_when_nobody_renews_it() {
    let world = asking(Consent(200, vec![(ORIGIN, "*"), (RATE, "*")])).await;
    world.publish("1", &[]).await;
    delivered(&world, 1).await;
    world.consent("a", Consent(503, vec![]));
    world.pass(23 * 3600).await;
    assert_eq!(missing(&world), None);
    world.pass(2 * 3600).await;
    assert!(missing(&world).unwrap().contains("503"));
}

#[tokio::test(start_paused = true)]
async fn a_restart_asks_again_and_loses_nothing() {
    for mut world in World::each_with_broker() {
        world.trigger("t", "a", asks(json!({})));
        world.route().await;
        world.publish("1", &[]).await;
        world.pass(5).await;
        world.crash().await;
        world.consent("a", Consent(200, vec![(ORIGIN, "*"), (RATE, "1")]));
        world.route().await;
        delivered(&world, 1).await;
        world.publish("2", &[]).await;
        world.publish("3", &[]).await;
        world.pass(10).await;
        // Closing does not wait for turns that are minutes away.
        let begun = world.clock.monotonic();
        world.restart().await;
        assert!(world.clock.monotonic() - begun < Duration::from_secs(1));
        world.route().await;
        delivered(&world, 3).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_origin_that_is_no_name_sends_nothing_rather_than_without_asking() {
    let mut world = World::with_broker();
    let annotations = json!({"heddle.dev/webhook-origin": "https://mesh.example"});
    world.trigger("t", "a", json!({"metadata": {"annotations": annotations}}));
    world.route().await;
    world.publish("1", &[]).await;
    world.pass(60).await;
    assert_eq!((world.received("a").len(), world.asked("a").len()), (0, 0));
    assert!(missing(&world).is_some());
    let routed = world.mesh.consumer("trigger/ns/t").unwrap();
    assert!(routed.faults[0].contains("DNS name"), "{routed:?}");
}

#[tokio::test(start_paused = true)]
async fn nobody_is_asked_who_need_not_be() {
    let mut world = World::with_broker();
    world.trigger("t", "a", json!({}));
    world.route().await;
    world.publish("1", &[]).await;
    delivered(&world, 1).await;
    assert!(world.asked("a").is_empty());
    let headers = &world.deliveries("a")[0].headers;
    assert!(!headers.contains_key("webhook-request-origin"));
}

/// Calls the door for consents; gives the status and the text.
async fn call(
    world: &World,
    method: &str,
    path: &str,
    rate: Option<&str>,
) -> Option<(u16, String)> {
    let mut request = Request::builder().method(method).uri(path);
    if let Some(rate) = rate {
        request = request.header(RATE, rate);
    }
    let request = request.body(Full::<Bytes>::default()).unwrap();
    let response = world.mesh.source().consent(&request)?;
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    Some((status, String::from_utf8(body.to_vec()).unwrap()))
}

/// The path that the newest question said to call.
fn callback(world: &World) -> String {
    let asked = world.asked("a");
    let url = asked.last().unwrap().headers["webhook-request-callback"].to_str();
    let path = url
        .unwrap()
        .strip_prefix("http://mesh.example:8081")
        .unwrap();
    path.to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_may_consent_later_by_the_callback_it_was_told() {
    for method in ["GET", "POST"] {
        let mut world = World::in_memory().await;
        world
            .mesh
            .serve_at(Some("http://mesh.example:8081/".to_owned()));
        world.broker("ns", "default");
        world.trigger("t", "a", asks(json!({})));
        world.route().await;
        for id in ["1", "2", "3"] {
            world.publish(id, &[]).await;
        }
        world.pass(10).await;
        let path = callback(&world);
        assert_eq!(call(&world, "DELETE", &path, None).await.unwrap().0, 405);
        assert_eq!(call(&world, method, &path, Some("0")).await.unwrap().0, 400);
        let guessed = format!("{}00", &path[..path.len() - 2]);
        assert_eq!(call(&world, method, &guessed, None).await.unwrap().0, 404);
        assert_eq!(call(&world, method, "/shop/events", None).await, None);
        assert!(missing(&world).is_some(), "none of these is consent");
        let (status, text) = call(&world, method, &path, Some("2")).await.unwrap();
        assert_eq!(status, 200, "{text}");
        assert_eq!(missing(&world), None);
        world.pass(25).await;
        assert_eq!(world.received("a").len(), 1, "two per minute");
        delivered(&world, 3).await;
        assert_eq!(
            call(&world, method, &path, None).await.unwrap().0,
            404,
            "once"
        );
        if method == "GET" {
            continue;
        }
        // It is asked again in time, and its silence takes nothing back.
        world.pass(13 * 3600).await;
        assert_ne!(callback(&world), path);
        assert_eq!(missing(&world), None);
        world.pass(12 * 3600).await;
        assert!(missing(&world).is_some());
    }
}
