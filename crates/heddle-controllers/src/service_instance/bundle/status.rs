//! Status of a bundle's instance: how its run went, what is in force, and how far its operation is.

use std::time::Duration;

use heddle_api::action::{Action, RunState};
use heddle_api::conditions::{Condition, Conditions, Status};
use heddle_api::operation::{RunReport, RunResult};
use heddle_api::service_instance::{CONDITIONS, ServiceInstanceStatus, condition, reason};
use jiff::Timestamp;
use kube::ResourceExt as _;

use super::{
    BundledInstance, differs, has_made, is_abandoned, is_deprovisioned, is_kept, is_through, next,
    own_secret, prepared, want, wanted,
};
use crate::actions::{
    self, ActionDeps, Next, Want, announced, content, failure, taken_in, withdrawn, without_secrets,
};
use crate::operation::{
    FailureReport, Fulfilment, OperationSubject as _, blocking, removes, since, whole_seconds,
};
use crate::service_instance::catalog::{Offered, PATIENCE};
use crate::service_instance::observe::World;
use crate::service_instance::status::{applied, phase, removal, told};

pub(in crate::service_instance) fn status(
    world: &World,
    bundled: &BundledInstance,
    now: Timestamp,
) -> ServiceInstanceStatus {
    let instance = &world.instance;
    let mut status = ServiceInstanceStatus {
        observed_generation: instance.metadata.generation,
        ..instance.status.clone().unwrap_or_default()
    };
    if let Some(deps) = &bundled.deps {
        advance(world, bundled, deps, &mut status, now);
    }
    status.conditions = conditions(world, bundled, &status, now);
    let fulfilment = fulfilment(world, bundled, &status, now);
    let damage = damage(world, bundled, &status);
    status.operation = world.progress(status.operation.as_ref(), &fulfilment, damage, now);
    if status.conditions.is_ready() {
        status.applied = Some(applied(instance, status.applied.take(), now));
    }
    status.phase = Some(phase(world, &status));
    status
}

/// When time alone would change something.
pub(in crate::service_instance) fn requeue_after(
    world: &World,
    bundled: &BundledInstance,
    now: Timestamp,
) -> Option<Duration> {
    let status = status(world, bundled, now);
    let run = bundled.deps.as_ref().filter(|deps| deps.run.is_some());
    let run = run.and_then(|deps| {
        // Once the last run is forgotten nothing is left but to let go.
        let is_through = world.is_held() && is_through(world, bundled);
        let next = next(world, deps, &status, now);
        actions::requeue_after(&next, deps, is_through, now)
    });
    let fulfilment = fulfilment(world, bundled, &status, now);
    let operation = world.verdict_after(status.operation.as_ref(), &fulfilment, now);
    [run, operation].into_iter().flatten().min()
}

/// Writes down what is next for the run: that it is about to be started, that it never was, how it ended.
fn advance(
    world: &World,
    bundled: &BundledInstance,
    deps: &ActionDeps,
    status: &mut ServiceInstanceStatus,
    now: Timestamp,
) {
    let uid = world.instance.uid().unwrap_or_default();
    let next = next(world, deps, status, now);
    match (&next, status.run.clone()) {
        (Next::Announce { attempt }, before) => {
            let want = want(world, status, now);
            if let Some(want) = want.filter(|want| prepared(world, bundled, deps, want).is_ok()) {
                status.run = Some(announced(&want, &uid, *attempt, before.as_ref(), now));
            }
        }
        (Next::Withdraw, Some(run)) => status.run = withdrawn(&run),
        (Next::TakeIn(end), Some(run)) if is_kept(world, bundled, deps, &next, &run) => {
            let report = taken_in(&run, end, |line| clean(world, bundled, deps, line));
            let succeeded = report.result == Some(RunResult::Succeeded);
            let asked = wanted(world, status).is_some_and(|want| want.is(&uid, &report));
            if succeeded && asked && !report.action.is_removal() {
                let before = status.applied.take();
                status.applied = Some(applied(&world.instance, before, now));
                let url = end.dashboard_url.clone();
                status.dashboard_url = url.or_else(|| status.dashboard_url.take());
            }
            status.run = Some(report);
        }
        _ => {}
    }
}

/// A line of a program, without what is secret as far as that is known here.
fn clean(world: &World, bundled: &BundledInstance, deps: &ActionDeps, line: &str) -> String {
    let kept = own_secret(world, bundled).and_then(content);
    let fresh = match &deps.credentials {
        Some(Ok(credentials)) => credentials.as_ref(),
        _ => None,
    };
    let credentials: Vec<_> = kept.iter().chain(fresh).collect();
    let in_force = world.instance.status.as_ref();
    let in_force = in_force.and_then(|status| status.applied.as_ref());
    let in_force = in_force.map(|applied| &applied.parameters);
    let settings: Vec<_> = in_force
        .into_iter()
        .chain([&world.instance.spec.parameters])
        .collect();
    without_secrets(line, &credentials, &settings)
}

fn conditions(
    world: &World,
    bundled: &BundledInstance,
    status: &ServiceInstanceStatus,
    now: Timestamp,
) -> Conditions {
    let mut conditions = status.conditions.clone();
    conditions.set(offering_resolved(world, bundled, status), now);
    if world.is_leaving() {
        let message = leaving(world, bundled, status, now);
        let leaving = Condition::unmet(condition::PROVISIONED, reason::DEPROVISIONING, message);
        conditions.set(leaving, now);
    } else {
        // A bundle is offered in every namespace.
        conditions.set(allowed(bundled), now);
        conditions.set(provisioned(world, bundled, status, now), now);
    }
    CONDITIONS.conclude(&mut conditions, now);
    conditions
}

fn allowed(bundled: &BundledInstance) -> Condition {
    match &bundled.deps {
        Some(_) => Condition::met(condition::ALLOWED),
        None => Condition::unknown(
            condition::ALLOWED,
            reason::SERVICE_UNKNOWN,
            "whether it may be used is not known before the service is",
        ),
    }
}

fn offering_resolved(
    world: &World,
    bundled: &BundledInstance,
    status: &ServiceInstanceStatus,
) -> Condition {
    let type_ = condition::OFFERING_RESOLVED;
    let Some(deps) = &bundled.deps else {
        return match &bundled.offered {
            Some(Offered::Unknown(why)) => Condition::unmet(type_, reason::SERVICE_UNKNOWN, why),
            Some(Offered::Withdrawn(why)) => {
                Condition::unmet(type_, reason::SERVICE_WITHDRAWN, why)
            }
            Some(Offered::PlanWithdrawn(why)) => {
                Condition::unmet(type_, reason::PLAN_WITHDRAWN, why)
            }
            Some(Offered::Awaiting(why)) => {
                Condition::unknown(type_, reason::AWAITING_CATALOG, why)
            }
            Some(Offered::Live(pin)) => {
                let message = told(
                    world,
                    format!(
                        "the instance is being pinned to BundleRevision {}",
                        pin.revision.name
                    ),
                );
                Condition::unknown(type_, reason::AWAITING_CATALOG, message)
            }
            None => Condition::unknown(type_, reason::AWAITING_CATALOG, "nothing is known yet"),
        };
    };
    let name = &deps.reference.name;
    if deps.pinned.is_none() {
        // Where nothing is to be done, nothing is missing.
        let needless = world.is_leaving() && (!has_made(status) || is_deprovisioned(status));
        let message = match world.is_leaving() {
            _ if needless => return Condition::met(type_),
            true => format!(
                "BundleRevision {name} does not exist, so deprovision cannot run; {}",
                way_out()
            ),
            false => format!(
                "BundleRevision {name} does not exist, so no action can run; restore it, or remove the instance"
            ),
        };
        return Condition::unmet(type_, reason::REVISION_MISSING, message);
    }
    let spec = &world.instance.spec;
    if !world.is_leaving() && deps.plan(&spec.service_id, &spec.plan_id).is_none() {
        let message = format!(
            "BundleRevision {name} has no plan {}; ask for another",
            spec.plan_id
        );
        return Condition::unmet(type_, reason::PLAN_WITHDRAWN, message);
    }
    Condition::met(type_)
}

fn way_out() -> String {
    actions::way_out("instance", Action::Deprovision)
}

fn provisioned(
    world: &World,
    bundled: &BundledInstance,
    status: &ServiceInstanceStatus,
    now: Timestamp,
) -> Condition {
    let type_ = condition::PROVISIONED;
    let unmet = |reason, message: String| Condition::unmet(type_, reason, told(world, message));
    let Some(deps) = &bundled.deps else {
        let message = "what there is to run is not known before the service is";
        return Condition::unknown(type_, reason::IN_PROGRESS, message);
    };
    let in_force = status.applied.as_ref();
    if in_force.is_some_and(|applied| !differs(applied, &world.instance)) {
        return Condition::met(type_);
    }
    let wanted = wanted(world, status);
    if let Some(why) = failure(world.uid(), wanted.as_ref(), status.run.as_ref(), now) {
        return Condition::unmet(type_, reason::ACTION_FAILED, why);
    }
    let doing = doing(world, bundled, deps, status, wanted.as_ref(), now);
    match (&wanted, want(world, status, now)) {
        (Some(wanted), None) => {
            Condition::unmet(type_, reason::DEADLINE_REACHED, wanted.given_up(&doing))
        }
        _ => unmet(reason::IN_PROGRESS, doing),
    }
}

/// What the wanted action is doing or waiting for.
fn doing(
    world: &World,
    bundled: &BundledInstance,
    deps: &ActionDeps,
    status: &ServiceInstanceStatus,
    wanted: Option<&Want>,
    now: Timestamp,
) -> String {
    let uid = world.instance.uid().unwrap_or_default();
    let run = status.run.as_ref().filter(|run| run.result.is_none());
    if let Some(run) = run {
        let word = run.action.word();
        if !wanted.is_some_and(|wanted| wanted.is(&uid, run)) {
            return format!("{word}, which is not wanted any more, is being called off");
        }
        return under_way(world, bundled, deps, run);
    }
    let Some(wanted) = wanted else {
        return "nothing is wanted".to_owned();
    };
    let word = wanted.action.word();
    if let Next::Pause { until } = next(world, deps, status, now) {
        let last = failure(world.uid(), Some(wanted), status.run.as_ref(), now).unwrap_or_default();
        return format!("{last}; it is tried again at {}", whole_seconds(until).0);
    }
    match prepared(world, bundled, deps, wanted) {
        Ok(_) => format!("{word} is about to be started"),
        Err(why) => format!("{word} waits: {why}"),
    }
}

fn under_way(
    world: &World,
    bundled: &BundledInstance,
    deps: &ActionDeps,
    run: &RunReport,
) -> String {
    let is_readable = !matches!(deps.credentials, Some(Err(_)));
    let secret = bundled.secret.as_ref();
    let in_the_way = secret.filter(|_| own_secret(world, bundled).is_none());
    if let (Some(RunState::Ended(_)), Some(secret), true) = (&deps.run, in_the_way, is_readable) {
        let (word, namespace) = (run.action.word(), world.instance.namespace());
        return format!(
            "{word} ended, and Secret {}/{}, which would keep what it handed out, is not the instance's; delete it",
            namespace.unwrap_or_default(),
            secret.name_any()
        );
    }
    actions::under_way(deps, run, |line| clean(world, bundled, deps, line))
}

/// What a removal is doing or waiting for.
fn leaving(
    world: &World,
    bundled: &BundledInstance,
    status: &ServiceInstanceStatus,
    now: Timestamp,
) -> String {
    let general = removal(world);
    let Some(deps) = bundled.deps.as_ref().filter(|_| world.bindings.is_empty()) else {
        return general;
    };
    let wanted = wanted(world, status);
    if let Some(why) = failure(world.uid(), wanted.as_ref(), status.run.as_ref(), now) {
        let again = match next(world, deps, status, now) {
            Next::Pause { until } => format!("; it is tried again at {}", whole_seconds(until).0),
            _ => String::new(),
        };
        return format!("{why}{again}; {}", way_out());
    }
    let running = status.run.as_ref().is_some_and(|run| run.result.is_none());
    let begun = wanted.is_some() || (running && !is_abandoned(&world.instance));
    match begun && !is_deprovisioned(status) {
        true => {
            let doing = doing(world, bundled, deps, status, wanted.as_ref(), now);
            format!("{general}; {doing}")
        }
        false => general,
    }
}

fn fulfilment(
    world: &World,
    bundled: &BundledInstance,
    status: &ServiceInstanceStatus,
    now: Timestamp,
) -> Fulfilment {
    let conditions = &status.conditions;
    let failed = |why| world.failed(why, now);
    let refused = |why: String| {
        let resolved = conditions.find(condition::OFFERING_RESOLVED.name);
        let resolved = resolved.filter(|resolved| resolved.status == Status::False);
        match resolved.and_then(since) {
            Some(since) => Fulfilment::Refused { since, why },
            None => Fulfilment::Waiting(why),
        }
    };
    let wanted = wanted(world, status);
    let failure = failure(world.uid(), wanted.as_ref(), status.run.as_ref(), now);
    if world.is_leaving() {
        let asked = removes(world.request());
        return match failure {
            // Deleted by hand while something else was under way.
            _ if !asked => Fulfilment::Hopeless("the instance was deleted".to_owned()),
            _ if world.released => Fulfilment::Done(super::removal_note(world)),
            Some(why) => failed(format!("{why}; {}", way_out())),
            None => refused(
                resolution(conditions).unwrap_or_else(|| leaving(world, bundled, status, now)),
            ),
        };
    }
    if conditions.is_ready() {
        return Fulfilment::Done(None);
    }
    if let Some(why) = failure {
        return failed(why);
    }
    let why = blocking(&CONDITIONS, conditions);
    match &bundled.offered {
        Some(Offered::Awaiting(_)) => Fulfilment::Within {
            limit: PATIENCE,
            why,
        },
        _ => refused(why),
    }
}

/// Why the offering is not resolved, if that is so.
fn resolution(conditions: &Conditions) -> Option<String> {
    let resolved = conditions.find(condition::OFFERING_RESOLVED.name)?;
    let unmet = Some(resolved).filter(|resolved| resolved.status == Status::False)?;
    unmet.message.clone()
}

/// What is left if the operation fails now.
fn damage(
    world: &World,
    bundled: &BundledInstance,
    status: &ServiceInstanceStatus,
) -> FailureReport {
    let spec = &world.instance.spec;
    let deps = bundled.deps.as_ref();
    FailureReport {
        usable: status.applied.is_some() && !world.is_leaving(),
        repeatable: deps.is_some_and(|deps| deps.plan(&spec.service_id, &spec.plan_id).is_some()),
    }
}
