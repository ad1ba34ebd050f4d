//! What was refused is found by its id, by those who may know, and never with what it carried.

use heddle_api::access::Role;
use heddle_mesh::who::Who;
use http::Request;
use http_body_util::Full;
use serde_json::{Value, json};

use crate::dead_letters::{ada, ask};
use crate::world::World;

async fn world() -> World {
    let mut world = World::in_memory().await;
    world.broker("team-a", "default");
    world.broker("team-b", "default");
    world.application("shop");
    world.route().await;
    world
}

/// Publishes a body as somebody; gives the status.
async fn send(world: &World, who: &Who, path: &str, kind: &str, body: &str) -> u16 {
    let request = Request::post(path)
        .header("content-type", kind)
        .body(Full::from(body.to_owned().into_bytes()))
        .unwrap();
    let answer = world.mesh.source().handle(who, request).await;
    answer.status().as_u16()
}

const EVENT: &str = "application/cloudevents+json";

fn event(id: &str, more: Value) -> String {
    let mut event =
        json!({"specversion": "1.0", "id": id, "source": "/test", "type": "order.created"});
    crate::world::merge(&mut event, more);
    event.to_string()
}

#[tokio::test(start_paused = true)]
async fn a_refused_event_is_found_by_its_id_with_who_was_refused_what_and_why() {
    let world = world().await;
    let (anybody, depot) = (Who::Anonymous, Who::Application("depot".into()));
    let broker = "/broker/team-a/default";
    let odd = event("odd", json!({"data": {"secret": 1}, "time": "yesterday"}));
    assert_eq!(send(&world, &anybody, broker, EVENT, &odd).await, 400);
    let foreign = event("foreign", json!({}));
    let channel = "/channel/kyma-integration/shop";
    assert_eq!(send(&world, &depot, channel, EVENT, &foreign).await, 403);
    assert_eq!(world.publish_at("/nowhere/events", "lost", &[]).await, 404);
    assert_eq!(world.publish_at(broker, "fine", &[]).await, 202);
    let (status, found) = ask(&world, None, "/events/refused", None).await;
    assert_eq!((status, &found["total"]), (200, &json!(3)), "{found}");
    let items = found["items"].as_array().unwrap();
    let told = |index: usize| {
        let one = &items[index];
        let text = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
        (text("id"), text("code"), text("door"), text("who"))
    };
    let expected = |id: &str, code: &str, door: &str, who: &str| {
        (
            id.to_owned(),
            code.to_owned(),
            door.to_owned(),
            who.to_owned(),
        )
    };
    assert_eq!(
        told(0),
        expected(
            "lost",
            "application-not-found",
            "channel/kyma-integration/nowhere",
            "anonymous"
        )
    );
    // At the door nobody reads what a body says.
    assert_eq!(
        told(1),
        expected(
            "",
            "forbidden",
            "channel/kyma-integration/shop",
            "application/depot"
        )
    );
    assert_eq!(
        told(2),
        expected(
            "odd",
            "attribute-invalid",
            "broker/team-a/default",
            "anonymous"
        )
    );
    assert_eq!(items[2]["attribute"], "time", "{found}");
    assert_eq!(items[2]["bytes"], odd.len(), "{found}");
    assert!(!found.to_string().contains("secret"), "{found}");
    let (_, trace) = ask(&world, None, "/trace?id=odd", None).await;
    assert_eq!(trace["events"], json!([]));
    assert_eq!(trace["refused"][0]["code"], "attribute-invalid", "{trace}");
    let (_, trace) = ask(&world, None, "/trace?id=odd&source=/test", None).await;
    assert_eq!(trace["refused"].as_array().unwrap().len(), 1, "{trace}");
    let (_, trace) = ask(&world, None, "/trace?id=odd&source=/other", None).await;
    assert_eq!(trace["refused"], Value::Null, "{trace}");
    let (_, trace) = ask(&world, None, "/trace?id=fine", None).await;
    assert_eq!(trace["refused"], Value::Null, "{trace}");
}

#[tokio::test(start_paused = true)]
async fn of_a_batch_the_event_is_named_that_is_wrong() {
    let world = world().await;
    let batch = format!(
        "[{},{}]",
        event("good", json!({})),
        event("bad", json!({"time": "?"}))
    );
    let kind = "application/cloudevents-batch+json";
    let broker = "/broker/team-a/default";
    assert_eq!(
        send(&world, &Who::Anonymous, broker, kind, &batch).await,
        400
    );
    let (_, found) = ask(&world, None, "/events/refused?id=bad", None).await;
    assert_eq!(found["items"][0]["index"], 1, "{found}");
    let (_, found) = ask(&world, None, "/events/refused?id=good", None).await;
    assert_eq!(found["items"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn each_is_told_of_the_places_of_their_namespaces() {
    let world = world().await;
    for (path, id) in [
        ("/broker/team-a/default", "a"),
        ("/broker/team-b/default", "b"),
        ("/shop/events", "c"),
    ] {
        let odd = event(id, json!({"time": "?"}));
        assert_eq!(send(&world, &Who::Anonymous, path, EVENT, &odd).await, 400);
    }
    let ids = |found: &Value| -> Vec<String> {
        let items = found["items"].as_array().unwrap().iter();
        items
            .map(|item| item["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let viewer = || Some(ada(Role::Viewer, &["team-a"], false));
    let (_, found) = ask(&world, viewer(), "/events/refused", None).await;
    assert_eq!(
        (ids(&found), &found["total"]),
        (vec!["a".to_owned()], &Value::Null)
    );
    let (_, trace) = ask(&world, viewer(), "/trace?id=b", None).await;
    assert_eq!(trace["refused"], Value::Null, "{trace}");
    let (_, found) = ask(&world, None, "/events/refused?namespace=team-b", None).await;
    assert_eq!(ids(&found), ["b"]);
    let (_, found) = ask(&world, None, "/events/refused?limit=1", None).await;
    assert_eq!(ids(&found), ["c"], "the newest first");
    let (status, _) = ask(&world, None, "/events/refused?limit=many", None).await;
    assert_eq!(status, 400);
}

/// Publishers of the old API are refused in its words, and are found like others.
#[tokio::test(start_paused = true)]
async fn what_the_old_api_refused_is_in_the_same_list() {
    let world = world().await;
    let (anybody, depot) = (Who::Anonymous, Who::Application("depot".into()));
    let time = "2020-03-25T13:45:00Z";
    let old = |id: &str| {
        json!({"event-type": "order.created", "event-type-version": "!", "event-id": id,
            "event-time": time, "data": {"secret": 1}})
        .to_string()
    };
    let id = "31109198-4d69-4ae0-972d-76117f3748c8";
    let kind = "application/json";
    let place = "/shop/v1/events";
    assert_eq!(send(&world, &anybody, place, kind, &old(id)).await, 400);
    assert_eq!(send(&world, &depot, place, kind, &old(id)).await, 403);
    let unknown = "/nobody/v2/events";
    assert_eq!(send(&world, &anybody, unknown, kind, "{}").await, 404);
    assert_eq!(send(&world, &anybody, place, kind, "{").await, 400);
    let (status, found) = ask(&world, None, "/events/refused", None).await;
    assert_eq!((status, &found["total"]), (200, &json!(4)), "{found}");
    let told = |index: usize| {
        let one = &found["items"][index];
        ["id", "code", "attribute", "door", "who"].map(|name| one[name].as_str().unwrap_or("-"))
    };
    let (shop, nobody) = (
        "channel/kyma-integration/shop",
        "channel/kyma-integration/nobody",
    );
    assert_eq!(told(0), ["-", "bad_payload_syntax", "-", shop, "anonymous"]);
    let not_found = "application-not-found";
    assert_eq!(told(1), ["-", not_found, "-", nobody, "anonymous"]);
    assert_eq!(told(2)[1..4], ["forbidden", "-", shop]);
    let field = "event-type-version";
    assert_eq!(
        told(3),
        [id, "validation_violation", field, shop, "anonymous"]
    );
    assert!(!found.to_string().contains("secret"), "{found}");
}
