//! Everything that an event can be called leads to it.

use axum::Router;
use axum::extract::RawQuery;
use axum::routing::get;
use serde_json::json;

use crate::links::part;
use crate::pages::fixture::looking;

/// A log in which 7 is called `req-1`, 3 and 9 are both called `twice`, and one event mentions `words`.
fn answers() -> Router {
    let item = json!({
        "offset": 5, "acceptedAt": "2026-05-01T12:00:00Z", "entry": "application/shop", "source": "/s", "type": "t", "id": "5",
        "dataBytes": 0,
    });
    let events = async move |RawQuery(query): RawQuery| {
        let query = query.unwrap_or_default();
        let asked = form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == "q");
        let asked = asked.map(|(_, asked)| asked.into_owned());
        let asked = asked.unwrap_or_default();
        let direct = match asked.as_str() {
            "7" | "req-1" | "\"type:odd id\"" => vec![7],
            "twice" => vec![9, 3],
            _ => vec![],
        };
        let items = match asked.as_str() {
            "words" => vec![item],
            _ => vec![],
        };
        json!({"items": items, "lookedAt": {"from": 0, "to": 9, "of": 9}, "direct": direct})
            .to_string()
    };
    Router::new().route("/heddle/v1/events", get(events))
}

async fn leads(typed: &str) -> String {
    let path = format!("/ui/find?q={}", part(typed));
    let look = looking(answers(), &path, true).await;
    super::where_to(&look).await.unwrap()
}

#[tokio::test]
async fn a_place_and_a_request_id_lead_to_the_event_itself() {
    assert_eq!(leads("7").await, "/ui/events/7");
    assert_eq!(leads(" req-1 ").await, "/ui/events/7");
    assert_eq!(leads("type:odd id").await, "/ui/events/7", "an odd id");
}

#[tokio::test]
async fn what_several_events_are_called_leads_to_a_list_of_them() {
    assert_eq!(leads("twice").await, "/ui/events?q=twice");
    assert_eq!(leads("words").await, "/ui/events?q=words");
}

#[tokio::test]
async fn what_no_event_is_called_is_told_so_and_a_query_is_asked() {
    assert_eq!(leads("gone").await, "/ui/trace?id=gone");
    assert_eq!(
        leads("type:order.* state:dead").await,
        "/ui/events?q=type%3Aorder.*%20state%3Adead"
    );
    assert_eq!(leads("typ:order").await, "/ui/events?q=typ%3Aorder");
    assert_eq!(leads("broker/a/b").await, "/ui/objects/broker/a/b");
}
