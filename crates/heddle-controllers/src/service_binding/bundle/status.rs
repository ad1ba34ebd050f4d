//! Status of a bundle's binding: how its run went, whether there are credentials, and how far its operation is.

use std::time::Duration;

use heddle_api::action::Action;
use heddle_api::conditions::{Condition, Conditions, Reason};
use heddle_api::operation::{RunReport, RunResult};
use heddle_api::service_binding::{
    CONDITIONS, SecretReference, ServiceBindingStatus, condition, reason,
};
use jiff::Timestamp;
use kube::ResourceExt as _;

use super::{
    BundledBinding, handed_out, has_made, is_bound, is_let_go, is_through, is_unbound, next,
    own_secret, prepared, removal_note, want, wanted,
};
use crate::actions::{
    self, Next, Want, announced, content, failure, taken_in, withdrawn, without_secrets,
};
use crate::operation::{
    FailureReport, Fulfilment, OperationSubject as _, blocking, removes, since, whole_seconds,
};
use crate::service_binding::observe::World;
use crate::service_binding::status::{instance_ready, told};

pub(in crate::service_binding) fn status(
    world: &World,
    bundled: &BundledBinding,
    now: Timestamp,
) -> ServiceBindingStatus {
    let binding = &world.binding;
    let mut status = ServiceBindingStatus {
        observed_generation: binding.metadata.generation,
        ..binding.status.clone().unwrap_or_default()
    };
    advance(world, bundled, &mut status, now);
    status.conditions = conditions(world, bundled, &status, now);
    let fulfilment = fulfilment(world, bundled, &status, now);
    let damage = FailureReport::default();
    status.operation = world.progress(status.operation.as_ref(), &fulfilment, damage, now);
    status.secret_ref = own_secret(world).map(|secret| SecretReference {
        name: secret.name_any(),
    });
    status
}

/// When time alone would change something.
pub(in crate::service_binding) fn requeue_after(
    world: &World,
    bundled: &BundledBinding,
    now: Timestamp,
) -> Option<Duration> {
    let status = status(world, bundled, now);
    let run = bundled.deps.run.as_ref();
    let run = run.and_then(|_| {
        // Once the last run is forgotten nothing is left but to let go.
        let is_through = world.is_held() && is_through(world, bundled);
        let next = next(world, &bundled.deps, &status, now);
        actions::requeue_after(&next, &bundled.deps, is_through, now)
    });
    let fulfilment = fulfilment(world, bundled, &status, now);
    let operation = world.verdict_after(status.operation.as_ref(), &fulfilment, now);
    [run, operation].into_iter().flatten().min()
}

/// Writes down what is next for the run: that it is about to be started, that it never was, how it ended.
fn advance(
    world: &World,
    bundled: &BundledBinding,
    status: &mut ServiceBindingStatus,
    now: Timestamp,
) {
    let uid = world.binding.uid().unwrap_or_default();
    let next = next(world, &bundled.deps, status, now);
    match (&next, status.run.clone()) {
        (Next::Announce { attempt }, before) => {
            let want = want(world, status, now);
            if let Some(want) = want.filter(|want| prepared(world, bundled, want).is_ok()) {
                status.run = Some(announced(&want, &uid, *attempt, before.as_ref(), now));
            }
        }
        (Next::Withdraw, Some(run)) => status.run = withdrawn(&run),
        (Next::TakeIn(end), Some(run)) => {
            let report = taken_in(&run, end, |line| clean(world, bundled, line));
            if is_kept(world, bundled, &report) {
                status.run = Some(report);
            }
        }
        _ => {}
    }
}

/// Whether nothing is lost if an end is written down now.
fn is_kept(world: &World, bundled: &BundledBinding, report: &RunReport) -> bool {
    let succeeded = report.result == Some(RunResult::Succeeded);
    // Credentials of what is about to be removed are nobody's any more.
    if !succeeded || report.action.is_removal() || world.is_leaving() {
        return true;
    }
    let kept = own_secret(world).and_then(content);
    kept.is_some() && kept == handed_out(world, bundled)
}

/// A line of a program, without what is secret as far as that is known here.
fn clean(world: &World, bundled: &BundledBinding, line: &str) -> String {
    let kept = own_secret(world).and_then(content);
    let fresh = match &bundled.deps.credentials {
        Some(Ok(credentials)) => credentials.as_ref(),
        _ => None,
    };
    let credentials: Vec<_> = kept.iter().chain(fresh).chain(&bundled.provision).collect();
    let instance = world.instance.as_ref().map(|found| &found.spec.parameters);
    let settings: Vec<_> = instance
        .into_iter()
        .chain([&world.binding.spec.parameters])
        .collect();
    without_secrets(line, &credentials, &settings)
}

fn conditions(
    world: &World,
    bundled: &BundledBinding,
    status: &ServiceBindingStatus,
    now: Timestamp,
) -> Conditions {
    let mut conditions = status.conditions.clone();
    if world.is_leaving() {
        let (reason, message) = leaving(world, bundled, status, now);
        conditions.set(Condition::unmet(condition::BOUND, reason, message), now);
    } else {
        conditions.set(instance_ready(world), now);
        conditions.set(bound(world, bundled, status, now), now);
    }
    CONDITIONS.conclude(&mut conditions, now);
    conditions
}

fn bound(
    world: &World,
    bundled: &BundledBinding,
    status: &ServiceBindingStatus,
    now: Timestamp,
) -> Condition {
    let type_ = condition::BOUND;
    let unmet = |reason, message: &str| Condition::unmet(type_, reason, told(world, message));
    let namespace = world.binding.namespace().unwrap_or_default();
    let object = format!("Secret {namespace}/{}", world.binding.name_any());
    if world.secret.is_some() && own_secret(world).is_none() {
        let message = format!("{object} is not the binding's; delete it, or bind under another id");
        return unmet(reason::SECRET_TAKEN, &message);
    }
    if is_bound(status) {
        return match own_secret(world) {
            Some(_) => Condition::met(type_),
            None => {
                let message = format!(
                    "{object} was removed by force, and the bundle handed out what it held only once; make a new binding"
                );
                unmet(reason::CREDENTIALS_LOST, &message)
            }
        };
    }
    let wanted = wanted(world, status);
    if let Some(why) = failure(world.uid(), wanted.as_ref(), status.run.as_ref(), now) {
        return Condition::unmet(type_, reason::ACTION_FAILED, why);
    }
    let doing = doing(world, bundled, status, wanted.as_ref(), now);
    if bundled.deps.pinned.is_none() {
        let message = format!("{doing}; restore it, or remove the binding");
        return unmet(reason::REVISION_MISSING, &message);
    }
    match (&wanted, want(world, status, now)) {
        (Some(wanted), None) => {
            Condition::unmet(type_, reason::DEADLINE_REACHED, wanted.given_up(&doing))
        }
        _ => unmet(reason::IN_PROGRESS, &doing),
    }
}

/// What the wanted action is doing or waiting for.
fn doing(
    world: &World,
    bundled: &BundledBinding,
    status: &ServiceBindingStatus,
    wanted: Option<&Want>,
    now: Timestamp,
) -> String {
    let uid = world.binding.uid().unwrap_or_default();
    let run = status.run.as_ref().filter(|run| run.result.is_none());
    if let Some(run) = run {
        let word = run.action.word();
        // What `bind` handed out may be kept already while its end is not written down.
        let is_wanted = wanted.is_none_or(|wanted| wanted.is(&uid, run));
        if !is_wanted || (wanted.is_none() && world.is_leaving()) {
            return format!("{word}, which is not wanted any more, is being called off");
        }
        let clean = |line: &str| clean(world, bundled, line);
        return actions::under_way(&bundled.deps, run, clean);
    }
    let Some(wanted) = wanted else {
        return "nothing is wanted".to_owned();
    };
    let word = wanted.action.word();
    if let Next::Pause { until } = next(world, &bundled.deps, status, now) {
        return format!("{word} is tried again at {}", whole_seconds(until).0);
    }
    match prepared(world, bundled, wanted) {
        Ok(_) => format!("{word} is about to be started"),
        Err(why) => format!("{word} waits: {why}"),
    }
}

fn way_out() -> String {
    actions::way_out("binding", Action::Unbind)
}

/// What a removal is doing or waiting for.
fn leaving(
    world: &World,
    bundled: &BundledBinding,
    status: &ServiceBindingStatus,
    now: Timestamp,
) -> (Reason, String) {
    let general = "the binding is being removed";
    let wanted = wanted(world, status);
    if let Some(why) = failure(world.uid(), wanted.as_ref(), status.run.as_ref(), now) {
        let again = match next(world, &bundled.deps, status, now) {
            Next::Pause { until } => format!("; it is tried again at {}", whole_seconds(until).0),
            _ => String::new(),
        };
        let message = format!("{why}{again}; {}", way_out());
        return (reason::ACTION_FAILED, message);
    }
    let to_do = has_made(world, status) && !is_unbound(status) && !is_let_go(world);
    if to_do && bundled.deps.pinned.is_none() {
        let name = &bundled.deps.reference.name;
        let message = format!(
            "BundleRevision {name} does not exist, so unbind cannot run; {}",
            way_out()
        );
        return (reason::REVISION_MISSING, message);
    }
    let running = status.run.as_ref().is_some_and(|run| run.result.is_none());
    let message = match to_do || running {
        true => {
            let doing = doing(world, bundled, status, wanted.as_ref(), now);
            format!("{general}; {doing}")
        }
        false => general.to_owned(),
    };
    (reason::UNBINDING, told(world, &message))
}

fn fulfilment(
    world: &World,
    bundled: &BundledBinding,
    status: &ServiceBindingStatus,
    now: Timestamp,
) -> Fulfilment {
    let conditions = &status.conditions;
    let wanted = wanted(world, status);
    let failure = failure(world.uid(), wanted.as_ref(), status.run.as_ref(), now);
    let bound = conditions.find(condition::BOUND.name);
    // Only people can bring a revision back.
    let missing =
        bound.filter(|bound| bound.reason.as_deref() == Some(reason::REVISION_MISSING.name));
    let failed = |why| world.failed(why, now);
    let refused = |since: Option<Timestamp>, why: String| match since {
        Some(since) => Fulfilment::Refused { since, why },
        None => Fulfilment::Waiting(why),
    };
    if world.is_leaving() {
        let asked = removes(world.request());
        let (_, message) = leaving(world, bundled, status, now);
        return match failure {
            _ if !asked => Fulfilment::Hopeless("the binding was deleted".to_owned()),
            _ if world.released => Fulfilment::Done(Some(removal_note(world))),
            Some(why) => failed(format!("{why}; {}", way_out())),
            None => refused(missing.and_then(since), message),
        };
    }
    if conditions.is_ready() {
        return Fulfilment::Done(None);
    }
    let why = blocking(&CONDITIONS, conditions);
    if let Some(why) = failure {
        return failed(why);
    }
    let instance = world.instance.as_ref();
    if instance.is_some_and(|found| found.metadata.deletion_timestamp.is_some()) {
        return Fulfilment::Hopeless(why);
    }
    let gone = conditions.find(condition::INSTANCE_READY.name);
    let gone = gone.filter(|_| instance.is_none());
    refused(gone.or(missing).and_then(since), why)
}
