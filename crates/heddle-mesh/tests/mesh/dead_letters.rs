//! Dead letters by the thousand: put into groups, looked at before anything is done, taken once whatever happens, and tried.

use std::collections::BTreeMap;

use axum::body::Body;
use heddle_api::access::{Access, Role, Scope};
use heddle_api::dead_letters::marks::{GroupMark, MarkKind, MarkReopened};
use heddle_api::dead_letters::{
    BulkAct, BulkOperation, BulkOperations, BulkState, DeadLetterGroups, DeadLetterPreview,
    FailureClass, NOT_CURED_BY_REPEATING, SubscriberNow, TriedDeadLetter, TriedOutcome,
};
use heddle_api::ledger::{DeadLetterDetail, DeadLetterPage, DeadLettersTaken};
use http::{Method, Request};
use http_body_util::BodyExt as _;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::world::{Manner, World};

/// Somebody with a role in these namespaces, or everywhere.
pub(crate) fn ada(role: Role, namespaces: &[&str], payloads: bool) -> Access {
    let names = namespaces.iter().map(|name| (*name).to_owned());
    Access {
        user: "ada".to_owned(),
        role,
        scope: match namespaces {
            [] => Scope::All,
            _ => Scope::Namespaces(names.collect()),
        },
        payloads,
    }
}

/// Asks as somebody; gives the status and the body.
pub(crate) async fn ask(
    world: &World,
    access: Option<Access>,
    path: &str,
    body: Option<Value>,
) -> (u16, Value) {
    let method = match &body {
        None => Method::GET,
        Some(_) => Method::POST,
    };
    send(world, access, (method, path), body).await
}

/// The same with another method.
async fn send(
    world: &World,
    access: Option<Access>,
    (method, path): (Method, &str),
    body: Option<Value>,
) -> (u16, Value) {
    let request = Request::builder().method(method).uri(path);
    let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
    let mut request = request.body(body).unwrap();
    let access = access.unwrap_or_else(|| Access::administrator("somebody"));
    request.extensions_mut().insert(access);
    let router = heddle_mesh::questions::router(world.mesh.clone());
    let response = router.oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

/// Asks as an administrator; gives the status and the body as it was written.
async fn ask_text(world: &World, path: &str, body: Option<String>) -> (u16, String) {
    let request = match &body {
        None => Request::get(path),
        Some(_) => Request::post(path),
    };
    let mut request = request.body(Body::from(body.unwrap_or_default())).unwrap();
    let access = Access::administrator("somebody");
    request.extensions_mut().insert(access);
    let router = heddle_mesh::questions::router(world.mesh.clone());
    let response = router.oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

async fn get<T: DeserializeOwned>(world: &World, path: &str) -> T {
    let (status, body) = ask(world, None, path, None).await;
    assert_eq!(status, 200, "{path}: {body}");
    serde_json::from_value(body).unwrap()
}

async fn post<T: DeserializeOwned>(world: &World, path: &str, body: Value) -> (u16, T) {
    let (status, body) = ask(world, None, path, Some(body)).await;
    let read = serde_json::from_value(body.clone());
    (
        status,
        read.unwrap_or_else(|error| panic!("{path}: {error}: {body}")),
    )
}

/// A trigger `t` whose subscriber `a` refuses everything at once, and so many events that it refused.
async fn refused(world: &mut World, count: u64) {
    world.trigger("t", "a", json!({"spec": {"delivery": {"retry": 0}}}));
    world.manner("a", Manner::Answer(500));
    world.route().await;
    world
        .publish_many((0..count).map(|number| number.to_string()))
        .await;
    world.until_dead_lettered("t", count).await;
}

async fn until_ended(world: &World, id: &str) -> BulkOperation {
    loop {
        let found: BulkOperation = get(world, &format!("/dead-letters/operations/{id}")).await;
        if found.state != BulkState::Running {
            return found;
        }
        world.pass(1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn seven_causes_are_seven_groups_however_many_letters_there_are() {
    let mut world = World::with_broker();
    let mut expected = BTreeMap::new();
    for (index, status) in [400, 401, 403, 413, 500, 503].into_iter().enumerate() {
        let name = format!("t{index}");
        let host = format!("h{index}");
        world.trigger(&name, &host, json!({"spec": {"delivery": {"retry": 0}}}));
        world.manner(&host, Manner::Answer(status));
        expected.insert(
            format!("trigger/ns/{name}"),
            (Some(status), FailureClass::Answer),
        );
    }
    let hurried = json!({"retry": 0, "timeout": "PT1S"});
    world.trigger("late", "late", json!({"spec": {"delivery": hurried}}));
    world.manner("late", Manner::Hang);
    expected.insert("trigger/ns/late".to_owned(), (None, FailureClass::Timeout));
    world.route().await;
    for number in 0..30 {
        let type_ = ["order.created", "order.paid"][number % 2];
        world.publish(&number.to_string(), &[("type", type_)]).await;
    }
    for name in expected.keys() {
        let name = name.rsplit('/').next().unwrap();
        world.until_dead_lettered(name, 30).await;
    }
    let groups: DeadLetterGroups = get(&world, "/dead-letters/groups").await;
    assert_eq!((groups.groups.len(), groups.total), (7, 210), "{groups:#?}");
    for group in &groups.groups {
        let (status, class) = expected[group.consumer.as_ref().unwrap()];
        assert_eq!((group.status, group.class), (status, Some(class)));
        assert_eq!(group.count, 30);
        assert_eq!(group.types, ["order.created", "order.paid"]);
        assert!(group.first <= group.last);
        assert_eq!(group.subscriber_now, Some(SubscriberNow::Failing));
        let expected = match class {
            FailureClass::Timeout => "no answer within #s",
            _ => "no",
        };
        assert_eq!(group.reason.as_deref(), Some(expected));
        // The key selects them and nothing else.
        let query = form_urlencoded::byte_serialize(group.key.as_bytes()).collect::<String>();
        let page: DeadLetterPage = get(&world, &format!("/dead-letters?group={query}")).await;
        assert_eq!(page.total, 30);
        assert!(
            page.items
                .iter()
                .all(|one| Some(&one.consumer) == group.consumer.as_ref())
        );
        assert!(page.items.iter().any(|one| one.name == group.sample));
    }
    let by_type: DeadLetterGroups = get(&world, "/dead-letters/groups?by=type").await;
    let counts: Vec<_> = by_type
        .groups
        .iter()
        .map(|one| (&*one.key, one.count))
        .collect();
    assert_eq!(
        counts,
        [("type:order.created", 105), ("type:order.paid", 105)]
    );
    assert_eq!(by_type.groups[0].consumer, None, "they are of many");
    let (status, _) = ask(&world, None, "/dead-letters/groups?by=colour", None).await;
    assert_eq!(status, 400);
}

#[tokio::test(start_paused = true)]
async fn what_a_preview_shows_is_what_happens_and_nothing_that_came_since() {
    let mut world = World::with_broker();
    refused(&mut world, 5).await;
    let all = json!({"all": true, "dryRun": true});
    let (status, preview): (_, DeadLetterPreview) =
        post(&world, "/dead-letters/redrive", all).await;
    assert_eq!((status, preview.count), (200, 5));
    assert!(preview.bytes > 0 && preview.hints.is_empty(), "{preview:?}");
    assert_eq!(preview.consumers[0].verdict, SubscriberNow::Failing);
    assert_eq!(world.account("t").dead_letters, 5, "nothing was changed");
    // Another one comes to rest before it is done.
    world.publish("late", &[]).await;
    world.until_dead_lettered("t", 6).await;
    world.manner("a", Manner::Accept);
    let real = json!({"all": true, "upTo": preview.up_to});
    let (_, taken): (_, DeadLettersTaken) = post(&world, "/dead-letters/redrive", real).await;
    assert_eq!(taken.count, preview.count);
    world.until_delivered("t", 5).await;
    let page: DeadLetterPage = get(&world, "/dead-letters").await;
    let left: Vec<_> = page.items.iter().map(|letter| &*letter.id).collect();
    assert_eq!(left, ["late"]);
    let healthy = json!({"all": true, "dryRun": true});
    let (_, preview): (_, DeadLetterPreview) = post(&world, "/dead-letters/discard", healthy).await;
    assert_eq!(preview.consumers[0].verdict, SubscriberNow::Healthy);
    let nothing = json!({"dryRun": true});
    let (_, preview): (_, DeadLetterPreview) = post(&world, "/dead-letters/redrive", nothing).await;
    assert_eq!(
        (preview.count, preview.up_to),
        (0, None),
        "nothing said selects nothing"
    );
}

#[tokio::test(start_paused = true)]
async fn a_preview_says_what_repeating_does_not_cure_and_whom_order_makes_wait() {
    let mut world = World::with_broker();
    let ordered = json!({
        "metadata": {"annotations": {"heddle.dev/delivery-order": "ordered"}},
        "spec": {"delivery": {"retry": 0}},
    });
    world.trigger("t", "a", ordered);
    world.manner("a", Manner::AnswerTo(&["1"], 413));
    world.route().await;
    world.publish("1", &[]).await;
    world.until_dead_lettered("t", 1).await;
    world.manner("a", Manner::Hang);
    world.publish("2", &[]).await;
    world.publish("3", &[]).await;
    world.until_pending("t", 2).await;
    let all = json!({"consumer": "trigger/ns/t", "dryRun": true});
    let (_, preview): (_, DeadLetterPreview) = post(&world, "/dead-letters/redrive", all).await;
    assert_eq!(preview.hints, [NOT_CURED_BY_REPEATING]);
    let consumer = &preview.consumers[0];
    assert_eq!((consumer.ordered, consumer.overtakes), (true, 2));
}

#[tokio::test(start_paused = true)]
async fn many_are_an_operation_that_can_be_watched_and_leaves_fresh_events_their_turn() {
    let mut world = World::with_broker();
    refused(&mut world, 1200).await;
    world.manner("a", Manner::Accept);
    world.subscribers.forget();
    let all = json!({"all": true});
    let (status, begun): (_, BulkOperation) = post(&world, "/dead-letters/redrive", all).await;
    assert_eq!(
        (status, begun.total, begun.act),
        (202, 1200, BulkAct::Redrive)
    );
    world.publish("fresh", &[]).await;
    world.until_delivered("t", 1201).await;
    let ended = until_ended(&world, &begun.id).await;
    assert_eq!(
        (ended.state, ended.count, ended.left),
        (BulkState::Done, 1200, 0)
    );
    let received = world.received("a");
    assert_eq!(received.len(), 1201, "each once");
    let place = received.iter().position(|id| id == "fresh").unwrap();
    assert!(
        place < 600,
        "it was not kept waiting until the end: {place}"
    );
    let all: BulkOperations = get(&world, "/dead-letters/operations").await;
    assert_eq!(all.operations, [ended]);
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_is_stopped_takes_no_more_also_after_a_restart() {
    let mut world = World::with_broker();
    refused(&mut world, 1000).await;
    let all = json!({"all": true});
    let (_, begun): (_, BulkOperation) = post(&world, "/dead-letters/discard", all).await;
    let stop = format!("/dead-letters/operations/{}/stop", begun.id);
    world
        .clock
        .sleep(std::time::Duration::from_millis(50))
        .await;
    let (status, stopped): (_, BulkOperation) = post(&world, &stop, json!({})).await;
    assert_eq!((status, stopped.state), (200, BulkState::Stopped));
    assert_eq!(stopped.stopped_by.as_deref(), Some("somebody"));
    let left = world.account("t").dead_letters;
    assert!(stopped.count > 0 && left > 0, "{stopped:?}");
    assert_eq!(left, 1000 - stopped.count);
    world.pass(10).await;
    world.restart().await;
    world.route().await;
    world.pass(10).await;
    assert_eq!(world.account("t").dead_letters, left);
    let found: BulkOperation = get(&world, &format!("/dead-letters/operations/{}", begun.id)).await;
    assert_eq!(
        (found.state, found.count),
        (BulkState::Stopped, stopped.count)
    );
    let (status, _) = ask(&world, None, "/dead-letters/operations/99", None).await;
    assert_eq!(status, 404);
}

/// The power goes after every moment of an operation: each letter leaves once, and none that came later does.
#[tokio::test(start_paused = true)]
async fn wherever_the_power_goes_each_letter_leaves_once() {
    for act in ["redrive", "discard"] {
        for millis in [0, 1, 5, 15, 21, 30, 41, 60, 90, 150, 400] {
            let mut world = World::on_disk();
            world.broker("ns", "default");
            refused(&mut world, 150).await;
            world.mesh.settled().await;
            world.manner("a", Manner::Accept);
            let all = json!({"all": true, "detach": true});
            let path = format!("/dead-letters/{act}");
            let (status, begun): (_, BulkOperation) = post(&world, &path, all).await;
            assert_eq!(status, 202);
            world
                .clock
                .sleep(std::time::Duration::from_millis(millis))
                .await;
            world.crash().await;
            world.manner("a", Manner::AnswerTo(&["late"], 500));
            world.route().await;
            world.publish("late", &[]).await;
            let ended = until_ended(&world, &begun.id).await;
            world.pass(5).await;
            assert_eq!(
                (ended.state, ended.count),
                (BulkState::Done, 150),
                "{act} {millis}"
            );
            let account = world.account("t");
            let expected = match act {
                "redrive" => (150, 0, 1),
                _ => (0, 150, 1),
            };
            let found = (account.delivered, account.removed, account.dead_letters);
            assert_eq!(found, expected, "{act} {millis}");
            world.crash().await;
            world.route().await;
            world.pass(5).await;
            assert_eq!(
                world.account("t").dead_letters,
                1,
                "and it has ended: {act} {millis}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn letters_of_a_consumer_that_is_gone_stay_and_one_that_is_paused_keeps_nobody_waiting() {
    let mut world = World::with_broker();
    let quick = json!({"spec": {"delivery": {"retry": 0}}});
    for (name, host) in [("gone", "g"), ("paused", "p"), ("well", "w")] {
        world.trigger(name, host, quick.clone());
        world.manner(host, Manner::Answer(500));
    }
    world.route().await;
    world
        .publish_many((0..100).map(|number| number.to_string()))
        .await;
    for name in ["gone", "paused", "well"] {
        world.until_dead_lettered(name, 100).await;
    }
    for host in ["g", "p", "w"] {
        world.manner(host, Manner::Accept);
    }
    world.remove_trigger("gone");
    world.remove_trigger("paused");
    let paused = json!({
        "metadata": {"annotations": {"heddle.dev/paused": "true"}},
        "spec": {"delivery": {"retry": 0}},
    });
    world.trigger("paused", "p", paused);
    world.route().await;
    let groups: DeadLetterGroups = get(&world, "/dead-letters/groups").await;
    let now: BTreeMap<_, _> = (groups.groups.iter())
        .map(|group| {
            (
                group.consumer.as_deref().unwrap(),
                group.subscriber_now.unwrap(),
            )
        })
        .collect();
    assert_eq!(now["trigger/ns/gone"], SubscriberNow::Gone);
    assert_eq!(now["trigger/ns/paused"], SubscriberNow::Paused);
    let all = json!({"all": true, "detach": true});
    let (_, begun): (_, BulkOperation) = post(&world, "/dead-letters/redrive", all).await;
    world.until_delivered("well", 100).await;
    world.pass(5).await;
    let path = format!("/dead-letters/operations/{}", begun.id);
    let found: BulkOperation = get(&world, &path).await;
    assert_eq!(
        (found.state, found.left),
        (BulkState::Running, 100),
        "{found:?}"
    );
    assert!(
        found
            .waits
            .as_ref()
            .is_some_and(|why| why.contains("paused")),
        "{found:?}"
    );
    assert_eq!(world.account("gone").dead_letters, 100);
}

#[tokio::test(start_paused = true)]
async fn one_is_tried_and_its_subscriber_is_heard() {
    let mut world = World::with_broker();
    refused(&mut world, 2).await;
    let page: DeadLetterPage = get(&world, "/dead-letters").await;
    let path = |name: &str| format!("/dead-letters/{name}/try");
    let (status, tried): (_, TriedDeadLetter) =
        post(&world, &path(&page.items[0].name), json!({})).await;
    assert_eq!((status, tried.outcome), (200, TriedOutcome::DeadLettered));
    assert_eq!(
        (tried.status, tried.answer.as_deref()),
        (Some(500), Some("no"))
    );
    let again = tried.rests_as.unwrap();
    world.manner("a", Manner::Accept);
    let (_, tried): (_, TriedDeadLetter) = post(&world, &path(&again), json!({})).await;
    assert_eq!(
        (tried.outcome, tried.status),
        (TriedOutcome::Delivered, Some(202))
    );
    assert_eq!(world.account("t").delivered, 1);
    world.manner("a", Manner::Hang);
    let second = &page.items[1].name;
    let (_, tried): (_, TriedDeadLetter) = post(&world, &path(second), json!({})).await;
    assert_eq!(
        tried.outcome,
        TriedOutcome::UnderWay,
        "whoever asks waits no longer than a while"
    );
    let (status, _) = ask(&world, None, &path("999"), Some(json!({}))).await;
    assert_eq!(status, 404);
}

#[tokio::test(start_paused = true)]
async fn whoever_may_not_act_changes_nothing_and_sees_only_what_is_theirs() {
    let mut world = World::with_broker();
    refused(&mut world, 3).await;
    let page: DeadLetterPage = get(&world, "/dead-letters").await;
    let name = &page.items[0].name;
    let all = || Some(json!({"all": true}));
    let viewer = || Some(ada(Role::Viewer, &["ns"], false));
    let elsewhere = || Some(ada(Role::Operator, &["other"], true));
    for path in ["/dead-letters/redrive", "/dead-letters/discard"] {
        let (status, _) = ask(&world, viewer(), path, all()).await;
        assert_eq!(status, 403, "{path}");
        let (status, taken) = ask(&world, elsewhere(), path, all()).await;
        assert_eq!((status, &taken["count"]), (200, &json!(0)), "{path}");
    }
    let try_path = format!("/dead-letters/{name}/try");
    assert_eq!(ask(&world, viewer(), &try_path, all()).await.0, 403);
    assert_eq!(ask(&world, elsewhere(), &try_path, all()).await.0, 404);
    assert_eq!(world.account("t").dead_letters, 3);
    let show = format!("/dead-letters/{name}");
    assert_eq!(ask(&world, elsewhere(), &show, None).await.0, 404);
    let (_, groups) = ask(&world, elsewhere(), "/dead-letters/groups", None).await;
    assert_eq!(groups["total"], 0);
    let (_, seen) = ask(&world, viewer(), &show, None).await;
    assert_eq!(
        (&seen["event"]["id"], &seen["event"]["data"]),
        (&json!("0"), &Value::Null)
    );
    assert_eq!(
        (&seen["event"]["data_base64"], &seen["answer"]),
        (&Value::Null, &Value::Null)
    );
    let reader = Some(ada(Role::Viewer, &["ns"], true));
    let (_, seen) = ask(&world, reader, &show, None).await;
    let seen: DeadLetterDetail = serde_json::from_value(seen).unwrap();
    assert_eq!(seen.answer.as_deref(), Some("no"));
    let detached = Some(json!({"all": true, "detach": true}));
    let operator = Some(ada(Role::Operator, &["ns"], false));
    let (status, begun) = ask(&world, operator, "/dead-letters/discard", detached).await;
    assert_eq!((status, &begun["by"]), (202, &json!("ada")));
    let operation = format!("/dead-letters/operations/{}", begun["id"].as_str().unwrap());
    assert_eq!(ask(&world, elsewhere(), &operation, None).await.0, 404);
    assert_eq!(ask(&world, viewer(), &operation, None).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn numbers_of_an_event_come_out_as_they_went_in() {
    let data = r#"{"a":9007199254740993,"b":10.10,"c":123456789012345678901234567890}"#;
    let mut world = World::with_broker();
    world.trigger("u", "b", json!({"spec": {"delivery": {"retry": 0}}}));
    world.manner("b", Manner::Answer(422));
    world.route().await;
    let text = format!(r#"{{"to":"broker/ns/default","type":"t","id":"exact","data":{data}}}"#);
    let (status, body) = ask_text(&world, "/publish", Some(text)).await;
    assert_eq!(status, 200, "{body}");
    world.until_dead_lettered("u", 1).await;
    let delivered = String::from_utf8_lossy(&world.deliveries("b")[0].body).into_owned();
    assert!(delivered.contains(data), "{delivered}");
    let (_, page) = ask_text(&world, "/dead-letters", None).await;
    let page: DeadLetterPage = serde_json::from_str(&page).unwrap();
    for path in [
        "/events/1".to_owned(),
        format!("/dead-letters/{}", page.items[0].name),
    ] {
        let (status, body) = ask_text(&world, &path, None).await;
        assert_eq!(status, 200, "{path}: {body}");
        assert!(body.contains(&format!("\"data\":{data}")), "{path}: {body}");
    }
}

/// Whoever settles needs the dead letters: they are looked at some at a time, and only those that can be meant.
#[tokio::test(start_paused = true)]
async fn a_question_about_all_letters_gives_way_to_deliveries() {
    let mut world = World::with_broker();
    world.trigger("u", "b", json!({"spec": {"delivery": {"retry": 0}}}));
    world.manner("b", Manner::Answer(503));
    refused(&mut world, 1200).await;
    world.until_dead_lettered("u", 1200).await;
    let own = || Some(ada(Role::Operator, &["ns"], false));
    let all = || Some(json!({"all": true, "dryRun": true}));
    for (path, body) in [
        ("/dead-letters", None),
        ("/dead-letters/groups?by=cause", None),
        ("/dead-letters/redrive", all()),
    ] {
        let mut asking = Box::pin(ask(&world, own(), path, body.clone()));
        assert!(futures::poll!(&mut asking).is_pending(), "{path}");
        let (status, answer) = asking.await;
        let count = answer["total"]
            .as_u64()
            .or_else(|| answer["count"].as_u64());
        assert_eq!((status, count), (200, Some(2400)), "{path}");
        let stranger = Some(ada(Role::Operator, &["other"], false));
        let mut asking = Box::pin(ask(&world, stranger, path, body));
        assert!(
            futures::poll!(&mut asking).is_ready(),
            "{path}: none is theirs"
        );
    }
    // Pages go through the letters of both in the order in which they came to rest.
    let (mut names, mut after) = (Vec::new(), "0".to_owned());
    loop {
        let page: DeadLetterPage =
            get(&world, &format!("/dead-letters?limit=499&after={after}")).await;
        assert_eq!(page.total, 2400);
        names.extend(
            page.items
                .iter()
                .map(|item| item.name.parse::<u64>().unwrap()),
        );
        match page.next {
            Some(next) => after = next,
            None => break,
        }
    }
    assert_eq!(names, (1..=2400).collect::<Vec<u64>>());
}

#[tokio::test(start_paused = true)]
async fn what_is_no_number_is_not_taken_for_everything() {
    let world = World::with_broker();
    world.route().await;
    for path in [
        "/dead-letters?after=",
        "/dead-letters?limit=",
        "/trace?id=1&from=",
        "/trace?id=1&before=",
        "/events?from=",
        "/events?before=",
        "/events?limit=",
    ] {
        assert_eq!(ask(&world, None, path, None).await.0, 200, "{path}");
        assert_eq!(
            ask(&world, None, &format!("{path}7"), None).await.0,
            200,
            "{path}7"
        );
        for rubbish in ["x", "-1", "1.5", "99999999999999999999"] {
            let (status, body) = ask(&world, None, &format!("{path}{rubbish}"), None).await;
            assert_eq!(
                (status, &body["code"]),
                (400, &json!("invalid-question")),
                "{path}{rubbish}"
            );
        }
    }
}

const GROUPS: &str = "/dead-letters/groups";

/// Where the mark of a group is, by its key or a letter in it.
fn mark_of(group: &str) -> String {
    let group = group.replace(':', "%3A").replace('/', "%2F");
    format!("{GROUPS}/{group}/mark")
}

async fn groups(world: &World) -> DeadLetterGroups {
    get(world, GROUPS).await
}

async fn mark(world: &World, group: &str, body: Value) -> GroupMark {
    let (status, mark) = post(world, &mark_of(group), body).await;
    assert_eq!(status, 200);
    mark
}

async fn unmark(world: &World, group: &str) -> (u16, Value) {
    send(world, None, (Method::DELETE, &mark_of(group)), None).await
}

/// One more letter of the only cause there is.
async fn recur(world: &World, id: &str, count: u64) {
    world.publish(id, &[]).await;
    world.until_dead_lettered("t", count).await;
}

#[tokio::test(start_paused = true)]
async fn a_marked_group_is_told_apart_and_opens_again_when_it_recurs() {
    let mut world = World::with_broker();
    refused(&mut world, 3).await;
    let found = groups(&world).await;
    assert_eq!((found.known, found.ignored), (0, 0));
    let key = found.groups[0].key.clone();
    assert_eq!(found.groups[0].mark, None);
    let marked = mark(&world, &key, json!({"as": "known", "note": " seen to "})).await;
    assert_eq!(
        (marked.kind, &*marked.note, &*marked.by),
        (MarkKind::Known, "seen to", "somebody")
    );
    let week = marked.until.duration_since(marked.at);
    assert_eq!(week.as_secs(), 7 * 24 * 3600);
    let found = groups(&world).await;
    assert_eq!((found.total, found.known, found.ignored), (3, 3, 0));
    assert_eq!(found.groups[0].mark.as_ref(), Some(&marked));
    // However they are put together, and whatever is picked.
    let by_type: DeadLetterGroups = get(&world, &format!("{GROUPS}?by=type&id=1")).await;
    assert_eq!((by_type.total, by_type.known), (1, 1));
    assert_eq!(by_type.groups[0].mark, None);
    recur(&world, "new", 4).await;
    let found = groups(&world).await;
    let reopened = found.groups[0].mark.as_ref().unwrap();
    assert_eq!(reopened.reopened, Some(MarkReopened::Recurred));
    assert_eq!((reopened.newer, found.known), (1, 0));
    let old: DeadLetterGroups = get(&world, &format!("{GROUPS}?id=1")).await;
    assert!(
        !old.groups[0].mark.as_ref().unwrap().holds(),
        "whoever looks at some of them"
    );
    // By a letter, with some more that are expected.
    let ignored = json!({"as": "ignored", "note": "tests", "more": 2});
    let sample = found.groups[0].sample.clone();
    assert_eq!(mark(&world, &sample, ignored).await.key, key);
    for (count, holds) in [(5, true), (6, true), (7, false)] {
        recur(&world, &format!("more-{count}"), count).await;
        let found = groups(&world).await;
        assert_eq!(
            found.groups[0].mark.as_ref().unwrap().holds(),
            holds,
            "{count}"
        );
        assert_eq!(found.ignored, if holds { count } else { 0 });
    }
    assert_eq!(unmark(&world, &key).await.0, 200);
    assert_eq!(unmark(&world, &key).await.0, 404);
    assert_eq!(groups(&world).await.groups[0].mark, None);
}

#[tokio::test(start_paused = true)]
async fn what_came_since_somebody_looked_opens_a_group_again() {
    let mut world = World::with_broker();
    refused(&mut world, 2).await;
    let looked = groups(&world).await.groups.remove(0);
    recur(&world, "since", 3).await;
    let body = json!({"as": "known", "note": "x", "upTo": looked.sample});
    let marked = mark(&world, &looked.key, body).await;
    assert_eq!(marked.reopened, Some(MarkReopened::Recurred));
    // What leaves and comes back is new, too.
    mark(&world, &looked.key, json!({"as": "known", "note": "x"})).await;
    assert_eq!(groups(&world).await.known, 3);
    let all = json!({"all": true});
    let _: (u16, DeadLettersTaken) = post(&world, "/dead-letters/redrive", all).await;
    world.until_dead_lettered("t", 3).await;
    world.pass(5).await;
    assert_eq!(groups(&world).await.known, 0);
}

#[tokio::test(start_paused = true)]
async fn a_mark_ends_at_its_time_and_survives_restarts_crashes_and_snapshots() {
    let mut world = World::on_disk_with_broker();
    refused(&mut world, 2).await;
    let key = groups(&world).await.groups[0].key.clone();
    let body = json!({"as": "ignored", "note": "x", "until": "2026-01-02T00:00:00Z"});
    let marked = mark(&world, &key, body).await;
    for crash in [true, false, true] {
        if crash {
            world.crash().await;
        } else {
            world.restart().await;
        }
        world.route().await;
        let found = groups(&world).await;
        assert_eq!(found.groups[0].mark.as_ref(), Some(&marked));
        assert_eq!(found.ignored, 2);
        // Long enough for a snapshot.
        world.pass(3600).await;
    }
    world.pass(24 * 3600).await;
    let found = groups(&world).await;
    let mark = found.groups[0].mark.as_ref().unwrap();
    assert_eq!(
        (mark.reopened, found.ignored),
        (Some(MarkReopened::Expired), 0)
    );
    assert_eq!(unmark(&world, &key).await.0, 200);
    world.crash().await;
    world.route().await;
    assert_eq!(groups(&world).await.groups[0].mark, None);
}

#[tokio::test(start_paused = true)]
async fn marked_groups_stand_behind_the_others() {
    let mut world = World::with_broker();
    world.trigger("u", "b", json!({"spec": {"delivery": {"retry": 0}}}));
    world.manner("b", Manner::AnswerTo(&["0"], 500));
    refused(&mut world, 3).await;
    world.until_dead_lettered("u", 1).await;
    let found = groups(&world).await;
    assert_eq!(found.groups[0].consumer.as_deref(), Some("trigger/ns/t"));
    mark(
        &world,
        &found.groups[0].key,
        json!({"as": "known", "note": "x"}),
    )
    .await;
    let found = groups(&world).await;
    assert_eq!(found.groups[0].consumer.as_deref(), Some("trigger/ns/u"));
    assert_eq!((found.total, found.known), (4, 3));
}

#[tokio::test(start_paused = true)]
async fn a_mark_needs_a_group_a_note_a_time_to_come_and_an_operator() {
    let mut world = World::with_broker();
    refused(&mut world, 1).await;
    let key = groups(&world).await.groups[0].key.clone();
    let fine = json!({"as": "known", "note": "x"});
    for (change, part) in [
        (json!({"note": " "}), "note"),
        (json!({"note": "x".repeat(501)}), "note"),
        (json!({"until": "2025-12-31T00:00:00Z"}), "until"),
        (json!({"until": "2026-06-01T00:00:00Z"}), "90 days"),
        (json!({"more": 10_001}), "more"),
        (json!({"as": "fine"}), "known"),
        (json!({"upTo": "last"}), "upTo"),
        (json!({"whatever": 1}), "whatever"),
    ] {
        let mut body = fine.clone();
        body.as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        let (status, said) = ask(&world, None, &mark_of(&key), Some(body)).await;
        assert_eq!(status, 400, "{change}");
        assert!(said.to_string().contains(part), "{said}");
    }
    for group in [
        "99",
        "type:order.created",
        "cause:trigger/ns/t:1",
        "cause:trigger/ns/x:1",
    ] {
        let (status, _) = ask(&world, None, &mark_of(group), Some(fine.clone())).await;
        assert_eq!(status, 404, "{group}");
    }
    for (role, namespaces, expected) in [
        (Role::Viewer, &["ns"][..], 403),
        (Role::Operator, &["other"], 404),
        (Role::Operator, &["ns"], 200),
    ] {
        let who = || Some(ada(role, namespaces, false));
        let (status, _) = ask(&world, who(), &mark_of(&key), Some(fine.clone())).await;
        assert_eq!(status, expected, "{role:?} in {namespaces:?}");
        let path = mark_of(&key);
        let (status, _) = send(&world, who(), (Method::DELETE, &path), None).await;
        assert_eq!(status, expected, "{role:?} in {namespaces:?}");
    }
}
