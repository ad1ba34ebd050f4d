//! Bindings of bundles: what `bind` hands out is kept in the binding's Secret, and `unbind` hears it again.
//!
//! A bundle that has nothing to do for `bind` hands out what `provision` did. One that hands out nothing is bound all the
//! same, with an empty object. What holds for runs of instances holds here: announced before it is started, kept before it
//! is forgotten, and a removal never ends silently.

mod status;
#[cfg(test)]
mod tests;

use std::fmt;

use heddle_api::action::{Action, Outcome, Run};
use heddle_api::description::PlanDescription;
use heddle_api::operation::{RevisionReference, RunReport, RunResult};
use heddle_api::service_binding::ServiceBindingStatus;
use heddle_api::service_instance::provision_secret;
use heddle_api::well_known::ABANDON_ANNOTATION;
use heddle_api::{ServiceBinding, ServiceInstance};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use serde_json::{Map, Value};

use super::observe::World;
use crate::actions::{self, ActionDeps, ActionInputs, Next, RunnerCommand, Want, content, has_run};
use crate::operation::OperationSubject as _;
use crate::reconcile::{Ctx, Error};

pub(super) use status::{requeue_after, status};

/// What is known of the bundle behind a binding.
#[derive(Clone)]
pub(crate) struct BundledBinding {
    /// What its actions depend on.
    pub deps: ActionDeps,
    /// What provision handed out.
    pub provision: Option<Map<String, Value>>,
}

/// Without credentials.
impl fmt::Debug for BundledBinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BundledBinding")
            .field("deps", &self.deps)
            .finish_non_exhaustive()
    }
}

/// Whether something runs for a binding.
pub(super) fn is_under_way(binding: &ServiceBinding) -> bool {
    let run = binding
        .status
        .as_ref()
        .and_then(|status| status.run.as_ref());
    run.is_some_and(|run| run.result.is_none())
}

/// Whether an instance of a bundle is there to be bound: in force, perhaps not as was asked last, and nothing runs for it.
pub(super) fn can_be_bound(instance: &ServiceInstance) -> bool {
    let status = instance.status.as_ref();
    let is_idle = |run: Option<&RunReport>| run.is_none_or(|run| run.result.is_some());
    instance.metadata.deletion_timestamp.is_none()
        && status.is_some_and(|status| status.applied.is_some() && is_idle(status.run.as_ref()))
}

/// What is known of the bundle; `None` if the instance stands for none.
pub(super) async fn observe(ctx: &Ctx, world: &World) -> Result<Option<BundledBinding>, Error> {
    let binding = &world.binding;
    let Some(reference) = reference(binding, world.instance.as_ref()) else {
        return Ok(None);
    };
    let run = binding
        .status
        .as_ref()
        .and_then(|status| status.run.as_ref());
    let deps = actions::observe(ctx, reference, run).await?;
    let namespace = binding.namespace().unwrap_or_default();
    let name = provision_secret(&binding.spec.instance_ref.name);
    let secret: Option<Secret> = ctx.find(&namespace, &name).await?;
    let uid = world.instance.as_ref().and_then(|found| found.uid());
    let own = secret.filter(|secret| {
        let mut owners = secret.owner_references().iter();
        owners.any(|owner| Some(&owner.uid) == uid.as_ref())
    });
    Ok(Some(BundledBinding {
        deps,
        provision: own.as_ref().and_then(content),
    }))
}

/// The revision that all actions on the binding use: its own, or else what is in force for its instance.
fn reference(
    binding: &ServiceBinding,
    instance: Option<&ServiceInstance>,
) -> Option<RevisionReference> {
    let own = binding.spec.revision_ref.clone();
    let status = instance.and_then(|instance| instance.status.as_ref());
    let in_force = status.and_then(|status| status.applied.as_ref()?.revision_ref.clone());
    let asked = instance.and_then(|instance| instance.spec.revision_ref.clone());
    own.or(in_force).or(asked)
}

/// Which action is wanted, whether or not its operation still has time.
fn wanted(world: &World, status: &ServiceBindingStatus) -> Option<Want> {
    let request = world.binding.spec.operation.as_ref();
    if world.is_leaving() {
        let wanted = has_made(world, status) && !is_unbound(status) && !is_let_go(world);
        return wanted.then(|| Want::removal(Action::Unbind, request));
    }
    if own_secret(world).is_some() || is_bound(status) {
        return None;
    }
    Some(match request {
        Some(request) => Want::asked(Action::Bind, request),
        None => Want::written(Action::Bind, world.binding.metadata.generation),
    })
}

/// The same, unless its operation has failed or its time is over.
fn want(world: &World, status: &ServiceBindingStatus, now: Timestamp) -> Option<Want> {
    wanted(world, status)?.in_time(world, status.operation.as_ref(), now)
}

fn own_secret(world: &World) -> Option<&Secret> {
    world.secret.as_ref().filter(|secret| world.owns(secret))
}

/// Whether there may be something to take back.
fn has_made(world: &World, status: &ServiceBindingStatus) -> bool {
    own_secret(world).is_some() || status.run.as_ref().is_some_and(has_run)
}

fn ended_well(status: &ServiceBindingStatus, action: Action) -> bool {
    let run = status.run.as_ref();
    run.is_some_and(|run| run.action == action && run.result == Some(RunResult::Succeeded))
}

fn is_bound(status: &ServiceBindingStatus) -> bool {
    ended_well(status, Action::Bind)
}

fn is_unbound(status: &ServiceBindingStatus) -> bool {
    ended_well(status, Action::Unbind)
}

/// Whether the binding goes as it is: somebody says so, of it or of its instance, or there is nothing left to unbind from.
fn is_let_go(world: &World) -> bool {
    let says_so = |value: Option<&String>| value.is_some_and(|value| value == "true");
    let Some(instance) = &world.instance else {
        return true;
    };
    says_so(world.binding.annotations().get(ABANDON_ANNOTATION))
        || says_so(instance.annotations().get(ABANDON_ANNOTATION))
}

fn next(world: &World, deps: &ActionDeps, status: &ServiceBindingStatus, now: Timestamp) -> Next {
    let want = want(world, status, now);
    deps.next(want.as_ref(), world.uid(), status.run.as_ref(), now)
}

/// Whether an action could be started now, and with what; or what it waits for.
fn prepared(world: &World, bundled: &BundledBinding, want: &Want) -> Result<Run, String> {
    let (binding, action) = (&world.binding, want.action);
    let Some(instance) = &world.instance else {
        return Err("its instance does not exist".to_owned());
    };
    if action == Action::Bind && !can_be_bound(instance) {
        return Err("its instance is not ready".to_owned());
    }
    let deps = &bundled.deps;
    let digest = deps.image(action)?.to_owned();
    let in_force = instance.status.as_ref();
    let in_force = in_force.and_then(|status| status.applied.as_ref());
    let spec = &instance.spec;
    let plan_id = in_force.map_or(&spec.plan_id, |applied| &applied.plan_id);
    // The instance has its plan, whatever became of it.
    let plan = deps.plan(&spec.service_id, plan_id);
    let plan = plan.unwrap_or_else(|| PlanDescription {
        name: plan_id.clone(),
        ..PlanDescription::default()
    });
    let handed_out = own_secret(world).and_then(content);
    let handed_out = handed_out.filter(|_| action == Action::Unbind);
    let version = deps.reference.bundle_version.as_deref();
    let told = ActionInputs {
        instance,
        binding: Some(binding),
        parameters: in_force.map_or(&spec.parameters, |applied| &applied.parameters),
        identity: binding.spec.originating_identity.as_ref(),
        version,
        previous_version: None,
        provision_credentials: bundled.provision.as_ref(),
        bind_credentials: handed_out.as_ref(),
    };
    let run = binding
        .status
        .as_ref()
        .and_then(|status| status.run.as_ref());
    Ok(deps.run(action, digest, run, &told, &plan))
}

/// What the binding hands out, once `bind` has ended well and until that is written down.
pub(super) fn handed_out(world: &World, bundled: &BundledBinding) -> Option<Map<String, Value>> {
    let status = world.binding.status.clone().unwrap_or_default();
    let is_bind = status
        .run
        .as_ref()
        .is_some_and(|run| run.action == Action::Bind);
    let Next::TakeIn(end) = next(world, &bundled.deps, &status, world.now) else {
        return None;
    };
    match (&end.outcome, &bundled.deps.credentials) {
        _ if !is_bind => None,
        (Outcome::Succeeded, Some(Ok(credentials))) => {
            Some(credentials.clone().unwrap_or_default())
        }
        (Outcome::NothingToDo, _) => Some(bundled.provision.clone().unwrap_or_default()),
        _ => None,
    }
}

/// Whether nothing of the bundle is left to do for a binding that goes.
pub(super) fn is_through(world: &World, bundled: &BundledBinding) -> bool {
    let status = world.binding.status.clone().unwrap_or_default();
    let removed = !has_made(world, &status) || is_unbound(&status) || is_let_go(world);
    removed && next(world, &bundled.deps, &status, world.now) == Next::Rest
}

/// What is to be remembered of the end of a binding.
pub(super) fn removal_note(world: &World) -> String {
    let status = world.binding.status.clone().unwrap_or_default();
    if world.bundle.is_none() || !has_made(world, &status) {
        return "removed".to_owned();
    }
    if is_unbound(&status) {
        let ended = status.run.as_ref().and_then(|run| run.ended.as_deref());
        return format!("removed; unbind {}", ended.unwrap_or_default());
    }
    match &world.instance {
        Some(_) => format!("removed without unbind, as {ABANDON_ANNOTATION} asks"),
        None => "removed without unbind, since the instance does not exist".to_owned(),
    }
}

/// Asks for what no API server can do: starts what was announced, calls off what is not wanted, forgets what is over.
pub(super) async fn run(ctx: &Ctx, world: &mut World) -> Result<(), Error> {
    let command = runner_command(world);
    let deps = world.bundle.as_mut().map(|bundled| &mut bundled.deps);
    actions::run(ctx, command, deps, &mut world.trouble).await
}

fn runner_command(world: &World) -> Option<RunnerCommand> {
    // What was released is gone, and what this reconcile has not read cannot be acted on.
    let bundled = world.bundle.as_ref().filter(|_| !world.released)?;
    bundled.deps.run.as_ref()?;
    let status = world.binding.status.clone().unwrap_or_default();
    let run = status.run.as_ref()?;
    match next(world, &bundled.deps, &status, world.now) {
        Next::Start => {
            let want = want(world, &status, world.now)?;
            prepared(world, bundled, &want)
                .ok()
                .map(RunnerCommand::Start)
        }
        Next::Cancel => Some(RunnerCommand::Cancel(run.id.clone())),
        Next::Forget => Some(RunnerCommand::Forget {
            run: run.id.clone(),
            instance: None,
        }),
        _ => None,
    }
}
