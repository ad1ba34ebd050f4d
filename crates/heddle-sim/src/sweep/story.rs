//! Stories: what users do, step by step, while the controllers do their part.

use std::sync::LazyLock;

use heddle_api::well_known::FINALIZER;
use heddle_api::{
    Application, ApplicationMapping, Broker, Channel, EventFlow, EventPolicy, HTTPSource,
    ServiceBinding, ServiceInstance, Subscription, Trigger, names,
};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::{Api, Client, Resource};
use serde_json::{Value, json};

/// One thing a user does.
#[derive(Debug, Clone)]
pub enum Act {
    /// Server-side apply, as `kubectl apply --server-side` does.
    Apply {
        resource: ApiResource,
        namespace: Option<&'static str>,
        object: Value,
    },
    /// A merge patch of something, whoever owns it.
    Meddle {
        resource: ApiResource,
        namespace: Option<&'static str>,
        name: &'static str,
        patch: Value,
    },
    Delete {
        resource: ApiResource,
        namespace: Option<&'static str>,
        name: &'static str,
    },
    /// Nothing for a while: let everything come to rest.
    Rest,
}

#[derive(Debug, Clone)]
pub struct Story {
    pub name: &'static str,
    /// Whether a mesh runs beside the controllers: where it matters, since it makes a run twice as long.
    pub meshed: bool,
    pub acts: Vec<Act>,
}

const INTEGRATION: Option<&str> = Some("kyma-integration");

fn of<K: Resource<DynamicType = ()>>() -> ApiResource {
    ApiResource::erase::<K>(&())
}

fn application(name: &str, spec: Value) -> Act {
    let resource = of::<Application>();
    let object = json!({
        "apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}, "spec": spec,
    });
    Act::Apply {
        resource,
        namespace: None,
        object,
    }
}

fn mapping(name: &str, spec: Value) -> Act {
    let resource = of::<ApplicationMapping>();
    let object = json!({
        "apiVersion": resource.api_version, "kind": resource.kind,
        "metadata": {"name": name, "namespace": "team-a"}, "spec": spec,
    });
    Act::Apply {
        resource,
        namespace: Some("team-a"),
        object,
    }
}

fn apply<K: Resource<DynamicType = ()>>(namespace: &'static str, name: &str, spec: Value) -> Act {
    let resource = of::<K>();
    let object = json!({
        "apiVersion": resource.api_version, "kind": resource.kind,
        "metadata": {"name": name, "namespace": namespace}, "spec": spec,
    });
    Act::Apply {
        resource,
        namespace: Some(namespace),
        object,
    }
}

fn service(id: &str, entry: &str) -> Value {
    json!({
        "id": id, "name": id, "displayName": id, "description": id, "providerDisplayName": "acme",
        "entries": [{"type": entry}],
    })
}

fn delete<K: Resource<DynamicType = ()>>(
    namespace: Option<&'static str>,
    name: &'static str,
) -> Act {
    Act::Delete {
        resource: of::<K>(),
        namespace,
        name,
    }
}

/// Every way of using what the controllers keep, each as short as it can be.
pub fn stories() -> Vec<Story> {
    let mut stories = stories_of_applications();
    stories.extend(stories_of_routes());
    stories.extend(stories_of_instances());
    stories.extend(stories_of_flows());
    stories
}

/// A story's clock shows this when it begins.
pub(super) const BEGINNING: i64 = 1_800_000_000;

/// An operation that was accepted at the beginning of the story, with an hour to do it.
fn operation(id: &str, kind: &str) -> Value {
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
    let resource = of::<ServiceInstance>();
    let object = json!({
        "apiVersion": resource.api_version, "kind": resource.kind,
        "metadata": {"name": name, "namespace": "team-a", "finalizers": [FINALIZER]},
        "spec": {
            "instanceID": name, "serviceID": service, "planID": format!("{service}-plan"),
            "application": {"name": "shop", "serviceID": service},
            "operation": operation(&format!("provision-{name}"), "provision"),
        },
    });
    Act::Apply {
        resource,
        namespace: Some("team-a"),
        object,
    }
}

/// What the OSB front writes when it accepts the removal of an instance.
pub fn deprovision(name: &'static str) -> Act {
    let id = format!("deprovision-{name}");
    Act::Meddle {
        resource: of::<ServiceInstance>(),
        namespace: Some("team-a"),
        name,
        patch: json!({"spec": {"operation": operation(&id, "deprovision")}}),
    }
}

/// What the OSB front writes when it accepts a request for credentials.
pub fn bind(name: &str, instance: &str) -> Act {
    let resource = of::<ServiceBinding>();
    let object = json!({
        "apiVersion": resource.api_version, "kind": resource.kind,
        "metadata": {"name": name, "namespace": "team-a", "finalizers": [FINALIZER]},
        "spec": {
            "bindingID": name, "instanceRef": {"name": instance},
            "serviceID": "prices", "planID": "prices-plan",
            "operation": operation(&format!("bind-{name}"), "bind"),
        },
    });
    Act::Apply {
        resource,
        namespace: Some("team-a"),
        object,
    }
}

/// What the OSB front writes when it accepts that credentials are given back.
pub fn unbind(name: &'static str) -> Act {
    let id = format!("unbind-{name}");
    Act::Meddle {
        resource: of::<ServiceBinding>(),
        namespace: Some("team-a"),
        name,
        patch: json!({"spec": {"operation": operation(&id, "unbind")}}),
    }
}

/// What platforms do with instances and bindings, and what people do to them.
fn stories_of_instances() -> Vec<Story> {
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
            vec![shop(), provision("i", "prices"), Act::Rest, shop_mapping()],
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
fn stories_of_flows() -> Vec<Story> {
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
            vec![
                shop(),
                shop_mapping(),
                flow("f", "orders"),
                Act::Rest,
                delete::<EventFlow>(Some(TEAM), "f"),
                flow("g", "orders"),
            ],
        ),
        story(
            "somebody deletes a link, a broker and a policy",
            vec![
                shop(),
                shop_mapping(),
                flow("f", "orders"),
                Act::Rest,
                Act::Delete {
                    resource: of::<Subscription>(),
                    namespace: INTEGRATION,
                    name: link_of_shop(),
                },
                delete::<Broker>(Some(TEAM), "default"),
                delete::<EventPolicy>(Some(TEAM), "flow-shop"),
            ],
        ),
        story(
            "a link that was there before is taken in",
            vec![earlier_link(), shop(), shop_mapping(), flow("f", "orders")],
        ),
        story(
            "a namespace forbids its broker and allows it again",
            vec![
                shop(),
                shop_mapping(),
                flow("f", "orders"),
                Act::Rest,
                injection(json!("disabled")),
                Act::Rest,
                injection(Value::Null),
            ],
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
            vec![
                shop(),
                shop_mapping(),
                flow("f", "orders"),
                Act::Rest,
                delete::<Namespace>(None, TEAM),
            ],
        ),
    ]
}

/// What people do with Brokers, Triggers, Channels and Subscriptions.
fn stories_of_routes() -> Vec<Story> {
    const TEAM: &str = "team-a";
    let story = |name, acts| Story {
        name,
        meshed: true,
        acts,
    };
    let broker = || apply::<Broker>(TEAM, "default", json!({}));
    let trigger =
        |subscriber: Value| apply::<Trigger>(TEAM, "orders", json!({"subscriber": subscriber}));
    let url = || json!({"uri": "http://orders.example/"});
    let channel = || apply::<Channel>(TEAM, "audit", json!({}));
    let shop = || application("shop", json!({"description": "a shop"}));
    vec![
        story("an application opens its door", vec![shop()]),
        story(
            "an application closes its door",
            vec![
                shop(),
                Act::Rest,
                application("shop", json!({"skipInstallation": true})),
            ],
        ),
        story(
            "a trigger comes before its broker",
            vec![trigger(url()), Act::Rest, broker()],
        ),
        story(
            "a broker is deleted under a trigger",
            vec![
                broker(),
                trigger(url()),
                Act::Rest,
                delete::<Broker>(Some(TEAM), "default"),
            ],
        ),
        story(
            "a trigger is edited",
            vec![
                broker(),
                trigger(url()),
                Act::Rest,
                trigger(json!({"uri": "http://elsewhere.example/"})),
            ],
        ),
        story(
            "a subscriber appears later, and goes again",
            vec![
                broker(),
                trigger(json!({"ref": {"kind": "Channel", "name": "audit"}})),
                Act::Rest,
                channel(),
                Act::Rest,
                delete::<Channel>(Some(TEAM), "audit"),
            ],
        ),
        story(
            "a channel leads to a broker that comes later",
            vec![
                channel(),
                apply::<Subscription>(
                    TEAM,
                    "link",
                    json!({
                        "channel": {"kind": "Channel", "name": "audit"},
                        "subscriber": {"ref": {"kind": "Broker", "name": "default"}},
                    }),
                ),
                Act::Rest,
                broker(),
            ],
        ),
        story(
            "a broker and its trigger share a dead-letter sink",
            vec![
                trigger(url()),
                apply::<Broker>(
                    TEAM,
                    "default",
                    json!({"delivery": {"deadLetterSink": {"ref": {"kind": "Channel", "name": "audit"}}}}),
                ),
                Act::Rest,
                channel(),
            ],
        ),
    ]
}

/// What people do with Applications and their mappings.
fn stories_of_applications() -> Vec<Story> {
    let shop = || application("shop", json!({"description": "a shop"}));
    let skip = |skip: bool| application("shop", json!({"skipInstallation": skip}));
    let story = |name, acts| Story {
        name,
        meshed: false,
        acts,
    };
    let own_channel = || Act::Apply {
        resource: of::<Channel>(),
        namespace: INTEGRATION,
        object: json!({
            "apiVersion": "messaging.knative.dev/v1", "kind": "Channel",
            "metadata": {"name": "shop", "namespace": "kyma-integration", "labels": {"mine": "yes"}}, "spec": {},
        }),
    };
    vec![
        story("an application is created", vec![shop()]),
        story(
            "two applications at once",
            vec![shop(), application("crm", json!({}))],
        ),
        story(
            "an application changes while it is set up",
            vec![shop(), application("shop", json!({"description": "b"}))],
        ),
        story(
            "an application is deleted",
            vec![shop(), Act::Rest, delete::<Application>(None, "shop")],
        ),
        story(
            "an application is deleted at once",
            vec![shop(), delete::<Application>(None, "shop")],
        ),
        story(
            "an application is deleted and made again",
            vec![
                shop(),
                Act::Rest,
                delete::<Application>(None, "shop"),
                shop(),
            ],
        ),
        story(
            "nothing is set up on request",
            vec![shop(), Act::Rest, skip(true)],
        ),
        story(
            "nothing is set up, then everything",
            vec![skip(true), Act::Rest, skip(false)],
        ),
        story(
            "somebody deletes a channel",
            vec![shop(), Act::Rest, delete::<Channel>(INTEGRATION, "shop")],
        ),
        story(
            "somebody edits a source",
            vec![
                shop(),
                Act::Rest,
                Act::Meddle {
                    resource: of::<HTTPSource>(),
                    namespace: INTEGRATION,
                    name: "shop",
                    patch: json!({"metadata": {
                        "labels": {"application-name": "other", "theirs": "kept"}, "ownerReferences": null,
                    }}),
                },
            ],
        ),
        story(
            "a channel without an owner is taken in",
            vec![own_channel(), Act::Rest, shop()],
        ),
        story(
            "a mapping comes before its application",
            vec![
                mapping("shop", json!({})),
                Act::Rest,
                application("shop", json!({"services": [service("a", "Events")]})),
            ],
        ),
        story(
            "services come and go under a mapping",
            vec![
                application(
                    "shop",
                    json!({"services": [service("a", "Events"), service("b", "Queue")]}),
                ),
                mapping("shop", json!({"services": [{"id": "a"}, {"id": "b"}]})),
                Act::Rest,
                application("shop", json!({"services": [service("b", "Events")]})),
            ],
        ),
        story(
            "two applications want the same id until the older goes",
            vec![
                application("shop", json!({"services": [service("a", "Events")]})),
                Act::Rest,
                application("crm", json!({"services": [service("a", "Events")]})),
                Act::Rest,
                delete::<Application>(None, "shop"),
            ],
        ),
        story(
            "a mapped application is deleted",
            vec![
                shop(),
                mapping("shop", json!({})),
                Act::Rest,
                delete::<Application>(None, "shop"),
            ],
        ),
        story(
            "a namespace with a mapping is deleted",
            vec![
                shop(),
                mapping("shop", json!({})),
                Act::Rest,
                delete::<Namespace>(None, "team-a"),
            ],
        ),
    ]
}

impl Act {
    /// Does it, through the user's own client. What is not there cannot be deleted or meddled with: fine.
    pub(super) async fn perform(&self, client: &Client) -> Result<(), kube::Error> {
        let api = |resource: &ApiResource, namespace: Option<&str>| -> Api<DynamicObject> {
            match namespace {
                Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
                None => Api::all_with(client.clone(), resource),
            }
        };
        let outcome = match self {
            Self::Rest => Ok(()),
            Self::Apply {
                resource,
                namespace,
                object,
            } => {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                let params = PatchParams::apply("user").force();
                api(resource, *namespace)
                    .patch(name, &params, &Patch::Apply(object))
                    .await
                    .map(drop)
            }
            Self::Meddle {
                resource,
                namespace,
                name,
                patch,
            } => api(resource, *namespace)
                .patch(name, &PatchParams::default(), &Patch::Merge(patch))
                .await
                .map(drop),
            Self::Delete {
                resource,
                namespace,
                name,
            } => api(resource, *namespace)
                .delete(name, &DeleteParams::default())
                .await
                .map(drop),
        };
        match outcome {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            other => other,
        }
    }
}
