//! The smoke test as its users see it: every step told, nothing left, nothing shown to others.

use std::process::Stdio;

use heddle_api::smoke::{NAME_PREFIX, SmokeReport};
use serde_json::{Value, json};

use crate::events::stage;
use crate::events::subscriber::Subscriber;
use crate::harness::{Server, eventually, heddle};

const APPLICATIONS: &str = "/apis/applicationconnector.kyma-project.io/v1alpha1/applications";
const NAMESPACES: &str = "/api/v1/namespaces";
const CHANNELS: &str = "/apis/messaging.knative.dev/v1/channels";

async fn measuring() -> Server {
    Server::start_with("info", &["--no-heartbeats=false"]).await
}

/// The numbers that are about what users publish, and about what they keep.
async fn of_users(server: &Server) -> Vec<String> {
    let metrics = server.metrics().await;
    let names = [
        "heddle_published_total",
        "heddle_matched_total",
        "heddle_delivered_total",
        "heddle_dead_letters",
        "heddle_unmatched_total",
        "heddle_filtered_total",
        "heddle_delivery_delay_seconds_count",
        "heddle_hop_seconds_count",
    ];
    let of_users = |line: &&str| names.iter().any(|name| line.starts_with(name));
    metrics
        .lines()
        .filter(of_users)
        .map(str::to_owned)
        .collect()
}

/// How many objects of each kind there are, hidden ones too; but for what tells of what happened.
async fn stored(server: &Server) -> Vec<String> {
    let metrics = server.metrics().await;
    let counts = metrics
        .lines()
        .filter(|line| line.starts_with("heddle_api_objects{") && !line.contains("events\""));
    counts.map(str::to_owned).collect()
}

async fn listed(server: &Server, path: &str) -> Vec<String> {
    let answer = server.ask("GET", path, &[], b"").await;
    let list: Value = serde_json::from_slice(&answer.body).unwrap();
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let names = items
        .iter()
        .map(|item| item["metadata"]["name"].as_str().unwrap().to_owned());
    names.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_tried_and_nothing_is_left_or_counted() {
    let subscriber = Subscriber::start().await;
    let server = stage::shop_on(measuring().await, &subscriber).await;
    let before = of_users(&server).await;
    let kept = stored(&server).await;
    let told = server.heddle(&["smoke"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    for step in [
        "an Application can be made",
        "its broker, link and policy become ready",
        "the events listener refuses strangers",
        "it arrives in the namespace",
        "everything that was made is gone again",
    ] {
        assert!(told.out.contains(&format!("ok     {step}")), "{told:?}");
    }
    assert_eq!(of_users(&server).await, before);
    assert_eq!(stored(&server).await, kept);
    let metrics = server.metrics().await;
    assert!(
        metrics.contains("heddle_smoke_runs_total{result=\"passed\"} 1\n"),
        "{metrics}"
    );
    let report = server.heddle(&["smoke", "-o", "json"]).ok();
    let report: SmokeReport = serde_json::from_str(&report).unwrap();
    assert!(report.passed && report.steps.len() >= 12, "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_an_application_that_exists_nothing_is_made() {
    let subscriber = Subscriber::start().await;
    let server = stage::shop_on(measuring().await, &subscriber).await;
    let count = |list: &[u8]| {
        let list: Value = serde_json::from_slice(list).unwrap();
        list["items"].as_array().unwrap().len()
    };
    let path = "/apis/messaging.knative.dev/v1/subscriptions";
    let links = count(&server.ask("GET", path, &[], b"").await.body);
    let told = server.heddle(&["smoke", "--app", "shop"]);
    // The demo leads events by a Subscription of its own, so synthetic ones go there too.
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(told.out.contains("it arrives in the namespace"), "{told:?}");
    assert_eq!(count(&server.ask("GET", path, &[], b"").await.body), links);
    let metrics = server.metrics().await;
    assert!(
        metrics.contains("heddle_smoke_runs_total{result=\"passed\"} 0\n"),
        "it says nothing about the product"
    );
    let unknown = server.heddle(&["smoke", "--app", "nobody"]);
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
    assert!(
        unknown.out.contains("FAILED the Application exists"),
        "{unknown:?}"
    );
    assert!(
        unknown.out.contains("heddle get applications"),
        "{unknown:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_smoke_test_makes_is_hidden_and_nobody_else_can_make_such() {
    let server = measuring().await;
    let object = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": format!("{NAME_PREFIX}mine")},
    });
    let body = serde_json::to_vec(&object).unwrap();
    let kind = ("content-type", "application/json");
    let refused = server.ask("POST", NAMESPACES, &[kind], &body).await;
    assert_eq!(refused.status(), 403, "{}", refused.text());
    assert!(refused.text().contains("smoke tests"), "{}", refused.text());
    // While one runs, lists are looked at all the time.
    let mut running = heddle();
    running.args(["smoke", "--data-dir"]).arg(server.data());
    let mut running = running.stdout(Stdio::null()).spawn().unwrap();
    let ended = loop {
        for path in [NAMESPACES, APPLICATIONS, CHANNELS] {
            let names = listed(&server, path).await;
            let shown = names.iter().find(|name| name.starts_with(NAME_PREFIX));
            assert_eq!(shown, None, "{path}");
        }
        let path = "/heddle/v1/health/applications";
        let answer = server.ask("GET", path, &[], b"").await;
        assert!(!answer.text().contains(NAME_PREFIX), "{}", answer.text());
        if let Some(ended) = running.try_wait().unwrap() {
            break ended;
        }
    };
    assert!(ended.success(), "{ended}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_heartbeats_it_says_what_to_do() {
    let server = Server::start().await;
    let told = server.heddle(&["smoke"]);
    assert_eq!(told.code, Some(1), "{told:?}");
    assert!(told.out.contains("--no-heartbeats"), "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_process_left_is_gone_after_the_next_start() {
    let mut server = measuring().await;
    // Whatever a server makes for itself is there by then.
    server.heddle(&["smoke"]).ok();
    let kept = stored(&server).await;
    let mut asking = heddle();
    asking.args(["smoke", "--data-dir"]).arg(server.data());
    let mut asking = asking
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("a run in the middle", async || {
        (stored(&server).await != kept).then_some(())
    })
    .await;
    server.kill();
    asking.wait().unwrap();
    server.launch().await;
    eventually("nothing of it is left", async || {
        (stored(&server).await == kept).then_some(())
    })
    .await;
}
