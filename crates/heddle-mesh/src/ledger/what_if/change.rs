//! Resources as they would be after a change. Pure.

use std::sync::Arc;

use heddle_api::broker::{CLASS, CLASS_ANNOTATION, KNATIVE_CLASSES};
use heddle_api::dataplane::Resources;
use heddle_api::what_if::{ChangedObject, WhatIfRequest};
use heddle_api::{Broker, Channel, EventPolicy, Subscription, Trigger};
use kube::{Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::ledger::Error;

/// What an object would need of whoever applies it.
pub(crate) fn objects(request: &WhatIfRequest) -> Result<Vec<ChangedObject>, Error> {
    let count = request.apply.len() + request.delete.len();
    if count == 0 || count > WhatIfRequest::OBJECTS_MAX {
        let max = WhatIfRequest::OBJECTS_MAX;
        let text = format!("say what would be applied or deleted: 1 to {max} objects");
        return Err(Error::Invalid(text));
    }
    let applied = request.apply.iter().map(named);
    let deleted = request.delete.iter().cloned().map(Ok);
    applied.chain(deleted).collect()
}

fn named(object: &Value) -> Result<ChangedObject, Error> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    let named = ChangedObject {
        kind: text(&object["kind"]),
        namespace: text(&metadata["namespace"]),
        name: text(&metadata["name"]),
    };
    if named.kind.is_empty() || named.namespace.is_empty() || named.name.is_empty() {
        return Err(Error::Invalid(
            "each object needs a kind, metadata.namespace and metadata.name".to_owned(),
        ));
    }
    Ok(named)
}

/// The resources with the change. What a controller has found out about an object is kept.
pub(crate) fn changed(resources: &Resources, request: &WhatIfRequest) -> Result<Resources, Error> {
    let mut changed = resources.clone();
    for object in &request.delete {
        delete(&mut changed, object)?;
    }
    for object in &request.apply {
        apply(&mut changed, object)?;
    }
    Ok(changed)
}

fn delete(resources: &mut Resources, object: &ChangedObject) -> Result<(), Error> {
    let found = match &*object.kind {
        "Trigger" => remove(&mut resources.triggers, object).is_some(),
        "Subscription" => remove(&mut resources.subscriptions, object).is_some(),
        "EventPolicy" => remove(&mut resources.policies, object).is_some(),
        "Broker" => remove(&mut resources.brokers, object).is_some(),
        "Channel" => remove(&mut resources.channels, object).is_some(),
        kind => return Err(unknown(kind)),
    };
    if found {
        return Ok(());
    }
    Err(Error::NotFound(format!(
        "there is no {} {} in {}",
        object.kind, object.name, object.namespace
    )))
}

fn apply(resources: &mut Resources, object: &Value) -> Result<(), Error> {
    let name = named(object)?;
    match &*name.kind {
        "Trigger" => put(
            &mut resources.triggers,
            &name,
            object,
            |new: &mut Trigger, old| {
                new.status.clone_from(&old.status);
            },
        ),
        "Subscription" => put(
            &mut resources.subscriptions,
            &name,
            object,
            |new: &mut Subscription, old| new.status.clone_from(&old.status),
        ),
        "EventPolicy" => put(
            &mut resources.policies,
            &name,
            object,
            |new: &mut EventPolicy, old| new.status.clone_from(&old.status),
        ),
        "Broker" => {
            served(&name, object)?;
            put(
                &mut resources.brokers,
                &name,
                object,
                |new: &mut Broker, old| new.status.clone_from(&old.status),
            )
        }
        "Channel" => put(
            &mut resources.channels,
            &name,
            object,
            |new: &mut Channel, old| new.status.clone_from(&old.status),
        ),
        kind => Err(unknown(kind)),
    }
}

fn unknown(kind: &str) -> Error {
    let known = WhatIfRequest::KINDS.join(", ");
    let text = format!("what {kind} would do to events is not known; known are {known}");
    Error::Invalid(text)
}

/// Which further classes are served is not known here: those of the configuration are the controllers' business.
fn served(name: &ChangedObject, object: &Value) -> Result<(), Error> {
    let class = object["metadata"]["annotations"][CLASS_ANNOTATION].as_str();
    let is_known = |class| class == CLASS || KNATIVE_CLASSES.contains(&class);
    match class {
        Some(class) if !is_known(class) => Err(Error::Invalid(format!(
            "whether Broker {} of the class {class} would be served is not known; try it with the class {CLASS}",
            name.name
        ))),
        _ => Ok(()),
    }
}

fn remove<K: Resource>(all: &mut Vec<Arc<K>>, object: &ChangedObject) -> Option<Arc<K>> {
    let place = all.iter().position(|one| {
        one.name_any() == object.name && one.namespace().as_deref() == Some(&object.namespace)
    })?;
    Some(all.remove(place))
}

fn put<K: Resource + DeserializeOwned>(
    all: &mut Vec<Arc<K>>,
    name: &ChangedObject,
    object: &Value,
    keep: impl Fn(&mut K, &K),
) -> Result<(), Error> {
    let read = serde_json::from_value::<K>(object.clone());
    let mut new = read.map_err(|error| {
        let text = format!("{} {} cannot be read: {error}", name.kind, name.name);
        Error::Invalid(text)
    })?;
    if let Some(old) = remove(all, name) {
        keep(&mut new, &old);
    }
    all.push(Arc::new(new));
    Ok(())
}
