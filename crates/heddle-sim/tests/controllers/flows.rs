//! What the controllers promise about flows, on simulated time and the real API server.

use std::future::Future;
use std::time::Duration;

use heddle_api::dataplane::Fate;
use heddle_api::well_known::{APPLICATION_LABEL, FINALIZER, INJECTION_LABEL};
use heddle_api::{
    Application, ApplicationMapping, Broker, Channel, EventActivation, EventFlow, EventPolicy,
    HTTPSource, Subscription, Trigger, names,
};
use heddle_rt::Chance;
use heddle_sim::plane::TestPlane;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DynamicObject, ListParams};
use kube::{Resource, ResourceExt as _};
use serde_json::{Value, json};

use crate::world::{self, TEAM, Users, condition, with_plane};

const INTEGRATION: &str = "kyma-integration";
const CHANNEL: &str = "channel/kyma-integration/shop";
const BROKER: &str = "broker/team-a/default";

struct World {
    users: Users,
    plane: TestPlane,
}

fn tell<F: Future<Output = ()>>(story: impl FnOnce(World) -> F) {
    world::tell(with_plane, |users, plane| story(World { users, plane }));
}

impl World {
    async fn find<K: Resource<DynamicType = ()>>(
        &self,
        namespace: &str,
        name: &str,
    ) -> Option<DynamicObject> {
        self.users.api::<K>(namespace).get_opt(name).await.unwrap()
    }

    async fn names<K: Resource<DynamicType = ()>>(&self, namespace: &str) -> Vec<String> {
        let list = self
            .users
            .api::<K>(namespace)
            .list(&ListParams::default())
            .await;
        list.unwrap().iter().map(|o| o.name_any()).collect()
    }

    async fn shop(&self) {
        let service = |id: &str| {
            json!({
                "id": id, "name": id, "displayName": id, "description": id,
                "providerDisplayName": "acme", "entries": [{"type": "Events"}],
            })
        };
        let services = json!([service("orders"), service("returns")]);
        self.users
            .apply::<Application>("", "shop", json!({"services": services}))
            .await;
    }

    async fn mapping(&self) {
        self.users
            .apply::<ApplicationMapping>(TEAM, "shop", json!({}))
            .await;
    }

    async fn flow(&self, name: &str, service: &str) {
        let spec = json!({"application": "shop", "serviceID": service});
        self.users.apply::<EventFlow>(TEAM, name, spec).await;
    }

    /// A flow with everything it needs, at rest.
    async fn ready_flow(&self) {
        self.shop().await;
        self.mapping().await;
        self.flow("f", "orders").await;
        self.users.rest().await;
        assert_eq!(self.ready("f").await, "True");
    }

    /// `Ready` of a flow, as `status:reason`.
    async fn ready(&self, name: &str) -> String {
        let flow = self.find::<EventFlow>(TEAM, name).await.unwrap();
        condition(&flow.data["status"], "Ready")
    }

    fn link(&self) -> String {
        names::link("shop", TEAM)
    }
}

/// What happens once each, in any order.
const INPUTS: usize = 7;

async fn input(world: &World, number: usize) {
    match number {
        0 => world.shop().await,
        1 => world.mapping().await,
        2 => world.flow("f", "orders").await,
        3 => world.flow("g", "returns").await,
        4 => world.plane.set_listening(true),
        5 => world.plane.release(),
        _ => {
            let to = json!({"subscriber": {"uri": "http://orders.example/"}});
            world.users.apply::<Trigger>(TEAM, "t", to).await;
        }
    }
}

/// Everything in the two namespaces, without what tells one run from another.
async fn end(world: &World) -> Value {
    const OF_ONE_RUN: [&str; 8] = [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "generation",
        "observedGeneration",
        "managedFields",
        "lastTransitionTime",
        "heddle.dev/applied",
    ];
    fn forget(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.retain(|name, _| !OF_ONE_RUN.contains(&name.as_str()));
                fields.values_mut().for_each(forget);
            }
            Value::Array(items) => items.iter_mut().for_each(forget),
            _ => {}
        }
    }
    async fn all<K: Resource<DynamicType = ()>>(world: &World, namespace: &str) -> Value {
        let list = world
            .users
            .api::<K>(namespace)
            .list(&ListParams::default())
            .await;
        let mut items = serde_json::to_value(list.unwrap().items).unwrap();
        forget(&mut items);
        items
    }
    let mut end = json!({
        "flows": all::<EventFlow>(world, TEAM).await,
        "brokers": all::<Broker>(world, TEAM).await,
        "policies": all::<EventPolicy>(world, TEAM).await,
        "activations": all::<EventActivation>(world, TEAM).await,
        "links": all::<Subscription>(world, INTEGRATION).await,
        "triggers": all::<Trigger>(world, TEAM).await,
    });
    // Whoever came first is named first.
    let claims = &mut end["brokers"][0]["spec"]["claims"];
    if let Some(claims) = claims.as_array_mut() {
        claims.sort_by_key(|claim| claim["name"].to_string());
    }
    end
}

#[test]
fn whatever_comes_first_the_end_is_the_same() {
    let mut expected = None;
    for seed in 0..200 {
        let chance = Chance::seeded(seed);
        let below = |limit: usize| usize::try_from(chance.below(limit as u64)).unwrap();
        let mut left: Vec<usize> = (0..INPUTS).collect();
        let mut order = Vec::new();
        while !left.is_empty() {
            order.push((left.remove(below(left.len())), below(3)));
        }
        tell(|world| {
            let expected = &mut expected;
            async move {
                world.plane.set_listening(false);
                world.plane.hold_back();
                for (number, pause) in &order {
                    input(&world, *number).await;
                    // Sometimes everything comes at once, sometimes all is quiet in between.
                    let pause = [0, 60, 20_000][*pause];
                    world.users.clock.sleep(Duration::from_millis(pause)).await;
                }
                world.users.rest().await;
                assert_eq!(world.ready("f").await, "True", "seed {seed}: {order:?}");
                assert_eq!(world.ready("g").await, "True", "seed {seed}: {order:?}");
                let found = end(&world).await;
                let expected = expected.get_or_insert_with(|| found.clone());
                assert_eq!(found, *expected, "seed {seed}: {order:?}");
            }
        });
    }
}

#[test]
fn whatever_somebody_deletes_or_breaks_comes_back() {
    tell(|world| async move {
        world.ready_flow().await;
        let before = end(&world).await;
        let link = world.link();
        world.users.delete::<Subscription>(INTEGRATION, &link).await;
        world.users.delete::<Broker>(TEAM, "default").await;
        world.users.delete::<EventPolicy>(TEAM, "flow-shop").await;
        world.users.delete::<Channel>(INTEGRATION, "shop").await;
        world.users.delete::<HTTPSource>(INTEGRATION, "shop").await;
        world.users.rest().await;
        assert_eq!(world.ready("f").await, "True");
        assert_eq!(end(&world).await, before);
    });
}

#[test]
fn a_mapping_that_goes_takes_the_link_along_and_brings_it_back() {
    tell(|world| async move {
        world.ready_flow().await;
        world.users.delete::<ApplicationMapping>(TEAM, "shop").await;
        world.users.rest().await;
        assert_eq!(world.ready("f").await, "False:MappingMissing");
        assert_eq!(
            world.names::<Subscription>(INTEGRATION).await,
            [] as [&str; 0]
        );
        assert_eq!(world.names::<Broker>(TEAM).await, ["default"]);
        world.mapping().await;
        world.users.rest().await;
        assert_eq!(world.ready("f").await, "True");
    });
}

#[test]
fn a_namespace_that_forbids_a_broker_says_so() {
    tell(|world| async move {
        let label = |value: Value| json!({"metadata": {"labels": {INJECTION_LABEL: value}}});
        world
            .users
            .merge::<Namespace>("", TEAM, label(json!("disabled")))
            .await;
        world.shop().await;
        world.mapping().await;
        world.flow("f", "orders").await;
        world.users.rest().await;
        assert_eq!(world.names::<Broker>(TEAM).await, [] as [&str; 0]);
        let flow = world.find::<EventFlow>(TEAM, "f").await.unwrap();
        assert!(
            flow.data["status"]
                .to_string()
                .contains("InjectionDisabled"),
            "{:#}",
            flow.data
        );
        world
            .users
            .merge::<Namespace>("", TEAM, label(Value::Null))
            .await;
        world.users.rest().await;
        assert_eq!(world.ready("f").await, "True");
        let namespace = world.find::<Namespace>("", TEAM).await.unwrap();
        assert_eq!(namespace.labels()[INJECTION_LABEL], "enabled");
    });
}

#[test]
fn what_others_say_about_a_namespace_stays() {
    tell(|world| async move {
        let theirs = json!({"metadata": {"labels": {"theirs": "kept"}}});
        world.users.merge::<Namespace>("", TEAM, theirs).await;
        world.ready_flow().await;
        world.users.delete::<EventFlow>(TEAM, "f").await;
        world.users.rest().await;
        let namespace = world.find::<Namespace>("", TEAM).await.unwrap();
        assert_eq!(namespace.labels()["theirs"], "kept");
        assert!(!namespace.labels().contains_key(INJECTION_LABEL));
    });
}

#[test]
fn a_change_of_a_name_shows_in_the_projection() {
    tell(|world| async move {
        world.ready_flow().await;
        let patch = json!({"spec": {"services": [{
            "id": "orders", "name": "orders", "displayName": "Orders!", "description": "",
            "providerDisplayName": "acme", "entries": [{"type": "Events"}],
        }]}});
        world.users.merge::<Application>("", "shop", patch).await;
        world.users.clock.sleep(Duration::from_secs(1)).await;
        let activation = world.find::<EventActivation>(TEAM, "orders").await;
        assert_eq!(activation.unwrap().data["spec"]["displayName"], "Orders!");
    });
}

/// Removes a flow that has events pending, and answers what it says about them while others still hold it.
async fn remove(world: &World, how: &str, pending: u64) {
    world.ready_flow().await;
    let held = json!({"metadata": {"finalizers": [FINALIZER, "example.com/theirs"]}});
    world.users.merge::<EventFlow>(TEAM, "f", held).await;
    let how = json!({"spec": {"onDeprovision": how}});
    world.users.merge::<EventFlow>(TEAM, "f", how).await;
    world.plane.set_pending(CHANNEL, BROKER, pending);
    world.users.delete::<EventFlow>(TEAM, "f").await;
    world.users.rest().await;
    assert_eq!(
        world.names::<Subscription>(INTEGRATION).await,
        [] as [&str; 0],
        "no new events come first"
    );
}

async fn ended(world: &World) -> (Value, Vec<String>) {
    let flow = world.find::<EventFlow>(TEAM, "f").await.unwrap();
    (
        flow.data["status"]["ended"].clone(),
        flow.finalizers().to_vec(),
    )
}

#[test]
fn pending_events_are_delivered_before_the_flow_goes() {
    tell(|world| async move {
        remove(&world, "drain", 1000).await;
        assert_eq!(ended(&world).await.0, Value::Null, "it waits");
        world.plane.set_pending(CHANNEL, BROKER, 0);
        world.users.rest().await;
        let (ended, finalizers) = ended(&world).await;
        assert_eq!(
            ended,
            json!({"delivered": 1000, "deadLettered": 0, "discarded": 0})
        );
        assert_eq!(finalizers, ["example.com/theirs"], "others' are theirs");
        assert_eq!(world.plane.given_up(), []);
    });
}

#[test]
fn what_cannot_be_delivered_within_five_minutes_becomes_a_dead_letter() {
    tell(|world| async move {
        remove(&world, "drain", 10).await;
        world.plane.set_pending(CHANNEL, BROKER, 4);
        world.users.clock.sleep(Duration::from_secs(240)).await;
        assert_eq!(world.plane.given_up(), []);
        world.users.clock.sleep(Duration::from_secs(60)).await;
        let (ended, _) = ended(&world).await;
        assert_eq!(
            ended,
            json!({"delivered": 6, "deadLettered": 4, "discarded": 0})
        );
        let given_up = (CHANNEL.to_owned(), BROKER.to_owned(), Fate::DeadLetter, 4);
        assert_eq!(world.plane.given_up(), [given_up]);
    });
}

#[test]
fn pending_events_end_at_once_where_that_is_asked_for() {
    for (how, dead_lettered, discarded) in [("deadLetter", 7, 0), ("discard", 0, 7)] {
        tell(|world| async move {
            remove(&world, how, 7).await;
            let (ended, finalizers) = ended(&world).await;
            let expected = json!({
                "delivered": 0, "deadLettered": dead_lettered, "discarded": discarded,
            });
            assert_eq!(ended, expected);
            assert_eq!(finalizers, ["example.com/theirs"]);
        });
    }
}

#[test]
fn a_broker_nobody_needs_goes_only_when_nothing_keeps_it() {
    tell(|world| async move {
        let retained = async || {
            world.users.rest().await;
            let broker = world.find::<Broker>(TEAM, "default").await.unwrap();
            let conditions = broker.data["status"]["conditions"].as_array().unwrap();
            let retained = conditions.iter().find(|c| c["type"] == "Retained");
            retained.map(|c| c["reason"].as_str().unwrap().to_owned())
        };
        world.ready_flow().await;
        assert_eq!(retained().await, None);
        let to = json!({"subscriber": {"uri": "http://orders.example/"}});
        world.users.apply::<Trigger>(TEAM, "t", to).await;
        world.users.delete::<EventFlow>(TEAM, "f").await;
        assert_eq!(retained().await.as_deref(), Some("HasTriggers"));
        world.users.clock.sleep(Duration::from_secs(3600)).await;
        world.plane.set_pending("channel/other/one", BROKER, 5);
        world.users.delete::<Trigger>(TEAM, "t").await;
        assert_eq!(retained().await.as_deref(), Some("EventsPending"));
        world.plane.set_pending("channel/other/one", BROKER, 0);
        world.users.clock.sleep(Duration::from_secs(60)).await;
        assert_eq!(world.names::<Broker>(TEAM).await, [] as [&str; 0]);

        // One that is needed again within the time it lingers is the same as before.
        world.flow("f", "orders").await;
        world.users.rest().await;
        let uid = world.find::<Broker>(TEAM, "default").await.unwrap().uid();
        world.users.delete::<EventFlow>(TEAM, "f").await;
        assert_eq!(retained().await.as_deref(), Some("Lingering"));
        world.flow("f", "orders").await;
        assert_eq!(retained().await, None);
        world.users.clock.sleep(Duration::from_secs(3600)).await;
        assert_eq!(world.ready("f").await, "True");
        let broker = world.find::<Broker>(TEAM, "default").await.unwrap();
        assert_eq!(broker.uid(), uid);
    });
}

#[test]
fn a_broker_that_somebody_else_made_is_never_removed() {
    tell(|world| async move {
        world
            .users
            .apply::<Broker>(TEAM, "default", json!({}))
            .await;
        world.ready_flow().await;
        world.users.delete::<EventFlow>(TEAM, "f").await;
        world.users.clock.sleep(Duration::from_secs(3600)).await;
        let broker = world.find::<Broker>(TEAM, "default").await.unwrap();
        assert_eq!(broker.data["spec"]["claims"], json!([]));
    });
}

#[test]
fn a_namespace_with_flows_can_be_deleted_within_seconds() {
    tell(|world| async move {
        world.ready_flow().await;
        world.flow("g", "returns").await;
        world.plane.set_pending(CHANNEL, BROKER, 3);
        world.users.delete::<Namespace>("", TEAM).await;
        world.users.clock.sleep(Duration::from_secs(10)).await;
        assert!(world.find::<Namespace>("", TEAM).await.is_none());
        assert_eq!(
            world.names::<Subscription>(INTEGRATION).await,
            [] as [&str; 0],
            "nothing is left behind"
        );
        assert_eq!(
            world.plane.given_up().len(),
            1,
            "and what was pending rests"
        );
    });
}

/// Every kind a flow depends on tells it without anybody looking at a clock.
#[test]
fn a_change_of_anything_a_flow_depends_on_is_noticed_at_once() {
    tell(|world| async move {
        world.ready_flow().await;
        let link = world.link();
        let relabel = json!({"metadata": {"labels": {APPLICATION_LABEL: "other"}}});
        let soon = async || world.users.clock.sleep(Duration::from_millis(900)).await;

        world
            .users
            .merge::<Subscription>(INTEGRATION, &link, relabel)
            .await;
        soon().await;
        let found = world.find::<Subscription>(INTEGRATION, &link).await;
        assert_eq!(found.unwrap().labels()[APPLICATION_LABEL], "shop");

        let spec = json!({"spec": {"from": []}});
        world
            .users
            .merge::<EventPolicy>(TEAM, "flow-shop", spec)
            .await;
        soon().await;
        let found = world.find::<EventPolicy>(TEAM, "flow-shop").await.unwrap();
        assert_eq!(found.data["spec"]["from"].as_array().unwrap().len(), 1);

        let claims = json!({"spec": {"claims": null}});
        world.users.merge::<Broker>(TEAM, "default", claims).await;
        soon().await;
        let found = world.find::<Broker>(TEAM, "default").await.unwrap();
        assert_eq!(found.data["spec"]["claims"].as_array().unwrap().len(), 1);
        assert_eq!(world.ready("f").await, "True");

        let none = json!({"spec": {"services": []}});
        world
            .users
            .merge::<ApplicationMapping>(TEAM, "shop", none)
            .await;
        soon().await;
        assert_eq!(world.ready("f").await, "False:ServiceNotEnabled");
        let all = json!({"spec": {"services": null}});
        world
            .users
            .merge::<ApplicationMapping>(TEAM, "shop", all)
            .await;
        soon().await;
        assert_eq!(world.ready("f").await, "True");

        world.plane.set_log(Err("the disk is full".to_owned()));
        soon().await;
        assert_eq!(world.ready("f").await, "False:ChannelNotReady");
        world.plane.set_log(Ok(()));
        soon().await;
        assert_eq!(world.ready("f").await, "True");
    });
}
