//! Objects that are missing or not ready, controllers that do not work, an API server that fails.

use std::time::Duration;

use futures::FutureExt as _;
use heddle_api::health::HealthPlane;
use heddle_api::well_known::{INJECTION_LABEL, INTEGRATION_NAMESPACE};
use heddle_api::{
    Application, ApplicationMapping, Broker, Channel, EventFlow, HTTPSource, ServiceInstance,
    Subscription, Trigger, names,
};
use k8s_openapi::api::core::v1::Namespace;
use serde_json::{Value, json};

use super::{Culprit, FaultCase, on};
use crate::trouble::{Struck, Treatment};
use crate::world::{DEPOT_A, SHOP_A, SHOP_B, World};

const TEAM: &str = "team-a";

fn control(hop: &str, object: &str) -> Option<Culprit> {
    on(HealthPlane::Control, hop, object)
}

pub(super) fn cases() -> Vec<FaultCase> {
    let mut all = of_applications();
    all.extend(of_namespaces());
    all.extend(of_controllers());
    all
}

/// The controllers cannot make anything of a kind any more.
fn cannot_make(world: &World, plural: &'static str) {
    let refused = Treatment::Refused(500);
    world.api.strike(Struck::Writes, plural, refused);
}

fn of_applications() -> Vec<FaultCase> {
    vec![
        FaultCase::new(
            "the Channel of an Application is deleted and cannot be made again",
            control("channel", "channel/kyma-integration/shop"),
            |world| {
                async {
                    cannot_make(world, "/channels");
                    let users = &world.users;
                    users.delete::<Channel>(INTEGRATION_NAMESPACE, "shop").await;
                }
                .boxed()
            },
            |world| async { world.api.heal() }.boxed(),
        )
        .sparing(&[DEPOT_A])
        .compared_as("A required object is missing or not ready"),
        FaultCase::new(
            "the HTTPSource of an Application is deleted and cannot be made again",
            control("source", "httpsource/kyma-integration/shop"),
            |world| {
                async {
                    cannot_make(world, "/httpsources");
                    let users = &world.users;
                    users
                        .delete::<HTTPSource>(INTEGRATION_NAMESPACE, "shop")
                        .await;
                }
                .boxed()
            },
            |world| async { world.api.heal() }.boxed(),
        )
        .sparing(&[DEPOT_A]),
        FaultCase::new(
            "an Application is deleted while namespaces use it",
            control("source", "application/shop"),
            |world| async { world.users.delete::<Application>("", "shop").await }.boxed(),
            |world| {
                async {
                    world
                        .users
                        .application("shop", &["orders", "returns"])
                        .await
                }
                .boxed()
            },
        )
        .sparing(&[DEPOT_A]),
        FaultCase::new(
            "a mapping names an Application that does not exist",
            control("source", "application/ghost"),
            |world| async { world.users.mapping("ghost", TEAM).await }.boxed(),
            |world| {
                async {
                    let users = &world.users;
                    users.delete::<ApplicationMapping>(TEAM, "ghost").await;
                }
                .boxed()
            },
        )
        .of(("ghost", TEAM))
        .sparing(&[SHOP_A, SHOP_B, DEPOT_A]),
        FaultCase::new(
            "a mapping names a service that does not exist",
            control("", "applicationmapping/team-a/shop"),
            |world| {
                async {
                    let spec = json!({"services": [{"id": "ghost"}]});
                    let users = &world.users;
                    users.apply::<ApplicationMapping>(TEAM, "shop", spec).await;
                }
                .boxed()
            },
            |world| async { world.users.mapping("shop", TEAM).await }.boxed(),
        )
        .sparing(&[SHOP_B, DEPOT_A])
        .compared_as("A mapping names what does not exist, or enables nothing"),
        FaultCase::new(
            "a mapping goes away under its flows",
            control("", "applicationmapping/team-a/shop"),
            |world| {
                async {
                    let users = &world.users;
                    users.delete::<ApplicationMapping>(TEAM, "shop").await;
                }
                .boxed()
            },
            |world| async { world.users.mapping("shop", TEAM).await }.boxed(),
        )
        .sparing(&[SHOP_B, DEPOT_A]),
        FaultCase::new(
            "a service instance fails",
            control(
                "",
                &format!("serviceinstance/team-a/{}", names::instance("two")),
            ),
            |world| async { world.provision("two", "ghost", 20).await }.boxed(),
            |world| async { world.abandon("two").await }.boxed(),
        )
        .sparing(&[SHOP_B, DEPOT_A])
        .compared_as("A service instance failed or is stuck"),
    ]
}

fn of_namespaces() -> Vec<FaultCase> {
    let link = names::link("shop", TEAM);
    let link = format!("subscription/{INTEGRATION_NAMESPACE}/{link}");
    vec![
        FaultCase::new(
            "the Broker of a namespace never becomes ready",
            control("broker", "broker/team-c/default"),
            |world| {
                async {
                    let class = json!({"eventing.knative.dev/broker.class": "Elsewhere"});
                    let fields = json!({"metadata": {"annotations": class}, "spec": {}});
                    world.make_broker("team-c", fields).await;
                    world.users.mapping("shop", "team-c").await;
                    world.users.flow("team-c", "f", "shop", "orders").await;
                }
                .boxed()
            },
            |world| async { world.users.delete::<Broker>("team-c", "default").await }.boxed(),
        )
        .of(("shop", "team-c"))
        .sparing(&[SHOP_A, SHOP_B, DEPOT_A]),
        FaultCase::new(
            "a Broker is deleted and cannot be made again",
            control("broker", "broker/team-a/default"),
            |world| {
                async {
                    cannot_make(world, "/brokers");
                    world.users.delete::<Broker>(TEAM, "default").await;
                }
                .boxed()
            },
            |world| async { world.api.heal() }.boxed(),
        )
        .sparing(&[SHOP_B])
        .compared_as("The Broker is not ready, and heals later"),
        FaultCase::new(
            "a namespace forbids its Broker by a label",
            control("broker", "broker/team-a/default"),
            |world| {
                async {
                    world.label(TEAM, json!("disabled")).await;
                    world.users.delete::<Broker>(TEAM, "default").await;
                }
                .boxed()
            },
            |world| async { world.label(TEAM, Value::Null).await }.boxed(),
        )
        .sparing(&[SHOP_B]),
        FaultCase::new(
            "a link is deleted and cannot be made again",
            control("subscription", &link),
            |world| {
                async {
                    cannot_make(world, "/subscriptions");
                    let name = names::link("shop", TEAM);
                    let users = &world.users;
                    users
                        .delete::<Subscription>(INTEGRATION_NAMESPACE, &name)
                        .await;
                }
                .boxed()
            },
            |world| async { world.api.heal() }.boxed(),
        )
        // Links are made for a namespace at a time, so all that is in it is concerned.
        .sparing(&[SHOP_B]),
        FaultCase::new(
            "somebody else's finalizer holds a link that is deleted",
            control("subscription", &link),
            |world| {
                async {
                    let name = names::link("shop", TEAM);
                    world.finalizers(&name, json!(["example.com/mine"])).await;
                    let users = &world.users;
                    users
                        .delete::<Subscription>(INTEGRATION_NAMESPACE, &name)
                        .await;
                }
                .boxed()
            },
            |world| {
                async {
                    let name = names::link("shop", TEAM);
                    world.finalizers(&name, Value::Null).await;
                }
                .boxed()
            },
        )
        .sparing(&[SHOP_B, DEPOT_A]),
    ]
}

fn of_controllers() -> Vec<FaultCase> {
    vec![
        FaultCase::new(
            "a controller does not work any more",
            control("", "controller/heddle-broker"),
            |world| async { world.suspend_brokers().await }.boxed(),
            |world| async { world.api.heal() }.boxed(),
        )
        .compared_as("A controller stopped, and its conditions stay as they were"),
        FaultCase::new(
            "a controller fails again and again",
            control("", "controller/heddle-trigger"),
            |world| async { world.fail_triggers().await }.boxed(),
            |world| async { world.api.heal() }.boxed(),
        ),
        FaultCase::new(
            "nothing new is admitted",
            control("", "admission"),
            |world| {
                async {
                    world.api.strike(Struck::Trials, "", Treatment::Held);
                    world
                        .api
                        .strike(Struck::Writes, "/triggers", Treatment::Held);
                }
                .boxed()
            },
            |world| async { world.api.heal() }.boxed(),
        )
        .compared_as("Admission fails, and new objects are refused"),
        FaultCase::new(
            "the API server refuses everything",
            control("", "admission"),
            |world| async { world.api.strike(Struck::All, "", Treatment::Refused(503)) }.boxed(),
            |world| async { world.api.heal() }.boxed(),
        ),
        FaultCase::new(
            "every write conflicts",
            control("", "admission"),
            |world| {
                async {
                    let conflict = Treatment::Refused(409);
                    world.api.strike(Struck::Writes, "", conflict);
                    world.api.strike(Struck::Trials, "", conflict);
                }
                .boxed()
            },
            |world| async { world.api.heal() }.boxed(),
        ),
        FaultCase::new(
            "the API server takes six seconds for an answer",
            control("", "admission"),
            |world| {
                async {
                    let slow = Treatment::Delayed(Duration::from_secs(6));
                    world.api.strike(Struck::All, "", slow);
                }
                .boxed()
            },
            |world| async { world.api.heal() }.boxed(),
        ),
    ]
}

impl World {
    /// Forgets an instance that failed.
    async fn abandon(&self, id: &str) {
        let name = names::instance(id);
        let users = &self.users;
        let freed = json!({"metadata": {"finalizers": null}});
        users.merge::<ServiceInstance>(TEAM, &name, freed).await;
        users.delete::<ServiceInstance>(TEAM, &name).await;
    }

    async fn make_broker(&self, namespace: &str, mut fields: Value) {
        fields["metadata"]["name"] = json!("default");
        fields["metadata"]["namespace"] = json!(namespace);
        let api = kube::Api::<Broker>::namespaced(self.users.client.clone(), namespace);
        self.users.create(api, fields).await;
    }

    async fn label(&self, namespace: &str, value: Value) {
        let patch = json!({"metadata": {"labels": {INJECTION_LABEL: value}}});
        self.users.merge::<Namespace>("", namespace, patch).await;
    }

    async fn finalizers(&self, link: &str, finalizers: Value) {
        let patch = json!({"metadata": {"finalizers": finalizers}});
        let users = &self.users;
        users
            .merge::<Subscription>(INTEGRATION_NAMESPACE, link, patch)
            .await;
    }

    /// The controller of Brokers waits for an answer that does not come.
    pub(crate) async fn suspend_brokers(&self) {
        self.api.strike(Struck::All, "/brokers", Treatment::Held);
        let touched = json!({"metadata": {"annotations": {"touched": "yes"}}});
        self.users.merge::<Broker>(TEAM, "default", touched).await;
    }

    /// What the controller of Triggers has to say is refused.
    pub(crate) async fn fail_triggers(&self) {
        let refused = Treatment::Refused(500);
        self.api.strike(Struck::Writes, "/triggers", refused);
        let changed = json!({"spec": {"delivery": {"retry": 4}}});
        self.users.merge::<Trigger>(TEAM, "orders", changed).await;
    }

    /// Many flows that come and go at once.
    pub(crate) async fn flood(&self) {
        for number in 0..100 {
            let name = format!("many-{number}");
            self.users.flow("team-b", &name, "shop", "orders").await;
        }
        for number in 0..100 {
            let name = format!("many-{number}");
            self.users.delete::<EventFlow>("team-b", &name).await;
        }
    }
}
