//! What is tried before anybody relies on it: a filter against the one in force, an event by hand, a subscriber; and which
//! types of events there are.

use axum::body::Body;
use heddle_api::access::{Access, Role, Scope};
use heddle_api::filter::text;
use heddle_api::ledger::{ExplainRequest, Explanation};
use heddle_api::types::SeenTypes;
use heddle_mesh::ledger::Visible;
use heddle_mesh::questions;
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::world::{Consent, World};

async fn asked(world: &World, access: &Access, line: &str, body: &Value) -> (u16, Value) {
    let (method, path) = line.split_once(' ').unwrap();
    let request = Request::builder().method(method).uri(path);
    let request = request
        .extension(access.clone())
        .body(Body::from(body.to_string()));
    let router = questions::router(world.mesh.clone());
    let response = router.oneshot(request.unwrap()).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

fn somebody(role: Role, scope: Scope, payloads: bool) -> Access {
    Access {
        user: "ada".to_owned(),
        role,
        scope,
        payloads,
    }
}

fn ns() -> Scope {
    Scope::Namespaces(["ns".to_owned()].into())
}

fn created(world: &mut World) {
    let filter = json!({"spec": {"filters": [{"exact": {"type": "order.created"}}]}});
    world.trigger("t", "a", filter);
}

/// What an edited filter would gain and lose, part by part and in one go.
#[tokio::test(start_paused = true)]
async fn gained_and_lost_are_counted_against_the_filter_in_force() {
    let mut world = World::with_broker();
    created(&mut world);
    world.route().await;
    for number in 0..3000_u32 {
        let type_ = ["order.created", "order.paid", "order.cancelled"][number as usize % 3];
        let subject = if number % 2 == 0 { "eu-1" } else { "us-1" };
        let id = number.to_string();
        world
            .publish(&id, &[("type", type_), ("subject", subject)])
            .await;
    }
    let question = ExplainRequest {
        entry: "broker/ns/default".to_owned(),
        filters: text::parse("prefix subject = eu-\ncesql type <> 'order.cancelled'").unwrap(),
        last: 10_000,
        against: Some("trigger/ns/t".to_owned()),
        ..ExplainRequest::default()
    };
    let whole = world
        .mesh
        .explain(&question, &Visible::everything())
        .await
        .unwrap();
    let difference = whole.difference.as_ref().unwrap();
    // Of each six, two are created and one of them is from Europe; one that was paid is.
    assert_eq!((whole.examined, whole.matched), (3000, 1000));
    assert_eq!((difference.gained, difference.lost), (500, 500));
    assert!(
        difference
            .gained_events
            .iter()
            .all(|event| event.type_ == "order.paid")
    );
    let mut sum = Explanation::default();
    let mut before = None;
    loop {
        let part = ExplainRequest {
            last: 700,
            before,
            ..question.clone()
        };
        let part = world
            .mesh
            .explain(&part, &Visible::everything())
            .await
            .unwrap();
        let oldest = part.examined;
        sum.add_older(part);
        // Places begin with 1, and nobody else publishes here.
        before = Some(3001 - sum.examined);
        if oldest < 700 {
            break;
        }
    }
    assert_eq!(
        Explanation {
            looked_back_to: None,
            ..sum
        },
        Explanation {
            looked_back_to: None,
            ..whole
        }
    );
}

#[tokio::test(start_paused = true)]
async fn an_edit_holds_from_one_place_on_and_the_account_names_it() {
    let mut world = World::with_broker();
    created(&mut world);
    world.route().await;
    assert_eq!(world.publish("1", &[("type", "order.paid")]).await, 202);
    let first = world.account("t");
    assert_eq!(first.generation, Some(1));
    let filter = json!({"metadata": {"generation": 2}, "spec": {"filters": [{"exact": {"type": "order.paid"}}]}});
    world.trigger("t", "a", filter);
    world.route().await;
    let account = world.account("t");
    assert_eq!(account.generation, Some(2));
    assert!(account.filter_from > first.filter_from, "{account:?}");
    assert_eq!(world.publish("2", &[("type", "order.paid")]).await, 202);
    world.until_delivered("t", 1).await;
    assert_eq!(
        world.received("a"),
        ["2"],
        "what came before stays judged by the former"
    );
    let path = "GET /accounts?consumer=trigger/ns/t";
    let (_, one) = asked(&world, &Access::administrator("ada"), path, &json!({})).await;
    assert_eq!(one["consumers"].as_array().unwrap().len(), 1);
    assert_eq!(one["consumers"][0]["pausesS"].as_array().unwrap().len(), 10);
    let elsewhere = somebody(
        Role::Viewer,
        Scope::Namespaces(["other".to_owned()].into()),
        false,
    );
    let (_, none) = asked(&world, &elsewhere, path, &json!({})).await;
    assert_eq!(none["consumers"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn an_event_by_hand_goes_through_the_door_and_says_who_sent_it() {
    let mut world = World::with_broker();
    created(&mut world);
    world.route().await;
    let operator = somebody(Role::Operator, ns(), false);
    let event = json!({
        "to": "broker/ns/default", "type": "order.created", "subject": "7", "data": {"exact": 9_007_199_254_740_993_u64},
        "extensions": {"heddlesentby": "somebody else", "tier": "gold"},
    });
    let (status, answer) = asked(&world, &operator, "POST /publish", &event).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["sentBy"], "ada");
    world.until_delivered("t", 1).await;
    let (id, source) = (&answer["id"], &answer["source"]);
    let trace = world
        .mesh
        .trace(id.as_str().unwrap(), source.as_str().unwrap());
    let trace = trace.unwrap();
    let path = format!("GET /events/{}", trace.events[0].offset);
    let (_, whole) = asked(&world, &Access::administrator("ada"), &path, &json!({})).await;
    assert_eq!(whole["event"]["heddlesentby"], "ada");
    assert_eq!(whole["event"]["tier"], "gold");
    assert_eq!(whole["event"]["data"]["exact"], 9_007_199_254_740_993_u64);
}

#[tokio::test(start_paused = true)]
async fn an_event_by_hand_is_refused_to_whom_it_is_not_for_and_as_the_door_does() {
    let mut world = World::with_broker();
    created(&mut world);
    world.route().await;
    let event = |to: &str, type_: &str| json!({"to": to, "type": type_});
    let here = "broker/ns/default";
    let operator = somebody(Role::Operator, ns(), false);
    let viewer = somebody(Role::Viewer, Scope::All, true);
    let everywhere = somebody(Role::Operator, Scope::All, false);
    for (who, to, type_, expected) in [
        (&viewer, here, "order.created", 403),
        (&operator, "broker/other/default", "order.created", 403),
        (&operator, "application/shop", "order.created", 403),
        (&everywhere, "application/shop", "order.created", 404),
        (&everywhere, "application/../heddle", "order.created", 400),
        (&everywhere, "channel/ns/own", "order.created", 400),
        (&everywhere, "broker/ns/default/x", "order.created", 400),
        (&everywhere, "broker/ns/nowhere", "order.created", 404),
        (&operator, here, "", 400),
        (&operator, here, "dev.heddle.heartbeat.v1", 403),
    ] {
        let (status, answer) = asked(&world, who, "POST /publish", &event(to, type_)).await;
        if expected == 403 && type_.starts_with("dev.") {
            assert!(status == 400 || status == 403, "{status} {answer}");
        } else {
            assert_eq!(status, expected, "{to} {type_}: {answer}");
        }
    }
    assert_eq!(world.account("t").matched, 0);
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_is_tried_for_operators_and_only_its_status_is_told() {
    let mut world = World::with_broker();
    created(&mut world);
    world.route().await;
    world.consent(
        "sub",
        Consent(204, vec![("webhook-allowed-origin", "mesh.example")]),
    );
    let operator = somebody(Role::Operator, ns(), false);
    let line = "POST /subscribers/try";
    let question = |url: &str, origin: Value| json!({"namespace": "ns", "url": url, "origin": origin, "delivery": {"retry": 2, "backoffDelay": "PT1S"}});
    let (status, answer) = asked(
        &world,
        &operator,
        line,
        &question("http://sub/x", json!("mesh.example")),
    )
    .await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(
        (&answer["reachable"], &answer["status"], &answer["consents"]),
        (&json!(true), &json!(204), &json!(true))
    );
    assert_eq!(answer["pausesS"], json!([1.0, 2.0]));
    let (_, answer) = asked(
        &world,
        &operator,
        line,
        &question("http://sub/x", json!("other.example")),
    )
    .await;
    assert_eq!(answer["consents"], json!(false));
    assert!(
        answer["consentLacks"]
            .as_str()
            .unwrap()
            .contains("mesh.example"),
        "{answer}"
    );
    let (_, answer) = asked(
        &world,
        &operator,
        line,
        &question("http://sub/x", Value::Null),
    )
    .await;
    assert_eq!(answer.get("consents"), None);
    for (url, origin) in [
        ("no url", Value::Null),
        ("http://sub/", json!("not a name")),
    ] {
        let (status, answer) = asked(&world, &operator, line, &question(url, origin)).await;
        assert_eq!(status, 400, "{url}: {answer}");
    }
    let viewer = somebody(Role::Viewer, Scope::All, true);
    assert_eq!(
        asked(&world, &viewer, line, &question("http://sub/", Value::Null))
            .await
            .0,
        403
    );
    let mut elsewhere = question("http://sub/", Value::Null);
    elsewhere["namespace"] = json!("other");
    assert_eq!(asked(&world, &operator, line, &elsewhere).await.0, 403);
}

#[tokio::test(start_paused = true)]
async fn types_are_told_with_who_wants_them_and_data_to_those_who_may_read_it() {
    let mut world = World::with_broker();
    world.broker("ns", "quiet");
    created(&mut world);
    world.route().await;
    let admin = Access::administrator("ada");
    for (number, type_) in ["order.created", "order.created", "order.lost"]
        .iter()
        .enumerate()
    {
        let event = json!({"to": "broker/ns/default", "type": type_, "source": "shop", "data": {"order": number}});
        assert_eq!(asked(&world, &admin, "POST /publish", &event).await.0, 200);
    }
    let types = async |access: &Access, query: &str| {
        let (status, answer) =
            asked(&world, access, &format!("GET /types{query}"), &json!({})).await;
        assert_eq!(status, 200, "{answer}");
        serde_json::from_value::<SeenTypes>(answer).unwrap()
    };
    let all = types(&admin, "").await;
    assert_eq!(
        (all.examined, all.items.len(), all.looked_back_to),
        (3, 2, None)
    );
    let [wanted, unwanted] = &all.items[..] else {
        panic!("{all:?}")
    };
    assert_eq!(
        (&*wanted.type_, wanted.count, wanted.schema_of),
        ("order.created", 2, 2)
    );
    assert_eq!(wanted.consumers, ["trigger/ns/t"]);
    assert_eq!(
        wanted.schema.as_ref().unwrap()["properties"]["order"],
        json!({"type": "integer"})
    );
    assert_eq!(
        (&*unwanted.type_, unwanted.consumers.len()),
        ("order.lost", 0)
    );
    let viewer = types(&somebody(Role::Viewer, ns(), false), "").await;
    assert_eq!(viewer.items.len(), 2);
    assert!(
        viewer.items.iter().all(|seen| seen.schema.is_none()),
        "{viewer:?}"
    );
    let reader = types(&somebody(Role::Viewer, ns(), true), "?type=order.created").await;
    assert!(reader.items.len() == 1 && reader.items[0].schema.is_some());
    let elsewhere = Scope::Namespaces(["other".to_owned()].into());
    assert_eq!(
        types(&somebody(Role::Viewer, elsewhere, true), "").await,
        SeenTypes::default()
    );
    assert_eq!(types(&admin, "?namespace=ns").await.items.len(), 2);
    assert_eq!(types(&admin, "?namespace=other").await.items.len(), 0);
}
