//! What two endings must have in common.

use std::collections::BTreeMap;

use heddle_apiserver::ApiServer;
use serde_json::Value;

/// How a run ended.
#[derive(Debug, Clone, Default)]
pub struct Ending {
    /// Every object but bookkeeping, without what may differ between runs.
    pub objects: BTreeMap<String, Value>,
    /// How often each object was removed.
    pub removals: BTreeMap<String, usize>,
    /// How often each action of a bundle ran for each instance or binding.
    pub runs: BTreeMap<String, usize>,
    /// How many runs ran more than once under one id.
    pub repeated: usize,
    /// Writes after everything had come to rest: there should be none.
    pub noise: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    Held,
    Violated(String),
}

/// The end state is the same, nothing was destroyed that the reference did not destroy, no action ran that did not run there,
/// and it is quiet.
pub(super) fn judge(reference: &Ending, ending: &Ending) -> Judgement {
    for (key, expected) in &reference.objects {
        match ending.objects.get(key) {
            None => return Judgement::Violated(format!("{key} is missing")),
            Some(found) if found != expected => {
                return Judgement::Violated(format!(
                    "{key} differs at {}",
                    difference("", expected, found)
                ));
            }
            Some(_) => {}
        }
    }
    if let Some(extra) = ending
        .objects
        .keys()
        .find(|key| !reference.objects.contains_key(*key))
    {
        return Judgement::Violated(format!("{extra} should not exist"));
    }
    for (key, count) in &ending.removals {
        if *count > reference.removals.get(key).copied().unwrap_or_default() {
            return Judgement::Violated(format!("{key} was removed {count} times"));
        }
    }
    for (key, count) in &ending.runs {
        let expected = reference.runs.get(key).copied().unwrap_or_default();
        if *count > expected {
            return Judgement::Violated(format!("{key}: {count} times instead of {expected}"));
        }
    }
    if ending.repeated > 0 {
        return Judgement::Violated(format!("{} runs ran again", ending.repeated));
    }
    if ending.noise > 0 {
        return Judgement::Violated(format!("{} writes at the fixpoint", ending.noise));
    }
    Judgement::Held
}

/// The first place where two values part ways.
fn difference(path: &str, expected: &Value, found: &Value) -> String {
    match (expected, found) {
        (Value::Object(a), Value::Object(b)) => {
            let key = a
                .keys()
                .chain(b.keys())
                .find(|key| a.get(*key) != b.get(*key));
            let Some(key) = key else {
                return path.to_owned();
            };
            let side =
                |map: &serde_json::Map<String, Value>| map.get(key).cloned().unwrap_or(Value::Null);
            difference(&format!("{path}.{key}"), &side(a), &side(b))
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let index = a
                .iter()
                .zip(b)
                .position(|(a, b)| a != b)
                .unwrap_or_default();
            difference(&format!("{path}[{index}]"), &a[index], &b[index])
        }
        _ => format!("{path}: expected {expected}, found {found}"),
    }
}

/// Everything the server holds, normalised.
pub(super) fn snapshot(server: &ApiServer) -> BTreeMap<String, Value> {
    let mut objects = BTreeMap::new();
    for resource in server.registry().stored() {
        if matches!(
            resource.kind.as_str(),
            "Event" | "Lease" | "CustomResourceDefinition" | "SyncRun"
        ) {
            continue;
        }
        for item in server.store().list(&resource.storage, None).items {
            let mut value: Value =
                serde_json::from_slice(&item.json()).expect("a stored object is valid JSON");
            forget_identity(&mut value);
            objects.insert(item.key.to_string(), value);
        }
    }
    objects
}

/// Uids, versions, times and what was drawn by chance differ between runs; ownership is kept, but not when it was recorded. Generations
/// count how often something was mended on the way.
fn forget_identity(value: &mut Value) {
    const VOLATILE: [&str; 17] = [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "generation",
        "observedGeneration",
        "time",
        "lastTransitionTime",
        "since",
        "startedAt",
        "finishedAt",
        "goneAt",
        "withdrawnAt",
        "token",
        // Which reading it was, and when.
        "syncRun",
        "lastSyncRun",
        "lastReading",
        "lastSuccess",
    ];
    match value {
        Value::Object(fields) => {
            // The progress of an operation says since when it waits.
            if fields.contains_key("state") {
                fields.remove("description");
            }
            // The id of a run follows from the uid of what it is for.
            if fields.contains_key("attempt") {
                fields.remove("id");
            }
            // A record and a tombstone are objects that are kept as text.
            for key in ["record", "tombstone"] {
                if let Some(Value::String(text)) = fields.get(key)
                    && let Ok(record) = serde_json::from_str(text)
                {
                    fields.insert(key.to_owned(), record);
                }
            }
            fields.retain(|name, _| {
                !VOLATILE.contains(&name.as_str()) && !name.starts_with("k:{\"uid\"")
            });
            // Annotations fingerprint what was applied, owner uid included.
            fields.remove("heddle.dev/applied");
            fields.values_mut().for_each(forget_identity);
            // Entries stand in the order of their times, which are forgotten.
            if let Some(Value::Array(entries)) = fields.get_mut("managedFields") {
                entries
                    .sort_by_key(|entry| format!("{}/{}", entry["manager"], entry["subresource"]));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(forget_identity),
        _ => {}
    }
}
