//! When an alert is pending, fires and is resolved. That the rules come to what they come to in Prometheus is found out with a real
//! one (`tests/prometheus`).

use super::*;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn held(watch: &AlertWatch) -> Vec<(&'static str, bool)> {
    watch
        .held()
        .map(|held| (held.alert.name, held.fires))
        .collect()
}

const WELL: &str = "heddle_api_store_serving 1\n";

fn serving(serving: u8) -> String {
    format!("{WELL}heddle_log_serving {serving}\n")
}

#[test]
fn every_rule_of_the_table_is_understood() {
    let watch = AlertWatch::new().unwrap();
    assert_eq!(watch.rules.len(), ALERTS.len());
    for rule in &watch.rules {
        assert_eq!(
            promql::duration(rule.alert.hold),
            Some(rule.hold),
            "{}",
            rule.alert.name
        );
        assert!(
            !rule.expression.selectors().is_empty(),
            "{}",
            rule.alert.name
        );
    }
}

#[test]
fn what_is_not_understood_is_refused() {
    for text in [
        "",
        "heddle_x >",
        "heddle_x > 0)",
        "avg(heddle_x)",
        "rate(heddle_x)",
        "heddle_x{a=~\"b.*\"}",
        "heddle_x{a=\"b\"",
        "sum by (app) (heddle_x)",
        "heddle_x offset 5m",
        "heddle_x * 2",
        "heddle_x[5m]",
        &"(".repeat(1_000),
    ] {
        assert!(promql::parse(text).is_err(), "{text}");
    }
    for text in [
        "a",
        "a{}",
        "1 - a / 2 > 3 and b or c",
        "sum(rate(a{b!=\"c\",d=~\"30([.]0)?|x\"}[5m])) > 0",
    ] {
        let read = promql::parse(text);
        assert_eq!(read.is_ok(), !text.contains('?'), "{text}: {read:?}");
    }
}

#[test]
fn an_alert_is_pending_fires_and_is_resolved() {
    let mut watch = AlertWatch::new().unwrap();
    watch.look(seconds(0), &serving(1));
    assert_eq!(held(&watch), []);
    watch.look(seconds(60), &serving(0));
    assert_eq!(held(&watch), [("HeddleLogRefuses", false)]);
    watch.look(seconds(90), &serving(0));
    assert_eq!(held(&watch), [("HeddleLogRefuses", false)]);
    watch.look(seconds(120), &serving(0));
    assert_eq!(held(&watch), [("HeddleLogRefuses", true)]);
    assert_eq!(watch.held().next().unwrap().since, seconds(60));
    watch.look(seconds(180), &serving(1));
    assert_eq!(held(&watch), []);
    // It begins anew.
    watch.look(seconds(240), &serving(0));
    assert_eq!(held(&watch), [("HeddleLogRefuses", false)]);
    // What tells nothing any more fires no rule but that it is absent.
    watch.look(seconds(300), "");
    assert_eq!(held(&watch), [("HeddleAbsent", false)]);
}

#[test]
fn each_label_set_has_an_alert_of_its_own_with_its_words() {
    let mut watch = AlertWatch::new().unwrap();
    let oldest = |trigger: &str, age: u64| {
        format!(
            "heddle_oldest_pending_seconds{{kind=\"trigger\",ns=\"team-a\",trigger=\"{trigger}\"}} {age}\n"
        )
    };
    for minute in 0..=5 {
        let text = format!(
            "{WELL}{}{}{}",
            oldest("orders", 754),
            oldest("a/b?c", 301),
            oldest("fast", 3)
        );
        watch.look(seconds(60 * minute), &text);
    }
    let all: Vec<HeldAlert> = watch.held().collect();
    assert_eq!(all.len(), 2);
    assert!(
        all.iter()
            .all(|held| held.fires && held.alert.name == "HeddleBacklogAge")
    );
    assert_eq!(
        all[1].summary(),
        "the oldest event of team-a/orders waits for 12 min"
    );
    assert_eq!(all[0].page(), "objects/trigger/team-a/a%2Fb%3Fc");
}

#[test]
fn alerts_and_series_are_bounded() {
    let mut watch = AlertWatch::new().unwrap();
    let mut text = WELL.to_owned();
    for number in 0..12_000 {
        text.push_str(&format!(
            "heddle_unaccounted{{kind=\"trigger\",ns=\"n\",trigger=\"t{number}\"}} 1\n"
        ));
    }
    watch.look(seconds(60), &text);
    assert_eq!(watch.left_out(), 2_001);
    assert_eq!(watch.held().count(), ACTIVE_MAX);
}
