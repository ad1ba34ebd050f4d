//! The object that a Trigger depends on, named by an annotation.
//!
//! Any kind that the controllers watch may be named, so that its becoming ready is noticed.

use std::fmt::Debug;

use heddle_api::duck::KReference;
use heddle_api::trigger::DEPENDENCY_ANNOTATION;
use heddle_api::{Application, Broker, Channel, HTTPSource, Subscription, Trigger};
use kube::core::NamespaceResourceScope;
use kube::{Api, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;

use crate::reconcile::{Ctx, Error};
use crate::referenced::Referenced;
use crate::references::Target;

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DependencyState {
    /// None is named, or it is ready.
    Met,
    Unmet(String),
}

/// What the annotation names; the error is for people.
fn named(trigger: &Trigger) -> Option<Result<KReference, String>> {
    let text = trigger.annotations().get(DEPENDENCY_ANNOTATION)?;
    Some(serde_json::from_str(text).map_err(|error| {
        format!("the annotation {DEPENDENCY_ANNOTATION} is not a reference in JSON: {error}")
    }))
}

pub(super) fn target(trigger: &Trigger) -> Option<Target> {
    let reference = named(trigger)?.ok()?;
    let namespace = match reference.kind.as_str() {
        "Application" => String::new(),
        _ => namespace(trigger, &reference),
    };
    Some(Target::new(&reference.kind, &namespace, &reference.name))
}

fn namespace(trigger: &Trigger, reference: &KReference) -> String {
    let own = || trigger.namespace().unwrap_or_default();
    reference.namespace.clone().unwrap_or_else(own)
}

pub(super) async fn observe(ctx: &Ctx, trigger: &Trigger) -> Result<DependencyState, Error> {
    let reference = match named(trigger) {
        None => return Ok(DependencyState::Met),
        Some(Err(why)) => return Ok(DependencyState::Unmet(why)),
        Some(Ok(reference)) => reference,
    };
    let namespace = namespace(trigger, &reference);
    let name = &reference.name;
    match reference.kind.as_str() {
        "Application" => {
            let applications = Api::<Application>::all(ctx.client.clone());
            Ok(judge("", name, applications.get_opt(name).await?.as_ref()))
        }
        "HTTPSource" => find::<HTTPSource>(ctx, &namespace, name).await,
        "Channel" => find::<Channel>(ctx, &namespace, name).await,
        "Subscription" => find::<Subscription>(ctx, &namespace, name).await,
        "Broker" => find::<Broker>(ctx, &namespace, name).await,
        "Trigger" => find::<Trigger>(ctx, &namespace, name).await,
        other => Ok(DependencyState::Unmet(format!(
            "{other} {namespace}/{name} cannot be depended on: no controller here watches that kind"
        ))),
    }
}

async fn find<K>(ctx: &Ctx, namespace: &str, name: &str) -> Result<DependencyState, Error>
where
    K: Referenced + Resource<Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
{
    let found = ctx.find::<K>(namespace, name).await?;
    Ok(judge(namespace, name, found.as_ref()))
}

pub(super) fn judge<K: Referenced>(
    namespace: &str,
    name: &str,
    found: Option<&K>,
) -> DependencyState {
    let kind = K::kind(&());
    let object = match namespace {
        "" => format!("{kind} {name}"),
        namespace => format!("{kind} {namespace}/{name}"),
    };
    let Some(referenced) = found.map(Referenced::referenced_state) else {
        return DependencyState::Unmet(format!("{object} does not exist"));
    };
    if referenced.leaving {
        DependencyState::Unmet(format!("{object} is being deleted"))
    } else if referenced.ready.is_true() {
        DependencyState::Met
    } else {
        DependencyState::Unmet(format!("{object} is not ready: {}", referenced.ready.why))
    }
}
