use std::time::Duration;

use serde_json::json;

use super::*;
use crate::rules;

/// What a broker may answer, and a reporter must survive.
const HOSTILE: [&str; 8] = [
    "]]>",
    "<script>&amp;</script>",
    "\0",
    "one\ntwo\r\n\tthree",
    "\"quoted\" and 'quoted'",
    "\u{1b}[31mred\u{7}\u{fffe}\u{ffff}",
    "</failure></testcase>",
    "ünïcode 🧵",
];

fn report(outcomes: &[Outcome]) -> Report {
    let rules = rules::all().into_iter();
    let results = rules.zip(outcomes).map(|(rule, outcome)| CheckResult {
        rule,
        outcome: outcome.clone(),
        elapsed: Duration::from_millis(1500),
    });
    Report {
        address: "http://broker.example/a?b&c".to_owned(),
        started: "2026-01-02T03:04:05.678Z".parse().unwrap(),
        elapsed: Duration::from_secs(7),
        results: results.collect(),
        not_started: None,
        interruption: None,
        leftovers: Vec::new(),
    }
}

/// The values of an attribute, in order, as a reader of XML sees them.
fn attributes(xml: &str, element: &str, name: &str) -> Vec<String> {
    let opening = format!("<{element} ");
    let tags = xml.split(&opening).skip(1);
    let values = tags.filter_map(|tag| {
        let tag = tag.split('>').next()?;
        let value = format!(" {tag}")
            .split(&format!(" {name}=\""))
            .nth(1)
            .map(str::to_owned)?;
        Some(unescaped(value.split('"').next()?))
    });
    values.collect()
}

fn unescaped(text: &str) -> String {
    let mut text = text.to_owned();
    for (code, plain) in [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&apos;", "'"),
        ("&#9;", "\t"),
        ("&#10;", "\n"),
        ("&#13;", "\r"),
        ("&amp;", "&"),
    ] {
        text = text.replace(code, plain);
    }
    text
}

#[test]
fn a_hostile_text_stays_a_text_in_xml() {
    for hostile in HOSTILE {
        let mut report = report(&[
            Outcome::Broken(hostile.to_owned()),
            Outcome::NotAsked(hostile.to_owned()),
        ]);
        report.leftovers = vec![hostile.to_owned()];
        report.address = hostile.to_owned();
        let xml = report.junit();
        let forbidden = |c: char| (c < ' ' && c != '\n') || c == '\u{fffe}' || c == '\u{ffff}';
        assert!(!xml.contains(forbidden), "{xml:?}");
        assert!(!xml.contains("]]>"), "{xml}");
        // Line breaks are ours, and every tag is one of ours that is closed.
        for line in xml.lines() {
            let line = line.trim_start();
            assert!(line.starts_with('<') && line.ends_with('>'), "{line:?}");
        }
        for element in ["testsuites", "testsuite", "testcase", "failure"] {
            let opened = xml.matches(&format!("<{element} ")).count()
                + xml.matches(&format!("<{element}>")).count();
            let closed = xml.matches(&format!("</{element}>")).count();
            assert_eq!(opened, closed, "{element} in {xml}");
        }
        let seen = hostile.replace(|c: char| forbidden(c) && !"\t\r".contains(c), "\u{fffd}");
        assert_eq!(attributes(&xml, "failure", "message"), [seen.as_str()]);
        let skipped = attributes(&xml, "skipped", "message");
        assert_eq!(skipped, [format!("not asked: {seen}")]);
    }
}

#[test]
fn a_hostile_text_stays_a_text_in_json() {
    for hostile in HOSTILE {
        let report = report(&[Outcome::Broken(hostile.to_owned())]);
        let text = report.json().to_string();
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read["checks"][0]["message"], hostile);
    }
}

#[test]
fn reporters_are_told_how_many_passed_failed_and_were_skipped() {
    let outcomes = [
        Outcome::Kept,
        Outcome::Broken("it answered 500".to_owned()),
        Outcome::NotApplicable("that rotates"),
        Outcome::NotAsked("gone".to_owned()),
    ];
    let report = report(&outcomes);
    let xml = report.junit();
    for (name, value) in [
        ("name", "transport"),
        ("tests", "4"),
        ("failures", "1"),
        ("errors", "0"),
        ("skipped", "2"),
        ("time", "6.000"),
        ("timestamp", "2026-01-02T03:04:05"),
        ("hostname", "http://broker.example/a?b&c"),
    ] {
        assert_eq!(attributes(&xml, "testsuite", name), [value], "{name}");
    }
    assert_eq!(attributes(&xml, "testcase", "time"), ["1.500"; 4]);
    let classes = attributes(&xml, "testcase", "classname");
    assert_eq!(classes[0], "osb.transport.credentials_come_first");
    let json = report.json();
    assert_eq!(json["passed"], 1);
    assert_eq!(json["failed"], 1);
    assert_eq!(json["skipped"], 2);
    assert_eq!(
        json["checks"][1],
        json!({
            "name": "a_version_is_wanted", "group": "transport",
            "promise": "a request without a version is refused", "section": "API Version Header",
            "outcome": "failed", "message": "it answered 500", "seconds": 1.5,
        })
    );
    assert_eq!(
        json["checks"][2]["message"],
        "the catalog has no plan that rotates"
    );
}

#[test]
fn every_group_is_a_suite_and_every_rule_a_case() {
    let all = rules::all();
    let xml = report(&vec![Outcome::Kept; all.len()]).junit();
    let mut groups: Vec<&str> = all.iter().map(|rule| rule.group).collect();
    groups.dedup();
    assert_eq!(attributes(&xml, "testsuite", "name"), groups);
    assert_eq!(attributes(&xml, "testcase", "name").len(), all.len());
}

#[test]
fn a_rule_is_found_by_its_group_and_name() {
    let mut names: Vec<_> = rules::all()
        .iter()
        .map(|rule| (rule.group, rule.name))
        .collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
}
