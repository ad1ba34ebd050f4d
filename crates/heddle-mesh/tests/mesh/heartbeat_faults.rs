//! A hop is broken on purpose: the heartbeat says which, and a user's event fares no better.

use std::time::Duration;

use heddle_mesh::{Fault, FaultPair};

use crate::pairs::INTERVAL;
use crate::world::World;

fn pair(application: &str, namespace: &str) -> FaultPair {
    FaultPair {
        application: application.to_owned(),
        namespace: namespace.to_owned(),
    }
}

/// Every fault, with the hop and the object that are to be named.
fn faults() -> Vec<(Fault, &'static str, &'static str)> {
    let shop = || "shop".to_owned();
    let own = || pair("shop", "team");
    vec![
        (
            Fault::RefuseAtSource {
                application: shop(),
            },
            "source",
            "httpsource/kyma-integration/shop",
        ),
        (
            Fault::FailAppend {
                application: shop(),
            },
            "channel",
            "channel/kyma-integration/shop",
        ),
        (Fault::StallScanner, "broker", "broker/team/default"),
        (
            Fault::CutLink(own()),
            "subscription",
            "subscription/kyma-integration/link-shop-team",
        ),
        (Fault::DropAtBroker(own()), "broker", "broker/team/default"),
        (Fault::HoldDispatch(own()), "trigger", "heartbeat/team/shop"),
        (
            Fault::FailDelivery(own()),
            "delivery",
            "heartbeat/team/shop",
        ),
        (
            Fault::DelayDelivery(own(), 4 * INTERVAL),
            "delivery",
            "heartbeat/team/shop",
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_broken_hop_hurts_users_and_heartbeats_alike_and_is_named() {
    for (fault, hop, object) in faults() {
        let mut world = World::with_heartbeats().await;
        world.pair("shop", "team");
        world.wants_all("team", "all", "a");
        world.route().await;
        world.until_hits("shop", "team", 2).await;
        assert_eq!(world.publish_at("/shop/events", "before", &[]).await, 202);
        world
            .until("delivered", |world| world.received("a") == ["before"])
            .await;
        world.mesh.inject(fault.clone());
        let accepted = world.publish_at("/shop/events", "during", &[]).await == 202;
        world.pass(10).await;
        assert_eq!(accepted, !["source", "channel"].contains(&hop), "{fault:?}");
        assert_eq!(world.received("a"), ["before"], "{fault:?}");
        world.until_misses("shop", "team", 3).await;
        let reading = world.heartbeat("shop", "team");
        let expected = Some((hop.to_owned(), object.to_owned()));
        assert_eq!(
            world.stuck("shop", "team"),
            expected,
            "{fault:?}: {reading:?}"
        );
        // It heals by itself.
        world.mesh.heal();
        world.until_hits("shop", "team", 2).await;
        assert_eq!(world.heartbeat("shop", "team").misses, 0, "{fault:?}");
        assert_eq!(world.publish_at("/shop/events", "after", &[]).await, 202);
        world
            .until("delivered again", |world| {
                world.received("a").contains(&"after".to_owned())
            })
            .await;
        let dead = world.mesh.accounts(true).consumers[0].dead_letters;
        assert_eq!(dead, 0, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_hop_adds_to_the_delay_is_seen() {
    let mut world = World::with_heartbeats().await;
    world.pair("shop", "team");
    world.route().await;
    world.until_hits("shop", "team", 2).await;
    let before = world.heartbeat("shop", "team").end_to_end.unwrap();
    let added = Duration::from_millis(200);
    world
        .mesh
        .inject(Fault::DelayDelivery(pair("shop", "team"), added));
    world.pass(20).await;
    let after = world.heartbeat("shop", "team").end_to_end.unwrap();
    assert!(
        (after - before).abs_diff(added) < Duration::from_millis(50),
        "{before:?} {after:?}"
    );
    assert_eq!(world.heartbeat("shop", "team").misses, 0);
}

#[tokio::test(start_paused = true)]
async fn one_broken_pair_of_five_hundred_is_the_only_one_that_turns() {
    let mut world = World::with_heartbeats().await;
    for application in 0..50 {
        for namespace in 0..10 {
            world.pair(&format!("app{application}"), &format!("team{namespace}"));
        }
    }
    world.route().await;
    world.pass(30).await;
    let all = world.mesh.reading().heartbeats;
    assert_eq!(all.len(), 500);
    assert!(all.iter().all(|one| one.hits >= 2 && one.misses == 0));
    world
        .mesh
        .inject(Fault::DropAtBroker(pair("app7", "team3")));
    world.pass(35).await;
    let broken = |application: &str, namespace: &str| application == "app7" && namespace == "team3";
    for one in world.mesh.reading().heartbeats {
        if broken(&one.application, &one.namespace) {
            assert!(one.misses >= 3 && one.age > Some(3 * INTERVAL), "{one:?}");
            assert_eq!(one.stuck.unwrap().object, "broker/team3/default");
        } else {
            assert!(one.misses == 0 && one.age <= Some(2 * INTERVAL), "{one:?}");
        }
    }
    world.mesh.heal();
    world.pass(25).await;
    let healed = world.heartbeat("app7", "team3");
    assert!(healed.hits >= 2 && healed.misses == 0, "{healed:?}");
}
