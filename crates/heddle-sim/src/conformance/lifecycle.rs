//! The end of objects: deletion, finalizers, owners and namespaces; and two kinds that live by their own rules.

mod delete;
mod notices;
mod owners;

use anyhow::Result;
use kube::Client;
use serde_json::{Value, json};

use super::subject::{trigger_json, triggers};
use super::wire::{MERGE, patch, post};
use super::{Check, Scope};

pub(super) fn checks() -> Vec<Check> {
    [delete::checks(), owners::checks(), notices::checks()].concat()
}

/// Creates a Trigger with a finalizer that nobody but [`release`] removes.
pub(super) async fn held(client: &Client, scope: &Scope, name: &str) -> Result<Value> {
    let mut sent = trigger_json(name);
    sent["metadata"]["finalizers"] = json!(["heddle.dev/test"]);
    post(client, &triggers(scope), &sent).await?.accepted(201)
}

/// Removes every finalizer of an object.
pub(super) async fn release(client: &Client, path: &str) -> Result<()> {
    let change = json!({"metadata": {"finalizers": null}});
    patch(client, path, MERGE, &change).await?.accepted(200)?;
    Ok(())
}
