//! Who finds what to press, by role and namespace: the same answers, looked at by different people.

use std::collections::BTreeSet;

use axum::Router;
use axum::extract::FromRequestParts as _;
use axum::routing::{get, post};
use heddle_api::access::{Access, Role, Scope};
use http::Request;
use serde_json::{Value, json};

use super::*;
use crate::ask::Inquirer;
use crate::links::PageLinks;
use crate::visit::Visit;

const HOSTILE: &str = "<img src=x onerror=alert(1)>\"'&javascript:alert(2)";

/// An answer in JSON.
fn said(value: Value) -> String {
    value.to_string()
}

fn letter() -> Value {
    json!({
        "name": "17", "consumer": "trigger/team-a/orders", "offset": 3, "source": HOSTILE, "id": HOSTILE, "type": HOSTILE,
        "acceptedAt": "2026-05-01T12:00:00Z", "deadAt": "2026-05-01T12:00:01Z", "reason": HOSTILE, "status": 503, "attempts": 1,
        "redrives": 0,
    })
}

/// What a server with one dead letter and one operation says.
fn answers() -> Router {
    let list = json!({ "items": [letter()], "total": 1 });
    let group = json!({
        "key": format!("cause:trigger/team-a/orders:{HOSTILE}"), "consumer": "trigger/team-a/orders", "status": 503, "reason": HOSTILE,
        "count": 1, "first": "2026-05-01T12:00:01Z", "last": "2026-05-01T12:00:01Z", "types": [HOSTILE], "sample": "17",
        "subscriberNow": "failing",
    });
    let groups = json!({ "groups": [group], "total": 1 });
    let running = json!({
        "id": "4", "act": "redrive", "state": "running", "by": HOSTILE, "startedAt": "2026-05-01T12:00:02Z", "total": 9000,
        "count": 4000, "left": 3, "ratePerS": 410.4, "etaS": 12, "waits": HOSTILE,
    });
    let operations = json!({ "operations": [running] });
    let preview = json!({
        "count": 1, "bytes": 4100, "upTo": "17", "estimateS": [1, 4], "hints": ["notCuredByRepeating"],
        "consumers": [{ "consumer": "trigger/team-a/orders", "count": 1, "verdict": "failing", "ordered": true, "overtakes": 14 }],
    });
    let mut detail = letter();
    detail["event"] = json!({ "specversion": "1.0", "id": HOSTILE, "data": { HOSTILE: HOSTILE } });
    Router::new()
        .route(LIST, get(async || said(list)))
        .route(&format!("{LIST}/groups"), get(async || said(groups)))
        .route(
            &format!("{LIST}/operations"),
            get(async || said(operations)),
        )
        .route(&format!("{LIST}/{{act}}"), post(async || said(preview)))
        .route(&format!("{LIST}/17"), get(async || said(detail)))
}

async fn look(role: Role, namespace: Option<&str>, path: &str) -> PageLook {
    let access = Access {
        user: "ada".to_owned(),
        role,
        scope: namespace.map_or(Scope::All, |name| {
            Scope::Namespaces(BTreeSet::from([name.to_owned()]))
        }),
        payloads: false,
    };
    let request = Request::get(path).extension(access).body(()).unwrap();
    let (mut parts, ()) = request.into_parts();
    let Ok(visit) = Visit::from_request_parts(&mut parts, &()).await;
    PageLook {
        ask: Inquirer::new(answers(), visit.extensions.clone()),
        links: PageLinks::new(""),
        now: "2026-05-01T12:00:10Z".parse().unwrap(),
        visit,
    }
}

async fn listed(role: Role, namespace: Option<&str>) -> String {
    let look = look(role, namespace, "/ui/dead-letters").await;
    list(&look).await.unwrap().body.into_string()
}

#[tokio::test]
async fn who_may_not_act_finds_nothing_to_press() {
    let presses = |text: &str| {
        ["data-dialog>", "data-act=", "type=\"checkbox\""].map(|mark| text.matches(mark).count())
    };
    let seen = listed(Role::Viewer, None).await;
    // The form around the rows is there, with nothing in it that could send it.
    assert_eq!(presses(&seen), [1, 0, 0], "{seen}");
    assert!(
        seen.contains("4,000 of 9,000, 3 left, 410/s, 12 s to go"),
        "{seen}"
    );
    for role in [Role::Operator, Role::Administrator] {
        for namespace in [None, Some("team-a")] {
            let [dialogs, acts, boxes] = presses(&listed(role, namespace).await);
            assert!(
                dialogs >= 3 && acts == 1 && boxes == 2,
                "{role:?} {namespace:?}"
            );
        }
    }
    let elsewhere = listed(Role::Operator, Some("team-b")).await;
    assert!(!elsewhere.contains("Try one"), "{elsewhere}");
}

#[tokio::test]
async fn a_preview_asks_for_what_it_shows_and_for_nothing_that_comes_later() {
    let path = "/ui/dead-letters/preview?act=discard&name=17";
    let look = look(Role::Operator, None, path).await;
    let shown = preview::page(&look).await.unwrap().body.into_string();
    assert!(
        shown.contains("{&quot;names&quot;:[&quot;17&quot;],&quot;upTo&quot;:&quot;17&quot;}"),
        "{shown}"
    );
    assert!(
        shown.contains("pattern=\"1\"") && shown.contains("required"),
        "{shown}"
    );
    assert!(shown.contains("heddle dead-letters discard 17"), "{shown}");
    assert!(
        shown.contains("1.0 s to 4.0 s") && !shown.contains("overtakes"),
        "{shown}"
    );
}

#[tokio::test]
async fn what_strangers_wrote_is_text_on_every_page() {
    let list = listed(Role::Administrator, None).await;
    let look_at = async |path: &str| look(Role::Administrator, None, path).await;
    let one = letter::page(&look_at("/ui/dead-letters/17").await, "17").await;
    let redrive = preview::page(&look_at("/ui/p?act=redrive&name=17").await).await;
    let tried = preview::page(&look_at("/ui/p?act=try&name=17").await).await;
    let pages = [one, redrive, tried].map(|page| page.unwrap().body.into_string());
    for shown in pages.iter().chain([&list]) {
        assert!(
            !shown.contains("<img") && !shown.contains("href=\"javascript"),
            "{shown}"
        );
    }
    assert!(
        pages[1].contains("goes before up to 14 that wait"),
        "{}",
        pages[1]
    );
}
