//! Subscribers between events: nothing is known of those that nobody tries, and those that are tried are told apart.

use futures::FutureExt as _;
use heddle_api::health::{HealthStatus, MeshHealth, NamespaceHealth, PlaneHealth};
use heddle_rt::net;
use serde_json::{Value, json};

use crate::events::stage::{self, TEAM};
use crate::events::subscriber::Subscriber;
use crate::harness::{Server, eventually, write};

/// A Trigger whose subscriber is tried between events.
fn tried(url: &str, how: &str) -> Value {
    let mut trigger = stage::trigger("tried", url, json!({}));
    trigger["metadata"]["annotations"] = json!({"heddle.dev/subscriber-probe": how});
    trigger
}

/// Waits until the user plane of the shop is so.
async fn until(server: &Server, reason: &str, seen: &str) -> PlaneHealth {
    let found = eventually(reason, async || {
        let path = format!("/heddle/v1/health/applications/shop/namespaces/{TEAM}");
        let answer = server.ask("GET", &path, &[], b"").await;
        // It may be judged a moment later.
        let found: NamespaceHealth = serde_json::from_slice(&answer.body).ok()?;
        let user = &found.verdict.planes.user;
        let evidence = user.evidence.as_deref().unwrap_or_default();
        (user.reason == reason && evidence.contains(seen)).then_some(found)
    })
    .await;
    let mesh: MeshHealth = server.question("health").await;
    assert_ne!(mesh.verdict.health, HealthStatus::Unhealthy, "{mesh:?}");
    found.verdict.planes.user
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_subscriber_of_an_idle_trigger_is_unknown_unless_it_is_tried() {
    let subscriber = Subscriber::start().await;
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("heddle.yaml");
    write(&config, "egressDeny: [\"127.0.0.2/32\"]\n");
    let mut server = Server::keeping(folder.path().join("data"));
    server
        .launch_with(|command| {
            let config = config.display().to_string();
            command.args(["--no-heartbeats=false", "--config", &config]);
        })
        .await;
    let server = stage::shop_on(server, &subscriber).await;
    let passive = until(&server, "SubscriberUntried", "").await;
    assert_eq!(passive.health, HealthStatus::Unknown);
    assert!(!passive.message.is_empty() && !passive.remedy.is_empty());

    let nobody = net::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
    let dead = format!("http://{}/", nobody.address());
    drop(nobody);
    server.apply(&tried(&dead, "tcp")).await;
    let active = until(&server, "SubscriberUnreachable", "tcp").await;
    assert_eq!(active.health, HealthStatus::Unhealthy);
    assert_eq!(active.object.as_deref(), Some("trigger/team-a/tried"));
    assert_eq!(active.hop.as_deref(), Some("delivery"));

    server
        .apply(&tried(&subscriber.url("/tried"), "heartbeat"))
        .await;
    subscriber.until_received("/tried", 1).await;
    until(&server, "SubscriberUntried", "").await;

    // Where nothing may be delivered to, nothing is tried.
    let forbidden = net::bind(([127, 0, 0, 2], 0).into()).await.unwrap();
    let url = format!("http://{}/", forbidden.address());
    server.apply(&tried(&url, "heartbeat")).await;
    until(&server, "SubscriberUnreachable", "127.0.0.2").await;
    assert!(forbidden.accept().now_or_never().is_none());
}
