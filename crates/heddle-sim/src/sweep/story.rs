//! Stories: what users do, step by step, while the controllers do their part.

mod broker;
mod bundles;
mod registries;

use heddle_api::{
    Application, ApplicationMapping, Broker, Channel, HTTPSource, Subscription, Trigger,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::{Api, Client, Resource};
use serde_json::{Value, json};

use crate::bundles::registry::Event;

pub use broker::{bind, deprovision, provision, shop, shop_mapping, unbind};

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
    /// Something happens to a registry.
    Elsewhere {
        registry: &'static str,
        event: Event,
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
    stories.extend(broker::stories_of_instances());
    stories.extend(broker::stories_of_flows());
    stories.extend(registries::stories_of_registries());
    stories.extend(bundles::stories_of_bundles());
    stories
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
            Self::Rest | Self::Elsewhere { .. } => Ok(()),
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
