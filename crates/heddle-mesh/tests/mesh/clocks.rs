//! Wall clocks that are set, while events wait and while nobody runs.

use heddle_rt::Clock;
use serde_json::json;

use crate::world::{Manner, World};

/// A trigger whose subscriber fails, and an event that waits for its next attempt.
async fn failing(mut world: World, answer: Manner) -> World {
    world.broker("ns", "default");
    let patient = json!({"spec": {"delivery": {"retry": 5, "backoffDelay": "PT5S", "backoffPolicy": "linear"}}});
    world.trigger("t", "a", patient);
    world.manner("a", answer);
    world.route().await;
    assert_eq!(world.publish("1", &[]).await, 202);
    world.until_retrying("t", 1).await;
    world.mesh.settled().await;
    world
}

#[tokio::test(start_paused = true)]
async fn a_retry_waits_no_longer_than_was_asked_for_when_the_clock_was_set_back() {
    let answers = [
        (Manner::Answer(500), 6),
        (Manner::AnswerWith(503, "retry-after", "120"), 121),
    ];
    for (answer, seconds) in answers {
        for tidy in [false, true] {
            for world in World::each() {
                let mut world = failing(world, answer.clone()).await;
                if tidy {
                    // From the snapshot instead of from the lines.
                    world.mesh.tidy().await;
                }
                world.stop().await;
                world.manner("a", Manner::Accept);
                world.clock = Clock::simulated("2025-06-01T00:00:00Z".parse().unwrap());
                world.begin();
                world.route().await;
                world.pass(seconds).await;
                let account = world.account("t");
                assert_eq!(
                    (account.delivered, account.pending),
                    (1, 0),
                    "{answer:?}, {tidy}"
                );
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_keeps_to_what_was_asked_for_when_the_clock_is_right() {
    for world in World::each() {
        let mut world = failing(world, Manner::AnswerWith(503, "retry-after", "120")).await;
        world.stop().await;
        world.manner("a", Manner::Accept);
        world.begin();
        world.route().await;
        world.pass(60).await;
        assert_eq!(world.account("t").delivered, 0, "not before its time");
        world.pass(61).await;
        assert_eq!(world.account("t").delivered, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_was_set_forward_makes_a_retry_due() {
    for world in World::each() {
        let mut world = failing(world, Manner::AnswerWith(503, "retry-after", "120")).await;
        world.stop().await;
        world.manner("a", Manner::Accept);
        world.clock = Clock::simulated("2027-06-01T00:00:00Z".parse().unwrap());
        world.begin();
        world.route().await;
        world.pass(1).await;
        assert_eq!(world.account("t").delivered, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn the_place_of_a_deleted_trigger_is_given_up_a_day_later_by_any_clock() {
    let mut world = World::with_broker();
    let paused = json!({"metadata": {"annotations": {"heddle.dev/paused": "true"}}});
    world.trigger("t", "a", paused);
    world.route().await;
    assert_eq!(world.publish("1", &[]).await, 202);
    world.mesh.settled().await;
    world.remove_trigger("t");
    world.route().await;
    world.mesh.settled().await;
    world.stop().await;
    world.clock = Clock::simulated("2025-06-01T00:00:00Z".parse().unwrap());
    world.begin();
    world.route().await;
    world.pass(25 * 3600).await;
    let left = world.mesh.accounts(false).consumers;
    assert!(left.is_empty(), "{left:#?}");
}
