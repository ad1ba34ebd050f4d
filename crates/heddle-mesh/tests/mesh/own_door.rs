//! Addresses that turn out to be the mesh's own listener: of a subscriber, of a sink for dead letters, of replies.

use std::sync::Arc;

use heddle_api::ledger::DeadLetterSelection;
use serde_json::{Value, json};

use crate::world::{Manner, World};

/// Lets everything from `ns/default`, and from the Channel `ns/c`, into all of `other`.
fn allow(world: &mut World) {
    let from = |kind: &str, name: &str, version: &str| json!({"ref": {"apiVersion": version, "kind": kind, "namespace": "ns", "name": name}});
    let policy = json!({
        "apiVersion": "eventing.knative.dev/v1alpha1", "kind": "EventPolicy",
        "metadata": {"namespace": "other", "name": "open", "uid": "p", "generation": 1},
        "spec": {"from": [
            from("Broker", "default", "eventing.knative.dev/v1"), from("Channel", "c", "messaging.knative.dev/v1"),
        ]},
    });
    let policy = serde_json::from_value(policy).unwrap();
    world.resources.policies.push(Arc::new(policy));
}

fn sends_to(path: &str) -> Value {
    let address = format!("http://own{path}");
    json!({"spec": {"subscriber": {"uri": address}}, "status": {"subscriberUri": address}})
}

/// Brokers in two namespaces, and somebody who listens in the other one.
async fn neighbours() -> World {
    let mut world = World::with_broker();
    world.broker("other", "default");
    let there = json!({"metadata": {"namespace": "other", "name": "hears", "uid": "t-hears"}});
    world.trigger("hears", "b", there);
    world
}

#[tokio::test(start_paused = true)]
async fn a_policy_decides_where_our_own_address_leads() {
    for allowed in [false, true] {
        let mut world = neighbours().await;
        world.trigger("far", "own", sends_to("/broker/other/default?x=1"));
        if allowed {
            allow(&mut world);
        }
        world.route().await;
        world.publish("1", &[]).await;
        world.until_pending("far", 0).await;
        world.pass(60).await;
        let heard: &[&str] = if allowed { &["1"] } else { &[] };
        assert_eq!(world.received("b"), heard);
        let account = world.account("far");
        let expected = if allowed { (1, 0) } else { (0, 1) };
        assert_eq!((account.delivered, account.dead_lettered), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_policy_decides_about_dead_letters_too() {
    for allowed in [false, true] {
        let mut world = neighbours().await;
        let sink = "http://own/broker/other/default";
        let gives_up = json!({
            "spec": {"delivery": {"retry": 0, "deadLetterSink": {"uri": sink}}},
            "status": {"deadLetterSinkUri": sink},
        });
        world.trigger("bad", "a", gives_up);
        world.manner("a", Manner::Answer(400));
        if allowed {
            allow(&mut world);
        }
        world.route().await;
        world.publish("1", &[]).await;
        world.until_dead_lettered("bad", 1).await;
        world.pass(60).await;
        assert_eq!(world.received("b").len(), usize::from(allowed));
    }
}

#[tokio::test(start_paused = true)]
async fn a_policy_decides_about_replies_too() {
    for allowed in [false, true] {
        let mut world = neighbours().await;
        let channel = json!({
            "apiVersion": "messaging.knative.dev/v1", "kind": "Channel",
            "metadata": {"namespace": "ns", "name": "c", "uid": "c", "generation": 1}, "spec": {},
        });
        let channel = serde_json::from_value(channel).unwrap();
        world.resources.channels.push(Arc::new(channel));
        let (asked, reply) = ("http://a/", "http://own/broker/other/default");
        let subscription = json!({
            "apiVersion": "messaging.knative.dev/v1", "kind": "Subscription",
            "metadata": {"namespace": "ns", "name": "s", "uid": "s", "generation": 1},
            "spec": {
                "channel": {"apiVersion": "messaging.knative.dev/v1", "kind": "Channel", "name": "c"},
                "subscriber": {"uri": asked}, "reply": {"uri": reply}, "delivery": {"retry": 0},
            },
            "status": {"physicalSubscription": {"subscriberUri": asked, "replyUri": reply}},
        });
        let subscription = serde_json::from_value(subscription).unwrap();
        world.resources.subscriptions.push(Arc::new(subscription));
        world.manner("a", Manner::Reply("order.checked"));
        if allowed {
            allow(&mut world);
        }
        world.route().await;
        assert_eq!(world.publish_at("/channel/ns/c", "1", &[]).await, 202);
        world
            .until("asked", |world| world.received("a") == ["1"])
            .await;
        world.pass(60).await;
        let heard: &[&str] = if allowed { &["1-r"] } else { &[] };
        assert_eq!(world.received("b"), heard);
        let all = DeadLetterSelection::default();
        let dead = world.mesh.dead_letters(&all, 0, 10).items;
        assert_eq!(dead.len(), usize::from(!allowed), "{dead:#?}");
        for letter in dead {
            assert!(
                letter.reason.contains("no EventPolicy in other"),
                "{letter:#?}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_mesh_consents_to_what_it_sends_to_itself() {
    let mut world = World::with_broker();
    world.broker("ns", "other");
    let mut asks = sends_to("/broker/ns/other");
    asks["metadata"]["annotations"]["heddle.dev/webhook-origin"] = json!("mesh.example");
    world.trigger("asks", "own", asks);
    world.trigger("hears", "b", json!({"spec": {"broker": "other"}}));
    world.route().await;
    world.publish("1", &[]).await;
    world
        .until("heard", |world| world.received("b") == ["1"])
        .await;
}

#[tokio::test(start_paused = true)]
async fn what_was_carried_here_has_fewer_hops_left() {
    let mut world = World::with_broker();
    world.trigger("t", "a", json!({}));
    world.route().await;
    let hops = async |id: &str, headers: &[(&str, &str)]| world.publish_with(id, headers).await;
    assert_eq!(hops("0", &[("heddle-hops-left", "0")]).await, 400);
    assert_eq!(hops("1", &[("heddle-hops-left", "7")]).await, 202);
    let both = [("heddle-hops-left", "9"), ("ce-knativebrokerttl", "3")];
    assert_eq!(hops("2", &both).await, 202);
    assert_eq!(hops("3", &[("heddle-hops-left", "no number")]).await, 202);
    world.until_delivered("t", 3).await;
    let sent = world.deliveries("a").into_iter();
    let mut left: Vec<_> = sent
        .map(|sent| {
            let hops = sent.headers["heddle-hops-left"]
                .to_str()
                .unwrap()
                .to_owned();
            (sent.id, hops)
        })
        .collect();
    left.sort();
    let expected = [("1", "6"), ("2", "2"), ("3", "255")];
    assert_eq!(
        left,
        expected.map(|(id, hops)| (id.to_owned(), hops.to_owned()))
    );
}
