//! Plan: which of the children must be made, mended or removed.

use std::fmt::Debug;

use heddle_api::application::Application;
use heddle_api::well_known::{
    APPLICATION_LABEL, INTEGRATION_NAMESPACE, MANAGED_BY, MANAGED_BY_LABEL,
};
use kube::{Resource, ResourceExt as _};
use serde::Serialize;
use serde_json::{Value, json};

use super::observe::World;
use super::{CHANNEL, SOURCE, publisher};
use crate::reconcile::Step;

pub(super) fn plan(world: &World) -> Vec<Step> {
    // Owned children are removed with their owner; while that happens there is nothing to mend.
    if world.application.metadata.deletion_timestamp.is_some() {
        return Vec::new();
    }
    let application = &world.application;
    let source = json!({"source": application.name_any()});
    let steps = [
        child(application, world.source.as_ref(), SOURCE, source),
        child(application, world.channel.as_ref(), CHANNEL, json!({})),
        publisher::plan(world),
    ];
    steps.into_iter().flatten().collect()
}

fn child<K>(
    application: &Application,
    live: Option<&K>,
    step_name: &'static str,
    spec: Value,
) -> Option<Step>
where
    K: Resource<DynamicType = ()> + Serialize + Debug,
{
    if live.is_some_and(|live| !may_hold(application, live)) {
        return None;
    }
    if application.spec.skip_installation {
        return Step::remove(step_name, live.filter(|live| is_owned(application, *live)));
    }
    let wanted = json!({
        "apiVersion": K::api_version(&()), "kind": K::kind(&()),
        "metadata": {
            "name": application.name_any(),
            "namespace": INTEGRATION_NAMESPACE,
            "labels": {APPLICATION_LABEL: application.name_any(), MANAGED_BY_LABEL: MANAGED_BY},
            "ownerReferences": [application.controller_owner_ref(&())],
        },
        "spec": spec,
    });
    Step::ensure(step_name, wanted, live)
}

/// A child that nobody controls is taken in; one that another object controls is left alone, and so is one that is
/// on its way out (its removal wakes us again).
pub(super) fn may_hold<K: Resource>(application: &Application, live: &K) -> bool {
    let controller = live
        .owner_references()
        .iter()
        .find(|owner| owner.controller == Some(true));
    live.meta().deletion_timestamp.is_none()
        && controller.is_none_or(|owner| Some(&owner.uid) == application.metadata.uid.as_ref())
}

pub(super) fn is_owned<K: Resource>(application: &Application, live: &K) -> bool {
    live.owner_references()
        .iter()
        .any(|owner| Some(&owner.uid) == application.metadata.uid.as_ref())
}
