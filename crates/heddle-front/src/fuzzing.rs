//! For the fuzzer: everything here that reads what platforms send.

use http::Method;
use serde_json::{Map, Value};

use crate::error::OsbError;
use crate::wire::{body, query::OsbQuery, request};
use crate::{compare, parameters, route::Route};

/// Any bytes as the body of a request: it is understood, or refused as the platform's fault.
///
/// # Panics
/// When the promise does not hold.
pub fn request_body(soup: &[u8]) {
    let body = match body::parse(soup) {
        Ok(body) => body,
        Err(error) => return is_theirs(&error),
    };
    request::Provision::parse(&body).map_or_else(|error| is_theirs(&error), drop);
    request::Bind::parse(&body).map_or_else(|error| is_theirs(&error), drop);
    match request::Update::parse(&body) {
        Ok(update) => lays_over(&body.members, &update.parameters.unwrap_or_default()),
        Err(error) => is_theirs(&error),
    }
}

/// A line with a path, and behind it a query: both are understood, or refused as the platform's fault.
///
/// # Panics
/// When the promise does not hold.
pub fn request_line(soup: &[u8]) {
    let Ok(text) = std::str::from_utf8(soup) else {
        return;
    };
    let (path, query) = text.split_once('\n').unwrap_or((text, ""));
    let parsed = OsbQuery::of(Some(query));
    assert_eq!(parsed, OsbQuery::of(Some(query)));
    match Route::of(path) {
        Err(error) => is_theirs(&error),
        Ok(route) => {
            for method in [Method::GET, Method::PUT, Method::PATCH, Method::DELETE] {
                route
                    .target
                    .verb(&method)
                    .map_or_else(|error| is_theirs(&error), drop);
            }
        }
    }
}

fn is_theirs(error: &OsbError) {
    assert!(error.status().is_client_error(), "{error}");
    assert!(!error.to_string().is_empty());
}

/// What is laid over once is there; a second time changes nothing.
fn lays_over(base: &Map<String, Value>, over: &Map<String, Value>) {
    let once = parameters::merged(base, over);
    let twice = parameters::merged(&once, over);
    assert!(compare::same_object(&once, &twice));
    let (once, twice) = (Value::Object(once), Value::Object(twice));
    assert_eq!(compare::hash(&once), compare::hash(&twice));
}

#[cfg(test)]
mod tests;
