//! The catalog as platforms read it: bytes, and the tag by which they know them again.
//!
//! The bytes follow from the catalog, from what is enabled and from the version; there is no clock and no chance in them.
//! Fields that say what is meant without them anyway are left away, and so are those that came after the version a platform
//! announces, since old platforms refuse what they do not know.
//!
//! A form is kept if it was asked for, and not because the other was: of a large catalog the compressed form is a small part
//! of the plain one, and most platforms never ask for the latter.

use std::fmt::Write as _;
use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::HeaderValue;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::{Catalog, Enabled, Offering, Plan, Schemas};

/// The versions between which catalogs differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    V2_13,
    /// Tells what can be read back.
    V2_14,
    /// Tells how long to poll, and what can be updated.
    V2_15,
    V2_16,
    /// Tells whose bindings can be rotated.
    V2_17,
}

impl Level {
    /// The level of version 2.`minor`. Newer platforms are served as the newest that is known.
    #[must_use]
    pub const fn of_minor(minor: u32) -> Self {
        match minor {
            0..=13 => Self::V2_13,
            14 => Self::V2_14,
            15 => Self::V2_15,
            16 => Self::V2_16,
            _ => Self::V2_17,
        }
    }
}

/// How the bytes of a document travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Coding {
    Plain,
    Gzip,
}

/// A rendered catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    pub bytes: Bytes,
    /// Quoted, and equal exactly when the bytes are.
    pub etag: HeaderValue,
    pub coding: Coding,
}

/// How many digits of the hash are the tag: 128 bits.
const ETAG_CHARS: usize = 32;
/// What the tag of the compressed form has after those of the plain one. A strong tag is one of bytes, so the two forms must
/// not share theirs: a cache between us and a platform could hand out the one for the other.
const GZIP_MARK: &str = "-gzip";
/// Below this there is nothing to be gained: it fits into one packet as it is.
const COMPRESSED_BYTES_MIN: usize = 1024;

impl Document {
    /// What is offered where `enabled` holds, or anywhere. What is too small to be compressed is plain, whatever was asked for.
    pub(super) fn of(
        catalog: &Catalog,
        enabled: Option<&Enabled>,
        level: Level,
        coding: Coding,
    ) -> Self {
        let render = |(offering, plans): (&Offering, Vec<&Plan>)| service(offering, &plans, level);
        let services: Vec<Value> = match enabled {
            Some(enabled) => catalog.offered_in(enabled).map(render).collect(),
            None => catalog.offered().map(render).collect(),
        };
        Self::coded(json!({"services": services}).to_string(), coding)
    }

    /// A document with this text.
    #[must_use]
    pub fn coded(text: String, coding: Coding) -> Self {
        let hash = hash(text.as_bytes());
        match coding {
            Coding::Gzip if text.len() >= COMPRESSED_BYTES_MIN => Self {
                bytes: compressed(text.as_bytes()),
                etag: tag(&hash, GZIP_MARK),
                coding,
            },
            Coding::Gzip | Coding::Plain => Self {
                bytes: Bytes::from(text),
                etag: tag(&hash, ""),
                coding: Coding::Plain,
            },
        }
    }

    /// Whether `tag`, quoted, is of this document in either form. Both say the same, so whoever has one needs neither.
    #[must_use]
    pub fn is_known_as(&self, tag: &str) -> bool {
        let core = |tag: &str| -> Option<String> {
            let inner = tag.strip_prefix('"')?.strip_suffix('"')?;
            Some(inner.strip_suffix(GZIP_MARK).unwrap_or(inner).to_owned())
        };
        let ours = self.etag.to_str().ok().and_then(core);
        ours.is_some() && core(tag) == ours
    }
}

/// The first digits of the bytes' SHA-256.
fn hash(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(ETAG_CHARS);
    for byte in &Sha256::digest(bytes)[..ETAG_CHARS / 2] {
        write!(text, "{byte:02x}").expect("a String takes everything");
    }
    text
}

fn tag(hash: &str, mark: &str) -> HeaderValue {
    let tag = format!("\"{hash}{mark}\"");
    HeaderValue::try_from(tag).expect("quotes, letters and digits may be in a header")
}

/// At the default level: it is done once for each change, aside from everybody, and sent many times.
fn compressed(bytes: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let done = encoder
        .write_all(bytes)
        .and_then(|()| encoder.finish())
        .expect("a Vec takes everything");
    Bytes::from(done)
}

fn service(offering: &Offering, plans: &[&Plan], level: Level) -> Value {
    let plans: Vec<Value> = plans.iter().map(|plan| self::plan(plan, level)).collect();
    let mut fields = Fields::new(level);
    fields.put("id", &*offering.id);
    fields.put("name", &*offering.name);
    fields.put("description", &*offering.description);
    fields.put("bindable", offering.bindable);
    fields.put_if(!offering.tags.is_empty(), "tags", || json!(offering.tags));
    fields.put_if(!offering.requires.is_empty(), "requires", || {
        json!(offering.requires)
    });
    fields.put_if(offering.plan_updateable, "plan_updateable", || json!(true));
    fields.put_if(!offering.metadata.is_empty(), "metadata", || {
        json!(offering.metadata)
    });
    fields.since(Level::V2_14, "instances_retrievable", Some(true));
    fields.since(
        Level::V2_14,
        "bindings_retrievable",
        only(offering.bindable),
    );
    fields.since(
        Level::V2_15,
        "allow_context_updates",
        only(offering.allow_context_updates),
    );
    fields.put("plans", plans);
    fields.done()
}

fn plan(plan: &Plan, level: Level) -> Value {
    let mut fields = Fields::new(level);
    fields.put("id", &*plan.id);
    fields.put("name", &*plan.name);
    fields.put("description", &*plan.description);
    fields.put_if(!plan.free, "free", || json!(false));
    if let Some(bindable) = plan.bindable {
        fields.put("bindable", bindable);
    }
    fields.put_if(!plan.metadata.is_empty(), "metadata", || {
        json!(plan.metadata)
    });
    if let Some(schemas) = schemas(&plan.schemas) {
        fields.put("schemas", schemas);
    }
    fields.since(Level::V2_15, "plan_updateable", plan.plan_updateable);
    let seconds = plan.maximum_polling_duration;
    fields.since(Level::V2_15, "maximum_polling_duration", Some(seconds));
    let version = plan.maintenance_version.as_ref();
    let maintenance = version.map(|version| json!({"version": version}));
    fields.since(Level::V2_15, "maintenance_info", maintenance);
    fields.since(
        Level::V2_17,
        "binding_rotatable",
        only(plan.binding_rotatable),
    );
    fields.done()
}

/// `true`, where that is worth saying.
fn only(value: bool) -> Option<bool> {
    value.then_some(true)
}

fn schemas(schemas: &Schemas) -> Option<Value> {
    let parameters = |schema: &Option<Value>| Some(json!({"parameters": schema.as_ref()?}));
    let group = |actions: Vec<(&str, Option<Value>)>| -> Option<Value> {
        let actions: Map<String, Value> = actions
            .into_iter()
            .filter_map(|(action, schema)| Some((action.to_owned(), schema?)))
            .collect();
        (!actions.is_empty()).then(|| actions.into())
    };
    let (create, update) = (parameters(&schemas.create), parameters(&schemas.update));
    let instance = group(vec![("create", create), ("update", update)]);
    let binding = group(vec![("create", parameters(&schemas.bind))]);
    group(vec![
        ("service_instance", instance),
        ("service_binding", binding),
    ])
}

/// An object that is made field by field, for platforms of one level.
struct Fields {
    level: Level,
    fields: Map<String, Value>,
}

impl Fields {
    fn new(level: Level) -> Self {
        let fields = Map::new();
        Self { level, fields }
    }

    fn put(&mut self, key: &str, value: impl Into<Value>) {
        self.fields.insert(key.to_owned(), value.into());
    }

    fn put_if(&mut self, wanted: bool, key: &str, value: impl FnOnce() -> Value) {
        if wanted {
            self.put(key, value());
        }
    }

    /// A field that platforms before `level` do not know.
    fn since(&mut self, level: Level, key: &str, value: Option<impl Into<Value>>) {
        if self.level >= level
            && let Some(value) = value
        {
            self.put(key, value);
        }
    }

    fn done(self) -> Value {
        self.fields.into()
    }
}

#[cfg(test)]
mod tests;
