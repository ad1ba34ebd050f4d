//! What must hold of flows and what they share, whatever happened: pure.
//!
//! - A namespace with a flow has the Broker that the flow asks for.
//! - There is one link for each Application and namespace with a flow, and none for any other.
//! - Nothing that was made for flows outlives them.
//! - An accepted operation ends by its deadline.
//! - No status speaks of a generation that does not exist.
//!
//! Controllers need a moment, so what is younger than that is not held against them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use heddle_api::checks::{self, DoctorCheck};
use heddle_api::operation::OperationState;
use heddle_api::well_known::{
    APPLICATION_LABEL, BROKER_NAMESPACE_LABEL, MANAGED_BY, MANAGED_BY_LABEL,
};
use heddle_api::{Broker, EventActivation, EventFlow, EventPolicy, ServiceInstance, Subscription};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Resource, ResourceExt as _};

use super::findings::Finding;
use crate::output::{age, count, span};

/// What a controller may need before its absence is a fault.
pub(super) const MOMENT: Duration = Duration::from_secs(60);

/// The objects that flows concern.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    pub(crate) flows: Vec<EventFlow>,
    pub(crate) brokers: Vec<Broker>,
    pub(crate) subscriptions: Vec<Subscription>,
    pub(crate) activations: Vec<EventActivation>,
    pub(crate) policies: Vec<EventPolicy>,
    pub(crate) instances: Vec<ServiceInstance>,
}

pub(super) fn of(world: &Flows, now: Timestamp) -> Vec<Finding> {
    let mut faults = Vec::new();
    brokers(world, now, &mut faults);
    links(world, now, &mut faults);
    leftovers(world, now, &mut faults);
    operations(world, now, &mut faults);
    if faults.is_empty() && !world.flows.is_empty() {
        let what = with_all_they_need(&world.flows);
        return vec![Finding::ok(checks::BROKER_THERE, "flows", what)];
    }
    faults
}

/// How many flows have all they need; those that are not ready have findings of their own.
fn with_all_they_need(flows: &[EventFlow]) -> String {
    let is_ready = |flow: &&EventFlow| {
        let status = flow.status.as_ref();
        status.is_some_and(|status| status.conditions.is_ready())
    };
    let (all, ready) = (flows.len(), flows.iter().filter(is_ready).count());
    let flows = count(all as u64, "flow");
    match all - ready {
        0 => format!("{flows} with all they need"),
        _ => format!("{ready} of {flows} with all they need"),
    }
}

fn brokers(world: &Flows, now: Timestamp, faults: &mut Vec<Finding>) {
    let there: BTreeSet<_> = (world.brokers.iter())
        .map(|b| (b.namespace(), b.name_any()))
        .collect();
    for flow in world.flows.iter().filter(|flow| is_settled(*flow, now)) {
        let wanted = (flow.namespace(), flow.spec.broker_ref.name.clone());
        if !there.contains(&wanted) {
            let what = format!("its Broker {} does not exist", wanted.1);
            faults.push(fault(
                checks::BROKER_THERE,
                "eventflow",
                flow,
                what,
                "look for errors of the eventing controller in the server's log",
            ));
        }
    }
}

/// Which Application's events a link carries where.
fn pair_of(link: &Subscription) -> Option<(String, String)> {
    let label = |key| link.labels().get(key).cloned();
    Some((label(APPLICATION_LABEL)?, label(BROKER_NAMESPACE_LABEL)?))
}

fn links(world: &Flows, now: Timestamp, faults: &mut Vec<Finding>) {
    let mut links: BTreeMap<(String, String), Vec<&Subscription>> = BTreeMap::new();
    for link in &world.subscriptions {
        if let Some(pair) = pair_of(link) {
            links.entry(pair).or_default().push(link);
        }
    }
    let pair = |flow: &EventFlow| {
        (
            flow.spec.application.clone(),
            flow.namespace().unwrap_or_default(),
        )
    };
    let wanted: BTreeSet<_> = world.flows.iter().map(pair).collect();
    for ((application, namespace), found) in &links {
        let (first, more) = (found[0], found.len() > 1);
        if more {
            let what = format!(
                "{} from {application} to {namespace}: its events arrive more than once",
                count(found.len() as u64, "link")
            );
            faults.push(fault(
                checks::ONE_LINK,
                "subscription",
                first,
                what,
                "delete all but one; the one that is needed is made again",
            ));
        }
        let needed = wanted.contains(&(application.clone(), namespace.clone()));
        if !needed && is_settled(first, now) && is_ours(first) {
            let what = format!("no flow of {application} in {namespace} needs it any more");
            let check = checks::NO_LINK_LEFT;
            faults.push(fault(check, "subscription", first, what, "delete it"));
        }
    }
    for flow in world.flows.iter().filter(|flow| is_settled(*flow, now)) {
        let ready = (flow.status.as_ref()).is_some_and(|status| status.conditions.is_ready());
        if ready && !links.contains_key(&pair(flow)) {
            let what = "it says it is ready, and no link carries its events".to_owned();
            let check = checks::LINK_THERE;
            faults.push(fault(check, "eventflow", flow, what, "report this"));
        }
    }
}

fn leftovers(world: &Flows, now: Timestamp, faults: &mut Vec<Finding>) {
    let alive: BTreeSet<_> = world.flows.iter().filter_map(|flow| flow.uid()).collect();
    let forgotten = |object: &dyn Fn() -> Vec<String>| {
        let owners = object();
        !owners.is_empty() && owners.iter().all(|uid| !alive.contains(uid))
    };
    for activation in world
        .activations
        .iter()
        .filter(|object| is_settled(*object, now))
    {
        if forgotten(&|| owners(activation)) {
            let what = "the flows that it shows are gone".to_owned();
            let (check, kind) = (checks::NO_ACTIVATION_LEFT, "eventactivation");
            faults.push(fault(check, kind, activation, what, "delete it"));
        }
    }
    for policy in world
        .policies
        .iter()
        .filter(|object| is_settled(*object, now))
    {
        if is_ours(policy) && forgotten(&|| owners(policy)) {
            let what = "the flows that it lets in are gone".to_owned();
            let check = checks::NO_POLICY_LEFT;
            faults.push(fault(check, "eventpolicy", policy, what, "delete it"));
        }
    }
}

fn operations(world: &Flows, now: Timestamp, faults: &mut Vec<Finding>) {
    for instance in &world.instances {
        let status = instance.status.as_ref();
        if let Some(request) = &instance.spec.operation {
            let progress = status.and_then(|status| status.operation.as_ref());
            let ended = progress.is_some_and(|progress| {
                progress.id == request.id
                    && matches!(
                        progress.state,
                        OperationState::Succeeded | OperationState::Failed
                    )
            });
            let overdue = request
                .deadline
                .as_ref()
                .map(|Time(deadline)| age(*deadline, now));
            if let Some(overdue) = overdue.filter(|overdue| !ended && *overdue > MOMENT) {
                let what = format!(
                    "operation {} should have ended {} ago",
                    request.id,
                    span(overdue)
                );
                let remedy = format!(
                    "are the controllers running? `heddle explain instance {} -n {}`",
                    instance.spec.instance_id,
                    instance.namespace().unwrap_or_default()
                );
                let check = checks::OPERATIONS_END;
                faults.push(fault(check, "serviceinstance", instance, what, &remedy));
            }
        }
        let seen = status.and_then(|status| status.observed_generation);
        if seen > instance.metadata.generation {
            let what = "its status speaks of a generation that does not exist".to_owned();
            let (check, kind) = (checks::GENERATIONS_EXIST, "serviceinstance");
            faults.push(fault(check, kind, instance, what, "report this"));
        }
    }
}

fn owners(object: &impl Resource) -> Vec<String> {
    let owners = object.owner_references().iter();
    owners.map(|owner| owner.uid.clone()).collect()
}

fn is_ours(object: &impl Resource) -> bool {
    object
        .labels()
        .get(MANAGED_BY_LABEL)
        .is_some_and(|by| by == MANAGED_BY)
}

/// Old enough that controllers had their moment, and not on its way out.
fn is_settled(object: &impl Resource, now: Timestamp) -> bool {
    object.meta().deletion_timestamp.is_none()
        && (object.creation_timestamp()).is_some_and(|Time(at)| age(at, now) > MOMENT)
}

fn fault(
    check: DoctorCheck,
    kind: &str,
    object: &impl Resource,
    what: String,
    remedy: &str,
) -> Finding {
    let name = match object.namespace() {
        Some(namespace) => format!("{kind}/{namespace}/{}", object.name_any()),
        None => format!("{kind}/{}", object.name_any()),
    };
    Finding::bad(check, &name, what, remedy)
}

#[cfg(test)]
mod tests;
