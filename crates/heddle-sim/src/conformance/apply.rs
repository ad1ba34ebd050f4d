//! Server-side apply: each manager owns what it applied, keeps nothing it stopped applying, and tramples on nobody.

mod merge;
mod ownership;

use anyhow::{Context as _, Result};
use kube::Client;
use serde_json::Value;

use super::subject::triggers;
use super::wire::{APPLY, WireResponse, patch};
use super::{Check, Scope};

pub(super) fn checks() -> Vec<Check> {
    [merge::checks(), ownership::checks()].concat()
}

/// Applies a Trigger as a manager.
pub(super) async fn apply(
    client: &Client,
    scope: &Scope,
    manager: &str,
    object: &Value,
) -> Result<WireResponse> {
    let name = object["metadata"]["name"].as_str().context("no name")?;
    let path = format!("{}/{name}?fieldManager={manager}", triggers(scope));
    patch(client, &path, APPLY, object).await
}

/// The managers of an object that own at least one field, by name.
pub(super) fn owners(object: &Value) -> Vec<&str> {
    let mut names: Vec<_> = object["metadata"]["managedFields"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|entry| entry["manager"].as_str())
        .collect();
    names.sort_unstable();
    names
}

pub(super) fn manager<'a>(object: &'a Value, name: &str) -> Result<&'a Value> {
    object["metadata"]["managedFields"]
        .as_array()
        .and_then(|entries| entries.iter().find(|entry| entry["manager"] == name))
        .with_context(|| format!("{name:?} manages nothing"))
}

/// What a manager owns, or null.
pub(super) fn fields<'a>(object: &'a Value, name: &str) -> &'a Value {
    const NOTHING: &Value = &Value::Null;
    manager(object, name).map_or(NOTHING, |entry| &entry["fieldsV1"])
}
