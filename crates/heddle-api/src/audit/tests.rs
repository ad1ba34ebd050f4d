//! Lines are picked by what they say, and seen by those who administer where they were made.

use super::*;
use crate::access::{Role, Scope};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

fn line() -> AuditLine {
    let mut entry = AuditEntry::new(
        AuditDoor::Resources,
        "patch",
        "PATCH /apis/eventing.knative.dev/v1/namespaces/team-a/triggers/orders".to_owned(),
    );
    entry.kind = Some("trigger".to_owned());
    entry.namespace = Some("team-a".to_owned());
    entry.name = Some("orders".to_owned());
    entry.user = Some("ada".to_owned());
    entry.impersonator = Some("proxy".to_owned());
    entry.outcome = AuditOutcome::Done;
    entry.status = Some(200);
    AuditLine {
        number: 7,
        at: at(1_000),
        entry,
    }
}

fn query(pairs: &[(&str, &str)]) -> Result<AuditQuery, String> {
    let written = |key: &str| {
        let pair = pairs.iter().find(|(known, _)| *known == key);
        pair.map(|(_, value)| (*value).to_owned())
    };
    AuditQuery::read(written, at(2_000))
}

#[test]
fn a_line_is_found_by_everything_it_says_and_by_nothing_else() {
    let cases: &[(&str, &str, bool)] = &[
        ("user", "ada", true),
        ("user", "a*", true),
        ("user", "proxy", true),
        ("user", "bob", false),
        ("verb", "patch", true),
        ("verb", "pat*", false),
        ("object", "trigger/team-a/orders", true),
        ("object", "trigger/*", true),
        ("object", "orders", true),
        ("object", "order", false),
        ("namespace", "team-a", true),
        ("namespace", "team-b", false),
        ("outcome", "done", true),
        ("outcome", "refused", false),
        ("since", "1970-01-01T00:16:40Z", true),
        ("since", "1970-01-01T00:16:41Z", false),
        ("since", "20m", true),
        ("since", "1m", false),
        ("until", "1970-01-01T00:16:40Z", false),
        ("until", "1970-01-01T00:16:41Z", true),
    ];
    for (key, value, expected) in cases {
        let query = query(&[(key, value)]).unwrap();
        assert_eq!(query.matches(&line()), *expected, "{key}={value}");
    }
    let both = query(&[("user", "ada"), ("verb", "create")]).unwrap();
    assert!(!both.matches(&line()), "all of it must hold");
}

#[test]
fn what_cannot_be_understood_is_refused_with_what_could() {
    assert!(
        query(&[("since", "yesterday")])
            .unwrap_err()
            .contains("15m")
    );
    let refused = query(&[("outcome", "ok")]).unwrap_err();
    assert!(refused.contains("interrupted"), "{refused}");
}

#[test]
fn a_line_is_seen_by_those_who_administer_where_it_was_made() {
    let mut elsewhere = line();
    elsewhere.entry.namespace = None;
    let mut namespace = elsewhere.clone();
    namespace.entry.kind = Some("namespace".to_owned());
    namespace.entry.name = Some("team-a".to_owned());
    for role in Role::ALL {
        for scope in [Scope::All, Scope::Namespaces(["team-a".to_owned()].into())] {
            let (everywhere, rules) = (scope == Scope::All, role == Role::Administrator);
            let access = Access {
                user: "ada".to_owned(),
                role,
                scope,
                payloads: true,
            };
            assert_eq!(may_see(&access, &line()), rules, "{access:?}");
            assert_eq!(may_see(&access, &namespace), rules, "{access:?}");
            assert_eq!(
                may_see(&access, &elsewhere),
                rules && everywhere,
                "{access:?}"
            );
        }
    }
}

#[test]
fn a_line_is_flat_and_short_as_json_and_read_back_whole() {
    let text = serde_json::to_string(&line()).unwrap();
    assert!(text.starts_with(r#"{"number":7,"at":"1970-01-01T00:16:40Z","door":"resources","#));
    assert!(!text.contains("null") && !text.contains("count"), "{text}");
    assert_eq!(serde_json::from_str::<AuditLine>(&text).unwrap(), line());
    // What a later version adds does not hide what is known.
    let later = text.replace("\"door\"", "\"weather\":\"fine\",\"door\"");
    assert_eq!(serde_json::from_str::<AuditLine>(&later).unwrap(), line());
}

#[test]
fn a_text_is_cut_between_characters() {
    assert_eq!(bounded("aé", 2), "a");
    assert_eq!(bounded("aé", 3), "aé");
    assert_eq!(bounded("", 3), "");
}
