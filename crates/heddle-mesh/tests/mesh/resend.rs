//! Events of the log that are sent again to one trigger: previewed, each once, over crashes, and told in every account.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::body::Body;
use heddle_api::access::{Access, Role, Scope};
use heddle_api::dead_letters::{BulkAct, BulkOperation, BulkOperations, BulkState};
use heddle_api::ledger::EventState;
use heddle_api::resend::{ResendPreview, ResendRequest};
use heddle_mesh::questions;
use http::Request;
use http_body_util::BodyExt as _;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::world::{Manner, World};

const CONSUMER: &str = "trigger/ns/t";

fn admin() -> Access {
    Access::administrator("ada")
}

fn operator(namespace: &str, payloads: bool) -> Access {
    Access {
        user: "olga".to_owned(),
        role: Role::Operator,
        scope: Scope::Namespaces(BTreeSet::from([namespace.to_owned()])),
        payloads,
    }
}

async fn call(world: &World, access: &Access, request: Request<Body>) -> (u16, String) {
    let mut request = request;
    request.extensions_mut().insert(access.clone());
    let router = questions::router(world.mesh.clone());
    let response = router.oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

async fn post(world: &World, access: &Access, path: &str, body: &Value) -> (u16, String) {
    let request = Request::post(path).body(Body::from(body.to_string()));
    call(world, access, request.unwrap()).await
}

async fn get<T: DeserializeOwned>(world: &World, path: &str) -> T {
    let request = Request::get(path).body(Body::empty()).unwrap();
    let (status, answer) = call(world, &admin(), request).await;
    assert_eq!(status, 200, "{path}: {answer}");
    serde_json::from_str(&answer).unwrap()
}

fn asked(query: &str) -> ResendRequest {
    ResendRequest {
        consumer: CONSUMER.to_owned(),
        query: query.to_owned(),
        ..ResendRequest::default()
    }
}

async fn preview(world: &World, access: &Access, request: &ResendRequest) -> ResendPreview {
    let request = ResendRequest {
        dry_run: true,
        ..request.clone()
    };
    let (status, answer) = post(world, access, "/events/resend", &json!(request)).await;
    assert_eq!(status, 200, "{answer}");
    serde_json::from_str(&answer).unwrap()
}

async fn begin(world: &World, access: &Access, request: &ResendRequest) -> BulkOperation {
    let (status, answer) = post(world, access, "/events/resend", &json!(request)).await;
    assert_eq!(status, 202, "{answer}");
    serde_json::from_str(&answer).unwrap()
}

async fn ended(world: &World, id: &str) -> BulkOperation {
    for _ in 0..10_000 {
        let operation: BulkOperation = get(world, &format!("/events/operations/{id}")).await;
        if operation.state != BulkState::Running {
            return operation;
        }
        world.clock.sleep(Duration::from_millis(20)).await;
    }
    panic!("operation {id} does not end");
}

async fn publish(world: &World, count: usize) {
    world
        .publish_many((1..=count).map(|number| format!("e{number:03}")))
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_range_is_sent_again_and_the_accounts_and_traces_say_so() {
    for mut world in World::each_with_broker() {
        world.trigger("t", "t", json!({}));
        world.trigger("other", "other", json!({}));
        world.route().await;
        publish(&world, 10).await;
        world.until_delivered("t", 10).await;
        world.until_delivered("other", 10).await;
        let request = ResendRequest {
            from: Some(3),
            before: Some(8),
            ..asked("")
        };
        let told = preview(&world, &admin(), &request).await;
        assert_eq!((told.count, told.filtered, told.pending), (5, 0, 0));
        let edges = (told.oldest.unwrap(), told.newest.unwrap());
        assert_eq!((edges.0.offset, &*edges.0.id), (3, "e003"));
        assert_eq!((edges.1.offset, &*edges.1.id), (7, "e007"));
        assert!(told.bytes > 0 && !told.more);
        assert_eq!(world.account("t").sent_again, 0, "a preview does nothing");

        world.subscribers.forget();
        let begun = begin(&world, &admin(), &request).await;
        assert_eq!((begun.act, begun.total), (BulkAct::Resend, 5));
        assert_eq!(begun.consumer.as_deref(), Some(CONSUMER));
        let done = ended(&world, &begun.id).await;
        assert_eq!((done.state, done.count, done.left), (BulkState::Done, 5, 0));
        world.until_delivered("t", 15).await;
        let expected = ["e003", "e004", "e005", "e006", "e007"];
        assert_eq!(world.received_sorted("t"), expected);
        assert_eq!(world.received("other"), [""; 0], "nobody else gets them");

        let account = world.account("t");
        assert_eq!((account.matched, account.sent_again), (10, 5));
        assert_eq!((account.difference(), account.pending), (0, 0));
        let trace = world.trace("e005").await;
        let verdicts = &trace.events[0].verdicts;
        let verdict = verdicts.iter().find(|one| one.consumer == CONSUMER);
        let verdict = verdict.unwrap();
        assert_eq!(verdict.state, EventState::Delivered);
        assert_eq!(verdict.attempts.len(), 2, "{verdict:?}");

        world.restart().await;
        world.route().await;
        let again = world.account("t");
        assert_eq!(
            (again.matched, again.sent_again, again.delivered),
            (10, 5, 15)
        );
        assert_eq!((again.difference(), again.pending), (0, 0));
        let all: BulkOperations = get(&world, "/events/operations").await;
        assert_eq!(all.operations.len(), 1);
        let letters: BulkOperations = get(&world, "/dead-letters/operations").await;
        assert!(letters.operations.is_empty(), "each kind where it belongs");
    }
}

#[tokio::test(start_paused = true)]
async fn each_goes_once_over_crashes_while_the_subscriber_is_slow() {
    let mut world = World::on_disk_with_broker();
    world.trigger("t", "t", json!({}));
    world.route().await;
    publish(&world, 300).await;
    world.until_delivered("t", 300).await;
    world.subscribers.forget();
    world.manner("t", Manner::AcceptAfter(Duration::from_millis(300)));
    let begun = begin(&world, &admin(), &asked("since:1d")).await;
    assert_eq!(begun.total, 300);
    for _ in 0..4 {
        let before = world.account("t").sent_again;
        world
            .until("some more were sent again", |world| {
                world.account("t").sent_again > before + 20
            })
            .await;
        world.crash().await;
        world.route().await;
    }
    let done = ended(&world, &begun.id).await;
    assert_eq!((done.state, done.count), (BulkState::Done, 300), "{done:?}");
    world.until_delivered("t", 600).await;
    let account = world.account("t");
    assert_eq!(account.sent_again, 300, "each once by its operation");
    assert_eq!((account.difference(), account.pending), (0, 0));
    let ids: BTreeSet<String> = world.received("t").into_iter().collect();
    assert_eq!(ids.len(), 300);
}

#[tokio::test(start_paused = true)]
async fn what_is_stopped_sends_no_more_and_stays_stopped() {
    let mut world = World::on_disk_with_broker();
    world.trigger("t", "t", json!({}));
    world.route().await;
    publish(&world, 200).await;
    world.until_delivered("t", 200).await;
    world.manner("t", Manner::AcceptAfter(Duration::from_secs(1)));
    let begun = begin(&world, &admin(), &asked("since:1d")).await;
    world
        .until("some were sent again", |world| {
            world.account("t").sent_again > 5
        })
        .await;
    let stop = format!("/events/operations/{}/stop", begun.id);
    let viewer = Access {
        role: Role::Viewer,
        ..operator("ns", false)
    };
    assert_eq!(post(&world, &viewer, &stop, &json!({})).await.0, 403);
    let elsewhere = operator("elsewhere", true);
    assert_eq!(post(&world, &elsewhere, &stop, &json!({})).await.0, 404);
    let (status, answer) = post(&world, &admin(), &stop, &json!({})).await;
    assert_eq!(status, 200, "{answer}");
    let sent = world.account("t").sent_again;
    world.restart().await;
    world.route().await;
    world.manner("t", Manner::Accept);
    world.until_delivered("t", 200 + sent).await;
    world.pass(60).await;
    assert_eq!(world.account("t").sent_again, sent);
    let kept: BulkOperation = get(&world, &format!("/events/operations/{}", begun.id)).await;
    assert_eq!((kept.state, kept.count), (BulkState::Stopped, sent));
    assert_eq!(kept.stopped_by.as_deref(), Some("ada"));
}

#[tokio::test(start_paused = true)]
async fn what_is_on_its_way_rests_or_is_not_wanted_is_left_and_told() {
    let mut world = World::on_disk_with_broker();
    world.trigger("t", "t", json!({"spec": {"delivery": {"retry": 0}}}));
    world.route().await;
    world.manner("t", Manner::AnswerTo(&["e002"], 400));
    publish(&world, 4).await;
    world.until_delivered("t", 3).await;
    world.until_dead_lettered("t", 1).await;
    world.manner("t", Manner::HangOn("e005"));
    world.publish("e005", &[]).await;
    world
        .until("it is under way", |world| world.account("t").in_flight == 1)
        .await;
    let told = preview(&world, &admin(), &asked("since:1d")).await;
    assert_eq!((told.count, told.pending, told.dead_letters), (3, 1, 1));
    // From now on it wants others.
    let other = json!({
        "metadata": {"generation": 2},
        "spec": {"filters": [{"exact": {"type": "something.else"}}]},
    });
    world.trigger("t", "t", other);
    world.route().await;
    let told = preview(&world, &admin(), &asked("since:1d")).await;
    assert_eq!((told.count, told.filtered), (0, 5));
    let (status, answer) = post(
        &world,
        &admin(),
        "/events/resend",
        &json!(asked("since:1d")),
    )
    .await;
    assert_eq!(status, 409, "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_new_trigger_gets_what_came_before_it() {
    let mut world = World::on_disk_with_broker();
    world.trigger("first", "first", json!({}));
    world.route().await;
    publish(&world, 5).await;
    world.until_delivered("first", 5).await;
    world.trigger("t", "t", json!({}));
    world.route().await;
    assert_eq!(world.account("t").matched, 0);
    let begun = begin(&world, &admin(), &asked("since:1d")).await;
    ended(&world, &begun.id).await;
    world.until_delivered("t", 5).await;
    let account = world.account("t");
    assert_eq!((account.matched, account.sent_again), (0, 5));
    assert_eq!(account.difference(), 0);
    let trace = world.trace("e001").await;
    let verdicts = &trace.events[0].verdicts;
    let own = verdicts.iter().find(|one| one.consumer == CONSUMER);
    assert_eq!(own.map(|one| one.state), Some(EventState::Delivered));
    world.crash().await;
    world.route().await;
    assert_eq!(world.account("t").difference(), 0);
    assert_eq!(world.account("t").pending, 0);
}

#[tokio::test(start_paused = true)]
async fn one_that_fails_is_tried_again_rests_and_can_be_redriven() {
    let mut world = World::on_disk_with_broker();
    world.trigger(
        "t",
        "t",
        json!({"spec": {"delivery": {"retry": 2, "backoffDelay": "PT1S"}}}),
    );
    world.route().await;
    publish(&world, 2).await;
    world.until_delivered("t", 2).await;
    world.manner("t", Manner::Answer(503));
    let begun = begin(&world, &admin(), &asked("since:1d")).await;
    ended(&world, &begun.id).await;
    world.until_retrying("t", 2).await;
    world.crash().await;
    world.route().await;
    world.until_dead_lettered("t", 2).await;
    let account = world.account("t");
    assert_eq!((account.sent_again, account.difference()), (2, 0));
    world.manner("t", Manner::Accept);
    let all = json!({"all": true});
    assert_eq!(
        post(&world, &admin(), "/dead-letters/redrive", &all)
            .await
            .0,
        200
    );
    world.until_delivered("t", 4).await;
    assert_eq!(world.account("t").difference(), 0);
}

#[tokio::test(start_paused = true)]
async fn who_asks_must_be_able_to_act_there_and_to_see_the_events() {
    let mut world = World::on_disk_with_broker();
    world.trigger("t", "t", json!({}));
    world.route().await;
    publish(&world, 3).await;
    world.until_delivered("t", 3).await;
    let own = operator("ns", false);
    assert_eq!(preview(&world, &own, &asked("since:1d")).await.count, 3);
    let of = async |access: &Access, request: &ResendRequest| {
        post(&world, access, "/events/resend", &json!(request))
            .await
            .0
    };
    assert_eq!(
        of(&operator("elsewhere", true), &asked("since:1d")).await,
        404
    );
    let viewer = Access {
        role: Role::Viewer,
        ..own.clone()
    };
    assert_eq!(of(&viewer, &asked("since:1d")).await, 403);
    assert_eq!(of(&own, &asked("since:1d data.x=1")).await, 403);
    assert_eq!(of(&admin(), &asked("")).await, 400, "all of the log");
    assert_eq!(of(&admin(), &asked("state:delivered")).await, 400);
    let missing = ResendRequest {
        consumer: "trigger/ns/none".to_owned(),
        ..asked("since:1d")
    };
    assert_eq!(of(&admin(), &missing).await, 404);
}
