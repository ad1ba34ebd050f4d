//! How a way through the mesh reads, and when following ends.

use heddle_api::ledger::{Attempt, BadReply, Cause, ConsumerTrace, EventState};
use jiff::Timestamp;
use serde_json::json;

use super::*;
use crate::client::stand_in::StandIn;
use crate::cmd::testing::{Screen, world};
use crate::failure::exit_code;

fn at(seconds: &str) -> Timestamp {
    format!("2026-01-01T10:00:{seconds}Z").parse().unwrap()
}

fn attempt(number: u32, seconds: &str, status: Option<u16>, error: Option<&str>) -> Attempt {
    Attempt {
        number,
        at: at(seconds),
        status,
        latency_ms: 12.5,
        error: error.map(str::to_owned),
        to_dead_letter_sink: false,
        bad_reply: None,
    }
}

fn verdict(consumer: &str, state: EventState, reason: &str) -> ConsumerTrace {
    ConsumerTrace {
        consumer: consumer.to_owned(),
        via: vec![
            "subscription/kyma-integration/shop".to_owned(),
            "broker/team-a/default".to_owned(),
        ],
        state,
        reason: reason.to_owned(),
        attempts: Vec::new(),
        next_attempt_at: None,
        ended_at: None,
    }
}

fn event(verdicts: Vec<ConsumerTrace>, summary: &str) -> TracedEvent {
    TracedEvent {
        offset: 42,
        source: "/shop".to_owned(),
        id: "order-17".to_owned(),
        type_: "order.created".to_owned(),
        accepted_at: at("00.5"),
        entry: "channel/kyma-integration/shop".to_owned(),
        request_id: None,
        data_bytes: 1,
        cause: None,
        verdicts,
        summary: summary.to_owned(),
    }
}

fn trace(events: Vec<TracedEvent>) -> Trace {
    Trace {
        events,
        ..Trace::default()
    }
}

fn retrying() -> TracedEvent {
    let mut orders = verdict("trigger/team-a/orders", EventState::Delivered, "");
    orders.attempts = vec![attempt(1, "00.6", Some(202), None)];
    orders.ended_at = Some(at("00.613"));
    let mut refunds = verdict(
        "trigger/team-a/refunds",
        EventState::Retrying,
        "the subscriber answered 503",
    );
    refunds.attempts = vec![
        attempt(1, "00.6", None, Some("connection refused")),
        attempt(2, "00.8", Some(503), Some("busy\x1b[2J")),
    ];
    refunds.next_attempt_at = Some(at("03.25"));
    let audit = verdict(
        "trigger/team-a/audit",
        EventState::Filtered,
        "type is order.created, not order.paid",
    );
    event(
        vec![orders, refunds, audit],
        "trigger/team-a/refunds tries again",
    )
}

#[test]
fn a_trace_tells_each_consumer_with_reason_attempts_and_what_comes_next() {
    let mut reply = event(Vec::new(), "done");
    reply.cause = Some(Cause {
        offset: 41,
        consumer: "trigger/team-a/orders".to_owned(),
    });
    insta::assert_snapshot!(render(&trace(vec![retrying(), reply]), at("01.0"), false), @r"
    order-17  order.created from /shop
      accepted 2026-01-01T10:00:00.500Z at channel/kyma-integration/shop, place 42 in the log, 1 byte of data
      trigger/team-a/refunds tries again

      trigger/team-a/orders  delivered
        via subscription/kyma-integration/shop > broker/team-a/default
        ended 2026-01-01T10:00:00.613Z, 113 ms after it was accepted
        ATTEMPT   AT                         ANSWER   TOOK    ERROR
        1         2026-01-01T10:00:00.600Z   202      12 ms

      trigger/team-a/refunds  retrying: the subscriber answered 503
        via subscription/kyma-integration/shop > broker/team-a/default
        next attempt at 2026-01-01T10:00:03.250Z, in 2.2 s
        ATTEMPT   AT                         ANSWER   TOOK    ERROR
        1         2026-01-01T10:00:00.600Z   none     12 ms   connection refused
        2         2026-01-01T10:00:00.800Z   503      12 ms   busy [2J

      trigger/team-a/audit  filtered: type is order.created, not order.paid
        via subscription/kyma-integration/shop > broker/team-a/default

    order-17  order.created from /shop
      accepted 2026-01-01T10:00:00.500Z at channel/kyma-integration/shop, place 42 in the log, 1 byte of data
      a reply of trigger/team-a/orders to the event at place 41
      done
      no trigger and no subscription could be reached from there
    ");
}

#[test]
fn a_trace_tells_a_bad_reply_where_it_came_from_and_what_is_lost() {
    let mut orders = verdict("trigger/team-a/orders", EventState::Delivered, "");
    orders.via.clear();
    orders.ended_at = Some(at("00.613"));
    let reply = |name: Option<&str>, by: Option<&str>| {
        Some(BadReply {
            fault: "not-an-event".to_owned(),
            reason: "it has no source".to_owned(),
            dead_letter: name.map(str::to_owned),
            discarded_by: by.map(str::to_owned),
        })
    };
    for (number, bad_reply) in [
        (1, reply(Some("7"), None)),
        (2, reply(None, None)),
        (3, reply(Some("8"), Some("ann"))),
    ] {
        orders.attempts.push(Attempt {
            bad_reply,
            ..attempt(number, "00.6", Some(200), None)
        });
    }
    let mut trace = trace(vec![event(vec![orders], "done")]);
    trace.losses = vec!["record 3 of the journal is lost".to_owned()];
    let text = render(&trace, at("01"), false);
    let told = [
        "its reply could not go on: it has no source (kept as dead letter 7)",
        "its reply could not go on: it has no source (not kept, for too many are)",
        "its reply could not go on: it has no source (thrown away by ann)",
        "record 3 of the journal is lost",
    ];
    for line in told {
        assert!(text.contains(line), "{text}");
    }
}

#[tokio::test]
async fn an_event_that_may_be_among_what_is_lost_is_not_denied_silently() {
    let server = StandIn::start().await;
    let losses = json!({"events": [], "losses": ["place 7 of the log cannot be read any more"]});
    server.answers("GET /heddle/v1/trace", 200, &losses);
    let (error, _) = not_found(&server).await;
    assert_eq!(
        error.to_string(),
        "no retained event has the id x from /shop; place 7 of the log cannot be read any more"
    );
}

/// Asks for an event that `server` does not have: what is said of it, and what was shown.
async fn not_found(server: &StandIn) -> (anyhow::Error, Screen) {
    let screen = Screen::default();
    let asked = args(&["x", "--source", "/shop"]);
    let done = show(
        &asked,
        CommandContext::new(&server.remote(), &world(), &mut screen.terminal()),
    )
    .await;
    let error = done.unwrap_err();
    assert_eq!(exit_code(&error), 3);
    (error, screen)
}

fn args(words: &[&str]) -> Args {
    use clap::Parser as _;
    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }
    Line::parse_from([&["trace"], words].concat()).args
}

#[tokio::test]
async fn an_unknown_event_is_not_found_and_an_empty_answer_is_never_shown() {
    let server = StandIn::start().await;
    server.answers(
        "GET /heddle/v1/trace",
        200,
        &serde_json::json!({"events": []}),
    );
    let (error, screen) = not_found(&server).await;
    assert!(
        error
            .to_string()
            .starts_with("no retained event has the id x from /shop;"),
        "{error}"
    );
    assert_eq!(screen.out(), "");
    assert_eq!(server.lines(), ["GET /heddle/v1/trace?id=x&source=%2Fshop"]);
}

#[tokio::test]
async fn following_tells_each_step_once_and_ends_when_the_event_has_ended_everywhere() {
    let server = StandIn::start().await;
    let mut done = retrying();
    done.summary = DONE.to_owned();
    done.verdicts[1].state = EventState::DeadLettered;
    done.verdicts[1].ended_at = Some(at("03.3"));
    for answer in [
        trace(Vec::new()),
        trace(vec![retrying()]),
        trace(vec![retrying()]),
        trace(vec![done]),
    ] {
        server.answers(
            "GET /heddle/v1/trace",
            200,
            &serde_json::to_value(answer).unwrap(),
        );
    }
    let screen = Screen::default();
    let asked = args(&["order-17", "--follow", "-o", "json"]);
    show(
        &asked,
        CommandContext::new(&server.remote(), &world(), &mut screen.terminal()),
    )
    .await
    .unwrap();
    assert_eq!(server.lines().len(), 4);
    let shown: Trace = serde_json::from_str(&screen.out()).unwrap();
    assert_eq!(shown.events[0].verdicts[1].state, EventState::DeadLettered);
    insta::assert_snapshot!(screen.err(), @r"
    2026-01-01T10:00:00.500Z accepted at channel/kyma-integration/shop, place 42
    2026-01-01T10:00:00.600Z trigger/team-a/orders attempt 1: 202 after 12 ms
    2026-01-01T10:00:00.613Z trigger/team-a/orders delivered
    2026-01-01T10:00:00.600Z trigger/team-a/refunds attempt 1: connection refused after 12 ms
    2026-01-01T10:00:00.800Z trigger/team-a/refunds attempt 2: 503 after 12 ms
    place 42: trigger/team-a/refunds retrying: the subscriber answered 503
    place 42: trigger/team-a/audit filtered: type is order.created, not order.paid
    2026-01-01T10:00:03.300Z trigger/team-a/refunds dead-lettered: the subscriber answered 503
    ");
}

#[tokio::test]
async fn following_gives_up_when_told_to_and_says_what_is_missing() {
    let server = StandIn::start().await;
    let unfinished = serde_json::to_value(trace(vec![retrying()])).unwrap();
    server.answers("GET /heddle/v1/trace", 200, &unfinished);
    let (screen, wanted) = (
        Screen::default(),
        Wanted {
            id: "order-17",
            source: None,
        },
    );
    let error = follow(
        wanted,
        Some(Duration::ZERO),
        &server.remote(),
        &world(),
        &mut screen.terminal(),
    )
    .await
    .unwrap_err();
    assert_eq!(exit_code(&error), 7);
    assert_eq!(
        error.to_string(),
        "event order-17 has not ended: trigger/team-a/refunds tries again"
    );
}

#[tokio::test]
async fn a_link_leads_to_the_page_of_the_event_whatever_its_id_is() {
    let server = StandIn::start().await;
    let known = serde_json::to_value(trace(vec![retrying()])).unwrap();
    server.answers("GET /heddle/v1/trace", 200, &known);
    let (screen, remote) = (Screen::default(), server.remote());
    let asked = args(&["a b&\u{1b}[31m", "--source", "/s?x#y", "--link"]);
    show(
        &asked,
        CommandContext::new(&remote, &world(), &mut screen.terminal()),
    )
    .await
    .unwrap();
    let page = "/ui/trace?id=a%20b%26%1B%5B31m&source=%2Fs%3Fx%23y\n";
    assert_eq!(screen.out(), format!("{}{page}", remote.url()));
}
