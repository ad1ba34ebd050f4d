//! Subscribers whose address is, in the end, the events listener of the very server that delivers to them.
//!
//! However it is spelled, such a delivery is the mesh leading an event from one of its places to another: into a namespace
//! only where a policy there says so, and around a circle only so many times.

use std::sync::Arc;

use heddle_rt::net::{self, Listener};
use heddle_rt::{OnError, Tasks};
use serde_json::json;

use super::stage::{self, BROKER, impatient, trigger};
use crate::harness::Server;

/// How often an event passes a broker before a loop is suspected: once as it is published, and 255 hops.
const PASSES: u64 = 256;

/// Other hosts that are the one the listener is bound to.
const HOSTS: [&str; 8] = [
    "127.0.0.1",
    "localhost",
    "LocalHost",
    "127.1",
    "2130706433",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "[::ffff:127.0.0.1]",
];

/// What can be written behind the path without naming another place.
const TAILS: [&str; 3] = ["", "?x=1", "?access_token=none#there"];

/// Ways to write the address of a door, of which only one is what the Broker's status says.
fn spellings(server: &Server, door: &str) -> Vec<String> {
    let port = server.events.rsplit(':').next().unwrap();
    let at = |scheme: &str, host: &str, tail: &str| format!("{scheme}://{host}:{port}{door}{tail}");
    let hosts = HOSTS.iter().map(|host| at("http", host, "?x=1"));
    let tails = TAILS.iter().map(|tail| at("http", "localhost", tail));
    let secured = HOSTS[..2].iter().map(|host| at("https", host, "?x=1"));
    hosts.chain(tails).chain(secured).collect()
}

/// A trigger for each address, each for events of its own type: `type-0` and so on.
async fn apply_triggers(server: &Server, addresses: &[String]) {
    for (number, address) in addresses.iter().enumerate() {
        let wants = json!({
            "filter": {"attributes": {"type": format!("type-{number}")}}, "delivery": impatient(1),
        });
        let one = trigger(&format!("t-{number}"), address, wants);
        server.apply_trigger(&one).await;
    }
}

async fn publish_each(server: &Server, addresses: &[String]) {
    for number in 0..addresses.len() {
        let type_ = format!("type-{number}");
        server
            .publish(BROKER, &format!("event-{number}"), &type_)
            .await;
    }
}

#[tokio::test]
async fn no_spelling_of_our_own_listener_leads_into_a_namespace_that_lets_nothing_in() {
    let server = stage::with_broker().await;
    let elsewhere = r#"
apiVersion: v1
kind: Namespace
metadata: {name: team-b}
---
{apiVersion: eventing.knative.dev/v1, kind: Broker, metadata: {name: default, namespace: team-b}}
"#;
    server.heddle_with(&["apply", "-f", "-"], elsewhere).ok();
    let path = "/apis/eventing.knative.dev/v1/namespaces/team-b/brokers/default";
    crate::harness::eventually("the Broker of team-b to be ready", async || {
        let broker = server.ask("GET", path, &[], b"").await.json();
        let conditions = broker["status"]["conditions"].as_array()?.clone();
        let ready = |condition: &serde_json::Value| {
            condition["type"] == "Ready" && condition["status"] == "True"
        };
        conditions.iter().any(ready).then_some(())
    })
    .await;
    let addresses = spellings(&server, "/broker/team-b/default");
    apply_triggers(&server, &addresses).await;
    publish_each(&server, &addresses).await;
    let dead = server.until_dead(addresses.len() as u64).await;
    for letter in dead.items {
        assert!(
            letter.reason.contains("no EventPolicy in team-b allows"),
            "{letter:#?}"
        );
        assert_eq!(
            (letter.status, letter.attempts),
            (Some(403), 1),
            "{letter:#?}"
        );
    }
    let accounts = server.until_quiet().await;
    let published = addresses.len() as u64;
    assert_eq!(
        accounts.log.next - accounts.log.first,
        published,
        "nothing was appended but what was published"
    );
}

#[tokio::test]
async fn a_path_that_is_no_door_of_ours_stays_none() {
    let server = stage::with_broker().await;
    let port = server.events.rsplit(':').next().unwrap();
    let paths = [
        "/broker/team-a/default/",
        "/broker/team-a/%64efault",
        "//broker/team-a/default",
        "/broker/team-a/../team-a/default",
        "/heddle/v1/webhook-consent/x",
    ];
    let addresses = paths.map(|path| format!("http://localhost:{port}{path}"));
    apply_triggers(&server, &addresses).await;
    publish_each(&server, &addresses).await;
    for letter in server.until_dead(paths.len() as u64).await.items {
        assert_eq!(letter.status, Some(404), "{letter:#?}");
    }
}

#[tokio::test]
async fn a_loop_through_any_spelling_of_our_own_listener_ends() {
    let server = stage::with_broker().await;
    let addresses = spellings(&server, BROKER);
    apply_triggers(&server, &addresses).await;
    publish_each(&server, &addresses).await;
    let dead = server.until_dead(addresses.len() as u64).await;
    for letter in dead.items {
        assert!(letter.reason.contains("there is a loop"), "{letter:#?}");
    }
    let accounts = server.until_quiet().await;
    let appended = accounts.log.next - accounts.log.first;
    assert_eq!(appended, PASSES * addresses.len() as u64);
}

#[tokio::test]
async fn a_loop_through_a_forwarder_nobody_can_see_through_ends_too() {
    let server = stage::with_broker().await;
    let tasks = Tasks::new("forwarder");
    let listener = net::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
    let address = format!("http://{}{BROKER}", listener.address());
    let to = server.events.strip_prefix("http://").unwrap().to_owned();
    tasks.spawn(
        "accept",
        OnError::Report,
        forward(listener, to.into(), tasks.clone()),
    );
    apply_triggers(&server, &[address]).await;
    publish_each(&server, &[String::new()]).await;
    let dead = server.until_dead(1).await;
    let letter = &dead.items[0];
    assert_eq!(letter.status, Some(400), "{letter:#?}");
    let accounts = server.until_quiet().await;
    assert_eq!(accounts.log.next - accounts.log.first, PASSES);
    tasks.cancel();
    tasks.join().await;
}

/// Carries bytes between whoever connects and `to`, and looks at none of them.
async fn forward(listener: Listener, to: Arc<str>, tasks: Tasks) {
    while let Ok(mut near) = listener.accept().await {
        let to = Arc::clone(&to);
        tasks.spawn("forward", OnError::Report, async move {
            if let Ok(mut far) = net::connect(to.parse().unwrap()).await {
                tokio::io::copy_bidirectional(&mut near, &mut far)
                    .await
                    .ok();
            }
        });
    }
}
