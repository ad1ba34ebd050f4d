//! OpenAPI v3, one document per group version, derived from the registry. What old kubectl reads is in `v2`.
//!
//! kubectl decides by the PATCH operation (does it list `fieldValidation`?) whether the server validates, finds a
//! kind by `x-kubernetes-group-version-kind`, and explains fields from the schema components.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::registry::{Registry, Resource};

pub(crate) mod v2;

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The index: a relative URL per group version, with a hash so that clients may cache for ever.
pub(crate) fn index(registry: &Registry) -> Value {
    let mut paths = Map::new();
    for (group, version) in group_versions(registry) {
        let path = document_path(&group, &version);
        let text = document(registry, &path)
            .map(|doc| doc.to_string())
            .unwrap_or_default();
        let hash = format!("{:08X}", fingerprint(text.as_bytes()));
        paths.insert(
            path.clone(),
            json!({"serverRelativeURL": format!("/openapi/v3/{path}?hash={hash}")}),
        );
    }
    json!({"paths": paths})
}

/// One document; `path` is `api/v1` or `apis/G/V`.
pub(crate) fn document(registry: &Registry, path: &str) -> Option<Value> {
    let (group, version) = group_versions(registry)
        .into_iter()
        .find(|(group, version)| document_path(group, version) == path)?;
    let mut schemas = Map::new();
    let mut paths = Map::new();
    schemas.insert(OBJECT_META.to_owned(), object_meta());
    for resource in registry
        .resources()
        .iter()
        .filter(|r| r.group == group && r.version == version)
    {
        let name = component(resource);
        schemas.insert(name.clone(), schema(resource));
        schemas.insert(format!("{name}List"), list_schema(resource, &name));
        operations(resource, &mut paths);
    }
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "heddle", "version": env!("CARGO_PKG_VERSION")},
        "paths": paths,
        "components": {"schemas": schemas},
    }))
}

fn group_versions(registry: &Registry) -> Vec<(String, String)> {
    let all: BTreeMap<(String, String), ()> = registry
        .resources()
        .iter()
        .map(|r| ((r.group.clone(), r.version.clone()), ()))
        .collect();
    all.into_keys().collect()
}

fn document_path(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("api/{version}")
    } else {
        format!("apis/{group}/{version}")
    }
}

/// Where the objects of a kind are listed, in one namespace if they live in one.
fn collection_path(resource: &Resource) -> String {
    let prefix = document_path(&resource.group, &resource.version);
    if resource.namespaced {
        format!("/{prefix}/namespaces/{{namespace}}/{}", resource.plural)
    } else {
        format!("/{prefix}/{}", resource.plural)
    }
}

/// `dev.knative.eventing.v1.Trigger`: the group reversed, as Kubernetes names components.
fn component(resource: &Resource) -> String {
    if resource.group.is_empty() {
        return format!("io.k8s.api.core.{}.{}", resource.version, resource.kind);
    }
    let reversed: Vec<&str> = resource.group.split('.').rev().collect();
    format!(
        "{}.{}.{}",
        reversed.join("."),
        resource.version,
        resource.kind
    )
}

fn gvk(resource: &Resource, kind: &str) -> Value {
    json!({"group": resource.group, "version": resource.version, "kind": kind})
}

fn schema(resource: &Resource) -> Value {
    let mut schema = resource.openapi.clone();
    schema["x-kubernetes-group-version-kind"] = json!([gvk(resource, &resource.kind)]);
    schema["properties"]["metadata"] = json!({
        "description": "Standard object metadata.",
        "allOf": [{"$ref": format!("#/components/schemas/{OBJECT_META}")}], "default": {},
    });
    for (field, text) in [
        (
            "apiVersion",
            "APIVersion defines the versioned schema of this representation of an object.",
        ),
        (
            "kind",
            "Kind is a string value representing the REST resource this object represents.",
        ),
    ] {
        schema["properties"][field] = json!({"type": "string", "description": text});
    }
    schema
}

fn list_schema(resource: &Resource, item: &str) -> Value {
    json!({
        "type": "object", "required": ["items"],
        "description": format!("{} is a list of {}", resource.list_kind(), resource.kind),
        "properties": {
            "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"},
            "items": {"type": "array", "items": {"$ref": format!("#/components/schemas/{item}")}},
        },
        "x-kubernetes-group-version-kind": [gvk(resource, &resource.list_kind())],
    })
}

fn operations(resource: &Resource, paths: &mut Map<String, Value>) {
    let collection = collection_path(resource);
    if resource.namespaced {
        let prefix = document_path(&resource.group, &resource.version);
        let across = format!("/{prefix}/{}", resource.plural);
        paths.insert(across, json!({"get": operation(resource, "list", &[])}));
    }
    const WRITE: &[&str] = &["dryRun", "fieldManager", "fieldValidation"];
    let mut many = json!({"get": operation(resource, "list", &[])});
    let mut one = json!({"get": operation(resource, "get", &[])});
    if resource.verbs().contains(&"create") {
        many["post"] = operation(resource, "post", WRITE);
        if resource.verbs().contains(&"deletecollection") {
            many["delete"] = operation(resource, "deletecollection", &["dryRun"]);
        }
        one["put"] = operation(resource, "put", WRITE);
        one["patch"] = operation(
            resource,
            "patch",
            &["dryRun", "fieldManager", "fieldValidation", "force"],
        );
        one["delete"] = operation(resource, "delete", &["dryRun"]);
    }
    if resource.has_status {
        paths.insert(format!("{collection}/{{name}}/status"), one.clone());
    }
    paths.insert(collection.clone(), many);
    paths.insert(format!("{collection}/{{name}}"), one);
}

fn operation(resource: &Resource, action: &str, parameters: &[&str]) -> Value {
    let parameters: Vec<Value> = parameters
        .iter()
        .map(|name| {
            let kind = if *name == "force" {
                "boolean"
            } else {
                "string"
            };
            json!({"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": true}})
        })
        .collect();
    let schema = json!({"$ref": format!("#/components/schemas/{}", component(resource))});
    json!({
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": gvk(resource, &resource.kind),
        "parameters": parameters,
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": schema}}}},
    })
}

fn object_meta() -> Value {
    let text = |description: &str| json!({"type": "string", "description": description});
    let map = |description: &str| json!({"type": "object", "description": description, "additionalProperties": {"type": "string", "default": ""}});
    json!({
        "type": "object",
        "description": "ObjectMeta is metadata that all persisted resources must have.",
        "properties": {
            "name": text("Unique within a namespace; cannot be changed."),
            "generateName": text("A prefix from which the server makes a unique name when none is given."),
            "namespace": text("The space within which the name must be unique; cannot be changed."),
            "labels": map("Keys and values to organise and select objects."),
            "annotations": map("Unstructured keys and values kept with the object."),
            "uid": text("Unique in time and space; set by the server."),
            "resourceVersion": text("Changes with every write; send it back to write only if nobody else did."),
            "generation": {"type": "integer", "format": "int64", "description": "Counts the changes of what is desired."},
            "creationTimestamp": {"type": "string", "format": "date-time", "description": "When the object was created; set by the server."},
            "deletionTimestamp": {"type": "string", "format": "date-time", "description": "When deletion was asked for; finalizers keep the object until they are done."},
            "deletionGracePeriodSeconds": {"type": "integer", "format": "int64", "description": "Always 0 here."},
            "finalizers": {"type": "array", "items": {"type": "string", "default": ""}, "x-kubernetes-list-type": "set",
                "description": "Who must finish before the object is removed."},
            "ownerReferences": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"],
                "description": "Objects this one depends on; it is removed with the last of them.",
                "items": {"type": "object", "required": ["apiVersion", "kind", "name", "uid"], "properties": {
                    "apiVersion": text("API version of the owner."), "kind": text("Kind of the owner."),
                    "name": text("Name of the owner."), "uid": text("UID of the owner."),
                    "controller": {"type": "boolean", "description": "Whether the owner is the managing controller."},
                    "blockOwnerDeletion": {"type": "boolean", "description": "Whether a foreground deletion of the owner waits for this object."},
                }}},
            "managedFields": {"type": "array", "items": {"type": "object"}, "description": "Which manager wrote which fields."},
        },
    })
}

fn fingerprint(bytes: &[u8]) -> u32 {
    // Any stable hash will do: the value only tells one version of a document from the next.
    bytes.iter().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}
