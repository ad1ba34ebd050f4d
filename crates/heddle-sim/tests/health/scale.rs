//! Fifty applications in ten namespaces: one broken hop of one pair turns that pair and nothing else, and ten thousand
//! heartbeats are nobody's events.

use std::collections::BTreeSet;

use heddle_api::Trigger;
use heddle_api::health::{HealthPlane, HealthStatus};
use heddle_api::ledger::DeadLetterSelection;
use heddle_mesh::{Fault, FaultPair};
use k8s_openapi::api::core::v1::Namespace;
use serde_json::json;

use crate::world::{World, tell};

const APPLICATIONS: usize = 50;
const NAMESPACES: usize = 10;
const HEARTBEATS: u64 = 10_000;
/// Three heartbeats at their interval, and the next look.
const DETECTED_SECONDS: u64 = 35;

/// What users see of the mesh: numbers without those of the log itself, accounts and dead letters.
fn seen_by_users(world: &World) -> (Vec<String>, String, usize) {
    let mesh = world.mesh();
    let text = mesh.metrics_text();
    let of_users = |line: &&str| !line.starts_with('#') && !line.starts_with("heddle_log_");
    let numbers = text.lines().filter(of_users).map(str::to_owned).collect();
    let accounts = format!("{:?}", mesh.accounts(true).consumers);
    let dead = mesh.dead_letters(&DeadLetterSelection::default(), 0, 10);
    (numbers, accounts, dead.items.len())
}

/// Pairs that are not well.
fn unwell(world: &World) -> BTreeSet<(String, String)> {
    let report = world.board().report(&world.clock);
    let pairs = report.pairs.iter();
    pairs
        .filter(|(_, found)| found.verdict.health != HealthStatus::Healthy)
        .map(|(pair, _)| pair.clone())
        .collect()
}

async fn declare(world: &World) {
    for namespace in 0..NAMESPACES {
        let name = format!("n{namespace}");
        let users = &world.users;
        users.apply_fields::<Namespace>("", &name, json!({})).await;
    }
    for application in 0..APPLICATIONS {
        let application = format!("app{application}");
        let service = format!("{application}-events");
        world.users.application(&application, &[&service]).await;
        for namespace in 0..NAMESPACES {
            let namespace = format!("n{namespace}");
            world.users.mapping(&application, &namespace).await;
            world
                .users
                .flow(&namespace, &application, &application, &service)
                .await;
        }
    }
}

#[test]
fn one_broken_hop_of_five_hundred_pairs_turns_that_pair_and_nothing_else() {
    tell(|world| async move {
        declare(&world).await;
        let everything =
            json!({"broker": "default", "subscriber": {"uri": "http://everything.example/"}});
        let users = &world.users;
        users.apply::<Trigger>("n3", "everything", everything).await;
        world
            .until("five hundred pairs are well", 600, |world| {
                let report = world.board().report(&world.clock);
                report.pairs.len() == APPLICATIONS * NAMESPACES && unwell(world).is_empty()
            })
            .await;
        let (before, beats) = (seen_by_users(&world), world.network.heartbeats());
        let broken = ("app7".to_owned(), "n3".to_owned());
        world.mesh().inject(Fault::DropAtBroker(FaultPair {
            application: broken.0.clone(),
            namespace: broken.1.clone(),
        }));
        let only = BTreeSet::from([broken.clone()]);
        let mut turned = None;
        for second in 0..2 * DETECTED_SECONDS {
            let unwell = unwell(&world);
            assert!(unwell.is_subset(&only), "at {second} s: {unwell:?}");
            if !unwell.is_empty() {
                turned.get_or_insert(second);
            }
            world.pass(1).await;
        }
        assert!(
            turned.is_some_and(|second| second <= DETECTED_SECONDS),
            "{turned:?}"
        );
        let report = world.board().report(&world.clock);
        let verdict = &report.pairs[&broken].verdict;
        assert_eq!(verdict.health, HealthStatus::Unhealthy);
        assert_eq!(verdict.plane, Some(HealthPlane::Data));
        assert_eq!(verdict.hop.as_deref(), Some("broker"));
        assert_eq!(verdict.object.as_deref(), Some("broker/n3/default"));
        world.mesh().heal();
        let healed = |world: &World| unwell(world).is_empty();
        world
            .until("it is mended", 2 * DETECTED_SECONDS, healed)
            .await;
        let enough = |world: &World| world.network.heartbeats() - beats >= HEARTBEATS;
        world
            .until("ten thousand heartbeats arrive", 600, enough)
            .await;
        assert_eq!(
            world.network.received("everything.example"),
            [] as [&str; 0]
        );
        assert_eq!(seen_by_users(&world), before);
        // It does receive what is published.
        assert_eq!(world.publish("app7", "one", "order.created").await, 202);
        let arrives = |world: &World| world.network.received("everything.example") == ["one"];
        world.until("an event arrives", 10, arrives).await;
    });
}
