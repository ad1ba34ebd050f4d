//! Create, replace and the four kinds of patch.
//!
//! The new object is worked out from a snapshot, outside the store's writer, and committed only if the object
//! still has the version it was worked out from. A patch that loses such a race is worked out again from the
//! newer object; a replace that names a version is told 409, because only its sender can decide.

use axum::body::Body;
use heddle_api::smoke;
use heddle_store::{CommitError, Expect, Key, Object, Op, Write};
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};
use std::sync::Arc;

use crate::apply::{self, ApplyError, Conflict, Manager};
use crate::auth::CONTROLLERS;
use crate::names;
use crate::negotiate::{self, Encoding, PatchType};
use crate::object::{self, meta_mut, meta_str};
use crate::patch::{self as patches, PatchError};
use crate::read::{imagined, written};
use crate::registry::{BuiltIn, Nature, Resource};
use crate::request::FieldValidation;
use crate::schema::Cause;
use crate::serve::Call;
use crate::status::{Result, StatusError};
use crate::strategy::{self, Context, Ownership, Part};
use crate::{Inner, body, events};

/// How often a patch is worked out anew after losing a race, before its sender is told.
const ATTEMPTS_MAX: usize = 64;

/// What a client did to the object, and what it should be told beside the result.
struct Changed {
    object: Value,
    warnings: Vec<String>,
}

/// A whole object as it was sent, of the kind and in the namespace that the call names.
fn decode_whole(call: &Call, bytes: &[u8]) -> Result<body::Decoded> {
    let mut sent = body::decode(bytes, negotiate::encoding(&call.parts.headers)?)?;
    strategy::claim(&call.resource, &mut sent.value)?;
    settle_namespace(call, &mut sent.value)?;
    Ok(sent)
}

pub(crate) async fn create(
    inner: &Arc<Inner>,
    call: &Call,
    bytes: &[u8],
) -> Result<Response<Body>> {
    let mut sent = decode_whole(call, bytes)?;
    let ctx = context(inner, call);
    let served = served_context(inner, call);
    let warnings = strategy::prune(&served, &mut sent.value, &sent.duplicates)?;
    let object = events::to_stored(&call.resource, sent.value);
    let response = insert(inner, call, &ctx, object, Ownership::Track).await?;
    Ok(warn(response, &warnings))
}

/// Why nobody makes what lists would not show them.
const RESERVED: &str =
    "names that begin with heddle-smoke- belong to heddle's smoke tests; choose another";

/// Stores a new object. Shared by create and by an apply that finds nothing to apply to.
async fn insert(
    inner: &Arc<Inner>,
    call: &Call,
    ctx: &Context<'_>,
    object: Value,
    ownership: Ownership,
) -> Result<Response<Body>> {
    for _ in 0..ATTEMPTS_MAX {
        let guard = namespace_guard(inner, call, &object)?;
        events::guard(&call.resource, &object)?;
        let prepared = strategy::create(ctx, object.clone(), ownership)?;
        let name = object::name(&prepared).to_owned();
        let key = object::key(ctx.resource, call.namespace.as_deref(), &name);
        if smoke::is_part(&key.namespace, &key.name) && !call.identity.is_in(CONTROLLERS) {
            return Err(StatusError::forbidden_object(
                &call.resource,
                &name,
                RESERVED,
            ));
        }
        if call.params.dry_run {
            if inner.store.get(&key).is_some() {
                return Err(StatusError::already_exists(&call.resource, &name));
            }
            return Ok(imagined(call, StatusCode::CREATED, prepared));
        }
        let mut batch: Vec<Write> = guard.into_iter().collect();
        batch.push(Write {
            key: key.clone(),
            expect: Expect::Absent,
            op: Op::Put(object::draft(&prepared)),
        });
        match inner.store.commit(batch).await {
            Ok(stored) => return written(inner, call, StatusCode::CREATED, &stored[0]),
            Err(CommitError::Conflict { key: lost, .. }) if lost != key => {}
            Err(CommitError::Conflict { .. }) if meta_str(&object, "name").is_empty() => {}
            Err(CommitError::Conflict { .. }) => {
                return Err(StatusError::already_exists(&call.resource, &name));
            }
            Err(error) => return Err(refuse(error)),
        }
    }
    Err(StatusError::conflict(
        &call.resource,
        object::name(&object),
        "the namespace changed too often meanwhile",
    ))
}

pub(crate) async fn replace(
    inner: &Arc<Inner>,
    call: &Call,
    bytes: &[u8],
) -> Result<Response<Body>> {
    let mut sent = decode_whole(call, bytes)?;
    guard_name(call, &sent.value)?;
    let served = served_context(inner, call);
    let warnings = strategy::prune(&served, &mut sent.value, &sent.duplicates)?;
    let object = sent.value;
    let blind = meta_str(&object, "resourceVersion").is_empty();
    let change = |_: &Value| {
        if blind && !call.resource.allows_blind_update() {
            let text = "Invalid value: 0: must be specified for an update";
            let cause = names::cause("metadata.resourceVersion", "FieldValueInvalid", text);
            return Err(StatusError::invalid(&call.resource, call.name(), &[cause]));
        }
        Ok(Changed {
            object: object.clone(),
            warnings: warnings.clone(),
        })
    };
    change_object(inner, call, change).await
}

pub(crate) async fn patch(inner: &Arc<Inner>, call: &Call, bytes: &[u8]) -> Result<Response<Body>> {
    let builtin = matches!(call.resource.nature, Nature::BuiltIn(_));
    let kind = negotiate::patch_type(&call.parts.headers, builtin)?;
    if kind == PatchType::Apply {
        return apply(inner, call, bytes).await;
    }
    if call.params.force {
        let text = "Forbidden: may not be specified for non-apply patch";
        let cause = names::cause("force", "FieldValueForbidden", text);
        return Err(StatusError::invalid_options("PatchOptions", cause));
    }
    let decoded = body::decode(bytes, Encoding::Json)?;
    let change = |live: &Value| {
        let mut object = live.clone();
        match kind {
            PatchType::Json => patches::json(&mut object, &decoded.value),
            PatchType::Strategic => patches::strategic(&mut object, &decoded.value),
            _ => patches::merge(&mut object, &decoded.value),
        }
        .map_err(refuse_patch)?;
        strategy::claim(&call.resource, &mut object)?;
        guard_uid(call, live, &object)?;
        let warnings = strategy::prune(
            &served_context(inner, call),
            &mut object,
            &decoded.duplicates,
        )?;
        Ok(Changed { object, warnings })
    };
    change_object(inner, call, change).await
}

/// The read, change, compare-and-swap loop of every write to an object that exists.
async fn change_object(
    inner: &Arc<Inner>,
    call: &Call,
    change: impl Fn(&Value) -> Result<Changed>,
) -> Result<Response<Body>> {
    let ctx = context(inner, call);
    let key = object::key(ctx.resource, call.namespace.as_deref(), call.name());
    for _ in 0..ATTEMPTS_MAX {
        let live = inner
            .store
            .get(&key)
            .ok_or_else(|| StatusError::not_found(&call.resource, call.name()))?;
        let old = object::parse(&live);
        let changed = change(&events::served(&call.resource, &old))?;
        let new = events::to_stored(&call.resource, changed.object);
        guard_version(call, &new, &live)?;
        let settled = strategy::update(&ctx, &old, new, call.part, Ownership::Track)?;
        match store(inner, call, &ctx, &live, settled).await? {
            Some(response) => return Ok(warn(response, &changed.warnings)),
            None => continue,
        }
    }
    Err(StatusError::modified(&call.resource, call.name()))
}

/// Commits a settled change. `None` means that the object changed meanwhile.
async fn store(
    inner: &Arc<Inner>,
    call: &Call,
    ctx: &Context<'_>,
    live: &Arc<Object>,
    settled: Option<Value>,
) -> Result<Option<Response<Body>>> {
    let Some(object) = settled else {
        return written(inner, call, StatusCode::OK, live).map(Some);
    };
    if call.params.dry_run {
        return Ok(Some(imagined(call, StatusCode::OK, object)));
    }
    match commit_change(inner, ctx.resource, live, &object).await? {
        Some(stored) => written(inner, call, StatusCode::OK, &stored).map(Some),
        None => Ok(None),
    }
}

/// Puts the next state of an object, or removes it when nothing holds it any longer. `None`: lost the race.
pub(crate) async fn commit_change(
    inner: &Inner,
    resource: &Resource,
    live: &Object,
    object: &Value,
) -> Result<Option<Arc<Object>>> {
    let draft = object::draft(object);
    let op = if strategy::is_released(resource, object) {
        Op::Remove(draft)
    } else {
        Op::Put(draft)
    };
    let write = Write {
        key: live.key.clone(),
        expect: Expect::Version(live.version),
        op,
    };
    match inner.store.commit(vec![write]).await {
        Ok(mut stored) => Ok(stored.pop()),
        Err(CommitError::Conflict { .. }) => Ok(None),
        Err(error) => Err(refuse(error)),
    }
}

async fn apply(inner: &Arc<Inner>, call: &Call, bytes: &[u8]) -> Result<Response<Body>> {
    if call.params.field_manager.is_none() {
        let text = "Required value: is required for apply patch";
        let cause = names::cause("fieldManager", "FieldValueRequired", text);
        return Err(StatusError::invalid_options("PatchOptions", cause));
    }
    let decoded = body::yaml(bytes)?;
    let mut applied = decoded.value;
    if !applied["apiVersion"].is_string() || !applied["kind"].is_string() {
        return Err(StatusError::bad_request(
            "an apply patch must name its apiVersion and kind",
        ));
    }
    strategy::claim(&call.resource, &mut applied)?;
    settle_namespace(call, &mut applied)?;
    if applied["metadata"]
        .get("managedFields")
        .is_some_and(|m| m.as_array().is_some_and(|m| !m.is_empty()))
    {
        return Err(StatusError::bad_request(
            "metadata.managedFields must be nil",
        ));
    }
    guard_name(call, &applied)?;
    meta_mut(&mut applied).insert("name".to_owned(), json!(call.name()));
    keep_written_part(call, &mut applied);
    // Nobody can own a field that does not exist, so it is refused however lenient the sender wants to be.
    let strict = Context {
        validation: FieldValidation::Strict,
        ..served_context(inner, call)
    };
    strategy::prune(&strict, &mut applied, &[])?;
    let served = served_context(inner, call);
    let warnings = strategy::prune(&served, &mut applied, &decoded.duplicates)?;
    let ctx = context(inner, call);
    let key = object::key(ctx.resource, call.namespace.as_deref(), call.name());
    for _ in 0..ATTEMPTS_MAX {
        let response = match inner.store.get(&key) {
            Some(live) => apply_onto(inner, call, &ctx, &live, &applied).await?,
            None => apply_anew(inner, call, &ctx, &applied).await?,
        };
        if let Some(response) = response {
            return Ok(warn(response, &warnings));
        }
    }
    Err(StatusError::modified(&call.resource, call.name()))
}

/// An applier owns only what its endpoint writes: not the status here, nothing but the status there.
fn keep_written_part(call: &Call, applied: &mut Value) {
    let Some(fields) = applied.as_object_mut().filter(|_| call.resource.has_status) else {
        return;
    };
    match call.part {
        Part::Main => {
            fields.remove("status");
        }
        Part::Status => {
            fields.retain(|field, _| {
                matches!(
                    field.as_str(),
                    "apiVersion" | "kind" | "metadata" | "status"
                )
            });
            let identity = ["name", "namespace", "uid", "resourceVersion"];
            meta_mut(applied).retain(|field, _| identity.contains(&field.as_str()));
        }
    }
}

async fn apply_onto(
    inner: &Arc<Inner>,
    call: &Call,
    ctx: &Context<'_>,
    live: &Arc<Object>,
    applied: &Value,
) -> Result<Option<Response<Body>>> {
    let old = object::parse(live);
    guard_version(call, applied, live)?;
    let served = events::served(&call.resource, &old);
    let merged = merge_applied(call, ctx, Some(&served), applied)?;
    let new = events::to_stored(&call.resource, merged);
    let settled = strategy::update(ctx, &old, new, call.part, Ownership::Settled)?;
    store(inner, call, ctx, live, settled).await
}

async fn apply_anew(
    inner: &Arc<Inner>,
    call: &Call,
    ctx: &Context<'_>,
    applied: &Value,
) -> Result<Option<Response<Body>>> {
    if call.part == Part::Status {
        return Err(StatusError::not_found(&call.resource, call.name()));
    }
    let uid = meta_str(applied, "uid");
    if !uid.is_empty() {
        let why = format!(
            "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        );
        return Err(StatusError::conflict(&call.resource, call.name(), &why));
    }
    if !meta_str(applied, "resourceVersion").is_empty() {
        // The sender means one particular object, and that one is gone.
        return Err(StatusError::conflict(
            &call.resource,
            call.name(),
            "the object to apply to does not exist any more",
        ));
    }
    let merged = merge_applied(call, ctx, None, applied)?;
    match insert(
        inner,
        call,
        ctx,
        events::to_stored(&call.resource, merged),
        Ownership::Settled,
    )
    .await
    {
        Ok(response) => Ok(Some(response)),
        Err(refusal) if refusal.reason == "AlreadyExists" => Ok(None),
        Err(refusal) => Err(refusal),
    }
}

fn merge_applied(
    call: &Call,
    ctx: &Context<'_>,
    live: Option<&Value>,
    applied: &Value,
) -> Result<Value> {
    let merged = apply::apply(
        live,
        applied,
        &ctx.manager,
        call.params.force,
        &call.resource.schema,
        ctx.now,
    );
    merged.map_err(|error| {
        let message = error.to_string();
        match error {
            ApplyError::Conflict(conflicts) => {
                let cause = |conflict: &Conflict| {
                    names::cause(
                        &conflict.field(),
                        "FieldManagerConflict",
                        &conflict.message(),
                    )
                };
                let causes: Vec<Cause> = conflicts.iter().map(cause).collect();
                StatusError::apply_conflict(message, &causes)
            }
            ApplyError::Invalid(_) => StatusError::bad_request(message),
            ApplyError::Corrupt(_) => StatusError::internal(message),
        }
    })
}

/// A version named in the body is a precondition, on replace and on every patch alike.
fn guard_version(call: &Call, new: &Value, live: &Object) -> Result<()> {
    let wanted = meta_str(new, "resourceVersion");
    if wanted.is_empty() || wanted == live.version.to_string() {
        return Ok(());
    }
    if wanted == "0" && call.resource.allows_blind_update() {
        return Ok(());
    }
    Err(StatusError::modified(&call.resource, call.name()))
}

/// A replace that names another uid means another object; a patch that does would change this one.
fn guard_uid(call: &Call, live: &Value, patched: &Value) -> Result<()> {
    let given = meta_str(patched, "uid");
    if given.is_empty() || given == meta_str(live, "uid") {
        return Ok(());
    }
    let cause = names::invalid("metadata.uid", given, "field is immutable");
    Err(StatusError::invalid(&call.resource, call.name(), &[cause]))
}

/// Refuses an object that calls itself something else than the path does.
fn guard_name(call: &Call, object: &Value) -> Result<()> {
    let given = meta_str(object, "name");
    if given.is_empty() || given == call.name() {
        return Ok(());
    }
    Err(StatusError::bad_request(format!(
        "the name of the object ({given}) does not match the name on the URL ({})",
        call.name()
    )))
}

/// Makes the object's namespace that of the path, or refuses a contradiction.
fn settle_namespace(call: &Call, object: &mut Value) -> Result<()> {
    let given = meta_str(object, "namespace").to_owned();
    let Some(namespace) = &call.namespace else {
        meta_mut(object).remove("namespace");
        return Ok(());
    };
    if !given.is_empty() && given != *namespace {
        return Err(StatusError::bad_request(format!(
            "the namespace of the provided object does not match the namespace sent on the request ({given} is not {namespace})"
        )));
    }
    meta_mut(object).insert("namespace".to_owned(), json!(namespace));
    Ok(())
}

/// New content needs a namespace that exists and stays; the commit checks that it has not changed meanwhile.
fn namespace_guard(inner: &Inner, call: &Call, object: &Value) -> Result<Option<Write>> {
    let Some(namespace) = &call.namespace else {
        return Ok(None);
    };
    let namespaces = inner.registry.builtin(BuiltIn::Namespace);
    let key: Key = object::key(namespaces, None, namespace);
    let found = inner
        .store
        .get(&key)
        .ok_or_else(|| StatusError::namespace_not_found(namespace))?;
    if found.facts.deleting {
        let why = format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        );
        let mut refusal = StatusError::forbidden_object(&call.resource, object::name(object), &why);
        if let Some(details) = refusal.details.as_mut() {
            details["causes"] = json!([{
                "reason": "NamespaceTerminating", "message": format!("namespace {namespace} is being terminated"),
                "field": "metadata.namespace",
            }]);
        }
        return Err(refusal);
    }
    Ok(Some(Write {
        key,
        expect: Expect::Version(found.version),
        op: Op::Check,
    }))
}

/// The rules of the stored form of the kind; for all kinds but one that is the served form as well.
fn context<'a>(inner: &'a Inner, call: &'a Call) -> Context<'a> {
    let resource = inner
        .registry
        .by_storage(&call.resource.storage)
        .unwrap_or(&call.resource);
    Context {
        resource,
        ..served_context(inner, call)
    }
}

fn served_context<'a>(inner: &'a Inner, call: &'a Call) -> Context<'a> {
    Context {
        resource: &call.resource,
        now: inner.clock.now(),
        chance: &inner.chance,
        manager: Manager {
            name: call.field_manager(),
            api_version: call.resource.api_version(),
            subresource: (call.part == Part::Status).then(|| "status".to_owned()),
        },
        validation: call.params.field_validation,
    }
}

fn refuse_patch(error: PatchError) -> StatusError {
    match error {
        PatchError::Malformed(text) => StatusError::bad_request(text),
        PatchError::TooLarge(text) => StatusError::too_large_because(text),
        PatchError::Inapplicable(text) => StatusError::unprocessable(text),
    }
}

pub(crate) fn refuse(error: CommitError) -> StatusError {
    match error {
        CommitError::Conflict { key, .. } => {
            StatusError::internal(format!("unexpected conflict on {}", key.name))
        }
        CommitError::Invalid { key, reason } => {
            StatusError::internal(format!("{}: {reason}", key.name))
        }
        CommitError::Full => StatusError::storage_full(),
        CommitError::TooLarge { bytes_max, .. } => StatusError::too_large(bytes_max),
        CommitError::Poisoned => StatusError::unavailable(
            "a write to disk failed: nothing more is acknowledged until heddle is restarted and has recovered; whether this \
             request was carried out is unknown until then: read again before repeating it",
        ),
        CommitError::Closed => StatusError::unavailable("heddle is shutting down"),
    }
}

/// `Warning: 299` headers, one per finding, as kubectl prints them.
fn warn(mut response: Response<Body>, warnings: &[String]) -> Response<Body> {
    const WARNING_COUNT_MAX: usize = 32;
    for warning in warnings.iter().take(WARNING_COUNT_MAX) {
        let text: String = warning
            .chars()
            .filter(|c| c.is_ascii() && !c.is_ascii_control())
            .take(256)
            .collect();
        let text = text.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{text}\"")) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
    response
}
