//! Charts: a repository with an index, a runner that does the work, and an instance that keeps the runner it was made with.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use heddle_api::service_binding::SECRET_KEY;
use heddle_rt::net::{self, Door, Limits};
use heddle_rt::{Clock, OnError, Tasks};
use k8s_openapi::api::core::v1::Secret;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::harness::{Server, read};
use crate::registry::Registry;
use crate::{Bundle, TEAM, instance, shop, until_offered};

/// Writes down what it is asked for.
const RUNNER: &str = r#"echo "$1 $(cat /run/bundle/variables.json)" >> /data/log; echo "{\"log\": \"$BUNDLE_DATA_PATH/log\"}" > /out/credentials.json"#;

/// Serves an index that can be changed.
struct Charts {
    url: String,
    index: Arc<Mutex<String>>,
    tasks: Tasks,
}

impl Charts {
    async fn start(versions: &[&str]) -> Self {
        let index: Arc<Mutex<String>> = Arc::default();
        let listener = net::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        let charts = Self {
            url: format!("http://{}", listener.address()),
            index: Arc::clone(&index),
            tasks: Tasks::new("charts"),
        };
        charts.release(versions);
        let serve = async |State(index): State<Arc<Mutex<String>>>| index.lock().clone();
        let router = Router::new()
            .route("/stable/index.yaml", get(serve))
            .with_state(index);
        let door = Door {
            clock: Clock::system(),
            tls: None,
            plain_on_loopback: true,
            limits: Limits::default(),
            budget: heddle_rt::Budget::default(),
        };
        let serving = net::serve(listener, door, router, charts.tasks.cancellation());
        charts.tasks.spawn("charts", OnError::Report, serving);
        charts
    }

    fn release(&self, versions: &[&str]) {
        let entry = |version: &&str| json!({"version": version, "description": "a cache"});
        let entries: Vec<_> = versions.iter().map(entry).collect();
        let index =
            json!({"apiVersion": "v1", "entries": {"redis": entries}, "generated": "2026-01-01"});
        *self.index.lock() = index.to_string();
    }
}

impl Drop for Charts {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

/// Makes a program the runner from now on.
fn push_runner(server: &Server, registry: &Registry, script: &str) {
    Bundle::new("runner", "1.0.0", script).push(server, registry, "acme/helm-runner:v1");
}

fn sync(server: &Server) {
    let words = ["registry", "sync", "charts", "--wait"];
    server.heddle(&words).ok();
}

/// What the runner wrote down about an instance.
fn log(server: &Server, id: &str) -> String {
    let secret = format!("{id}-provision");
    let words = ["get", "secret", &secret, "-n", TEAM, "-o", "json"];
    let secret: Secret = serde_json::from_str(&server.heddle(&words).ok()).unwrap();
    let credentials = &secret.data.unwrap()[SECRET_KEY].0;
    let credentials: Value = serde_json::from_slice(credentials).unwrap();
    read(credentials["log"].as_str().unwrap().as_ref())
}

// The commands block, and the index is served meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn an_instance_of_a_chart_is_removed_by_the_runner_that_made_it() {
    let mut registry = Registry::start().await;
    let server = shop(&registry).await;
    push_runner(&server, &registry, RUNNER);
    let charts = Charts::start(&["1.0.0", "0.9.0", "2.0.0-rc.1"]).await;
    let (url, runner) = (
        format!("{}/stable", charts.url),
        format!("{}/acme/helm-runner:v1", registry.url()),
    );
    let words = [
        "registry",
        "add",
        "charts",
        "--type",
        "helm",
        "--url",
        &url,
        "--runner",
        &runner,
        "--allow",
        "redis",
        "--refresh",
        "3600",
    ];
    server.heddle(&words).ok();
    sync(&server);
    until_offered(&server, "charts-redis", true).await;
    let listed = server.heddle(&["bundle", "ls"]).ok();
    assert!(
        listed.contains("charts-redis"),
        "as in the catalog: {listed}"
    );
    server.provision(TEAM, "charts-redis", "cache", &[]);
    let log = log(&server, "cache");
    for part in [
        "provision ",
        r#""chart":"redis""#,
        r#""version":"1.0.0""#,
        &url,
    ] {
        assert!(log.contains(part), "{part} is not in {log}");
    }

    // A runner that does nothing right, and a newer version: another revision, which is nothing to the instance.
    push_runner(&server, &registry, "exit 1");
    charts.release(&["1.1.0", "1.0.0"]);
    sync(&server);
    until_offered(&server, "1.1.0+runner.", true).await;
    let pinned = &instance(&server, "cache")["spec"]["revisionRef"]["bundleVersion"];
    assert!(
        pinned.as_str().unwrap().starts_with("1.0.0+runner."),
        "{pinned}"
    );
    let failed = server.heddle(&[
        "provision",
        "charts-redis",
        "-n",
        TEAM,
        "--id",
        "late",
        "--wait",
    ]);
    assert_ne!(failed.code, Some(0), "{failed:?}");

    registry.stop();
    drop(charts);
    server.deprovision(TEAM, "cache");
}
