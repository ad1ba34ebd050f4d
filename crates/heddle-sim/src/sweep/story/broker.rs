//! Stories of the broker: instances and bindings that platforms ask for, and flows that people write by hand.

use std::sync::LazyLock;

use heddle_api::well_known::FINALIZER;
use heddle_api::{
    Application, ApplicationMapping, Broker, EventFlow, EventPolicy, ServiceBinding,
    ServiceInstance, Subscription, names,
};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::Resource;
use serde_json::{Value, json};

use super::{Act, INTEGRATION, Story, application, apply, delete, mapping, of};
use crate::stage::BEGINNING;

/// An operation that was accepted at the beginning of the story, with an hour to do it.
pub(super) fn operation(id: &str, kind: &str) -> Value {
    let time = |second: i64| {
        let time = jiff::Timestamp::from_second(BEGINNING + second);
        time.expect("a time in range").to_string()
    };
    json!({
        "id": id, "kind": kind, "requestHash": "h", "acceptedAt": time(0), "deadline": time(3240),
    })
}

/// A service of the Application `shop`.
pub fn shop() -> Act {
    let services = json!([
        {
            "id": "orders", "name": "orders", "displayName": "orders", "description": "orders",
            "providerDisplayName": "acme", "entries": [{"type": "Events"}],
        },
        {
            "id": "prices", "name": "prices", "displayName": "prices", "description": "prices",
            "providerDisplayName": "acme", "entries": [{"type": "API", "gatewayUrl": "http://prices.example"}],
        },
    ]);
    application("shop", json!({"services": services}))
}

/// Lets `team-a` use everything that `shop` offers.
pub fn shop_mapping() -> Act {
    mapping("shop", json!({}))
}

/// What the OSB front writes when it accepts a request for an instance.
pub fn provision(name: &str, service: &str) -> Act {
    let spec = json!({
        "instanceID": name, "serviceID": service, "planID": format!("{service}-plan"),
        "application": {"name": "shop", "serviceID": service},
        "operation": operation(&format!("provision-{name}"), "provision"),
    });
    accepted::<ServiceInstance>(name, spec)
}

/// An object as the OSB front makes it: held by a finalizer from the start.
fn accepted<K: Resource<DynamicType = ()>>(name: &str, spec: Value) -> Act {
    let resource = of::<K>();
    let object = json!({
        "apiVersion": resource.api_version, "kind": resource.kind,
        "metadata": {"name": name, "namespace": "team-a", "finalizers": [FINALIZER]},
        "spec": spec,
    });
    Act::Apply {
        resource,
        namespace: Some("team-a"),
        object,
    }
}

/// Another operation that the OSB front accepted.
fn asked_of<K: Resource<DynamicType = ()>>(name: &'static str, kind: &str) -> Act {
    let id = format!("{kind}-{name}");
    Act::Meddle {
        resource: of::<K>(),
        namespace: Some("team-a"),
        name,
        patch: json!({"spec": {"operation": operation(&id, kind)}}),
    }
}

/// What the OSB front writes when it accepts the removal of an instance.
pub fn deprovision(name: &'static str) -> Act {
    asked_of::<ServiceInstance>(name, "deprovision")
}

/// What the OSB front writes when it accepts a request for credentials.
pub fn bind(name: &str, instance: &str) -> Act {
    let spec = json!({
        "bindingID": name, "instanceRef": {"name": instance},
        "serviceID": "prices", "planID": "prices-plan",
        "operation": operation(&format!("bind-{name}"), "bind"),
    });
    accepted::<ServiceBinding>(name, spec)
}

/// What the OSB front writes when it accepts that credentials are given back.
pub fn unbind(name: &'static str) -> Act {
    asked_of::<ServiceBinding>(name, "unbind")
}

/// What platforms do with instances and bindings, and what people do to them.
pub(super) fn stories_of_instances() -> Vec<Story> {
    const TEAM: Option<&str> = Some("team-a");
    let story = |name, acts| Story {
        name,
        meshed: false,
        acts,
    };
    let by_hand = |name: &str, service: &str| {
        let spec = json!({"instanceID": name, "serviceID": service, "planID": "any"});
        apply::<ServiceInstance>("team-a", name, spec)
    };
    vec![
        story(
            "an instance is bound, given back and removed",
            vec![
                shop(),
                shop_mapping(),
                provision("i", "prices"),
                bind("b", "i"),
                Act::Rest,
                unbind("b"),
                deprovision("i"),
            ],
        ),
        story(
            "an instance is removed with its binding",
            vec![
                shop(),
                shop_mapping(),
                provision("i", "prices"),
                bind("b", "i"),
                Act::Rest,
                deprovision("i"),
            ],
        ),
        story(
            "an instance with events is made",
            vec![shop(), shop_mapping(), provision("i", "orders")],
        ),
        story(
            "an instance with events is removed at once",
            vec![
                shop(),
                shop_mapping(),
                provision("i", "orders"),
                deprovision("i"),
            ],
        ),
        story(
            "an instance outlives its application and goes then",
            vec![
                shop(),
                shop_mapping(),
                provision("i", "orders"),
                Act::Rest,
                delete::<Application>(None, "shop"),
                delete::<ApplicationMapping>(TEAM, "shop"),
                Act::Rest,
                deprovision("i"),
            ],
        ),
        story(
            "a mapping comes after the operation failed for want of it",
            vec![
                shop(),
                provision("i", "prices"),
                // Whoever hears of the instance at the next resync only is patient with it from then on.
                Act::Rest,
                Act::Rest,
                shop_mapping(),
            ],
        ),
        story(
            "somebody deletes a flow and a binding's secret",
            vec![
                shop(),
                shop_mapping(),
                provision("i", "orders"),
                provision("j", "prices"),
                bind("b", "j"),
                Act::Rest,
                delete::<EventFlow>(TEAM, "i"),
                delete::<Secret>(TEAM, "b"),
            ],
        ),
        story(
            "an instance that was written by hand is deleted by hand",
            vec![
                by_hand("i", "orders"),
                Act::Rest,
                shop(),
                shop_mapping(),
                Act::Rest,
                delete::<ServiceInstance>(TEAM, "i"),
            ],
        ),
        story(
            "a namespace with instances and a binding is deleted",
            vec![
                shop(),
                shop_mapping(),
                provision("i", "orders"),
                provision("j", "prices"),
                bind("b", "j"),
                Act::Rest,
                delete::<Namespace>(None, "team-a"),
            ],
        ),
    ]
}

/// The link of `shop` into `team-a`; stories name things for ever.
fn link_of_shop() -> &'static str {
    static NAME: LazyLock<String> = LazyLock::new(|| names::link("shop", "team-a"));
    &NAME
}

/// What people do with flows that they write by hand, and with what is made for them.
pub(super) fn stories_of_flows() -> Vec<Story> {
    const TEAM: &str = "team-a";
    let story = |name, acts| Story {
        name,
        meshed: true,
        acts,
    };
    let flow = |name: &str, service: &str| {
        let spec = json!({"application": "shop", "serviceID": service});
        apply::<EventFlow>(TEAM, name, spec)
    };
    let with_flow = |acts: Vec<Act>| {
        let first = vec![shop(), shop_mapping(), flow("f", "orders"), Act::Rest];
        [first, acts].concat()
    };
    let injection = |value: Value| Act::Meddle {
        resource: of::<Namespace>(),
        namespace: None,
        name: TEAM,
        patch: json!({"metadata": {"labels": {"knative-eventing-injection": value}}}),
    };
    let earlier_link = || Act::Apply {
        resource: of::<Subscription>(),
        namespace: INTEGRATION,
        object: json!({
            "apiVersion": "messaging.knative.dev/v1", "kind": "Subscription",
            "metadata": {
                "name": "brokersub-x7", "namespace": "kyma-integration",
                "labels": {"application-name": "shop", "broker-namespace": TEAM},
            },
            "spec": {
                "channel": {"apiVersion": "messaging.knative.dev/v1", "kind": "Channel", "name": "shop"},
                "subscriber": {"uri": "http://default-broker.team-a"},
            },
        }),
    };
    vec![
        story(
            "a flow comes before everything it needs",
            vec![flow("f", "orders"), Act::Rest, shop_mapping(), shop()],
        ),
        story(
            "two flows share a link and the last takes it along",
            vec![
                shop(),
                shop_mapping(),
                flow("f", "orders"),
                flow("g", "returns"),
                Act::Rest,
                delete::<EventFlow>(Some(TEAM), "f"),
                Act::Rest,
                delete::<EventFlow>(Some(TEAM), "g"),
            ],
        ),
        story(
            "a flow comes while the last one goes",
            with_flow(vec![
                delete::<EventFlow>(Some(TEAM), "f"),
                flow("g", "orders"),
            ]),
        ),
        story(
            "somebody deletes a link, a broker and a policy",
            with_flow(vec![
                Act::Delete {
                    resource: of::<Subscription>(),
                    namespace: INTEGRATION,
                    name: link_of_shop(),
                },
                delete::<Broker>(Some(TEAM), "default"),
                delete::<EventPolicy>(Some(TEAM), "flow-shop"),
            ]),
        ),
        story(
            "a link that was there before is taken in",
            vec![earlier_link(), shop(), shop_mapping(), flow("f", "orders")],
        ),
        story(
            "a namespace forbids its broker and allows it again",
            with_flow(vec![
                injection(json!("disabled")),
                Act::Rest,
                injection(Value::Null),
            ]),
        ),
        story(
            "a label alone asks for a broker and lets it go",
            vec![
                injection(json!("enabled")),
                Act::Rest,
                injection(Value::Null),
            ],
        ),
        story(
            "a namespace with flows is deleted",
            with_flow(vec![delete::<Namespace>(None, TEAM)]),
        ),
    ]
}
