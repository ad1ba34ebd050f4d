//! Plan: one flow for a service that sends events, and everything gone before the instance is.

use heddle_api::event_flow::Ended;
use heddle_api::operation::{OperationKind, OperationProgress, OperationState};
use heddle_api::record::Record;
use heddle_api::well_known::{
    APPLICATION_LABEL, FINALIZER, INSTANCE_FINALIZER, INSTANCE_LABEL, MANAGED_BY, MANAGED_BY_LABEL,
};
use heddle_api::{EventFlow, ServiceInstance};
use kube::{Resource as _, ResourceExt as _};
use serde_json::{Value, json};

use super::bundle;
use super::observe::{World, is_finished};
use super::{BINDING, DELETE, FLOW, FLOW_RELEASE, HOLD, PIN, RECORD, RELEASE};
use crate::operation::OperationSubject as _;
use crate::operation::{removes, whole_seconds};
use crate::reconcile::Step;
use crate::records;

/// The longest value of a label.
const LABEL_CHARS_MAX: usize = 63;

pub(super) fn plan(world: &World) -> Vec<Step> {
    let instance = &world.instance;
    if world.is_deleted() {
        return teardown(world);
    }
    let hold = Step::hold(HOLD, instance, FINALIZER);
    if removes(instance.spec.operation.as_ref()) {
        // Held first: deleting what nobody holds would leave neither time to tear down nor a record.
        return hold
            .into_iter()
            .chain(Step::remove(DELETE, Some(instance)))
            .collect();
    }
    // Each of these changes the version that the next would have to name, and wakes us for the next.
    let step = hold.or_else(|| pin(world));
    let step = step.or_else(|| match &world.bundle {
        Some(bundled) => bundle::step(world, bundled),
        None => flow(world),
    });
    step.into_iter().collect()
}

/// Writes down which service an instance means, so that it goes on meaning it.
fn pin(world: &World) -> Option<Step> {
    let pin = world
        .pin
        .as_ref()
        .filter(|_| world.instance.spec.application.is_none())?;
    Step::swap(PIN, &world.instance, json!({"spec": {"application": pin}}))
}

fn flow(world: &World) -> Option<Step> {
    let live = world.flow.as_ref();
    if let Some(flow) = live
        && (flow.metadata.deletion_timestamp.is_some() || world.is_taken(flow))
    {
        // Its end, or the end of what is in the way, wakes us to make another.
        return release(flow);
    }
    match world.service() {
        Some(service) if !service.sends_events() => {
            Step::remove(FLOW, live.filter(|flow| world.owns(flow)))
        }
        // Nothing is begun before it is allowed; what is there already is kept, and says itself what it lacks.
        Some(_) if live.is_none() && !world.is_allowed() => None,
        None if live.is_none() => None,
        _ => Step::ensure(FLOW, wanted(world)?, live),
    }
}

fn wanted(world: &World) -> Option<Value> {
    let (instance, pin) = (&world.instance, world.pin.as_ref()?);
    let spec = &instance.spec;
    let mut labels = json!({APPLICATION_LABEL: pin.name, MANAGED_BY_LABEL: MANAGED_BY});
    // Names that the front makes always fit; one that was written by hand may not.
    if instance.name_any().len() <= LABEL_CHARS_MAX {
        labels[INSTANCE_LABEL] = json!(instance.name_any());
    }
    Some(json!({
        "apiVersion": EventFlow::api_version(&()), "kind": EventFlow::kind(&()),
        "metadata": {
            "name": instance.name_any(),
            "namespace": instance.namespace(),
            "labels": labels,
            "ownerReferences": [instance.controller_owner_ref(&())],
            // Held from its first moment: what its own controller would do next, and everything waits for.
            "finalizers": [FINALIZER, INSTANCE_FINALIZER],
        },
        "spec": {
            "application": pin.name,
            "serviceID": pin.service_id,
            "planID": spec.plan_id,
            "instanceID": spec.instance_id,
            "onDeprovision": spec.on_deprovision,
        },
    }))
}

/// Lets a flow go that has nothing left to do, whichever instance of this name it was made for.
fn release(flow: &EventFlow) -> Option<Step> {
    Step::release(FLOW_RELEASE, flow, INSTANCE_FINALIZER).filter(|_| is_finished(flow))
}

/// Bindings first, since they hand out what the instance is; then the flow, with what is still on its way; then the
/// record; then the instance itself.
fn teardown(world: &World) -> Vec<Step> {
    let Some(gone) = Step::release(RELEASE, &world.instance, FINALIZER) else {
        return Vec::new();
    };
    if !world.bindings.is_empty() {
        let bindings = world.bindings.iter();
        return bindings
            .filter_map(|binding| Step::remove(BINDING, Some(binding)))
            .collect();
    }
    let own = world.flow.as_ref().filter(|flow| world.owns(flow));
    if let Some(flow) = own.filter(|flow| !is_finished(flow)) {
        return Step::remove(FLOW, Some(flow)).into_iter().collect();
    }
    let bundled = world.bundle.as_ref();
    if bundled.is_some_and(|bundled| !bundle::is_through(world, bundled)) {
        return Vec::new();
    }
    let secret = bundled.map(|bundled| bundle::discard(world, bundled));
    let request = world.instance.spec.operation.as_ref();
    let record = records::step(RECORD, &record(world), request, world.record.as_ref());
    let flow = world.flow.as_ref().and_then(release);
    let secret = secret.into_iter().flatten();
    let rest = record.into_iter().chain(secret).chain(flow);
    rest.chain([gone]).collect()
}

fn record(world: &World) -> Record {
    let instance = &world.instance;
    let ended = world.flow.as_ref().filter(|flow| world.owns(flow));
    let ended = ended.and_then(|flow| flow.status.as_ref()?.ended);
    Record {
        about: world.about(),
        namespace: instance.namespace().unwrap_or_default(),
        front: records::front(instance),
        operation: removal_note(instance, ended, world),
        gone_at: whole_seconds(world.now),
    }
}

/// How the removal ended, unless nobody asked for it through OSB.
fn removal_note(
    instance: &ServiceInstance,
    ended: Option<Ended>,
    world: &World,
) -> Option<OperationProgress> {
    let request = instance.spec.operation.as_ref();
    let request = request.filter(|request| request.kind == OperationKind::Deprovision)?;
    Some(OperationProgress {
        id: request.id.clone(),
        kind: request.kind,
        state: OperationState::Succeeded,
        description: Some(bundle::removal_note(world).unwrap_or_else(|| fates(ended))),
        attempts: None,
        finished_at: Some(whole_seconds(world.now)),
        instance_usable: None,
        update_repeatable: None,
    })
}

/// What became of the events that were still on their way.
pub(super) fn fates(ended: Option<Ended>) -> String {
    match ended {
        None => "removed".to_owned(),
        Some(ended) => format!(
            "removed; of the events that were pending, {} were delivered, {} became dead letters, {} were discarded",
            ended.delivered, ended.dead_lettered, ended.discarded
        ),
    }
}
