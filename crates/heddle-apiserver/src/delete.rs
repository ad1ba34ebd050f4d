//! Deletion: a wish that finalizers may delay, with preconditions that make it safe.

use std::sync::Arc;

use axum::body::Body;
use heddle_store::{CommitError, Expect, Object, Op, Write};
use http::{Response, StatusCode};
use serde_json::{Value, json};

use crate::names;
use crate::negotiate;
use crate::object::{self, meta_mut};
use crate::read::{imagined, written};
use crate::registry::{BuiltIn, Resource};
use crate::request;
use crate::serve::{Call, bytes_response, json_response};
use crate::status::{self, Result, StatusError};
use crate::table::IncludeObject;
use crate::view::{self, Filter};
use crate::write::{commit_change, refuse};
use crate::{Inner, account, body, strategy};

pub(crate) const FOREGROUND: &str = "foregroundDeletion";
pub(crate) const ORPHAN: &str = "orphan";

/// Many objects in one commit: one fsync each would make a large collection twelve times slower.
const CHUNK: usize = 256;
const ATTEMPTS_MAX: usize = 64;

/// What becomes of the dependents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Propagation {
    #[default]
    Background,
    Foreground,
    Orphan,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Options {
    pub uid: Option<String>,
    pub resource_version: Option<String>,
    pub propagation: Propagation,
    pub dry_run: bool,
}

/// How a deletion stands after the request.
#[derive(Debug)]
pub(crate) enum Outcome {
    Gone(Arc<Object>),
    /// Finalizers hold it.
    Waiting(Arc<Object>),
    /// A dry run: what would be stored, and whether it would be gone.
    Imagined(Value, bool),
}

pub(crate) async fn one(inner: &Arc<Inner>, call: &Call, bytes: &[u8]) -> Result<Response<Body>> {
    let options = options(call, bytes)?;
    let resource = inner
        .registry
        .by_storage(&call.resource.storage)
        .unwrap_or(&call.resource);
    let key = object::key(resource, call.namespace.as_deref(), call.name());
    match delete(inner, resource, &key, &options).await? {
        // A namespace is always answered as an object: clients look at its phase.
        Outcome::Gone(object) if resource.is(BuiltIn::Namespace) => {
            written(inner, call, StatusCode::OK, &object)
        }
        Outcome::Gone(object) => {
            let told = status::deleted(&call.resource, call.name(), &object.facts.uid);
            Ok(account::noted(
                json_response(StatusCode::OK, &told),
                &object,
            ))
        }
        Outcome::Waiting(object) => written(inner, call, StatusCode::OK, &object),
        Outcome::Imagined(object, true) => {
            let uid = object::meta_str(&object, "uid").to_owned();
            let told = status::deleted(&call.resource, call.name(), &uid);
            Ok(account::rehearsed(json_response(StatusCode::OK, &told)))
        }
        Outcome::Imagined(object, false) => Ok(imagined(call, StatusCode::OK, object)),
    }
}

/// Deletes one object, whoever asks: a client, the garbage collector, a namespace on its way out.
pub(crate) async fn delete(
    inner: &Inner,
    resource: &Resource,
    key: &heddle_store::Key,
    options: &Options,
) -> Result<Outcome> {
    for _ in 0..ATTEMPTS_MAX {
        let live = inner
            .store
            .get(key)
            .ok_or_else(|| StatusError::not_found(resource, &key.name))?;
        guard(resource, &live, options)?;
        let Some(next) = next_state(resource, &live, options.propagation, inner.clock.now()) else {
            return Ok(Outcome::Waiting(live));
        };
        let gone = strategy::is_released(resource, &next);
        if options.dry_run {
            return Ok(Outcome::Imagined(next, gone));
        }
        match commit_change(inner, resource, &live, &next).await? {
            Some(stored) if gone => return Ok(Outcome::Gone(stored)),
            Some(stored) => return Ok(Outcome::Waiting(stored)),
            None => continue,
        }
    }
    Err(StatusError::modified(resource, &key.name))
}

pub(crate) async fn collection(
    inner: &Arc<Inner>,
    call: &Call,
    bytes: &[u8],
) -> Result<Response<Body>> {
    let options = options(call, bytes)?;
    let filter = Filter::of(call)?;
    let resource = inner
        .registry
        .by_storage(&call.resource.storage)
        .unwrap_or(&call.resource);
    let listing = inner
        .store
        .list(&resource.storage, call.namespace.as_deref());
    let chosen: Vec<Arc<Object>> = listing
        .items
        .into_iter()
        .filter(|item| filter.matches(&call.resource, item))
        .collect();
    let deleted = if options.dry_run {
        chosen
    } else {
        many(inner, resource, chosen, &options).await?
    };
    let form = negotiate::form(&call.parts.headers)?;
    let meta = view::list_meta(&call.resource, form, inner.store.version());
    let bytes = view::list(
        &call.resource,
        form,
        &deleted,
        &meta,
        IncludeObject::Metadata,
        inner.clock.now(),
    );
    let response = bytes_response(StatusCode::OK, bytes);
    Ok(match options.dry_run {
        true => account::rehearsed(response),
        false => response,
    })
}

/// The write that deletes an object as it is now, or marks it while finalizers hold it. `None` if there is nothing to do.
pub(crate) fn removal(
    inner: &Inner,
    resource: &Resource,
    live: &Object,
    propagation: Propagation,
) -> Option<Write> {
    let next = next_state(resource, live, propagation, inner.clock.now())?;
    let draft = object::draft(&next);
    let op = if strategy::is_released(resource, &next) {
        Op::Remove(draft)
    } else {
        Op::Put(draft)
    };
    Some(Write {
        key: live.key.clone(),
        expect: Expect::Version(live.version),
        op,
    })
}

/// Deletes these objects in chunks of one commit each; whatever changed meanwhile is dealt with singly.
pub(crate) async fn many(
    inner: &Inner,
    resource: &Resource,
    objects: Vec<Arc<Object>>,
    options: &Options,
) -> Result<Vec<Arc<Object>>> {
    let mut deleted = Vec::with_capacity(objects.len());
    for chunk in objects.chunks(CHUNK) {
        let batch: Vec<Write> = chunk
            .iter()
            .filter_map(|live| removal(inner, resource, live, options.propagation))
            .collect();
        if batch.is_empty() {
            continue;
        }
        match inner.store.commit(batch).await {
            Ok(stored) => deleted.extend(stored),
            Err(CommitError::Conflict { .. }) => {
                for live in chunk {
                    match delete(inner, resource, &live.key, options).await {
                        Ok(Outcome::Gone(object) | Outcome::Waiting(object)) => {
                            deleted.push(object)
                        }
                        Ok(Outcome::Imagined(..)) => {}
                        Err(refusal) if refusal.code == StatusCode::NOT_FOUND => {}
                        Err(refusal) => return Err(refusal),
                    }
                }
            }
            Err(error) => return Err(refuse(error)),
        }
    }
    Ok(deleted)
}

/// The object as deletion leaves it; `None` when there is nothing left to change but to wait.
pub(crate) fn next_state(
    resource: &Resource,
    live: &Object,
    propagation: Propagation,
    now: jiff::Timestamp,
) -> Option<Value> {
    let mut next = object::parse(live);
    let before: Vec<String> = object::finalizers(&next)
        .into_iter()
        .map(str::to_owned)
        .collect();
    let mut finalizers: Vec<String> = before
        .iter()
        .filter(|f| *f != FOREGROUND && *f != ORPHAN)
        .cloned()
        .collect();
    match propagation {
        Propagation::Background => {}
        Propagation::Foreground => finalizers.push(FOREGROUND.to_owned()),
        Propagation::Orphan => finalizers.push(ORPHAN.to_owned()),
    }
    // A deletion already under way keeps its own way of treating dependents unless told another.
    if live.facts.deleting && propagation == Propagation::Background {
        finalizers.clone_from(&before);
    }
    let meta = meta_mut(&mut next);
    if finalizers.is_empty() {
        meta.remove("finalizers");
    } else {
        meta.insert("finalizers".to_owned(), json!(finalizers));
    }
    if live.facts.deleting {
        return (finalizers != before).then_some(next);
    }
    strategy::begin_deletion(resource, &mut next, now);
    Some(next)
}

fn guard(resource: &Resource, live: &Object, options: &Options) -> Result<()> {
    if let Some(uid) = &options.uid
        && **uid != *live.facts.uid
    {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been \
             deleted and then recreated",
            live.facts.uid
        );
        return Err(StatusError::precondition_failed(
            resource,
            &live.key.name,
            &why,
        ));
    }
    if let Some(version) = &options.resource_version
        && *version != live.version.to_string()
    {
        let why = format!(
            "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({}). The \
             object might have been modified",
            live.version
        );
        return Err(StatusError::precondition_failed(
            resource,
            &live.key.name,
            &why,
        ));
    }
    Ok(())
}

fn options(call: &Call, bytes: &[u8]) -> Result<Options> {
    let body = if bytes.is_empty() {
        Value::Null
    } else {
        body::decode(bytes, negotiate::encoding(&call.parts.headers)?)?.value
    };
    let kind = body["kind"].as_str().unwrap_or("DeleteOptions");
    if kind != "DeleteOptions" {
        return Err(StatusError::bad_request(format!(
            "a delete takes DeleteOptions, not {kind:?}"
        )));
    }
    let text = |value: &Value| {
        value
            .as_str()
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    };
    let policy =
        text(&body["propagationPolicy"]).or_else(|| call.params.propagation_policy.clone());
    let orphan = body["orphanDependents"] == json!(true);
    let dry_run = match body["dryRun"].as_array() {
        Some(values) => values.iter().try_fold(false, |any, value| {
            request::dry_run("DeleteOptions", value.as_str().unwrap_or("?")).map(|dry| any || dry)
        })?,
        None => false,
    };
    Ok(Options {
        uid: text(&body["preconditions"]["uid"]),
        resource_version: text(&body["preconditions"]["resourceVersion"]),
        propagation: match policy.as_deref() {
            None if orphan => Propagation::Orphan,
            None | Some("Background") => Propagation::Background,
            Some("Foreground") => Propagation::Foreground,
            Some("Orphan") => Propagation::Orphan,
            Some(other) => {
                let supported = ["Background", "Foreground", "Orphan"];
                let cause = names::unsupported("propagationPolicy", &json!(other), &supported);
                return Err(StatusError::invalid_options("DeleteOptions", cause));
            }
        },
        dry_run: dry_run || call.params.dry_run,
    })
}
