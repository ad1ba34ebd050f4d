//! An event once more, as a new event: durable before it is told, counted like any other, the original unchanged.

use std::collections::BTreeSet;

use axum::body::Body;
use heddle_api::access::{Access, Role, Scope};
use heddle_api::audit::ChangeNote;
use heddle_api::republish::{RepublishPreview, RepublishedEvent};
use heddle_mesh::questions;
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::world::World;

/// Asks over HTTP as somebody; a body is an edited event.
async fn ask(world: &World, access: &Access, path: &str, body: Option<&str>) -> (u16, String) {
    let kind = match body {
        Some(_) => "application/cloudevents+json",
        None => "application/json",
    };
    let request = Request::post(path)
        .header("content-type", kind)
        .extension(access.clone())
        .body(Body::from(body.unwrap_or("{}").to_owned()));
    let router = questions::router(world.mesh.clone());
    let response = router.oneshot(request.unwrap()).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

async fn again(world: &World, access: &Access, path: &str, body: Option<&str>) -> RepublishedEvent {
    let (status, answer) = ask(world, access, path, body).await;
    assert_eq!(status, 201, "{path}: {answer}");
    serde_json::from_str(&answer).unwrap()
}

async fn event(world: &World, offset: u64) -> String {
    let request = Request::get(format!("/events/{offset}"))
        .extension(admin())
        .body(Body::empty());
    let router = questions::router(world.mesh.clone());
    let response = router.oneshot(request.unwrap()).await.unwrap();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

fn admin() -> Access {
    Access::administrator("ada")
}

fn operator(namespace: &str) -> Access {
    Access {
        user: "olga".to_owned(),
        role: Role::Operator,
        scope: Scope::Namespaces(BTreeSet::from([namespace.to_owned()])),
        payloads: false,
    }
}

#[tokio::test(start_paused = true)]
async fn a_copy_is_delivered_once_more_and_the_accounts_and_the_original_say_so() {
    for mut world in World::each_with_broker() {
        world.trigger("t", "t", json!({}));
        world.route().await;
        world.publish("first", &[]).await;
        world.until_delivered("t", 1).await;
        let before = event(&world, 1).await;
        let (status, preview) = ask(&world, &admin(), "/events/1/republish?dryRun=1", None).await;
        assert_eq!(status, 200, "{preview}");
        let preview: RepublishPreview = serde_json::from_str(&preview).unwrap();
        assert_eq!(
            (preview.wanted, preview.unwanted, preview.original),
            (1, 0, 1)
        );
        assert_eq!(world.account("t").matched, 1, "a preview changes nothing");
        let made = again(&world, &admin(), "/events/1/republish", None).await;
        assert_eq!((made.offset, made.original), (2, 1));
        assert_ne!(made.id, "first");
        world.until_delivered("t", 2).await;
        let account = world.account("t");
        assert_eq!((account.matched, account.difference()), (2, 0));
        assert_eq!(event(&world, 1).await, before);
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap()["event"].take();
        let (mut old, mut new) = (read(&before), read(&event(&world, 2).await));
        assert_eq!(new["heddlecause"].take(), "1");
        old["id"] = new["id"].clone();
        new.as_object_mut().unwrap().remove("heddlecause");
        assert_eq!(new, old);
        assert_eq!(world.received("t"), ["first", &made.id]);
    }
}

/// What the log of changes is told of a request.
async fn note(world: &World, access: &Access, path: &str, body: &Value) -> ChangeNote {
    let request = Request::post(path)
        .extension(access.clone())
        .body(Body::from(body.to_string()));
    let router = questions::router(world.mesh.clone());
    let response = router.oneshot(request.unwrap()).await.unwrap();
    let note = response.extensions().get::<ChangeNote>();
    note.cloned().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn what_is_done_by_hand_is_told_to_those_who_look_after_the_namespace() {
    let mut world = World::with_broker();
    world.trigger("t", "t", json!({}));
    world.route().await;
    world.publish("first", &[]).await;
    let empty = json!({});
    let at = |entry: &str| format!("/events/1/republish?entry={entry}");
    let own = operator("ns");
    let seen = note(&world, &own, "/events/1/republish?dryRun=1", &empty).await;
    assert!(seen.is_question, "{seen:?}");
    let seen = note(
        &world,
        &own,
        &format!("{}&dryRun=1", at("broker/x/y")),
        &empty,
    )
    .await;
    assert!(seen.is_question, "one that is refused too: {seen:?}");
    let (ns, other) = (Some("ns".to_owned()), Some("other".to_owned()));
    let seen = note(&world, &own, "/events/1/republish", &empty).await;
    assert_eq!((seen.namespace, seen.is_question), (ns.clone(), false));
    let refused = note(&world, &own, &at("broker/other/default"), &empty).await;
    assert_eq!(refused.namespace, other);
    assert_eq!(refused.reason.as_deref(), Some("forbidden"));
    let event = |to: &str| json!({"to": to, "type": "order.created"});
    let seen = note(&world, &own, "/publish", &event("broker/ns/default")).await;
    let object = (seen.kind.as_deref(), &seen.namespace, seen.name.as_deref());
    assert_eq!(object, (Some("broker"), &ns, Some("default")));
    let seen = note(&world, &own, "/publish", &event("application/shop")).await;
    let object = (seen.kind.as_deref(), seen.namespace, seen.name.as_deref());
    assert_eq!(object, (Some("application"), None, Some("shop")));
    assert_eq!(seen.reason.as_deref(), Some("forbidden"));
    let trial = |namespace: &str| json!({"namespace": namespace, "url": "http://t/"});
    let seen = note(&world, &own, "/subscribers/try", &trial("ns")).await;
    assert_eq!((seen.namespace, seen.reason), (ns, None));
    let refused = note(&world, &own, "/subscribers/try", &trial("other")).await;
    assert_eq!(refused.namespace, other);
    assert_eq!(refused.reason.as_deref(), Some("forbidden"));
}

#[tokio::test(start_paused = true)]
async fn what_was_answered_survives_a_crash() {
    let mut world = World::on_disk_with_broker();
    world.trigger("t", "t", json!({}));
    world.route().await;
    world.publish("first", &[]).await;
    let made = again(&world, &admin(), "/events/1/republish", None).await;
    world.crash().await;
    world.route().await;
    world.until_delivered("t", 2).await;
    assert!(event(&world, made.offset).await.contains(&made.id));
}

#[tokio::test(start_paused = true)]
async fn an_edited_event_is_taken_as_it_was_written() {
    let mut world = World::with_broker();
    world.trigger(
        "t",
        "t",
        json!({"spec": {"filter": {"attributes": {"type": "other"}}}}),
    );
    world.route().await;
    world.publish("first", &[]).await;
    let text = r#"{"specversion":"1.0","type":"other","source":"/elsewhere","id":"mine","heddlecause":"forged","data":{"n":12345678901234567890.10}}"#;
    let made = again(&world, &admin(), "/events/1/republish", Some(text)).await;
    assert_eq!(
        (&*made.id, &*made.type_, &*made.source),
        ("mine", "other", "/elsewhere")
    );
    let whole = event(&world, made.offset).await;
    assert!(whole.contains("12345678901234567890.10"), "{whole}");
    assert!(
        whole.contains(r#""heddlecause":"1""#) && !whole.contains("forged"),
        "{whole}"
    );
    world.until_delivered("t", 1).await;
    // The name of another event of the same source would be taken for a repetition of it.
    let first: Value = serde_json::from_str(&event(&world, 1).await).unwrap();
    let text = first["event"].to_string();
    let made = again(&world, &admin(), "/events/1/republish", Some(&text)).await;
    assert_ne!(made.id, "first");
    for (wrong, status) in [
        ("{", 400),
        ("{}", 400),
        (
            r#"{"specversion":"1.0","type":"dev.heddle.heartbeat.v1","source":"s","id":"1"}"#,
            400,
        ),
    ] {
        let before = world.mesh.accounts(false).log.next;
        let (found, body) = ask(&world, &admin(), "/events/1/republish", Some(wrong)).await;
        assert!(found >= status && found < 500, "{wrong}: {found} {body}");
        assert_eq!(world.mesh.accounts(false).log.next, before, "{wrong}");
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_leads_an_event_where_they_may_not() {
    let mut world = World::with_broker();
    world.broker("other", "default");
    world.trigger("t", "t", json!({}));
    world.route().await;
    world.publish("first", &[]).await;
    let path = "/events/1/republish";
    let viewer = Access {
        role: Role::Viewer,
        ..operator("ns")
    };
    assert_eq!(ask(&world, &viewer, path, None).await.0, 403);
    assert_eq!(ask(&world, &operator("other"), path, None).await.0, 404);
    assert_eq!(again(&world, &operator("ns"), path, None).await.offset, 2);
    let elsewhere = "/events/1/republish?entry=broker/other/default";
    assert_eq!(ask(&world, &operator("ns"), elsewhere, None).await.0, 403);
    // Both namespaces, and no right to read: a copy may not be led to where they read it.
    let both = Access {
        scope: Scope::Namespaces(BTreeSet::from(["ns".to_owned(), "other".to_owned()])),
        ..operator("ns")
    };
    assert_eq!(ask(&world, &both, elsewhere, None).await.0, 403);
    let reader = Access {
        payloads: true,
        ..both.clone()
    };
    assert_eq!(
        again(&world, &reader, elsewhere, None).await.entry,
        "broker/other/default"
    );
    let missing = "/events/1/republish?entry=broker/ns/none";
    assert_eq!(
        ask(&world, &operator("ns"), missing, Some("{}")).await.0,
        404
    );
    assert_eq!(
        ask(&world, &admin(), "/events/77/republish", None).await.0,
        404
    );
}
