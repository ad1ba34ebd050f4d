//! Heartbeats cross the real path, and nobody but the mesh notices.

use std::sync::Arc;
use std::time::Duration;

use heddle_api::dataplane::Fate;
use heddle_api::ledger::{DeadLetterSelection, ExplainRequest};
use heddle_mesh::heartbeat::TYPE;
use heddle_mesh::log::AppendRefused;
use heddle_mesh::who::Who;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::pairs::INTERVAL;
use crate::world::{Manner, SINK_HOST, World};

const TOO_OLD: Duration = INTERVAL.saturating_mul(3);

fn one_pair(mut world: World) -> World {
    world.pair("shop", "team");
    world
}

/// The lines that are about something, without those that only describe the log.
fn numbers(world: &World) -> Vec<String> {
    let text = world.mesh.metrics_text();
    let of_the_log = |line: &&str| !line.starts_with('#') && !line.starts_with("heddle_log_");
    text.lines().filter(of_the_log).map(str::to_owned).collect()
}

#[tokio::test(start_paused = true)]
async fn heartbeats_arrive_and_say_how_long_they_took() {
    let mut world = one_pair(World::with_heartbeats().await);
    world.pair("shop", "other");
    world.route().await;
    world.until_hits("shop", "team", 5).await;
    let reading = world.mesh.reading();
    assert!(reading.routing);
    let of = |namespace: &str| world.heartbeat("shop", namespace);
    for reading in [of("team"), of("other"), reading.canary] {
        assert!(reading.hits >= 4, "{reading:?}");
        assert_eq!((reading.misses, &reading.stuck), (0, &None));
        assert_eq!(reading.interval, INTERVAL);
        assert!(reading.since >= Some(3 * INTERVAL), "{reading:?}");
        assert!(reading.age <= Some(INTERVAL), "{reading:?}");
        assert!(reading.end_to_end < Some(Duration::from_millis(100)));
    }
    let namespaces: Vec<String> = reading
        .heartbeats
        .into_iter()
        .map(|one| one.namespace)
        .collect();
    assert_eq!(namespaces, ["other", "team"], "in the order of the targets");
}

#[tokio::test(start_paused = true)]
async fn without_applications_the_canary_sings() {
    let world = World::with_heartbeats().await;
    world.pass(60).await;
    assert_eq!(
        world.mesh.reading().canary.since,
        None,
        "no table, no event"
    );
    assert_eq!(world.log.bounds().end, 1);
    world.route().await;
    world
        .until("the canary", |world| world.mesh.reading().canary.hits >= 3)
        .await;
    assert_eq!(world.mesh.reading().heartbeats, []);
}

/// What the probe from outside shows may be read by whoever ends TLS for us.
#[tokio::test(start_paused = true)]
async fn who_comes_in_as_the_probe_from_outside_publishes_its_heartbeat_and_nothing_else() {
    let mut world = one_pair(World::with_heartbeats().await);
    world.wants_all("team", "all", "a");
    world.route().await;
    let now = world.clock.now();
    let heartbeat = |id: &str| heddle_mesh::heartbeat::edge_request(id, now, INTERVAL);
    let before = numbers(&world);
    for (path, type_, expected) in [
        ("/channel/_heddle/canary", TYPE, 202),
        ("/channel/_heddle/canary", "order.created", 403),
        ("/broker/_heddle/canary", TYPE, 403),
        ("/shop/events", TYPE, 403),
        ("/shop/events", "order.created", 403),
        ("/broker/team/default", TYPE, 403),
    ] {
        let mut request = heartbeat(type_);
        *request.uri_mut() = path.parse().unwrap();
        let headers = request.headers_mut();
        headers.insert("ce-type", type_.parse().unwrap());
        let source = world.mesh.source();
        let answer = source.handle(&Who::EdgeProber, request).await;
        assert_eq!(answer.status().as_u16(), expected, "{path} {type_}");
    }
    for who in [Who::Anonymous, Who::Administrator] {
        let source = world.mesh.source();
        let answer = source.handle(&who, heartbeat("stolen")).await;
        // Nobody else learns that there is such a place.
        assert_eq!(answer.status().as_u16(), 404, "{who:?}");
    }
    world.pass(60).await;
    assert_eq!(world.received("a"), Vec::<String>::new());
    // Nobody's numbers but those of whom was refused.
    let same = |line: &&String| !line.contains("published") && !line.contains("seconds");
    let after = numbers(&world);
    let left: Vec<_> = before.iter().filter(same).collect();
    assert_eq!(left, after.iter().filter(same).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn whoever_wants_everything_gets_no_heartbeat() {
    let mut world = one_pair(World::on_disk().and_heartbeats().await);
    world.wants_all("team", "all", "a");
    world.wants_all("team", "slow", "b");
    let channel = json!({
        "apiVersion": "", "kind": "",
        "metadata": {"namespace": "kyma-integration", "name": "raw", "uid": "raw", "generation": 1},
        "spec": {"channel": {"kind": "Channel", "name": "shop"}, "subscriber": {"uri": "http://c/"}},
        "status": {"physicalSubscription": {"subscriberUri": "http://c/"}},
    });
    let raw = Arc::new(serde_json::from_value(channel).unwrap());
    world.resources.subscriptions.push(raw);
    // One of them falls far behind and reads the log itself.
    world.manner("b", Manner::Hang);
    world.route().await;
    for id in 0..5000 {
        world.publish_at("/shop/events", &id.to_string(), &[]).await;
    }
    world.pass(300).await;
    world.until_hits("shop", "team", 20).await;
    world.manner("b", Manner::Accept);
    world.crash().await;
    world.route().await;
    world.pass(300).await;
    for host in ["a", "b", "c"] {
        let received = world.received(host);
        assert!(received.len() >= 5000, "{host} received {}", received.len());
        let heartbeat = received.iter().find(|id| id.contains('-'));
        assert_eq!(heartbeat, None, "{host}");
    }
}

/// The same time with heartbeats and without: what users see must not differ.
#[tokio::test(start_paused = true)]
async fn heartbeats_are_in_no_number_account_or_list_of_users() {
    let mut seen = Vec::new();
    for heartbeats in [false, true] {
        let mut world = World::in_memory().await;
        world.heartbeats = heartbeats;
        world.begin();
        let mut world = one_pair(world);
        world.wants_all("team", "all", "a");
        world.manner("a", Manner::AnswerTo(&["2"], 400));
        world.route().await;
        for id in ["1", "2", "3"] {
            assert_eq!(world.publish_at("/shop/events", id, &[]).await, 202);
        }
        world.pass(120).await;
        let last = ExplainRequest {
            entry: "broker/team/default".to_owned(),
            last: 100,
            ..ExplainRequest::default()
        };
        let explained = world.explain(&last).await.unwrap();
        let (broker, channel) = ("broker/team/default", "channel/kyma-integration/shop");
        let pending = (
            world.mesh.pending(broker),
            world.mesh.pending_through(channel, broker),
        );
        let given_up = world
            .mesh
            .give_up(channel, broker, Fate::DeadLetter, "test")
            .await
            .unwrap();
        let dead = world
            .mesh
            .dead_letters(&DeadLetterSelection::default(), 0, 9);
        world.mesh.settled().await;
        let trace = world.mesh.trace("1", "/test").unwrap();
        let verdicts: Vec<String> = trace.events[0]
            .verdicts
            .iter()
            .map(|verdict| verdict.consumer.clone())
            .collect();
        let accounts = world.mesh.accounts(true).consumers;
        let consumers = world.mesh.reading().consumers;
        let keys: Vec<String> = consumers.into_iter().map(|one| one.key).collect();
        let appended = world.log.bounds().end;
        assert_eq!(appended > 10, heartbeats, "{appended}");
        seen.push((
            numbers(&world),
            accounts,
            (explained.examined, explained.matched),
            (pending, given_up, dead.total, verdicts, keys),
        ));
    }
    let [without, with] = <[_; 2]>::try_from(seen).unwrap();
    assert_eq!(without, with);
}

fn event(type_: &str) -> Value {
    json!({"specversion": "1.0", "id": "1", "source": "/s", "type": type_})
}

#[tokio::test(start_paused = true)]
async fn nobody_publishes_a_reserved_type() {
    let mut world = one_pair(World::with_heartbeats().await);
    world.wants_all("team", "all", "a");
    world.route().await;
    let end = world.log.bounds().end;
    let doors = [
        "/shop/events",
        "/broker/team/default",
        "/channel/kyma-integration/shop",
    ];
    let publishers = [
        Who::Anonymous,
        Who::Administrator,
        Who::Application("shop".into()),
    ];
    for type_ in [TYPE, "dev.heddle.heartbeat.v2", "dev.heddle.heartbeat."] {
        for (door, who) in doors
            .iter()
            .flat_map(|door| publishers.iter().map(move |who| (door, who)))
        {
            let single = ("application/cloudevents+json", event(type_), None);
            let batch = json!([event("order.created"), event(type_)]);
            let batch = ("application/cloudevents-batch+json", batch, Some(1));
            for (kind, body, index) in [single, batch] {
                let request = Request::post(*door)
                    .header("content-type", kind)
                    .body(Full::from(body.to_string()))
                    .unwrap();
                let response = world.mesh.source().handle(who, request).await;
                let status = response.status().as_u16();
                let body = response.into_body().collect().await.unwrap().to_bytes();
                let body: Value = serde_json::from_slice(&body).unwrap();
                let told = (status, body["code"].as_str(), body["index"].as_u64());
                assert_eq!(told, (403, Some("type-reserved"), index), "{door} {who:?}");
            }
        }
    }
    assert_eq!(
        world.publish_at(doors[0], "h", &[("type", TYPE)]).await,
        403
    );
    assert_eq!(world.log.bounds().end, end, "nothing of it is kept");
    // What is only like it is anybody's.
    let like = [("type", "dev.heddle.heartbeats")];
    assert_eq!(world.publish_at(doors[0], "like", &like).await, 202);
}

#[tokio::test(start_paused = true)]
async fn the_way_of_the_canary_is_nobody_elses() {
    let mut world = World::with_heartbeats().await;
    world.broker("ns", "default");
    world.trigger("t", "own", json!({
        "spec": {"subscriber": {"uri": "http://own/channel/_heddle/canary"}, "delivery": {"retry": 0}},
        "status": {"subscriberUri": "http://own/channel/_heddle/canary"},
    }));
    world.route().await;
    for path in ["/channel/_heddle/canary", "/broker/_heddle/canary"] {
        assert_eq!(world.publish_at(path, "1", &[]).await, 404, "{path}");
    }
    world.publish("1", &[]).await;
    world.until_dead_lettered("t", 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_calls_itself_a_heartbeat_goes_nowhere() {
    let mut world = World::with_broker();
    world.trigger("t", "a", json!({}));
    world.manner("a", Manner::Reply(TYPE));
    world.route().await;
    world.publish("1", &[]).await;
    world.until_delivered("t", 1).await;
    assert_eq!(world.log.bounds().end, 2, "the reply was not appended");
    let trace = world.trace("1").await;
    let attempts = &trace.events[0].verdicts[0].attempts;
    let reply = attempts[0].bad_reply.as_ref().unwrap();
    assert_eq!(reply.fault, "refused");
    assert!(reply.reason.contains("reserved"), "{reply:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_in_the_way_is_named() {
    let shop = "kyma-integration/shop";
    let link = "subscription/kyma-integration/link-shop-team";
    type Break = fn(&mut World);
    let table: [(&str, Break, &str, String); 6] = [
        (
            "the Application is gone",
            |world| world.resources.applications.clear(),
            "source",
            "application/shop".to_owned(),
        ),
        (
            "its source is gone",
            |world| world.resources.http_sources.clear(),
            "source",
            format!("httpsource/{shop}"),
        ),
        (
            "the link is gone",
            |world| world.resources.subscriptions.clear(),
            "subscription",
            link.to_owned(),
        ),
        (
            "nobody allows the link",
            |world| world.resources.policies.clear(),
            "subscription",
            link.to_owned(),
        ),
        (
            "the Broker is gone",
            |world| world.resources.brokers.clear(),
            "broker",
            "broker/team/default".to_owned(),
        ),
        (
            "its channel is gone",
            |world| world.resources.channels.clear(),
            "source",
            format!("httpsource/{shop}"),
        ),
    ];
    for (what, broken, hop, object) in table {
        let mut world = one_pair(World::with_heartbeats().await);
        world.route().await;
        world.until_hits("shop", "team", 2).await;
        let well = world.resources.clone();
        broken(&mut world);
        world.route().await;
        world.until_misses("shop", "team", 3).await;
        let reading = world.heartbeat("shop", "team");
        assert_eq!(reading.hits, 0, "{what}");
        let expected = Some((hop.to_owned(), object));
        assert_eq!(world.stuck("shop", "team"), expected, "{what}: {reading:?}");
        assert!(world.mesh.reading().canary.misses == 0, "{what}");
        world.resources = well;
        world.route().await;
        world.until_hits("shop", "team", 2).await;
        assert_eq!(world.heartbeat("shop", "team").misses, 0, "{what}");
        world.pass(60).await;
        assert_eq!(world.stuck("shop", "team"), None, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_log_that_takes_nothing_is_named_for_everybody() {
    let (world, log) = World::in_memory_that_refuses();
    let mut world = one_pair(world.and_heartbeats().await);
    world.pair("crm", "team");
    world.route().await;
    world.until_hits("crm", "team", 2).await;
    log.refuse(Some(AppendRefused::Full));
    world.until_misses("crm", "team", 3).await;
    world.until_misses("shop", "team", 3).await;
    for application in ["shop", "crm"] {
        let channel = format!("channel/kyma-integration/{application}");
        let expected = Some(("channel".to_owned(), channel));
        assert_eq!(world.stuck(application, "team"), expected);
    }
    let canary = world.mesh.reading().canary;
    assert_eq!(
        canary.stuck.map(|stuck| stuck.hop).as_deref(),
        Some("channel")
    );
    assert!(canary.misses > 0);
    log.refuse(None);
    world.until_hits("shop", "team", 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_target_that_goes_leaves_nothing_behind() {
    for world in World::each() {
        let mut world = one_pair(world.and_heartbeats().await);
        world.pair("crm", "team");
        world.route().await;
        world.until_hits("shop", "team", 2).await;
        world.until_hits("crm", "team", 2).await;
        let targets = world.resources.heartbeats.clone();
        world.resources.heartbeats.clear();
        world.route().await;
        assert_eq!(world.mesh.reading().heartbeats, []);
        let before = world.log.bounds().end;
        world.pass(60).await;
        // Only the canary is left.
        assert!(world.log.bounds().end <= before + 8);
        world.mesh.tidy().await;
        assert_eq!(snapshot_keys(&world), ["heartbeat/_heddle/_canary"]);
        // They come back as new ones.
        world.resources.heartbeats = targets;
        world.route().await;
        assert_eq!(world.heartbeat("shop", "team").since, None);
        world.until_hits("shop", "team", 2).await;
    }
}

/// The consumers that the newest snapshot of the journal knows.
fn snapshot_keys(world: &World) -> Vec<String> {
    let snapshots = world.log.journal().snapshots().unwrap();
    let (_, newest) = &snapshots[0];
    let snapshot = heddle_mesh::journal::Snapshot::decode(newest).unwrap();
    let positions = snapshot.positions;
    assert_eq!(positions.strays, 0, "every line is about somebody known");
    let mut keys: Vec<String> = positions
        .consumers
        .into_values()
        .map(|position| position.key)
        .collect();
    keys.sort();
    keys
}

#[tokio::test(start_paused = true)]
async fn a_new_process_knows_nothing_of_the_heartbeats_before_it() {
    for world in World::each() {
        let mut world = one_pair(world.and_heartbeats().await);
        world.wants_all("team", "all", "a");
        world.route().await;
        world.until_hits("shop", "team", 2).await;
        // Some are on their way when the process dies.
        world.manner(SINK_HOST, Manner::Hang);
        world.pass(25).await;
        world.crash().await;
        world.manner(SINK_HOST, Manner::Accept);
        assert_eq!(
            world.mesh.reading().heartbeats,
            [],
            "before the first table"
        );
        world.route().await;
        let reading = world.heartbeat("shop", "team");
        assert_eq!((reading.since, reading.age), (None, None));
        world.until_hits("shop", "team", 1).await;
        let reading = world.heartbeat("shop", "team");
        assert!(reading.since <= Some(INTERVAL), "{reading:?}");
        world.mesh.tidy().await;
        let expected = [
            "heartbeat/_heddle/_canary",
            "heartbeat/team/shop",
            "trigger/team/all",
        ];
        assert_eq!(snapshot_keys(&world), expected);
        // A process that has nowhere to send them to forgets those who heard them.
        world.stop().await;
        world.heartbeats = false;
        world.resources.heartbeats.clear();
        world.begin();
        world.route().await;
        world.mesh.tidy().await;
        assert_eq!(snapshot_keys(&world), ["trigger/team/all"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_changes_nothing() {
    let world = one_pair(World::with_heartbeats().await);
    world.route().await;
    world.until_hits("shop", "team", 3).await;
    for minutes in [5, -5, -5, 5] {
        world.clock.set_by(SignedDuration::from_mins(minutes));
        for _ in 0..30 {
            world.pass(1).await;
            let reading = world.heartbeat("shop", "team");
            assert_eq!(reading.misses, 0, "{minutes}: {reading:?}");
            assert!(
                reading.age <= Some(INTERVAL + Duration::from_secs(1)),
                "{reading:?}"
            );
            assert!(reading.end_to_end < Some(Duration::from_secs(1)));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_of_the_process_is_no_outage() {
    let world = one_pair(World::with_heartbeats().await);
    world.route().await;
    world.until_hits("shop", "team", 3).await;
    tokio::time::advance(Duration::from_secs(600)).await;
    for _ in 0..60 {
        world.pass(1).await;
        let reading = world.heartbeat("shop", "team");
        assert!(reading.misses < 3, "{reading:?}");
    }
    let reading = world.heartbeat("shop", "team");
    assert!(
        reading.hits >= 2 && reading.age <= Some(INTERVAL),
        "{reading:?}"
    );
}

/// How many events the log got in each second.
async fn rates(world: &World, seconds: usize) -> Vec<u64> {
    let mut rates = Vec::new();
    for _ in 0..seconds {
        let before = world.log.bounds().end;
        world.pass(1).await;
        rates.push(world.log.bounds().end - before);
    }
    rates
}

#[tokio::test(start_paused = true)]
async fn a_thousand_applications_are_no_flood() {
    let mut world = World::with_heartbeats().await;
    for number in 0..1000 {
        world.pair(&format!("app-{number}"), "team");
    }
    world.route().await;
    let rates = rates(&world, 60).await;
    let most = rates.iter().copied().max().unwrap();
    assert!(most <= 51, "{rates:?}");
    // None is left out, and what is in force is told.
    let total: u64 = rates.iter().sum();
    assert!(total > 2000, "{total}");
    let readings = world.mesh.reading().heartbeats;
    assert!(
        readings
            .iter()
            .all(|one| one.hits >= 1 && one.interval > 2 * INTERVAL)
    );
    assert!(
        readings
            .iter()
            .all(|one| one.misses == 0 && one.age <= Some(TOO_OLD))
    );
}

#[tokio::test(start_paused = true)]
async fn heartbeats_are_small_and_spread() {
    let mut world = World::with_heartbeats().await;
    for number in 0..20 {
        world.pair(&format!("application-{number:044}"), "team");
    }
    world.route().await;
    world.pass(10).await;
    let rates = rates(&world, 30).await;
    // Two a second, and the canary.
    assert!(rates.iter().all(|rate| (0..=5).contains(rate)), "{rates:?}");
    assert!(
        rates.iter().filter(|rate| **rate == 0).count() < 6,
        "{rates:?}"
    );
    let batch = world.log.read(1, 1 << 20).unwrap();
    assert!(batch.records.len() > 60);
    let largest = batch
        .records
        .iter()
        .map(|record| record.payload.len())
        .max();
    assert!(largest <= Some(300), "{largest:?}");
}
