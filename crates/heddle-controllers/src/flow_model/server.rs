//! A server of a few kinds: versions, uids, finalizers, owners, and nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;

use heddle_api::well_known::{INJECTION_LABEL, field_manager};
use heddle_api::{
    Application, ApplicationMapping, Broker, Channel, EventActivation, EventFlow, EventPolicy,
    HTTPSource, Subscription,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::DynamicObject;
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::reconcile::{Reconciler as _, Step};
use crate::{broker, event_flow, eventing};

pub(crate) const NAMESPACE: &str = "team";

/// What a careless author would have left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Planted {
    Nothing,
    /// Brokers are removed by uid alone.
    RemovalIgnoresVersion,
    /// Claims are written over whatever is there.
    ClaimsIgnoreVersion,
}

/// Objects by name: everything happens in one namespace and the integration namespace.
type Kept<K> = BTreeMap<String, K>;

#[derive(Debug, Clone, Default)]
pub(crate) struct Server {
    pub namespace: Option<Namespace>,
    pub applications: Kept<Application>,
    pub mappings: Kept<ApplicationMapping>,
    pub sources: Kept<HTTPSource>,
    pub channels: Kept<Channel>,
    pub flows: Kept<EventFlow>,
    pub brokers: Kept<Broker>,
    pub links: Kept<Subscription>,
    pub policies: Kept<EventPolicy>,
    pub activations: Kept<EventActivation>,
    numbers: u64,
    /// What must never happen, and did.
    pub broken: Vec<String>,
}

/// The object is no longer what was looked at.
#[derive(Debug)]
pub(crate) struct Moved;

type WriteResult = Result<Option<DynamicObject>, Moved>;

impl Server {
    /// An object as a user creates it.
    pub(crate) fn put<K>(&mut self, kept: fn(&mut Self) -> &mut Kept<K>, object: Value)
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let object = self.born::<K>(object);
        kept(self).insert(object.name_any(), object);
    }

    pub(crate) fn born<K>(&mut self, mut object: Value) -> K
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        self.numbers += 1;
        object["apiVersion"] = json!(K::api_version(&()));
        object["kind"] = json!(K::kind(&()));
        let meta = &mut object["metadata"];
        meta["uid"] = json!(format!("uid{}", self.numbers));
        meta["resourceVersion"] = json!(format!("rv{}", self.numbers));
        meta["generation"] = json!(1);
        if meta["namespace"].is_null() && K::kind(&()) != "Namespace" {
            meta["namespace"] = json!(NAMESPACE);
        }
        serde_json::from_value(object).unwrap()
    }

    /// A user deletes a flow: it goes at once unless it is held.
    pub(crate) fn delete_flow(&mut self, name: &str) {
        let Some(flow) = self.flows.get_mut(name) else {
            return;
        };
        if flow.finalizers().is_empty() {
            self.flows.remove(name);
            self.collect();
        } else if flow.metadata.deletion_timestamp.is_none() {
            self.numbers += 1;
            flow.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
            flow.metadata.resource_version = Some(format!("rv{}", self.numbers));
        }
    }

    /// Another controller claims the Broker, properly.
    pub(crate) fn claim_for_another(&mut self) {
        self.numbers += 1;
        if let Some(broker) = self.brokers.get_mut("default") {
            let claim = json!({"uid": "another", "kind": "Another", "name": "other"});
            broker
                .spec
                .claims
                .push(serde_json::from_value(claim).unwrap());
            broker.metadata.resource_version = Some(format!("rv{}", self.numbers));
        }
    }

    /// Carries a step out as a server would.
    pub(crate) fn carry_out(&mut self, step: Step, planted: Planted) -> WriteResult {
        let step = careless(step, planted);
        let resource = match &step {
            Step::Apply { resource, .. }
            | Step::Create { resource, .. }
            | Step::Offer { resource, .. }
            | Step::Swap { resource, .. }
            | Step::Delete { resource, .. } => resource.kind.clone(),
        };
        let before = self.brokers.clone();
        let flows = self.flows.clone();
        let numbers = &mut self.numbers;
        let answer = match resource.as_str() {
            "Namespace" => {
                *numbers += 1;
                label(self.namespace.as_mut().unwrap(), &step);
                Ok(None)
            }
            "EventFlow" => write(&mut self.flows, numbers, step),
            "Broker" => write(&mut self.brokers, numbers, step),
            "Subscription" => write(&mut self.links, numbers, step),
            "EventPolicy" => write(&mut self.policies, numbers, step),
            "EventActivation" => write(&mut self.activations, numbers, step),
            other => unreachable!("no controller of flows writes a {other}"),
        };
        self.watch_brokers(&before);
        self.watch_flows(&flows);
        self.collect();
        answer
    }

    /// A Broker that is claimed stays, and what others claim is theirs.
    fn watch_brokers(&mut self, before: &Kept<Broker>) {
        for (name, old) in before {
            let claims = |broker: &Broker| broker.spec.claims.clone();
            match self.brokers.get(name) {
                None if !claims(old).is_empty() => {
                    let claims = claims(old);
                    self.broken
                        .push(format!("Broker {name} was removed under {claims:?}"));
                }
                Some(new) => {
                    let mut others = claims(old).into_iter();
                    if others.any(|c| c.uid == "another" && !claims(new).contains(&c)) {
                        self.broken.push("another's claim was lost".to_owned());
                    }
                }
                None => {}
            }
        }
    }

    /// A link never outlives the last flow that could have it taken away.
    fn watch_flows(&mut self, before: &Kept<EventFlow>) {
        for (name, gone) in before {
            if self.flows.contains_key(name) {
                continue;
            }
            let application = &gone.spec.application;
            let is_linked = |link: &Subscription| link.spec.channel.name == *application;
            let is_kept = |flow: &EventFlow| {
                flow.spec.application == *application && !flow.finalizers().is_empty()
            };
            if self.links.values().any(is_linked) && !self.flows.values().any(is_kept) {
                self.broken
                    .push(format!("{name} was let go before its link was gone"));
            }
        }
    }

    /// Owners that are gone own nothing.
    fn collect(&mut self) {
        fn sweep<K: Resource>(kept: &mut Kept<K>, living: &[String]) {
            for object in kept.values_mut() {
                let owners = object.meta_mut().owner_references.get_or_insert_default();
                owners.retain(|owner| living.contains(&owner.uid));
            }
            kept.retain(|_, object| !object.owner_references().is_empty());
        }
        let living: Vec<String> = self.flows.values().filter_map(ResourceExt::uid).collect();
        sweep(&mut self.policies, &living);
        sweep(&mut self.activations, &living);
    }

    /// The first half of what a reconcile of eventing reads.
    pub(crate) fn look(&self) -> eventing::World {
        fn all<K: Clone>(kept: &Kept<K>) -> Vec<K> {
            kept.values().cloned().collect()
        }
        eventing::World {
            namespace: self.namespace.clone().unwrap(),
            brokers: all(&self.brokers),
            links: all(&self.links),
            policies: all(&self.policies),
            activations: all(&self.activations),
            ..eventing::World::default()
        }
    }

    /// The second half, and what follows from it.
    pub(crate) fn decide(&self, mut world: eventing::World) -> Vec<Step> {
        world.flows = self.flows.values().cloned().collect();
        world.mappings = self.mappings.values().cloned().collect();
        let applications = self.applications.values().cloned();
        world.applications = applications.map(Arc::new).collect();
        eventing::Eventing::default().plan(&world)
    }

    /// What a reconcile of the controller of Brokers would do, however long nobody has claimed it.
    pub(crate) fn removal(&self) -> Option<Step> {
        let broker = self.brokers.get("default")?;
        if !broker.spec.claims.is_empty() {
            return None;
        }
        let mut broker = broker.clone();
        let since = json!({"conditions": [
            {"type": "Retained", "status": "True", "lastTransitionTime": "1970-01-01T00:00:00Z"},
        ]});
        broker.status = Some(serde_json::from_value(since).unwrap());
        let world = broker::World {
            broker,
            dead_letter_sink: None,
            foreign: None,
            door: None,
            unclaimed: Some(broker::Unclaimed {
                triggers: Vec::new(),
                pending: 0,
                linger: std::time::Duration::ZERO,
            }),
            is_removed: false,
            now: Timestamp::UNIX_EPOCH,
        };
        broker::Brokers.plan(&world).pop()
    }

    /// The world of one flow.
    pub(crate) fn flow(&self, name: &str) -> Option<event_flow::World> {
        let flow = self.flows.get(name)?.clone();
        let application = &flow.spec.application;
        let leaving = flow.metadata.deletion_timestamp.is_some();
        let link = heddle_api::names::link(application, NAMESPACE);
        Some(event_flow::World {
            heartbeat: None,
            broker: self.brokers.get(&flow.spec.broker_ref.name).cloned(),
            link: self.links.get(&link).cloned(),
            parts: event_flow::Parts {
                mapping: self.mappings.get(application).cloned(),
                source: self.sources.get(application).cloned(),
                channel: self.channels.get(application).cloned(),
                activation: self.activations.get(&flow.spec.service_id).cloned(),
                policy: self
                    .policies
                    .get(&heddle_api::names::policy(application))
                    .cloned(),
                is_disabled: false,
            },
            leaving: leaving.then(|| event_flow::Leaving {
                ends_with_namespace: false,
                is_succeeded: self
                    .flows
                    .values()
                    .any(|other| eventing::succeeds(other, &flow)),
                mesh: None,
                given_up: None,
            }),
            now: Timestamp::UNIX_EPOCH,
            flow,
        })
    }

    /// A whole round of one flow; answers whether anything was written.
    pub(crate) fn flow_round(&mut self, name: &str) -> bool {
        let Some(mut world) = self.flow(name) else {
            return false;
        };
        let flows = event_flow::EventFlows::default();
        let mut has_written = false;
        for step in flows.plan(&world) {
            has_written = true;
            let step_name = step.step_name();
            if let Ok(answer) = self.carry_out(step, Planted::Nothing) {
                flows.on_applied(&mut world, step_name, answer);
            }
        }
        let Some(status) = flows.status(&world, Timestamp::UNIX_EPOCH) else {
            return has_written;
        };
        let status = Some(serde_json::from_value(status).unwrap());
        if let Some(flow) = self.flows.get_mut(name)
            && flow.status != status
        {
            self.numbers += 1;
            flow.status = status;
            flow.metadata.resource_version = Some(format!("rv{}", self.numbers));
            has_written = true;
        }
        has_written
    }
}

/// The step as the author of a planted mistake would have sent it.
fn careless(mut step: Step, planted: Planted) -> Step {
    match &mut step {
        Step::Delete { version, .. } if planted == Planted::RemovalIgnoresVersion => {
            *version = None;
        }
        Step::Swap {
            resource, patch, ..
        } if planted == Planted::ClaimsIgnoreVersion && resource.kind == "Broker" => {
            let meta = patch["metadata"].as_object_mut().unwrap();
            meta.remove("resourceVersion");
        }
        _ => {}
    }
    step
}

fn write<K>(kept: &mut Kept<K>, numbers: &mut u64, step: Step) -> WriteResult
where
    K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone,
{
    let answer = |object: &K| serde_json::from_value(serde_json::to_value(object).unwrap()).ok();
    match step {
        Step::Create { name, .. } if kept.contains_key(&name) => Err(Moved),
        Step::Apply { name, object, .. }
        | Step::Create { name, object, .. }
        | Step::Offer { name, object, .. } => {
            let old = kept.get(&name);
            let mut value = old.map_or_else(|| json!({}), |o| serde_json::to_value(o).unwrap());
            if old.is_none() {
                *numbers += 1;
                value["metadata"] = json!({"uid": format!("uid{numbers}"), "generation": 1});
            }
            merge(&mut value, object);
            *numbers += 1;
            value["metadata"]["resourceVersion"] = json!(format!("rv{numbers}"));
            let object: K = serde_json::from_value(value).unwrap();
            let answer = answer(&object);
            kept.insert(name, object);
            Ok(answer)
        }
        Step::Swap { name, patch, .. } => {
            let old = kept.get(&name).ok_or(Moved)?;
            let mut value = serde_json::to_value(old).unwrap();
            for field in ["uid", "resourceVersion"] {
                let expected = &patch["metadata"][field];
                if !expected.is_null() && *expected != value["metadata"][field] {
                    return Err(Moved);
                }
            }
            merge(&mut value, patch);
            *numbers += 1;
            value["metadata"]["resourceVersion"] = json!(format!("rv{numbers}"));
            let object: K = serde_json::from_value(value).unwrap();
            if object.meta().deletion_timestamp.is_some() && object.finalizers().is_empty() {
                kept.remove(&name);
                return Ok(None);
            }
            let answer = answer(&object);
            kept.insert(name, object);
            Ok(answer)
        }
        Step::Delete {
            name, uid, version, ..
        } => {
            let Some(old) = kept.get(&name).filter(|old| old.uid() == Some(uid)) else {
                return Ok(None);
            };
            if version.is_some() && version != old.resource_version() {
                return Err(Moved);
            }
            kept.remove(&name);
            Ok(None)
        }
    }
}

/// A merge patch: null takes away, lists are replaced.
fn merge(value: &mut Value, patch: Value) {
    let Value::Object(fields) = patch else {
        *value = patch;
        return;
    };
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    for (key, field) in fields {
        if field.is_null() {
            value.as_object_mut().unwrap().remove(&key);
        } else {
            merge(&mut value[key], field);
        }
    }
}

/// The one label that is ever offered, with who offered it.
fn label(namespace: &mut Namespace, step: &Step) {
    let Step::Offer { object, .. } = step else {
        unreachable!("a namespace is only made offers");
    };
    let labels = namespace.labels_mut();
    match object["metadata"]["labels"][INJECTION_LABEL].as_str() {
        Some(value) => {
            labels.insert(INJECTION_LABEL.to_owned(), value.to_owned());
            let fields = json!([{
                "manager": field_manager::EVENTING,
                "fieldsV1": {"f:metadata": {"f:labels": {format!("f:{INJECTION_LABEL}"): {}}}},
            }]);
            namespace.metadata.managed_fields = serde_json::from_value(fields).unwrap();
        }
        None => {
            labels.remove(INJECTION_LABEL);
            namespace.metadata.managed_fields = None;
        }
    }
}
