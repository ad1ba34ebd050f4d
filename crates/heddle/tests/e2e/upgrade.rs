//! A namespace that was wired by hand, or by the tools before heddle, gets flows: everything is taken in where it stands while
//! events pass through it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::join_all;
use heddle_api::well_known::{INTEGRATION_NAMESPACE, MANAGED_BY, MANAGED_BY_LABEL};
use heddle_api::{Broker, EventFlow, ServiceInstance, Subscription, Trigger};
use heddle_rt::Clock;
use kube::api::{Api, DeleteParams, PostParams};
use kube::{Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::events::load::Sent;
use crate::events::stage::event;
use crate::events::subscriber::Subscriber;
use crate::harness::{Server, eventually_or_else};

const APPLICATIONS: usize = 20;
const TEAMS: usize = 5;
const PUBLISHERS: usize = 4;
/// Between two events of a publisher: what comes in should not outrun what goes out five times over.
const BREATH: Duration = Duration::from_millis(10);

const CONNECTOR: &str = "applicationconnector.kyma-project.io/v1alpha1";

fn application(number: usize) -> String {
    format!("app{number}")
}

fn team(number: usize) -> String {
    format!("team{number}")
}

fn service(application: usize) -> String {
    format!("service-of-app{application}")
}

/// Every pair of an Application and a namespace.
fn pairs() -> impl Iterator<Item = (usize, usize)> {
    (0..APPLICATIONS).flat_map(|application| (0..TEAMS).map(move |team| (application, team)))
}

/// What there is to have, and who may have it.
fn offers() -> Vec<Value> {
    let applications = (0..APPLICATIONS).map(|number| {
        let service = json!({
            "id": service(number), "name": "events", "displayName": "events", "description": "of an application",
            "providerDisplayName": "somebody", "entries": [{"type": "Events"}],
        });
        json!({
            "apiVersion": CONNECTOR, "kind": "Application", "metadata": {"name": application(number)},
            "spec": {"services": [service]},
        })
    });
    let teams = (0..TEAMS).map(
        |number| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": team(number)}}),
    );
    let mappings = pairs().map(|(of, at)| {
        json!({
            "apiVersion": CONNECTOR, "kind": "ApplicationMapping",
            "metadata": {"namespace": team(at), "name": application(of)}, "spec": {},
        })
    });
    teams.chain(applications).chain(mappings).collect()
}

fn broker_of(at: usize) -> Value {
    json!({"ref": {
        "apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "name": "default", "namespace": team(at),
    }})
}

/// A link under the labels by which it is known, and under a name of its own.
fn link(of: usize, at: usize, subscriber: Value) -> Value {
    json!({
        "apiVersion": "messaging.knative.dev/v1", "kind": "Subscription",
        "metadata": {
            "namespace": INTEGRATION_NAMESPACE, "name": format!("brokersub-{of}x{at}"),
            "labels": {"application-name": application(of), "broker-namespace": team(at)},
        },
        "spec": {
            "channel": {"apiVersion": "messaging.knative.dev/v1alpha1", "kind": "Channel", "name": application(of)},
            "subscriber": subscriber,
        },
    })
}

/// What somebody made before there were flows, the way it was made then.
fn wired(server: &Server, subscriber: &Subscriber) -> Vec<Value> {
    let brokers = (0..TEAMS).map(|at| {
        json!({
            "apiVersion": "eventing.knative.dev/v1", "kind": "Broker",
            "metadata": {"namespace": team(at), "name": "default"},
        })
    });
    let triggers = (0..TEAMS).map(|at| {
        json!({
            "apiVersion": "eventing.knative.dev/v1", "kind": "Trigger",
            "metadata": {"namespace": team(at), "name": "all"},
            "spec": {"broker": "default", "subscriber": {"uri": subscriber.url(&path(at))}},
        })
    });
    let rest = pairs().flat_map(|(of, at)| {
        // The oldest ones name an address: there was nothing to refer to then.
        let link = match of % 2 {
            0 => link(of, at, broker_of(at)),
            _ => {
                let address = format!("{}/broker/{}/default", server.events, team(at));
                link(of, at, json!({"uri": address}))
            }
        };
        let channel = json!({
            "apiVersion": "messaging.knative.dev/v1", "kind": "Channel", "name": application(of),
            "namespace": INTEGRATION_NAMESPACE,
        });
        let to =
            json!({"apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "name": "default"});
        let policy = json!({
            "apiVersion": "eventing.knative.dev/v1alpha1", "kind": "EventPolicy",
            "metadata": {"namespace": team(at), "name": format!("flow-{}", application(of))},
            "spec": {"from": [{"ref": channel}], "to": [{"ref": to}]},
        });
        [policy, link]
    });
    brokers.chain(triggers).chain(rest).collect()
}

/// The instances that a migration declares for what is already there.
fn instances() -> Vec<Value> {
    let instances = pairs().map(|(of, at)| {
        json!({
            "apiVersion": "heddle.dev/v1alpha1", "kind": "ServiceInstance",
            "metadata": {"namespace": team(at), "name": application(of)},
            "spec": {
                "instanceID": format!("{}-{}", application(of), team(at)),
                "serviceID": service(of), "planID": format!("{}-plan", service(of)),
            },
        })
    });
    instances.collect()
}

fn path(team: usize) -> String {
    format!("/team{team}")
}

fn apply(server: &Server, objects: &[Value]) {
    let documents: String = (objects.iter())
        .map(|object| format!("---\n{object}\n"))
        .collect();
    server.heddle_with(&["apply", "-f", "-"], &documents).ok();
}

async fn until_ready<K>(server: &Server, count: usize)
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + serde::Serialize + std::fmt::Debug,
{
    let what = format!("{count} of {} to be ready", K::plural(&()));
    eventually_or_else(&what, async || {
        let mut ready = 0;
        let mut other = Value::Null;
        for object in server.all::<K>().await {
            let object = serde_json::to_value(object).unwrap();
            let conditions = object["status"]["conditions"].as_array().cloned();
            let is_ready = conditions
                .iter()
                .flatten()
                .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
            if is_ready {
                ready += 1;
            } else {
                other = object;
            }
        }
        if ready == count {
            Ok(())
        } else {
            Err(format!("{ready} are, but not {other:#}"))
        }
    })
    .await;
}

/// Publishes to one Application after the other until there is enough.
async fn publish(server: &Server, publisher: usize, enough: &AtomicBool) -> Sent {
    let mut wire = server.publisher();
    let mut sent = Sent::default();
    for number in 0.. {
        if enough.load(Ordering::SeqCst) {
            break;
        }
        let id = format!("{publisher}-{number}");
        let door = format!("/{}/events", application(number % APPLICATIONS));
        let answer = wire.ask("POST", &door, &event(&id, "order"), b"").await;
        let answer = answer.unwrap();
        assert_eq!(answer.status(), 202, "{}", answer.text());
        sent.tried.insert(id.clone());
        sent.acknowledged.insert(id);
        Clock::system().sleep(BREATH).await;
    }
    sent
}

fn uids<K: Resource>(objects: &[K]) -> BTreeMap<String, Option<String>> {
    let uids = objects
        .iter()
        .map(|object| (object.name_any(), object.uid()));
    uids.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_wired_before_there_were_flows_is_taken_in_without_losing_an_event() {
    let server = Server::start_quietly().await;
    let subscriber = Subscriber::start().await;
    apply(&server, &offers());
    apply(&server, &wired(&server, &subscriber));
    until_ready::<Subscription>(&server, APPLICATIONS * TEAMS).await;
    until_ready::<Trigger>(&server, TEAMS).await;
    let links = uids(&server.all::<Subscription>().await);
    let brokers: Vec<_> = server
        .all::<Broker>()
        .await
        .iter()
        .map(|broker| broker.uid())
        .collect();

    let enough = AtomicBool::new(false);
    let publishers = (0..PUBLISHERS).map(|publisher| publish(&server, publisher, &enough));
    let upgrade = async {
        let seen = || subscriber.tally(&path(0)).len();
        subscriber.until_received(&path(0), 100).await;
        let before = seen();
        let client = server.client().await;
        for instance in instances() {
            let namespace = instance["metadata"]["namespace"].as_str().unwrap();
            let api: Api<ServiceInstance> = Api::namespaced(client.clone(), namespace);
            let instance = serde_json::from_value(instance.clone()).unwrap();
            api.create(&PostParams::default(), &instance).await.unwrap();
        }
        until_ready::<EventFlow>(&server, APPLICATIONS * TEAMS).await;
        until_ready::<ServiceInstance>(&server, APPLICATIONS * TEAMS).await;
        assert!(seen() > before, "events pass meanwhile");
        subscriber.until_received(&path(0), seen() + 100).await;
        enough.store(true, Ordering::SeqCst);
    };
    let (runs, ()) = tokio::join!(join_all(publishers), upgrade);

    let mut sent = Sent::default();
    for run in runs {
        sent.add(run);
    }
    for team in 0..TEAMS {
        sent.until_arrived(&subscriber, &path(team)).await;
    }
    server.until_quiet().await;
    for team in 0..TEAMS {
        let doubled: Vec<_> = (subscriber.tally(&path(team)).into_iter())
            .filter(|(_, times)| *times > 1)
            .collect();
        assert!(doubled.is_empty(), "{doubled:?}");
    }
    let now = eventually_or_else("every link to be heddle's", async || {
        let now = server.all::<Subscription>().await;
        let is_foreign = |link: &&Subscription| {
            let manager = link.labels().get(MANAGED_BY_LABEL);
            manager.is_none_or(|manager| manager != MANAGED_BY)
        };
        match now.iter().find(is_foreign) {
            None => Ok(now),
            Some(link) => Err(link.name_any()),
        }
    })
    .await;
    assert_eq!(uids(&now), links, "each is the one that was there");
    for broker in server.all::<Broker>().await {
        assert!(brokers.contains(&broker.uid()));
        assert_eq!(broker.spec.claims.len(), APPLICATIONS);
    }
    server.heddle(&["doctor"]).ok();

    // From here on they are like any other.
    for instance in server.all::<ServiceInstance>().await {
        let api: Api<ServiceInstance> =
            Api::namespaced(server.client().await, &instance.namespace().unwrap());
        api.delete(&instance.name_any(), &DeleteParams::default())
            .await
            .unwrap();
    }
    eventually_or_else("everything to be gone", async || {
        let left = server.all::<EventFlow>().await.len() + server.all::<Subscription>().await.len();
        if left == 0 {
            Ok(())
        } else {
            Err(format!("{left} are left"))
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_was_never_taken_in_keeps_nothing_from_going() {
    let server = Server::start_quietly().await;
    apply(&server, &offers());
    // A namespace that forbids a Broker takes nothing in.
    let label = json!({"knative-eventing-injection": "disabled"});
    let forbidding = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": team(0), "labels": label},
    });
    let earlier = link(0, 0, broker_of(0));
    apply(&server, &[forbidding, earlier, instances().remove(0)]);
    let client = server.client().await;
    let flows: Api<EventFlow> = Api::namespaced(client.clone(), &team(0));
    let removed: Api<ServiceInstance> = Api::namespaced(client, &team(0));
    eventually_or_else("a flow", async || {
        flows
            .get_opt(&application(0))
            .await
            .unwrap()
            .ok_or_else(String::new)
    })
    .await;
    removed
        .delete(&application(0), &DeleteParams::default())
        .await
        .unwrap();
    eventually_or_else("the instance to be gone", async || {
        match removed.get_opt(&application(0)).await.unwrap() {
            None => Ok(()),
            Some(instance) => Err(format!("{:#?}", instance.status)),
        }
    })
    .await;
    assert_eq!(
        server.all::<Subscription>().await.len(),
        1,
        "it is not heddle's"
    );
}
