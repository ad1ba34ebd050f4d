//! What happens to an object between "decoded" and "stored": the create and update rules, without IO.
//!
//! ```text
//! decoded -> pruned -> defaulted -> metadata kept honest -> ownership recorded -> validated -> stored
//! ```
//! Every write path (create, replace, the four patches, status) ends here, so that validation, defaulting,
//! immutability and the separation of spec and status hold for all of them alike.

use heddle_rt::Chance;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::apply::{self, Manager};
use crate::names;
use crate::object::{self, meta_mut, meta_str};
use crate::registry::{BuiltIn, Nature, Resource};
use crate::request::FieldValidation;
use crate::schema::Cause;
use crate::status::{Result, StatusError};

mod builtin;
#[cfg(test)]
mod tests;

pub(crate) use builtin::finalize_namespace;

/// What a write needs to know beside the object: who, when, how strictly.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub resource: &'a Resource,
    pub now: Timestamp,
    pub chance: &'a Chance,
    pub manager: Manager,
    pub validation: FieldValidation,
}

/// Where an object's `managedFields` come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// Work out what this write changed, and record it for the manager.
    Track,
    /// Server-side apply has settled it already.
    Settled,
}

/// Whether a write addresses the object or its status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Main,
    Status,
}

/// Checks that the document is of the kind the path names. A built-in kind may be left out, since the path implies it.
pub(crate) fn claim(resource: &Resource, object: &mut Value) -> Result<()> {
    let Some(fields) = object.as_object_mut() else {
        return Err(StatusError::bad_request(
            "the body of the request is not an object",
        ));
    };
    let expected = resource.api_version();
    let builtin = matches!(resource.nature, Nature::BuiltIn(_));
    for (field, title, want) in [
        ("kind", "Kind", resource.kind.as_str()),
        ("apiVersion", "apiVersion", expected.as_str()),
    ] {
        match fields.get(field).and_then(Value::as_str) {
            None | Some("") if builtin => {
                fields.insert(field.to_owned(), json!(want));
            }
            None | Some("") => {
                return Err(StatusError::bad_request(format!(
                    "the object provided is unrecognized (must be of type {}): Object '{title}' is missing",
                    resource.kind
                )));
            }
            Some(got) if got == want => {}
            Some(got) => return Err(wrong_kind(resource, fields, field, got)),
        }
    }
    match fields.get("metadata") {
        None | Some(Value::Null) => Ok(()),
        // Labels that are numbers, finalizers that are maps: whatever reads the object later relies on the types.
        Some(metadata) => names::metadata_type_fault(metadata).map_or(Ok(()), |fault| {
            let kind = &resource.kind;
            Err(StatusError::bad_request(format!(
                "{kind} in version {:?} cannot be handled as a {kind}: {fault}",
                resource.version
            )))
        }),
    }
}

fn wrong_kind(
    resource: &Resource,
    fields: &serde_json::Map<String, Value>,
    field: &str,
    got: &str,
) -> StatusError {
    let want = &resource.kind;
    if matches!(resource.nature, Nature::BuiltIn(_)) {
        return StatusError::bad_request(format!(
            "a document with {field} {got:?} cannot be handled as a {want}"
        ));
    }
    if field == "kind" {
        let text = format!("Invalid value: {got:?}: must be {want}");
        let name = fields
            .get("metadata")
            .and_then(|meta| meta["name"].as_str())
            .unwrap_or_default();
        let cause = names::cause("kind", "FieldValueInvalid", &text);
        return StatusError::invalid(resource, name, &[cause]);
    }
    StatusError::bad_request(format!(
        "the API version in the data ({got}) does not match the expected API version ({})",
        resource.api_version()
    ))
}

/// Drops what the schema does not know. Strict readers are refused, lenient ones warned.
pub(crate) fn prune(
    ctx: &Context<'_>,
    object: &mut Value,
    duplicates: &[String],
) -> Result<Vec<String>> {
    let mut faults: Vec<String> = duplicates
        .iter()
        .map(|path| format!("duplicate field {path:?}"))
        .collect();
    faults.extend(
        ctx.resource
            .schema
            .prune(object)
            .into_iter()
            .map(|path| format!("unknown field {path:?}")),
    );
    match ctx.validation {
        FieldValidation::Strict if !faults.is_empty() => {
            let kind = &ctx.resource.kind;
            let version = &ctx.resource.version;
            Err(StatusError::bad_request(format!(
                "{kind} in version {version:?} cannot be handled as a {kind}: strict decoding error: {}",
                faults.join(", ")
            )))
        }
        FieldValidation::Warn => Ok(faults),
        FieldValidation::Strict | FieldValidation::Ignore => Ok(Vec::new()),
    }
}

/// Rules of creation. The caller has claimed and pruned the object and set its namespace.
pub(crate) fn create(ctx: &Context<'_>, mut object: Value, ownership: Ownership) -> Result<Value> {
    let meta = meta_mut(&mut object);
    if meta
        .get("resourceVersion")
        .and_then(Value::as_str)
        .is_some_and(|v| !v.is_empty())
    {
        return Err(StatusError::bad_request(
            "resourceVersion should not be set on objects to be created",
        ));
    }
    for field in [
        "uid",
        "selfLink",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "resourceVersion",
    ] {
        meta.remove(field);
    }
    drop_empty(meta);
    generate_name(ctx, meta)?;
    meta.insert("uid".to_owned(), json!(ctx.chance.uuid()));
    meta.insert("creationTimestamp".to_owned(), json!(seconds(ctx.now)));
    if counts_generations(ctx.resource) {
        meta.insert("generation".to_owned(), json!(1));
    } else {
        meta.remove("generation");
    }
    if ctx.resource.has_status {
        object
            .as_object_mut()
            .expect("claimed objects are objects")
            .remove("status");
    }
    builtin::on_create(ctx.resource, &mut object)?;
    ctx.resource.schema.default(&mut object);
    if ownership == Ownership::Track {
        apply::track_update(
            None,
            &mut object,
            &ctx.manager,
            &ctx.resource.schema,
            ctx.now,
        );
    }
    builtin::begin(ctx.resource, &mut object);
    fill_in(ctx.resource, &mut object);
    validate(ctx, &object, None)?;
    Ok(object)
}

/// What follows from the rest of the object. It belongs to no manager of fields: nobody sent it.
fn fill_in(resource: &Resource, object: &mut Value) {
    if let Some(defaults) = resource.defaults {
        defaults(object);
    }
}

/// Rules of change: what may not change is kept, what changed is validated. Returns `None` for a no-op.
pub(crate) fn update(
    ctx: &Context<'_>,
    old: &Value,
    mut new: Value,
    part: Part,
    ownership: Ownership,
) -> Result<Option<Value>> {
    let name = object::name(old).to_owned();
    let given = meta_str(&new, "name");
    if !given.is_empty() && given != name {
        return Err(StatusError::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        )));
    }
    let uid = meta_str(&new, "uid");
    if !uid.is_empty() && uid != meta_str(old, "uid") {
        let why = format!(
            "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
            meta_str(old, "uid")
        );
        return Err(StatusError::conflict(ctx.resource, &name, &why));
    }
    if part == Part::Main {
        guard_deletion_time(ctx.resource, old, &new, &name)?;
    }
    keep_metadata(old, &mut new, part);
    keep_other_part(ctx.resource, old, &mut new, part);
    builtin::on_update(ctx.resource, old, &mut new, &name)?;
    ctx.resource.schema.default(&mut new);
    count_generation(ctx.resource, old, &mut new);
    if part == Part::Main {
        guard_finalizers(ctx.resource, old, &new, &name)?;
    }
    if ownership == Ownership::Track {
        apply::track_update(
            Some(old),
            &mut new,
            &ctx.manager,
            &ctx.resource.schema,
            ctx.now,
        );
    }
    fill_in(ctx.resource, &mut new);
    if same_but_for_bookkeeping(old, &new) {
        return Ok(None);
    }
    validate(ctx, &new, Some(old))?;
    Ok(Some(new))
}

/// Equal but for who-wrote-what: such a write must not be stored, or watching controllers would wake each
/// other for ever. Ownership itself counts when managers or fields differ, only its times do not.
pub(crate) fn same_but_for_bookkeeping(old: &Value, new: &Value) -> bool {
    // Most writes change something, so the cheap comparison comes first; nothing is cloned to be compared.
    same_fields(old, new, &["metadata"])
        && same_fields(
            &old["metadata"],
            &new["metadata"],
            &["resourceVersion", "managedFields"],
        )
        && same_owners(
            &old["metadata"]["managedFields"],
            &new["metadata"]["managedFields"],
        )
}

fn same_owners(old: &Value, new: &Value) -> bool {
    let (Some(old), Some(new)) = (old.as_array(), new.as_array()) else {
        return old == new;
    };
    old.len() == new.len()
        && old
            .iter()
            .zip(new)
            .all(|(old, new)| same_fields(old, new, &["time"]))
}

/// Whether two objects agree in every member but these.
fn same_fields(old: &Value, new: &Value, except: &[&str]) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else {
        return old == new;
    };
    let counted = |name: &String| !except.contains(&name.as_str());
    old.iter()
        .filter(|(name, _)| counted(name))
        .all(|(name, value)| new.get(name) == Some(value))
        && new
            .keys()
            .filter(|name| counted(name))
            .all(|name| old.contains_key(name))
}

/// Marks an object as being deleted. Finalizers decide how long that lasts.
pub(crate) fn begin_deletion(resource: &Resource, object: &mut Value, now: Timestamp) {
    let meta = meta_mut(object);
    meta.insert("deletionTimestamp".to_owned(), json!(seconds(now)));
    meta.insert("deletionGracePeriodSeconds".to_owned(), json!(0));
    if let Some(generation) = meta.get("generation").and_then(Value::as_i64) {
        meta.insert("generation".to_owned(), json!(generation + 1));
    }
    if resource.is(BuiltIn::Namespace) {
        object["status"]["phase"] = json!("Terminating");
    }
}

/// Nothing holds a deleted object any longer: it may go.
pub(crate) fn is_released(resource: &Resource, object: &Value) -> bool {
    if !object::is_deleting(object) || !object::finalizers(object).is_empty() {
        return false;
    }
    !resource.is(BuiltIn::Namespace) || builtin::namespace_finalizers(object).is_empty()
}

fn generate_name(ctx: &Context<'_>, meta: &mut serde_json::Map<String, Value>) -> Result<()> {
    let named = meta
        .get("name")
        .and_then(Value::as_str)
        .is_some_and(|name| !name.is_empty());
    let prefix = meta
        .get("generateName")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if !named && !prefix.is_empty() {
        // Five characters are appended to at most 58, so that the name is also usable as a label.
        let mut end = prefix.len().min(58);
        while !prefix.is_char_boundary(end) {
            end -= 1;
        }
        let name = format!("{}{}", &prefix[..end], ctx.chance.suffix(5));
        meta.insert("name".to_owned(), json!(name));
    }
    Ok(())
}

fn keep_metadata(old: &Value, new: &mut Value, part: Part) {
    let managed = meta_mut(new).remove("managedFields");
    if part == Part::Status {
        new["metadata"] = old["metadata"].clone();
    }
    let meta = meta_mut(new);
    for field in [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "generation",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "resourceVersion",
        "selfLink",
        "generateName",
    ] {
        match old["metadata"].get(field) {
            Some(value) => meta.insert(field.to_owned(), value.clone()),
            None => meta.remove(field),
        };
    }
    drop_empty(meta);
    // What the client says about ownership is honoured (kubectl rewrites it). Silence keeps what there was, and so does
    // an empty list, which clients send that do not know what it is for.
    let said = managed.filter(|list| list.as_array().is_some_and(|list| !list.is_empty()));
    match said.or_else(|| old["metadata"].get("managedFields").cloned()) {
        Some(managed) => meta.insert("managedFields".to_owned(), managed),
        None => None,
    };
}

/// An empty list or map in the metadata is the same as none, and is stored as none.
fn drop_empty(meta: &mut serde_json::Map<String, Value>) {
    for field in ["labels", "annotations", "finalizers", "ownerReferences"] {
        let empty = match meta.get(field) {
            Some(Value::Array(list)) => list.is_empty(),
            Some(Value::Object(map)) => map.is_empty(),
            Some(Value::Null) => true,
            _ => false,
        };
        if empty {
            meta.remove(field);
        }
    }
}

/// Only a deletion begins a deletion; leaving its time out does not end it.
fn guard_deletion_time(resource: &Resource, old: &Value, new: &Value, name: &str) -> Result<()> {
    let given = meta_str(new, "deletionTimestamp");
    if given.is_empty() || given == meta_str(old, "deletionTimestamp") {
        return Ok(());
    }
    let cause = names::invalid("metadata.deletionTimestamp", given, "field is immutable");
    Err(StatusError::invalid(resource, name, &[cause]))
}

fn keep_other_part(resource: &Resource, old: &Value, new: &mut Value, part: Part) {
    if !resource.has_status {
        return;
    }
    let fields = new.as_object_mut().expect("claimed objects are objects");
    match part {
        Part::Main => match old.get("status") {
            Some(status) => {
                fields.insert("status".to_owned(), status.clone());
            }
            None => {
                fields.remove("status");
            }
        },
        Part::Status => {
            let status = fields.remove("status");
            let metadata = fields.remove("metadata");
            *fields = old.as_object().cloned().unwrap_or_default();
            fields.remove("status");
            fields.extend(metadata.map(|metadata| ("metadata".to_owned(), metadata)));
            fields.extend(status.map(|status| ("status".to_owned(), status)));
        }
    }
}

/// Built-ins other than CRDs keep no generation, as on a real server.
fn counts_generations(resource: &Resource) -> bool {
    !matches!(resource.nature, Nature::BuiltIn(_))
}

fn count_generation(resource: &Resource, old: &Value, new: &mut Value) {
    if !counts_generations(resource) {
        return;
    }
    if !same_fields(old, new, &["metadata", "status"]) {
        let generation = old["metadata"]["generation"].as_i64().unwrap_or(1);
        meta_mut(new).insert("generation".to_owned(), json!(generation + 1));
    }
}

fn guard_finalizers(resource: &Resource, old: &Value, new: &Value, name: &str) -> Result<()> {
    if !object::is_deleting(old) {
        return Ok(());
    }
    let before = object::finalizers(old);
    let added: Vec<&str> = object::finalizers(new)
        .into_iter()
        .filter(|f| !before.contains(f))
        .collect();
    if added.is_empty() {
        return Ok(());
    }
    let text = format!(
        "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers {added:?}"
    );
    Err(StatusError::invalid(
        resource,
        name,
        &[names::cause(
            "metadata.finalizers",
            "FieldValueForbidden",
            &text,
        )],
    ))
}

fn validate(ctx: &Context<'_>, object: &Value, old: Option<&Value>) -> Result<()> {
    let mut causes: Vec<Cause> = names::metadata_causes(ctx.resource, object);
    causes.extend(ctx.resource.schema.validate(object, old));
    causes.extend(builtin::causes(ctx.resource, object));
    // Rules beyond the schema make sense only of what has the right shape, and are for whoever changes the spec.
    let changed = old.is_none_or(|old| old["spec"] != object["spec"]);
    if let Some(check) = ctx.resource.check.filter(|_| changed && causes.is_empty()) {
        causes = check(object);
    }
    if causes.is_empty() {
        Ok(())
    } else {
        Err(StatusError::invalid(
            ctx.resource,
            object::name(object),
            &causes,
        ))
    }
}

/// Kubernetes keeps whole seconds in `metav1.Time`, and cuts the rest off: no time is ever in the future.
pub(crate) fn seconds(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
