//! Controllers that do not work, a namespace that goes, a process that is killed: what is said meanwhile.

use heddle_api::health::{HealthPlane, HealthStatus};
use k8s_openapi::api::core::v1::Namespace;

use crate::world::{PAIRS, SHOP_A, SHOP_B, World, tell};

/// How long it may take until nobody relies on a suspended controller any more.
const STALLED_SECONDS: u64 = 20;

#[test]
fn conditions_of_a_suspended_controller_are_unknown_within_twenty_seconds() {
    tell(|world| async move {
        world.set_up().await;
        world.suspend_brokers().await;
        let is_unknown = |world: &World| {
            let found = world.pair(SHOP_A);
            found.is_some_and(|found| {
                found.verdict.health == HealthStatus::Unknown
                    && found.verdict.planes.control.reason == "ControllerStalled"
            })
        };
        world
            .until("it is noticed", STALLED_SECONDS, is_unknown)
            .await;
        let found = world.pair(SHOP_A).unwrap().verdict;
        assert_eq!(found.plane, Some(HealthPlane::Control));
        assert_eq!(found.object.as_deref(), Some("controller/heddle-broker"));
        assert!(
            found
                .evidence
                .is_some_and(|seen| seen.contains("has not ended"))
        );
        assert_eq!(found.planes.data.health, HealthStatus::Healthy);
        world.pass(60).await;
        assert!(is_unknown(&world), "as long as it lasts");
        world.api.heal();
        let well = |world: &World| PAIRS.iter().all(|pair| world.is_well(*pair));
        world.until("it goes on", 60, well).await;
    });
}

#[test]
fn an_error_loop_degrades_with_the_text_of_the_error_for_as_long_as_it_lasts() {
    tell(|world| async move {
        world.set_up().await;
        world.fail_triggers().await;
        let is_told = |world: &World| {
            let found = world.pair(SHOP_A);
            found.is_some_and(|found| {
                let control = &found.verdict.planes.control;
                found.verdict.health == HealthStatus::Degraded
                    && control.object.as_deref() == Some("controller/heddle-trigger")
                    && control
                        .evidence
                        .as_ref()
                        .is_some_and(|seen| seen.contains("injected"))
            })
        };
        world.until("it is told", 60, is_told).await;
        // The pauses grow, and it is still told between two attempts.
        for _ in 0..180 {
            assert!(is_told(&world), "{:#?}", world.pair(SHOP_A));
            world.pass(1).await;
        }
        world.api.heal();
        let well = |world: &World| PAIRS.iter().all(|pair| world.is_well(*pair));
        world.until("it is forgotten", 120, well).await;
    });
}

#[test]
fn nothing_is_asked_of_a_namespace_that_goes() {
    tell(|world| async move {
        world.set_up().await;
        world.users.delete::<Namespace>("", "team-b").await;
        for _ in 0..60 {
            let said = world.pair(SHOP_B);
            let alarm = said.filter(|said| said.verdict.health == HealthStatus::Unhealthy);
            assert_eq!(alarm, None, "a namespace that goes is no fault");
            world.pass(1).await;
        }
        assert_eq!(world.pair(SHOP_B), None, "it is forgotten");
        assert!(world.is_well(SHOP_A));
        let heartbeats = world.mesh().reading().heartbeats;
        let left = heartbeats.iter().find(|one| one.namespace == "team-b");
        assert_eq!(left, None, "and nobody sends heartbeats there");
    });
}

#[test]
fn after_a_kill_nothing_is_known_until_it_was_measured_and_there_is_no_false_alarm() {
    tell(|world| async move {
        world.set_up().await;
        for _ in 0..3 {
            world.kill(None).await;
            let mut measured = false;
            for _ in 0..60 {
                for pair in PAIRS {
                    let Some(found) = world.pair(pair) else {
                        continue;
                    };
                    let health = found.verdict.health;
                    assert_ne!(health, HealthStatus::Unhealthy, "{found:#?}");
                    let reading = found.heartbeat.and_then(|beat| beat.age_seconds);
                    let is_well = health == HealthStatus::Healthy;
                    assert!(!is_well || reading.is_some(), "well, and not measured");
                }
                measured = PAIRS.iter().all(|pair| world.is_well(*pair));
                world.pass(1).await;
            }
            assert!(measured, "{:#?}", world.mesh_health());
            // One for each pair, and none of an earlier process.
            assert_eq!(world.mesh().reading().heartbeats.len(), PAIRS.len());
        }
    });
}
