//! What policies allow: links between namespaces, and publishers at entries.

use super::*;
use crate::event::{Builder, Form};
use crate::who::{self, Denied, Who};
use heddle_api::attributes::Value as Attribute;

fn world() -> World {
    World::default()
        .channel("hub", "shop", json!({}))
        .channel("kyma-integration", "crm", json!({}))
        .broker(
            "team",
            "default",
            json!({"metadata": {"labels": {"tier": "gold"}}}),
        )
        .broker("team", "second", json!({}))
        .channel("team", "own", json!({}))
        .trigger("team", "t", json!({}))
}

/// Whether the link from `hub/shop` to the Broker `team/default` is in the table that this policy gives.
fn links(spec: Value) -> bool {
    let table = world()
        .bare_link("link", "shop", "Broker", "team", "default")
        .policy("team", spec)
        .compile();
    let routed = table.link("subscription/hub/link").is_some();
    let reaches = table.reaching("broker/team/default").len() == 2;
    let rejected = table.rejected().len() == 1;
    assert_eq!(
        (routed, routed),
        (reaches, !rejected),
        "{:?}",
        table.rejected()
    );
    routed
}

fn shop() -> Value {
    json!([{"ref": {"kind": "Channel", "namespace": "hub", "name": "shop"}}])
}

#[test]
fn a_link_into_another_namespace_needs_a_policy_there() {
    for (spec, allowed) in [
        (json!({"from": shop()}), true),
        (json!({"from": []}), false),
        (json!({}), false),
        // By the link itself.
        (
            json!({"from": [{"ref": {"kind": "Subscription", "namespace": "hub", "name": "link"}}]}),
            true,
        ),
        // Without a namespace it is one of the policy's own.
        (
            json!({"from": [{"ref": {"kind": "Channel", "name": "shop"}}]}),
            false,
        ),
        (
            json!({"from": [{"ref": {"kind": "Channel", "namespace": "hub", "name": "other"}}]}),
            false,
        ),
        (
            json!({"from": [{"ref": {"kind": "Broker", "namespace": "hub", "name": "shop"}}]}),
            false,
        ),
        // An identity is not a place.
        (
            json!({"from": [{"sub": "application/shop"}, {"sub": "*"}]}),
            false,
        ),
        (
            json!({"from": shop(), "to": [{"ref": {"kind": "Broker", "name": "default"}}]}),
            true,
        ),
        (
            json!({"from": shop(), "to": [{"ref": {"kind": "Broker", "name": "second"}}]}),
            false,
        ),
        (
            json!({"from": shop(), "to": [{"ref": {"kind": "Channel", "name": "default"}}]}),
            false,
        ),
        (
            json!({"from": shop(), "to": [{"ref": {"apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "name": "default"}}]}),
            true,
        ),
        (
            json!({"from": shop(), "to": [{"ref": {"apiVersion": "other/v1", "kind": "Broker", "name": "default"}}]}),
            false,
        ),
        // A link carries everything.
        (
            json!({"from": shop(), "filters": [{"exact": {"type": "a"}}]}),
            false,
        ),
        (json!({"from": shop(), "filters": [{"cesql": "(("}]}), false),
    ] {
        assert_eq!(links(spec.clone()), allowed, "{spec}");
    }
}

#[test]
fn a_selector_chooses_places_by_kind_and_labels() {
    for (selector, allowed) in [
        (json!({}), true),
        (json!({"kind": "Broker"}), true),
        (json!({"kind": "Channel"}), false),
        (json!({"matchLabels": {"tier": "gold"}}), true),
        (json!({"matchLabels": {"tier": "tin"}}), false),
        (
            json!({"matchExpressions": [{"key": "tier", "operator": "In", "values": ["gold"]}]}),
            true,
        ),
        (
            json!({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["gold"]}]}),
            false,
        ),
        (
            json!({"matchExpressions": [{"key": "none", "operator": "NotIn", "values": ["gold"]}]}),
            true,
        ),
        (
            json!({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}),
            true,
        ),
        (
            json!({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}),
            false,
        ),
    ] {
        let spec = json!({"from": shop(), "to": [{"selector": selector}]});
        assert_eq!(links(spec.clone()), allowed, "{spec}");
    }
}

#[test]
fn a_refused_link_names_the_remedy() {
    let reason = |world: World| {
        let table = world
            .bare_link("link", "shop", "Broker", "team", "default")
            .compile();
        let [rejected] = table.rejected() else {
            panic!("{:?}", table.rejected());
        };
        assert_eq!(rejected.key, "subscription/hub/link");
        rejected.reason.clone()
    };
    let remedy = "subscription/hub/link leads events from channel/hub/shop to broker/team/default, and no EventPolicy in \
                  team allows that: apply one there with spec.to ref {kind: Broker, name: default} and spec.from ref \
                  {kind: Channel, namespace: hub, name: shop}";
    assert_eq!(reason(world()), remedy);
    let filtered = world().policy(
        "team",
        json!({"from": shop(), "filters": [{"exact": {"type": "a"}}]}),
    );
    assert_eq!(
        reason(filtered),
        format!(
            "{remedy}; EventPolicy team/policy-0 has filters, and what leads from place to place is allowed whole or not at all"
        )
    );
    // What is written down above, done.
    let done = world()
        .bare_link("link", "shop", "Broker", "team", "default")
        .policy(
            "team",
            json!({"to": [{"ref": {"kind": "Broker", "name": "default"}}], "from": shop()}),
        );
    assert_eq!(done.compile().rejected(), []);
}

#[test]
fn a_policy_counts_only_in_its_own_namespace_and_while_it_stays() {
    let bare = || world().bare_link("link", "shop", "Broker", "team", "default");
    assert_eq!(
        bare()
            .policy("hub", json!({"from": shop()}))
            .compile()
            .rejected()
            .len(),
        1
    );
    let mut leaving = bare();
    let mut rest = deleted();
    merge(&mut rest, json!({"spec": {"from": shop()}}));
    leaving.0.policies.push(object("team", "leaving", rest));
    assert_eq!(leaving.compile().rejected().len(), 1);
}

#[test]
fn links_within_a_namespace_need_no_policy() {
    let table = world()
        .subscription(
            "team",
            "inner",
            "own",
            json!({"spec": {"subscriber": {"ref": {"kind": "Broker", "name": "default"}}}}),
        )
        .compile();
    assert_eq!(table.rejected(), []);
    assert!(table.link("subscription/team/inner").is_some());
}

#[test]
fn what_a_trigger_passes_on_to_another_namespace_is_kept_until_a_policy_lets_it_in() {
    let onward = json!({"spec": {
        "subscriber": {"uri": null, "ref": {"kind": "Channel", "namespace": "hub", "name": "shop"}},
        "delivery": {"deadLetterSink": {"ref": {"kind": "Channel", "namespace": "hub", "name": "shop"}}},
    }});
    let bare = || world().trigger("team", "onward", onward.clone());
    let table = bare().compile();
    let found = consumer(&table, "trigger/team/onward");
    assert_eq!(found.destination, Target::Unresolved);
    assert_eq!(found.dead_letter_sink, Some(Target::Unresolved));
    for told in [&table.rejected()[0], &table.faults()[0]] {
        assert_eq!(told.key, "trigger/team/onward");
        let remedy = "no EventPolicy in hub allows that";
        assert!(told.reason.contains(remedy), "{}", told.reason);
    }
    for (kind, name) in [("Broker", "default"), ("Trigger", "onward")] {
        let table = bare().lets_in("hub", kind, "team", name).compile();
        let found = consumer(&table, "trigger/team/onward");
        assert_eq!(found.destination, entry("channel/hub/shop"), "{kind}");
        assert_eq!((table.rejected(), table.faults()), (&[][..], &[][..]));
    }
}

fn event(type_: &str) -> crate::event::Event {
    let mut builder = Builder::new(Form::Binary);
    for (name, value) in [("type", type_), ("source", "/s"), ("id", "1")] {
        builder.push(name, Attribute::Text(value));
    }
    builder.build(None)
}

fn application(name: &str) -> Who {
    Who::Application(name.into())
}

#[test]
fn an_application_publishes_to_its_own_channel_and_where_a_policy_names_it() {
    let table = world()
        .policy("team", json!({
            "to": [{"ref": {"kind": "Broker", "name": "default"}}],
            "from": [{"sub": "application/crm"}, {"sub": "application/web-*"}],
        }))
        .policy("team", json!({
            "to": [{"ref": {"kind": "Channel", "name": "own"}}],
            "from": [{"ref": {"kind": "Application", "name": "crm"}}],
        }))
        .policy("hub", json!({
            "from": [{"ref": {"kind": "HTTPSource", "namespace": "kyma-integration", "name": "crm"}}],
            "filters": [{"prefix": {"type": "public."}}],
        }))
        .compile();
    let ask = |who: &Who, entry: &str, type_: &str| who::may(who, &table, entry, &event(type_));
    for (who, entry, type_, expected) in [
        ("crm", "channel/kyma-integration/crm", "a", Ok(())),
        (
            "shop",
            "channel/kyma-integration/crm",
            "a",
            Err(Denied::NotGranted),
        ),
        // Whether there is such a channel is not told.
        (
            "crm",
            "channel/kyma-integration/none",
            "a",
            Err(Denied::NotGranted),
        ),
        ("none", "channel/kyma-integration/none", "a", Ok(())),
        ("crm", "broker/team/default", "a", Ok(())),
        ("web-1", "broker/team/default", "a", Ok(())),
        ("web", "broker/team/default", "a", Err(Denied::NotGranted)),
        ("shop", "broker/team/default", "a", Err(Denied::NotGranted)),
        ("crm", "broker/team/second", "a", Err(Denied::NotGranted)),
        ("crm", "channel/team/own", "a", Ok(())),
        ("crm", "channel/hub/shop", "public.a", Ok(())),
        (
            "crm",
            "channel/hub/shop",
            "private.a",
            Err(Denied::Filtered),
        ),
        (
            "shop",
            "channel/hub/shop",
            "public.a",
            Err(Denied::NotGranted),
        ),
    ] {
        assert_eq!(
            ask(&application(who), entry, type_),
            expected,
            "{who} at {entry}"
        );
        // Before the event is read, only what does not depend on it is decided.
        let enters = who::may_enter(&application(who), &table, entry);
        let early = expected.or_else(|denied| match denied {
            Denied::Filtered => Ok(()),
            Denied::NotGranted => Err(denied),
        });
        assert_eq!(enters, early, "{who} at {entry}");
    }
    for who in [Who::Administrator, Who::Anonymous] {
        assert_eq!(ask(&who, "broker/team/second", "a"), Ok(()));
    }
}

#[test]
fn a_policy_that_cannot_be_understood_allows_nothing_and_says_so() {
    let table = world()
        .policy(
            "team",
            json!({"from": [{"sub": "application/*"}], "filters": [{"cesql": "(("}]}),
        )
        .compile();
    let denied = who::may_enter(&application("crm"), &table, "broker/team/default");
    assert_eq!(denied, Err(Denied::NotGranted));
    assert_eq!(table.faults()[0].key, "eventpolicy/team/policy-0");
}
