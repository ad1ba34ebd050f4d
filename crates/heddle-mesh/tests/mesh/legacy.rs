//! The publish API of old Kyma: what its publishers send and what they are told, byte by byte and over a crash.
//!
//! `tests/legacy` has requests with the answers that the two generations of old servers gave, written from what is known of
//! them. Where ours is another, the entry says so and why, as `waived`; where only one generation took a request, `strict` is
//! what the other said. `*` stands for any text, and the order of members does not matter. In a success the words are those
//! of the first generation: the second left them empty.

mod slow_log;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use heddle_mesh::log::AppendRefused;
use heddle_mesh::path::source::legacy::LegacySettings;
use heddle_mesh::who::Who;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use proptest::prelude::*;
use serde_json::{Value, json};

use self::slow_log::SlowLog;
use crate::world::World;

const CORPUS: [&str; 3] = [
    include_str!("../legacy/v1.json"),
    include_str!("../legacy/v2.json"),
    include_str!("../legacy/paths.json"),
];

/// An answer: its status, its body if there is one, and its headers.
#[derive(Debug)]
struct Said {
    status: u16,
    body: Value,
    headers: http::HeaderMap,
}

impl Said {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

/// A shop whose orders a namespace wants, and who else the corpus knows.
fn stage(mut world: World) -> World {
    for name in ["shop", "crm", "v1"] {
        world.application(name);
    }
    let asleep = json!({
        "apiVersion": "", "kind": "", "metadata": {"name": "asleep"},
        "spec": {"services": [], "skipInstallation": true},
    });
    let asleep = serde_json::from_value(asleep).unwrap();
    world.resources.applications.push(Arc::new(asleep));
    world.linked("shop", "ns");
    let of = |attributes: Value| json!({"spec": {"filter": {"attributes": attributes}}});
    let created = json!({"source": "shop", "type": "order.created", "eventtypeversion": "v1"});
    world.trigger("created", "a", of(created));
    let cancelled = |version: &str| json!({"exact": {"eventtypeversion": version}});
    let filters = json!([
        {"exact": {"source": "shop", "type": "order.cancelled"}},
        {"any": [cancelled("v1"), cancelled("v2")]},
    ]);
    world.trigger("cancelled", "b", json!({"spec": {"filters": filters}}));
    // What is asked for of nobody in particular is in nobody's list.
    let anybodys = json!({"type": "refund.made", "eventtypeversion": "v1"});
    world.trigger("refunds", "c", of(anybodys));
    world
}

async fn in_memory() -> World {
    let world = stage(World::in_memory().await);
    world.route().await;
    world
}

async fn ask(
    world: &World,
    who: &Who,
    settings: LegacySettings,
    request: Request<Full<Bytes>>,
) -> Said {
    let source = world.mesh.source().with_legacy(settings);
    let response = source.handle(who, request).await;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let body = response.into_body().collect().await.unwrap().to_bytes();
    Said {
        status,
        body: serde_json::from_slice(&body).unwrap_or_default(),
        headers,
    }
}

async fn post(world: &World, path: &str, body: impl Into<Bytes>) -> Said {
    let request = Request::post(path).body(Full::new(body.into())).unwrap();
    ask(world, &Who::Anonymous, LegacySettings::default(), request).await
}

fn id(number: u32) -> String {
    format!("b0000000-0000-4000-8000-{number:012x}")
}

fn publish(id: &str, data: &str) -> String {
    format!(
        r#"{{"event-type":"order.created","event-type-version":"v1","event-id":"{id}","event-time":"2020-03-25T13:45:00Z","data":{data}}}"#
    )
}

/// The corpus, request by request.
fn requests() -> Vec<Value> {
    let parsed = CORPUS.iter().flat_map(|text| {
        let cases: Vec<Value> = serde_json::from_str(text).unwrap();
        cases
    });
    parsed.collect()
}

fn request_of(case: &Value) -> Request<Full<Bytes>> {
    let request = &case["request"];
    let text = |key: &str| request[key].as_str().unwrap_or_default();
    let mut body = text("body").to_owned();
    if let Some(bytes) = request["padTo"].as_u64() {
        let missing = usize::try_from(bytes).unwrap() - (body.len() - "PAD".len());
        body = body.replace("PAD", &"x".repeat(missing));
    }
    let mut builder = Request::builder().method(text("method")).uri(text("path"));
    for (name, value) in request["headers"].as_object().into_iter().flatten() {
        builder = builder.header(name, value.as_str().unwrap());
    }
    builder.body(Full::from(body)).unwrap()
}

/// Whether two answers are the same, once `*` stands for any text.
fn is_like(expected: &Value, got: &Value) -> bool {
    match (expected, got) {
        (Value::String(any), Value::String(_)) if any == "*" => true,
        (Value::Object(expected), Value::Object(got)) => {
            expected.len() == got.len()
                && expected
                    .iter()
                    .all(|(name, value)| got.get(name).is_some_and(|got| is_like(value, got)))
        }
        (Value::Array(expected), Value::Array(got)) => {
            expected.len() == got.len()
                && expected
                    .iter()
                    .zip(got)
                    .all(|(one, other)| is_like(one, other))
        }
        (expected, got) => expected == got,
    }
}

#[tokio::test(start_paused = true)]
async fn requests_of_old_publishers_are_answered_as_they_were() {
    let cases = requests();
    assert!(cases.len() >= 60, "{}", cases.len());
    let mut wrong = Vec::new();
    for strict in [false, true] {
        let world = in_memory().await;
        let settings = LegacySettings {
            strict,
            ..LegacySettings::default()
        };
        for case in &cases {
            let waived = &case["waived"];
            if !waived.is_null() {
                assert!(
                    waived["reason"]
                        .as_str()
                        .is_some_and(|reason| !reason.is_empty())
                );
                assert_ne!(waived["answer"], case["answer"], "{case}");
            }
            let recorded = waived.get("answer").unwrap_or_else(|| &case["answer"]);
            let expected = case.get("strict").filter(|_| strict).unwrap_or(recorded);
            let said = ask(&world, &Who::Anonymous, settings, request_of(case)).await;
            let got = json!({"status": said.status, "body": said.body});
            if !is_like(expected, &got) {
                wrong.push(format!("{} (strict: {strict}): {got}", case["name"]));
            }
            assert_eq!(said.status == 405, said.header("allow").is_some(), "{case}");
            assert!(said.status != 503 || said.header("retry-after").is_some());
        }
    }
    assert_eq!(wrong, [""; 0], "{wrong:#?}");
}

#[tokio::test(start_paused = true)]
async fn what_only_one_generation_took_is_counted() {
    let world = in_memory().await;
    for case in requests() {
        ask(
            &world,
            &Who::Anonymous,
            LegacySettings::default(),
            request_of(&case),
        )
        .await;
    }
    let cases = requests();
    let lenient = cases.iter().filter(|case| case.get("strict").is_some());
    let text = world.mesh.metrics_text();
    let line = format!(
        "heddle_legacy_lenient_total{{app=\"shop\"}} {}",
        lenient.count()
    );
    assert!(text.contains(&line), "{line} is not in {text}");
    for line in [
        "heddle_legacy_requests_total{app=\"shop\",api=\"subscribed\",code=\"2xx\"} 2",
        "heddle_legacy_requests_total{app=\"crm\",api=\"subscribed\",code=\"2xx\"} 1",
        "heddle_legacy_requests_total{app=\"asleep\",api=\"v1\",code=\"5xx\"} 1",
        "heddle_legacy_requests_total{app=\"\",api=\"v1\",code=\"4xx\"}",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_is_translated_and_its_data_arrives_byte_for_byte() {
    let world = in_memory().await;
    let inputs = [
        "9007199254740993",
        "10.10",
        "123456789012345678901234567890",
        r#"{"z":1,"a":{"y":2,"b":[1.0,1e2,-0]},"a":3}"#,
        "[ 1 ,\t2 ]",
        r#""text with \u00e9 and \" and é""#,
    ];
    for (number, data) in (0..).zip(inputs) {
        let request = Request::post("/shop/v1/events")
            .header("ce-shelf", "b 7")
            .header("ce-source", "somebody-else")
            .header("ce-my-extension", "left out")
            .header("x-b3-traceid", "463ac35c9f6413ad")
            .header("x-b3-spanid", "a2fb4a1d1a96d312")
            .header("x-b3-sampled", "1")
            .header("x-request-id", "request-1")
            .body(Full::from(publish(&id(number), data)))
            .unwrap();
        let said = ask(&world, &Who::Anonymous, LegacySettings::default(), request).await;
        assert_eq!(
            (said.status, &said.body["status"]),
            (200, &json!("published"))
        );
    }
    world.until_delivered("created", inputs.len() as u64).await;
    let mut received = world.deliveries("a");
    received.sort_by(|one, other| one.id.cmp(&other.id));
    for (seen, data) in received.iter().zip(inputs) {
        assert_eq!(seen.body, data, "the data changed on its way");
        for (name, value) in [
            ("ce-specversion", "1.0"),
            ("ce-type", "order.created"),
            ("ce-source", "shop"),
            ("ce-sourceid", "shop"),
            ("ce-eventtypeversion", "v1"),
            ("ce-time", "2020-03-25T13:45:00Z"),
            ("ce-shelf", "b%207"),
            ("content-type", "application/json"),
            ("x-request-id", "request-1"),
        ] {
            assert_eq!(seen.headers[name], value, "{name}");
        }
        let parent = seen.headers["traceparent"].to_str().unwrap();
        assert!(
            parent.starts_with("00-0000000000000000463ac35c9f6413ad-"),
            "{parent}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_second_form_is_translated_with_its_extensions() {
    let world = in_memory().await;
    let body = json!({
        "specversion": "0.3", "id": id(1), "type": "order.created", "eventtypeversion": "v1",
        "time": "2020-03-25T13:45:00Z", "source": "ignored", "subject": "order-17", "count": 3,
        "schemaurl": "https://example.com/order", "datacontenttype": "text/plain",
        "datacontentencoding": "base64", "data": "AAEC/w==",
    });
    let said = post(&world, "/shop/v2/events", body.to_string()).await;
    assert_eq!(said.status, 200, "{said:?}");
    world.until_delivered("created", 1).await;
    let seen = &world.deliveries("a")[0];
    assert_eq!(&*seen.body, [0, 1, 2, 255]);
    for (name, value) in [
        ("ce-source", "shop"),
        ("ce-subject", "order-17"),
        ("ce-count", "3"),
        ("ce-dataschema", "https://example.com/order"),
        ("content-type", "text/plain"),
    ] {
        assert_eq!(seen.headers[name], value, "{name}");
    }
}

/// JSON as somebody may write it, with the numbers and the order that a reader would change.
fn any_json() -> impl Strategy<Value = String> {
    let text = "[ -~é€]{0,8}".prop_map(|text| json!(text).to_string());
    let leaf = prop_oneof![
        "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?",
        text.clone(),
        Just("true".to_owned()),
        Just("null".to_owned()),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let space = "[ \t\n\r]{0,2}";
        let list = (prop::collection::vec(inner.clone(), 0..4), space)
            .prop_map(|(items, space)| format!("[{space}{}]", items.join(&format!("{space},"))));
        let member = (text.clone(), inner).prop_map(|(name, value)| format!("{name} : {value}"));
        let map = (prop::collection::vec(member, 0..4), space)
            .prop_map(|(members, space)| format!("{{{}{space}}}", members.join(",")));
        prop_oneof![list, map]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_data_is_kept_byte_for_byte(data in any_json()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let world = in_memory().await;
            let said = post(&world, "/shop/v1/events", publish(&id(1), &data)).await;
            let empty = ["null", "\"\""].contains(&&*data);
            assert_eq!(said.status, if empty { 400 } else { 200 }, "{data}: {said:?}");
            if !empty {
                world.until_delivered("created", 1).await;
                assert_eq!(world.deliveries("a")[0].body, data);
            }
        });
    }
}

#[tokio::test(start_paused = true)]
async fn what_nobody_wants_is_kept_and_can_be_traced() {
    let world = in_memory().await;
    let body = publish(&id(1), "1").replace("order.created", "order.lost");
    let said = post(&world, "/shop/v1/events", body).await;
    assert_eq!(
        (said.status, &said.body["status"]),
        (200, &json!("ignored"))
    );
    world.mesh.settled().await;
    assert_eq!(world.mesh.trace(&id(1), "shop").unwrap().events.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn one_id_is_appended_once_however_often_it_comes() {
    for world in World::each() {
        let mut world = stage(world);
        world.route().await;
        let same = || post(&world, "/shop/v1/events", publish(&id(1), "1"));
        let at_once = join_all((0..10).map(|_| same())).await;
        let first = &at_once[0].body;
        assert_eq!(first["status"], "published");
        assert!(
            at_once
                .iter()
                .all(|said| said.status == 200 && said.body == *first)
        );
        assert_eq!(same().await.body, *first, "later");
        world.until_delivered("created", 1).await;
        // A new process has to ask the log.
        for crash in [false, true] {
            if crash {
                world.crash().await
            } else {
                world.restart().await
            }
            world.route().await;
            let again = post(&world, "/shop/v1/events", publish(&id(1), "1")).await;
            assert_eq!((again.status, again.body == *first), (200, true), "{crash}");
        }
        let other = post(&world, "/shop/v1/events", publish(&id(2), "2")).await;
        assert_eq!(other.status, 200);
        world.mesh.settled().await;
        let count = |number| world.mesh.trace(&id(number), "shop").unwrap().events.len();
        assert_eq!((count(1), count(2)), (1, 1));
        // The same id of another Application is another event.
        assert_eq!(
            post(&world, "/crm/v1/events", publish(&id(1), "1"))
                .await
                .status,
            200
        );
        assert_eq!(world.mesh.trace(&id(1), "crm").unwrap().events.len(), 1);
        // And the native door has no such promise.
        let native = Request::post("/shop/events")
            .header("ce-specversion", "1.0")
            .header("ce-id", id(2))
            .header("ce-source", "shop")
            .header("ce-type", "order.created")
            .body(Full::default())
            .unwrap();
        let native = ask(&world, &Who::Anonymous, LegacySettings::default(), native).await;
        assert_eq!((native.status, count(2)), (202, 2));
    }
}

#[tokio::test(start_paused = true)]
async fn an_id_counts_again_after_the_window() {
    for remembered in [true, false] {
        let mut world = stage(World::on_disk());
        world.route().await;
        let publish = |world: &World| {
            let request = Request::post("/shop/v1/events")
                .body(Full::from(publish(&id(1), "1")))
                .unwrap();
            let settings = LegacySettings {
                repeat_window: Duration::from_secs(60),
                ..LegacySettings::default()
            };
            let source = world.mesh.source().with_legacy(settings);
            async move { source.handle(&Who::Anonymous, request).await.status() }
        };
        let count = |world: &World| world.mesh.trace(&id(1), "shop").unwrap().events.len();
        assert_eq!(publish(&world).await, 200);
        if !remembered {
            world.crash().await;
            world.route().await;
        }
        world.pass(55).await;
        assert_eq!((publish(&world).await.as_u16(), count(&world)), (200, 1));
        world.pass(10).await;
        assert_eq!((publish(&world).await.as_u16(), count(&world)), (200, 2));
    }
}

#[tokio::test(start_paused = true)]
async fn an_append_on_its_way_is_waited_for_also_by_whoever_comes_after_it_was_given_up() {
    for gives_up in [false, true] {
        let mut world = stage(World::in_memory().await);
        world.die().await;
        let log = SlowLog::over(Arc::clone(&world.log));
        world.log = Arc::clone(&log) as _;
        world.begin();
        world.route().await;
        let same = || post(&world, "/shop/v1/events", publish(&id(1), "1"));
        let mut first = Box::pin(same());
        assert!(futures::poll!(first.as_mut()).is_pending());
        if gives_up {
            drop(first);
            first = Box::pin(same());
        }
        let mut others = Box::pin(join_all((0..9).map(|_| same())));
        assert!(futures::poll!(others.as_mut()).is_pending());
        assert!(
            futures::poll!(first.as_mut()).is_pending(),
            "not before it is safe"
        );
        log.answer();
        let (first, others) = futures::join!(first, others);
        assert_eq!(
            (first.status, &first.body["status"]),
            (200, &json!("published"))
        );
        assert!(
            others
                .iter()
                .all(|said| said.status == 200 && said.body == first.body)
        );
        assert_eq!(log.appends(), 1, "gave up: {gives_up}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_answered_200_is_there_after_the_power_failed() {
    let mut world = stage(World::on_disk());
    world.route().await;
    let mut accepted = 0;
    for round in 0..5_u32 {
        for number in 0..20 {
            let number = round * 20 + number;
            let said = post(&world, "/shop/v1/events", publish(&id(number), "1")).await;
            assert_eq!(said.status, 200, "{said:?}");
            accepted += 1;
        }
        world.crash().await;
        world.route().await;
    }
    for number in 0..accepted {
        let events = world.mesh.trace(&id(number), "shop").unwrap().events;
        assert_eq!(events.len(), 1, "{number}");
    }
    world
        .until("all of them to arrive", |world| {
            let mut received = world.received_sorted("a");
            received.dedup();
            received.len() == accepted as usize
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_kept_is_never_answered_200() {
    let (world, log) = World::in_memory_that_refuses();
    let mut world = stage(world);
    let early = post(&world, "/shop/v1/events", publish(&id(1), "1")).await;
    assert_eq!(
        (early.status, early.header("retry-after")),
        (503, Some("1"))
    );
    let ready = async |world: &World| {
        let probe = Request::get("/v1/status/ready")
            .body(Full::default())
            .unwrap();
        ask(world, &Who::Anonymous, LegacySettings::default(), probe)
            .await
            .status
    };
    assert_eq!(ready(&world).await, 503);
    world.route().await;
    assert_eq!(ready(&world).await, 200);
    for (refusal, status, type_, pause) in [
        (AppendRefused::Full, 507, "insufficient_storage", "10"),
        (AppendRefused::Busy, 429, "too_many_requests", "1"),
        (
            AppendRefused::Exhausted("files".to_owned()),
            503,
            "service_unavailable",
            "1",
        ),
        (
            AppendRefused::Undetermined("torn".to_owned()),
            503,
            "service_unavailable",
            "10",
        ),
    ] {
        log.refuse(Some(refusal));
        let said = post(&world, "/shop/v1/events", publish(&id(1), "1")).await;
        assert_eq!(
            (said.status, said.body["type"].as_str()),
            (status, Some(type_)),
            "{said:?}"
        );
        assert_eq!(said.body["status"], status);
        assert_eq!(said.header("retry-after"), Some(pause), "{said:?}");
    }
    log.refuse(None);
    let said = post(&world, "/shop/v1/events", publish(&id(1), "1")).await;
    assert_eq!(said.status, 200, "what was refused was not published");
    world.until_delivered("created", 1).await;
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_same_identities_and_policies_hold_as_at_the_native_door() {
    let world = in_memory().await;
    let shop = Who::Application("shop".into());
    let publish = async |who: &Who, path: &str, number| {
        let body = Full::from(publish(&id(number), "1"));
        let request = Request::post(path)
            .header("source-id", "shop")
            .body(body)
            .unwrap();
        ask(&world, who, LegacySettings::default(), request).await
    };
    assert_eq!(publish(&shop, "/shop/v1/events", 1).await.status, 200);
    assert_eq!(publish(&shop, "/v1/events", 2).await.status, 200);
    assert_eq!(
        publish(&Who::Administrator, "/crm/v1/events", 3)
            .await
            .status,
        200
    );
    for (path, number) in [("/crm/v1/events", 4), ("/nobody/v1/events", 5)] {
        let said = publish(&shop, path, number).await;
        assert_eq!(
            (said.status, &said.body["code"]),
            (403, &json!(403)),
            "{said:?}"
        );
        assert!(
            said.body["error"].as_str().unwrap().contains("EventPolicy"),
            "{said:?}"
        );
    }
    let crm = Who::Application("crm".into());
    assert_eq!(publish(&crm, "/v1/events", 6).await.status, 403);
    let list = Request::get("/shop/v1/events/subscribed")
        .body(Full::default())
        .unwrap();
    assert_eq!(
        ask(&world, &crm, LegacySettings::default(), list)
            .await
            .status,
        403
    );
    let reserved = self::publish(&id(7), "1").replace("order.created", "dev.heddle.heartbeat.x");
    assert_eq!(post(&world, "/shop/v1/events", reserved).await.status, 403);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_that_api_is_announced_where_somebody_says_so() {
    let mut world = stage(World::in_memory().await);
    let annotations = json!({
        "heddle.dev/legacy-deprecation": "2026-01-01T00:00:00Z",
        "heddle.dev/legacy-sunset": "2027-01-01T00:00:00Z",
        "heddle.dev/legacy-link": "https://example.com/move",
    });
    let crm = json!({
        "apiVersion": "", "kind": "", "metadata": {"name": "crm", "annotations": annotations},
        "spec": {"services": []},
    });
    let crm = Arc::new(serde_json::from_value(crm).unwrap());
    let applications = &mut world.resources.applications;
    applications.retain(|one| one.metadata.name.as_deref() != Some("crm"));
    applications.push(crm);
    world.route().await;
    let told = post(&world, "/crm/v1/events", publish(&id(1), "1")).await;
    assert_eq!(told.header("deprecation"), Some("@1767225600"));
    assert_eq!(told.header("sunset"), Some("Fri, 01 Jan 2027 00:00:00 GMT"));
    let link = "<https://example.com/move>; rel=\"deprecation\"";
    assert_eq!(told.header("link"), Some(link));
    let refused = post(&world, "/crm/v1/events", "{}").await;
    assert_eq!((refused.status, refused.header("link")), (400, Some(link)));
    let other = post(&world, "/shop/v1/events", publish(&id(1), "1")).await;
    for name in ["deprecation", "sunset", "link"] {
        assert_eq!(other.header(name), None, "{name}");
    }
}
