//! Get and list.

use std::sync::Arc;

use axum::body::Body;
use heddle_store::{Object, ResourceVersion};
use http::{Response, StatusCode};
use serde_json::{Value, json};

use crate::names;
use crate::negotiate;
use crate::pages::{self, Source};
use crate::serve::{Call, bytes_response};
use crate::status::{Result, StatusError};
use crate::table::IncludeObject;
use crate::view::{self, Filter};
use crate::{Inner, account, object};

pub(crate) fn get(inner: &Inner, call: &Call) -> Result<Response<Body>> {
    let form = negotiate::form(&call.parts.headers)?;
    guard_future(inner, &call.params.resource_version)?;
    let key = object::key(&call.resource, call.namespace.as_deref(), call.name());
    let found = inner
        .store
        .get(&key)
        .ok_or_else(|| StatusError::not_found(&call.resource, call.name()))?;
    let bytes = view::bytes(
        &call.resource,
        form,
        &found,
        include_object(call)?,
        inner.clock.now(),
    );
    Ok(bytes_response(StatusCode::OK, bytes))
}

pub(crate) fn list(inner: &Inner, call: &Call) -> Result<Response<Body>> {
    let form = negotiate::form(&call.parts.headers)?;
    let params = &call.params;
    let include = include_object(call)?;
    let filter = Filter::of(call)?;
    let scope = format!(
        "{}|{}|{}|{}",
        call.resource.qualified(),
        call.namespace.as_deref().unwrap_or_default(),
        params.label_selector,
        params.field_selector
    );
    let (kept, source, start) = match &params.continue_token {
        Some(token) => {
            let (id, source, start) = inner.pages.resume(token, &scope)?;
            (Some(id), source, start)
        }
        None => (None, snapshot(inner, call, &filter, scope)?, 0),
    };
    let end = params.limit.map_or(source.items.len(), |limit| {
        source.items.len().min(start.saturating_add(limit))
    });
    let mut meta = view::list_meta(&call.resource, form, source.version);
    if end < source.items.len() {
        let id = kept.unwrap_or_else(|| inner.pages.keep(source.clone()));
        meta["continue"] = json!(pages::token(id, source.version, end));
        if filter.is_open() {
            meta["remainingItemCount"] = json!(source.items.len() - end);
        }
    } else if let Some(id) = kept {
        inner.pages.forget(id);
    }
    let bytes = view::list(
        &call.resource,
        form,
        &source.items[start..end],
        &meta,
        include,
        inner.clock.now(),
    );
    Ok(bytes_response(StatusCode::OK, bytes))
}

fn snapshot(inner: &Inner, call: &Call, filter: &Filter, scope: String) -> Result<Source> {
    let params = &call.params;
    if params.send_initial_events.is_some() {
        let text = "Forbidden: sendInitialEvents is forbidden for list";
        return Err(forbidden("sendInitialEvents", text));
    }
    if !params.resource_version_match.is_empty() && params.resource_version.is_empty() {
        let text =
            "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided";
        return Err(forbidden("resourceVersionMatch", text));
    }
    guard_future(inner, &params.resource_version)?;
    match params.resource_version_match.as_str() {
        "" | "NotOlderThan" => {}
        "Exact" => guard_exact(inner, &params.resource_version)?,
        other => {
            let supported = ["Exact", "NotOlderThan"];
            let cause = names::unsupported("resourceVersionMatch", &json!(other), &supported);
            return Err(StatusError::invalid_options("ListOptions", cause));
        }
    }
    let (store, storage) = (&inner.store, &call.resource.storage);
    // Whoever asks for one name, wherever it is, is not kept waiting for all the others.
    let listing = match filter.name() {
        Some(name) => store.list_named(storage, name),
        None => store.list(storage, call.namespace.as_deref()),
    };
    let items: Arc<[Arc<Object>]> = if filter.is_open() && !filter.hides_smoke {
        listing.items.into()
    } else {
        listing
            .items
            .into_iter()
            .filter(|item| filter.matches(&call.resource, item))
            .collect()
    };
    Ok(Source {
        version: listing.version,
        items,
        scope,
    })
}

/// Parameters of a list or watch that do not go together.
pub(crate) fn forbidden(parameter: &str, text: &str) -> StatusError {
    let cause = names::cause(parameter, "FieldValueForbidden", text);
    StatusError::invalid_options("ListOptions", cause)
}

pub(crate) fn parse_version(text: &str) -> Result<ResourceVersion> {
    text.parse().map_err(|_| {
        StatusError::bad_request(format!(
            "resourceVersion: Invalid value: {text:?}: it is not a number"
        ))
    })
}

fn guard_future(inner: &Inner, asked: &str) -> Result<()> {
    if asked.is_empty() {
        return Ok(());
    }
    let asked = parse_version(asked)?;
    let current = inner.store.version();
    if asked > current {
        Err(StatusError::future_version(asked.get(), current.get()))
    } else {
        Ok(())
    }
}

/// Only the present can be listed: there is no multi-version store behind. An exact read of the past is 410.
fn guard_exact(inner: &Inner, asked: &str) -> Result<()> {
    let asked = parse_version(asked)?;
    if asked.get() == 0 {
        let text =
            "Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
        return Err(forbidden("resourceVersionMatch", text));
    }
    if asked == inner.store.version() {
        return Ok(());
    }
    Err(StatusError::expired(format!(
        "The resourceVersion for the provided list is too old: {asked}"
    )))
}

pub(crate) fn include_object(call: &Call) -> Result<IncludeObject> {
    let text = call.params.include_object.as_deref().unwrap_or_default();
    IncludeObject::parse(text).ok_or_else(|| {
        StatusError::bad_request(format!("unrecognized includeObject value: {text:?}"))
    })
}

/// The answer of a write: the object as stored, in the form the client asked for.
pub(crate) fn written(
    inner: &Inner,
    call: &Call,
    status: StatusCode,
    stored: &Object,
) -> Result<Response<Body>> {
    let form = negotiate::form(&call.parts.headers)?;
    let bytes = view::bytes(
        &call.resource,
        form,
        stored,
        include_object(call)?,
        inner.clock.now(),
    );
    Ok(account::noted(bytes_response(status, bytes), stored))
}

/// The answer of a dry run: what would have been stored, which has no version of its own.
pub(crate) fn imagined(call: &Call, status: StatusCode, value: Value) -> Response<Body> {
    let served = crate::events::to_served(&call.resource, value);
    account::rehearsed(crate::serve::json_response(status, &served))
}
