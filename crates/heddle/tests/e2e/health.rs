//! The health of the mesh as its users see it: measured, in four planes, with what is broken named; healed by itself.

mod outside;

use heddle_api::ResourceKind;
use heddle_api::health::inventory::{Inventory, InventoryItem};
use heddle_api::health::{ApplicationHealth, HealthStatus, MeshHealth, NamespaceHealth};
use serde_json::{Value, json};

use crate::events::stage::{self, TEAM, event};
use crate::events::subscriber::{Manner, Subscriber};
use crate::harness::{Server, eventually};

const PAIR: &str = "health/applications/shop/namespaces/team-a";

/// The shop on a server that measures its health.
async fn shop(subscriber: &Subscriber) -> Server {
    let server = Server::start_with("info", &["--no-heartbeats=false"]).await;
    stage::shop_on(server, subscriber).await
}

/// Waits for the verdict on the shop in its team's namespace to be as wanted.
async fn until(
    server: &Server,
    what: &str,
    wanted: impl Fn(&NamespaceHealth) -> bool,
) -> NamespaceHealth {
    until_of(server, PAIR, what, wanted).await
}

/// The same of any application and namespace.
async fn until_of(
    server: &Server,
    pair: &str,
    what: &str,
    wanted: impl Fn(&NamespaceHealth) -> bool,
) -> NamespaceHealth {
    eventually(what, async || {
        let answer = server
            .ask("GET", &format!("/heddle/v1/{pair}"), &[], b"")
            .await;
        let found: NamespaceHealth = serde_json::from_slice(&answer.body).ok()?;
        wanted(&found).then_some(found)
    })
    .await
}

fn is_well(found: &NamespaceHealth) -> bool {
    found.verdict.health == HealthStatus::Healthy
        && found
            .heartbeat
            .as_ref()
            .is_some_and(|beat| beat.age_seconds.is_some())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_subscriber_is_told_on_the_user_plane_and_the_mesh_stays_well() {
    let subscriber = Subscriber::start().await;
    subscriber.behave("/refunds", Manner::Status(500));
    let server = shop(&subscriber).await;
    let well = until(&server, "heartbeats arrive", is_well).await;
    assert!(well.state >= 3, "{well:?}");
    server.publish("/shop/events", "one", "order.created").await;
    server
        .publish("/shop/events", "two", "order.cancelled")
        .await;
    let failing = until(&server, "the failing subscriber is named", |found| {
        found.verdict.planes.user.health == HealthStatus::Unhealthy
    })
    .await;
    let user = &failing.verdict.planes.user;
    assert_eq!(
        user.object.as_deref(),
        Some("trigger/team-a/refunds"),
        "{user:?}"
    );
    assert_eq!(user.reason, "SubscriberFailing");
    assert!(
        user.evidence
            .as_ref()
            .is_some_and(|seen| seen.contains("500")),
        "{user:?}"
    );
    assert_eq!(failing.verdict.health, HealthStatus::Healthy, "{failing:?}");
    let mesh: MeshHealth = server.question("health").await;
    assert_eq!(mesh.verdict.health, HealthStatus::Healthy, "{mesh:?}");
    let told = server.heddle(&["health", "shop", "-n", TEAM]);
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(told.out.contains("trigger/team-a/refunds"), "{told:?}");
    everything_is_counted(&server).await;
    // The same in numbers, and in the status of the Application.
    let metrics = server.metrics().await;
    for line in [
        r#"heddle_health{app="",ns="",plane="all"} 3"#,
        r#"heddle_health{app="shop",ns="team-a",plane="user"} 0"#,
        r#"heddle_health{app="shop",ns="team-a",plane="data"} 3"#,
    ] {
        assert!(metrics.contains(line), "{line} in\n{metrics}");
    }
    eventually("the status says the same", async || {
        let path = "/apis/applicationconnector.kyma-project.io/v1alpha1/applications/shop";
        let answer = server.ask("GET", path, &[], b"").await;
        let object: Value = serde_json::from_slice(&answer.body).unwrap();
        let eventing = &object["status"]["eventing"];
        let user = &eventing["planes"]["user"]["reason"];
        (eventing["health"] == "Healthy" && user == "SubscriberFailing").then_some(())
    })
    .await;
}

/// Every kind and every component is in the inventory, with what is wrong.
async fn everything_is_counted(server: &Server) {
    let inventory: Inventory = server.question("health/inventory").await;
    for kind in ResourceKind::ALL {
        let found = inventory
            .objects
            .iter()
            .find(|item| item.name == kind.name());
        assert!(found.is_some(), "{kind:?} in {inventory:?}");
    }
    let item = |items: &[InventoryItem], name: &str| {
        let found = items.iter().find(|item| item.name == name);
        found.unwrap_or_else(|| panic!("{name}")).clone()
    };
    let triggers = item(&inventory.objects, "Trigger");
    assert_eq!(triggers.counts.all(), 2, "{triggers:?}");
    let subscribers = item(&inventory.objects, "subscriber");
    assert_eq!(subscribers.counts.unhealthy, 1, "{subscribers:?}");
    for well in [
        "source",
        "delivery",
        "heddle-broker",
        "admission",
        "log",
        "store",
    ] {
        let found = item(&inventory.components, well);
        assert_eq!(found.health, Some(HealthStatus::Healthy), "{found:?}");
    }
    let told = server.heddle(&["health", "inventory"]).ok();
    assert!(
        told.contains("ServiceInstance") && told.contains("routing table"),
        "{told}"
    );
    let codes = server.heddle(&["health", "inventory", "--codes"]).ok();
    assert!(codes.contains("SubscriberFailing"), "{codes}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_is_forbidden_is_named_with_the_remedy_and_heals_by_itself() {
    let subscriber = Subscriber::start().await;
    let server = shop(&subscriber).await;
    until(&server, "heartbeats arrive", is_well).await;
    let path = format!("/apis/eventing.knative.dev/v1/namespaces/{TEAM}/brokers/default");
    let answer = server.ask("DELETE", &path, &[], b"").await;
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let broken = until(&server, "the missing broker is named", |found| {
        found.verdict.health == HealthStatus::Unhealthy
    })
    .await;
    let verdict = &broken.verdict;
    assert_eq!(
        verdict.object.as_deref(),
        Some("broker/team-a/default"),
        "{verdict:?}"
    );
    assert_eq!(verdict.hop.as_deref(), Some("broker"));
    assert!(!verdict.remedy.is_empty());
    let probe = server
        .ask("GET", &format!("/heddle/v1/{PAIR}?probe=1"), &[], b"")
        .await;
    assert_eq!(probe.status(), 503);
    let told = server.heddle(&["health", "shop"]);
    assert_eq!(told.code, Some(1), "{told:?}");
    server.apply(&stage::broker("default")).await;
    until(&server, "it is well again", is_well).await;
    let probe = server
        .ask("GET", &format!("/heddle/v1/{PAIR}?probe=1"), &[], b"")
        .await;
    assert_eq!(probe.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_else_publishes_heartbeats_and_no_trigger_receives_them() {
    let subscriber = Subscriber::start().await;
    let server = shop(&subscriber).await;
    let everything = stage::trigger("everything", &subscriber.url("/everything"), json!({}));
    server.apply(&everything).await;
    server.until_ready("triggers", "everything").await;
    let mut wire = server.publisher();
    let reserved = event("mine", "dev.heddle.heartbeat.v1");
    for door in [
        "/shop/events",
        stage::BROKER,
        "/channel/kyma-integration/shop",
    ] {
        let answer = wire.ask("POST", door, &reserved, b"").await.unwrap();
        assert_eq!(answer.status(), 403, "{door}: {}", answer.text());
    }
    until(&server, "heartbeats arrive", is_well).await;
    server
        .publish("/shop/events", "last", "order.created")
        .await;
    eventually("the event arrives", async || {
        let got = subscriber.received("/everything");
        got.iter()
            .any(|one| one.header("ce-id") == Some("last"))
            .then_some(())
    })
    .await;
    assert_eq!(subscriber.received("/everything").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_kill_nothing_is_known_until_it_was_measured() {
    let subscriber = Subscriber::start().await;
    let mut server = shop(&subscriber).await;
    until(&server, "heartbeats arrive", is_well).await;
    server.kill();
    server.launch().await;
    // No alarm in between, and nothing carried over: what is well has a heartbeat of this process.
    until(&server, "it is measured again", |found| {
        assert_ne!(found.verdict.health, HealthStatus::Unhealthy, "{found:?}");
        is_well(found)
    })
    .await;
    let shop: ApplicationHealth = server.question("health/applications/shop").await;
    assert_eq!(shop.eventing.namespaces.len(), 1);
    let unknown = server
        .ask("GET", "/heddle/v1/health/applications/nobody", &[], b"")
        .await;
    assert_eq!(unknown.status(), 404);
    let mesh = server.ask("GET", "/heddle/v1/health", &[], b"").await;
    let tag = mesh.header("etag").unwrap_or_default().to_owned();
    let again = server
        .ask("GET", "/heddle/v1/health", &[("if-none-match", &tag)], b"")
        .await;
    assert!(matches!(again.status(), 304 | 200), "{}", again.status());
}
