//! Server-side apply, and who owns what after any other write.
//!
//! An applier states the fields it cares about. Applying merges them into the live object, refuses to overwrite what others own
//! (unless forced), and removes what the applier stated last time, states no more, and nobody else owns. Every other write is an
//! update: it takes over whatever it changed.
//!
//! ```text
//! applied ──> merge into live ──> prune what was applied before ──> conflicts? ──> new owners
//! ```
//!
//! Owners are kept in `metadata.managedFields`. Identity and bookkeeping fields (name, uid, resourceVersion and their like) belong
//! to nobody. What an endpoint does not write (status on the main one) must be left out of `applied` by the caller, who also
//! decides what the result has to pass before it is stored. All managers are read against the one schema of the served version.

mod last_applied;
mod managers;

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::fields::{self, Comparison, Element, FieldSet};
use crate::schema::{DEPTH_MAX, Schema, TypeRef, within_depth};
use managers::{Identity, Managers, Operation};

/// Who writes, and through what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Manager {
    pub name: String,
    pub api_version: String,
    pub subresource: Option<String>,
}

/// A field that someone else owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Conflict {
    /// As messages name the owner: `"kubectl"`, `"app" with subresource "status" using example.com/v1`.
    pub manager: String,
    pub path: Vec<Element>,
}

impl Conflict {
    /// `.spec.replicas`
    pub(crate) fn field(&self) -> String {
        fields::path_text(&self.path)
    }

    /// The message of this conflict's cause in a 409 answer.
    pub(crate) fn message(&self) -> String {
        format!("conflict with {}", self.manager)
    }
}

/// Why nothing was applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ApplyError {
    /// 409: others own these fields; force would take them.
    #[error("{}", conflicts_text(.0))]
    Conflict(Vec<Conflict>),
    /// 400: this cannot be applied to anything.
    #[error("{0}")]
    Invalid(String),
    /// 500: the stored owners cannot be read.
    #[error("failed to decode managed fields: {0}")]
    Corrupt(String),
}

fn conflicts_text(conflicts: &[Conflict]) -> String {
    if let [conflict] = conflicts {
        return format!(
            "Apply failed with 1 conflict: {}: {}",
            conflict.message(),
            conflict.field()
        );
    }
    let mut text = format!("Apply failed with {} conflicts: ", conflicts.len());
    let mut manager = None;
    for conflict in conflicts {
        if manager != Some(&conflict.manager) {
            let separator = if manager.is_some() { "\n" } else { "" };
            text += &format!("{separator}conflicts with {}:", conflict.manager);
            manager = Some(&conflict.manager);
        }
        text += &format!("\n- {}", conflict.field());
    }
    text
}

/// Applies an object to the live one, or creates it. Returns the live object itself when nothing would change but a time.
pub(crate) fn apply(
    live: Option<&Value>,
    applied: &Value,
    manager: &Manager,
    force: bool,
    schema: &Schema,
    now: Timestamp,
) -> Result<Value, ApplyError> {
    let root = schema.root();
    let applied = checked(applied, manager, root)?;
    let live_object = live.map_or_else(|| json!({}), without_managed_fields);
    let stored = Managers::decode(live.and_then(managed_fields)).map_err(ApplyError::Corrupt)?;
    let mut owners = stored.clone();
    if live.is_some() && owners.is_empty() {
        // Nobody was recorded so far; what is there must not be up for grabs.
        let before = Manager {
            name: "before-first-apply".to_owned(),
            ..manager.clone()
        };
        record_update(root, &json!({}), &live_object, &mut owners, &before, now);
    }

    let me = Identity::new(Operation::Apply, manager);
    let version = &manager.api_version;
    let attempt = Attempt {
        root,
        live: &live_object,
        applied: &applied,
        me: &me,
        version,
        now,
    };
    let outcome = attempt.run(owners.clone(), force).or_else(|conflicts| {
        let left = match manager.name == "kubectl" {
            true => last_applied::disputed(conflicts, root, &live_object, &manager.api_version),
            false => conflicts,
        };
        match left.is_empty() {
            true => attempt.run(owners, true),
            false => Err(left),
        }
    });
    let (mut object, owners) = outcome.map_err(ApplyError::Conflict)?;
    if manager.name == "kubectl" && manager.subresource.is_none() {
        last_applied::keep_in_step(&mut object, &applied);
    }
    match live {
        Some(live) if object == live_object && owners.same_owners(&stored) => Ok(live.clone()),
        _ => {
            owners.write(&mut object);
            Ok(object)
        }
    }
}

/// Records in `new` who owns what after a write that was no apply: the writer owns whatever it changed.
pub(crate) fn track_update(
    old: Option<&Value>,
    new: &mut Value,
    manager: &Manager,
    schema: &Schema,
    now: Timestamp,
) {
    let mut owners = owners_before(old, new, manager);
    take_managed_fields(new);
    // Stored without owners: tracking starts with the first apply, which accounts for everything before it.
    if owners.is_empty() && old.is_some()
        || !within_depth(new)
        || old.is_some_and(|old| !within_depth(old))
    {
        return;
    }
    let old = old.map_or_else(|| json!({}), without_managed_fields);
    record_update(schema.root(), &old, new, &mut owners, manager, now);
    owners.cap_updates();
    owners.write(new);
}

/// The owners a write starts from. Clients may rewrite them, clear them with an empty list, or know nothing about them, in which
/// case the stored ones stay. Subresources never change them directly.
fn owners_before(old: Option<&Value>, new: &Value, manager: &Manager) -> Managers {
    let stored = || Managers::decode(old.and_then(managed_fields)).unwrap_or_default();
    if manager.subresource.is_some() {
        return stored();
    }
    match managed_fields(new) {
        Some(Value::Array(entries)) if entries.is_empty() || entries[..] == [json!({})] => {
            Managers::default()
        }
        given => match Managers::decode(given) {
            Ok(owners) if !owners.is_empty() => owners,
            _ => stored(),
        },
    }
}

fn record_update(
    root: TypeRef<'_>,
    old: &Value,
    new: &Value,
    owners: &mut Managers,
    manager: &Manager,
    now: Timestamp,
) {
    let me = Identity::new(Operation::Update, manager);
    let changes = Comparison::of(root, old, new);
    let changed = changes.changed();
    owners.retain_fields(|_, set| set.difference(&changed).difference(&changes.removed));
    let mine = changed.difference(untracked());
    if !mine.is_empty() {
        let before = owners.fields(&me).cloned().unwrap_or_default();
        owners.set(me, &manager.api_version, before.union(&mine), Some(now));
    }
}

struct Attempt<'a> {
    root: TypeRef<'a>,
    live: &'a Value,
    applied: &'a Value,
    me: &'a Identity,
    version: &'a str,
    now: Timestamp,
}

impl Attempt<'_> {
    fn run(&self, mut owners: Managers, force: bool) -> Result<(Value, Managers), Vec<Conflict>> {
        let merged = fields::merge(self.root, Some(self.live), Some(self.applied))
            .unwrap_or_else(|| json!({}));
        let last = owners.fields(self.me).cloned().unwrap_or_default();
        let time = owners.time(self.me);
        owners.set(
            self.me.clone(),
            self.version,
            FieldSet::of_value(self.root, self.applied),
            time,
        );
        let object = self.prune(merged, &owners, &last);

        let changes = Comparison::of(self.root, self.live, &object);
        let changed = changes.changed();
        if !force {
            let conflicts = self.conflicts(&owners, &changed);
            if !conflicts.is_empty() {
                return Err(conflicts);
            }
        }
        owners.retain_fields(|identity, set| match identity == self.me {
            true => set.difference(untracked()),
            false => set.difference(&changed).difference(&changes.removed),
        });
        if object != *self.live {
            owners.touch(self.me, self.now);
        }
        Ok((object, owners))
    }

    fn conflicts(&self, owners: &Managers, changed: &FieldSet) -> Vec<Conflict> {
        let mut conflicts = Vec::new();
        for (identity, set) in owners.iter().filter(|(identity, _)| *identity != self.me) {
            let paths = set.intersection(changed).paths();
            conflicts.extend(paths.into_iter().map(|path| Conflict {
                manager: identity.to_string(),
                path,
            }));
        }
        conflicts.sort_by(|left, right| left.manager.cmp(&right.manager));
        conflicts
    }

    /// Removes what this manager applied last time (`last`), does not apply now, and nobody else owns.
    fn prune(&self, merged: Value, owners: &Managers, last: &FieldSet) -> Value {
        if last.is_empty() {
            return merged;
        }
        let named = |set: &FieldSet| set.with_named_fields(self.root);
        let fields_of = |value: &Value| named(&FieldSet::of_value(self.root, value));
        let last = named(last);
        let merged_fields = fields_of(&merged);

        let mut pruned = merged.clone();
        fields::remove(self.root, &mut pruned, &last);
        // Removing a container takes everything in it along, so what anyone owns is put back,
        let owned = owners
            .iter()
            .fold(FieldSet::default(), |all, (_, set)| all.union(set));
        let mut restored = merged.clone();
        let gone = merged_fields.difference(&fields_of(&pruned).union(&named(&owned)));
        fields::remove(self.root, &mut restored, &gone);
        // and so is what nobody owns but this manager never applied.
        let gone = merged_fields
            .difference(&fields_of(&restored))
            .intersection(&last);
        let mut object = merged;
        fields::remove(self.root, &mut object, &gone);
        object
    }
}

/// The applied object, ready to merge.
fn checked(applied: &Value, manager: &Manager, root: TypeRef<'_>) -> Result<Value, ApplyError> {
    if !applied.is_object() {
        return Err(ApplyError::Invalid(
            "an applied configuration must be an object".to_owned(),
        ));
    }
    if !within_depth(applied) {
        return Err(ApplyError::Invalid(format!(
            "must not be nested deeper than {DEPTH_MAX} levels"
        )));
    }
    if managed_fields(applied).is_some_and(|given| !given.is_null()) {
        return Err(ApplyError::Invalid(
            "metadata.managedFields must be nil".to_owned(),
        ));
    }
    fields::check_items(root, applied).map_err(|problem| {
        let object = described(applied);
        ApplyError::Invalid(format!(
            "failed to create typed patch object ({object}): {problem}"
        ))
    })?;
    let mut applied = applied.clone();
    take_managed_fields(&mut applied);
    if let Some(metadata) = applied.get_mut("metadata").and_then(Value::as_object_mut) {
        // Clients that print the zero time as null mean nothing by it.
        metadata.retain(|name, value| !(name == "creationTimestamp" && value.is_null()));
    }
    if let (Some("status"), Some(fields)) =
        (manager.subresource.as_deref(), applied.as_object_mut())
    {
        fields.retain(|name, _| matches!(name.as_str(), "apiVersion" | "kind" | "status"));
    }
    Ok(applied)
}

/// `default/w; example.com/v1, Kind=Widget`
fn described(object: &Value) -> String {
    let text = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
    let (api_version, kind) = (text("/apiVersion"), text("/kind"));
    // The core group has no name, and is shown as such.
    let group = if api_version.contains('/') { "" } else { "/" };
    format!("{namespace}/{name}; {group}{api_version}, Kind={kind}")
}

/// What belongs to nobody.
fn untracked() -> &'static FieldSet {
    const METADATA: [&str; 10] = [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "selfLink",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "managedFields",
    ];
    static UNTRACKED: std::sync::LazyLock<FieldSet> = std::sync::LazyLock::new(|| {
        let mut set = FieldSet::default();
        for name in ["apiVersion", "kind", "metadata"] {
            set.insert_path(&[Element::field(name)]);
        }
        for name in METADATA {
            set.insert_path(&[Element::field("metadata"), Element::field(name)]);
        }
        set
    });
    &UNTRACKED
}

fn managed_fields(object: &Value) -> Option<&Value> {
    object.get("metadata")?.get("managedFields")
}

fn take_managed_fields(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

fn without_managed_fields(object: &Value) -> Value {
    let copy_metadata = |metadata: &Map<String, Value>| -> Map<String, Value> {
        let fields = metadata
            .iter()
            .filter(|(name, _)| name.as_str() != "managedFields");
        fields
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    let Value::Object(fields) = object else {
        return object.clone();
    };
    let fields = fields
        .iter()
        .map(|(name, value)| match (name.as_str(), value) {
            ("metadata", Value::Object(metadata)) => {
                (name.clone(), Value::Object(copy_metadata(metadata)))
            }
            _ => (name.clone(), value.clone()),
        });
    Value::Object(fields.collect())
}
