//! What publishers are told.

use heddle_mesh::log::Refused;
use serde_json::json;

use crate::world::World;

#[tokio::test(start_paused = true)]
async fn an_event_that_cannot_be_kept_is_refused_with_what_to_do() {
    let (mut world, log) = World::in_memory_that_refuses();
    world.broker("ns", "default");
    world.trigger("t", "a", json!({}));
    world.route().await;
    let refusals = [
        (Refused::Full, 507, Some("10"), "storage-full"),
        (Refused::Busy, 429, Some("1"), "busy"),
        (Refused::Broken("torn".to_owned()), 503, None, "log-broken"),
    ];
    for (refusal, status, pause, code) in refusals {
        log.refuse(Some(refusal));
        let (got, after, body) = world.post("/broker/ns/default").await;
        assert_eq!((got, after.as_deref()), (status, pause), "{body}");
        assert_eq!(body["code"], code);
    }
    log.refuse(None);
    assert_eq!(world.post("/broker/ns/default").await.0, 202);
    world
        .until("delivered", |world| world.account("t").delivered == 1)
        .await;
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
    log.refuse(Some(Refused::Full));
    let batch = json!([event("1"), event("2"), event("3")]);
    assert_eq!(world.post_batch(&batch).await.0, 507);
    world.pass(10).await;
    assert_eq!(world.account("t").matched, 0);
    log.refuse(None);
    assert_eq!(world.post_batch(&batch).await.0, 202);
    world
        .until("delivered", |world| world.account("t").delivered == 3)
        .await;
    assert_eq!(world.received_sorted("a"), ["1", "2", "3"]);
}
