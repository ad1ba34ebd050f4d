use std::collections::BTreeSet;

use super::alerts::{ALERTS, rules};
use super::catalogue::{ALL, find};
use super::*;

#[test]
fn every_entry_says_what_to_do_and_has_a_code_of_its_own() {
    let codes: BTreeSet<&str> = ALL.iter().map(|fault| fault.code).collect();
    assert_eq!(codes.len(), ALL.len(), "a code stands for one thing");
    for fault in ALL {
        assert_ne!(fault.health, HealthStatus::Healthy, "{}", fault.code);
        for text in [fault.meaning, fault.impact, fault.remedy] {
            assert!(!text.is_empty(), "{}", fault.code);
        }
        assert!(!fault.diagnosis.is_empty(), "{}", fault.code);
        let first = fault.meaning.split(' ').next().unwrap_or_default();
        let ordinary = [
            "A",
            "An",
            "No",
            "The",
            "It",
            "Events",
            "Records",
            "Conditions",
            "Synthetic",
            "What",
            "More",
        ];
        assert!(
            ordinary.contains(&first),
            "{first} is said in small letters"
        );
        assert_eq!(find(fault.code), Some(fault));
    }
    for plane in HealthPlane::ALL {
        assert!(ALL.iter().any(|fault| fault.plane == plane), "{plane:?}");
    }
}

#[test]
fn an_alert_is_said_with_words_for_what_prometheus_puts_in() {
    let said = |name| alerts::find(name).unwrap().said();
    assert_eq!(
        said("HeddleHeartbeatMissing"),
        "events of APP do not arrive in NS"
    );
    assert_eq!(
        said("HeddleBacklogAge"),
        "the oldest event of NS/TRIGGER waits for VALUE"
    );
}

#[test]
fn a_body_has_its_verdict_in_the_open() {
    let namespace = NamespaceHealth {
        name: "team-a".to_owned(),
        state: state::ENABLED,
        heartbeat: Some(HeartbeatHealth::default()),
        ..NamespaceHealth::default()
    };
    let body = serde_json::to_value(&namespace).unwrap();
    for field in [
        "name", "health", "since", "reason", "message", "remedy", "state",
    ] {
        assert!(body.get(field).is_some(), "{field} in {body}");
    }
    for plane in ["control", "data", "user", "dependencies"] {
        assert_eq!(body["planes"][plane]["health"], "Unknown", "{body}");
    }
    assert!(body["heartbeat"].get("ageSeconds").is_some(), "{body}");
    assert!(body["heartbeat"].get("endToEndSeconds").is_some(), "{body}");
    let read: NamespaceHealth = serde_json::from_value(body).unwrap();
    assert_eq!(read, namespace);
}

#[test]
fn every_alert_has_a_runbook_and_every_broken_thing_an_alert() {
    let names: BTreeSet<&str> = ALERTS.iter().map(|alert| alert.name).collect();
    assert_eq!(names.len(), ALERTS.len());
    for alert in ALERTS {
        assert_eq!(alert.faults().count(), alert.codes.len(), "{}", alert.name);
    }
    let known = rules(Some("https://heddle.example/mesh/"));
    for alert in ALERTS {
        let page = format!(
            "runbook_url: 'https://heddle.example/mesh/ui/help/{}'",
            alert.name
        );
        assert_eq!(known.matches(&page).count(), 1, "{page}");
        assert!(!alert.said().contains("{{"), "{}", alert.said());
        assert_eq!(alerts::find(alert.name), Some(alert));
    }
    assert_eq!(known.matches("page: 'https://").count(), ALERTS.len());
    assert!(!rules(None).contains("_url"), "nobody knows where it leads");
    let told: BTreeSet<&str> = ALERTS
        .iter()
        .flat_map(|alert| alert.codes)
        .copied()
        .collect();
    for fault in ALL
        .iter()
        .filter(|fault| fault.health == HealthStatus::Unhealthy)
    {
        assert!(
            told.contains(fault.code),
            "nobody is told of {}",
            fault.code
        );
    }
}
