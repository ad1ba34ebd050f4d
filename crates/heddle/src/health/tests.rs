use std::time::Duration;

use axum::body::Body;
use futures::StreamExt as _;
use heddle_api::access::Access;
use heddle_api::dataplane::{ConsumerReading, DoorReading, MeshReading};
use heddle_api::health::{HealthPlane, NamespaceHealth, Verdict};
use http::Request;
use jiff::Timestamp;
use serde_json::json;
use tower::ServiceExt as _;

use super::feed::{ChangeFeed, FeedBatch};
use super::*;

/// What was judged at a second: the shop in its namespace, and one consumer of its events.
fn report(second: u64, health: HealthStatus, matched: u64) -> Report {
    let mut report = Report::default();
    report.judged = Duration::from_secs(second);
    report.mesh.name = "mesh".to_owned();
    report.mesh.verdict.health = HealthStatus::Healthy;
    let verdict = Verdict {
        health,
        reason: format!("{health:?}Because"),
        evidence: Some(format!("seen {second} s after the start")),
        ..Verdict::default()
    };
    let pair = NamespaceHealth {
        name: "team-a".to_owned(),
        verdict,
        ..NamespaceHealth::default()
    };
    let key = ("shop".to_owned(), "team-a".to_owned());
    report.pairs.insert(key, pair);
    report.revision = u64::from(health.level());
    report.reading = Arc::new(MeshReading {
        consumers: vec![ConsumerReading {
            key: "trigger/team-a/orders".to_owned(),
            matched,
            ..ConsumerReading::default()
        }],
        doors: vec![DoorReading {
            application: "shop".to_owned(),
            accepted: 2 * matched,
            ..DoorReading::default()
        }],
        ..MeshReading::default()
    });
    report
}

/// The same, with what was read a second earlier.
fn followed(before: &Report, second: u64, health: HealthStatus, matched: u64) -> Report {
    let mut report = report(second, health, matched);
    report.earlier = Some((before.judged, Arc::clone(&before.reading)));
    report
}

fn scopes(batch: &FeedBatch) -> Vec<(&str, &str)> {
    let verdicts = batch.verdicts.iter();
    verdicts
        .map(|verdict| (&*verdict.scope, &*verdict.verdict))
        .collect()
}

const PAIR: &str = "application/shop/team-a";
const ORDERS: &str = "trigger/team-a/orders";

#[test]
fn everything_is_told_first_and_then_what_changes() {
    let feed = ChangeFeed::default();
    let first = report(1, HealthStatus::Healthy, 10);
    let batch = feed.news(&first, None).unwrap();
    assert_eq!(batch.reset.as_ref().unwrap().scopes, 2);
    assert_eq!(scopes(&batch), [(PAIR, "healthy"), ("mesh", "healthy")]);
    let pulse = batch.pulse.unwrap();
    assert!(pulse.full && pulse.n.is_empty(), "nothing moves: {pulse:?}");
    assert_eq!(feed.news(&first, Some(batch.seq)), None);

    let second = followed(&first, 3, HealthStatus::Unhealthy, 30);
    let batch = feed.news(&second, Some(batch.seq)).unwrap();
    assert_eq!(batch.reset, None);
    assert_eq!(scopes(&batch), [(PAIR, "unhealthy")]);
    let pulse = batch.pulse.unwrap();
    assert_eq!(pulse.n[ORDERS].unwrap()[0], 10.0, "20 in two seconds");
    assert_eq!(pulse.sources["application/shop"].unwrap()[0], 20.0);

    // What was seen as evidence is another, and that is no news; nothing moves any more, and that is.
    let third = followed(&second, 4, HealthStatus::Unhealthy, 30);
    let batch = feed.news(&third, Some(batch.seq)).unwrap();
    assert_eq!(scopes(&batch), []);
    assert_eq!(batch.pulse.unwrap().n[ORDERS], None);
    let fourth = followed(&third, 5, HealthStatus::Unhealthy, 30);
    let batch = feed.news(&fourth, Some(batch.seq)).unwrap();
    assert_eq!(batch.pulse, None);
}

#[test]
fn whoever_was_away_is_told_what_it_missed_and_all_numbers() {
    let feed = ChangeFeed::default();
    let mut last = report(1, HealthStatus::Healthy, 0);
    let heard = feed.news(&last, None).unwrap().seq;
    let healths = [
        HealthStatus::Unknown,
        HealthStatus::Unhealthy,
        HealthStatus::Degraded,
    ];
    for (second, health) in (2..).zip(healths) {
        last = followed(&last, second, health, 5);
        feed.news(&last, Some(heard + second - 2));
    }
    let batch = feed.news(&last, Some(heard)).unwrap();
    let told = ["unknown", "unhealthy", "degraded"].map(|word| (PAIR, word));
    assert_eq!(
        (batch.reset.as_ref(), scopes(&batch)),
        (None, told.to_vec())
    );
    assert!(batch.pulse.unwrap().full);
    let ahead = feed.news(&last, Some(999)).unwrap();
    assert!(ahead.reset.is_some(), "nobody can have heard that yet");
}

#[test]
fn whoever_missed_too_much_is_told_everything() {
    let feed = ChangeFeed::default();
    let mut last = report(1, HealthStatus::Healthy, 0);
    let heard = feed.news(&last, None).unwrap().seq;
    for second in 2..1100 {
        let health = [HealthStatus::Healthy, HealthStatus::Unhealthy][second as usize % 2];
        last = followed(&last, second, health, 0);
        feed.news(&last, None);
    }
    let batch = feed.news(&last, Some(heard)).unwrap();
    assert_eq!(batch.reset.as_ref().unwrap().scopes, 2);
    assert_eq!(batch.verdicts.len(), 2);
    let near = feed.news(&last, Some(batch.seq - 900)).unwrap();
    assert_eq!((near.reset, near.verdicts.len()), (None, 900));
}

#[test]
fn what_is_no_longer_there_is_gone() {
    let feed = ChangeFeed::default();
    let first = report(1, HealthStatus::Healthy, 0);
    let heard = feed.news(&first, None).unwrap().seq;
    let mut second = followed(&first, 2, HealthStatus::Healthy, 0);
    second.pairs.clear();
    second.revision += 1;
    let batch = feed.news(&second, Some(heard)).unwrap();
    assert_eq!(scopes(&batch), [(PAIR, "gone")]);
    let late = feed.news(&first, Some(batch.seq));
    assert_eq!(late, None, "an older report changes nothing");
}

#[test]
fn only_the_busiest_are_told_and_how_many_are_not() {
    let mut now = report(2, HealthStatus::Healthy, 0);
    let reading = |index: u64| ConsumerReading {
        key: format!("trigger/team-a/t{index}"),
        pending: index,
        oldest_pending: Some(Duration::from_millis(2900)),
        ..ConsumerReading::default()
    };
    now.reading = Arc::new(MeshReading {
        consumers: (1..=1002).map(reading).collect(),
        ..MeshReading::default()
    });
    let numbers = projection::numbers(&now);
    assert_eq!((numbers.consumers.len(), numbers.left_out), (1000, 2));
    assert!(!numbers.consumers.contains_key("trigger/team-a/t2"));
    let busiest = numbers.consumers["trigger/team-a/t1002"];
    assert_eq!(busiest, [0.0, 0.0, 0.0, 1002.0, 2.0, 0.0]);
}

#[test]
fn a_tag_follows_everything_that_can_be_news() {
    let body = json!({"name": "mesh", "health": "Healthy", "at": "1", "planes": {"data": {"evidence": "x"}},
        "heartbeat": {"ageSeconds": 1.0, "lastProbe": "1"}, "items": [{"id": "a"}]});
    let with = |pointer: &str, value: Value| {
        let mut body = body.clone();
        *body.pointer_mut(pointer).unwrap() = value;
        tag::of(&body)
    };
    for moving in [
        "/at",
        "/planes/data/evidence",
        "/heartbeat/ageSeconds",
        "/heartbeat/lastProbe",
    ] {
        assert_eq!(with(moving, json!("other")), tag::of(&body), "{moving}");
    }
    for news in ["/name", "/health", "/items", "/items/0/id", "/heartbeat"] {
        assert_ne!(with(news, json!("other")), tag::of(&body), "{news}");
    }
}

/// An API on a board that says what it is told, by a clock that waits for nobody.
fn api() -> (HealthApi, HealthBoard, Clock) {
    let clock = Clock::simulated(Timestamp::UNIX_EPOCH);
    let board = HealthBoard::default();
    let api = HealthApi::new(board.clone(), clock.clone(), 0xabc);
    (api, board, clock)
}

async fn ask(api: &HealthApi, path: &str, headers: &[(&str, &str)]) -> Response {
    ask_as(Access::administrator("ada"), api, path, headers).await
}

async fn ask_as(access: Access, api: &HealthApi, path: &str, headers: &[(&str, &str)]) -> Response {
    let mut request = Request::get(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut request = request.body(Body::empty()).unwrap();
    request.extensions_mut().insert(access);
    api.clone().router().oneshot(request).await.unwrap()
}

async fn next(body: &mut axum::body::BodyDataStream) -> String {
    let chunk = body.next().await.unwrap().unwrap();
    String::from_utf8(chunk.to_vec()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_stream_tells_changes_stays_alive_and_is_resumed() {
    let (api, board, clock) = api();
    board.publish(report(0, HealthStatus::Healthy, 0));
    let mut body = ask(&api, "/stream", &[])
        .await
        .into_body()
        .into_data_stream();
    let first = next(&mut body).await;
    assert!(
        first.starts_with("retry: 2000\n\nevent: reset\ndata: {"),
        "{first}"
    );
    assert_eq!(first.matches("event: verdict\n").count(), 2, "{first}");
    assert!(first.contains("\n\nid: abc-1\nevent: pulse\n"), "{first}");
    assert_eq!(
        first.matches("id: ").count(),
        1,
        "only a whole batch was heard: {first}"
    );
    assert_eq!(next(&mut body).await, ": alive\nid: abc-1\n\n");
    // The judge is silent, and whoever listens is told.
    clock.sleep(Duration::from_secs(10)).await;
    let silent = next(&mut body).await;
    assert!(silent.contains("\"verdict\":\"unknown\""), "{silent}");
    assert!(silent.contains("ControllerStalled"), "{silent}");
    drop(body);

    board.publish(report(30, HealthStatus::Unhealthy, 0));
    let resumed = ask(&api, "/stream", &[("last-event-id", "abc-2")]).await;
    let text = next(&mut resumed.into_body().into_data_stream()).await;
    assert!(!text.contains("event: reset"), "{text}");
    assert!(text.contains("\"verdict\":\"unhealthy\""), "{text}");
    let foreign = ask(&api, "/stream", &[("last-event-id", "def-2")]).await;
    let text = next(&mut foreign.into_body().into_data_stream()).await;
    assert!(text.contains("event: reset"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn one_topic_and_one_scope_are_all_that_is_told_of_them() {
    let (api, board, _) = api();
    board.publish(report(0, HealthStatus::Healthy, 0));
    let path = "/stream?topics=verdict&scope=application/shop";
    let mut body = ask(&api, path, &[]).await.into_body().into_data_stream();
    let first = next(&mut body).await;
    assert!(first.contains("\"scopes\":1}"), "{first}");
    assert!(
        first.contains(PAIR) && !first.contains("\"mesh\""),
        "{first}"
    );
    assert!(!first.contains("event: pulse"), "{first}");
}

#[tokio::test(start_paused = true)]
async fn a_scope_is_watched_until_it_is_gone() {
    let (api, board, _) = api();
    let path = "/health/applications/shop/namespaces/team-a?watch=1";
    assert_eq!(ask(&api, path, &[]).await.status(), StatusCode::NOT_FOUND);
    let first = report(0, HealthStatus::Healthy, 0);
    board.publish(first.clone());
    let tag = ask(&api, &path.replace("?watch=1", ""), &[]).await;
    let tag = tag.headers()[header::ETAG].to_str().unwrap().to_owned();
    let mut body = ask(&api, path, &[]).await.into_body().into_data_stream();
    let text = next(&mut body).await;
    assert!(
        text.contains(&format!("id: {tag}\nevent: health\n")),
        "{text}"
    );
    assert!(text.contains("\"health\":\"Healthy\""), "{text}");
    // Evidence alone is no news.
    board.publish(followed(&first, 1, HealthStatus::Healthy, 0));
    board.publish(followed(&first, 2, HealthStatus::Unhealthy, 0));
    let text = next(&mut body).await;
    assert!(text.contains("\"health\":\"Unhealthy\""), "{text}");
    let mut empty = followed(&first, 3, HealthStatus::Healthy, 0);
    empty.pairs.clear();
    board.publish(empty);
    assert!(next(&mut body).await.starts_with("event: gone\n"));
    assert!(body.next().await.is_none(), "nothing comes after it");
    let known = ask(&api, "/health?watch=1", &[]).await;
    assert_eq!(known.headers()[header::CONTENT_TYPE], "text/event-stream");
}

#[tokio::test(start_paused = true)]
async fn streams_are_counted_and_a_closed_one_makes_room() {
    let (api, board, _) = api();
    board.publish(report(0, HealthStatus::Healthy, 0));
    let mut open = Vec::new();
    for _ in 0..32 {
        let response = ask(&api, "/stream", &[]).await;
        assert_eq!(response.status(), StatusCode::OK);
        open.push(response);
    }
    let refused = ask(&api, "/health?watch=1", &[]).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.headers()[header::RETRY_AFTER], "5");
    open.pop();
    assert_eq!(ask(&api, "/stream", &[]).await.status(), StatusCode::OK);
}

/// Of two teams each is told of its own, in bodies and in streams.
#[tokio::test(start_paused = true)]
async fn whoever_has_a_role_in_a_namespace_is_told_of_that_one() {
    let (api, board, _) = api();
    let mut both = report(0, HealthStatus::Unhealthy, 10);
    let theirs = NamespaceHealth {
        name: "team-b".to_owned(),
        ..both.pairs.values().next().unwrap().clone()
    };
    let key = ("shop".to_owned(), "team-b".to_owned());
    both.pairs.insert(key, theirs);
    // What all share is not well, through somebody's doing.
    for pair in both.pairs.values_mut() {
        let verdict = &mut pair.verdict;
        verdict.plane = Some(HealthPlane::Dependencies);
        verdict.object = Some("trigger/team-b/hoards".to_owned());
        verdict.evidence = Some("77777 kept".to_owned());
        let beneath = &mut verdict.planes.dependencies;
        (beneath.object, beneath.evidence) = (verdict.object.clone(), verdict.evidence.clone());
        let data = &mut verdict.planes.data;
        data.reason = "MatchingBehind".to_owned();
        data.evidence = Some("77777 events".to_owned());
    }
    // Whoever is busiest takes the places of a pulse.
    let busy = |namespace: &'static str, count: usize| {
        (0..count).map(move |number| ConsumerReading {
            key: format!("trigger/{namespace}/busy-{number}"),
            pending: if namespace == "team-b" { 77777 } else { 1 },
            ..ConsumerReading::default()
        })
    };
    both.reading = Arc::new(MeshReading {
        consumers: busy("team-b", 1500).chain(busy("team-a", 3)).collect(),
        ..MeshReading::default()
    });
    board.publish(both);
    let mut access = Access::administrator("ada");
    access.scope = Scope::Namespaces(["team-a".to_owned()].into());
    let paths = [
        "/health",
        "/health/applications",
        "/topology?all",
        "/stream",
    ];
    for path in paths {
        let response = ask_as(access.clone(), &api, path, &[]).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        let mut body = response.into_body().into_data_stream();
        let text = next(&mut body).await;
        assert!(
            !text.contains("team-b") && !text.contains("77777"),
            "{path}: {text}"
        );
        assert!(
            path != "/stream" || text.contains("\"leftOut\":3"),
            "{text}"
        );
    }
    let mut nobody = access.clone();
    nobody.scope = Scope::Namespaces(["team-c".to_owned()].into());
    let response = ask_as(nobody, &api, "/stream", &[]).await;
    let mut body = response.into_body().into_data_stream();
    let text = next(&mut body).await;
    assert!(!text.contains("team-") && !text.contains("mesh"), "{text}");
    let path = "/health/applications/shop/namespaces/team-b";
    let response = ask_as(access, &api, path, &[]).await;
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
}
