//! A slow row is seen, said and led to; nothing of what strangers named becomes markup.

use axum::Router;
use axum::extract::RawQuery;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use axum::routing::get;
use serde_json::json;

use crate::pages::fixture::looking;

fn answers() -> Router {
    let map = json!({
        "by": "trigger", "since": "2026-05-01T11:00:00Z", "until": "2026-05-01T12:00:00Z",
        "columns": [
            {"since": "2026-05-01T11:00:00Z", "examined": 4},
            {"since": "2026-05-01T11:30:00Z", "examined": 2, "partial": true},
        ],
        "rows": [
            {"name": "trigger/team-a/slow", "delivered": 3, "waiting": 1, "p50Ms": 203.0, "p95Ms": 204.0, "maxMs": 61000.0, "cells": [
                {"column": 0, "delivered": 2, "p50Ms": 2.0, "p95Ms": 2.5, "maxMs": 3.0},
                {"column": 1, "delivered": 1, "waiting": 1, "p50Ms": 203.0, "p95Ms": 204.0, "maxMs": 61000.0},
            ]},
            {"name": "trigger/team-a/<b>fast", "delivered": 2, "p50Ms": 1.0, "p95Ms": 1.0, "maxMs": 1.0, "cells": [
                {"column": 0, "delivered": 2, "p50Ms": 1.0, "p95Ms": 1.0, "maxMs": 1.0},
            ]},
        ],
        "heartbeats": [{"name": "heartbeat/team-a/shop", "delivered": 9, "p50Ms": 1.0, "p95Ms": 1.0, "maxMs": 1.0, "cells": []}],
        "examined": 6,
    });
    let answer = async move |RawQuery(query): RawQuery| match query {
        Some(query) if query.contains("colour") => {
            let refused = json!({"code": "invalid-query", "message": "there is no field colour, at character 1"});
            (StatusCode::BAD_REQUEST, refused.to_string()).into_response()
        }
        _ => map.to_string().into_response(),
    };
    Router::new().route("/heddle/v1/delays", get(answer))
}

async fn shown(path: &str) -> crate::frame::RenderedPage {
    let look = looking(answers(), path, true).await;
    super::page(&look).await.unwrap()
}

#[tokio::test]
async fn a_slow_row_is_seen_and_said() {
    let page = shown("/ui/delays").await;
    let body = page.body.into_string();
    let level = |row: &str| {
        let from = body.find(&format!("data-delays=\"{row}")).unwrap();
        body[from..].split("</tr>").next().unwrap().to_owned()
    };
    let slow = level("trigger/team-a/slow");
    assert!(
        slow.contains("data-level=\"4\"") && slow.contains("data-level=\"0\""),
        "{slow}"
    );
    assert!(
        slow.contains("class=\"open\"") && slow.contains("≥ 204 ms"),
        "{slow}"
    );
    assert!(
        slow.contains("the slowest at 11:30 with ≥ 204 ms"),
        "{slow}"
    );
    assert!(slow.contains("/ui/triggers/team-a/slow"), "{slow}");
    assert!(!level("trigger/team-a/&lt;b&gt;fast").contains("data-level=\"4\""));
    assert!(!body.contains("<b>"), "{body}");
    assert!(body.contains("in 1 of 2 pieces"), "{body}");
    assert!(
        body.contains("data-delays=\"heartbeat/team-a/shop\""),
        "{body}"
    );
    assert!(
        !body.contains("data-numbers"),
        "nobody asked for a row: {body}"
    );
    assert_eq!(
        page.command.as_deref(),
        Some("heddle delays --by trigger --since 1h")
    );
    assert_eq!(
        page.request.as_deref(),
        Some("/heddle/v1/delays?by=trigger&since=1h")
    );
}

#[tokio::test]
async fn a_row_can_be_read_as_numbers_and_another_share_be_shown() {
    let page = shown("/ui/delays?q=type%3Aorder.*&of=p50&row=trigger/team-a/slow&since=6h").await;
    let body = page.body.into_string();
    let from = body.find("data-numbers=\"trigger/team-a/slow\"").unwrap();
    let numbers = &body[from..];
    assert!(
        numbers.contains("≥ 203 ms") && numbers.contains("2.5 ms"),
        "{numbers}"
    );
    assert!(numbers.contains("its newest events only"), "{numbers}");
    assert_eq!(
        page.command.as_deref(),
        Some("heddle delays 'type:order.*' --by trigger --since 6h")
    );
}

#[tokio::test]
async fn a_query_that_cannot_be_read_is_mended_where_it_is_written() {
    let body = shown("/ui/delays?q=colour%3Ared").await.body.into_string();
    assert!(
        body.contains("there is no field colour") && body.contains("value=\"colour:red\""),
        "{body}"
    );
    assert!(!body.contains("table"), "{body}");
}
