use std::sync::Arc;

use heddle_api::well_known::{FINALIZER, MANAGED_BY_LABEL};
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt as _;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::observe::World;
use super::{is_name, plan};
use crate::reconcile::Step;

fn object<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

/// A namespace with a flow of an Application's service, and nothing made for it yet.
fn world() -> World {
    let mut world = World {
        namespace: object(json!({"metadata": {"name": "team", "uid": "uid-team"}})),
        applications: vec![Arc::new(object(json!({
            "apiVersion": "applicationconnector.kyma-project.io/v1alpha1", "kind": "Application",
            "metadata": {"name": "shop"},
            "spec": {"description": "", "services": [{
                "id": "orders", "name": "orders", "displayName": "Orders", "description": "",
                "providerDisplayName": "", "entries": [{"type": "Events"}],
            }]},
        })))],
        mappings: vec![object(json!({
            "apiVersion": "applicationconnector.kyma-project.io/v1alpha1",
            "kind": "ApplicationMapping", "metadata": {"name": "shop"}, "spec": {},
        }))],
        ..World::default()
    };
    add_flow(&mut world, "one", "orders");
    world
}

fn add_flow(world: &mut World, name: &str, service: &str) {
    world.flows.push(object(json!({
        "apiVersion": "heddle.dev/v1alpha1", "kind": "EventFlow",
        "metadata": {
            "name": name, "namespace": "team", "uid": format!("uid-{name}"),
            "finalizers": [FINALIZER],
        },
        "spec": {"application": "shop", "serviceID": service},
    })));
}

fn set_label(namespace: &mut Namespace, value: &str, managers: &[&str]) {
    let entry = |manager: &&str| {
        json!({
            "manager": manager,
            "fieldsV1": {"f:metadata": {"f:labels": {"f:knative-eventing-injection": {}}}},
        })
    };
    let labels = namespace.labels_mut();
    labels.insert("knative-eventing-injection".to_owned(), value.to_owned());
    let entries: Vec<Value> = managers.iter().map(entry).collect();
    namespace.metadata.managed_fields = object(json!(entries));
}

/// The plan in a few words.
fn words(world: &World) -> Vec<String> {
    plan::plan(world).iter().map(word).collect()
}

fn word(step: &Step) -> String {
    match step {
        Step::Apply { resource, name, .. } => format!("apply {} {name}", resource.kind),
        Step::Create { resource, name, .. } => format!("create {} {name}", resource.kind),
        Step::Offer {
            resource, object, ..
        } => format!("offer {} {}", resource.kind, object["metadata"]["labels"]),
        Step::Swap {
            resource, patch, ..
        } => match patch["spec"]["claims"].as_array() {
            Some(claims) => {
                let uids = claims.iter().map(|c| c["uid"].as_str().unwrap());
                format!("claims {}", uids.collect::<Vec<_>>().join(" "))
            }
            None => format!("swap {}", resource.kind),
        },
        Step::Delete {
            resource,
            name,
            version,
            ..
        } => {
            assert_eq!(
                *version, None,
                "nothing removed here is judged by its content"
            );
            format!("delete {} {name}", resource.kind)
        }
    }
}

/// Carries the plan out the way a server would.
fn settle(world: &mut World) {
    for step in plan::plan(world) {
        match step {
            Step::Apply {
                resource,
                mut object,
                ..
            }
            | Step::Create {
                resource,
                mut object,
                ..
            } => {
                let name = object["metadata"]["name"].as_str().unwrap().to_owned();
                object["metadata"]["uid"] = json!(format!("uid-of-{}-{name}", resource.kind));
                object["metadata"]["resourceVersion"] = json!("1");
                match resource.kind.as_str() {
                    "Broker" => replace(&mut world.brokers, object),
                    "Subscription" => replace(&mut world.links, object),
                    "EventPolicy" => replace(&mut world.policies, object),
                    "EventActivation" => replace(&mut world.activations, object),
                    other => panic!("{other} is not made here"),
                }
            }
            Step::Offer { object, .. } => match object["metadata"]["labels"].as_object() {
                Some(_) => set_label(&mut world.namespace, "enabled", &["heddle-eventing"]),
                None => {
                    world.namespace.metadata.labels = None;
                    world.namespace.metadata.managed_fields = None;
                }
            },
            Step::Swap {
                resource, patch, ..
            } if resource.kind == "Broker" => {
                world.brokers[0].spec.claims = object(patch["spec"]["claims"].clone());
            }
            Step::Swap { name, patch, .. } => {
                let mut links = world.links.iter_mut();
                let link = links.find(|link| link.name_any() == name).unwrap();
                let reference = &patch["spec"]["subscriber"]["ref"];
                link.spec.subscriber = Some(object(json!({"ref": reference})));
                link.spec.reply = None;
            }
            Step::Delete { resource, name, .. } => match resource.kind.as_str() {
                "Subscription" => world.links.retain(|o| o.name_any() != name),
                "EventPolicy" => world.policies.retain(|o| o.name_any() != name),
                "EventActivation" => world.activations.retain(|o| o.name_any() != name),
                other => panic!("{other} is not removed here"),
            },
        }
    }
}

fn replace<K: kube::Resource + DeserializeOwned>(objects: &mut Vec<K>, value: Value) {
    let new: K = object(value);
    objects.retain(|old| old.name_any() != new.name_any());
    objects.push(new);
}

fn settled() -> World {
    let mut world = world();
    settle(&mut world);
    assert_eq!(words(&world), [] as [&str; 0], "at rest nothing is written");
    world
}

#[test]
fn the_first_flow_of_a_namespace_gets_everything_and_then_it_rests() {
    assert_eq!(
        words(&world()),
        [
            "create Broker default",
            r#"offer Namespace {"knative-eventing-injection":"enabled"}"#,
            "apply EventPolicy flow-shop",
            "apply Subscription link-shop-team",
            "apply EventActivation orders",
        ]
    );
    let world = settled();
    let broker = &world.brokers[0];
    assert_eq!(broker.spec.claims[0].uid, "uid-one");
    assert_eq!(broker.labels()[MANAGED_BY_LABEL], "heddle");
    assert_eq!(world.activations[0].spec.display_name, "Orders");
    assert_eq!(
        world.policies[0].owner_references()[0].controller,
        None,
        "flows own it together"
    );
    let labels = world.links[0].labels();
    assert_eq!(labels["application-name"], "shop");
    assert_eq!(labels["broker-namespace"], "team");
}

#[test]
fn flows_share_what_they_can_and_the_last_one_takes_it_along() {
    let mut world = settled();
    add_flow(&mut world, "two", "returns");
    assert_eq!(
        words(&world),
        [
            "claims uid-one uid-two",
            "apply EventPolicy flow-shop",
            "apply EventActivation returns",
        ]
    );
    settle(&mut world);
    world.flows.remove(0);
    assert_eq!(
        words(&world),
        [
            "apply EventPolicy flow-shop",
            "delete EventActivation orders",
            "claims uid-two",
        ]
    );
    settle(&mut world);
    world.flows.clear();
    assert_eq!(
        words(&world),
        [
            "delete Subscription link-shop-team",
            "offer Namespace null",
            "delete EventPolicy flow-shop",
            "delete EventActivation returns",
            "claims ",
        ],
        "the claim goes last"
    );
    settle(&mut world);
    assert_eq!(words(&world), [] as [&str; 0]);
    assert_eq!(
        world.brokers.len(),
        1,
        "when the Broker goes is not decided here"
    );
}

#[test]
fn a_flow_counts_only_while_it_is_held_and_stays() {
    let mut world = world();
    world.flows[0].metadata.finalizers = None;
    assert_eq!(words(&world), [] as [&str; 0]);
    let mut world = settled();
    let now = json!("2026-01-01T00:00:00Z");
    world.flows[0].metadata.deletion_timestamp = object(now);
    assert_eq!(words(&world)[0], "delete Subscription link-shop-team");
}

#[test]
fn what_a_flow_will_need_that_is_not_held_yet_is_not_taken_away() {
    let mut world = settled();
    add_flow(&mut world, "two", "orders");
    world.flows[1].metadata.finalizers = None;
    let now = json!("2026-01-01T00:00:00Z");
    world.flows[0].metadata.deletion_timestamp = object(now);
    assert_eq!(words(&world), [] as [&str; 0]);
    world.flows[1].metadata.finalizers = Some(vec![FINALIZER.to_owned()]);
    assert_eq!(
        words(&world),
        [
            "claims uid-one uid-two",
            "apply EventPolicy flow-shop",
            "apply EventActivation orders",
        ],
        "it takes over"
    );
    settle(&mut world);
    assert_eq!(
        words(&world),
        ["claims uid-two"],
        "and then the other may go"
    );
}

#[test]
fn a_flow_that_no_mapping_allows_claims_a_broker_and_gets_nothing_else() {
    for change in [
        |world: &mut World| world.mappings.clear(),
        |world: &mut World| world.mappings[0].spec.services = Some(Vec::new()),
    ] {
        let mut world = world();
        change(&mut world);
        assert_eq!(
            words(&world),
            [
                "create Broker default",
                r#"offer Namespace {"knative-eventing-injection":"enabled"}"#,
            ]
        );
        let mut world = settled();
        change(&mut world);
        assert_eq!(
            words(&world),
            [
                "delete Subscription link-shop-team",
                "delete EventPolicy flow-shop",
                "delete EventActivation orders",
            ]
        );
    }
}

#[test]
fn the_label_of_a_user_claims_a_broker_and_our_own_does_not() {
    let mut alone = World {
        namespace: object(json!({"metadata": {"name": "team", "uid": "u"}})),
        ..World::default()
    };
    set_label(&mut alone.namespace, "enabled", &["kubectl"]);
    assert_eq!(words(&alone), ["create Broker default"]);
    settle(&mut alone);
    assert_eq!(alone.brokers[0].spec.claims[0].uid, "label");
    assert_eq!(words(&alone), [] as [&str; 0]);
    alone.namespace.metadata.labels = None;
    assert_eq!(words(&alone), ["claims "], "only the label's claim goes");

    let mut both = settled();
    set_label(
        &mut both.namespace,
        "enabled",
        &["heddle-eventing", "kubectl"],
    );
    assert_eq!(words(&both), ["claims uid-one label"]);
    settle(&mut both);
    both.flows.clear();
    assert!(words(&both).contains(&"claims label".to_owned()));
}

#[test]
fn a_namespace_that_forbids_a_broker_gets_none_and_one_that_goes_loses_its_links() {
    let mut world = world();
    set_label(&mut world.namespace, "disabled", &["kubectl"]);
    assert_eq!(words(&world), [] as [&str; 0]);
    let mut world = settled();
    set_label(&mut world.namespace, "disabled", &["kubectl"]);
    assert_eq!(
        words(&world),
        [
            "delete Subscription link-shop-team",
            "delete EventPolicy flow-shop",
            "delete EventActivation orders",
            "claims ",
        ]
    );
    let mut world = settled();
    world.namespace.metadata.deletion_timestamp = object(json!("2026-01-01T00:00:00Z"));
    let steps = words(&world);
    assert_eq!(steps[0], "delete Subscription link-shop-team");
    assert!(!steps.iter().any(|step| step.starts_with("apply")));
}

fn earlier_link(name: &str) -> Value {
    json!({
        "apiVersion": "messaging.knative.dev/v1", "kind": "Subscription",
        "metadata": {
            "name": name, "namespace": "kyma-integration", "uid": format!("uid-{name}"),
            "resourceVersion": "4", "creationTimestamp": "2020-01-01T00:00:00Z",
            "labels": {"application-name": "shop", "broker-namespace": "team"},
        },
        "spec": {
            "channel": {"apiVersion": "messaging.knative.dev/v1alpha1", "kind": "Channel", "name": "shop"},
            "subscriber": {"uri": "http://default-broker.team"},
        },
    })
}

#[test]
fn a_link_that_was_there_before_is_taken_in_and_not_doubled() {
    let mut world = world();
    world.links.push(object(earlier_link("brokersub-x7")));
    assert!(words(&world).contains(&"swap Subscription".to_owned()));
    settle(&mut world);
    assert_eq!(words(&world), ["apply Subscription brokersub-x7"]);
    let [Step::Apply { object, .. }] = &plan::plan(&world)[..] else {
        panic!("it is applied under its own name");
    };
    assert_eq!(
        object["spec"]["channel"]["apiVersion"], "messaging.knative.dev/v1alpha1",
        "what never changes is stated as it is"
    );
    settle(&mut world);
    assert_eq!(words(&world), [] as [&str; 0]);
    assert_eq!(world.links.len(), 1);
    world.flows.clear();
    assert!(words(&world).contains(&"delete Subscription brokersub-x7".to_owned()));
}

#[test]
fn of_several_links_one_stays_and_what_is_not_ours_is_left_alone() {
    let mut world = settled();
    world.links.push(object(earlier_link("brokersub-x7")));
    assert_eq!(
        words(&world),
        ["delete Subscription brokersub-x7"],
        "the one that is ours already stays"
    );
    // Nobody has a flow for it yet: it may belong to an instance that is still to be taken over.
    world.flows.clear();
    let steps = words(&world);
    assert!(!steps.contains(&"delete Subscription brokersub-x7".to_owned()));
    let mut owned = earlier_link("brokersub-x8");
    owned["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "Other", "name": "o", "uid": "o", "controller": true,
    }]);
    let mut world = settled();
    world.links.push(object(owned));
    assert_eq!(words(&world), [] as [&str; 0]);
}

#[test]
fn a_broker_that_somebody_else_made_is_claimed_and_other_claims_stay() {
    let mut world = world();
    world.brokers.push(object(json!({
        "apiVersion": "eventing.knative.dev/v1", "kind": "Broker",
        "metadata": {"name": "default", "namespace": "team", "uid": "b", "resourceVersion": "3"},
        "spec": {"claims": [{"uid": "t", "kind": "ToolBroker"}, {"uid": "old", "kind": "EventFlow"}]},
    })));
    assert_eq!(words(&world)[0], "claims t old uid-one");
    settle(&mut world);
    assert_eq!(words(&world), ["claims t uid-one"], "one swap at a time");
    world.brokers[0].spec.claims.truncate(2);
    let leaving = json!("2026-01-01T00:00:00Z");
    world.brokers[0].metadata.deletion_timestamp = object(leaving);
    assert_eq!(words(&world), ["claims t"], "what goes gains no claim");
}

#[test]
fn a_flow_may_name_another_broker_but_none_that_cannot_exist() {
    let mut world = world();
    world.flows[0].spec.broker_ref.name = "audit".to_owned();
    let steps = words(&world);
    assert_eq!(steps[0], "create Broker audit");
    assert!(!steps.contains(&"apply Subscription link-shop-team".to_owned()));
    assert!(
        steps
            .iter()
            .any(|step| step.starts_with("apply Subscription link-"))
    );
    world.flows[0].spec.broker_ref.name = "No Broker".to_owned();
    let steps = words(&world);
    assert_eq!(steps.len(), 1, "{steps:?}");
    for (name, good) in [
        ("a", true),
        ("a.b-c", true),
        ("", false),
        ("a..b", false),
        ("-a", false),
    ] {
        assert_eq!(is_name(name), good, "{name:?}");
    }
}

#[test]
fn what_somebody_broke_is_mended() {
    let mut world = settled();
    let labels = world.links[0].labels_mut();
    labels.insert("application-name".to_owned(), "other".to_owned());
    assert_eq!(words(&world), ["apply Subscription link-shop-team"]);
    let mut world = settled();
    world.policies[0].spec.from.clear();
    assert_eq!(words(&world), ["apply EventPolicy flow-shop"]);
    let mut world = settled();
    let shop = Arc::make_mut(&mut world.applications[0]);
    shop.spec.services[0].display_name = "New".to_owned();
    assert_eq!(words(&world), ["apply EventActivation orders"]);
    let mut world = settled();
    world.brokers.clear();
    assert_eq!(words(&world), ["create Broker default"]);
}
