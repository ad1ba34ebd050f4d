//! What is told of alerts, and to whom.

use heddle_api::access::{Role, Scope};

use super::*;

const START: &str = "2026-01-01T00:00:00Z";

fn watched(clock: &Clock) -> AlertWatch {
    let text = "heddle_api_store_serving 1\nheddle_log_serving 0\n\
        heddle_oldest_pending_seconds{kind=\"trigger\",ns=\"team-a\",trigger=\"orders\"} 400\n";
    let mut watch = AlertWatch::new().unwrap();
    watch.look(clock.monotonic(), text);
    watch.look(clock.monotonic() + Duration::from_secs(60), text);
    watch
}

#[tokio::test(start_paused = true)]
async fn what_fires_is_told_before_what_only_holds() {
    let clock = Clock::simulated(START.parse().unwrap());
    let watch = watched(&clock);
    clock.sleep(Duration::from_secs(60)).await;
    let list = told(&watch, &clock);
    let told: Vec<(&str, &str)> = (list.items.iter())
        .map(|alert| (&*alert.name, alert.state.name()))
        .collect();
    assert_eq!(
        told,
        [
            ("HeddleLogRefuses", "firing"),
            ("HeddleBacklogAge", "pending")
        ]
    );
    assert_eq!(list.items[0].since, START.parse().unwrap());
    assert_eq!(list.looked_at, Some(clock.now()));
    assert_eq!(list.items[1].page, "objects/trigger/team-a/orders");
}

#[tokio::test(start_paused = true)]
async fn what_is_about_a_namespace_is_for_those_who_see_it_and_the_rest_for_those_who_see_all() {
    let clock = Clock::simulated(START.parse().unwrap());
    let list = told(&watched(&clock), &clock);
    let names = |scope: Scope| {
        let access = Access {
            user: "ada".to_owned(),
            role: Role::Viewer,
            scope,
            payloads: false,
        };
        let within = list.within(&access);
        within
            .items
            .into_iter()
            .map(|alert| alert.name)
            .collect::<Vec<_>>()
    };
    let some = |name: &str| Scope::Namespaces([name.to_owned()].into());
    assert_eq!(names(some("team-a")), ["HeddleBacklogAge"]);
    assert!(names(some("team-b")).is_empty());
    assert_eq!(names(Scope::All).len(), 2);
}
