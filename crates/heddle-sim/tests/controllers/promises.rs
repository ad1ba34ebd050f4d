//! What the controllers promise about routes, with a mesh whose table is held back by the test.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use heddle_api::{Application, Broker, Channel, Subscription, Trigger};
use heddle_controllers::{DataPlane, Held, Options};
use heddle_rt::{Chance, Clock};
use heddle_sim::plane::{BASE_URL, TestPlane};
use heddle_sim::stage::{NAMESPACES, on_stage};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde_json::{Value, json};

/// Longer than every pause of the controllers, shorter than a resync.
const A_WHILE: Duration = Duration::from_secs(30);

struct World {
    users: Client,
    plane: TestPlane,
    clock: Clock,
}

/// Tells a story in a fresh world in which the controllers run, on simulated time.
fn tell<F: Future<Output = ()>>(story: impl FnOnce(World) -> F) {
    on_stage(&NAMESPACES, |stage| async move {
        let clock = stage.clock.clone();
        let plane = TestPlane::new(clock.clone());
        let shared: Arc<dyn DataPlane> = Arc::new(plane.clone());
        let options = Options {
            data_plane: Some(shared),
            ..Options::new(clock.clone(), Chance::seeded(2))
        };
        let world = World {
            users: stage.users(),
            plane,
            clock,
        };
        stage
            .play(
                story(world),
                heddle_controllers::run(stage.controllers(), options),
            )
            .await;
    });
}

impl World {
    async fn apply<K: Resource<DynamicType = ()>>(&self, name: &str, spec: Value) {
        let (api, object) = self.object::<K>(name);
        let mut object = object;
        object["spec"] = spec;
        let params = PatchParams::apply("user").force();
        api.patch(name, &params, &Patch::Apply(&object))
            .await
            .unwrap();
    }

    fn object<K: Resource<DynamicType = ()>>(
        &self,
        name: &str,
    ) -> (Api<kube::api::DynamicObject>, Value) {
        let resource = kube::api::ApiResource::erase::<K>(&());
        let api = if K::kind(&()) == "Application" {
            Api::all_with(self.users.clone(), &resource)
        } else {
            Api::namespaced_with(self.users.clone(), "team-a", &resource)
        };
        let object = json!({
            "apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name},
        });
        (api, object)
    }

    /// The status after everything has come to rest, and `Ready` as `status:reason`.
    async fn ready<K: Resource<DynamicType = ()>>(&self, name: &str) -> (String, Value) {
        self.clock.sleep(A_WHILE).await;
        let (api, _) = self.object::<K>(name);
        let found = api.get(name).await.unwrap();
        let status = found.data["status"].clone();
        assert_eq!(
            status["observedGeneration"].as_i64(),
            found.meta().generation,
            "{} has been looked at",
            found.name_any()
        );
        let conditions = status["conditions"].as_array().unwrap();
        let ready = conditions.iter().find(|c| c["type"] == "Ready").unwrap();
        let reason = ready["reason"].as_str().map(|reason| format!(":{reason}"));
        let text = format!(
            "{}{}",
            ready["status"].as_str().unwrap(),
            reason.unwrap_or_default()
        );
        (text, status)
    }

    async fn check<K: Resource<DynamicType = ()>>(&self, name: &str, expected: &str) -> Value {
        let (ready, status) = self.ready::<K>(name).await;
        assert_eq!(ready, expected, "{status:#}");
        status
    }
}

fn to(uri: &str) -> Value {
    json!({"subscriber": {"uri": uri}})
}

#[test]
fn a_trigger_is_ready_only_while_the_table_in_force_has_its_generation() {
    tell(|world| async move {
        world.apply::<Broker>("default", json!({})).await;
        world.check::<Broker>("default", "True").await;
        world.plane.hold_back();
        world.apply::<Trigger>("t", to("http://a.example/")).await;
        world.check::<Trigger>("t", "Unknown:NotYetRouted").await;
        world.plane.release();
        world.check::<Trigger>("t", "True").await;
        world.plane.hold_back();
        world.apply::<Trigger>("t", to("http://b.example/")).await;
        let status = world.check::<Trigger>("t", "Unknown:NotYetRouted").await;
        assert_eq!(status["subscriberUri"], "http://b.example/");
        world.plane.release();
        world.check::<Trigger>("t", "True").await;
    });
}

#[test]
fn a_namesake_made_again_waits_for_a_table_of_its_own() {
    tell(|world| async move {
        world.apply::<Broker>("default", json!({})).await;
        world.apply::<Trigger>("t", to("http://a.example/")).await;
        world.check::<Trigger>("t", "True").await;
        world.plane.hold_back();
        let (triggers, _) = world.object::<Trigger>("t");
        triggers.delete("t", &Default::default()).await.unwrap();
        world.apply::<Trigger>("t", to("http://a.example/")).await;
        world.check::<Trigger>("t", "Unknown:NotYetRouted").await;
        world.plane.release();
        world.check::<Trigger>("t", "True").await;
    });
}

#[test]
fn a_link_from_a_channel_to_a_broker_is_ready_when_it_is_in_force() {
    tell(|world| async move {
        world.apply::<Channel>("c", json!({})).await;
        world.apply::<Broker>("default", json!({})).await;
        world.check::<Channel>("c", "True").await;
        world.plane.hold_back();
        let link = json!({
            "channel": {"kind": "Channel", "name": "c"},
            "subscriber": {"ref": {"kind": "Broker", "name": "default"}},
        });
        world.apply::<Subscription>("s", link).await;
        world
            .check::<Subscription>("s", "Unknown:NotAddedToChannel")
            .await;
        world.plane.release();
        let status = world.check::<Subscription>("s", "True").await;
        assert_eq!(
            status["physicalSubscription"]["subscriberUri"],
            json!(format!("{BASE_URL}/broker/team-a/default"))
        );
    });
}

#[test]
fn whatever_the_mesh_loses_is_told_by_everybody_it_concerns() {
    tell(|world| async move {
        world.apply::<Application>("shop", json!({})).await;
        world.apply::<Broker>("default", json!({})).await;
        world.apply::<Trigger>("t", to("http://a.example/")).await;
        world.check::<Application>("shop", "True").await;
        world.check::<Trigger>("t", "True").await;
        world.plane.set_log(Err("the disk is full".to_owned()));
        world
            .check::<Broker>("default", "False:LogUnavailable")
            .await;
        world.check::<Trigger>("t", "False:BrokerNotReady").await;
        world
            .check::<Application>("shop", "False:ChannelNotReady")
            .await;
        world.plane.set_log(Ok(()));
        world.plane.set_listening(false);
        let status = world
            .check::<Broker>("default", "False:ListenerClosed")
            .await;
        assert_eq!(status["address"], Value::Null);
        world
            .check::<Application>("shop", "False:SourceNotReady")
            .await;
        world.plane.set_listening(true);
        world.check::<Application>("shop", "True").await;
        world.check::<Trigger>("t", "True").await;
    });
}

/// A restart begins with a mesh that has no table and no listener yet; nobody is to be told so within a moment.
#[test]
fn nothing_is_said_before_the_mesh_has_had_a_moment_to_begin() {
    tell(|world| async move {
        world.plane.set_listening(false);
        world.apply::<Broker>("default", json!({})).await;
        world.clock.sleep(Duration::from_secs(1)).await;
        let (brokers, _) = world.object::<Broker>("default");
        let status = |broker: kube::api::DynamicObject| broker.data["status"].clone();
        assert_eq!(status(brokers.get("default").await.unwrap()), Value::Null);
        world.plane.set_listening(true);
        world.check::<Broker>("default", "True").await;
        // A listener that is not there after all that time is worth telling.
        world.plane.set_listening(false);
        world
            .check::<Broker>("default", "False:ListenerClosed")
            .await;
    });
}

#[test]
fn a_subscriber_that_is_gone_makes_its_trigger_unready() {
    tell(|world| async move {
        world.apply::<Broker>("default", json!({})).await;
        world.apply::<Trigger>("t", to("http://a.example/")).await;
        world.check::<Trigger>("t", "True").await;
        let key = "trigger/team-a/t";
        let waiting = Held::Waiting("paused".to_owned());
        world.plane.set_held(key, waiting);
        let status = world.check::<Trigger>("t", "True").await;
        assert!(status.to_string().contains("DeliveryHeld"), "{status:#}");
        let gone = Held::Gone("http://a.example/ answered 410".to_owned());
        world.plane.set_held(key, gone);
        world.check::<Trigger>("t", "False:SubscriberGone").await;
    });
}

#[test]
fn a_dependency_holds_its_trigger_back() {
    tell(|world| async move {
        world.apply::<Broker>("default", json!({})).await;
        world.apply::<Trigger>("t", to("http://a.example/")).await;
        let (triggers, _) = world.object::<Trigger>("t");
        let names = r#"{"kind": "Channel", "name": "c"}"#;
        let patch = json!({"metadata": {"annotations": {"knative.dev/dependency": names}}});
        triggers
            .patch("t", &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .unwrap();
        world
            .check::<Trigger>("t", "False:DependencyNotReady")
            .await;
        world.apply::<Channel>("c", json!({})).await;
        world.check::<Trigger>("t", "True").await;
    });
}

#[test]
fn a_burst_of_changes_is_routed_a_few_times_and_then_it_is_quiet() {
    tell(|world| async move {
        world.apply::<Broker>("default", json!({})).await;
        world.check::<Broker>("default", "True").await;
        let before = world.plane.routed_count();
        for number in 0..40 {
            let name = format!("t{number}");
            world.apply::<Trigger>(&name, to("http://a.example/")).await;
        }
        world.check::<Trigger>("t39", "True").await;
        let during = world.plane.routed_count() - before;
        // Once for the Triggers, once for the addresses that their statuses then have.
        assert!((1..=3).contains(&during), "{during} tables");
        world.clock.sleep(A_WHILE).await;
        assert_eq!(world.plane.routed_count() - before, during);
    });
}

#[test]
fn a_filter_that_cannot_be_understood_is_refused_however_it_is_written() {
    tell(|world| async move {
        let (triggers, mut object) = world.object::<Trigger>("t");
        let bad = json!([{"all": [{"cesql": "type ="}]}]);
        object["spec"] = to("http://a.example/");
        let good: kube::api::DynamicObject = serde_json::from_value(object.clone()).unwrap();
        object["spec"]["filters"] = bad.clone();
        let create: kube::api::DynamicObject = serde_json::from_value(object.clone()).unwrap();
        let refused = |answer: Result<kube::api::DynamicObject, kube::Error>| {
            let error = answer.unwrap_err().to_string();
            assert!(error.contains("spec.filters[0].all[0].cesql"), "{error}");
        };
        refused(triggers.create(&Default::default(), &create).await);
        let mut stored = triggers.create(&Default::default(), &good).await.unwrap();
        stored.data["spec"]["filters"] = bad.clone();
        refused(triggers.replace("t", &Default::default(), &stored).await);
        let change = json!({"spec": {"filters": bad}});
        let merge = PatchParams::default();
        refused(triggers.patch("t", &merge, &Patch::Merge(&change)).await);
        let apply = PatchParams::apply("user").force();
        refused(triggers.patch("t", &apply, &Patch::Apply(&object)).await);
    });
}
