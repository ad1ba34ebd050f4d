//! `metadata.managedFields`: the owners of an object, read, changed and written back.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::Manager;
use crate::fields::FieldSet;

/// Entries of updates that are kept apart; the oldest beyond these are folded together, so that an object written by ever new
/// names does not grow for ever.
const UPDATES_MAX: usize = 10;
const ANCIENT: &str = "ancient-changes";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Apply,
    Update,
}

impl Operation {
    fn text(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// What tells owners apart. An applier is the same whatever version it applied through; an updater is not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity {
    operation: Operation,
    manager: String,
    api_version: Option<String>,
    subresource: Option<String>,
}

impl Identity {
    pub(super) fn new(operation: Operation, manager: &Manager) -> Self {
        let name = if manager.name.is_empty() {
            "unknown"
        } else {
            &manager.name
        };
        Self {
            operation,
            manager: name.to_owned(),
            api_version: (operation == Operation::Update).then(|| manager.api_version.clone()),
            subresource: manager.subresource.clone(),
        }
    }
}

/// As conflicts name an owner.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.manager)?;
        if let Some(subresource) = &self.subresource {
            write!(f, " with subresource {subresource:?}")?;
        }
        match &self.api_version {
            Some(version) => write!(f, " using {version}"),
            None => Ok(()),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Owned {
    fields: FieldSet,
    api_version: String,
    time: Option<Timestamp>,
}

/// All owners of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Managers {
    /// Invariant: nobody owns nothing.
    owners: BTreeMap<Identity, Owned>,
}

impl Managers {
    /// Reads `metadata.managedFields`; absent means that nobody was recorded.
    pub(super) fn decode(managed_fields: Option<&Value>) -> Result<Self, String> {
        let mut managers = Self::default();
        let Some(managed_fields) = managed_fields.filter(|list| !list.is_null()) else {
            return Ok(managers);
        };
        let entries = managed_fields.as_array().ok_or("must be a list")?;
        for (index, entry) in entries.iter().enumerate() {
            let (identity, owned) = decode_entry(entry, index)?;
            managers.owners.insert(identity, owned);
        }
        Ok(managers)
    }

    /// Writes `metadata.managedFields`; equal owners give equal lists.
    pub(super) fn write(&self, object: &mut Value) {
        let Some(fields) = object.as_object_mut() else {
            return;
        };
        let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
        let Some(metadata) = metadata.as_object_mut() else {
            return;
        };
        if self.owners.is_empty() {
            metadata.remove("managedFields");
            return;
        }
        let seconds = |owned: &Owned| owned.time.map_or(0, Timestamp::as_second);
        let mut owners: Vec<(&Identity, &Owned)> = self.owners.iter().collect();
        owners.sort_by(|(left, left_owned), (right, right_owned)| {
            let key = |identity: &Identity, owned: &Owned| (identity.operation, seconds(owned));
            key(left, left_owned)
                .cmp(&key(right, right_owned))
                .then_with(|| left.manager.cmp(&right.manager))
                .then_with(|| left_owned.api_version.cmp(&right_owned.api_version))
                .then_with(|| left.subresource.cmp(&right.subresource))
        });
        let entries = owners
            .into_iter()
            .map(|(identity, owned)| encode_entry(identity, owned))
            .collect();
        metadata.insert("managedFields".to_owned(), Value::Array(entries));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Identity, &FieldSet)> {
        self.owners
            .iter()
            .map(|(identity, owned)| (identity, &owned.fields))
    }

    pub(super) fn fields(&self, identity: &Identity) -> Option<&FieldSet> {
        self.owners.get(identity).map(|owned| &owned.fields)
    }

    pub(super) fn time(&self, identity: &Identity) -> Option<Timestamp> {
        self.owners.get(identity).and_then(|owned| owned.time)
    }

    pub(super) fn set(
        &mut self,
        identity: Identity,
        api_version: &str,
        fields: FieldSet,
        time: Option<Timestamp>,
    ) {
        self.owners.insert(
            identity,
            Owned {
                fields,
                api_version: api_version.to_owned(),
                time,
            },
        );
    }

    /// Notes that an owner changed the object just now.
    pub(super) fn touch(&mut self, identity: &Identity, now: Timestamp) {
        if let Some(owned) = self.owners.get_mut(identity) {
            owned.time = Some(now);
        }
    }

    /// Gives every owner other fields; who is left with none is forgotten.
    pub(super) fn retain_fields(&mut self, keep: impl Fn(&Identity, &FieldSet) -> FieldSet) {
        self.owners.retain(|identity, owned| {
            owned.fields = keep(identity, &owned.fields);
            !owned.fields.is_empty()
        });
    }

    /// Whether the same owners own the same fields, whenever they did so last.
    pub(super) fn same_owners(&self, other: &Self) -> bool {
        let owners = |managers: &'_ Self| -> Vec<(Identity, String, FieldSet)> {
            let owners = managers.owners.iter();
            owners
                .map(|(identity, owned)| {
                    (
                        identity.clone(),
                        owned.api_version.clone(),
                        owned.fields.clone(),
                    )
                })
                .collect()
        };
        owners(self) == owners(other)
    }

    /// Folds the oldest updates together until no more than [`UPDATES_MAX`] are left.
    pub(super) fn cap_updates(&mut self) {
        loop {
            let mut updates: Vec<(Option<Timestamp>, Identity)> = self
                .owners
                .iter()
                .filter(|(identity, _)| identity.operation == Operation::Update)
                .map(|(identity, owned)| (owned.time, identity.clone()))
                .collect();
            if updates.len() <= UPDATES_MAX {
                return;
            }
            updates.sort();
            // Only updates through the same version can share an entry.
            let oldest = updates.iter().find_map(|(_, first)| {
                let second = updates
                    .iter()
                    .find(|(_, other)| other != first && other.api_version == first.api_version)?;
                Some((first.clone(), second.1.clone()))
            });
            let Some((first, second)) = oldest else {
                return;
            };
            self.fold(&first, &second);
        }
    }

    fn fold(&mut self, first: &Identity, second: &Identity) {
        let (Some(first), Some(other)) = (self.owners.remove(first), self.owners.remove(second))
        else {
            return;
        };
        let bucket = Identity {
            operation: Operation::Update,
            manager: ANCIENT.to_owned(),
            api_version: second.api_version.clone(),
            subresource: None,
        };
        let already = self
            .owners
            .remove(&bucket)
            .map(|owned| owned.fields)
            .unwrap_or_default();
        let fields = first.fields.union(&other.fields).union(&already);
        self.owners.insert(
            bucket,
            Owned {
                fields,
                api_version: other.api_version,
                time: other.time.max(first.time),
            },
        );
    }
}

fn decode_entry(entry: &Value, index: usize) -> Result<(Identity, Owned), String> {
    let text = |name: &str| {
        entry
            .get(name)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    };
    let operation = match text("operation").as_deref() {
        Some("Apply") => Operation::Apply,
        Some("Update") => Operation::Update,
        _ => return Err("operation must be `Apply` or `Update`".to_owned()),
    };
    let api_version = text("apiVersion").ok_or("apiVersion must not be empty")?;
    match text("fieldsType").as_deref() {
        Some("FieldsV1") => {}
        None => {
            return Err(format!(
                "missing fieldsType in managed fields entry {index}"
            ));
        }
        Some(other) => {
            return Err(format!(
                "invalid fieldsType {other:?} in managed fields entry {index}"
            ));
        }
    }
    let fields = match entry.get("fieldsV1") {
        None | Some(Value::Null) => FieldSet::default(),
        Some(fields) => {
            FieldSet::parse(fields).map_err(|error| format!("error decoding set: {error}"))?
        }
    };
    let identity = Identity {
        operation,
        manager: text("manager").unwrap_or_default(),
        api_version: (operation == Operation::Update).then(|| api_version.clone()),
        subresource: text("subresource"),
    };
    let time = text("time").and_then(|time| time.parse().ok());
    Ok((
        identity,
        Owned {
            fields,
            api_version,
            time,
        },
    ))
}

fn encode_entry(identity: &Identity, owned: &Owned) -> Value {
    let mut entry = Map::new();
    let mut put = |name: &str, value: Value| entry.insert(name.to_owned(), value);
    put("manager", identity.manager.clone().into());
    put("operation", identity.operation.text().into());
    put("apiVersion", owned.api_version.clone().into());
    put("fieldsType", "FieldsV1".into());
    put("fieldsV1", owned.fields.to_value());
    if let Some(time) = owned.time {
        put(
            "time",
            time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into(),
        );
    }
    if let Some(subresource) = &identity.subresource {
        put("subresource", subresource.clone().into());
    }
    Value::Object(entry)
}
