//! Numbers that a strict reader can read, and a trace that goes on at the subscriber.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::stage::{self, BROKER, event, trigger};
use super::subscriber::{Manner, Subscriber};
use crate::harness::Server;

/// One exposition in the text format of OpenMetrics, taken apart by somebody who forgives nothing.
#[derive(Debug, Default)]
struct Exposition {
    /// By name and labels, as they are written.
    samples: BTreeMap<String, f64>,
    families: BTreeMap<String, Family>,
}

#[derive(Debug, Default)]
struct Family {
    kind: String,
    help: String,
}

/// What a sample of each kind may have behind the name of its family.
fn suffixes(kind: &str) -> &'static [&'static str] {
    match kind {
        "counter" => &["_total", "_created"],
        "gauge" => &[""],
        "histogram" => &["_bucket", "_count", "_sum", "_created"],
        "summary" => &["", "_count", "_sum", "_created"],
        "info" => &["_info"],
        other => panic!("unknown type {other}"),
    }
}

impl Exposition {
    fn read(text: &str) -> Self {
        let body = text.strip_suffix("# EOF\n").expect("the end is marked");
        assert!(!body.contains("# EOF"), "the end is marked twice");
        let mut read = Self::default();
        let mut current = String::new();
        for line in body.lines() {
            assert!(!line.is_empty(), "an empty line");
            match line.strip_prefix("# ") {
                Some(descriptor) => read.descriptor(descriptor, &mut current),
                None => read.sample(line, &current),
            }
        }
        for (name, family) in &read.families {
            assert!(!family.kind.is_empty(), "{name} has no TYPE");
            assert!(!family.help.is_empty(), "{name} has no HELP");
        }
        read.check_histograms();
        read
    }

    fn descriptor(&mut self, text: &str, current: &mut String) {
        let mut words = text.splitn(3, ' ');
        let (what, name) = (words.next().unwrap(), words.next().unwrap());
        let value = words.next().unwrap_or_default();
        assert!(is_name(name), "{name:?} is no name");
        if name != current {
            let known = self.families.contains_key(name);
            assert!(!known, "the family {name} is in two places");
            self.families.insert(name.to_owned(), Family::default());
            name.clone_into(current);
        }
        let family = self.families.get_mut(name).unwrap();
        let field = match what {
            "TYPE" => &mut family.kind,
            "HELP" => &mut family.help,
            "UNIT" => return,
            other => panic!("{other} is no descriptor"),
        };
        assert!(field.is_empty(), "{name} has two {what}");
        value.clone_into(field);
        if what == "TYPE" {
            suffixes(value);
        }
    }

    fn sample(&mut self, line: &str, current: &str) {
        let (series, value) = line.rsplit_once(' ').expect("a value");
        let name = series.split('{').next().unwrap();
        let family = self
            .families
            .get(current)
            .expect("a family before its samples");
        let suffix = name.strip_prefix(current);
        let fits = suffix.is_some_and(|suffix| suffixes(&family.kind).contains(&suffix));
        assert!(
            fits,
            "{name} does not belong to the {} {current}",
            family.kind
        );
        if let Some(labels) = series
            .strip_prefix(name)
            .filter(|labels| !labels.is_empty())
        {
            check_labels(labels);
        }
        let value: f64 = value
            .parse()
            .unwrap_or_else(|_| panic!("no number: {line}"));
        assert!(family.kind == "gauge" || value >= 0.0, "{line}");
        let before = self.samples.insert(series.to_owned(), value);
        assert!(before.is_none(), "{series} is there twice");
    }

    /// Buckets only grow, and the last one holds everything.
    fn check_histograms(&self) {
        let histograms = self
            .families
            .iter()
            .filter(|(_, family)| family.kind == "histogram");
        for (name, _) in histograms {
            let mut by_labels: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
            for (series, value) in &self.samples {
                let Some(labels) = series.strip_prefix(&format!("{name}_bucket{{")) else {
                    continue;
                };
                let labels = labels.strip_suffix('}').unwrap();
                let bound = |label: &&str| label.starts_with("le=");
                let le = labels.split(',').find(bound).expect("a bucket has a bound");
                let le = le[4..le.len() - 1].replace("+Inf", "inf").parse().unwrap();
                let rest: Vec<&str> = labels.split(',').filter(|label| !bound(label)).collect();
                by_labels
                    .entry(rest.join(","))
                    .or_default()
                    .push((le, *value));
            }
            for (labels, mut buckets) in by_labels {
                buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
                let grows = buckets.windows(2).all(|pair| pair[0].1 <= pair[1].1);
                assert!(grows, "{name}{{{labels}}}: {buckets:?}");
                let (bound, all) = *buckets.last().unwrap();
                assert!(bound.is_infinite(), "{name}{{{labels}}} has no last bucket");
                let count = if labels.is_empty() {
                    format!("{name}_count")
                } else {
                    format!("{name}_count{{{labels}}}")
                };
                assert_eq!(self.samples.get(&count), Some(&all), "{count}");
            }
        }
    }

    /// Zero for what was not counted yet.
    fn count(&self, series: &str) -> f64 {
        self.samples.get(series).copied().unwrap_or(0.0)
    }

    fn get(&self, series: &str) -> f64 {
        let value = self.samples.get(series);
        *value.unwrap_or_else(|| panic!("no {series} in {:#?}", self.samples.keys()))
    }
}

fn is_name(text: &str) -> bool {
    let first = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    first
        && text
            .chars()
            .all(|next| next.is_ascii_alphanumeric() || "_:".contains(next))
}

/// `{name="value",…}`, each name once, in values only the escapes there are.
fn check_labels(text: &str) {
    let wrong = |what: &str| -> ! { panic!("{what}: {text}") };
    let inside = text
        .strip_prefix('{')
        .and_then(|text| text.strip_suffix('}'));
    let mut rest = inside.unwrap_or_else(|| wrong("no braces"));
    let mut names = BTreeSet::new();
    while !rest.is_empty() {
        let (name, value) = rest.split_once("=\"").unwrap_or_else(|| wrong("no value"));
        assert!(
            is_name(name) && names.insert(name),
            "label {name:?}: {text}"
        );
        let mut chars = value.char_indices();
        let end = loop {
            match chars.next() {
                Some((at, '"')) => break at,
                Some((_, '\\')) => match chars.next() {
                    Some((_, 'n' | '\\' | '"')) => {}
                    _ => wrong("unknown escape"),
                },
                Some(_) => {}
                None => wrong("no end of a value"),
            }
        };
        rest = &value[end + 1..];
        match rest.strip_prefix(',') {
            Some(next) if !next.is_empty() => rest = next,
            None if rest.is_empty() => {}
            _ => wrong("labels are separated by commas"),
        }
    }
}

async fn exposition(server: &Server) -> Exposition {
    Exposition::read(&server.metrics().await)
}

#[tokio::test]
async fn the_metrics_can_be_read_strictly_and_count_what_happens() {
    let subscriber = Subscriber::start().await;
    let server = stage::with_broker().await;
    let orders = trigger("orders", &subscriber.url("/orders"), json!({}));
    server.apply_trigger(&orders).await;
    let before = exposition(&server).await;
    for id in ["1", "2", "3"] {
        server.publish(BROKER, id, "ping").await;
    }
    for door in [BROKER, "/broker/nobody/knows"] {
        let refused = server.publisher().ask("POST", door, &[], b"").await;
        assert!((400..500).contains(&refused.unwrap().status()));
    }
    server.until_quiet().await;
    let after = exposition(&server).await;

    let grown = |series: &str| after.count(series) - before.count(series);
    let published = |ns: &str, code: &str| {
        format!(r#"heddle_published_total{{api="broker",app="",ns="{ns}",code="{code}"}}"#)
    };
    assert_eq!(grown(&published("team-a", "2xx")), 3.0);
    assert_eq!(grown(&published("team-a", "4xx")), 1.0);
    assert_eq!(grown(&published("", "4xx")), 1.0, "strangers have no name");
    let consumer = r#"kind="trigger",ns="team-a",trigger="orders""#;
    let attempts = format!(r#"heddle_attempts_total{{app="",{consumer},code="2xx"}}"#);
    assert_eq!(grown(&attempts), 3.0);
    assert_eq!(grown(r#"heddle_hop_seconds_count{hop="source"}"#), 5.0);
    assert_eq!(grown(r#"heddle_hop_seconds_count{hop="delivery"}"#), 3.0);
    assert_eq!(grown(&format!("heddle_matched_total{{{consumer}}}")), 3.0);
    assert_eq!(grown(&format!("heddle_delivered_total{{{consumer}}}")), 3.0);
    assert_eq!(after.get(&format!("heddle_unaccounted{{{consumer}}}")), 0.0);
    assert_eq!(after.get(&format!("heddle_pending{{{consumer}}}")), 0.0);
    assert_eq!(after.get("heddle_log_events"), 3.0);
}

#[tokio::test]
async fn what_comes_from_an_application_is_counted_under_its_name_to_the_end() {
    let subscriber = Subscriber::start().await;
    subscriber.behave("/refunds", Manner::Status(400));
    let mut server = stage::shop(&subscriber).await;
    for id in ["1", "2"] {
        server.publish("/shop/events", id, "order.cancelled").await;
    }
    server.publish(BROKER, "3", "order.cancelled").await;
    server.until_quiet().await;
    let dead = |app: &str| {
        format!(
            r#"heddle_dead_letters{{app="{app}",kind="trigger",ns="team-a",trigger="refunds"}}"#
        )
    };
    let published =
        r#"heddle_published_total{api="application",app="shop",ns="kyma-integration",code="2xx"}"#;
    let attempts = r#"heddle_attempts_total{app="shop",kind="trigger",ns="team-a",trigger="refunds",code="4xx"}"#;
    let before = exposition(&server).await;
    assert_eq!((before.get(published), before.get(attempts)), (2.0, 2.0));
    assert_eq!(
        (before.get(&dead("shop")), before.get(&dead(""))),
        (2.0, 1.0)
    );
    // Counters begin anew; what rests is still known by its name.
    assert!(server.terminate().await.success());
    server.launch().await;
    let after = exposition(&server).await;
    assert_eq!((after.get(&dead("shop")), after.get(&dead(""))), (2.0, 1.0));
    assert_eq!(after.count(published), 0.0);
}

#[tokio::test]
async fn a_trace_goes_on_at_the_subscriber_as_another_span() {
    let subscriber = Subscriber::start().await;
    let server = stage::with_broker().await;
    let orders = trigger("orders", &subscriber.url("/orders"), json!({}));
    server.apply_trigger(&orders).await;
    let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
    let parent = format!("00-{trace}-{span}-01");
    let mut headers = event("1", "ping").to_vec();
    headers.extend([("traceparent", &*parent), ("tracestate", "vendor=1")]);
    let answer = server.publisher().ask("POST", BROKER, &headers, b"").await;
    assert_eq!(answer.unwrap().status(), 202);
    subscriber.until_received("/orders", 1).await;
    let received = &subscriber.received("/orders")[0];
    let arrived = received.header("traceparent").expect("a traceparent");
    let parts: Vec<&str> = arrived.split('-').collect();
    assert_eq!(
        (parts[0], parts[1], parts[3]),
        ("00", trace, "01"),
        "{arrived}"
    );
    assert_ne!(parts[2], span, "the publisher's span is not ours");
    assert_ne!(parts[2], "0000000000000000");
    assert_eq!(received.header("tracestate"), Some("vendor=1"));
    assert_eq!(
        received.header("ce-traceparent"),
        None,
        "it was no attribute"
    );
}
