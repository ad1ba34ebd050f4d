//! A namespace that is being deleted: empty it, say what holds it, then let it go.
//!
//! New content is refused from the moment deletion began (the create checks the namespace in its own commit), so
//! an empty namespace stays empty.

use serde_json::{Value, json};

use crate::Inner;
use crate::delete::{self, Options};
use crate::object;
use crate::registry::BuiltIn;
use crate::status::Result;
use crate::strategy::{finalize_namespace, seconds};
use crate::write::commit_change;

pub(super) async fn terminate(inner: &Inner, name: &str) -> Result<()> {
    let namespaces = inner.registry.builtin(BuiltIn::Namespace);
    let key = object::key(namespaces, None, name);
    let Some(live) = inner
        .store
        .get(&key)
        .filter(|namespace| namespace.facts.deleting)
    else {
        return Ok(());
    };
    let mut remaining = Vec::new();
    for resource in inner
        .registry
        .stored()
        .filter(|resource| resource.namespaced)
    {
        let content = inner.store.list(&resource.storage, Some(name)).items;
        let fresh = content
            .into_iter()
            .filter(|object| !object.facts.deleting)
            .collect();
        delete::many(inner, resource, fresh, &Options::default()).await?;
        let left = inner.store.list(&resource.storage, Some(name)).items;
        if !left.is_empty() {
            remaining.push((resource.qualified(), left));
        }
    }
    let mut next = object::parse(&live);
    if remaining.is_empty() {
        finalize_namespace(&mut next);
    } else {
        let conditions = conditions(inner, &next, &remaining);
        if next["status"]["conditions"] == conditions {
            return Ok(());
        }
        next["status"]["conditions"] = conditions;
    }
    // A lost race is fine: whatever changed the namespace wakes us again.
    commit_change(inner, namespaces, &live, &next)
        .await
        .map(drop)
}

/// What still holds the namespace, for people who ask why it will not go.
fn conditions(
    inner: &Inner,
    namespace: &Value,
    remaining: &[(String, Vec<std::sync::Arc<heddle_store::Object>>)],
) -> Value {
    let content: Vec<String> = remaining
        .iter()
        .map(|(resource, left)| format!("{resource} has {} resource instances", left.len()))
        .collect();
    let mut finalizers: std::collections::BTreeMap<String, usize> =
        std::collections::BTreeMap::new();
    for object in remaining.iter().flat_map(|(_, left)| left) {
        for finalizer in object::finalizers(&object::parse(object)) {
            *finalizers.entry(finalizer.to_owned()).or_default() += 1;
        }
    }
    let held: Vec<String> = finalizers
        .iter()
        .map(|(finalizer, count)| format!("{finalizer} in {count} resource instances"))
        .collect();
    let condition = |kind: &str, reason: &str, message: String| {
        let same = |c: &&Value| c["type"] == json!(kind) && c["status"] == json!("True");
        let since = namespace["status"]["conditions"]
            .as_array()
            .and_then(|all| all.iter().find(same).cloned());
        let since = since.map_or_else(
            || json!(seconds(inner.clock.now())),
            |c| c["lastTransitionTime"].clone(),
        );
        json!({"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": since})
    };
    let mut conditions = vec![condition(
        "NamespaceContentRemaining",
        "SomeResourcesRemain",
        format!("Some resources are remaining: {}", content.join(", ")),
    )];
    if !held.is_empty() {
        conditions.push(condition(
            "NamespaceFinalizersRemaining",
            "SomeFinalizersRemain",
            format!(
                "Some content in the namespace has finalizers remaining: {}",
                held.join(", ")
            ),
        ));
    }
    Value::Array(conditions)
}
