//! Stored bytes, shown as the client asked: as they are, as metadata only, or as rows of a table.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use heddle_api::smoke;
use heddle_store::{Object, ResourceVersion};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::auth::CONTROLLERS;
use crate::negotiate::Form;
use crate::object;
use crate::registry::{BuiltIn, Nature, Resource};
use crate::request::Params;
use crate::select::{FieldOp, FieldSelector, LabelSelector};
use crate::serve::Call;
use crate::table::IncludeObject;
use crate::{events, status};

/// What a list or watch is narrowed to, with the pieces of `status::Refusal` already dealt with.
#[derive(Debug)]
pub(crate) struct Filter {
    pub namespace: Option<String>,
    pub labels: LabelSelector,
    pub fields: FieldSelector,
    /// Whether what smoke tests make is left out.
    pub hides_smoke: bool,
}

impl Filter {
    /// What a call asks for.
    pub(crate) fn of(call: &Call) -> status::Result<Self> {
        let Params {
            label_selector,
            field_selector,
            ..
        } = &call.params;
        Self::parse(call, label_selector, field_selector)
    }

    /// The same with selectors that are not quite what the call says.
    pub(crate) fn parse(call: &Call, labels: &str, fields: &str) -> status::Result<Self> {
        let resource = &call.resource;
        let labels = LabelSelector::parse(labels)
            .map_err(|error| status::StatusError::bad_request(error.to_string()))?;
        let fields = FieldSelector::parse(fields)
            .map_err(|error| status::StatusError::bad_request(error.to_string()))?;
        for path in fields.terms().iter().map(|term| term.path.as_str()) {
            let known = matches!(path, "metadata.name" | "metadata.namespace")
                || resource.selectable.iter().any(|(name, _)| name == path);
            if !known {
                return Err(status::StatusError::bad_request(match resource.nature {
                    Nature::BuiltIn(_) if resource.selectable.is_empty() => format!(
                        "\"{path}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                    ),
                    _ => format!("field label not supported: {path}"),
                }));
            }
        }
        Ok(Self {
            namespace: call.namespace.clone(),
            labels,
            fields,
            hides_smoke: !call.identity.is_in(CONTROLLERS),
        })
    }

    /// The name that all chosen objects have, if only one name can be chosen.
    pub(crate) fn name(&self) -> Option<&str> {
        let mut terms = self.fields.terms().iter();
        let named = terms.find(|term| term.path == "metadata.name" && term.op == FieldOp::Equal)?;
        Some(&named.value)
    }

    /// Whether nothing but the namespace narrows the choice: then no object need be looked into.
    pub(crate) fn is_open(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }

    /// Whether an object is hidden from whoever asks.
    pub(crate) fn hides(&self, object: &Object) -> bool {
        self.hides_smoke && smoke::is_part(&object.key.namespace, &object.key.name)
    }

    pub(crate) fn matches(&self, resource: &Resource, object: &Object) -> bool {
        if self
            .namespace
            .as_deref()
            .is_some_and(|namespace| namespace != &*object.key.namespace)
        {
            return false;
        }
        if self.hides(object) {
            return false;
        }
        if !self.labels.matches(|key| {
            object
                .facts
                .labels
                .iter()
                .find(|(name, _)| name == key)
                .map(|(_, value)| value.as_str())
        }) {
            return false;
        }
        if self.fields.is_everything() {
            return true;
        }
        let parsed = std::cell::OnceCell::new();
        self.fields.matches(|path| match path {
            "metadata.name" => Some(Cow::Borrowed(&*object.key.name)),
            "metadata.namespace" => Some(Cow::Borrowed(&*object.key.namespace)),
            _ => {
                let (_, json_path) = resource.selectable.iter().find(|(name, _)| name == path)?;
                let value =
                    parsed.get_or_init(|| events::to_served(resource, object::parse(object)));
                json_path.first(value).map(|found| match found {
                    Value::String(text) => Cow::Owned(text.clone()),
                    other => Cow::Owned(other.to_string()),
                })
            }
        })
    }
}

/// One object as JSON bytes in the client's form.
pub(crate) fn bytes(
    resource: &Resource,
    form: Form,
    object: &Object,
    include: IncludeObject,
    now: Timestamp,
) -> Bytes {
    match form {
        Form::Object => whole(resource, object.json()),
        Form::Lean => lean(resource, object.json()),
        Form::Metadata => metadata(object),
        Form::Table => Bytes::from(table(resource, [object], include, now, true).to_string()),
    }
}

pub(crate) fn whole(resource: &Resource, json: Bytes) -> Bytes {
    if is_converted(resource) {
        return Bytes::from(events::to_served(resource, object::parse_json(&json)).to_string());
    }
    json
}

/// Whether objects are served in another shape than they are stored in.
fn is_converted(resource: &Resource) -> bool {
    resource.is(BuiltIn::EventV1)
}

pub(crate) fn lean(resource: &Resource, json: Bytes) -> Bytes {
    object::without_managed_fields(&whole(resource, json))
}

/// Metadata without parsing the rest: the text is lifted out of the stored bytes.
pub(crate) fn metadata(object: &Object) -> Bytes {
    const HEAD: &[u8] =
        b"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":";
    let json = object.json();
    let metadata = object::lift_metadata(&json);
    let mut out = Vec::with_capacity(HEAD.len() + metadata.len() + 1);
    out.extend_from_slice(HEAD);
    out.extend_from_slice(metadata);
    out.push(b'}');
    Bytes::from(out)
}

/// A `Table` of these objects. `definitions` is false for all but the first table of a watch.
pub(crate) fn table<'a>(
    resource: &Resource,
    objects: impl IntoIterator<Item = &'a Object>,
    include: IncludeObject,
    now: Timestamp,
    definitions: bool,
) -> Value {
    let mut version = String::new();
    let parsed: Vec<Value> = objects
        .into_iter()
        .inspect(|object| version = object.version.to_string())
        .map(|object| events::to_served(resource, object::parse(object)))
        .collect();
    resource.columns.table(
        &parsed,
        json!({"resourceVersion": version}),
        include,
        definitions,
        now,
    )
}

/// The metadata of a list that is complete. Lists of custom objects always say where to continue, if only nowhere.
pub(crate) fn list_meta(resource: &Resource, form: Form, version: ResourceVersion) -> Value {
    let mut meta = json!({"resourceVersion": version.to_string()});
    if matches!(form, Form::Object | Form::Lean) && !matches!(resource.nature, Nature::BuiltIn(_)) {
        meta["continue"] = json!("");
    }
    meta
}

/// A list in the client's form: stored bytes are concatenated, not parsed, wherever the form allows.
pub(crate) fn list(
    resource: &Resource,
    form: Form,
    items: &[Arc<Object>],
    meta: &Value,
    include: IncludeObject,
    now: Timestamp,
) -> Bytes {
    let (kind, api_version) = match form {
        Form::Object | Form::Lean => (resource.list_kind(), resource.api_version()),
        Form::Metadata => (
            "PartialObjectMetadataList".to_owned(),
            "meta.k8s.io/v1".to_owned(),
        ),
        Form::Table => {
            let mut table = table(
                resource,
                items.iter().map(|item| &**item),
                include,
                now,
                true,
            );
            table["metadata"] = meta.clone();
            return Bytes::from(table.to_string());
        }
    };
    let size: usize = items.iter().map(|item| item.json_len() + 1).sum();
    let mut out = Vec::with_capacity(size + 256);
    out.extend_from_slice(
        format!(
            "{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\",\"metadata\":{meta},\"items\":["
        )
        .as_bytes(),
    );
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        match form {
            Form::Metadata => out.extend_from_slice(&metadata(item)),
            Form::Lean => out.extend_from_slice(&lean(resource, item.json())),
            _ if is_converted(resource) => out.extend_from_slice(&whole(resource, item.json())),
            _ => item.write_json(&mut out),
        }
    }
    out.extend_from_slice(b"]}");
    Bytes::from(out)
}
