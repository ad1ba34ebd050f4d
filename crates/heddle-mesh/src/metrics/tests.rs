//! Labels are what they say, and there are never more of them than a bound.

use super::*;
use answers::application;

fn account(consumer: &str) -> Account {
    Account {
        consumer: consumer.to_owned(),
        ..Account::default()
    }
}

/// The samples of one metric.
fn samples<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let of = |line: &&str| {
        let rest = line.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
    };
    text.lines().filter(of).collect()
}

fn text(metrics: &Metrics, consumers: &[(Account, Answers, BTreeMap<String, u64>)]) -> String {
    let accounts = Accounts {
        consumers: consumers.iter().map(|one| one.0.clone()).collect(),
        ..Accounts::default()
    };
    let answers: Vec<_> = consumers.iter().map(|one| one.1.clone()).collect();
    let dead: Vec<_> = consumers.iter().map(|one| one.2.clone()).collect();
    metrics.text(&Reading {
        accounts: &accounts,
        answers: &answers,
        dead: &dead,
        now: Timestamp::UNIX_EPOCH,
    })
}

#[test]
fn an_application_is_known_by_the_channel_it_publishes_to() {
    assert_eq!(application("channel/kyma-integration/shop"), "shop");
    for other in [
        "channel/team-a/shop",
        "broker/kyma-integration/shop",
        "channel/kyma-integration",
        "",
    ] {
        assert_eq!(application(other), "", "{other}");
    }
}

#[test]
fn publishes_are_split_by_place_and_strangers_share_one_line() {
    let metrics = Metrics::default();
    let shop: Arc<str> = "channel/kyma-integration/shop".into();
    let broker: Arc<str> = "broker/team-a/default".into();
    let took = Duration::from_millis(1);
    metrics.published(DoorKind::Application, Some(&shop), 202, 3, took);
    metrics.published(DoorKind::Application, Some(&shop), 429, 1, took);
    metrics.published(DoorKind::Broker, Some(&broker), 507, 1, took);
    metrics.published(DoorKind::Broker, None, 404, 1, took);
    metrics.published(DoorKind::Broker, None, 404, 1, took);
    let text = text(&metrics, &[]);
    let counted: Vec<&str> = samples(&text, "heddle_published_total")
        .into_iter()
        .filter(|line| !line.ends_with(" 0"))
        .collect();
    assert_eq!(
        counted,
        [
            r#"heddle_published_total{api="application",app="shop",ns="kyma-integration",code="2xx"} 3"#,
            r#"heddle_published_total{api="application",app="shop",ns="kyma-integration",code="429"} 1"#,
            r#"heddle_published_total{api="broker",app="",ns="",code="4xx"} 2"#,
            r#"heddle_published_total{api="broker",app="",ns="team-a",code="5xx"} 1"#,
        ]
    );
}

#[test]
fn places_beyond_the_bound_are_counted_together() {
    let metrics = Metrics::default();
    for number in 0..1100 {
        let place: Arc<str> = format!("broker/ns-{number}/default").into();
        metrics.published(DoorKind::Broker, Some(&place), 202, 1, Duration::ZERO);
        metrics.published(DoorKind::Broker, Some(&place), 202, 1, Duration::ZERO);
    }
    let text = text(&metrics, &[]);
    let accepted = |line: &&str| line.contains(r#"code="2xx""#) && !line.ends_with(" 0");
    let lines = samples(&text, "heddle_published_total");
    assert_eq!(lines.iter().copied().filter(accepted).count(), 1001);
    let rest = r#"heddle_published_total{api="broker",app="",ns="_overflow",code="2xx"} 200"#;
    assert!(lines.contains(&rest), "{text}");
}

#[test]
fn attempts_and_dead_letters_are_split_by_application() {
    let mut answers = Answers::default();
    answers.count("channel/kyma-integration/shop", 200);
    answers.count("channel/kyma-integration/shop", 503);
    answers.count("channel/kyma-integration/shop", 503);
    answers.count("broker/team-a/default", 0);
    answers.count("broker/team-a/default", 999);
    let dead = BTreeMap::from([
        ("broker/team-a/default".to_owned(), 1),
        ("broker/team-a/other".to_owned(), 2),
        ("channel/kyma-integration/shop".to_owned(), 4),
    ]);
    let busy = (account("trigger/team-a/orders"), answers, dead);
    let quiet = (
        account("trigger/team-a/quiet"),
        Answers::default(),
        BTreeMap::new(),
    );
    let text = text(&Metrics::default(), &[busy, quiet]);
    assert_eq!(
        samples(&text, "heddle_attempts_total"),
        [
            r#"heddle_attempts_total{app="shop",kind="trigger",ns="team-a",trigger="orders",code="2xx"} 1"#,
            r#"heddle_attempts_total{app="shop",kind="trigger",ns="team-a",trigger="orders",code="5xx"} 2"#,
            r#"heddle_attempts_total{app="",kind="trigger",ns="team-a",trigger="orders",code="none"} 1"#,
            r#"heddle_attempts_total{app="",kind="trigger",ns="team-a",trigger="orders",code="5xx"} 1"#,
        ]
    );
    assert_eq!(
        samples(&text, "heddle_dead_letters"),
        [
            r#"heddle_dead_letters{app="",kind="trigger",ns="team-a",trigger="orders"} 3"#,
            r#"heddle_dead_letters{app="shop",kind="trigger",ns="team-a",trigger="orders"} 4"#,
            r#"heddle_dead_letters{app="",kind="trigger",ns="team-a",trigger="quiet"} 0"#,
        ]
    );
}

#[test]
fn neither_applications_nor_consumers_make_labels_without_end() {
    let mut one = (account("trigger/a/t"), Answers::default(), BTreeMap::new());
    for number in 0..40 {
        let entry = format!("channel/kyma-integration/app-{number:02}");
        one.1.count(&entry, 200);
        one.2.insert(entry, 1);
    }
    let consumers: Vec<_> = (0..1003)
        .map(|number| {
            (
                account(&format!("trigger/a/t{number}")),
                one.1.clone(),
                one.2.clone(),
            )
        })
        .collect();
    let text = text(&Metrics::default(), &consumers);
    for name in ["heddle_attempts_total", "heddle_dead_letters"] {
        let lines = samples(&text, name);
        assert_eq!(lines.len(), 1000 * (APPLICATIONS_MAX + 1) + 1, "{name}");
        let beyond: Vec<_> = lines
            .iter()
            .filter(|line| line.contains(r#"trigger="_overflow""#))
            .collect();
        assert_eq!(beyond.len(), 1, "{name}");
        assert!(beyond[0].ends_with(" 120"), "{beyond:?}");
        let of_first =
            |line: &&&str| line.contains(r#"app="_overflow",kind="trigger",ns="a",trigger="t0""#);
        let first = lines.iter().find(of_first).unwrap();
        assert!(first.ends_with(" 24"), "{first}");
    }
    assert_eq!(samples(&text, "heddle_pending").len(), 1001);
}
