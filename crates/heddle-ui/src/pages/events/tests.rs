//! What a word names is shown, however far back.

use axum::Router;
use axum::routing::get;
use serde_json::json;

use crate::pages::fixture::looking;

#[tokio::test]
async fn what_a_word_names_is_listed_though_the_search_did_not_come_so_far() {
    let page = json!({
        "items": [{"offset": 900, "acceptedAt": "2026-05-01T12:00:00Z", "entry": "application/shop", "source": "/s", "type": "t", "id": "new", "dataBytes": 0}],
        "lookedAt": {"from": 800, "to": 1000, "of": 1000}, "next": 800, "direct": [900, 7, 3],
    });
    let old = json!({
        "offset": 7, "acceptedAt": "2026-04-01T12:00:00Z", "entry": "application/shop", "dataBytes": 2,
        "event": {"specversion": "1.0", "id": "ord-7", "source": "/shop", "type": "order.created", "subject": "eu"},
    });
    let answers = Router::new()
        .route("/heddle/v1/events", get(async move || page.to_string()))
        .route("/heddle/v1/events/7", get(async move || old.to_string()));
    let look = looking(answers, "/ui/events?q=req-1", true).await;
    let shown = super::page(&look).await.unwrap().body.into_string();
    assert!(!shown.contains("Nothing was found"), "{shown}");
    assert_eq!(shown.matches("data-offset=\"900\"").count(), 1, "{shown}");
    assert_eq!(shown.matches("data-offset=\"7\"").count(), 1, "{shown}");
    assert!(shown.contains("ord-7") && shown.contains("order.created"));
    // What retention has let go meanwhile is no row.
    assert!(!shown.contains("data-offset=\"3\""), "{shown}");
}
