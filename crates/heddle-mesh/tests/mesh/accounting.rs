//! What the mesh knows of its consumers, doors and log without reading it.

use std::time::Duration;

use heddle_api::access::{Access, Role};
use heddle_api::dataplane::{ConsumerReading, DoorReading};
use heddle_mesh::log::Reserve;
use serde_json::json;

use crate::dead_letters::{ada, ask};
use crate::world::{Manner, World};

fn consumer(world: &World, name: &str) -> ConsumerReading {
    let key = format!("trigger/ns/{name}");
    let consumers = world.mesh.reading().consumers;
    let mut own = consumers.into_iter().filter(|one| one.key == key);
    own.next().expect("the trigger has a reading")
}

#[tokio::test(start_paused = true)]
async fn a_consumer_says_how_its_attempts_ended() {
    let mut world = World::with_broker();
    let once = json!({"spec": {"delivery": {"retry": 0}}});
    world.trigger("well", "a", json!({}));
    world.trigger("ill", "b", once);
    world.manner("b", Manner::Answer(400));
    world.route().await;
    let unused = consumer(&world, "well");
    assert_eq!((unused.succeeded, unused.failed), (None, None));
    assert_eq!(unused.entries, ["broker/ns/default"]);
    world.publish("1", &[]).await;
    world.until_delivered("well", 1).await;
    world.until_dead_lettered("ill", 1).await;
    world.pass(30).await;
    let (well, ill) = (consumer(&world, "well"), consumer(&world, "ill"));
    assert_eq!((well.delivered, well.unaccounted), (1, 0));
    let second = Duration::from_secs(1);
    let ago = well.succeeded.unwrap();
    assert!(ago.abs_diff(30 * second) < second, "{ago:?}");
    assert_eq!((well.failed, ill.succeeded), (None, None));
    assert_eq!((ill.dead_letters, ill.pending), (1, 0));
    let (ago, why) = ill.failed.unwrap();
    assert!(ago.abs_diff(30 * second) < second, "{ago:?}");
    assert_eq!(why, "the subscriber answered 400");
    // A success makes up for it.
    world.manner("b", Manner::Accept);
    world.publish("2", &[]).await;
    world.until_delivered("ill", 1).await;
    assert_eq!(consumer(&world, "ill").failed, None);
}

#[tokio::test(start_paused = true)]
async fn the_oldest_pending_event_is_as_old_as_it_is() {
    let mut world = World::with_broker();
    world.trigger("t", "a", json!({}));
    world.manner("a", Manner::Hang);
    world.route().await;
    assert_eq!(consumer(&world, "t").oldest_pending, None);
    let second = Duration::from_secs(1);
    let near = |age: Option<Duration>, seconds: u32| {
        let age = age.unwrap();
        assert!(
            age.abs_diff(seconds * second) <= second,
            "{age:?}, {seconds}"
        );
    };
    world.publish("1", &[]).await;
    for seconds in 1..20 {
        world.pass(1).await;
        near(consumer(&world, "t").oldest_pending, seconds);
    }
    // By another process, to which the log has to tell.
    world.mesh.settled().await;
    world.crash().await;
    world.route().await;
    world.pass(10).await;
    let age = consumer(&world, "t").oldest_pending.unwrap();
    assert!(age >= 29 * second && age < 32 * second, "{age:?}");
}

#[tokio::test(start_paused = true)]
async fn a_reading_looks_up_no_more_than_a_few_events() {
    let mut world = World::on_disk_with_broker();
    for number in 0..100 {
        world.trigger(&format!("t{number:03}"), "a", json!({}));
    }
    world.manner("a", Manner::Hang);
    world.route().await;
    world.publish("1", &[]).await;
    world.pass(1).await;
    world.crash().await;
    world.route().await;
    world.pass(1).await;
    let told = |world: &World| {
        let consumers = world.mesh.reading().consumers;
        let told = consumers.iter().filter(|one| one.oldest_pending.is_some());
        told.count()
    };
    assert_eq!(told(&world), 32);
    assert_eq!(told(&world), 64);
    let more = [told(&world), told(&world)];
    assert_eq!(more, [96, 100]);
    assert_eq!(told(&world), 100);
}

#[tokio::test(start_paused = true)]
async fn what_nobody_wants_is_counted_for_its_application() {
    let mut world = World::with_broker();
    world.application("shop");
    world.application("crm");
    world.linked("shop", "team");
    world.wants_all("team", "all", "a");
    world.route().await;
    for id in ["1", "2", "3"] {
        world.publish_at("/shop/events", id, &[]).await;
        world.publish_at("/crm/events", id, &[]).await;
    }
    world.publish_at("/crm/events", "", &[]).await;
    world.publish("elsewhere", &[]).await;
    world.pass(1).await;
    let expected = |application: &str, refused, unmatched| DoorReading {
        application: application.to_owned(),
        accepted: 3,
        refused,
        failed: 0,
        unmatched,
    };
    let doors = world.mesh.reading().doors;
    assert_eq!(doors, [expected("crm", 1, 3), expected("shop", 0, 0)]);
    let text = world.mesh.metrics_text();
    assert!(
        text.contains("heddle_unmatched_total{app=\"crm\"} 3"),
        "{text}"
    );
    assert!(
        text.contains("heddle_unmatched_total{app=\"\"} 1"),
        "{text}"
    );
}

/// The value of a sample.
fn sample(world: &World, series: &str) -> f64 {
    let text = world.mesh.metrics_text();
    let of = |line: &str| line.strip_prefix(series)?.trim().parse().ok();
    text.lines()
        .find_map(of)
        .unwrap_or_else(|| panic!("no {series} in {text}"))
}

#[tokio::test(start_paused = true)]
async fn filters_that_turn_an_event_down_are_counted_for_its_application() {
    let mut world = World::with_broker();
    world.application("shop");
    world.linked("shop", "ns");
    let wants = |type_: &str| json!({"spec": {"filter": {"attributes": {"type": type_}}}});
    world.trigger("all", "a", json!({}));
    world.trigger("one", "b", wants("wanted"));
    world.trigger("other", "c", wants("unwanted"));
    world.route().await;
    world
        .publish_at("/shop/events", "1", &[("type", "wanted")])
        .await;
    world
        .publish_at("/shop/events", "2", &[("type", "else")])
        .await;
    world.until_delivered("all", 2).await;
    let shop = "heddle_filtered_total{app=\"shop\"}";
    // One filter did not want the first event, two did not want the second, and somebody wanted both.
    assert!((sample(&world, shop) - 3.0).abs() < f64::EPSILON);
    assert!(sample(&world, "heddle_unmatched_total{app=\"\"}").abs() < f64::EPSILON);
}

#[tokio::test(start_paused = true)]
async fn each_hop_tells_how_long_it_took_and_a_retry_delays_the_delivery() {
    let mut world = World::with_broker();
    let once_more = json!({"spec": {"delivery": {"retry": 1, "backoffDelay": "PT20S"}}});
    world.trigger("well", "a", json!({}));
    world.trigger("late", "b", once_more);
    world.manner("b", Manner::FailFirst(1));
    world.route().await;
    world.publish("1", &[]).await;
    world.until_delivered("well", 1).await;
    let counted = |hop: &str| {
        sample(
            &world,
            &format!("heddle_hop_seconds_count{{hop=\"{hop}\"}}"),
        )
    };
    for (hop, times) in [
        ("source", 1.0),
        ("channel", 1.0),
        ("broker", 1.0),
        ("trigger", 2.0),
    ] {
        assert!((counted(hop) - times).abs() < f64::EPSILON, "{hop}");
    }
    let prompt = sample(&world, "heddle_delivery_delay_seconds_count");
    assert!((prompt - 1.0).abs() < f64::EPSILON, "one is still retried");
    world.until_delivered("late", 1).await;
    assert!((counted("delivery") - 3.0).abs() < f64::EPSILON);
    assert!(
        (counted("trigger") - 2.0).abs() < f64::EPSILON,
        "first attempts only"
    );
    assert!((sample(&world, "heddle_delivery_delay_seconds_count") - 2.0).abs() < f64::EPSILON);
    let in_time = sample(&world, "heddle_delivery_delay_seconds_bucket{le=\"5\"}");
    assert!(
        (in_time - 1.0).abs() < f64::EPSILON,
        "the other waited for its retry"
    );
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_fills_says_so_before_it_is_full() {
    let reserve = Reserve::Bytes(64 << 10);
    let mut world = World::on_small_disk(4 << 20, reserve);
    world.broker("ns", "default");
    world.trigger("t", "a", json!({}));
    world.manner("a", Manner::Answer(500));
    world.route().await;
    let empty = world.mesh.reading().log;
    assert!(empty.used_ratio < Some(0.1), "{empty:?}");
    assert_eq!((&empty.disk_full, &empty.largest), (&None, &None));
    for id in 0..240 {
        assert_eq!(world.publish_large(&id.to_string(), 4000).await, 202);
        world.pass(1).await;
        assert!(world.mesh.reading().routing);
        if id % 10 == 0 {
            world.log.survey();
        }
    }
    let log = world.mesh.reading().log;
    let used = log.used_ratio.unwrap();
    assert!(used > 0.2 && used < 0.9, "{log:?}");
    let forecast = log.disk_full.expect("it fills");
    let told = world.mesh.accounts(false).log.disk_full;
    assert_eq!(told.map(|told| told.event), Some(forecast.event));
    let full_in = forecast.after();
    assert!(
        full_in > Duration::from_secs(60) && full_in < Duration::from_secs(3600),
        "{full_in:?}"
    );
    assert_eq!(log.largest.as_deref(), Some("trigger/ns/t"));
    assert_eq!(
        (log.broken, log.refusing, log.journal_stalled),
        (None, None, None)
    );
}

/// Whoever asks how things stand keeps nobody waiting: little is read at a time, for those who may know, while they wait.
#[tokio::test(start_paused = true)]
async fn accounts_are_counted_a_little_at_a_time_and_for_those_who_wait() {
    let mut world = World::on_disk_with_broker();
    let paused = json!({"metadata": {"annotations": {"heddle.dev/paused": "true"}}});
    for name in ["p0", "p1", "p2"] {
        world.trigger(name, "nobody", paused.clone());
    }
    world.trigger("healthy", "healthy", json!({}));
    world.route().await;
    for batch in 0..5 {
        let event = |n: usize| {
            let id = format!("{batch}-{n}");
            json!({"specversion": "1.0", "id": id, "source": "/test", "type": "order.created"})
        };
        let events = json!((0..1000).map(event).collect::<Vec<_>>());
        assert_eq!(world.post_batch(&events).await.0, 202);
    }
    world.until_delivered("healthy", 5000).await;
    // A new process has nothing of it in memory.
    world.restart().await;
    world.route().await;
    let all = |world: &World| world.account("p2").matched == 5000;
    world.until("all matched", all).await;
    let disk = world.disk.clone().unwrap();
    let own = || Some(ada(Role::Viewer, &["ns"], false));
    let asked = async |access: Option<Access>, query: &str| {
        let before = disk.looks();
        let (status, body) = ask(&world, access, &format!("/accounts?{query}"), None).await;
        let pending: u64 = (body["consumers"].as_array().into_iter().flatten())
            .map(|account| account["pending"].as_u64().unwrap())
            .sum();
        (status, pending, disk.looks() - before)
    };
    let (status, pending, whole) = asked(own(), "").await;
    assert_eq!((status, pending), (200, 15_000));
    assert!(whole > 0, "the backlog is on disk");
    assert_eq!(asked(own(), "depth=tallied").await, (200, 15_000, 0));
    let stranger = Some(ada(Role::Administrator, &["other"], true));
    assert_eq!(asked(stranger, "verify=true").await, (200, 0, 0));
    for (query, status) in [
        ("verify=true", 403),
        ("depth=verified", 403),
        ("depth=x", 400),
    ] {
        assert_eq!(asked(own(), query).await, (status, 0, 0), "{query}");
    }
    let administrator = Some(ada(Role::Administrator, &["ns"], false));
    assert_eq!(asked(administrator, "verify=true").await.1, 15_000);
    // Whoever leaves after a moment is read for no further.
    let before = disk.looks();
    {
        let mut asking = Box::pin(ask(&world, own(), "/accounts", None));
        assert!(futures::poll!(&mut asking).is_pending());
        assert!(futures::poll!(&mut asking).is_pending());
    }
    world.pass(1).await;
    let read = disk.looks() - before;
    assert!(0 < read && read < whole, "{read} of {whole}");
}
