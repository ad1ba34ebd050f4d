//! What is found, how it reads, and which exit code it earns.

use heddle_api::ledger::{Account, Accounts, LogFacts};
use jiff::Timestamp;
use serde_json::json;

use super::*;
use crate::client::stand_in::StandIn;
use crate::cmd::testing::{Screen, world};

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

fn healthy() -> Facts {
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

fn accounts(facts: &mut Facts) -> &mut Accounts {
    facts.accounts.as_mut().unwrap()
}

/// The findings that are not fine.
fn complaints(spoil: impl FnOnce(&mut Facts)) -> Vec<(FindingLevel, String, String)> {
    let mut facts = healthy();
    spoil(&mut facts);
    let findings = findings::of(&facts, now()).into_iter();
    let complaints = findings.filter(|finding| finding.level != FindingLevel::Ok);
    complaints
        .map(|finding| (finding.level, finding.about, finding.what))
        .collect()
}

#[test]
fn a_healthy_server_has_no_complaints() {
    assert_eq!(complaints(|_| {}), []);
    insta::assert_snapshot!(text(&findings::of(&healthy(), now()), false), @r"
    ok    HD-001  server: ready
    ok    HD-011  log: serving, 90 events in 2 segments, 5 MiB, no damage
    ok    HD-015  matching: 0 events not matched with triggers yet
    ok    HD-016  accounts: 5 matched events for 1 consumer, all accounted for
    ok    HD-030  resources: 6 objects ready
    ");
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
fn every_complaint_names_a_remedy() {
    let mut facts = healthy();
    facts.unready_because.push("x".to_owned());
    facts.unready = ["trigger/a/b", "subscription/a/b", "application/b"]
        .map(|object| Unready {
            object: object.to_owned(),
            certain: true,
            reason: "Some: reason".to_owned(),
            settling: false,
            explained_by: None,
        })
        .to_vec();
    let all = accounts(&mut facts);
    (all.log.damaged, all.log.health, all.log.next) = (1, "full".to_owned(), 1 << 40);
    let account = &mut all.consumers[0];
    (
        account.dead_letters,
        account.held,
        account.oldest_pending_at,
    ) = (3, Some("paused".to_owned()), Some(Timestamp::UNIX_EPOCH));
    account.matched = 77;
    let found = findings::of(&facts, now());
    assert_eq!(
        found
            .iter()
            .filter(|finding| finding.level != FindingLevel::Ok && finding.remedy.is_empty())
            .count(),
        0
    );
    insta::assert_snapshot!(text(&found, false), @r"
    bad   HD-001  server: not ready: x
                  a full disk needs room, a failed one a restart; otherwise look at the server's log
    bad   HD-011  log: no event is accepted: full
                  make room on the disk, or replace it and restart
    bad   HD-013  log: 1 record damaged and kept aside
                  the disk returned other bytes than were written: check it, and keep a copy of the data directory
    bad   HD-016  trigger/team-a/orders: 72 of 77 matched events are unaccounted for
                  this must never happen: keep the data directory and report it
    bad   HD-030  trigger/a/b: not ready: Some: reason
                  heddle get trigger/b -n a -o yaml
    bad   HD-030  subscription/a/b: not ready: Some: reason
                  heddle get subscriptions.messaging.knative.dev/b -n a -o yaml
    bad   HD-030  application/b: not ready: Some: reason
                  heddle get application/b -o yaml
    warn  HD-015  matching: 1099511627666 events not matched with triggers yet
                  ask again; if the number does not fall, the machine is too busy or matching has stopped
    warn  HD-020  trigger/team-a/orders: nothing is sent: paused
                  1 event waiting; look at its conditions and its subscriber
    warn  HD-021  trigger/team-a/orders: 3 dead letters at rest
                  heddle dead-letters list --trigger team-a/orders
    warn  HD-023  trigger/team-a/orders: the oldest of 1 pending event has waited for 20454 d
                  it is meant for a subscriber without an address; 0 retrying
    ");
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
        let text = text(&findings::of(&facts, now()), false);
        let summary = "resources: 5 objects ready, 1 under way for less than a minute";
        assert_eq!(text.contains(summary), settling, "{text}");
        let remedy = "heddle explain instance X -n a";
        assert_eq!(text.contains(remedy), !settling, "{text}");
    }
}

const LISTS: [&str; 5] = [
    "/apis/applicationconnector.kyma-project.io/v1alpha1/applications",
    "/apis/messaging.knative.dev/v1/channels",
    "/apis/messaging.knative.dev/v1/subscriptions",
    "/apis/eventing.knative.dev/v1/brokers",
    "/apis/eventing.knative.dev/v1/triggers",
];

/// What only the promises of flows are about.
const FLOW_LISTS: [&str; 6] = [
    "/apis/heddle.dev/v1alpha1/registries",
    "/apis/heddle.dev/v1alpha1/servicebindings",
    "/apis/heddle.dev/v1alpha1/eventflows",
    "/apis/heddle.dev/v1alpha1/serviceinstances",
    "/apis/applicationconnector.kyma-project.io/v1alpha1/eventactivations",
    "/apis/eventing.knative.dev/v1alpha1/eventpolicies",
];

fn without_flows(server: &StandIn) {
    for list in FLOW_LISTS {
        server.answers(&format!("GET {list}"), 200, &json!({"items": []}));
    }
}

fn args(output: DoctorFormat) -> Args {
    Args {
        output,
        category: None,
        wait: false,
        timeout: 0,
        client: ClientArgs {
            kubeconfig: None,
            context: None,
            data_dir: "nowhere".into(),
        },
    }
}

/// What a command that examines `server` ends with: nothing, or an exit code.
async fn examined(server: &StandIn, format: DoctorFormat, screen: &Screen) -> Result<(), u8> {
    let done = match examine(None, &server.remote(), &world()).await {
        Ok(findings) => conclude(&args(format), &findings, &mut screen.terminal()),
        Err(error) => Err(error),
    };
    done.map_err(|error| exit_code(&error))
}

#[tokio::test]
async fn the_exit_code_tells_whether_anything_is_bad() {
    for (ready, damaged, expected) in [(200, 0, Ok(())), (503, 0, Err(1)), (200, 2, Err(1))] {
        let server = StandIn::start().await;
        let mut facts = healthy();
        accounts(&mut facts).log.damaged = damaged;
        server.answers("GET /readyz", ready, &json!("starting"));
        server.answers(
            "GET /heddle/v1/accounts",
            200,
            &serde_json::to_value(facts.accounts.unwrap()).unwrap(),
        );
        for list in LISTS {
            let spec = json!({"channel": {"apiVersion": "messaging.knative.dev/v1", "kind": "Channel", "name": "x"}});
            let object = json!({"metadata": {"name": "x"}, "spec": spec, "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
            server
                .answers(
                    &format!("GET {list}"),
                    200,
                    &json!({"metadata": {"continue": "more"}, "items": [object]}),
                )
                .answers(
                    &format!("GET {list}"),
                    200,
                    &json!({"metadata": {}, "items": [object]}),
                );
        }
        without_flows(&server);
        let screen = Screen::default();
        let done = examined(&server, DoctorFormat::Table, &screen).await;
        assert_eq!(done, expected, "{}", screen.out());
        assert!(
            screen.out().contains("resources: 10 objects ready"),
            "{}",
            screen.out()
        );
    }
}

#[tokio::test]
async fn a_server_that_keeps_no_accounts_is_a_finding_and_no_token_is_a_failure() {
    let server = StandIn::start().await;
    server.answers("GET /readyz", 200, &json!("ok"));
    for list in LISTS {
        server.answers(&format!("GET {list}"), 200, &json!({"items": []}));
    }
    without_flows(&server);
    let screen = Screen::default();
    let done = examined(&server, DoctorFormat::Json, &screen).await;
    assert_eq!(done, Err(1));
    let report: Value = serde_json::from_str(&screen.out()).unwrap();
    assert_eq!(report["findings"][0]["about"], "events", "{report}");
    server.answers(
        "GET /heddle/v1/accounts",
        401,
        &json!({"kind": "Status", "message": "who are you"}),
    );
    let done = examined(&server, DoctorFormat::Json, &screen).await;
    assert_eq!(done, Err(5));
}

#[test]
fn short_has_a_line_for_each_that_is_not_well_and_json_has_ids() {
    let mut facts = healthy();
    accounts(&mut facts).consumers[0].dead_letters = 2;
    let found = findings::of(&facts, now());
    let short = DoctorFormat::Short.render(&found, false);
    let expected = "warn  HD-021  trigger/team-a/orders: 2 dead letters at rest\n";
    assert_eq!(short, expected);
    let body = DoctorFormat::Json.render(&found, false);
    let report: CheckReport = serde_json::from_str(&body).unwrap();
    let first = &report.findings[0];
    assert_eq!(
        (&*first.id, first.category),
        ("HD-021", CheckCategory::Consumers)
    );
    assert_eq!(first.link, "docs/reference/checks.md#hd-021");
    assert_eq!(report.findings.len(), found.len());
    assert!(category("consumers").is_ok() && category("nothing").is_err());
}

#[test]
fn who_waited_in_vain_is_told_by_the_exit_code() {
    let mut facts = healthy();
    facts.unready_because.push("starting".to_owned());
    let found = findings::of(&facts, now());
    for (wait, expected) in [(false, 1), (true, 7)] {
        let args = Args {
            wait,
            ..args(DoctorFormat::Short)
        };
        let error = conclude(&args, &found, &mut Screen::default().terminal()).unwrap_err();
        assert_eq!(exit_code(&error), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_comes_is_waited_for_and_told() {
    let args = Args {
        wait: true,
        timeout: 5,
        ..args(DoctorFormat::Short)
    };
    let world = World {
        clock: heddle_rt::Clock::simulated(now()),
        ..world()
    };
    let error = run(args, &world, &mut Screen::default().terminal())
        .await
        .unwrap_err();
    assert_eq!(exit_code(&error), 6);
    assert_eq!(world.clock.monotonic(), Duration::from_secs(5));
}
