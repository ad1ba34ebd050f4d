//! What is found, how it reads, and which exit code it earns.

use jiff::Timestamp;
use serde_json::json;

use super::*;
use crate::checks::findings::{self, Unready};
use crate::checks::tests::{accounts, complaints, healthy, now};
use crate::client::stand_in::StandIn;
use crate::cmd::testing::{Screen, world};

#[test]
fn a_healthy_server_has_no_complaints() {
    assert_eq!(complaints(|_| {}), []);
    insta::assert_snapshot!(text(&findings::report(&healthy(), now()).findings, false), @r"
    server
      ok    HD-001  server: ready

    events
      ok    HD-011  log: serving, 90 events in 2 segments, 5 MiB, no damage
      ok    HD-015  matching: 0 events not matched with triggers yet
      ok    HD-016  accounts: 5 matched events for 1 consumer, all accounted for

    resources
      ok    HD-030  resources: 6 objects ready
    ");
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
    let found = findings::report(&facts, now());
    assert_eq!(
        found
            .findings
            .iter()
            .filter(|finding| finding.level != FindingLevel::Ok && finding.remedy.is_empty())
            .count(),
        0
    );
    insta::assert_snapshot!(text(&found.findings, false), @r"
    server
      bad   HD-001  server: not ready: x
                    a full disk needs room, a failed one a restart; otherwise look at the server's log
                    docs/reference/checks.md#hd-001

    events
      bad   HD-011  log: no event is accepted: full
                    make room on the disk, or replace it and restart
                    docs/reference/checks.md#hd-011
      bad   HD-013  log: 1 record damaged and kept aside
                    the disk returned other bytes than were written: check it, and keep a copy of the data directory
                    docs/reference/checks.md#hd-013
      bad   HD-016  trigger/team-a/orders: 72 of 77 matched events are unaccounted for
                    this must never happen: keep the data directory and report it
                    docs/reference/checks.md#hd-016
      warn  HD-015  matching: 1099511627666 events not matched with triggers yet
                    ask again; if the number does not fall, the machine is too busy or matching has stopped
                    docs/reference/checks.md#hd-015

    consumers
      warn  HD-020  trigger/team-a/orders: nothing is sent: paused
                    1 event waiting; look at its conditions and its subscriber
                    docs/reference/checks.md#hd-020
      warn  HD-021  trigger/team-a/orders: 3 dead letters at rest
                    heddle dead-letters list --trigger team-a/orders
                    docs/reference/checks.md#hd-021
      warn  HD-023  trigger/team-a/orders: the oldest of 1 pending event has waited for 20454 d
                    it is meant for a subscriber without an address; 0 retrying
                    docs/reference/checks.md#hd-023

    resources
      bad   HD-030  trigger/a/b: not ready: Some: reason
                    heddle get trigger/b -n a -o yaml
                    docs/reference/checks.md#hd-030
      bad   HD-030  subscription/a/b: not ready: Some: reason
                    heddle get subscriptions.messaging.knative.dev/b -n a -o yaml
                    docs/reference/checks.md#hd-030
      bad   HD-030  application/b: not ready: Some: reason
                    heddle get application/b -o yaml
                    docs/reference/checks.md#hd-030
    ");
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
async fn examined(server: &StandIn, screen: &Screen) -> Result<(), u8> {
    let done = match examine(None, &server.remote()).await {
        Ok(report) => conclude(&args(DoctorFormat::Table), &report, &mut screen.terminal()),
        Err(error) => Err(error),
    };
    done.map_err(|error| exit_code(&error))
}

#[tokio::test]
async fn the_exit_code_tells_whether_anything_is_bad() {
    for (damaged, expected) in [(0, Ok(())), (2, Err(1))] {
        let server = StandIn::start().await;
        let mut facts = healthy();
        accounts(&mut facts).log.damaged = damaged;
        let report = serde_json::to_value(findings::report(&facts, now())).unwrap();
        server.answers("GET /heddle/v1/checks", 200, &report);
        let screen = Screen::default();
        let done = examined(&server, &screen).await;
        assert_eq!(done, expected, "{}", screen.out());
        assert!(screen.out().contains("HD-016"), "{}", screen.out());
    }
}

#[tokio::test]
async fn no_token_is_a_failure() {
    let server = StandIn::start().await;
    let refusal = json!({"code": "unauthorized", "message": "who are you"});
    server.answers("GET /heddle/v1/checks", 401, &refusal);
    let done = examined(&server, &Screen::default()).await;
    assert_eq!(done, Err(5));
}

#[test]
fn every_category_has_its_heading_in_the_order_of_an_events_way() {
    let finding = |category: CheckCategory, id: &str| CheckFinding {
        id: id.to_owned(),
        category,
        level: FindingLevel::Ok,
        about: "all".to_owned(),
        what: "well".to_owned(),
        remedy: String::new(),
        link: String::new(),
    };
    let checks = heddle_api::checks::ALL.iter().rev();
    let findings: Vec<CheckFinding> = checks
        .map(|check| finding(check.category, check.id))
        .collect();
    let text = text(&findings, false);
    let headings: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    let headings = headings.into_iter().filter(|line| !line.starts_with(' '));
    assert!(headings.eq(CheckCategory::ALL.map(CheckCategory::word)));
}

#[test]
fn short_has_a_line_for_each_that_is_not_well_and_json_has_ids() {
    let mut facts = healthy();
    accounts(&mut facts).consumers[0].dead_letters = 2;
    let found = findings::report(&facts, now());
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
    assert_eq!(report.findings.len(), found.findings.len());
    assert!(category("consumers").is_ok() && category("nothing").is_err());
}

#[test]
fn who_waited_in_vain_is_told_by_the_exit_code() {
    let mut facts = healthy();
    facts.unready_because.push("starting".to_owned());
    let found = findings::report(&facts, now());
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
