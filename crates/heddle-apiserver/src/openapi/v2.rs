//! OpenAPI v2, for older kubectl that does not ask for v3 yet: one PATCH operation per kind and no schemas.
//!
//! Such a kubectl looks there whether a kind takes `dryRun` (which `diff` needs as well) and `fieldValidation`. Finding no
//! schema it leaves validation to the server, and has nothing to explain. It reads protobuf, in the messages of gnostic's `openapi.v2`.

use serde_json::{Value, json};

use super::{collection_path, gvk};
use crate::registry::{Registry, Resource};

/// The parameters of a patch that kubectl looks for.
const PARAMETERS: [&str; 2] = ["dryRun", "fieldValidation"];

pub(crate) fn as_json(registry: &Registry) -> Value {
    let paths: serde_json::Map<String, Value> = patched(registry)
        .map(|resource| {
            let parameters =
                PARAMETERS.map(|name| json!({"name": name, "in": "query", "type": "string"}));
            let operation = json!({
                "x-kubernetes-group-version-kind": gvk(resource, &resource.kind),
                "parameters": parameters,
                "responses": {"200": {"description": "OK"}},
            });
            (object_path(resource), json!({"patch": operation}))
        })
        .collect();
    let info = json!({"title": "heddle", "version": env!("CARGO_PKG_VERSION")});
    json!({"swagger": "2.0", "info": info, "paths": paths})
}

pub(crate) fn as_protobuf(registry: &Registry) -> Vec<u8> {
    let info = [
        part(1, b"heddle"),
        part(2, env!("CARGO_PKG_VERSION").as_bytes()),
    ]
    .concat();
    let paths: Vec<u8> = patched(registry)
        .flat_map(|resource| {
            let item = part(8, &operation(resource));
            let path = [part(1, object_path(resource).as_bytes()), part(2, &item)];
            part(2, &path.concat())
        })
        .collect();
    [part(1, b"2.0"), part(2, &info), part(8, &paths)].concat()
}

/// `Operation`: the parameters, and which kind this is about.
fn operation(resource: &Resource) -> Vec<u8> {
    let parameter = |name: &str| {
        let query = [
            part(2, b"query"),
            part(4, name.as_bytes()),
            part(6, b"string"),
        ];
        // ParametersItem, Parameter and NonBodyParameter each hold one of several alternatives.
        part(8, &part(1, &part(2, &part(3, &query.concat()))))
    };
    // JSON is YAML.
    let kind = gvk(resource, &resource.kind).to_string();
    let extension = [
        part(1, b"x-kubernetes-group-version-kind"),
        part(2, &part(2, kind.as_bytes())),
    ];
    [
        PARAMETERS.map(parameter).concat(),
        part(13, &extension.concat()),
    ]
    .concat()
}

fn patched(registry: &Registry) -> impl Iterator<Item = &Resource> {
    let resources = registry.resources().iter().map(|resource| &**resource);
    resources.filter(|resource| resource.verbs().contains(&"patch"))
}

fn object_path(resource: &Resource) -> String {
    format!("{}/{{name}}", collection_path(resource))
}

/// A field of a message that has a length: text, or another message.
fn part(number: u8, content: &[u8]) -> Vec<u8> {
    const LENGTH_DELIMITED: u8 = 2;
    // Invariant: below 16 the number and the type fit one byte.
    assert!(number < 16, "no field used here has a higher number");
    let mut out = vec![number << 3 | LENGTH_DELIMITED];
    let mut length = content.len();
    while length > 0x7f {
        out.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(content);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields of a message: number and content.
    fn fields(mut bytes: &[u8]) -> Vec<(u8, &[u8])> {
        let mut fields = Vec::new();
        while let [tag, rest @ ..] = bytes {
            assert_eq!(tag & 7, 2, "only fields with a length are written");
            let (mut length, mut shift, mut at) = (0, 0, 0);
            loop {
                length |= usize::from(rest[at] & 0x7f) << shift;
                shift += 7;
                at += 1;
                if rest[at - 1] < 0x80 {
                    break;
                }
            }
            fields.push((tag >> 3, &rest[at..at + length]));
            bytes = &rest[at + length..];
        }
        fields
    }

    fn only<'a>(bytes: &'a [u8], path: &[u8]) -> &'a [u8] {
        path.iter().fold(bytes, |bytes, number| {
            let found: Vec<_> = fields(bytes)
                .into_iter()
                .filter(|field| field.0 == *number)
                .collect();
            assert_eq!(found.len(), 1, "field {number}");
            found[0].1
        })
    }

    #[test]
    fn every_kind_that_can_be_patched_is_said_to_take_dry_runs_and_field_validation() {
        let registry = Registry::heddle().unwrap();
        let document = as_protobuf(&registry);
        assert_eq!(only(&document, &[1]), b"2.0");
        let json = as_json(&registry);
        let mut count = 0;
        for (_, path) in fields(only(&document, &[8])) {
            let operation = only(path, &[2, 8]);
            let parameters: Vec<&[u8]> = fields(operation)
                .into_iter()
                .filter(|field| field.0 == 8)
                .map(|(_, parameter)| only(parameter, &[1, 2, 3, 4]))
                .collect();
            assert_eq!(parameters, PARAMETERS.map(str::as_bytes));
            assert_eq!(
                only(operation, &[13, 1]),
                b"x-kubernetes-group-version-kind"
            );
            let kind: Value = serde_json::from_slice(only(operation, &[13, 2, 2])).unwrap();
            let name = std::str::from_utf8(only(path, &[1])).unwrap();
            let same = &json["paths"][name]["patch"]["x-kubernetes-group-version-kind"];
            assert_eq!(*same, kind, "{name}");
            count += 1;
        }
        assert_eq!(count, patched(&registry).count());
        assert!(count > 10, "{count} kinds");
    }
}
