use serde_json::json;

use super::*;

fn pair() -> NamespaceHealth {
    let plane = |health: &str, reason: &str| json!({"health": health, "reason": reason, "message": format!("{reason} in words")});
    let mut broken = plane("Unhealthy", "LinkBroken");
    broken["object"] = json!("subscription/kyma-integration/shop-team-a");
    broken["evidence"] = json!("no link");
    broken["remedy"] = json!("mend it");
    serde_json::from_value(json!({
        "name": "team-a", "health": "Unhealthy", "since": "2026-01-01T00:00:00Z", "reason": "LinkBroken",
        "message": "no link leads there", "remedy": "mend it", "plane": "data", "hop": "subscription",
        "object": "subscription/kyma-integration/shop-team-a", "evidence": "no link", "state": 3,
        "planes": {"control": plane("Healthy", "AsDeclared"), "data": broken,
            "user": plane("Healthy", "Delivering"), "dependencies": plane("Healthy", "Serving")},
        "heartbeat": {"ageSeconds": 42.0, "endToEndSeconds": 0.002, "intervalSeconds": 10.0},
    }))
    .unwrap()
}

#[test]
fn a_broken_way_is_told_with_hop_object_and_remedy() {
    let expected = "\
application shop in team-a is Unhealthy since 2026-01-01T00:00:00Z: no link leads there
  reason     LinkBroken
  hop        subscription
  object     subscription/kyma-integration/shop-team-a
  evidence   no link
  remedy     mend it
  state      3 enabled
  heartbeat  42 s ago, took 2.00 ms, every 10 s
  control       Healthy: AsDeclared in words
  data          Unhealthy: LinkBroken in words
                seen: subscription/kyma-integration/shop-team-a: no link
                remedy: mend it
  user          Healthy: Delivering in words
  dependencies  Healthy: Serving in words
";
    assert_eq!(render::pair("shop", &pair(), false), expected);
}

#[test]
fn only_news_is_shown_again() {
    let (then, mut now) = (pair(), pair());
    now.heartbeat.as_mut().unwrap().age_seconds = Some(43.0);
    let [before, after] = [&then, &now].map(|pair| render::pair("shop", pair, false));
    assert_ne!(before, after);
    assert_eq!(unaged(&before), unaged(&after));
    now.verdict.health = HealthStatus::Healthy;
    assert_ne!(unaged(&before), unaged(&render::pair("shop", &now, false)));
}

#[test]
fn scripts_are_told_by_the_exit_code() {
    for health in [HealthStatus::Healthy, HealthStatus::Degraded] {
        assert!(conclude("the mesh", health).is_ok());
    }
    for health in [HealthStatus::Unhealthy, HealthStatus::Unknown] {
        let error = conclude("the mesh", health).unwrap_err();
        assert_eq!(exit_code(&error), 1);
    }
}
