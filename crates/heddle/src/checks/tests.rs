//! What is found, with which level, and what is asked to find it.

use axum::body::Body;
use axum::extract::Request;
use axum::response::IntoResponse as _;
use heddle_api::access::{Role, Scope};
use heddle_api::checks::{CheckReport, FindingLevel};
use heddle_api::forecast::{Forecast, ForecastEvent};
use heddle_api::ledger::{Account, Accounts, LogFacts};
use http::StatusCode;
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::findings::{Facts, Unready};
use super::flows::Flows;
use super::gather::unready_of;
use super::*;

pub(crate) fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

pub(crate) fn healthy() -> Facts {
    let log = LogFacts {
        first: 10,
        next: 110,
        events: 90,
        bytes: 5 << 20,
        segments: 2,
        health: "serving".to_owned(),
        damaged: 0,
        journal_lost: 0,
        free_bytes: Some(40 << 30),
        needed_bytes: Some(288 << 20),
        disk_full: None,
    };
    let account = Account {
        consumer: "trigger/team-a/orders".to_owned(),
        matched: 5,
        delivered: 4,
        pending: 1,
        oldest_pending_at: Some("2026-01-01T11:59:00Z".parse().unwrap()),
        ..Account::default()
    };
    Facts {
        unready_because: Vec::new(),
        accounts: Ok(Accounts {
            log,
            matched_up_to: 110,
            consumers: vec![account],
        }),
        objects: 6,
        unready: Vec::new(),
        flows: Flows::default(),
    }
}

fn forecast(event: ForecastEvent, in_s: f64) -> Forecast {
    Forecast {
        event,
        in_s,
        basis: "as far as is known".to_owned(),
    }
}

pub(crate) fn accounts(facts: &mut Facts) -> &mut Accounts {
    facts.accounts.as_mut().unwrap()
}

/// The findings that are not fine.
pub(crate) fn complaints(spoil: impl FnOnce(&mut Facts)) -> Vec<(FindingLevel, String, String)> {
    let mut facts = healthy();
    spoil(&mut facts);
    let findings = findings::report(&facts, now()).findings.into_iter();
    let complaints = findings.filter(|finding| finding.level != FindingLevel::Ok);
    complaints
        .map(|finding| (finding.level, finding.about, finding.what))
        .collect()
}

#[test]
fn what_is_far_away_or_good_is_no_finding() {
    let found = complaints(|facts| {
        let accounts = accounts(facts);
        accounts.log.disk_full = Some(forecast(ForecastEvent::DiskFull, 9.0 * 86_400.0));
        let done = forecast(ForecastEvent::BacklogDone, 60.0);
        accounts.consumers[0].forecasts = vec![done];
    });
    assert_eq!(found, []);
}

#[test]
fn every_ill_is_found_with_its_level() {
    let check = |spoil: fn(&mut Facts), level: FindingLevel, about: &str, what: &str| {
        let expected = (level, about.to_owned(), what.to_owned());
        assert_eq!(complaints(spoil), [expected], "for {about}: {what}");
    };
    let orders = "trigger/team-a/orders";
    check(
        |facts| {
            facts
                .unready_because
                .push("store: the disk is full".to_owned())
        },
        FindingLevel::Bad,
        "server",
        "not ready: store: the disk is full",
    );
    check(
        |facts| facts.accounts = Err("accounts: no".to_owned()),
        FindingLevel::Bad,
        "events",
        "accounts: no",
    );
    check(
        |facts| accounts(facts).log.health = "the disk failed".to_owned(),
        FindingLevel::Bad,
        "log",
        "no event is accepted: the disk failed",
    );
    check(
        |facts| accounts(facts).log.free_bytes = Some(500 << 20),
        FindingLevel::Warn,
        "log",
        "500 MiB are free on its disk; with less than 288 MiB events are refused",
    );
    check(
        |facts| accounts(facts).log.disk_full = Some(forecast(ForecastEvent::DiskFull, 7_300.0)),
        FindingLevel::Warn,
        "log",
        "the disk is full in about 2 h, as far as is known",
    );
    check(
        |facts| {
            let soon = forecast(ForecastEvent::DeadLettersBegin, 90.0);
            accounts(facts).consumers[0].forecasts = vec![soon];
        },
        FindingLevel::Warn,
        orders,
        "dead letters begin in about 90 s, as far as is known",
    );
    check(
        |facts| accounts(facts).log.damaged = 1,
        FindingLevel::Bad,
        "log",
        "1 record damaged and kept aside",
    );
    check(
        |facts| accounts(facts).log.next = 20_000,
        FindingLevel::Warn,
        "matching",
        "19890 events not matched with triggers yet",
    );
    check(
        |facts| accounts(facts).consumers[0].delivered = 3,
        FindingLevel::Bad,
        orders,
        "1 of 5 matched events are unaccounted for",
    );
    check(
        |facts| accounts(facts).consumers[0].delivered = 6,
        FindingLevel::Bad,
        orders,
        "-2 of 5 matched events are unaccounted for",
    );
    check(
        |facts| accounts(facts).consumers[0].held = Some("it is paused".to_owned()),
        FindingLevel::Warn,
        orders,
        "nothing is sent: it is paused",
    );
    check(
        |facts| accounts(facts).consumers[0].dead_letters = 2,
        FindingLevel::Warn,
        orders,
        "2 dead letters at rest",
    );
    check(
        |facts| {
            accounts(facts).consumers[0].oldest_pending_at =
                Some("2026-01-01T11:00:00Z".parse().unwrap())
        },
        FindingLevel::Warn,
        orders,
        "the oldest of 1 pending event has waited for 60 min",
    );
    let unready = |certain| Unready {
        object: "trigger/team-a/orders".to_owned(),
        certain,
        reason: "BrokerNotFound: no broker".to_owned(),
        settling: false,
        explained_by: None,
    };
    assert_eq!(
        complaints(|facts| facts.unready = vec![unready(false), unready(true)])
            .iter()
            .map(|found| found.0)
            .collect::<Vec<_>>(),
        [FindingLevel::Bad, FindingLevel::Warn],
        "the worst comes first"
    );
}

#[test]
fn an_object_is_unready_until_its_condition_says_otherwise() {
    let object = |conditions: Value| json!({"metadata": {"name": "b", "namespace": "a"}, "status": {"conditions": conditions}});
    let reason = |conditions: Value| {
        unready_of("trigger", &object(conditions), now())
            .map(|unready| (unready.certain, unready.reason))
    };
    assert_eq!(
        reason(json!([{"type": "X", "status": "False"}, {"type": "Ready", "status": "True"}])),
        None
    );
    assert_eq!(
        reason(json!([{"type": "Ready", "status": "False", "reason": "R", "message": "m"}])),
        Some((true, "R: m".to_owned()))
    );
    assert_eq!(
        reason(json!([])),
        Some((false, "no controller has looked at it yet".to_owned()))
    );
    let cluster = json!({"metadata": {"name": "shop"}});
    let cluster = unready_of("application", &cluster, now()).unwrap();
    assert_eq!(cluster.object, "application/shop");
}

#[test]
fn what_was_just_asked_for_is_not_held_against_anybody() {
    let instance = |created: &str, accepted: &str, state: &str| {
        json!({
            "metadata": {"name": "x", "namespace": "a", "creationTimestamp": created},
            "spec": {"instanceID": "X", "operation": {"id": "o", "acceptedAt": accepted}},
            "status": {
                "operation": {"id": "o", "state": state},
                "conditions": [{"type": "Ready", "status": "False", "reason": "R"}],
            },
        })
    };
    let (old, new) = ("2026-01-01T10:00:00Z", "2026-01-01T11:59:59Z");
    for (created, accepted, state, settling) in [
        (new, new, "inProgress", true),
        (old, new, "inProgress", true),
        (old, new, "failed", false),
        (old, old, "inProgress", false),
    ] {
        let object = instance(created, accepted, state);
        let unready = unready_of("serviceinstance", &object, now()).unwrap();
        assert_eq!(unready.settling, settling, "{object}");
        let told = complaints(|facts| facts.unready = vec![unready.clone()]);
        assert_eq!(told.is_empty(), settling, "{told:?}");
        let mut facts = healthy();
        facts.unready = vec![unready];
        let found = findings::report(&facts, now()).findings;
        let text: String = found
            .iter()
            .map(|finding| format!("{}: {}\n{}\n", finding.about, finding.what, finding.remedy))
            .collect();
        let summary = "resources: 5 objects ready, 1 under way for less than a minute";
        assert_eq!(text.contains(summary), settling, "{text}");
        let remedy = "heddle explain instance X -n a";
        assert_eq!(text.contains(remedy), !settling, "{text}");
    }
}

/// What this process answers, and what it was asked.
#[derive(Clone, Default)]
struct AskedRouter {
    damaged: u64,
    has_no_accounts: bool,
    asked: Arc<Mutex<Vec<String>>>,
}

impl AskedRouter {
    fn answer(&self, request: &Request) -> Response {
        let uri = request.uri();
        self.asked.lock().push(uri.to_string());
        if uri.path() == "/heddle/v1/accounts" {
            let mut facts = healthy();
            accounts(&mut facts).log.damaged = self.damaged;
            return match self.has_no_accounts {
                true => refuse(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "broken",
                    "the log is broken",
                ),
                false => axum_json(&facts.accounts.unwrap()).into_response(),
            };
        }
        let ready = ["applications", "channels", "triggers"]
            .iter()
            .any(|kind| uri.path().ends_with(kind));
        let object = json!({"metadata": {"name": "x"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        let items = if ready { vec![object] } else { Vec::new() };
        let is_last = uri
            .query()
            .is_some_and(|query| query.contains("continue=a%20b"));
        let next = if ready && !is_last { "a b" } else { "" };
        axum_json(&json!({"metadata": {"continue": next}, "items": items})).into_response()
    }

    async fn report(&self, scope: Scope, reasons: &[&str]) -> (StatusCode, Value) {
        let router = self.clone();
        let ask = Router::new().fallback(move |request: Request| {
            let router = router.clone();
            async move { router.answer(&request) }
        });
        let reasons: Vec<String> = reasons.iter().map(|reason| (*reason).to_owned()).collect();
        let api = ChecksApi::new(ask, Clock::simulated(now()), move || reasons.clone());
        let mut request = Request::get("/checks").body(Body::empty()).unwrap();
        request.extensions_mut().insert(Access {
            user: "ada".to_owned(),
            role: Role::Viewer,
            scope,
            payloads: false,
        });
        let response = api.router().oneshot(request).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap())
    }
}

fn levels(body: Value) -> Vec<(FindingLevel, String)> {
    let report: CheckReport = serde_json::from_value(body).unwrap();
    let findings = report.findings.into_iter();
    findings
        .map(|finding| (finding.level, finding.about))
        .collect()
}

#[tokio::test]
async fn all_pages_of_all_kinds_are_read_and_what_is_wrong_comes_first() {
    let asked = AskedRouter::default();
    let (status, body) = asked.report(Scope::All, &[]).await;
    assert_eq!(status, StatusCode::OK);
    assert!(body.to_string().contains("6 objects ready"), "{body}");
    assert!(
        levels(body)
            .iter()
            .all(|(level, _)| *level == FindingLevel::Ok)
    );
    let damaged = AskedRouter {
        damaged: 2,
        ..AskedRouter::default()
    };
    let (_, body) = damaged
        .report(Scope::All, &["store: the disk is full"])
        .await;
    let bad = levels(body)
        .into_iter()
        .filter(|(level, _)| *level == FindingLevel::Bad);
    let bad: Vec<String> = bad.map(|(_, about)| about).collect();
    assert_eq!(bad, ["server", "log"]);
}

#[tokio::test]
async fn a_server_that_keeps_no_accounts_is_a_finding() {
    let asked = AskedRouter {
        has_no_accounts: true,
        ..AskedRouter::default()
    };
    let (status, body) = asked.report(Scope::All, &[]).await;
    assert_eq!(status, StatusCode::OK);
    let first = &levels(body)[0];
    assert_eq!(first, &(FindingLevel::Bad, "events".to_owned()));
}

#[tokio::test]
async fn whoever_has_a_role_in_a_namespace_looks_there_and_nowhere_else() {
    let asked = AskedRouter::default();
    let (status, _) = asked
        .report(Scope::Namespaces(["team-a".to_owned()].into()), &[])
        .await;
    assert_eq!(status, StatusCode::OK);
    let asked = asked.asked.lock();
    let lists = asked.iter().filter(|path| path.starts_with("/apis/"));
    assert!(lists.clone().count() >= 8, "{asked:?}");
    for path in lists {
        assert!(path.contains("/namespaces/team-a/"), "{path}");
    }
}
