//! What is expected comes about when it was expected, within a quarter; where nothing is known, nothing is said.

use std::time::Duration;

use heddle_api::forecast::{Forecast, ForecastEvent};
use serde_json::json;

use crate::world::{Manner, World};

fn expected(world: &World, event: ForecastEvent) -> Option<Forecast> {
    let forecasts = world.account("t").forecasts;
    forecasts.into_iter().find(|one| one.event == event)
}

/// Lets time pass as it does for whoever judges health.
async fn watched(world: &World, seconds: u64) {
    for _ in 0..seconds {
        world.pass(1).await;
        assert!(world.mesh.reading().routing);
    }
}

fn assert_near(forecast: &Forecast, truth: Duration) {
    let part = forecast.in_s / truth.as_secs_f64();
    assert!(
        (0.75..=1.25).contains(&part),
        "{forecast:?} and not {truth:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_backlog_is_done_when_that_was_expected() {
    for (rate, events) in [("2/s", 500_u32), ("10/s", 2_000)] {
        let mut world = World::with_broker();
        let annotations = json!({"metadata": {"annotations": {"heddle.dev/rate": rate}}});
        world.trigger("t", "a", annotations);
        world.route().await;
        for id in 0..events {
            assert_eq!(world.publish(&id.to_string(), &[]).await, 202);
        }
        assert_eq!(
            expected(&world, ForecastEvent::BacklogDone),
            None,
            "too early to tell"
        );
        watched(&world, 100).await;
        let forecast = expected(&world, ForecastEvent::BacklogDone).expect("it shrinks");
        let began = world.clock.monotonic();
        world.until_delivered("t", events.into()).await;
        assert_near(&forecast, world.clock.monotonic() - began);
        assert_eq!(
            expected(&world, ForecastEvent::BacklogDone),
            None,
            "nothing waits"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_expected_of_a_backlog_that_grows_or_is_held() {
    let mut world = World::with_broker();
    let paused = json!({"metadata": {"annotations": {"heddle.dev/paused": "true"}}});
    world.trigger("t", "a", paused.clone());
    world.route().await;
    for id in 0..100 {
        assert_eq!(world.publish(&id.to_string(), &[]).await, 202);
        watched(&world, 1).await;
    }
    assert_eq!(world.account("t").forecasts, []);
}

#[tokio::test(start_paused = true)]
async fn dead_letters_begin_when_that_was_expected() {
    for (retry, policy, delay) in [
        (3, "linear", "PT20S"),
        (6, "exponential", "PT1S"),
        (5, "linear", "PT1S"),
    ] {
        let mut world = World::with_broker();
        let delivery = json!({"retry": retry, "backoffPolicy": policy, "backoffDelay": delay});
        world.trigger("t", "a", json!({"spec": {"delivery": delivery}}));
        world.manner("a", Manner::Answer(503));
        world.route().await;
        assert_eq!(expected(&world, ForecastEvent::DeadLettersBegin), None);
        assert_eq!(world.publish("1", &[]).await, 202);
        world.until_retrying("t", 1).await;
        let forecast = expected(&world, ForecastEvent::DeadLettersBegin).expect("it fails");
        let began = world.clock.monotonic();
        world.until_dead_lettered("t", 1).await;
        assert_near(&forecast, world.clock.monotonic() - began);
        assert_eq!(
            expected(&world, ForecastEvent::DeadLettersBegin),
            None,
            "it has begun"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_delivered_at_the_next_attempt_is_no_dead_letter_to_come() {
    let mut world = World::with_broker();
    world.trigger("t", "a", json!({}));
    world.manner("a", Manner::FailFirst(1));
    world.route().await;
    assert_eq!(world.publish("1", &[]).await, 202);
    world.until_delivered("t", 1).await;
    assert_eq!(world.account("t").forecasts, []);
}
