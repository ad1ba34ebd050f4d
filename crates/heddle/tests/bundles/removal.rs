//! A bundle that leaves its registry: withdrawn for the new, there for the old, swept when nobody needs it.

use serde_json::json;

use crate::harness::{Server, eventually};
use crate::registry::Registry;
use crate::{Bundle, TEAM, shop, sync, until_offered};

const QUIET: &str = "exit 0";

/// Nothing that is withdrawn and unused is kept for longer than it takes to look.
async fn sweep_at_once(server: &Server) {
    let change = json!({"spec": {"sweepGraceSeconds": 0}});
    crate::patch(
        server,
        "/apis/heddle.dev/v1alpha1/registries/local",
        &change,
    )
    .await;
}

fn bundles(server: &Server) -> String {
    server.heddle(&["bundle", "ls", "-o", "json"]).ok()
}

#[tokio::test]
async fn a_withdrawn_bundle_is_refused_anew_and_goes_with_its_last_instance() {
    let registry = Registry::start().await;
    let server = shop(&registry).await;
    sweep_at_once(&server).await;
    Bundle::new("leaving", "1.0.0", QUIET).push(&server, &registry, "acme/leaving:latest");
    sync(&server);
    until_offered(&server, "leaving", true).await;
    server.provision(TEAM, "local-leaving", "old", &[]);
    let service = crate::instance(&server, "old")["spec"]["serviceID"]
        .as_str()
        .unwrap()
        .to_owned();
    let plan = crate::instance(&server, "old")["spec"]["planID"]
        .as_str()
        .unwrap()
        .to_owned();
    registry.remove("acme/leaving", "latest").await;
    sync(&server);
    until_offered(&server, "leaving", false).await;
    assert!(bundles(&server).contains("Marked"), "an instance uses it");
    let explained = server.heddle(&["catalog", "explain", &service]).ok();
    assert!(explained.contains("old"), "{explained}");
    let body = json!({
        "service_id": service, "plan_id": plan, "organization_guid": "o", "space_guid": "s",
        "context": {"platform": "kubernetes", "namespace": TEAM},
    });
    let refused = put(
        &server,
        "/v2/service_instances/new?accepts_incomplete=true",
        &body,
    )
    .await;
    assert_eq!(refused.0, 400, "{refused:?}");
    assert_eq!(refused.1["error"], "ServiceWithdrawn", "{refused:?}");
    server.deprovision(TEAM, "old");
    eventually("the bundle is swept", async || {
        (!bundles(&server).contains("acme/leaving")).then_some(())
    })
    .await;
    let refused = put(
        &server,
        "/v2/service_instances/new?accepts_incomplete=true",
        &body,
    )
    .await;
    assert_eq!(
        (refused.0, &refused.1["error"]),
        (400, &json!("ServiceWithdrawn")),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_bundle_that_comes_back_is_the_same_offering() {
    let registry = Registry::start().await;
    let server = shop(&registry).await;
    let bundle = Bundle::new("returning", "1.0.0", QUIET);
    bundle.push(&server, &registry, "acme/returning:latest");
    sync(&server);
    until_offered(&server, "returning", true).await;
    let before = crate::catalog(&server);
    registry.remove("acme/returning", "latest").await;
    sync(&server);
    until_offered(&server, "returning", false).await;
    bundle.push(&server, &registry, "acme/returning:latest");
    sync(&server);
    until_offered(&server, "returning", true).await;
    assert_eq!(crate::catalog(&server), before);
}

/// One request of a platform.
async fn put(server: &Server, path: &str, body: &serde_json::Value) -> (u16, serde_json::Value) {
    let request = http::Request::put(path)
        .header("X-Broker-API-Version", "2.17")
        .header(http::header::CONTENT_TYPE, "application/json");
    let request = request.body(serde_json::to_vec(body).unwrap()).unwrap();
    let answer = server.admin(request).await;
    (answer.code.as_u16(), answer.json())
}
