//! What the controllers promise about routes, with a mesh whose table is held back by the test.

use std::time::Duration;

use heddle_api::dataplane::Held;
use heddle_api::{Application, Broker, Channel, Subscription, Trigger};
use heddle_sim::plane::BASE_URL;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::{Resource, ResourceExt as _};
use serde_json::{Value, json};

use crate::world::{TEAM, Users, condition, object, tell, with_plane};

impl Users {
    /// Makes an Application, or something of the team.
    async fn put<K: Resource<DynamicType = ()>>(&self, name: &str, spec: Value) {
        self.apply::<K>(namespace::<K>(), name, spec).await;
    }

    /// The status after everything has come to rest, and `Ready` as `status:reason`.
    async fn ready<K: Resource<DynamicType = ()>>(&self, name: &str) -> (String, Value) {
        self.rest().await;
        let api = self.api::<K>(namespace::<K>());
        let found = api.get(name).await.unwrap();
        let status = found.data["status"].clone();
        assert_eq!(
            status["observedGeneration"].as_i64(),
            found.meta().generation,
            "{} has been looked at",
            found.name_any()
        );
        let text = condition(&status, "Ready");
        (text, status)
    }

    async fn check<K: Resource<DynamicType = ()>>(&self, name: &str, expected: &str) -> Value {
        let (ready, status) = self.ready::<K>(name).await;
        assert_eq!(ready, expected, "{status:#}");
        status
    }
}

fn namespace<K: Resource<DynamicType = ()>>() -> &'static str {
    match &*K::kind(&()) {
        "Application" => "",
        _ => TEAM,
    }
}

fn to(uri: &str) -> Value {
    json!({"subscriber": {"uri": uri}})
}

#[test]
fn a_trigger_is_ready_only_while_the_table_in_force_has_its_generation() {
    tell(with_plane, |users, plane| async move {
        users.put::<Broker>("default", json!({})).await;
        users.check::<Broker>("default", "True").await;
        plane.hold_back();
        users.put::<Trigger>("t", to("http://a.example/")).await;
        users.check::<Trigger>("t", "Unknown:NotYetRouted").await;
        plane.release();
        users.check::<Trigger>("t", "True").await;
        plane.hold_back();
        users.put::<Trigger>("t", to("http://b.example/")).await;
        let status = users.check::<Trigger>("t", "Unknown:NotYetRouted").await;
        assert_eq!(status["subscriberUri"], "http://b.example/");
        plane.release();
        users.check::<Trigger>("t", "True").await;
    });
}

#[test]
fn a_namesake_made_again_waits_for_a_table_of_its_own() {
    tell(with_plane, |users, plane| async move {
        users.put::<Broker>("default", json!({})).await;
        users.put::<Trigger>("t", to("http://a.example/")).await;
        users.check::<Trigger>("t", "True").await;
        plane.hold_back();
        let triggers = users.api::<Trigger>(TEAM);
        triggers.delete("t", &Default::default()).await.unwrap();
        users.put::<Trigger>("t", to("http://a.example/")).await;
        users.check::<Trigger>("t", "Unknown:NotYetRouted").await;
        plane.release();
        users.check::<Trigger>("t", "True").await;
    });
}

#[test]
fn a_link_from_a_channel_to_a_broker_is_ready_when_it_is_in_force() {
    tell(with_plane, |users, plane| async move {
        users.put::<Channel>("c", json!({})).await;
        users.put::<Broker>("default", json!({})).await;
        users.check::<Channel>("c", "True").await;
        plane.hold_back();
        let link = json!({
            "channel": {"kind": "Channel", "name": "c"},
            "subscriber": {"ref": {"kind": "Broker", "name": "default"}},
        });
        users.put::<Subscription>("s", link).await;
        users
            .check::<Subscription>("s", "Unknown:NotAddedToChannel")
            .await;
        plane.release();
        let status = users.check::<Subscription>("s", "True").await;
        assert_eq!(
            status["physicalSubscription"]["subscriberUri"],
            json!(format!("{BASE_URL}/broker/team-a/default"))
        );
    });
}

#[test]
fn whatever_the_mesh_loses_is_told_by_everybody_it_concerns() {
    tell(with_plane, |users, plane| async move {
        users.put::<Application>("shop", json!({})).await;
        users.put::<Broker>("default", json!({})).await;
        users.put::<Trigger>("t", to("http://a.example/")).await;
        users.check::<Application>("shop", "True").await;
        users.check::<Trigger>("t", "True").await;
        plane.set_log(Err("the disk is full".to_owned()));
        users
            .check::<Broker>("default", "False:LogUnavailable")
            .await;
        users.check::<Trigger>("t", "False:BrokerNotReady").await;
        users
            .check::<Application>("shop", "False:ChannelNotReady")
            .await;
        plane.set_log(Ok(()));
        plane.set_listening(false);
        let status = users
            .check::<Broker>("default", "False:ListenerClosed")
            .await;
        assert_eq!(status["address"], Value::Null);
        users
            .check::<Application>("shop", "False:SourceNotReady")
            .await;
        plane.set_listening(true);
        users.check::<Application>("shop", "True").await;
        users.check::<Trigger>("t", "True").await;
    });
}

/// A restart begins with a mesh that has no table and no listener yet; nobody is to be told so within a moment.
#[test]
fn nothing_is_said_before_the_mesh_has_had_a_moment_to_begin() {
    tell(with_plane, |users, plane| async move {
        plane.set_listening(false);
        users.put::<Broker>("default", json!({})).await;
        users.clock.sleep(Duration::from_secs(1)).await;
        let brokers = users.api::<Broker>(TEAM);
        let status = |broker: DynamicObject| broker.data["status"].clone();
        assert_eq!(status(brokers.get("default").await.unwrap()), Value::Null);
        plane.set_listening(true);
        users.check::<Broker>("default", "True").await;
        // A listener that is not there after all that time is worth telling.
        plane.set_listening(false);
        users
            .check::<Broker>("default", "False:ListenerClosed")
            .await;
    });
}

#[test]
fn a_subscriber_that_is_gone_makes_its_trigger_unready() {
    tell(with_plane, |users, plane| async move {
        users.put::<Broker>("default", json!({})).await;
        users.put::<Trigger>("t", to("http://a.example/")).await;
        users.check::<Trigger>("t", "True").await;
        let key = "trigger/team-a/t";
        let waiting = Held::Waiting("paused".to_owned());
        plane.set_held(key, waiting);
        let status = users.check::<Trigger>("t", "True").await;
        assert!(status.to_string().contains("DeliveryHeld"), "{status:#}");
        let gone = Held::Gone("http://a.example/ answered 410".to_owned());
        plane.set_held(key, gone);
        users.check::<Trigger>("t", "False:SubscriberGone").await;
    });
}

#[test]
fn a_dependency_holds_its_trigger_back() {
    tell(with_plane, |users, _| async move {
        users.put::<Broker>("default", json!({})).await;
        users.put::<Trigger>("t", to("http://a.example/")).await;
        let names = r#"{"kind": "Channel", "name": "c"}"#;
        let patch = json!({"metadata": {"annotations": {"knative.dev/dependency": names}}});
        users.merge::<Trigger>(TEAM, "t", patch).await;
        users
            .check::<Trigger>("t", "False:DependencyNotReady")
            .await;
        users.put::<Channel>("c", json!({})).await;
        users.check::<Trigger>("t", "True").await;
    });
}

#[test]
fn a_burst_of_changes_is_routed_a_few_times_and_then_it_is_quiet() {
    tell(with_plane, |users, plane| async move {
        users.put::<Broker>("default", json!({})).await;
        users.check::<Broker>("default", "True").await;
        let before = plane.routed_count();
        for number in 0..40 {
            let name = format!("t{number}");
            users.put::<Trigger>(&name, to("http://a.example/")).await;
        }
        users.check::<Trigger>("t39", "True").await;
        let during = plane.routed_count() - before;
        // Once for the Triggers, once for the addresses that their statuses then have.
        assert!((1..=3).contains(&during), "{during} tables");
        users.rest().await;
        assert_eq!(plane.routed_count() - before, during);
    });
}

#[test]
fn a_filter_that_cannot_be_understood_is_refused_however_it_is_written() {
    tell(with_plane, |users, _| async move {
        let triggers = users.api::<Trigger>(TEAM);
        let bad = json!([{"all": [{"cesql": "type ="}]}]);
        let fields = json!({"metadata": {"name": "t"}, "spec": to("http://a.example/")});
        let mut object = object::<Trigger>(fields);
        let good: DynamicObject = serde_json::from_value(object.clone()).unwrap();
        object["spec"]["filters"] = bad.clone();
        let create: DynamicObject = serde_json::from_value(object.clone()).unwrap();
        let refused = |answer: Result<DynamicObject, kube::Error>| {
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

/// One of heddle's own that nobody claims goes after a while. What somebody else serves is somebody else's to remove.
#[test]
fn a_broker_of_another_class_is_not_removed_for_want_of_claims() {
    let linger = |options: &mut heddle_controllers::Options| options.broker_linger;
    tell(linger, |users, linger| async move {
        let managed = json!({"app.kubernetes.io/managed-by": "heddle"});
        let foreign = json!({"eventing.knative.dev/broker.class": "Kafka"});
        for (name, annotations) in [("ours", json!({})), ("theirs", foreign)] {
            users.put::<Broker>(name, json!({})).await;
            let metadata = json!({"labels": managed, "annotations": annotations});
            users
                .merge::<Broker>(TEAM, name, json!({"metadata": metadata}))
                .await;
        }
        users.clock.sleep(linger + Duration::from_secs(60)).await;
        let brokers = users.api::<Broker>(TEAM);
        assert!(brokers.get_opt("ours").await.unwrap().is_none());
        assert!(brokers.get_opt("theirs").await.unwrap().is_some());
    });
}
