//! Searching: the same as looking at every event, whatever was asked for and whatever is left of the hints.

use std::collections::BTreeSet;

use axum::body::Body;
use heddle_api::access::{Access, Role, Scope};
use heddle_api::account_terms::{MATCHED, OUTCOMES};
use heddle_api::ledger::DeadLetterSelection;
use heddle_api::search::{EventPage, EventQuery};
use heddle_mesh::ledger::SearchRequest;
use heddle_mesh::questions;
use heddle_rt::Vfs as _;
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::world::{EVENTS_DIR, Manner, World};

/// Asks over HTTP as somebody.
pub(crate) async fn ask(world: &World, access: &Access, path: &str, accept: &str) -> (u16, String) {
    let request = Request::get(path).header("accept", accept);
    let request = request.extension(access.clone()).body(Body::empty());
    let router = questions::router(world.mesh.clone());
    let response = router.oneshot(request.unwrap()).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

fn admin() -> Access {
    Access::administrator("ada")
}

async fn page(world: &World, path: &str) -> EventPage {
    let (status, body) = ask(world, &admin(), path, "application/json").await;
    assert_eq!(status, 200, "{path}: {body}");
    serde_json::from_str(&body).unwrap()
}

fn offsets(page: &EventPage) -> Vec<u64> {
    page.items.iter().map(|item| item.offset).collect()
}

/// Numbers that are the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }
}

/// What the model knows of an event.
struct Known {
    offset: u64,
    event: Value,
    /// Consumer and state.
    verdicts: Vec<(String, String)>,
}

type Holds = Box<dyn Fn(&Known) -> bool>;

/// A term and what it means.
fn term(dice: &mut Dice) -> (String, Holds) {
    let number = dice.roll(20);
    let text = |known: &Known, name: &str| known.event[name].as_str().unwrap_or("").to_owned();
    let (query, holds): (String, Holds) = match dice.roll(12) {
        0 => (
            format!("id:e{number}"),
            Box::new(move |known| text(known, "id") == format!("e{number}")),
        ),
        1 => {
            let type_ = ["order.paid", "order.created", "user.created"][dice.roll(3)];
            (
                format!("type:{type_}"),
                Box::new(move |known| text(known, "type") == type_),
            )
        }
        2 => {
            let prefix = ["order", "user", "o", ""][dice.roll(4)];
            (
                format!("type:{prefix}*"),
                Box::new(move |known| text(known, "type").starts_with(prefix)),
            )
        }
        3 => (
            format!("subject:s{}", number % 4),
            Box::new(move |known| text(known, "subject") == format!("s{}", number % 4)),
        ),
        4 => (
            format!("ext.tier>={}", number % 5),
            Box::new(move |known| {
                let tier = known.event["tier"]
                    .as_str()
                    .and_then(|tier| tier.parse::<usize>().ok());
                tier.is_some_and(|tier| tier >= number % 5)
            }),
        ),
        5 => (
            format!("data.total>{}", number * 10),
            Box::new(move |known| {
                let total = known.event["data"]["total"].as_u64();
                total.is_some_and(|total| total > number as u64 * 10)
            }),
        ),
        6 => (
            format!("data.tags:t{}", number % 4),
            Box::new(move |known| {
                let tags = known.event["data"]["tags"].as_array();
                let wanted = format!("t{}", number % 4);
                tags.is_some_and(|tags| tags.iter().any(|tag| *tag == *wanted))
            }),
        ),
        7 => (
            format!("text:\"NAME{number}\""),
            Box::new(move |known| {
                let wanted = format!("name{number}");
                known.event.to_string().to_lowercase().contains(&wanted)
            }),
        ),
        8 => (
            format!(
                "cesql:\"subject = 's{}' OR type LIKE 'user.%'\"",
                number % 4
            ),
            Box::new(move |known| {
                let subject = known.event["subject"].as_str();
                subject == Some(&format!("s{}", number % 4))
                    || (subject.is_some() && text(known, "type").starts_with("user."))
            }),
        ),
        9 => (
            format!("place:{}", number + 1),
            Box::new(move |known| known.offset == number as u64 + 1),
        ),
        10 => {
            let state = [
                "delivered",
                "deadLettered",
                "filtered",
                "retrying",
                "pending",
            ][dice.roll(5)];
            let consumer = ["good", "bad", "paid"][dice.roll(3)];
            let consumer = format!("trigger/ns/{consumer}");
            let query = format!("consumer:{consumer} state:{state}");
            // Negated, only the first of the two would be.
            return (
                query,
                Box::new(move |known| {
                    known
                        .verdicts
                        .contains(&(consumer.clone(), state.to_owned()))
                }),
            );
        }
        _ => (
            format!("name{number}"),
            Box::new(move |known| known.event.to_string().contains(&format!("name{number}"))),
        ),
    };
    match dice.roll(4) {
        0 => (format!("-{query}"), Box::new(move |known| !holds(known))),
        _ => (query, holds),
    }
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_queries_find_what_looking_at_every_event_finds() {
    let mut world = World::on_disk_with_broker();
    world.trigger("good", "good", json!({}));
    world.trigger("bad", "bad", json!({"spec": {"delivery": {"retry": 0}}}));
    let paid = json!({"spec": {"filter": {"attributes": {"type": "order.paid"}}}});
    world.trigger("paid", "paid", paid);
    world.manner("bad", Manner::Answer(500));
    world.route().await;
    let mut dice = Dice(1);
    let mut events = Vec::new();
    for number in 0..60 {
        let type_ = ["order.paid", "order.created", "user.created"][dice.roll(3)];
        let mut event = json!({
            "specversion": "1.0", "id": format!("e{}", dice.roll(30)), "source": format!("/s{number}"), "type": type_,
            "data": {"total": dice.roll(200), "tags": [format!("t{}", dice.roll(4))], "who": {"name": format!("name{}", dice.roll(20))}},
        });
        if dice.roll(2) == 0 {
            event["subject"] = format!("s{}", dice.roll(4)).into();
        }
        if dice.roll(2) == 0 {
            event["tier"] = dice.roll(6).to_string().into();
        }
        events.push(event);
    }
    for some in events.chunks(10) {
        assert_eq!(world.post_batch(&json!(some)).await.0, 202);
    }
    let count = events.len() as u64;
    world.until_delivered("good", count).await;
    world.until_dead_lettered("bad", count).await;
    world.pass(60).await;
    world.mesh.note_hints().await;
    world.mesh.settled().await;
    let model: Vec<Known> = (1..)
        .zip(events)
        .map(|(offset, event)| {
            let (id, source) = (
                event["id"].as_str().unwrap(),
                event["source"].as_str().unwrap(),
            );
            let mut traced = world.mesh.trace(id, source).unwrap().events;
            let verdicts = traced.remove(0).verdicts.into_iter();
            let verdicts = verdicts.map(|one| (one.consumer, one.state.name().to_owned()));
            Known {
                offset,
                verdicts: verdicts.collect(),
                event,
            }
        })
        .collect();
    let mut found_some = 0;
    for _ in 0..10_000 {
        let terms: Vec<_> = (0..=dice.roll(3)).map(|_| term(&mut dice)).collect();
        // Two about consumers would speak of the same one.
        if terms
            .iter()
            .filter(|(query, _)| query.contains("state:"))
            .count()
            > 1
        {
            continue;
        }
        let query: Vec<&str> = terms.iter().map(|(query, _)| &**query).collect();
        let query = query.join(" ");
        let holds = |known: &&Known| terms.iter().all(|(_, holds)| holds(known));
        let expected: Vec<u64> = model
            .iter()
            .rev()
            .filter(holds)
            .map(|known| known.offset)
            .collect();
        let request = SearchRequest {
            query: EventQuery::parse(&query, world.clock.now()).unwrap(),
            range: 0..u64::MAX,
            limit: usize::MAX,
            visible: world.mesh.visible_to(&admin()),
            whole: false,
        };
        let mut search = world.mesh.search(request, "ada", None).await.unwrap();
        let mut found = Vec::new();
        loop {
            let step = search.step().await.unwrap();
            found.extend(step.items.iter().map(|item| item.offset));
            if !step.going {
                break;
            }
        }
        found_some += usize::from(!found.is_empty());
        assert_eq!(found, expected, "{query}");
    }
    assert!(found_some > 2_000, "only {found_some} found something");
}

#[tokio::test(start_paused = true)]
async fn pages_and_lines_and_batches_have_the_same_events() {
    for world in World::each_with_broker() {
        world.route().await;
        world.publish_many((0..250).map(|n| format!("n{n}"))).await;
        let (mut seen, mut before) = (Vec::new(), u64::MAX);
        loop {
            let page = page(
                &world,
                &format!("/events?q=type:order.*&limit=100&before={before}"),
            )
            .await;
            assert!(page.items.len() <= 100);
            seen.extend(offsets(&page));
            assert_eq!(page.looked_at.of, 250);
            match page.next {
                Some(next) => before = next,
                None => break,
            }
        }
        assert_eq!(seen, (1..=250).rev().collect::<Vec<u64>>());
        let (_, lines) = ask(&world, &admin(), "/events?q=id:n1*", "application/jsonl").await;
        let lines: Vec<Value> = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let (end, lines) = lines.split_last().unwrap();
        assert_eq!((end["end"].as_bool(), end.get("next")), (Some(true), None));
        let items = lines.iter().filter(|line| line.get("item").is_some());
        assert_eq!(items.count(), 111);
        let (_, batch) = ask(
            &world,
            &admin(),
            "/events?q=id:n1*",
            "application/cloudevents-batch+json",
        )
        .await;
        let batch: Vec<Value> = serde_json::from_str(&batch).unwrap();
        assert_eq!((batch.len(), &batch[0]["id"]), (111, &json!("n199")));
    }
}

#[tokio::test(start_paused = true)]
async fn an_export_can_be_published_again_byte_for_byte() {
    let mut world = World::with_broker();
    world.trigger("t", "t", json!({}));
    world.route().await;
    let event = r#"[{"specversion":"1.0","type":"t","source":"/s","id":"1","data":{"n":12345678901234567890.10,"a":1}}]"#;
    let request = |body: String| {
        let request = Request::post("/broker/ns/default");
        let request = request.header("content-type", "application/cloudevents-batch+json");
        request.body(http_body_util::Full::from(body)).unwrap()
    };
    let source = world.mesh.source();
    let who = heddle_mesh::who::Who::Anonymous;
    assert_eq!(
        source
            .handle(&who, request(event.to_owned()))
            .await
            .status()
            .as_u16(),
        202
    );
    let export = "application/cloudevents-batch+json";
    let (_, first) = ask(&world, &admin(), "/events?q=", export).await;
    assert!(first.contains("12345678901234567890.10"), "{first}");
    assert_eq!(
        source
            .handle(&who, request(first.clone()))
            .await
            .status()
            .as_u16(),
        202
    );
    let (_, again) = ask(&world, &admin(), "/events?q=place:2", export).await;
    assert_eq!(first, again);
    let (_, whole) = ask(&world, &admin(), "/events/1", "application/json").await;
    assert!(whole.contains("12345678901234567890.10"), "{whole}");
}

#[tokio::test(start_paused = true)]
async fn hints_may_be_missing_or_damaged_and_change_no_answer() {
    let world = World::on_disk_with_broker();
    world.route().await;
    world.publish("wanted", &[]).await;
    world.publish_many((0..300).map(|n| format!("n{n}"))).await;
    let look = async |what: &str| {
        assert_eq!(
            offsets(&page(&world, "/events?q=id:wanted").await),
            [1],
            "{what}"
        );
        assert_eq!(page(&world, "/events?q=wanted").await.direct, [1], "{what}");
        let trace = world.mesh.trace_by_id("wanted", 0..u64::MAX).await.unwrap();
        assert_eq!((trace.events.len(), trace.older), (1, None), "{what}");
        assert!(
            page(&world, "/events?q=id:none").await.items.is_empty(),
            "{what}"
        );
    };
    look("missing").await;
    world.mesh.note_hints().await;
    look("made").await;
    let dir = std::path::Path::new(EVENTS_DIR).join("hints");
    let disk = world.disk.clone().unwrap();
    let names = disk.list(&dir).unwrap();
    assert!(names.len() > 3, "{names:?}");
    for name in &names {
        disk.write_atomic(&dir.join(name), b"damaged", 0o600)
            .unwrap();
    }
    look("damaged").await;
    world.mesh.note_hints().await;
    assert!(disk.list(&dir).unwrap().len() > 3);
    look("made again").await;
}

#[tokio::test(start_paused = true)]
async fn nobody_sees_more_than_they_may() {
    let mut world = World::with_broker();
    world.broker("other", "default");
    world.trigger("t", "t", json!({}));
    world.route().await;
    world.publish("mine", &[]).await;
    world
        .publish_at("/broker/other/default", "theirs", &[])
        .await;
    let viewer = Access {
        user: "vic".to_owned(),
        role: Role::Viewer,
        scope: Scope::Namespaces(BTreeSet::from(["other".to_owned()])),
        payloads: false,
    };
    let json = "application/json";
    let (_, body) = ask(&world, &viewer, "/events", json).await;
    let page: EventPage = serde_json::from_str(&body).unwrap();
    assert_eq!(offsets(&page), [2]);
    assert_eq!(ask(&world, &viewer, "/events/1", json).await.0, 404);
    let (status, body) = ask(&world, &viewer, "/events/2", json).await;
    assert!(
        status == 200 && body.contains("\"dataWithheld\":true") && !body.contains("data of"),
        "{body}"
    );
    assert_eq!(ask(&world, &viewer, "/events/2/data", json).await.0, 403);
    for query in ["text:data", "data.a:1"] {
        assert_eq!(
            ask(&world, &viewer, &format!("/events?q={query}"), json)
                .await
                .0,
            403
        );
    }
    // A bare word is looked for in what they may see.
    let (_, body) = ask(&world, &viewer, "/events?q=data%20of", json).await;
    assert!(body.contains("\"items\":[]"), "{body}");
    let (_, body) = ask(&world, &viewer, "/trace?id=mine", json).await;
    assert!(body.contains("\"events\":[]"), "{body}");
    let payloads = Access {
        payloads: true,
        ..viewer
    };
    let (status, body) = ask(&world, &payloads, "/events/2/data", json).await;
    assert_eq!((status, &*body), (200, "data of theirs"));
    assert_eq!(ask(&world, &payloads, "/events/1/data", json).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn a_query_that_cannot_be_read_is_refused_with_its_place() {
    let world = World::with_broker();
    world.route().await;
    let (status, body) = ask(&world, &admin(), "/events?q=a%20tpye:x", "application/json").await;
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        (status, &body["code"], &body["position"]),
        (400, &json!("invalid-query"), &json!(2))
    );
}

#[tokio::test(start_paused = true)]
async fn a_tail_shows_fifty_a_second_and_counts_all() {
    let world = World::with_broker();
    world.route().await;
    let query = EventQuery::parse("type:order.*", world.clock.now()).unwrap();
    let visible = world.mesh.visible_to(&admin());
    let mut tail = world.mesh.tail(query, visible, "ada", None).unwrap();
    world.publish_many((0..80).map(|n| format!("n{n}"))).await;
    world.publish("x", &[("type", "user.created")]).await;
    let mut shown = 0;
    let rate = loop {
        let step = tail.step().await.unwrap();
        shown += step.items.len();
        if let Some(rate) = step.rate {
            break rate;
        }
    };
    assert_eq!(
        (shown, rate.shown, rate.matched, rate.accepted),
        (50, 50, 80, 81)
    );
    world.publish("later", &[]).await;
    assert_eq!(tail.step().await.unwrap().items[0].id, "later");
}

/// Whoever leaves gives back the place, and is searched for no further; deliveries go on all the while.
#[tokio::test(start_paused = true)]
async fn searches_end_with_those_who_asked_and_hold_up_no_delivery() {
    let mut world = World::with_broker();
    world.trigger("t", "t", json!({}));
    world.route().await;
    world.publish_many((0..2000).map(|n| format!("n{n}"))).await;
    let begin = async |name: Option<&'static str>| {
        let request = SearchRequest {
            query: EventQuery::parse("text:nowhere", world.clock.now()).unwrap(),
            range: 0..u64::MAX,
            limit: 10,
            visible: world.mesh.visible_to(&admin()),
            whole: false,
        };
        world.mesh.search(request, "ada", name).await
    };
    let mut searches = Vec::new();
    for _ in 0..32 {
        let mut search = begin(None).await.unwrap();
        assert!(search.step().await.unwrap().going);
        searches.push(search);
    }
    assert!(begin(None).await.is_err(), "there are bounds");
    world.publish("while", &[]).await;
    world.until_delivered("t", 2001).await;
    searches.clear();
    let mut old = begin(Some("find")).await.unwrap();
    let mut new = begin(Some("find")).await.unwrap();
    assert!(old.step().await.is_err());
    assert!(new.step().await.unwrap().going);
}

/// Looking for the event whose name a word is keeps to the bounds of every question: it waits for a place, gives way, and reads
/// the log once for all names.
#[tokio::test(start_paused = true)]
async fn a_bare_word_is_a_question_like_any_other() {
    let mut world = World::on_disk_with_broker();
    world.route().await;
    world.publish("wanted", &[]).await;
    world.publish_many((0..300).map(|n| format!("n{n}"))).await;
    // A new process has nothing of it in memory.
    world.restart().await;
    world.route().await;
    let disk = world.disk.clone().unwrap();
    let looks = async |path: &str| {
        let before = disk.looks();
        let (status, body) = ask(&world, &admin(), path, "application/json").await;
        (status, body, disk.looks() - before)
    };
    let (_, _, once) = looks("/events?q=ext.none:x").await;
    assert!(once > 0, "it is read from the disk");
    let (status, body, twice) = looks("/events?q=wanted").await;
    assert!(status == 200 && body.contains("\"direct\":[1]"), "{body}");
    assert!(
        twice < 5 * once / 2,
        "{twice} looks, where {once} are one pass"
    );
    let mut places = Vec::new();
    for _ in 0..32 {
        let request = SearchRequest {
            query: EventQuery::parse("", world.clock.now()).unwrap(),
            range: 0..u64::MAX,
            limit: 1,
            visible: world.mesh.visible_to(&admin()),
            whole: false,
        };
        places.push(world.mesh.search(request, "ada", None).await.unwrap());
    }
    let (status, body, read) = looks("/events?q=wanted").await;
    assert_eq!((status, read), (429, 0), "{body}");
    places.clear();
    // Of those with the same name only the newest goes on.
    let ada = admin();
    let mut old = Box::pin(ask(&world, &ada, "/events?q=wanted&ask=find", "x"));
    for _ in 0..5 {
        assert!(futures::poll!(&mut old).is_pending());
    }
    let (status, _, _) = looks("/events?q=n1&ask=find").await;
    assert_eq!((status, old.await.0), (200, 409));
}

/// However many events of a chunk are found, a step looks up what became of a few, and an answer that ends in between goes on
/// behind them.
#[tokio::test(start_paused = true)]
async fn a_step_looks_up_what_became_of_a_few_events() {
    for consumers in [1, 100] {
        let mut world = World::with_broker();
        for number in 0..consumers {
            world.trigger(&format!("t{number}"), "t", json!({}));
        }
        world.route().await;
        world.publish_many((0..300).map(|n| format!("n{n}"))).await;
        let request = SearchRequest {
            query: EventQuery::parse("", world.clock.now()).unwrap(),
            range: 0..u64::MAX,
            limit: usize::MAX,
            visible: world.mesh.visible_to(&admin()),
            whole: false,
        };
        let mut search = world.mesh.search(request, "ada", None).await.unwrap();
        let mut found = Vec::new();
        loop {
            let step = search.step().await.unwrap();
            assert!(step.items.len() <= 64, "{} at once", step.items.len());
            assert!(step.items.len() * consumers <= 4096);
            for item in &step.items {
                assert_eq!(item.states.values().sum::<u64>(), consumers as u64);
            }
            found.extend(step.items.iter().map(|item| item.offset));
            if let (Some(last), true) = (found.last(), step.going) {
                assert_eq!((step.looked_at.from, step.next), (*last, Some(*last)));
            }
            if !step.going {
                break;
            }
        }
        assert_eq!(found, (1..=300).rev().collect::<Vec<u64>>());
    }
}

/// An export of large events is handed on piece by piece, and holds no more than that.
#[tokio::test(start_paused = true)]
async fn an_export_holds_few_large_events_at_a_time() {
    let world = World::with_broker();
    world.route().await;
    for number in 0..30 {
        let status = world.publish_large(&format!("n{number}"), 300 << 10).await;
        assert_eq!(status, 202);
    }
    for (limit, expected) in [(usize::MAX, 30), (7, 7)] {
        let request = SearchRequest {
            query: EventQuery::parse("", world.clock.now()).unwrap(),
            range: 0..u64::MAX,
            limit,
            visible: world.mesh.visible_to(&admin()),
            whole: true,
        };
        let mut search = world.mesh.search(request, "ada", None).await.unwrap();
        let mut found = 0;
        loop {
            let step = search.step().await.unwrap();
            let bytes: usize = step.documents.iter().map(Vec::len).sum();
            assert!(bytes < 2 << 20, "{bytes} at once");
            found += step.documents.len();
            if !step.going {
                break;
            }
        }
        assert_eq!(found, expected);
    }
}

/// Each number of each account, beside the length of the list behind it.
async fn every_number_is_a_list(world: &World, triggers: &[&str], when: &str) {
    world.mesh.settled().await;
    for name in triggers {
        let account = world.account(name);
        for term in std::iter::once(&MATCHED).chain(&OUTCOMES) {
            let Some(query) = term.query(&account.consumer) else {
                continue;
            };
            let query: String = form_urlencoded::byte_serialize(query.as_bytes()).collect();
            let path = format!("/events?limit=500&q={query}");
            let rows = page(world, &path).await.items.len() as u64;
            assert_eq!(rows, (term.count)(&account), "{when}: {name} {}", term.name);
        }
    }
}

/// Waits until a trigger has matched so many events, and all but so many of them have ended.
async fn ended(world: &World, trigger: &str, matched: u64, pending: u64) {
    let is_it = |world: &World| {
        let account = world.account(trigger);
        (account.matched, account.pending) == (matched, pending)
    };
    world.until("events have ended", is_it).await;
}

#[tokio::test(start_paused = true)]
async fn every_number_of_an_account_is_the_length_of_its_list() {
    const BOTH: [&str; 2] = ["works", "fails"];
    let mut world = World::with_broker();
    world.trigger("works", "a", json!({}));
    let some =
        json!({"spec": {"filters": [{"prefix": {"type": "order."}}], "delivery": {"retry": 0}}});
    world.trigger("fails", "b", some);
    world.manner("b", Manner::AnswerTo(&["0", "6", "22"], 422));
    world.route().await;
    for round in 0..3 {
        for number in 0..20_u64 {
            let type_ = ["order.created", "user.created"][usize::from(number % 2 == 1)];
            let id = (round * 20 + number).to_string();
            assert_eq!(world.publish(&id, &[("type", type_)]).await, 202);
        }
        ended(&world, "works", (round + 1) * 20, 0).await;
        ended(&world, "fails", (round + 1) * 10, 0).await;
        every_number_is_a_list(&world, &BOTH, "while events come").await;
    }
    assert_eq!(world.account("fails").dead_lettered, 3);
    let one = DeadLetterSelection {
        id: Some("6".to_owned()),
        ..DeadLetterSelection::default()
    };
    assert_eq!(world.mesh.discard(&one, "ada").await.count, 1);
    every_number_is_a_list(&world, &BOTH, "one is discarded").await;
    world.manner("a", Manner::Hang);
    for id in ["60", "61", "62"] {
        assert_eq!(world.publish(id, &[]).await, 202);
    }
    ended(&world, "works", 63, 3).await;
    ended(&world, "fails", 33, 0).await;
    every_number_is_a_list(&world, &BOTH, "some are under way").await;
    world.manner("a", Manner::Accept);
    ended(&world, "works", 63, 0).await;
    every_number_is_a_list(&world, &BOTH, "at rest").await;
}
