//! Plan: from what the flows need and what is there to what has to be done, in an order that is safe to stop anywhere.
//!
//! A flow is claimed for before a link is made, and its claim goes last, after all else that was made for it has gone or
//! been handed over: a flow without a claim and without a link has nothing left. A policy comes before its link, so that
//! the mesh does not refuse a link for a moment.

use std::collections::BTreeSet;
use std::fmt::Debug;

use heddle_api::broker::{Claim, LABEL_CLAIM_UID};
use heddle_api::well_known::{
    APPLICATION_LABEL, INTEGRATION_NAMESPACE, MANAGED_BY, MANAGED_BY_LABEL,
};
use heddle_api::{Broker, Channel, EventFlow, names};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt as _};
use serde::Serialize;
use serde_json::{Value, json};

use super::observe::World;
use super::wanted::Wanted;
use super::{ACTIVATION, BROKER, POLICY, is_controlled, is_leaving, label, links};
use crate::reconcile::{Step, StepName};

pub(super) fn plan(world: &World) -> Vec<Step> {
    let wanted = Wanted::of(world);
    let mut steps = links::unneeded(world, &wanted);
    steps.extend(granted(world, &wanted));
    steps.extend(label::step(world));
    steps.extend(policies(world, &wanted));
    steps.extend(links::needed(world, &wanted));
    steps.extend(activations(world, &wanted));
    steps.extend(withdrawn(world, &wanted));
    steps
}

/// Brokers that are missing, and claims that are.
fn granted(world: &World, wanted: &Wanted<'_>) -> Vec<Step> {
    let claims = wanted.claims.iter();
    claims
        .filter_map(|(name, claims)| {
            let mut brokers = world.brokers.iter();
            let Some(broker) = brokers.find(|broker| broker.name_any() == *name) else {
                return Some(create(world, name, claims));
            };
            let missing = missing(broker, claims);
            // One that is on its way out gains no claim; its end wakes us to make another.
            if missing.is_empty() || is_leaving(broker) || is_controlled(broker) {
                return None;
            }
            let all: Vec<&Claim> = broker.spec.claims.iter().chain(missing).collect();
            Step::swap(BROKER, broker, json!({"spec": {"claims": all}}))
        })
        .collect()
}

fn create(world: &World, name: &str, claims: &[Claim]) -> Step {
    let object = json!({
        "apiVersion": Broker::api_version(&()), "kind": Broker::kind(&()),
        "metadata": {
            "name": name,
            "namespace": world.namespace.name_any(),
            "labels": {MANAGED_BY_LABEL: MANAGED_BY},
        },
        "spec": {"claims": claims},
    });
    Step::create::<Broker>(BROKER, object)
}

fn missing<'a>(broker: &Broker, claims: &'a [Claim]) -> Vec<&'a Claim> {
    let is_there = |claim: &Claim| {
        broker
            .spec
            .claims
            .iter()
            .any(|found| found.uid == claim.uid)
    };
    claims.iter().filter(|claim| !is_there(claim)).collect()
}

/// Claims that nobody makes any more. A Broker that has just been granted others has another version now, and waits for the
/// next reconcile.
fn withdrawn(world: &World, wanted: &Wanted<'_>) -> Vec<Step> {
    let brokers = world
        .brokers
        .iter()
        .filter(|broker| !is_controlled(*broker));
    brokers
        .filter_map(|broker| {
            let made = wanted.claims.get(broker.name_any().as_str());
            let made = made.map_or(&[][..], Vec::as_slice);
            let is_made = |claim: &Claim| {
                made.iter().any(|made| made.uid == claim.uid)
                    || wanted.soon.forebears.contains(&claim.uid)
            };
            let claims = &broker.spec.claims;
            let kept: Vec<&Claim> = (claims.iter())
                .filter(|claim| !is_ours(claim) || is_made(claim))
                .collect();
            let is_granted = !is_leaving(broker) && !missing(broker, made).is_empty();
            if kept.len() == claims.len() || is_granted {
                return None;
            }
            Step::swap(BROKER, broker, json!({"spec": {"claims": kept}}))
        })
        .collect()
}

/// Claims of other kinds are other controllers' to make and to take back.
fn is_ours(claim: &Claim) -> bool {
    claim.uid == LABEL_CLAIM_UID || claim.kind.as_deref() == Some(&EventFlow::kind(&()))
}

fn policies(world: &World, wanted: &Wanted<'_>) -> Vec<Step> {
    let applications = wanted.policies.keys().chain(&wanted.soon.applications);
    let needed: BTreeSet<String> = applications.map(|name| names::policy(name)).collect();
    let gone = world.policies.iter().filter(|policy| {
        let application = policy.labels().get(APPLICATION_LABEL);
        application.is_some_and(|application| names::policy(application) == policy.name_any())
            && !needed.contains(&policy.name_any())
    });
    let gone = gone.filter_map(|policy| Step::remove(POLICY, Some(policy)));
    let kept = wanted.policies.iter().filter_map(|(application, flows)| {
        let brokers: BTreeSet<&str> = flows.iter().map(|f| &*f.spec.broker_ref.name).collect();
        let to = brokers.into_iter().map(|broker| {
            json!({"ref": {
                "apiVersion": Broker::api_version(&()), "kind": Broker::kind(&()), "name": broker,
            }})
        });
        let from = json!({"ref": {
            "apiVersion": Channel::api_version(&()), "kind": Channel::kind(&()),
            "name": application, "namespace": INTEGRATION_NAMESPACE,
        }});
        let spec = json!({"to": to.collect::<Vec<_>>(), "from": [from]});
        let name = names::policy(application);
        shared(world, POLICY, &world.policies, &name, flows, spec)
    });
    gone.chain(kept).collect()
}

fn activations(world: &World, wanted: &Wanted<'_>) -> Vec<Step> {
    let ids = wanted.activations.keys().chain(&wanted.soon.services);
    let needed: BTreeSet<String> = ids.map(|id| names::activation(id)).collect();
    let gone = world.activations.iter().filter(|activation| {
        let manager = activation.labels().get(MANAGED_BY_LABEL);
        manager.is_some_and(|manager| manager == MANAGED_BY)
            && !needed.contains(&activation.name_any())
    });
    let gone = gone.filter_map(|activation| Step::remove(ACTIVATION, Some(activation)));
    let kept = wanted.activations.iter().filter_map(|(id, flows)| {
        let source = flows.iter().map(|flow| &flow.spec.application).min()?;
        let mut spec = json!({"sourceId": source});
        if let Some(name) = display_name(world, source, id) {
            spec["displayName"] = json!(name);
        }
        let name = names::activation(id);
        shared(world, ACTIVATION, &world.activations, &name, flows, spec)
    });
    gone.chain(kept).collect()
}

fn display_name<'a>(world: &'a World, application: &str, service_id: &str) -> Option<&'a str> {
    let mut applications = world.applications.iter();
    let application = applications.find(|known| known.name_any() == application);
    let mut services = application
        .into_iter()
        .flat_map(|known| &known.spec.services);
    let service = services.find(|service| service.id == service_id);
    let name = service.map(|service| service.display_name.as_str());
    name.filter(|name| !name.is_empty())
}

/// The step that makes an object of the namespace which several flows have in common and which goes with the last.
fn shared<K>(
    world: &World,
    step_name: StepName,
    known: &[K],
    name: &str,
    flows: &[&EventFlow],
    spec: Value,
) -> Option<Step>
where
    K: Resource<DynamicType = ()> + Serialize + Debug,
{
    let live = known.iter().find(|object| object.name_any() == name);
    if live.is_some_and(|live| is_leaving(live) || is_controlled(live)) {
        return None;
    }
    let owners: Vec<OwnerReference> = flows
        .iter()
        .filter_map(|flow| flow.owner_ref(&()))
        .collect();
    let application = flows.iter().map(|flow| &flow.spec.application).min()?;
    let wanted = json!({
        "apiVersion": K::api_version(&()), "kind": K::kind(&()),
        "metadata": {
            "name": name,
            "namespace": world.namespace.name_any(),
            "labels": {APPLICATION_LABEL: application, MANAGED_BY_LABEL: MANAGED_BY},
            "ownerReferences": owners,
        },
        "spec": spec,
    });
    Step::ensure(step_name, wanted, live)
}
