//! Owner references: an object goes when the last of its owners is gone, and never before.
//!
//! Invariant: nothing is deleted on a stale view. Owners are looked up in the store itself by uid, and the
//! deletion is bound to the very version of the dependent that was looked at.

use std::sync::Arc;

use heddle_store::{CommitError, Key, Object, Write};
use serde_json::{Value, json};

use crate::Inner;
use crate::delete::{FOREGROUND, ORPHAN, Propagation, removal};
use crate::object::{self, meta_mut, owner_references};
use crate::registry::Resource;
use crate::write::commit_change;

const CHUNK: usize = 256;

/// Looks at each object and does what its owners, or its own deletion, ask for. Returns the keys to try again.
pub(super) async fn settle(inner: &Inner, resource: &Resource, keys: &[Key]) -> Vec<Key> {
    let mut again = Vec::new();
    for chunk in keys.chunks(CHUNK) {
        let mut batch = Vec::new();
        for live in chunk.iter().filter_map(|key| inner.store.get(key)) {
            match verdict(inner, resource, &live) {
                OwnerCheck::Keep => {}
                OwnerCheck::Wait => {}
                OwnerCheck::Delete(propagation) => {
                    batch.extend(removal(inner, resource, &live, propagation))
                }
                OwnerCheck::Change(next) => {
                    match commit_change(inner, resource, &live, &next).await {
                        Ok(Some(_)) => {}
                        Ok(None) | Err(_) => again.push(live.key.clone()),
                    }
                }
                OwnerCheck::Release(dependents) => {
                    if !release(inner, &live, &dependents).await {
                        again.push(live.key.clone());
                    }
                }
            }
        }
        again.extend(commit(inner, batch).await);
    }
    again
}

enum OwnerCheck {
    Keep,
    /// Its own deletion waits for dependents, whose deletion will bring us back here.
    Wait,
    Delete(Propagation),
    Change(Value),
    /// Dependents to be orphaned before it may go.
    Release(Vec<Arc<Object>>),
}

fn verdict(inner: &Inner, resource: &Resource, live: &Object) -> OwnerCheck {
    let value = object::parse(live);
    if live.facts.deleting {
        return own_deletion(inner, live, value);
    }
    let references = owner_references(&value);
    if references.is_empty() {
        return OwnerCheck::Keep;
    }
    let (mut solid, mut waiting) = (Vec::new(), 0);
    for reference in references {
        match owner(inner, resource, live, reference) {
            Owner::Known(owner) if is_deleting_with(&owner, FOREGROUND) => waiting += 1,
            Owner::Known(_) | Owner::Elsewhere => solid.push(reference.clone()),
            Owner::Gone => {}
        }
    }
    if solid.len() == references.len() {
        return OwnerCheck::Keep;
    }
    if !solid.is_empty() {
        let mut next = value;
        meta_mut(&mut next).insert("ownerReferences".to_owned(), json!(solid));
        return OwnerCheck::Change(next);
    }
    let propagation = if waiting > 0 && !inner.store.dependents(&live.facts.uid).is_empty() {
        Propagation::Foreground
    } else if object::finalizers(&value).contains(&ORPHAN) {
        Propagation::Orphan
    } else {
        Propagation::Background
    };
    OwnerCheck::Delete(propagation)
}

/// An object that is being deleted and asked for something to happen to its dependents first.
fn own_deletion(inner: &Inner, live: &Object, value: Value) -> OwnerCheck {
    let finalizers = object::finalizers(&value);
    let dependents = inner.store.dependents(&live.facts.uid);
    if finalizers.contains(&ORPHAN) {
        return OwnerCheck::Release(dependents);
    }
    if !finalizers.contains(&FOREGROUND) {
        return OwnerCheck::Keep;
    }
    let blocks = |dependent: &Arc<Object>| {
        owner_references(&object::parse(dependent))
            .iter()
            .any(|reference| {
                reference["uid"] == json!(&*live.facts.uid)
                    && reference["blockOwnerDeletion"] == json!(true)
            })
    };
    if dependents.iter().any(blocks) {
        return OwnerCheck::Wait;
    }
    OwnerCheck::Change(without_finalizer(value, FOREGROUND))
}

fn without_finalizer(mut value: Value, finalizer: &str) -> Value {
    let rest: Vec<String> = object::finalizers(&value)
        .into_iter()
        .filter(|f| *f != finalizer)
        .map(str::to_owned)
        .collect();
    if rest.is_empty() {
        meta_mut(&mut value).remove("finalizers");
    } else {
        meta_mut(&mut value).insert("finalizers".to_owned(), json!(rest));
    }
    value
}

/// What an owner reference leads to.
enum Owner {
    /// The living object it means: same uid, and really what the reference says it is.
    Known(Arc<Object>),
    /// A kind that is not served here cannot be judged, so it is taken to live.
    Elsewhere,
    Gone,
}

fn owner(inner: &Inner, resource: &Resource, dependent: &Object, reference: &Value) -> Owner {
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    let Some(kind) = inner.registry.by_kind(text("apiVersion"), text("kind")) else {
        return Owner::Elsewhere;
    };
    let Some(owner) = inner.store.by_uid(text("uid")) else {
        return Owner::Gone;
    };
    let same = *kind.storage == *owner.key.resource && text("name") == &*owner.key.name;
    // A namespaced owner must share the namespace; a cluster-scoped dependent can have none.
    let reachable =
        !kind.namespaced || (resource.namespaced && owner.key.namespace == dependent.key.namespace);
    if same && reachable {
        Owner::Known(owner)
    } else {
        Owner::Gone
    }
}

fn is_deleting_with(owner: &Object, finalizer: &str) -> bool {
    owner.facts.deleting && object::finalizers(&object::parse(owner)).contains(&finalizer)
}

/// One commit for all; if any of them changed meanwhile, each is looked at again rather than deleted regardless.
async fn commit(inner: &Inner, batch: Vec<Write>) -> Vec<Key> {
    if batch.is_empty() {
        return Vec::new();
    }
    let keys: Vec<Key> = batch.iter().map(|write| write.key.clone()).collect();
    match inner.store.commit(batch).await {
        Ok(_) => Vec::new(),
        Err(CommitError::Conflict { .. }) => keys,
        Err(error) => {
            tracing::warn!(%error, count = keys.len(), "dependents of deleted owners could not be removed yet");
            keys
        }
    }
}

/// Orphans the dependents, then lets the owner go. True when done.
async fn release(inner: &Inner, owner: &Object, dependents: &[Arc<Object>]) -> bool {
    for dependent in dependents {
        let Some(resource) = inner.registry.by_storage(&dependent.key.resource) else {
            continue;
        };
        let mut next = object::parse(dependent);
        let rest: Vec<Value> = owner_references(&next)
            .iter()
            .filter(|r| r["uid"] != json!(&*owner.facts.uid))
            .cloned()
            .collect();
        if rest.is_empty() {
            meta_mut(&mut next).remove("ownerReferences");
        } else {
            meta_mut(&mut next).insert("ownerReferences".to_owned(), json!(rest));
        }
        if !matches!(
            commit_change(inner, resource, dependent, &next).await,
            Ok(Some(_))
        ) {
            return false;
        }
    }
    let Some(resource) = inner.registry.by_storage(&owner.key.resource) else {
        return true;
    };
    let next = without_finalizer(object::parse(owner), ORPHAN);
    matches!(
        commit_change(inner, resource, owner, &next).await,
        Ok(Some(_))
    )
}
