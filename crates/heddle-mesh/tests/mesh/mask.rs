//! What is hidden in data is shown on no face to whoever is no administrator, and nobody finds out by searching for it.

use std::sync::Arc;

use axum::body::Body;
use heddle_api::access::{Access, Role, Scope};
use heddle_api::mask::Mask;
use heddle_api::search::EventQuery;
use heddle_mesh::questions;
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::world::{Manner, World};

const SECRET: &str = "4711-0815";

/// Somebody who may do everything with events and is no administrator.
fn operator() -> Access {
    Access {
        user: "olga".to_owned(),
        role: Role::Operator,
        scope: Scope::All,
        payloads: true,
    }
}

/// The answer as text, with its status.
async fn ask(
    world: &World,
    access: &Access,
    request: http::request::Builder,
    body: &str,
) -> (u16, String) {
    let request = request.extension(access.clone());
    let request = request.body(Body::from(body.to_owned())).unwrap();
    let router = questions::router(world.mesh.clone());
    let response = router.oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

async fn get(world: &World, access: &Access, path: &str) -> (u16, String) {
    ask(world, access, Request::get(path), "").await
}

async fn post(world: &World, access: &Access, path: &str, body: &Value) -> (u16, String) {
    ask(world, access, Request::post(path), &body.to_string()).await
}

/// Two events of a shop, one with a card and one that cannot be looked into; the first rests.
async fn shop() -> World {
    let mut world = World::on_disk_with_broker();
    let pointers = ["/card/number".to_owned(), "/list/*/iban".to_owned()];
    world.mask = Arc::new(Mask::new(&pointers).unwrap());
    world.restart().await;
    world.trigger("t", "t", json!({"spec": {"delivery": {"retry": 0}}}));
    world.route().await;
    // What a subscriber answers quotes what it got.
    let answer = Manner::AnswerTo(&["json"], 400);
    world.manner("t", answer);
    let json = json!({
        "specversion": "1.0", "id": "json", "source": "/shop", "type": "order.paid",
        "data": {"card": {"number": SECRET, "kind": "debit"}, "list": [{"iban": SECRET}], "total": 10},
    });
    let text = json!({
        "specversion": "1.0", "id": "text", "source": "/shop", "type": "order.noted",
        "datacontenttype": "text/plain", "data": format!("card {SECRET}"),
    });
    let (status, ..) = world.post_batch(&json!([json, text])).await;
    assert_eq!(status, 202);
    world.until_delivered("t", 1).await;
    world.until_dead_lettered("t", 1).await;
    world
}

async fn letter(world: &World) -> String {
    let (_, list) = get(world, &Access::administrator("ada"), "/dead-letters").await;
    let list: Value = serde_json::from_str(&list).unwrap();
    list["items"][0]["name"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn no_face_shows_what_is_hidden_and_administrators_see_it() {
    let world = shop().await;
    let name = letter(&world).await;
    let paths = [
        "/events/1".to_owned(),
        "/events/1/data".to_owned(),
        "/events/2".to_owned(),
        "/events/2/data".to_owned(),
        "/events".to_owned(),
        "/types".to_owned(),
        "/trace?id=json".to_owned(),
        "/dead-letters".to_owned(),
        "/dead-letters/groups".to_owned(),
        format!("/dead-letters/{name}"),
        "/silence?consumer=trigger/ns/t&since=1h".to_owned(),
        "/accounts".to_owned(),
    ];
    let mut seen_by_administrators = 0;
    for path in &paths {
        let (_, shown) = get(&world, &operator(), path).await;
        assert!(!shown.contains(SECRET), "{path}: {shown}");
        let (_, all) = get(&world, &Access::administrator("ada"), path).await;
        seen_by_administrators += usize::from(all.contains(SECRET));
    }
    assert_eq!(seen_by_administrators, 5, "events, their data, the letter");
    for kind in ["application/jsonl", "application/cloudevents-batch+json"] {
        let batch = Request::get("/events").header("accept", kind);
        let (status, shown) = ask(&world, &operator(), batch, "").await;
        assert_eq!(status, 200, "{shown}");
        assert!(!shown.contains(SECRET), "{kind}: {shown}");
    }
    let (_, one) = get(&world, &operator(), "/events/1").await;
    let one: Value = serde_json::from_str(&one).unwrap();
    assert_eq!(one["event"]["data"]["card"]["number"], "***", "{one}");
    assert_eq!(one["event"]["data"]["card"]["kind"], "debit", "{one}");
    assert_eq!(
        (&one["dataMasked"], &one["dataWithheld"]),
        (&json!(true), &Value::Null)
    );
    let (_, other) = get(&world, &operator(), "/events/2").await;
    let other: Value = serde_json::from_str(&other).unwrap();
    assert_eq!(
        other["dataWithheld"], true,
        "it cannot be looked into: {other}"
    );
    assert_eq!(get(&world, &operator(), "/events/2/data").await.0, 403);
    let (_, types) = get(&world, &operator(), "/types?type=order.paid").await;
    assert!(
        types.contains("kind") && !types.contains("number"),
        "{types}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_search_finds_nothing_by_what_is_hidden() {
    let world = shop().await;
    let found = async |access: &Access, query: &str| {
        let query: String = form_urlencoded::byte_serialize(query.as_bytes()).collect();
        let (status, page) = get(&world, access, &format!("/events?q={query}")).await;
        assert_eq!(status, 200, "{page}");
        let page: Value = serde_json::from_str(&page).unwrap();
        page["items"].as_array().unwrap().len()
    };
    let administrator = Access::administrator("ada");
    let queries = [
        format!("data.card.number:{SECRET}"),
        format!("text:{SECRET}"),
        "data.card.number:4711*".to_owned(),
    ];
    for query in &queries {
        assert!(found(&administrator, query).await > 0, "{query}");
        assert_eq!(found(&operator(), query).await, 0, "{query}");
    }
    assert_eq!(found(&operator(), "data.card.kind:debit").await, 1);
    assert_eq!(found(&operator(), "data.total>5").await, 1);
    // Nor by watching what comes in.
    for (access, expected) in [(&administrator, 1), (&operator(), 0)] {
        let query = EventQuery::parse(&format!("text:{SECRET}"), world.clock.now()).unwrap();
        let visible = world.mesh.visible_to(access);
        let mut tail = world.mesh.tail(query, visible, "somebody", None).unwrap();
        let event = json!([{
            "specversion": "1.0", "id": format!("watched-{expected}"), "source": "/shop",
            "type": "order.paid", "data": {"card": {"number": SECRET}},
        }]);
        assert_eq!(world.post_batch(&event).await.0, 202);
        let mut seen = 0;
        for _ in 0..3 {
            seen += tail.step().await.unwrap().items.len();
        }
        assert_eq!(seen, expected, "{}", access.user);
    }
    // Nor by asking how long it took.
    for (access, finds) in [(&administrator, true), (&operator(), false)] {
        let path = format!("/delays?q=text:{SECRET}&since=1h");
        let (code, told) = get(&world, access, &path).await;
        assert_eq!(code, 200, "{told}");
        let told: Value = serde_json::from_str(&told).unwrap();
        let found = !told["rows"].as_array().unwrap().is_empty();
        assert_eq!(found, finds, "{told}");
    }
    // Nor by what would be sent again.
    for (access, finds) in [(&administrator, true), (&operator(), false)] {
        let request = json!({
            "consumer": "trigger/ns/t", "query": format!("text:{SECRET}"), "dryRun": true,
        });
        let (code, told) = post(&world, access, "/events/resend", &request).await;
        assert_eq!(code, 200, "{told}");
        let told: Value = serde_json::from_str(&told).unwrap();
        let found = told["count"].as_u64().unwrap() > 0;
        assert_eq!(found, finds, "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_hidden_is_led_nowhere_else_and_subscribers_get_it_whole() {
    let mut world = shop().await;
    world.broker("ns", "other");
    world.route().await;
    let elsewhere = "/events/1/republish?entry=broker/ns/other";
    let (status, refused) = post(&world, &operator(), elsewhere, &json!({})).await;
    assert_eq!(status, 403, "{refused}");
    let administrator = Access::administrator("ada");
    let (status, made) = post(&world, &administrator, elsewhere, &json!({})).await;
    assert_eq!(status, 201, "{made}");
    let whole = world.deliveries("t");
    let bodies = whole.iter().map(|one| String::from_utf8_lossy(&one.body));
    assert!(bodies.into_iter().any(|body| body.contains(SECRET)));
    let name = letter(&world).await;
    let (status, tried) = post(
        &world,
        &operator(),
        &format!("/dead-letters/{name}/try"),
        &json!({}),
    )
    .await;
    assert_eq!(status, 200, "{tried}");
    let tried: Value = serde_json::from_str(&tried).unwrap();
    assert_eq!(
        tried["answer"],
        Value::Null,
        "it may quote the data: {tried}"
    );
}
