//! Instances of bundles: one action at a time, each run once, and its outcome kept before it is forgotten.
//!
//! ```text
//!   accepted ──> pinned (spec.revisionRef) ──> provision ──> credentials kept ──> in force (status.applied)
//!   PATCH    ──> update, of the revision that is asked for ──> in force, or as it was
//!   removal  ──> what runs is called off ──> deprovision, of the revision in force ──> record ──> gone
//! ```
//! An operation that failed starts nothing any more: unlike a flow, an action is not something to be tried until it works.
//! A removal never ends silently: if deprovision cannot run or fails, the instance stays and says why, until it is asked for
//! again or somebody lets it go by annotation.

mod status;
#[cfg(test)]
mod tests;

use std::fmt;

use heddle_api::action::{Action, Run};
use heddle_api::description::PlanDescription;
use heddle_api::operation::{OperationState, RevisionReference, RunReport, RunResult};
use heddle_api::service_binding::{SECRET_KEY, SECRET_TYPE};
use heddle_api::service_instance::{Applied, ServiceInstanceStatus, provision_secret};
use heddle_api::well_known::{
    ABANDON_ANNOTATION, FINALIZER, INSTANCE_LABEL, MANAGED_BY, MANAGED_BY_LABEL,
};
use heddle_api::{BundleRevision, ServiceInstance};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::{Resource as _, ResourceExt as _};
use serde_json::{Map, Value, json};

use super::catalog::{self, Offered};
use super::observe::World;
use super::offer::OFFER;
use super::{PIN, SECRET, SECRET_RELEASE, SECRET_REMOVE};
use crate::actions::{self, ActionDeps, ActionInputs, Next, RunnerCommand, Want, content, has_run};
use crate::operation::{OperationSubject as _, removes};
use crate::reconcile::{Ctx, Error, Step};
use crate::references::Target;

pub(super) use status::{requeue_after, status};

/// The longest value of a label.
const LABEL_CHARS_MAX: usize = 63;

/// What is known of the bundle behind an instance.
#[derive(Clone)]
pub(crate) struct BundledInstance {
    /// What its actions depend on, once it is pinned.
    pub deps: Option<ActionDeps>,
    /// What the catalog says, before that.
    pub offered: Option<Offered>,
    /// The Secret with what provision handed out, whoever owns it.
    pub secret: Option<Secret>,
}

/// Without what the Secret holds.
impl fmt::Debug for BundledInstance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BundledInstance")
            .field("deps", &self.deps)
            .field("offered", &self.offered)
            .finish_non_exhaustive()
    }
}

/// Everything whose changes concern a pinned instance. The bundle itself only while there is something to do.
pub(super) fn targets(instance: &ServiceInstance) -> Vec<Target> {
    let status = instance.status.as_ref();
    let applied = status.and_then(|status| status.applied.as_ref());
    let applied = applied.and_then(|applied| applied.revision_ref.as_ref());
    let both = [instance.spec.revision_ref.as_ref(), applied];
    let revisions = both.into_iter().flatten();
    let mut targets: Vec<Target> = revisions
        .map(|reference| Target::of::<BundleRevision>("", &reference.name))
        .collect();
    if !status.is_some_and(|status| status.conditions.is_ready()) {
        targets.push(Target::new(OFFER, "", &instance.spec.service_id));
    }
    targets
}

/// Whether something runs for an instance.
pub(super) fn is_under_way(instance: &ServiceInstance) -> bool {
    let run = instance
        .status
        .as_ref()
        .and_then(|status| status.run.as_ref());
    run.is_some_and(|run| run.result.is_none())
}

/// What is known of the bundle; `None` if no bundle is meant.
pub(super) async fn observe(
    ctx: &Ctx,
    instance: &ServiceInstance,
) -> Result<Option<BundledInstance>, Error> {
    let leaving =
        instance.metadata.deletion_timestamp.is_some() || removes(instance.spec.operation.as_ref());
    let status = instance.status.as_ref();
    let Some(reference) = reference(instance, leaving) else {
        if leaving {
            return Ok(None);
        }
        let offered = catalog::observe(ctx, &instance.spec).await?;
        return Ok(offered.map(|offered| BundledInstance {
            deps: None,
            offered: Some(offered),
            secret: None,
        }));
    };
    let run = status.and_then(|status| status.run.as_ref());
    let deps = actions::observe(ctx, reference, run).await?;
    let namespace = instance.namespace().unwrap_or_default();
    let secret = provision_secret(&instance.name_any());
    Ok(Some(BundledInstance {
        deps: Some(deps),
        offered: None,
        secret: ctx.find(&namespace, &secret).await?,
    }))
}

/// The revision that the next action uses: when the instance goes, the one in force.
fn reference(instance: &ServiceInstance, leaving: bool) -> Option<RevisionReference> {
    let asked = instance.spec.revision_ref.clone();
    let status = instance.status.as_ref().filter(|_| leaving);
    let in_force = status.and_then(|status| status.applied.as_ref()?.revision_ref.clone());
    in_force.or(asked)
}

/// Which action is wanted, whether or not its operation still has time.
fn wanted(world: &World, status: &ServiceInstanceStatus) -> Option<Want> {
    let instance = &world.instance;
    let request = instance.spec.operation.as_ref();
    if world.is_leaving() {
        let wanted = has_made(status) && !is_deprovisioned(status) && !is_abandoned(instance);
        return wanted.then(|| Want::removal(Action::Deprovision, request));
    }
    let action = match &status.applied {
        None => Action::Provision,
        Some(applied) if differs(applied, instance) => Action::Update,
        Some(_) => return None,
    };
    let told = status.operation.as_ref();
    let is_done = |id: &str| {
        told.is_some_and(|told| told.id == id && told.state == OperationState::Succeeded)
    };
    // After its operation has succeeded, whoever changes the spec does so by hand.
    Some(match request.filter(|request| !is_done(&request.id)) {
        Some(request) => Want::asked(action, request),
        None => Want::written(action, instance.metadata.generation),
    })
}

/// The same, unless its operation has failed or its time is over.
fn want(world: &World, status: &ServiceInstanceStatus, now: Timestamp) -> Option<Want> {
    wanted(world, status)?.in_time(world, status.operation.as_ref(), now)
}

/// Whether there may be something to remove.
fn has_made(status: &ServiceInstanceStatus) -> bool {
    status.applied.is_some() || status.run.as_ref().is_some_and(has_run)
}

fn is_deprovisioned(status: &ServiceInstanceStatus) -> bool {
    status.run.as_ref().is_some_and(|run| {
        run.action == Action::Deprovision && run.result == Some(RunResult::Succeeded)
    })
}

/// Whether somebody lets the instance go as it is.
fn is_abandoned(instance: &ServiceInstance) -> bool {
    let annotation = instance.annotations().get(ABANDON_ANNOTATION);
    annotation.is_some_and(|value| value == "true")
}

fn differs(applied: &Applied, instance: &ServiceInstance) -> bool {
    let spec = &instance.spec;
    (&applied.plan_id, &applied.parameters, &applied.revision_ref)
        != (&spec.plan_id, &spec.parameters, &spec.revision_ref)
}

fn next(world: &World, deps: &ActionDeps, status: &ServiceInstanceStatus, now: Timestamp) -> Next {
    let want = want(world, status, now);
    deps.next(want.as_ref(), world.uid(), status.run.as_ref(), now)
}

/// Whether an action could be started now, and with what; or what it waits for.
fn prepared(
    world: &World,
    bundled: &BundledInstance,
    deps: &ActionDeps,
    want: &Want,
) -> Result<Run, String> {
    if world.is_leaving() && (!world.is_deleted() || !world.bindings.is_empty()) {
        return Err("its bindings go first".to_owned());
    }
    let action = want.action;
    let digest = deps.image(action)?.to_owned();
    let plan = plan(world, deps, action)?;
    let instance = &world.instance;
    let status = instance.status.as_ref();
    let in_force = status.and_then(|status| status.applied.as_ref());
    let parameters = match (action, in_force) {
        (Action::Deprovision, Some(applied)) => &applied.parameters,
        _ => &instance.spec.parameters,
    };
    let previous = in_force.and_then(|applied| applied.revision_ref.as_ref());
    let previous = previous.and_then(|previous| previous.bundle_version.as_deref());
    let handed_out = own_secret(world, bundled).and_then(content);
    let version = deps.reference.bundle_version.as_deref();
    let told = ActionInputs {
        instance,
        binding: None,
        parameters,
        identity: instance.spec.originating_identity.as_ref(),
        version,
        previous_version: previous.filter(|_| action == Action::Update),
        provision_credentials: handed_out.as_ref(),
        bind_credentials: None,
    };
    let run = status.and_then(|status| status.run.as_ref());
    Ok(deps.run(action, digest, run, &told, &plan))
}

/// The plan that an action is told of. One that is to be removed is removed whatever became of its plan.
fn plan(world: &World, deps: &ActionDeps, action: Action) -> Result<PlanDescription, String> {
    let spec = &world.instance.spec;
    let status = world.instance.status.as_ref();
    let in_force = status.and_then(|status| status.applied.as_ref());
    let id = match in_force {
        Some(applied) if action == Action::Deprovision => &applied.plan_id,
        _ => &spec.plan_id,
    };
    match deps.plan(&spec.service_id, id) {
        Some(plan) => Ok(plan),
        None if action == Action::Deprovision => Ok(PlanDescription {
            name: id.clone(),
            ..PlanDescription::default()
        }),
        None => Err(format!(
            "BundleRevision {} has no plan {id}",
            deps.reference.name
        )),
    }
}

/// What provision handed out, if the Secret is the instance's own.
fn own_secret<'a>(world: &World, bundled: &'a BundledInstance) -> Option<&'a Secret> {
    let uid = world.instance.metadata.uid.as_ref();
    bundled.secret.as_ref().filter(|secret| {
        let mut owners = secret.owner_references().iter();
        owners.any(|owner| Some(&owner.uid) == uid)
    })
}

/// What an action handed out and nobody has kept yet.
fn handed_out<'a>(
    next: &Next,
    deps: &'a ActionDeps,
    run: &RunReport,
) -> Option<&'a Map<String, Value>> {
    match (next, &deps.credentials) {
        (Next::TakeIn(end), Some(Ok(Some(credentials)))) => {
            actions::hands_out(run.action, end).then_some(credentials)
        }
        _ => None,
    }
}

/// Whether nothing is lost if an end is written down now.
fn is_kept(
    world: &World,
    bundled: &BundledInstance,
    deps: &ActionDeps,
    next: &Next,
    run: &RunReport,
) -> bool {
    let Next::TakeIn(end) = next else {
        return false;
    };
    // Credentials of what is about to be removed are nobody's any more.
    if !actions::hands_out(run.action, end) || world.is_leaving() {
        return true;
    }
    match &deps.credentials {
        Some(Ok(None)) => true,
        Some(Ok(Some(credentials))) => {
            let kept = own_secret(world, bundled).and_then(content);
            kept.as_ref() == Some(credentials)
        }
        Some(Err(_)) | None => false,
    }
}

/// The next request to the API server: the pin, or the Secret.
pub(super) fn step(world: &World, bundled: &BundledInstance) -> Option<Step> {
    match &bundled.deps {
        Some(deps) => keep(world, bundled, deps),
        None => pin(world, bundled),
    }
}

fn pin(world: &World, bundled: &BundledInstance) -> Option<Step> {
    let Some(Offered::Live(pin)) = &bundled.offered else {
        return None;
    };
    let status = world.instance.status.clone().unwrap_or_default();
    // What has failed is not begun after all.
    want(world, &status, world.now)?;
    let mut spec = json!({"revisionRef": pin.revision});
    if let Some(maintenance_info) = &pin.maintenance_info {
        spec["maintenanceInfo"] = json!(maintenance_info);
    }
    Step::swap(PIN, &world.instance, json!({"spec": spec}))
}

/// Keeps what an action handed out. The finalizer is why it is there for deprovision, whoever deletes it before.
fn keep(world: &World, bundled: &BundledInstance, deps: &ActionDeps) -> Option<Step> {
    let instance = &world.instance;
    let status = instance.status.clone().unwrap_or_default();
    let next = next(world, deps, &status, world.now);
    let credentials = handed_out(&next, deps, status.run.as_ref()?)?;
    let live = bundled.secret.as_ref();
    if live.is_some() && own_secret(world, bundled).is_none() {
        return None;
    }
    let mut labels = json!({MANAGED_BY_LABEL: MANAGED_BY});
    if instance.name_any().len() <= LABEL_CHARS_MAX {
        labels[INSTANCE_LABEL] = json!(instance.name_any());
    }
    let bytes = ByteString(Value::Object(credentials.clone()).to_string().into_bytes());
    let wanted = json!({
        "apiVersion": Secret::api_version(&()), "kind": Secret::kind(&()),
        "metadata": {
            "name": provision_secret(&instance.name_any()),
            "namespace": instance.namespace(),
            "labels": labels,
            "ownerReferences": [instance.controller_owner_ref(&())],
            "finalizers": [FINALIZER],
        },
        "type": SECRET_TYPE,
        "data": {SECRET_KEY: bytes},
    });
    Step::ensure(SECRET, wanted, live)
}

/// Whether nothing of the bundle is left to do for an instance that goes.
pub(super) fn is_through(world: &World, bundled: &BundledInstance) -> bool {
    let Some(deps) = &bundled.deps else {
        return true;
    };
    let status = world.instance.status.clone().unwrap_or_default();
    let removed = !has_made(&status) || is_deprovisioned(&status) || is_abandoned(&world.instance);
    removed && next(world, deps, &status, world.now) == Next::Rest
}

/// The steps that remove the Secret.
pub(super) fn discard(world: &World, bundled: &BundledInstance) -> Vec<Step> {
    let Some(secret) = own_secret(world, bundled) else {
        return Vec::new();
    };
    let release = Step::release(SECRET_RELEASE, secret, FINALIZER);
    let remove = Step::remove(SECRET_REMOVE, Some(secret));
    release.into_iter().chain(remove).collect()
}

/// What is to be remembered of the end of a bundle's instance.
pub(super) fn removal_note(world: &World) -> Option<String> {
    let status = world.instance.status.as_ref()?;
    world.bundle.as_ref()?;
    if is_deprovisioned(status) {
        let ended = status.run.as_ref().and_then(|run| run.ended.as_deref());
        return Some(format!(
            "removed; deprovision {}",
            ended.unwrap_or_default()
        ));
    }
    if has_made(status) {
        return Some(format!(
            "removed without deprovision, as {ABANDON_ANNOTATION} asks"
        ));
    }
    None
}

/// Asks for what no API server can do: starts what was announced, calls off what is not wanted, forgets what is over.
pub(super) async fn run(ctx: &Ctx, world: &mut World) -> Result<(), Error> {
    let command = runner_command(world);
    let deps = world
        .bundle
        .as_mut()
        .and_then(|bundled| bundled.deps.as_mut());
    actions::run(ctx, command, deps, &mut world.trouble).await
}

fn runner_command(world: &World) -> Option<RunnerCommand> {
    // What was released is gone, and what this reconcile has not read cannot be acted on.
    let bundled = world.bundle.as_ref().filter(|_| !world.released)?;
    let deps = bundled.deps.as_ref().filter(|deps| deps.run.is_some())?;
    let status = world.instance.status.clone().unwrap_or_default();
    let run = status.run.as_ref()?;
    match next(world, deps, &status, world.now) {
        Next::Start => {
            let want = want(world, &status, world.now)?;
            prepared(world, bundled, deps, &want)
                .ok()
                .map(RunnerCommand::Start)
        }
        Next::Cancel => Some(RunnerCommand::Cancel(run.id.clone())),
        Next::Forget => Some(RunnerCommand::Forget {
            run: run.id.clone(),
            instance: is_deprovisioned(&status)
                .then(|| world.instance.uid())
                .flatten(),
        }),
        _ => None,
    }
}
