//! Plan: one Secret with the credentials, and none once the binding goes.

use heddle_api::operation::{OperationKind, OperationProgress, OperationState};
use heddle_api::record::Record;
use heddle_api::service_binding::{SECRET_KEY, SECRET_TYPE};
use heddle_api::well_known::{FINALIZER, INSTANCE_LABEL, MANAGED_BY, MANAGED_BY_LABEL};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::{Resource as _, ResourceExt as _};
use serde_json::{Map, Value, json};

use super::bundle;
use super::credentials::credentials;
use super::observe::World;
use super::{DELETE, HOLD, RECORD, RELEASE, SECRET, SECRET_RELEASE};
use crate::operation::OperationSubject as _;
use crate::operation::{removes, whole_seconds};
use crate::reconcile::Step;
use crate::records;

/// The longest value of a label.
const LABEL_CHARS_MAX: usize = 63;

pub(super) fn plan(world: &World) -> Vec<Step> {
    let binding = &world.binding;
    if world.is_deleted() {
        return teardown(world);
    }
    let hold = Step::hold(HOLD, binding, FINALIZER);
    if removes(binding.spec.operation.as_ref()) {
        // Held first: deleting what nobody holds would leave no record.
        return hold
            .into_iter()
            .chain(Step::remove(DELETE, Some(binding)))
            .collect();
    }
    let secret = match &world.bundle {
        Some(bundled) => bundle::handed_out(world, bundled),
        None => handed_out(world),
    };
    let secret = secret.and_then(|credentials| secret_of(world, credentials));
    hold.into_iter().chain(secret).collect()
}

/// What is to be handed out. What was stays while it cannot be worked out anew.
fn handed_out(world: &World) -> Option<Map<String, Value>> {
    let service = world.service.as_ref().filter(|service| service.has_api())?;
    let complete = world.is_instance_ready() && world.missing_sources().is_empty();
    complete.then(|| credentials(service, &world.sources))
}

fn secret_of(world: &World, credentials: Map<String, Value>) -> Option<Step> {
    let live = world.secret.as_ref();
    if live.is_some_and(|live| !world.owns(live) || live.metadata.deletion_timestamp.is_some()) {
        return None;
    }
    let bytes = ByteString(Value::Object(credentials).to_string().into_bytes());
    let binding = &world.binding;
    let mut labels = json!({MANAGED_BY_LABEL: MANAGED_BY});
    let instance = &binding.spec.instance_ref.name;
    if instance.len() <= LABEL_CHARS_MAX {
        labels[INSTANCE_LABEL] = json!(instance);
    }
    let mut wanted = json!({
        "apiVersion": Secret::api_version(&()), "kind": Secret::kind(&()),
        "metadata": {
            "name": binding.name_any(),
            "namespace": binding.namespace(),
            "labels": labels,
            "ownerReferences": [binding.controller_owner_ref(&())],
        },
        "type": SECRET_TYPE,
        "data": {SECRET_KEY: bytes},
    });
    if world.bundle.is_some() {
        // A bundle says it once, and unbind wants to hear it again: held, whoever deletes it before.
        wanted["metadata"]["finalizers"] = json!([FINALIZER]);
    }
    Step::ensure(SECRET, wanted, live)
}

fn teardown(world: &World) -> Vec<Step> {
    let Some(gone) = Step::release(RELEASE, &world.binding, FINALIZER) else {
        return Vec::new();
    };
    let bundled = world.bundle.as_ref();
    if bundled.is_some_and(|bundled| !bundle::is_through(world, bundled)) {
        return Vec::new();
    }
    let own = world.secret.as_ref().filter(|secret| world.owns(secret));
    let release = own.and_then(|own| Step::release(SECRET_RELEASE, own, FINALIZER));
    let secret = Step::remove(SECRET, own);
    let secret = release.into_iter().chain(secret);
    let request = world.binding.spec.operation.as_ref();
    let record = records::step(RECORD, &record(world), request, world.record.as_ref());
    secret.chain(record).chain([gone]).collect()
}

fn record(world: &World) -> Record {
    let request = world.binding.spec.operation.as_ref();
    let request = request.filter(|request| request.kind == OperationKind::Unbind);
    Record {
        about: world.about(),
        namespace: world.binding.namespace().unwrap_or_default(),
        front: records::front(&world.binding),
        operation: request.map(|request| OperationProgress {
            id: request.id.clone(),
            kind: request.kind,
            state: OperationState::Succeeded,
            description: Some(bundle::removal_note(world)),
            attempts: None,
            finished_at: Some(whole_seconds(world.now)),
            instance_usable: None,
            update_repeatable: None,
        }),
        gone_at: whole_seconds(world.now),
    }
}
