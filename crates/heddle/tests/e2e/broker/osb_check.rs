//! The conformance suite against the product, and its reports as a program reads them.

use serde_json::Value;

use super::{TEAM, account, made, shop};
use crate::harness::{Outcome, Server, heddle, read};

/// Asks what lives at `address`.
fn osb_check(server: &Server, address: &str, more: &[&str]) -> Outcome {
    let (username, password) = account(server);
    let mut words = vec!["osb-check", address, "--username", &username];
    words.extend(["--password", &password, "--namespace", TEAM]);
    words.extend(more);
    server.heddle(&words)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_promise_of_the_specification_is_kept_at_both_addresses() {
    let server = shop().await;
    for address in [
        server.control.clone(),
        format!("{}/osb/{TEAM}", server.control),
    ] {
        let file = server.data().join("osb.xml");
        let report = ["--report", "junit", "--report-file", file.to_str().unwrap()];
        let out = osb_check(&server, &address, &[&report[..], &["-o", "json"]].concat()).ok();
        let shown: Value = serde_json::from_str(&out).unwrap();
        let verdicts = shown.as_array().unwrap();
        let kept = |check: &&Value| check["verdict"] == "kept";
        let kept = verdicts.iter().filter(kept).count();
        // Only what needs a plan that an Application cannot have is not asked.
        assert!(kept + 2 >= verdicts.len() && kept > 55, "{shown:#}");
        let counted = JunitTotals::of(&read(&file));
        let skipped = verdicts.len() - kept;
        assert_eq!(
            counted,
            JunitTotals {
                tests: verdicts.len(),
                failures: 0,
                skipped
            }
        );
    }
    assert_eq!(made(&server).await, [0; 5]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_is_whole_when_promises_are_broken_and_when_nobody_answers() {
    let mut server = shop().await;
    let address = server.control.clone();
    // It answers 400, so that one promise is not kept as announced.
    let wrong = ["--missing-version", "412", "--only", "transport"];
    let json = ["--report", "json"];
    let outcome = osb_check(&server, &address, &[&wrong[..], &json].concat());
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    let report: Value = serde_json::from_str(&outcome.out).unwrap();
    assert_eq!(report["failed"], 1, "{report:#}");
    assert_eq!(report["broker"], format!("{address}/"));
    let checks = report["checks"].as_array().unwrap();
    let broken = |check: &&Value| check["outcome"] == "failed";
    let broken = checks.iter().find(broken).unwrap();
    assert_eq!(broken["name"], "a_version_is_wanted");
    assert!(
        broken["message"]
            .as_str()
            .unwrap()
            .contains("expected [412]")
    );
    let junit = ["--report", "junit"];
    let outcome = osb_check(&server, &address, &[&wrong[..], &junit].concat());
    let totals = JunitTotals::of(&outcome.out);
    assert_eq!(
        (totals.tests, totals.failures),
        (checks.len(), 1),
        "{outcome:?}"
    );
    assert_eq!(made(&server).await, [0; 5]);
    let words = ["osb-check", &address, "--username", "x", "--password", "x"];
    server.kill();
    let mut command = heddle();
    let outcome = Outcome::of(command.args(words).args(json).output().unwrap());
    assert_eq!(outcome.code, Some(6), "{outcome:?}");
    let report: Value = serde_json::from_str(&outcome.out).unwrap();
    let checks = report["checks"].as_array().unwrap();
    assert!(checks.len() > 55, "{report:#}");
    assert_eq!(report["skipped"], checks.len(), "{report:#}");
}

/// What a reporter counts in JUnit's XML.
#[derive(Debug, Default, PartialEq)]
struct JunitTotals {
    tests: usize,
    failures: usize,
    skipped: usize,
}

impl JunitTotals {
    /// Reads tag by tag; panics where elements are not closed in order, or where a suite does not hold what it announces.
    fn of(xml: &str) -> Self {
        let mut totals = Self::default();
        let mut announced = Self::default();
        let mut open: Vec<String> = Vec::new();
        let body = xml.strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        for tag in body.unwrap().split('<').skip(1) {
            let (tag, text) = tag.split_once('>').unwrap();
            assert!(
                open.len() > 1 || text.trim().is_empty(),
                "{text:?} after {tag}"
            );
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop().as_deref(), Some(name));
                continue;
            }
            let name = tag.split([' ', '/']).next().unwrap();
            let number = |attribute: &str| -> usize {
                let value = tag.split(&format!(" {attribute}=\"")).nth(1).unwrap();
                value.split('"').next().unwrap().parse().unwrap()
            };
            match name {
                "testsuite" => {
                    announced.tests += number("tests");
                    announced.failures += number("failures");
                    announced.skipped += number("skipped");
                }
                "testcase" => totals.tests += 1,
                "failure" => totals.failures += 1,
                "skipped" => totals.skipped += 1,
                _ => {}
            }
            if !tag.ends_with('/') {
                open.push(name.to_owned());
            }
        }
        assert!(open.is_empty(), "not closed: {open:?}");
        assert_eq!(totals, announced);
        totals
    }
}
