//! What a change would have done is what it does: the same events, with the change in force, give the numbers that were told.

use axum::body::Body;
use heddle_api::access::{Access, Role, Scope};
use heddle_api::what_if::{WhatIf, WhatIfRequest};
use heddle_mesh::questions;
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::world::World;

const TYPES: [&str; 3] = ["order.created", "order.paid", "user.created"];
const EVENTS: usize = 60;

fn of_type(type_: &str) -> Value {
    json!({"spec": {"filters": [{"exact": {"type": type_}}]}})
}

fn prefixed(prefix: &str) -> Value {
    json!({"spec": {"filters": [{"prefix": {"type": prefix}}]}})
}

/// `same` stays, `edited` is edited, `gone` is deleted, `new` comes.
fn before() -> World {
    let mut world = World::with_broker();
    world.trigger("same", "a", prefixed("order."));
    world.trigger("edited", "a", of_type("order.paid"));
    world.trigger("gone", "a", json!({}));
    world
}

fn after() -> World {
    let mut world = World::with_broker();
    world.trigger("same", "a", prefixed("order."));
    world.trigger("edited", "a", prefixed("user."));
    world.trigger("new", "a", of_type("order.created"));
    world
}

async fn publish(world: &World) {
    world.route().await;
    for number in 0..EVENTS {
        let type_ = TYPES[number % TYPES.len()];
        world.publish(&number.to_string(), &[("type", type_)]).await;
    }
    world.mesh.settled().await;
}

fn change() -> WhatIfRequest {
    let trigger = |name: &str| {
        let world = after();
        let found = world.resources.triggers.iter();
        let mut found = found.filter(|trigger| trigger.metadata.name.as_deref() == Some(name));
        serde_json::to_value(&**found.next().unwrap()).unwrap()
    };
    let gone = json!({"kind": "Trigger", "namespace": "ns", "name": "gone"});
    WhatIfRequest {
        apply: vec![trigger("edited"), trigger("new")],
        delete: vec![serde_json::from_value(gone).unwrap()],
        last: 10_000,
    }
}

async fn ask(world: &World, access: &Access, request: &Value) -> (u16, Value) {
    let request = Request::post("/what-if")
        .extension(access.clone())
        .body(Body::from(request.to_string()));
    let router = questions::router(world.mesh.clone());
    let response = router.oneshot(request.unwrap()).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap())
}

#[tokio::test(start_paused = true)]
async fn what_is_told_is_what_happens_when_it_is_done() {
    let (old, new) = (before(), after());
    publish(&old).await;
    publish(&new).await;
    let request = serde_json::to_value(change()).unwrap();
    let (status, told) = ask(&old, &Access::administrator("ada"), &request).await;
    assert_eq!(status, 200, "{told}");
    let told: WhatIf = serde_json::from_value(told).unwrap();
    assert_eq!(told.examined, EVENTS as u64);
    let names: Vec<&str> = told.consumers.iter().map(|one| &*one.consumer).collect();
    assert_eq!(names.len(), 3, "one that stays is not told: {names:?}");
    for (name, is_old, is_new) in [
        ("edited", true, true),
        ("gone", true, false),
        ("new", false, true),
    ] {
        let key = format!("trigger/ns/{name}");
        let found = told
            .consumers
            .iter()
            .find(|one| one.consumer == key)
            .unwrap();
        let matched = |world: &World, there: bool| {
            if there {
                world.account(name).matched
            } else {
                0
            }
        };
        assert_eq!(found.before, matched(&old, is_old), "{name}");
        assert_eq!(found.after, matched(&new, is_new), "{name}");
        assert_eq!(
            found.before + found.gained - found.lost,
            found.after,
            "{name}"
        );
        assert_eq!((found.created, found.deleted), (!is_old, !is_new));
        let shown = (found.gained_events.len() + found.lost_events.len()) as u64;
        assert!(shown > 0 && shown <= found.gained + found.lost);
    }
    assert_eq!(
        old.account("gone").matched,
        EVENTS as u64,
        "nothing was changed"
    );
    // Fewer events are the newest.
    let few = json!({"delete": request["delete"], "last": 7});
    let (_, told) = ask(&old, &Access::administrator("ada"), &few).await;
    assert_eq!(
        (&told["examined"], &told["consumers"][0]["lost"]),
        (&json!(7), &json!(7))
    );
}

/// A Broker that comes brings its Triggers to life, and one that goes takes them along.
#[tokio::test(start_paused = true)]
async fn brokers_that_come_and_go_are_compared() {
    let mut world = before();
    publish(&world).await;
    let ada = Access::administrator("ada");
    let gone = json!({"delete": [{"kind": "Broker", "namespace": "ns", "name": "default"}]});
    let (status, told) = ask(&world, &ada, &gone).await;
    assert_eq!(status, 200, "{told}");
    let told: WhatIf = serde_json::from_value(told).unwrap();
    let all = told
        .consumers
        .iter()
        .find(|one| one.consumer.ends_with("/gone"));
    assert_eq!(all.map(|one| one.lost), Some(EVENTS as u64), "{told:?}");
    let broker = world.resources.brokers.pop().unwrap();
    world.route().await;
    let broker = json!({"apply": [&*broker]});
    let (status, told) = ask(&world, &ada, &broker).await;
    assert_eq!(status, 200, "{told}");
    let told: WhatIf = serde_json::from_value(told).unwrap();
    let all = told
        .consumers
        .iter()
        .find(|one| one.consumer.ends_with("/gone"));
    assert_eq!(all.map(|one| one.gained), Some(EVENTS as u64), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn whoever_may_not_make_the_change_is_not_told_what_it_would_do() {
    let world = before();
    publish(&world).await;
    let somebody = |role, namespace: &str| Access {
        user: "bob".to_owned(),
        role,
        scope: Scope::Namespaces([namespace.to_owned()].into()),
        payloads: false,
    };
    let request = serde_json::to_value(change()).unwrap();
    for (access, expected) in [
        (somebody(Role::Viewer, "ns"), 403),
        (somebody(Role::Administrator, "other"), 403),
        (somebody(Role::Operator, "ns"), 200),
    ] {
        let (status, told) = ask(&world, &access, &request).await;
        assert_eq!(status, expected, "{access:?} {told}");
    }
    let policy = json!({"apply": [{"kind": "EventPolicy", "metadata": {"namespace": "ns", "name": "x"}, "spec": {}}]});
    let (status, _) = ask(&world, &somebody(Role::Operator, "ns"), &policy).await;
    assert_eq!(status, 403, "operators write no policies");
}

#[tokio::test(start_paused = true)]
async fn a_question_that_makes_no_sense_says_why() {
    let world = before();
    world.route().await;
    let delete = |kind: &str, name: &str| json!({"delete": [{"kind": kind, "namespace": "ns", "name": name}]});
    for (request, expected, words) in [
        (json!({}), 400, "1 to"),
        (
            json!({"apply": [{"kind": "Trigger"}]}),
            400,
            "metadata.namespace",
        ),
        (
            json!({"apply": [{"kind": "Pod", "metadata": {"namespace": "ns", "name": "x"}}]}),
            400,
            "Pod",
        ),
        (
            json!({"apply": [{"kind": "EventFlow", "metadata": {"namespace": "ns", "name": "x"}}]}),
            400,
            "Channel",
        ),
        (
            json!({"apply": [{"kind": "Broker", "metadata": {"namespace": "ns", "name": "x", "annotations": {"eventing.knative.dev/broker.class": "Kafka"}}}]}),
            400,
            "Kafka",
        ),
        (delete("Trigger", "nobody"), 404, "nobody"),
        (
            json!({"apply": [{"kind": "Trigger", "metadata": {"namespace": "ns", "name": "x"}, "spec": 1}]}),
            400,
            "cannot be read",
        ),
        (json!({"delete": [], "last": 10_000_000}), 400, "1 to"),
    ] {
        let (status, told) = ask(&world, &Access::administrator("ada"), &request).await;
        assert_eq!(status, expected, "{request} {told}");
        assert!(told.to_string().contains(words), "{told}");
    }
}
