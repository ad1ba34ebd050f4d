//! A collector of the test gets what it should, once, and nobody waits for it.

use heddle_api::attributes::Value as Attribute;
use heddle_mesh::Span;
use heddle_mesh::event::{Builder, Event, Form};
use heddle_mesh::observer::Seen;
use heddle_rt::shutdown::{End, Interrupts};
use heddle_rt::{DiskVfs, net};
use jiff::Timestamp;
use serde_json::json;

use super::*;
use crate::client::ClientArgs;
use crate::client::stand_in::StandIn;
use crate::config::Config;
use crate::wire::{self, Running};

const TRACES: &str = "POST /v1/traces";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

fn world(clock: Clock) -> World {
    World {
        clock,
        chance: Chance::seeded(7),
        vfs: Arc::new(DiskVfs),
    }
}

fn event(id: &str) -> Event {
    let mut builder = Builder::new(Form::Binary);
    for (name, value) in [("type", "order.created"), ("source", "/shop"), ("id", id)] {
        builder.push(name, Attribute::Text(value));
    }
    builder.build(None)
}

fn seen(event: &Event) -> Seen<'_> {
    Seen {
        span: Span::read(&format!("00-{TRACE}-00f067aa0ba902b7-01")).unwrap(),
        parent: u64::from_str_radix(PARENT, 16).ok(),
        state: "vendor=1",
        event,
        offset: 12,
        ended: "2026-01-01T00:00:01Z".parse().unwrap(),
        took: Duration::from_micros(1500),
    }
}

fn tell(exporter: &Exporter, ids: std::ops::Range<usize>) {
    let observer = exporter.observer();
    for id in ids {
        observer.accepted(&Accepted {
            seen: seen(&event(&id.to_string())),
            entry: "broker/team-a/default",
        });
    }
}

fn counts(exporter: &Exporter) -> (u64, u64) {
    let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
    (load(&exporter.intake.sent), load(&exporter.intake.dropped))
}

/// Waits until a condition holds; a failsafe ends what never happens.
async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let clock = Clock::system();
    let looking = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            clock.sleep(Duration::from_millis(5)).await;
        }
    };
    let found = clock.timeout(Duration::from_secs(60), looking).await;
    found.unwrap_or_else(|_| panic!("never happened: {what}"))
}

/// All spans that a collector was sent.
fn spans(collector: &StandIn) -> Vec<Value> {
    let asked = collector.asked().into_iter();
    let asked = asked.filter(|asked| asked.line == TRACES);
    let of = |body: Value| body["resourceSpans"][0]["scopeSpans"][0]["spans"].clone();
    let batches = asked.map(|asked| of(asked.json()));
    batches
        .flat_map(|batch| batch.as_array().unwrap().clone())
        .collect()
}

fn attribute(span: &Value, key: &str) -> Value {
    let attributes = span["attributes"].as_array().unwrap();
    let found = attributes.iter().find(|attribute| attribute["key"] == key);
    found
        .map(|found| found["value"].clone())
        .unwrap_or_default()
}

#[test]
fn a_span_is_written_as_the_specification_has_it() {
    let event = event("1");
    let coming = Record::of_accepted(&Accepted {
        seen: seen(&event),
        entry: "broker/team-a/default",
    });
    let failed = Record::of_attempted(&Attempted {
        seen: Seen {
            parent: None,
            state: "",
            ..seen(&event)
        },
        consumer: "trigger/team-a/orders",
        sink: true,
        number: 2,
        status: 503,
        error: Some("the subscriber answered 503"),
    });
    let mut request = json::request(&[coming, failed]);
    let resource = &mut request["resourceSpans"][0];
    let version = json!({"stringValue": env!("CARGO_PKG_VERSION")});
    assert_eq!(resource["resource"]["attributes"][1]["value"], version);
    insta::assert_json_snapshot!(resource["scopeSpans"][0]["spans"]);
}

#[test]
fn what_strangers_write_is_cut_in_whole_characters() {
    assert_eq!(record::cut("short"), "short");
    let long = "é".repeat(2000);
    let cut = record::cut(&long);
    assert!(cut.len() <= 1024 && long.starts_with(cut), "{}", cut.len());
    let odd = format!("x{long}");
    assert_eq!(record::cut(&odd).len(), 1023);
}

#[test]
fn only_an_address_can_be_an_endpoint() {
    for good in ["http://127.0.0.1:4318", "https://collector/otlp"] {
        check(good).unwrap();
    }
    for bad in [
        "127.0.0.1:4318",
        "grpc://a",
        "/v1/traces",
        "http://me:secret@collector",
        "http://a?x=y",
    ] {
        let said = check(bad).unwrap_err().to_string();
        assert!(said.contains("http://127.0.0.1:4318"), "{said}");
    }
}

#[test]
fn what_finds_no_room_is_dropped_and_counted() {
    let (intake, _waiting) = Intake::new();
    let exporter = Exporter {
        intake,
        clock: Clock::system(),
        tasks: Tasks::new("test"),
    };
    tell(&exporter, 0..QUEUE_MAX + 3);
    assert_eq!(counts(&exporter), (0, 3));
    let text = exporter.metrics_text();
    assert!(
        text.contains("\nheddle_otlp_spans_dropped_total 3\n"),
        "{text}"
    );
}

#[tokio::test]
async fn batches_are_bounded_sent_again_when_that_may_help_and_given_up_when_not() {
    let collector = StandIn::start().await;
    let tasks = Tasks::new("test");
    let world = world(Clock::system());
    // A path of its own is kept.
    let traces = "POST /otlp/v1/traces";
    collector
        .answers(traces, 503, &json!({}))
        .answers(traces, 200, &json!({}))
        .answers(traces, 400, &json!({}))
        .answers(
            traces,
            200,
            &json!({"partialSuccess": {"rejectedSpans": "2"}}),
        );
    let endpoint = format!("{}/otlp/", collector.url);
    let exporter = Exporter::start(&endpoint, &world, &tasks).unwrap();
    tell(&exporter, 0..BATCH_MAX * 2 + 5);
    until("all sent", async || {
        let (sent, dropped) = counts(&exporter);
        (sent + dropped == BATCH_MAX as u64 * 2 + 5).then_some(())
    })
    .await;
    // The first batch was taken at the second try, the second was refused, and of the last all but two were taken.
    assert_eq!(
        counts(&exporter),
        (BATCH_MAX as u64 + 3, BATCH_MAX as u64 + 2)
    );
    let asked = collector.asked();
    let sizes: Vec<usize> = asked
        .iter()
        .map(|asked| {
            asked.json()["resourceSpans"][0]["scopeSpans"][0]["spans"]
                .as_array()
                .unwrap()
                .len()
        })
        .collect();
    assert_eq!(sizes, [BATCH_MAX, BATCH_MAX, BATCH_MAX, 5]);
    assert_eq!(asked[0].body, asked[1].body, "the same, once more");
    assert_eq!(asked[0].header("content-type"), "application/json");
    exporter.close(Duration::from_secs(10)).await;
}

#[tokio::test(start_paused = true)]
async fn a_collector_that_never_answers_does_not_keep_the_process() {
    let clock = Clock::simulated(Timestamp::UNIX_EPOCH);
    let deaf = net::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
    let tasks = Tasks::new("test");
    let endpoint = format!("http://{}", deaf.address());
    let exporter = Exporter::start(&endpoint, &world(clock.clone()), &tasks).unwrap();
    tell(&exporter, 0..3);
    let patience = REQUEST_TIME_MAX / 2;
    let begun = clock.monotonic();
    exporter.close(patience).await;
    assert_eq!(clock.monotonic().saturating_sub(begun), patience);
    tell(&exporter, 0..2);
    assert_eq!(counts(&exporter), (0, 2), "nobody reads any more");
}

/// A server with a broker and a trigger, and what talks to it.
struct Stage {
    remote: Remote,
    events: Remote,
    _dir: tempfile::TempDir,
}

async fn stage(collector: &StandIn, subscriber: &StandIn) -> (Running, Stage) {
    let dir = tempfile::tempdir().unwrap();
    let any = ([127, 0, 0, 1], 0).into();
    let mut config = Config::default();
    config.data_dir = dir.path().join("data");
    (config.listen, config.events) = (any, any);
    config.otlp_endpoint = Some(collector.url.clone());
    let running = Box::pin(wire::start(&config, &World::real()))
        .await
        .unwrap();
    let client = ClientArgs {
        kubeconfig: Some(running.published.kubeconfig.clone().into()),
        context: None,
        data_dir: config.data_dir.clone(),
    };
    let events = &running.published.events;
    let stage = Stage {
        remote: Remote::connect(&client).await.unwrap(),
        events: Remote::anonymous(events.parse().unwrap(), events.clone()).unwrap(),
        _dir: dir,
    };
    let group = "/apis/eventing.knative.dev/v1/namespaces/default";
    let broker = json!({
        "apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "metadata": {"name": "default"},
    });
    let trigger = json!({
        "apiVersion": "eventing.knative.dev/v1", "kind": "Trigger", "metadata": {"name": "orders"},
        "spec": {"broker": "default", "subscriber": {"uri": format!("{}/orders", subscriber.url)},
            "delivery": {"retry": 2, "backoffDelay": "PT0.01S"}},
    });
    for (plural, object) in [("brokers", broker), ("triggers", trigger)] {
        let request = Request::post(format!("{group}/{plural}"))
            .header(header::CONTENT_TYPE, "application/json")
            .body(object.to_string().into_bytes());
        let answer = stage.remote.send(request.unwrap()).await.unwrap();
        assert_eq!(answer.code, StatusCode::CREATED, "{}", answer.text());
    }
    until("the trigger is ready", async || {
        let request = Request::get(format!("{group}/triggers/orders"));
        let answer = stage
            .remote
            .send(request.body(Vec::new()).unwrap())
            .await
            .unwrap();
        let trigger = answer.ok("trigger").unwrap();
        let conditions = trigger["status"]["conditions"].as_array()?.clone();
        let ready =
            |condition: &&Value| condition["type"] == "Ready" && condition["status"] == "True";
        conditions.iter().find(ready).map(drop)
    })
    .await;
    (running, stage)
}

impl Stage {
    async fn publish(&self, id: &str) {
        let request = Request::post("/broker/default/default")
            .header("ce-specversion", "1.0")
            .header("ce-type", "order.created")
            .header("ce-source", "/shop")
            .header("ce-id", id)
            .header("traceparent", format!("00-{TRACE}-{PARENT}-01"))
            .body(Vec::new())
            .unwrap();
        let answer = self.events.send(request).await.unwrap();
        assert_eq!(answer.code, StatusCode::ACCEPTED, "{}", answer.text());
    }
}

#[tokio::test]
async fn the_trace_of_a_publisher_goes_through_heddle_to_the_subscriber() {
    let (collector, subscriber) = (StandIn::start().await, StandIn::start().await);
    collector.answers(TRACES, 200, &json!({}));
    subscriber
        .answers("POST /orders", 503, &json!({}))
        .answers("POST /orders", 200, &json!({}));
    let (running, stage) = stage(&collector, &subscriber).await;
    let (stop, mut told_to_stop) = Interrupts::manual();
    let story = async {
        stage.publish("1").await;
        let spans = until("three spans", async || {
            let spans = spans(&collector);
            (spans.len() >= 3).then_some(spans)
        })
        .await;
        assert_eq!(spans.len(), 3, "{spans:#?}");
        assert!(spans.iter().all(|span| span["traceId"] == TRACE));
        // The subscriber may have answered before the publisher's own answer was on its way.
        let numbered = |number: &str| {
            let number = json!({"intValue": number});
            let mut all = spans.iter();
            all.find(|span| attribute(span, "heddle.attempt") == number)
        };
        let coming = spans.iter().find(|span| span["kind"] == 2).unwrap();
        let (first, second) = (numbered("1").unwrap(), numbered("2").unwrap());
        assert_eq!(coming["name"], "source broker/default/default");
        assert_eq!(
            (&coming["kind"], &coming["parentSpanId"]),
            (&json!(2), &json!(PARENT))
        );
        let told: Vec<String> = subscriber
            .asked()
            .iter()
            .map(|asked| asked.header("traceparent").to_owned())
            .collect();
        for (index, (attempt, status)) in [(first, "503"), (second, "200")].into_iter().enumerate()
        {
            assert_eq!(attempt["name"], "delivery trigger/default/orders");
            assert_eq!(attempt["kind"], 3);
            assert_eq!(attempt["parentSpanId"], coming["spanId"]);
            let span = attempt["spanId"].as_str().unwrap();
            assert_eq!(told[index], format!("00-{TRACE}-{span}-01"));
            let status = json!({"intValue": status});
            assert_eq!(attribute(attempt, "http.response.status_code"), status);
        }
        assert_eq!(
            (&first["status"]["code"], &second["status"]),
            (&json!(2), &Value::Null)
        );
        let metrics = Request::get("/metrics")
            .header("accept", "application/openmetrics-text")
            .body(Vec::new())
            .unwrap();
        let metrics = stage.remote.send(metrics).await.unwrap().text();
        assert!(
            metrics.contains("\nheddle_otlp_spans_dropped_total 0\n"),
            "{metrics}"
        );
        assert!(metrics.ends_with("# EOF\n"));
        // The last one leaves with the process.
        stage.publish("2").await;
        stop.send(()).await.unwrap();
    };
    let (ended, ()) = tokio::join!(running.until_ended(&mut told_to_stop), story);
    assert_eq!(ended.unwrap(), End::Clean);
    let last =
        |span: &&Value| attribute(span, "cloudevents.event_id") == json!({"stringValue": "2"});
    let spans = spans(&collector);
    let names: Vec<&Value> = spans
        .iter()
        .filter(last)
        .map(|span| &span["name"])
        .collect();
    assert!(
        names.contains(&&json!("source broker/default/default")),
        "{names:?}"
    );
}
