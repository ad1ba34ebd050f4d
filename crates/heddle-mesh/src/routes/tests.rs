//! Resources in, table out: who is reached, how, and with which settings.

mod budget;
mod granting;
mod matching;

use heddle_api::dataplane::Resources;
use heddle_api::filter::FilterSource;
use heddle_api::pause::DeliveryPause;
use heddle_api::rate::DeliveryRate;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;

/// Resources from JSON, each with what every object has.
#[derive(Default)]
struct World(Resources);

fn object<K: DeserializeOwned>(namespace: &str, name: &str, rest: Value) -> Arc<K> {
    let mut whole = json!({
        "apiVersion": "",
        "kind": "",
        "metadata": {"name": name, "namespace": namespace, "uid": format!("uid-{name}"), "generation": 3},
        "spec": {},
    });
    merge(&mut whole, rest);
    Arc::new(serde_json::from_value(whole).expect("the object has the shape of its kind"))
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

impl World {
    fn channel(mut self, namespace: &str, name: &str, rest: Value) -> Self {
        self.0.channels.push(object(namespace, name, rest));
        self
    }

    fn broker(mut self, namespace: &str, name: &str, rest: Value) -> Self {
        self.0.brokers.push(object(namespace, name, rest));
        self
    }

    fn subscription(mut self, namespace: &str, name: &str, channel: &str, rest: Value) -> Self {
        let mut whole = json!({"spec": {"channel": {"kind": "Channel", "name": channel}}});
        merge(&mut whole, rest);
        self.0.subscriptions.push(object(namespace, name, whole));
        self
    }

    /// A Subscription from a Channel in `hub` to a place in another namespace, where a policy lets it in.
    fn link(self, name: &str, channel: &str, kind: &str, namespace: &str, to: &str) -> Self {
        self.lets_in(namespace, "Channel", "hub", channel)
            .bare_link(name, channel, kind, namespace, to)
    }

    /// The same without a policy.
    fn bare_link(self, name: &str, channel: &str, kind: &str, namespace: &str, to: &str) -> Self {
        let reference = json!({"kind": kind, "namespace": namespace, "name": to});
        let spec = json!({"spec": {"subscriber": {"ref": reference}}});
        self.subscription("hub", name, channel, spec)
    }

    fn policy(mut self, namespace: &str, spec: Value) -> Self {
        let name = format!("policy-{}", self.0.policies.len());
        let policy = object(namespace, &name, json!({"spec": spec}));
        self.0.policies.push(policy);
        self
    }

    /// A policy for everything in a namespace, in favour of one object elsewhere.
    fn lets_in(self, namespace: &str, kind: &str, from: &str, name: &str) -> Self {
        let reference = json!({"kind": kind, "namespace": from, "name": name});
        self.policy(namespace, json!({"from": [{"ref": reference}]}))
    }

    fn trigger(mut self, namespace: &str, name: &str, rest: Value) -> Self {
        let mut whole = json!({"spec": {"subscriber": {"uri": "http://subscriber"}}});
        merge(&mut whole, rest);
        self.0.triggers.push(object(namespace, name, whole));
        self
    }

    fn compile(&self) -> Table {
        compile(&self.0)
    }
}

fn deleted() -> Value {
    json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
}

/// Every consumer with its feeds, as `key <- entry [via …], …`.
fn feeds(table: &Table) -> Vec<String> {
    let feed = |feed: &Feed| match feed.via.as_slice() {
        [] => feed.entry.to_string(),
        via => format!("{} via {}", feed.entry, via.join(" ")),
    };
    let line = |consumer: &Arc<ConsumerSpec>| {
        let feeds: Vec<String> = consumer.feeds.iter().map(feed).collect();
        format!("{} <- {}", consumer.key, feeds.join(", "))
    };
    table.consumers().iter().map(line).collect()
}

fn consumer(table: &Table, key: &str) -> ConsumerSpec {
    let (number, consumer) = table.consumer(key).unwrap_or_else(|| panic!("no {key}"));
    assert_eq!(table.consumers()[number as usize].key, consumer.key);
    (**consumer).clone()
}

fn entry(name: &str) -> Target {
    Target::Entry(name.into())
}

fn url(url: &str) -> Target {
    Target::Url(url.to_owned())
}

#[test]
fn a_trigger_is_fed_by_its_broker_and_by_what_leads_there() {
    let table = World::default()
        .channel("hub", "shop", json!({}))
        .channel("hub", "other", json!({}))
        .broker("team", "default", json!({}))
        .link("shop-team", "shop", "Broker", "team", "default")
        .trigger("team", "t", json!({}))
        .compile();
    assert_eq!(
        feeds(&table),
        ["trigger/team/t <- broker/team/default, \
             channel/hub/shop via subscription/hub/shop-team broker/team/default"]
    );
    let entries = [
        "broker/team/default",
        "channel/hub/shop",
        "channel/hub/other",
    ];
    assert!(
        entries
            .iter()
            .all(|name| &*table.entry(name).unwrap().name == *name)
    );
    assert!(table.entry("channel/hub/none").is_none());
}

#[test]
fn several_links_between_two_places_count_once() {
    let table = World::default()
        .channel("hub", "shop", json!({}))
        .broker("team", "default", json!({}))
        .link("b", "shop", "Broker", "team", "default")
        .link("a", "shop", "Broker", "team", "default")
        .trigger("team", "t", json!({}))
        .compile();
    assert_eq!(
        feeds(&table),
        ["trigger/team/t <- broker/team/default, \
             channel/hub/shop via subscription/hub/a broker/team/default"]
    );
}

#[test]
fn links_are_followed_from_channel_to_channel_and_circles_end() {
    let table = World::default()
        .channel("hub", "a", json!({}))
        .channel("hub", "b", json!({}))
        .broker("team", "default", json!({}))
        .link("ab", "a", "Channel", "hub", "b")
        .link("ba", "b", "Channel", "hub", "a")
        .link("bb", "b", "Channel", "hub", "b")
        .link("bt", "b", "Broker", "team", "default")
        .trigger("team", "t", json!({}))
        .subscription(
            "hub",
            "own",
            "a",
            json!({"spec": {"subscriber": {"uri": "http://x"}}}),
        )
        .compile();
    assert_eq!(
        feeds(&table),
        [
            "subscription/hub/own <- channel/hub/a, \
             channel/hub/b via subscription/hub/ba channel/hub/a",
            "trigger/team/t <- broker/team/default, \
             channel/hub/a via subscription/hub/ab channel/hub/b subscription/hub/bt broker/team/default, \
             channel/hub/b via subscription/hub/bt broker/team/default",
        ]
    );
}

#[test]
fn the_address_of_a_place_is_the_place() {
    let address = |url| json!({"status": {"address": {"url": url}}});
    let resolved = json!({
        "spec": {"subscriber": {"uri": "http://heddle/broker/team/default"}},
        "status": {"physicalSubscription": {"subscriberUri": "http://heddle/broker/team/default"}},
    });
    let table = World::default()
        .channel("hub", "shop", address("http://heddle/channel/hub/shop"))
        .broker(
            "team",
            "default",
            address("http://heddle/broker/team/default"),
        )
        .lets_in("team", "Channel", "hub", "shop")
        .lets_in("hub", "Broker", "team", "default")
        .subscription("hub", "link", "shop", resolved)
        .trigger(
            "team",
            "t",
            json!({"status": {"subscriberUri": "http://heddle/channel/hub/shop"}}),
        )
        .compile();
    assert_eq!(
        feeds(&table),
        ["trigger/team/t <- broker/team/default, \
             channel/hub/shop via subscription/hub/link broker/team/default"]
    );
    let trigger = consumer(&table, "trigger/team/t");
    assert_eq!(trigger.destination, entry("channel/hub/shop"));
}

#[test]
fn what_is_being_deleted_or_not_there_is_not_routed() {
    let table = World::default()
        .channel("hub", "shop", json!({}))
        .channel("hub", "gone", deleted())
        .broker("team", "default", json!({}))
        .broker("team", "gone", deleted())
        .trigger("team", "kept", json!({}))
        .trigger("team", "gone", deleted())
        .trigger("team", "at-gone", json!({"spec": {"broker": "gone"}}))
        .trigger("team", "at-none", json!({"spec": {"broker": "none"}}))
        .trigger("elsewhere", "at-none", json!({}))
        .link("to-gone", "shop", "Broker", "team", "gone")
        .link("from-gone", "gone", "Broker", "team", "default")
        .link("to-none", "shop", "Broker", "team", "none")
        .subscription("hub", "deleted", "shop", deleted())
        .compile();
    assert_eq!(feeds(&table), ["trigger/team/kept <- broker/team/default"]);
    let mut entries: Vec<_> = table.entries.keys().map(|name| name.to_string()).collect();
    entries.sort();
    assert_eq!(entries, ["broker/team/default", "channel/hub/shop"]);
    assert_eq!(table.rejected(), []);
}

#[test]
fn a_subscription_with_a_subscriber_of_its_own_is_a_consumer() {
    let table = World::default()
        .channel("hub", "shop", json!({}))
        .broker("team", "default", json!({}))
        .lets_in("team", "Channel", "hub", "shop")
        .subscription(
            "hub",
            "both",
            "shop",
            json!({
                "spec": {
                    "subscriber": {"ref": {"kind": "Service", "name": "s"}},
                    "reply": {"ref": {"kind": "Broker", "namespace": "team", "name": "default"}},
                },
                "status": {"physicalSubscription": {"subscriberUri": "http://s", "subscriberCACerts": "PEM"}},
            }),
        )
        .subscription(
            "hub",
            "behind-an-address",
            "shop",
            json!({
                "spec": {"subscriber": {
                    "ref": {"kind": "Broker", "namespace": "team", "name": "default"},
                    "uri": "/path",
                }},
                "status": {"physicalSubscription": {"subscriberUri": "http://b/path"}},
            }),
        )
        .subscription(
            "hub",
            "reply-only",
            "shop",
            json!({
                "spec": {"reply": {"uri": "http://r", "CACerts": "SPEC"}},
                "status": {"physicalSubscription": {"replyUri": "http://r"}},
            }),
        )
        .subscription(
            "hub",
            "unresolved",
            "shop",
            json!({"spec": {
                "subscriber": {"ref": {"kind": "Service", "name": "s"}},
                "reply": {"ref": {"kind": "Service", "name": "s"}},
            }}),
        )
        .subscription(
            "hub",
            "reply-link",
            "shop",
            json!({"spec": {"reply": {"ref": {"kind": "Broker", "namespace": "team", "name": "default"}}}}),
        )
        .subscription(
            "hub",
            "of-another-namespace",
            "shop",
            json!({"spec": {"channel": {"namespace": "team"}, "subscriber": {"uri": "http://x"}}}),
        )
        .compile();
    let found: Vec<_> = table
        .consumers()
        .iter()
        .map(|one| {
            let ca_certs = one.ca_certs.as_deref().unwrap_or_default();
            (
                &*one.key,
                one.destination.clone(),
                one.reply.clone(),
                ca_certs,
            )
        })
        .collect();
    let broker = Reply::Entry("broker/team/default".into());
    assert_eq!(
        found,
        [
            (
                "subscription/hub/behind-an-address",
                url("http://b/path"),
                Reply::None,
                ""
            ),
            ("subscription/hub/both", url("http://s"), broker, "PEM"),
            (
                "subscription/hub/reply-only",
                url("http://r"),
                Reply::None,
                "SPEC"
            ),
            (
                "subscription/hub/unresolved",
                Target::Unresolved,
                Reply::Unresolved,
                ""
            ),
        ]
    );
    // The one that only has a Broker for answers leads there.
    assert_eq!(table.entry("channel/hub/shop").unwrap().reach.len(), 2);
}

#[test]
fn a_trigger_is_sent_what_its_status_resolved_and_answers_to_its_broker() {
    let table = World::default()
        .broker("team", "default", json!({}))
        .broker("team", "next", json!({}))
        .trigger(
            "team",
            "service",
            json!({
                "spec": {"subscriber": {"ref": {"kind": "Service", "name": "s"}, "uri": null}},
                "status": {"subscriberUri": "https://s", "subscriberCACerts": "PEM"},
            }),
        )
        .trigger(
            "team",
            "chained",
            json!({"spec": {"subscriber": {
                "ref": {"apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "name": "next"},
                "uri": null,
            }}}),
        )
        .trigger("team", "unresolved", json!({}))
        .compile();
    let service = consumer(&table, "trigger/team/service");
    assert_eq!(service.destination, url("https://s"));
    assert_eq!(service.ca_certs.as_deref(), Some("PEM"));
    assert_eq!(service.reply, Reply::Entry("broker/team/default".into()));
    assert_eq!(
        (service.uid.as_str(), service.generation),
        ("uid-service", 3)
    );
    let chained = consumer(&table, "trigger/team/chained");
    assert_eq!(chained.destination, entry("broker/team/next"));
    let unresolved = consumer(&table, "trigger/team/unresolved");
    assert_eq!(unresolved.destination, Target::Unresolved);
}

#[test]
fn any_delivery_setting_replaces_all_inherited_ones() {
    let inherited = json!({
        "spec": {"delivery": {"retry": 5, "deadLetterSink": {"uri": "http://theirs"}}},
        "status": {"deadLetterSinkUri": "http://theirs"},
    });
    let with = |delivery: Value, sink: Option<&str>| json!({"spec": {"delivery": delivery}, "status": {"deadLetterSinkUri": sink}});
    let table = World::default()
        .broker("team", "default", inherited.clone())
        .trigger("team", "inherits", json!({}))
        .trigger("team", "empty", with(json!({}), None))
        .trigger("team", "own", with(json!({"timeout": "PT1S"}), None))
        .trigger(
            "team",
            "own-sink",
            with(
                json!({"deadLetterSink": {"uri": "http://mine"}}),
                Some("http://mine"),
            ),
        )
        .trigger(
            "team",
            "lost-sink",
            with(
                json!({"deadLetterSink": {"ref": {"kind": "Service", "name": "s"}}}),
                None,
            ),
        )
        .trigger(
            "team",
            "broker-sink",
            with(
                json!({"deadLetterSink": {"ref": {"kind": "Broker", "name": "default"}}}),
                None,
            ),
        )
        .channel("hub", "shop", inherited)
        .subscription(
            "hub",
            "inherits",
            "shop",
            json!({"spec": {"subscriber": {"uri": "http://x"}}}),
        )
        .compile();
    let check = |key: &str, retry: Option<i32>, sink: Option<Target>| {
        let consumer = consumer(&table, key);
        assert_eq!(
            (consumer.delivery.retry, consumer.dead_letter_sink),
            (retry, sink),
            "{key}"
        );
    };
    check("trigger/team/inherits", Some(5), Some(url("http://theirs")));
    check("trigger/team/empty", Some(5), Some(url("http://theirs")));
    check("trigger/team/own", None, None);
    check("trigger/team/own-sink", None, Some(url("http://mine")));
    check("trigger/team/lost-sink", None, Some(Target::Unresolved));
    check(
        "trigger/team/broker-sink",
        None,
        Some(entry("broker/team/default")),
    );
    check(
        "subscription/hub/inherits",
        Some(5),
        Some(url("http://theirs")),
    );
}

#[test]
fn annotations_are_settings_and_their_faults_are_told() {
    let check = |annotations: Value, expected: Settings, faults: &[&str]| {
        let table = World::default()
            .broker("team", "default", json!({}))
            .trigger(
                "team",
                "t",
                json!({"metadata": {"annotations": annotations}}),
            )
            .compile();
        assert_eq!(consumer(&table, "trigger/team/t").settings, expected);
        let told: Vec<_> = table
            .faults()
            .iter()
            .map(|fault| fault.reason.as_str())
            .collect();
        assert_eq!(told, faults);
        assert!(
            table
                .faults()
                .iter()
                .all(|fault| fault.key == "trigger/team/t")
        );
    };
    check(json!({}), Settings::default(), &[]);
    check(
        json!({
            "heddle.dev/paused": "true",
            "heddle.dev/rate": "100/s",
            "heddle.dev/delivery-order": "ordered",
            "kafka.eventing.knative.dev/delivery.order": "unordered",
            "heddle.dev/max-in-flight": "1000",
            "heddle.dev/start": "earliest",
            "heddle.dev/auto-redrive": "0",
        }),
        Settings {
            pause: Some(DeliveryPause::default()),
            rate: DeliveryRate::parse("100/s"),
            ordered: true,
            in_flight_max: Some(1000),
            start: Start::Earliest,
            auto_redrive: Some(0),
            ..Settings::default()
        },
        &[],
    );
    let ordered = Settings {
        ordered: true,
        ..Settings::default()
    };
    check(
        json!({"kafka.eventing.knative.dev/delivery.order": "ordered"}),
        ordered,
        &[],
    );
    for (value, start) in [
        ("new", Start::New),
        (
            "2026-01-02T03:04:05Z",
            Start::Time("2026-01-02T03:04:05Z".parse().unwrap()),
        ),
        (
            "event:/shop#part#42",
            Start::Event {
                source: "/shop#part".to_owned(),
                id: "42".to_owned(),
            },
        ),
    ] {
        let settings = Settings {
            start,
            ..Settings::default()
        };
        check(json!({"heddle.dev/start": value}), settings, &[]);
    }
    for (name, value, wanted) in [
        ("heddle.dev/paused", "yes", "true or false"),
        (
            "heddle.dev/delivery-order",
            "sorted",
            "ordered or unordered",
        ),
        ("heddle.dev/rate", "fast", heddle_api::rate::WANTED),
        ("heddle.dev/rate", "0/s", heddle_api::rate::WANTED),
        ("heddle.dev/max-in-flight", "0", "a number from 1 to 1000"),
        (
            "heddle.dev/max-in-flight",
            "1001",
            "a number from 1 to 1000",
        ),
        ("heddle.dev/auto-redrive", "11", "a number from 0 to 10"),
        ("heddle.dev/auto-redrive", "-1", "a number from 0 to 10"),
        (
            "heddle.dev/start",
            "event:shop",
            "new, earliest, a time in RFC 3339 or event:SOURCE#ID",
        ),
        (
            "heddle.dev/start",
            "event:#1",
            "new, earliest, a time in RFC 3339 or event:SOURCE#ID",
        ),
        (
            "heddle.dev/start",
            "yesterday",
            "new, earliest, a time in RFC 3339 or event:SOURCE#ID",
        ),
    ] {
        let fault = format!(
            "annotation {name} is {value:?}, wanted is {wanted}; it is not taken into account"
        );
        check(json!({name: value}), Settings::default(), &[&fault]);
    }
}

#[test]
fn a_filter_that_cannot_be_understood_is_rejected_and_its_neighbours_are_not() {
    let table = World::default()
        .broker("team", "default", json!({}))
        .trigger(
            "team",
            "bad",
            json!({"spec": {"filters": [{"cesql": "1 + 1"}]}}),
        )
        .trigger(
            "team",
            "good",
            json!({"spec": {"filters": [{"cesql": "1 = 1"}]}}),
        )
        .compile();
    assert_eq!(
        table.rejected(),
        [Rejected {
            key: "trigger/team/bad".to_owned(),
            reason:
                "filters[0].cesql: the expression gives an integer, and a filter needs a boolean"
                    .to_owned(),
        }]
    );
    assert_eq!(feeds(&table), ["trigger/team/good <- broker/team/default"]);
    assert!(table.consumer("trigger/team/bad").is_none());
}

#[test]
fn the_door_of_an_application_opens_when_all_behind_it_is_there() {
    let hub = "kyma-integration";
    let check = |application: Value,
                 source: Option<Value>,
                 channel: Option<Value>,
                 expected: Result<(), &str>| {
        let mut resources = World::default().0;
        resources.applications.push(object("", "shop", application));
        resources.http_sources.extend(source.map(|rest| {
            let mut whole = json!({"spec": {"source": "shop"}});
            merge(&mut whole, rest);
            object(hub, "shop", whole)
        }));
        resources
            .channels
            .extend(channel.map(|rest| object(hub, "shop", rest)));
        let expected = match expected {
            Ok(()) => Door::Open {
                entry: "channel/kyma-integration/shop".into(),
            },
            Err(reason) => Door::NotReady {
                reason: reason.to_owned(),
            },
        };
        let table = compile(&resources);
        assert_eq!(table.application("shop"), Some(&expected));
        assert_eq!(table.application("other"), None);
    };
    let there = || Some(json!({}));
    check(json!({}), there(), there(), Ok(()));
    let no_source = "application shop has no httpsource/kyma-integration/shop yet";
    check(json!({}), None, there(), Err(no_source));
    check(json!({}), Some(deleted()), there(), Err(no_source));
    let no_channel = "application shop has no channel/kyma-integration/shop yet";
    check(json!({}), there(), None, Err(no_channel));
    check(json!({}), there(), Some(deleted()), Err(no_channel));
    check(
        deleted(),
        there(),
        there(),
        Err("application shop is being deleted"),
    );
    check(
        json!({"spec": {"skipInstallation": true}}),
        there(),
        there(),
        Err("application shop asks for nothing to be set up (spec.skipInstallation)"),
    );
}

/// A world with one of everything, and the trigger as given.
fn sample(trigger: Value) -> World {
    World::default()
        .channel("hub", "shop", json!({}))
        .broker("team", "default", json!({}))
        .link("shop-team", "shop", "Broker", "team", "default")
        .trigger("team", "t", trigger)
}

#[test]
fn a_fingerprint_changes_with_feeds_and_filters_and_with_nothing_else() {
    let of = |world: World| consumer(&world.compile(), "trigger/team/t").fingerprint;
    let filters = || json!({"spec": {"filters": [{"exact": {"type": "x"}}]}});
    let before = of(sample(filters()));
    // On disk since the first version.
    assert_eq!(before, 1_531_004_696_652_959_748);

    let mut other = filters();
    merge(
        &mut other,
        json!({
            "metadata": {"generation": 9, "uid": "new", "annotations": {"heddle.dev/paused": "true"}},
            "spec": {"delivery": {"retry": 1}, "subscriber": {"uri": "http://other"}},
            "status": {"subscriberUri": "http://other"},
        }),
    );
    assert_eq!(of(sample(other)), before);
    let filter_changed = json!({"spec": {"filters": [{"exact": {"type": "y"}}]}});
    assert_ne!(of(sample(filter_changed)), before);
    assert_ne!(of(sample(json!({}))), before);
    let fed_by_more = sample(filters()).channel("hub", "more", json!({})).link(
        "more-team",
        "more",
        "Broker",
        "team",
        "default",
    );
    assert_ne!(of(fed_by_more), before);
    let beside = sample(filters()).channel("hub", "more", json!({}));
    assert_eq!(of(beside), before);
}

#[test]
fn the_order_of_resources_does_not_matter() {
    let world = sample(json!({}))
        .trigger(
            "team",
            "a",
            json!({"metadata": {"annotations": {"heddle.dev/paused": "x"}}}),
        )
        .trigger(
            "team",
            "b",
            json!({"metadata": {"annotations": {"heddle.dev/paused": "x"}}}),
        )
        .trigger("team", "c", json!({"spec": {"filters": [{}]}}))
        .trigger("team", "d", json!({"spec": {"filters": [{}]}}))
        .link("also", "shop", "Broker", "team", "default");
    let mut turned = world.0.clone();
    turned.triggers.reverse();
    turned.subscriptions.reverse();
    let (one, other) = (world.compile(), compile(&turned));
    assert_eq!(feeds(&one), feeds(&other));
    assert_eq!(one.rejected(), other.rejected());
    assert_eq!(one.faults(), other.faults());
    assert_eq!((one.rejected().len(), one.faults().len()), (2, 2));
}

#[test]
fn filters_that_did_not_change_are_not_compiled_again() {
    let filters = |type_| json!({"spec": {"filters": [{"exact": {"type": type_}}]}});
    let before = sample(filters("x"))
        .trigger("team", "u", filters("x"))
        .compile();
    let after = sample(filters("x")).trigger("team", "u", filters("y"));
    let after = recompile(&after.0, &before);
    let same = |key: &str| {
        let (one, other) = (consumer(&before, key), consumer(&after, key));
        (Arc::ptr_eq(&one.predicate, &other.predicate), other)
    };
    assert!(same("trigger/team/t").0);
    let (is_same, changed) = same("trigger/team/u");
    assert!(!is_same);
    assert_eq!(
        *changed.predicate,
        Predicate::compile(&changed.filters).unwrap()
    );
}

#[test]
fn an_empty_table_leads_nowhere() {
    let table = Table::empty();
    let mut out = vec![7];
    table.matches("broker/a/b", &matching::event(&[("type", "x")]), &mut out);
    assert!(out.is_empty());
    assert_eq!(feeds(&table), Vec::<String>::new());
    assert_eq!(FilterSource::default(), FilterSource::Everything);
}

fn heartbeats_of(application: &str, namespace: &str) -> HeartbeatTarget {
    HeartbeatTarget {
        application: application.to_owned(),
        namespace: namespace.to_owned(),
        broker: "default".to_owned(),
        interval: std::time::Duration::from_secs(10),
    }
}

#[test]
fn heartbeats_are_heard_where_a_broker_is_and_come_by_the_links_there_are() {
    let mut world = World::default()
        .channel("hub", "shop", json!({}))
        .broker("team", "default", json!({}))
        .broker("other", "default", json!({}))
        .trigger("team", "all", json!({"spec": {"broker": "default"}}))
        .link("link", "shop", "Broker", "team", "default");
    let targets = [("shop", "none"), ("shop", "other"), ("shop", "team")];
    world.0.heartbeats = targets.map(|(app, ns)| heartbeats_of(app, ns)).to_vec();
    let table = world.compile();
    let expected = [
        "heartbeat/other/shop <- broker/other/default",
        "heartbeat/team/shop <- broker/team/default, channel/hub/shop via subscription/hub/link broker/team/default",
        "trigger/team/all <- broker/team/default, channel/hub/shop via subscription/hub/link broker/team/default",
    ];
    assert_eq!(feeds(&table), expected);
    assert!(table.rejected().is_empty() && table.faults().is_empty());
    let names = |source: &str, type_: &str| {
        let attributes = [("type", type_), ("source", source), ("id", "1")];
        let mut builder = crate::event::Builder::new(crate::event::Form::Binary);
        for (name, text) in attributes {
            builder.push(name, heddle_api::attributes::Value::Text(text));
        }
        let mut matched = Vec::new();
        table.matches("channel/hub/shop", &builder.build(None), &mut matched);
        let key = |number: &u32| table.consumers()[*number as usize].key.to_string();
        matched.iter().map(key).collect::<Vec<String>>()
    };
    let heartbeat = crate::heartbeat::TYPE;
    assert_eq!(
        names("/heddle/heartbeat/shop", heartbeat),
        ["heartbeat/team/shop"]
    );
    assert_eq!(names("/heddle/heartbeat/crm", heartbeat), [""; 0]);
    assert_eq!(
        names("/heddle/heartbeat/shop", "order.created"),
        ["trigger/team/all"]
    );
}

#[test]
fn the_canary_has_a_way_of_its_own_if_it_is_asked_for() {
    let resources = Resources::default();
    assert!(feeds(&compile(&resources)).is_empty());
    let table = recompile_with(&resources, &Table::empty(), true);
    let expected = "heartbeat/_heddle/_canary <- broker/_heddle/canary, channel/_heddle/canary via \
                    subscription/_heddle/canary broker/_heddle/canary";
    assert_eq!(feeds(&table), [expected]);
}
