//! The shape of `metadata`, the same for every kind.
//!
//! Written as the OpenAPI schema it stands for, so that pruning and apply treat it like any other part of an object.

use std::sync::LazyLock;

use serde_json::json;

use super::{Node, compile};

/// The compiled type of ObjectMeta.
pub(super) fn object_meta() -> &'static Node {
    static OBJECT_META: LazyLock<Node> = LazyLock::new(|| {
        let text = json!({"type": "string"});
        let texts = json!({"type": "object", "additionalProperties": text});
        let schema = json!({"type": "object", "properties": {
            "name": text, "generateName": text, "namespace": text, "selfLink": text, "uid": text, "resourceVersion": text,
            "generation": {"type": "integer"},
            "creationTimestamp": text, "deletionTimestamp": text,
            "deletionGracePeriodSeconds": {"type": "integer"},
            "labels": texts,
            "annotations": texts,
            "finalizers": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
            "ownerReferences": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"],
                "items": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
                    "apiVersion": text, "kind": text, "name": text, "uid": text,
                    "controller": {"type": "boolean"}, "blockOwnerDeletion": {"type": "boolean"},
                }},
            },
            "managedFields": {"type": "array", "items": {"type": "object", "properties": {
                "manager": text, "operation": text, "apiVersion": text, "time": text, "fieldsType": text, "subresource": text,
                "fieldsV1": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            }}},
        }});
        compile::node(&schema).expect("the schema of ObjectMeta is well formed")
    });
    &OBJECT_META
}
