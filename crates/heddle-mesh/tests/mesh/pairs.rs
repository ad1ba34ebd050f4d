//! Applications with everything that leads their events into namespaces, for tests of heartbeats.

use std::sync::Arc;
use std::time::Duration;

use heddle_api::dataplane::{HeartbeatReading, HeartbeatTarget};
use heddle_api::names;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::world::World;

/// How often the heartbeats of a test are sent.
pub(crate) const INTERVAL: Duration = Duration::from_secs(10);

fn object<K: DeserializeOwned>(namespace: &str, name: &str, spec: Value) -> Arc<K> {
    let object = json!({
        "apiVersion": "", "kind": "",
        "metadata": {"namespace": namespace, "name": name, "uid": format!("uid-{name}"), "generation": 1},
        "spec": spec,
    });
    Arc::new(serde_json::from_value(object).unwrap())
}

impl World {
    /// An Application that takes events.
    pub(crate) fn application(&mut self, name: &str) {
        let hub = "kyma-integration";
        let resources = &mut self.resources;
        resources
            .applications
            .push(object("", name, json!({"services": []})));
        let source = json!({"source": name});
        resources.http_sources.push(object(hub, name, source));
        resources.channels.push(object(hub, name, json!({})));
    }

    /// The Broker of a namespace, a link from an Application to it, and leave to use it.
    pub(crate) fn linked(&mut self, application: &str, namespace: &str) {
        let resources = &self.resources;
        let has_broker = |namespace: &str| {
            let mut brokers = resources.brokers.iter();
            brokers.any(|broker| broker.metadata.namespace.as_deref() == Some(namespace))
        };
        if !has_broker(namespace) {
            self.broker(namespace, "default");
        }
        let broker = json!({"kind": "Broker", "namespace": namespace, "name": "default"});
        let link = json!({
            "channel": {"kind": "Channel", "name": application}, "subscriber": {"ref": broker},
        });
        let name = names::link_to(application, namespace, "default");
        let from = json!({"kind": "Application", "name": application});
        let policy = json!({"from": [{"ref": from}]});
        let resources = &mut self.resources;
        resources
            .subscriptions
            .push(object("kyma-integration", &name, link));
        let name = names::policy(application);
        resources.policies.push(object(namespace, &name, policy));
    }

    /// Heartbeats of an Application are to reach a namespace.
    pub(crate) fn target(&mut self, application: &str, namespace: &str) {
        self.resources.heartbeats.push(HeartbeatTarget {
            application: application.to_owned(),
            namespace: namespace.to_owned(),
            broker: "default".to_owned(),
            interval: INTERVAL,
        });
        self.resources.heartbeats.sort();
    }

    /// All of it.
    pub(crate) fn pair(&mut self, application: &str, namespace: &str) {
        let resources = &self.resources;
        let mut known = resources.applications.iter();
        if !known.any(|one| one.metadata.name.as_deref() == Some(application)) {
            self.application(application);
        }
        self.linked(application, namespace);
        self.target(application, namespace);
    }

    /// A trigger of a namespace that wants everything.
    pub(crate) fn wants_all(&mut self, namespace: &str, name: &str, host: &str) {
        let url = format!("http://{host}/");
        let trigger = json!({
            "apiVersion": "eventing.knative.dev/v1", "kind": "Trigger",
            "metadata": {"namespace": namespace, "name": name, "uid": name, "generation": 1},
            "spec": {"broker": "default", "subscriber": {"uri": url}}, "status": {"subscriberUri": url},
        });
        let trigger = Arc::new(serde_json::from_value(trigger).unwrap());
        self.resources.triggers.push(trigger);
    }

    /// What the mesh says about one pair.
    pub(crate) fn heartbeat(&self, application: &str, namespace: &str) -> HeartbeatReading {
        let readings = self.mesh.reading().heartbeats;
        let mut own = readings
            .into_iter()
            .filter(|one| one.application == application && one.namespace == namespace);
        own.next().expect("every target has a reading")
    }

    /// Where a pair is stuck: hop and object.
    pub(crate) fn stuck(&self, application: &str, namespace: &str) -> Option<(String, String)> {
        let stuck = self.heartbeat(application, namespace).stuck?;
        Some((stuck.hop, stuck.object))
    }

    /// Waits until a pair had so many hits in a row.
    pub(crate) async fn until_hits(&self, application: &str, namespace: &str, hits: u32) {
        self.until("heartbeats arrive", |world| {
            world.heartbeat(application, namespace).hits >= hits
        })
        .await;
    }

    pub(crate) async fn until_misses(&self, application: &str, namespace: &str, misses: u32) {
        self.until("heartbeats are missed", |world| {
            world.heartbeat(application, namespace).misses >= misses
        })
        .await;
    }
}
