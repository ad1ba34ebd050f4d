//! How long events took: a slow subscriber is seen in its own row, in its own time, and in no other.

use std::time::Duration;

use heddle_api::access::{Access, Role};
use heddle_api::delays::{DelayMap, DelayRow};
use serde_json::{Value, json};

use crate::dead_letters::{ada, ask};
use crate::world::{Manner, World};

const SLOWER: Duration = Duration::from_millis(200);

async fn told(world: &World, access: Access, query: &str) -> (u16, Value) {
    ask(world, Some(access), &format!("/delays?{query}"), None).await
}

async fn map(world: &World, query: &str) -> DelayMap {
    let (status, found) = told(world, Access::administrator("ada"), query).await;
    assert_eq!(status, 200, "{found}");
    serde_json::from_value(found).unwrap()
}

fn row<'a>(map: &'a DelayMap, name: &str) -> &'a DelayRow {
    let mut rows = map.rows.iter();
    rows.find(|row| row.name == name)
        .unwrap_or_else(|| panic!("no row {name}: {:?}", map.rows))
}

fn p50(map: &DelayMap, name: &str) -> f64 {
    row(map, name).delays.p50_ms.unwrap()
}

/// Two triggers that want all, and one that wants some.
fn three_triggers() -> World {
    let mut world = World::with_broker();
    world.trigger("fast", "a", json!({}));
    world.trigger("slow", "b", json!({}));
    let paid = json!({"spec": {"filters": [{"exact": {"type": "order.paid"}}]}});
    world.trigger("paid", "c", paid);
    world
}

async fn publish(world: &World, from: u32, count: u32, type_: &str) {
    for number in from..from + count {
        let id = number.to_string();
        assert_eq!(world.publish(&id, &[("type", type_)]).await, 202);
        // One after another: who waits for its turn is no slower subscriber.
        world.clock.sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_slower_subscriber_is_seen_in_its_row_and_its_time_and_in_no_other() {
    let world = three_triggers();
    world.route().await;
    publish(&world, 0, 30, "order.created").await;
    publish(&world, 30, 30, "order.paid").await;
    let before = map(&world, "since=1h").await;
    world.clock.sleep(Duration::from_secs(1200)).await;
    world.manner("b", Manner::AcceptAfter(SLOWER));
    publish(&world, 100, 30, "order.created").await;
    publish(&world, 130, 30, "order.paid").await;
    world.until_delivered("slow", 120).await;

    let after = map(&world, "since=10m").await;
    assert_eq!(after.examined, 60);
    for name in ["trigger/ns/fast", "trigger/ns/paid"] {
        let more = p50(&after, name) - p50(&before, name);
        assert!(more.abs() < 50.0, "{name}: {more}");
    }
    let more = p50(&after, "trigger/ns/slow") - p50(&before, "trigger/ns/slow");
    assert!((150.0..=250.0).contains(&more), "{more}");
    assert_eq!(
        after.rows[0].name, "trigger/ns/slow",
        "the slowest is first"
    );

    // In the columns of that time, and in none of those before.
    let whole = map(&world, "since=1h&columns=30").await;
    let slow = row(&whole, "trigger/ns/slow");
    let turned = whole.until - jiff::SignedDuration::from_mins(10);
    let mut seen = (0, 0);
    for cell in &slow.cells {
        let since = whole.columns[cell.column as usize].since;
        let delay = cell.delays.p50_ms.unwrap();
        match since >= turned {
            true => {
                seen.1 += cell.delays.delivered;
                assert!(delay >= 200.0, "{since}: {delay}");
            }
            false => {
                seen.0 += cell.delays.delivered;
                assert!(delay < 50.0, "{since}: {delay}");
            }
        }
    }
    assert_eq!(seen, (60, 60));
    assert_eq!(slow.delays.delivered, 120);

    // By type both are as slow as the slower of their two or three consumers.
    let types = map(&world, "since=10m&by=type").await;
    assert_eq!(row(&types, "order.created").delays.delivered, 60);
    assert_eq!(row(&types, "order.paid").delays.delivered, 90);
    let entries = map(&world, "since=10m&by=application").await;
    assert_eq!(row(&entries, "broker/ns/default").delays.delivered, 150);
}

#[tokio::test(start_paused = true)]
async fn a_query_narrows_it_as_it_narrows_a_search() {
    let world = three_triggers();
    world.route().await;
    publish(&world, 0, 5, "order.created").await;
    publish(&world, 5, 5, "order.paid").await;
    world.until_delivered("slow", 10).await;
    for (query, examined, delivered) in [
        (
            "q=type:order.paid",
            5,
            vec![("fast", 5), ("paid", 5), ("slow", 5)],
        ),
        (
            "q=cesql:%22type%20LIKE%20%27%25.created%27%22",
            5,
            vec![("fast", 5), ("slow", 5)],
        ),
        ("q=consumer:trigger/ns/slow", 10, vec![("slow", 10)]),
        ("q=consumer:trigger/ns/slow%20state:dead", 10, vec![]),
        ("q=id:3", 1, vec![("fast", 1), ("slow", 1)]),
    ] {
        let found = map(&world, query).await;
        assert_eq!(found.examined, examined, "{query}");
        let mut rows: Vec<(&str, u64)> = (found.rows.iter())
            .map(|row| {
                (
                    row.name.trim_start_matches("trigger/ns/"),
                    row.delays.delivered,
                )
            })
            .collect();
        rows.sort_unstable();
        assert_eq!(rows, delivered, "{query}");
    }
    for (query, status) in [
        ("by=namespace", 400),
        ("since=1m&until=2m", 400),
        ("columns=0", 400),
        ("columns=1000", 400),
        ("events=0", 400),
        ("events=many", 400),
        ("q=colour:red", 400),
    ] {
        let (found, body) = told(&world, Access::administrator("ada"), query).await;
        assert_eq!(found, status, "{query}: {body}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_waits_counts_with_the_time_that_it_has_waited_and_what_died_with_none() {
    let mut world = World::with_broker();
    world.trigger(
        "stuck",
        "a",
        json!({"metadata": {"annotations": {"heddle.dev/paused": "true"}}}),
    );
    world.trigger("dying", "b", json!({"spec": {"delivery": {"retry": 0}}}));
    world.manner("b", Manner::Answer(500));
    world.route().await;
    publish(&world, 0, 4, "order.created").await;
    world.until_dead_lettered("dying", 4).await;
    world.clock.sleep(Duration::from_secs(600)).await;
    let found = map(&world, "since=1h").await;
    let stuck = &row(&found, "trigger/ns/stuck").delays;
    assert_eq!((stuck.delivered, stuck.waiting), (0, 4));
    assert!(stuck.p50_ms.unwrap() >= 600_000.0, "{stuck:?}");
    let dying = &row(&found, "trigger/ns/dying").delays;
    assert_eq!(
        (dying.undelivered, dying.delivered, dying.waiting),
        (4, 0, 0)
    );
    assert_eq!(dying.p50_ms, None);
    // Redriven, it took all that time.
    world.manner("b", Manner::Accept);
    let all = json!({"consumer": "trigger/ns/dying"});
    let path = "/dead-letters/redrive";
    let (status, told) = ask(&world, Some(Access::administrator("ada")), path, Some(all)).await;
    assert!((200..300).contains(&status), "{told}");
    world.until_delivered("dying", 4).await;
    let found = map(&world, "since=1h").await;
    let dying = &row(&found, "trigger/ns/dying").delays;
    assert_eq!((dying.undelivered, dying.delivered), (0, 4));
    assert!(dying.p50_ms.unwrap() >= 600_000.0, "{dying:?}");
}

#[tokio::test(start_paused = true)]
async fn a_busy_time_is_seen_all_along_with_its_newest_events() {
    let mut world = World::with_broker();
    world.trigger("t", "a", json!({}));
    world.route().await;
    for minute in 0..10 {
        for number in 0..100 {
            let id = format!("{minute}-{number}");
            assert_eq!(world.publish(&id, &[]).await, 202);
        }
        world.clock.sleep(Duration::from_secs(60)).await;
    }
    world.until_delivered("t", 1000).await;
    let found = map(&world, "since=10m&columns=10&events=200").await;
    assert!(
        found
            .columns
            .iter()
            .all(|column| column.partial && column.examined >= 20),
        "{found:?}"
    );
    assert!(found.examined < 500, "{}", found.examined);
    assert_eq!(row(&found, "trigger/ns/t").cells.len(), 10);
    let found = map(&world, "since=10m&columns=10&events=2000").await;
    assert_eq!(found.examined, 1000);
    assert!(found.columns.iter().all(|column| !column.partial));
}

#[tokio::test(start_paused = true)]
async fn heartbeats_are_apart_and_only_for_those_who_see_everything() {
    let mut world = World::with_heartbeats().await;
    world.pair("shop", "team");
    world.route().await;
    world.until_hits("shop", "team", 5).await;
    let found = map(&world, "since=1h").await;
    assert_eq!((found.examined, &found.rows[..]), (0, &[][..]));
    let names: Vec<&str> = found.heartbeats.iter().map(|row| &*row.name).collect();
    assert!(names.contains(&"heartbeat/team/shop"), "{names:?}");
    let shop = found
        .heartbeats
        .iter()
        .find(|row| row.name == "heartbeat/team/shop");
    assert!(shop.unwrap().delays.p50_ms.unwrap() < 100.0);
    let own = ada(Role::Viewer, &["team"], false);
    let (_, theirs) = told(&world, own, "since=1h").await;
    assert_eq!(theirs.get("heartbeats"), None, "{theirs}");
}

#[tokio::test(start_paused = true)]
async fn nobody_learns_of_consumers_and_events_that_they_may_not_see() {
    let mut world = three_triggers();
    world.broker("secret", "default");
    world.route().await;
    publish(&world, 0, 3, "order.created").await;
    assert_eq!(
        world
            .publish_at("/broker/secret/default", "hidden", &[])
            .await,
        202
    );
    world.until_delivered("slow", 3).await;
    let theirs = ada(Role::Viewer, &["secret"], false);
    let (status, found) = told(&world, theirs, "since=1h").await;
    assert_eq!((status, &found["examined"]), (200, &json!(1)), "{found}");
    assert_eq!(found["rows"], json!([]));
    let own = ada(Role::Viewer, &["ns"], false);
    let (_, found) = told(&world, own.clone(), "since=1h").await;
    assert_eq!(found["examined"], json!(3), "{found}");
    let (status, _) = told(&world, own, "q=data.order:1").await;
    assert_eq!(status, 403, "data is for those who may read it");
}
