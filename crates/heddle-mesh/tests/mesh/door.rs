//! What publishers are told.

use heddle_mesh::log::AppendRefused;
use heddle_mesh::who::Who;
use http_body_util::BodyExt as _;
use serde_json::json;

use crate::world::World;

#[tokio::test(start_paused = true)]
async fn an_event_that_cannot_be_kept_is_refused_with_what_to_do() {
    let (mut world, log) = World::in_memory_that_refuses();
    world.broker("ns", "default");
    world.trigger("t", "a", json!({}));
    world.route().await;
    let refusals = [
        (AppendRefused::Full, 507, Some("10"), "storage-full"),
        (AppendRefused::Busy, 429, Some("1"), "busy"),
        (
            AppendRefused::Exhausted("too many open files".to_owned()),
            503,
            Some("1"),
            "log-exhausted",
        ),
        (
            AppendRefused::Undetermined("torn".to_owned()),
            503,
            None,
            "log-broken",
        ),
        (
            AppendRefused::Broken("torn before".to_owned()),
            503,
            None,
            "log-broken",
        ),
    ];
    for (refusal, status, pause, code) in refusals {
        let fate = match &refusal {
            AppendRefused::Undetermined(_) => Some("unknown"),
            AppendRefused::Broken(_) => Some("not-stored"),
            _ => None,
        };
        log.refuse(Some(refusal));
        let (got, after, body) = world.post("/broker/ns/default").await;
        assert_eq!((got, after.as_deref()), (status, pause), "{body}");
        assert_eq!(body["code"], code);
        assert_eq!(body["fate"].as_str(), fate, "{body}");
    }
    log.refuse(None);
    assert_eq!(world.post("/broker/ns/default").await.0, 202);
    world.until_delivered("t", 1).await;
    assert_eq!(world.account("t").matched, 1, "what was refused is nowhere");
}

#[tokio::test(start_paused = true)]
async fn a_place_that_does_not_exist_is_named() {
    let mut world = World::in_memory().await;
    assert_eq!(
        world.post("/broker/ns/default").await.0,
        503,
        "before the first table nobody knows what exists"
    );
    world.broker("ns", "default");
    world.route().await;
    let (status, _, body) = world.post("/broker/ns/missing").await;
    assert_eq!(status, 404);
    assert!(
        body["message"].as_str().unwrap().contains("ns/missing"),
        "{body}"
    );
    let (status, _, body) = world.post("/shop/events").await;
    assert_eq!(
        (status, &body["code"]),
        (404, &json!("application-not-found"))
    );
    assert!(body["message"].as_str().unwrap().contains("shop"), "{body}");
    assert_eq!(world.post("/broker/ns").await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_taken_whole_or_not_at_all() {
    let (mut world, log) = World::in_memory_that_refuses();
    world.broker("ns", "default");
    world.trigger("t", "a", json!({}));
    world.route().await;
    let event = |id: &str| json!({"specversion": "1.0", "id": id, "source": "/test", "type": "t"});
    let mut bad = event("2");
    bad["source"] = json!("");
    let (status, _, body) = world
        .post_batch(&json!([event("1"), bad, event("3")]))
        .await;
    assert_eq!((status, &body["index"]), (400, &json!(1)), "{body}");
    log.refuse(Some(AppendRefused::Full));
    let batch = json!([event("1"), event("2"), event("3")]);
    assert_eq!(world.post_batch(&batch).await.0, 507);
    world.pass(10).await;
    assert_eq!(world.account("t").matched, 0);
    log.refuse(None);
    assert_eq!(world.post_batch(&batch).await.0, 202);
    world.until_delivered("t", 3).await;
    assert_eq!(world.received_sorted("a"), ["1", "2", "3"]);
}

#[tokio::test(start_paused = true)]
async fn an_application_publishes_what_a_policy_lets_pass_and_a_batch_whole_or_not_at_all() {
    let mut world = World::with_broker();
    world.trigger("t", "a", json!({}));
    let policy = json!({
        "apiVersion": "eventing.knative.dev/v1alpha1", "kind": "EventPolicy",
        "metadata": {"namespace": "ns", "name": "p"},
        "spec": {"from": [{"sub": "application/shop"}], "filters": [{"prefix": {"type": "order."}}]},
    });
    let policy = serde_json::from_value(policy).unwrap();
    world.resources.policies.push(std::sync::Arc::new(policy));
    world.route().await;
    let event = |id: &str, type_: &str| json!({"specversion": "1.0", "id": id, "source": "/s", "type": type_});
    let post = async |who: &Who, events: serde_json::Value| {
        let request = http::Request::post("/broker/ns/default")
            .header("content-type", "application/cloudevents-batch+json")
            .body(http_body_util::Full::<bytes::Bytes>::from(
                events.to_string(),
            ))
            .unwrap();
        let response = world.mesh.source().handle(who, request).await;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
        (status, body)
    };
    let (shop, crm) = (
        Who::Application("shop".into()),
        Who::Application("crm".into()),
    );
    let good = json!([event("1", "order.made"), event("2", "order.paid")]);
    assert_eq!(post(&shop, good.clone()).await.0, 202);
    let mixed = json!([event("3", "order.made"), event("4", "refund")]);
    let (status, body) = post(&shop, mixed).await;
    assert_eq!(
        (status, &body["code"], &body["index"]),
        (403, &json!("forbidden"), &json!(1))
    );
    let (status, body) = post(&crm, good.clone()).await;
    assert_eq!(status, 403);
    let message = "application/crm may not publish to broker/ns/default: an EventPolicy in ns with spec.from sub \
                   \"application/crm\" would allow it";
    assert_eq!(body["message"], message);
    assert_eq!(post(&Who::Administrator, good).await.0, 202);
    world.until_delivered("t", 4).await;
    assert_eq!(world.received_sorted("a"), ["1", "1", "2", "2"]);
}
