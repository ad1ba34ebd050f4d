//! Faults that come from outside, each in a namespace of its own on one server: what is broken is named, others stay well, and
//! all of it heals by itself.

use heddle_api::health::{HealthPlane, HealthStatus, MeshHealth, NamespaceHealth};
use heddle_api::{Trigger, names};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::until_of;
use crate::events::subscriber::{Manner, Subscriber};
use crate::harness::{Server, eventually};

const INTEGRATION: &str = "/apis/messaging.knative.dev/v1/namespaces/kyma-integration";
/// Nobody listens there. A port that was given back may be somebody else's by the time an event comes.
const NOBODY: &str = "http://127.0.0.1:1/";
/// No disk has that much.
const NEVER_ENOUGH: &str = "eventsReserveMebibytes: 4294967295\n";

/// Applications whose names say what is done to them; each has a namespace of that name. The last one is left alone, and the
/// one before it loses its namespace.
const APPLICATIONS: [&str; 9] = [
    "failing",
    "hanging",
    "redirecting",
    "down",
    "brokerless",
    "linkless",
    "unmapped",
    "homeless",
    "well",
];

fn pair(name: &str) -> String {
    format!("health/applications/{name}/namespaces/{name}")
}

/// What must be named for an application, if anything.
fn culprit(name: &str) -> Option<(HealthPlane, String)> {
    let user = format!("trigger/{name}/all");
    Some(match name {
        "failing" | "hanging" | "redirecting" | "down" => (HealthPlane::User, user),
        "brokerless" => (HealthPlane::Control, format!("broker/{name}/default")),
        "linkless" => {
            let link = names::link(name, name);
            let link = format!("subscription/kyma-integration/{link}");
            (HealthPlane::Control, link)
        }
        "unmapped" => (
            HealthPlane::Control,
            format!("applicationmapping/{name}/{name}"),
        ),
        _ => return None,
    })
}

fn trigger(name: &str, uri: &str) -> Value {
    json!({
        "apiVersion": "eventing.knative.dev/v1", "kind": "Trigger",
        "metadata": {"name": "all", "namespace": name},
        "spec": {
            "broker": "default", "subscriber": {"uri": uri},
            "delivery": {"timeout": "PT1S", "retry": 1000, "backoffPolicy": "linear", "backoffDelay": "PT0.5S"},
        },
    })
}

fn mapping(name: &str) -> Value {
    json!({
        "apiVersion": "applicationconnector.kyma-project.io/v1alpha1", "kind": "ApplicationMapping",
        "metadata": {"name": name, "namespace": name}, "spec": {},
    })
}

/// Everything of one application, with a heartbeat every second.
fn objects(name: &str, subscriber: &Subscriber) -> Vec<Value> {
    let uri = match name {
        "down" => NOBODY.to_owned(),
        _ => subscriber.url(&format!("/{name}")),
    };
    let service = json!({
        "id": format!("{name}-events"), "name": name, "displayName": name, "description": name,
        "providerDisplayName": "acme", "entries": [{"type": "Events"}],
    });
    let flow = json!({
        "application": name, "serviceID": format!("{name}-events"), "healthCheck": {"intervalSeconds": 1},
    });
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
        json!({
            "apiVersion": "applicationconnector.kyma-project.io/v1alpha1", "kind": "Application",
            "metadata": {"name": name}, "spec": {"description": name, "services": [service]},
        }),
        mapping(name),
        json!({
            "apiVersion": "heddle.dev/v1alpha1", "kind": "EventFlow",
            "metadata": {"name": name, "namespace": name}, "spec": flow,
        }),
        trigger(name, &uri),
    ]
}

impl Server {
    fn declare(&self, objects: &[Value]) {
        let documents = objects.iter().map(|object| format!("---\n{object}\n"));
        let text: String = documents.collect();
        self.heddle_with(&["apply", "-f", "-"], &text).ok();
    }

    async fn remove(&self, path: &str) {
        let answer = self.ask("DELETE", path, &[], b"").await;
        assert!((200..300).contains(&answer.status()), "{}", answer.text());
    }

    async fn merge(&self, path: &str, patch: Value) {
        let kind = ("content-type", "application/merge-patch+json");
        let body = patch.to_string();
        let answer = self.ask("PATCH", path, &[kind], body.as_bytes()).await;
        assert!((200..300).contains(&answer.status()), "{}", answer.text());
    }

    async fn until_all_are_well(&self, names: &[&str]) {
        for name in names {
            let well = |found: &NamespaceHealth| {
                let user = found.verdict.planes.user.health;
                found.verdict.health == HealthStatus::Healthy
                    && matches!(user, HealthStatus::Healthy | HealthStatus::Unknown)
            };
            until_of(self, &pair(name), &format!("{name} to be well"), well).await;
        }
    }
}

async fn break_everything(server: &Server, subscriber: &Subscriber) {
    subscriber.behave("/failing", Manner::Status(500));
    subscriber.behave("/hanging", Manner::Hang);
    subscriber.behave("/redirecting", Manner::Status(302));
    for name in ["failing", "hanging", "redirecting", "down"] {
        let door = format!("/{name}/events");
        server.publish(&door, "one", "order.created").await;
    }
    let forbidden = json!({"metadata": {"labels": {"knative-eventing-injection": "disabled"}}});
    let namespace = "/api/v1/namespaces/brokerless";
    server.merge(namespace, forbidden).await;
    let broker = "/apis/eventing.knative.dev/v1/namespaces/brokerless/brokers/default";
    server.remove(broker).await;
    let link = names::link("linkless", "linkless");
    let link = format!("{INTEGRATION}/subscriptions/{link}");
    let held = json!({"metadata": {"finalizers": ["example.com/mine"]}});
    server.merge(&link, held).await;
    server.remove(&link).await;
    server.remove(&mapping_path("unmapped")).await;
    server.remove("/api/v1/namespaces/homeless").await;
}

fn mapping_path(name: &str) -> String {
    let group = "/apis/applicationconnector.kyma-project.io/v1alpha1";
    format!("{group}/namespaces/{name}/applicationmappings/{name}")
}

async fn repair_everything(server: &Server, subscriber: &Subscriber) {
    for name in ["failing", "hanging", "redirecting"] {
        subscriber.behave(&format!("/{name}"), Manner::Accept);
    }
    // What was answered with a redirect is not tried again by itself.
    let redrive = [
        "dead-letters",
        "redrive",
        "--trigger",
        "redirecting/all",
        "--yes",
    ];
    server.heddle(&redrive).ok();
    let there = trigger("down", &subscriber.url("/down"));
    server.declare(&[there, mapping("unmapped")]);
    let allowed = json!({"metadata": {"labels": {"knative-eventing-injection": null}}});
    let namespace = "/api/v1/namespaces/brokerless";
    server.merge(namespace, allowed).await;
    let link = names::link("linkless", "linkless");
    let freed = json!({"metadata": {"finalizers": null}});
    let link = format!("{INTEGRATION}/subscriptions/{link}");
    server.merge(&link, freed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_broken_from_outside_is_named_and_heals_by_itself() {
    let subscriber = Subscriber::start().await;
    let mut server = Server::start_with("info", &["--no-heartbeats=false"]).await;
    let all = (APPLICATIONS.iter()).flat_map(|name| objects(name, &subscriber));
    server.declare(&all.collect::<Vec<_>>());
    server.until_all_are_well(&APPLICATIONS).await;

    break_everything(&server, &subscriber).await;
    for name in APPLICATIONS {
        let Some((plane, object)) = culprit(name) else {
            continue;
        };
        let named = |found: &NamespaceHealth| {
            let verdict = &found.verdict;
            let user = &verdict.planes.user;
            match plane {
                // The mesh stays well.
                HealthPlane::User => {
                    user.object.as_ref() == Some(&object)
                        && user.health == HealthStatus::Unhealthy
                        && verdict.health == HealthStatus::Healthy
                }
                _ => verdict.plane == Some(plane) && verdict.object.as_ref() == Some(&object),
            }
        };
        let what = format!("{object} to be named for {name}");
        until_of(&server, &pair(name), &what, named).await;
    }
    eventually("the namespace is forgotten", async || {
        let path = format!("/heddle/v1/{}", pair("homeless"));
        let answer = server.ask("GET", &path, &[], b"").await;
        (answer.status() == 404).then_some(())
    })
    .await;
    server.until_all_are_well(&["well"]).await;
    let mesh: MeshHealth = server.question("health").await;
    assert_eq!(mesh.verdict.health, HealthStatus::Degraded, "{mesh:?}");

    repair_everything(&server, &subscriber).await;
    let left: Vec<&str> = APPLICATIONS
        .into_iter()
        .filter(|name| *name != "homeless")
        .collect();
    server.until_all_are_well(&left).await;

    // A disk without room is told as what it is, and it heals with the room.
    server.terminate().await;
    server.launch_configured(NEVER_ENOUGH).await;
    until_of(
        &server,
        &pair("well"),
        "the full disk to be named",
        |found| {
            found.verdict.plane == Some(HealthPlane::Dependencies)
                && found.verdict.reason == "LogFull"
        },
    )
    .await;
    server.kill();
    server.launch().await;
    until_of(&server, &pair("well"), "it to be measured again", |found| {
        assert_ne!(found.verdict.health, HealthStatus::Unhealthy, "{found:?}");
        found.verdict.health == HealthStatus::Healthy
    })
    .await;
    // Nothing that heartbeats need is an object or an account of anybody.
    let triggers: Vec<Trigger> = server.all().await;
    assert!(triggers.iter().all(|trigger| trigger.name_any() == "all"));
    assert_eq!(triggers.len(), left.len());
    let accounts = server.accounts().await.consumers;
    let heartbeats = accounts
        .iter()
        .filter(|one| one.consumer.contains("heartbeat"));
    assert_eq!(heartbeats.count(), 0);
}
