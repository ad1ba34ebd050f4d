//! However much there is in a namespace, the page of an application shows what is its own, and no more than can be looked at.

use axum::Router;
use axum::extract::{Path, RawQuery};
use axum::routing::get;
use http::StatusCode;
use serde_json::{Value, json};

use crate::pages::fixture::looking;

const TRIGGERS: usize = 50;

fn plane(reason: &str, health: &str) -> Value {
    json!({"health": health, "reason": reason, "message": "said by the judge", "remedy": ""})
}

fn verdict(control: &Value) -> Value {
    let well = plane("Well", "Healthy");
    json!({
        "health": "Healthy", "since": "2026-05-01T12:00:00Z", "reason": "Healthy", "message": "events pass", "remedy": "",
        "planes": {"control": control, "data": well, "user": well, "dependencies": well},
    })
}

fn graph() -> Value {
    let node = |id: String, hop: &str, verdict: &str| json!({"id": id, "hop": hop, "verdict": verdict, "ns": "team-a"});
    let mut nodes = vec![
        node("application/shop".to_owned(), "source", "healthy"),
        node(
            "subscription/kyma-integration/shop-team-a".to_owned(),
            "subscription",
            "healthy",
        ),
        node("broker/team-a/default".to_owned(), "broker", "healthy"),
    ];
    for number in 0..TRIGGERS {
        let word = if number == TRIGGERS - 1 {
            "unhealthy"
        } else {
            "healthy"
        };
        nodes.push(node(
            format!("trigger/team-a/t{number:02}"),
            "trigger",
            word,
        ));
    }
    json!({"at": "2026-05-01T12:00:00Z", "nodes": nodes, "links": [], "truncated": {"hidden": 19_900, "by": "trigger"}})
}

fn object(namespace: &str, name: &str, ready: bool) -> Value {
    let status = if ready { "True" } else { "False" };
    let ready =
        json!({"type": "Ready", "status": status, "lastTransitionTime": "2026-05-01T12:00:00Z"});
    json!({"metadata": {"namespace": namespace, "name": name}, "spec": {}, "status": {"conditions": [ready]}})
}

fn answers(control: &Value) -> Router {
    let with = |mut what: Value, more: &Value| {
        for (key, value) in more.as_object().unwrap() {
            what[key] = value.clone();
        }
        what.to_string()
    };
    let said = verdict(control);
    let pair = with(json!({"name": "team-a", "state": 4}), &said);
    let inside: Value = serde_json::from_str(&pair).unwrap();
    let application = json!({"name": "shop", "state": 4, "namespaces": [inside]});
    let application = with(application, &said);
    let one = async |Path((namespace, kind, name)): Path<(String, String, String)>| {
        let ready = name != "default" && name != format!("t{:02}", TRIGGERS - 1);
        assert!(kind != "eventflows");
        object(&namespace, &name, ready).to_string()
    };
    let topology = async |RawQuery(query): RawQuery| {
        assert_eq!(query.as_deref(), Some("scope=application%2Fshop%2Fteam-a"));
        graph().to_string()
    };
    let flows = async |RawQuery(query): RawQuery| {
        assert_eq!(query.as_deref(), Some("limit=500"));
        json!({"items": []}).to_string()
    };
    Router::new()
        .route(
            "/heddle/v1/health/applications/shop",
            get(async move || application),
        )
        .route(
            "/heddle/v1/health/applications/shop/namespaces/team-a",
            get(async move || pair),
        )
        .route("/heddle/v1/topology", get(topology))
        .route(
            "/apis/{group}/{version}/namespaces/{namespace}/eventflows",
            get(flows),
        )
        .route(
            "/apis/eventing.knative.dev/v1/namespaces/{namespace}/{kind}/{name}",
            get(one),
        )
        .route(
            "/apis/messaging.knative.dev/v1/namespaces/{namespace}/{kind}/{name}",
            get(one),
        )
        .fallback(async || StatusCode::NOT_FOUND)
}

async fn shown(control: &Value) -> String {
    let look = looking(answers(control), "/ui/applications/shop?ns=team-a", true).await;
    super::one(&look, "shop").await.unwrap().body.into_string()
}

/// What the page lists of objects, behind the picture.
fn listed(page: &str) -> &str {
    page.split_once("id=\"conditions\"").unwrap().1
}

#[tokio::test]
async fn of_very_many_triggers_the_broken_ones_come_first_and_one_object_is_open() {
    let page = shown(&plane("Ready", "Healthy")).await;
    assert!(page.contains("19,900 nodes are left out"), "{page}");
    let listed = listed(&page);
    let triggers = listed.matches("trigger/team-a/t").count();
    assert_eq!(triggers, 20, "{listed}");
    assert!(
        listed.contains("30 more Triggers of the picture"),
        "{listed}"
    );
    let at = |text: &str| {
        listed
            .find(text)
            .unwrap_or_else(|| panic!("{text} is not in {listed}"))
    };
    assert!(at("subscription/kyma-integration/shop-team-a") < at("broker/team-a/default"));
    assert!(at("broker/team-a/default") < at("trigger/team-a/t49"));
    assert!(at("trigger/team-a/t49") < at("trigger/team-a/t00"));
    let objects = listed.matches("<details open><summary><svg").count();
    let first = listed.find("<details open>").unwrap();
    assert!(
        first < at("broker/team-a/default")
            && first > at("subscription/kyma-integration/shop-team-a")
    );
    // The object, and in it the first of its conditions that does not hold; the other objects are closed.
    assert_eq!(objects, 1 + 2, "{listed}");
}

#[tokio::test]
async fn what_conditions_say_is_unknown_while_a_controller_is_not_at_work() {
    let page = shown(&plane("ControllerStalled", "Unknown")).await;
    let listed = listed(&page);
    assert!(listed.contains("may be no longer so"), "{listed}");
    assert!(
        !listed.contains("data-verdict=\"healthy\"")
            && !listed.contains("data-verdict=\"unhealthy\""),
        "{listed}"
    );
}
