//! The document as protobuf: the messages of gnostic's `openapi.v2`, of which only what we say is written.
//!
//! A message is its fields one after the other, each a number, a length and the content; all that we write are texts or
//! messages. Numbers that are bounds of values are not written: no client checks them.

use serde_json::Value;

/// `Document`.
pub(super) fn document(document: &Value) -> Vec<u8> {
    let info = [
        text(1, &document["info"]["title"]),
        text(2, &document["info"]["version"]),
    ];
    let paths = entries(&document["paths"]).flat_map(|(path, item)| {
        let item = part(8, &operation(&item["patch"]));
        part(2, &named(path, &item))
    });
    let definitions = entries(&document["definitions"])
        .flat_map(|(name, definition)| part(1, &named(name, &schema(definition))));
    [
        text(1, &document["swagger"]),
        part(2, &info.concat()),
        part(8, &paths.collect::<Vec<u8>>()),
        part(9, &definitions.collect::<Vec<u8>>()),
    ]
    .concat()
}

/// `Operation`: the parameters, and which kind this is about.
fn operation(operation: &Value) -> Vec<u8> {
    let parameters = items(&operation["parameters"]).flat_map(|parameter| {
        let query = [
            text(2, &parameter["in"]),
            text(4, &parameter["name"]),
            text(6, &parameter["type"]),
        ];
        // ParametersItem, Parameter and NonBodyParameter each hold one of several alternatives.
        part(8, &part(1, &part(2, &part(3, &query.concat()))))
    });
    let mut bytes: Vec<u8> = parameters.collect();
    bytes.extend(extensions(13, operation));
    bytes
}

/// `Schema`.
fn schema(schema: &Value) -> Vec<u8> {
    let mut bytes = [
        text(1, &schema["$ref"]),
        text(2, &schema["format"]),
        text(4, &schema["description"]),
    ]
    .concat();
    bytes.extend(items(&schema["required"]).flat_map(|name| text(19, name)));
    bytes.extend(items(&schema["enum"]).flat_map(|value| part(20, &any(value))));
    if let Some(inner) = schema.get("additionalProperties") {
        bytes.extend(part(21, &part(1, &self::schema(inner))));
    }
    if schema["type"].is_string() {
        bytes.extend(part(22, &text(1, &schema["type"])));
    }
    if let Some(inner) = schema.get("items") {
        bytes.extend(part(23, &part(1, &self::schema(inner))));
    }
    if schema["properties"].is_object() {
        let properties = entries(&schema["properties"])
            .flat_map(|(name, inner)| part(1, &named(name, &self::schema(inner))));
        bytes.extend(part(25, &properties.collect::<Vec<u8>>()));
    }
    bytes.extend(extensions(31, schema));
    bytes
}

/// `NamedAny` for everything that Kubernetes adds.
fn extensions(number: u32, object: &Value) -> Vec<u8> {
    entries(object)
        .filter(|(name, _)| name.starts_with("x-kubernetes-"))
        .flat_map(|(name, value)| part(number, &named(name, &any(value))))
        .collect()
}

/// `Any`, as YAML; JSON is YAML.
fn any(value: &Value) -> Vec<u8> {
    part(2, value.to_string().as_bytes())
}

/// Any of the messages that are a name and a value.
fn named(name: &str, value: &[u8]) -> Vec<u8> {
    [part(1, name.as_bytes()), part(2, value)].concat()
}

/// A text, unless there is none.
fn text(number: u32, value: &Value) -> Vec<u8> {
    value
        .as_str()
        .map_or_else(Vec::new, |value| part(number, value.as_bytes()))
}

fn entries(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let entries = value.as_object().into_iter().flatten();
    entries.map(|(name, value)| (name.as_str(), value))
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// A field of a message that has a length: text, or another message.
fn part(number: u32, content: &[u8]) -> Vec<u8> {
    const LENGTH_DELIMITED: u32 = 2;
    let mut out = Vec::with_capacity(content.len() + 8);
    varint(u64::from(number << 3 | LENGTH_DELIMITED), &mut out);
    varint(content.len() as u64, &mut out);
    out.extend_from_slice(content);
    out
}

fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number > 0x7f {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::super::{PARAMETERS, as_json, as_protobuf, patched};
    use super::*;
    use crate::registry::Registry;

    fn read_varint(bytes: &mut &[u8]) -> usize {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            number |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return number;
            }
        }
    }

    /// The fields of a message: number and content.
    fn fields(mut bytes: &[u8]) -> Vec<(usize, &[u8])> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let tag = read_varint(&mut bytes);
            assert_eq!(tag & 7, 2, "only fields with a length are written");
            let length = read_varint(&mut bytes);
            fields.push((tag >> 3, &bytes[..length]));
            bytes = &bytes[length..];
        }
        fields
    }

    fn all(bytes: &[u8], number: usize) -> Vec<&[u8]> {
        let found = fields(bytes).into_iter().filter(|field| field.0 == number);
        found.map(|(_, content)| content).collect()
    }

    fn only<'a>(bytes: &'a [u8], path: &[usize]) -> &'a [u8] {
        path.iter().fold(bytes, |bytes, number| {
            let found = all(bytes, *number);
            assert_eq!(found.len(), 1, "field {number}");
            found[0]
        })
    }

    #[test]
    fn every_kind_that_can_be_patched_is_said_to_take_dry_runs_and_field_validation() {
        let registry = Registry::heddle().unwrap();
        let (document, json) = (as_protobuf(&registry), as_json(&registry));
        assert_eq!(only(&document, &[1]), b"2.0");
        let paths = all(only(&document, &[8]), 2);
        assert_eq!(paths.len(), patched(&registry).count());
        assert!(paths.len() > 10, "{} kinds", paths.len());
        for path in paths {
            let operation = only(path, &[2, 8]);
            let parameters: Vec<&[u8]> = all(operation, 8)
                .into_iter()
                .map(|parameter| only(parameter, &[1, 2, 3, 4]))
                .collect();
            assert_eq!(parameters, PARAMETERS.map(str::as_bytes));
            let extension = only(operation, &[13, 1]);
            assert_eq!(extension, b"x-kubernetes-group-version-kind");
            let kind: Value = serde_json::from_slice(only(operation, &[13, 2, 2])).unwrap();
            let name = std::str::from_utf8(only(path, &[1])).unwrap();
            let same = &json["paths"][name]["patch"]["x-kubernetes-group-version-kind"];
            assert_eq!(*same, kind, "{name}");
        }
    }

    /// Reads a schema back into JSON.
    fn read(bytes: &[u8]) -> Value {
        let mut schema = serde_json::Map::new();
        let text = |bytes: &[u8]| Value::from(std::str::from_utf8(bytes).unwrap());
        let value = |bytes: &[u8]| serde_json::from_slice::<Value>(only(bytes, &[2])).unwrap();
        for (number, content) in fields(bytes) {
            let (name, value) = match number {
                1 => ("$ref".to_owned(), text(content)),
                2 => ("format".to_owned(), text(content)),
                4 => ("description".to_owned(), text(content)),
                19 | 20 => {
                    let name = if number == 19 { "required" } else { "enum" };
                    let value = if number == 19 {
                        text(content)
                    } else {
                        value(content)
                    };
                    let list = schema
                        .entry(name)
                        .or_insert_with(|| Value::Array(Vec::new()));
                    list.as_array_mut().unwrap().push(value);
                    continue;
                }
                21 => ("additionalProperties".to_owned(), read(only(content, &[1]))),
                22 => ("type".to_owned(), text(only(content, &[1]))),
                23 => ("items".to_owned(), read(only(content, &[1]))),
                25 => {
                    let properties = all(content, 1).into_iter().map(|property| {
                        let name = std::str::from_utf8(only(property, &[1])).unwrap();
                        (name.to_owned(), read(only(property, &[2])))
                    });
                    let properties: serde_json::Map<String, Value> = properties.collect();
                    ("properties".to_owned(), Value::Object(properties))
                }
                31 => {
                    let name = std::str::from_utf8(only(content, &[1])).unwrap();
                    (name.to_owned(), value(only(content, &[2])))
                }
                other => panic!("field {other} of a schema"),
            };
            schema.insert(name, value);
        }
        Value::Object(schema)
    }

    /// Without what is not written.
    fn without_bounds(value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let kept = fields.iter().filter(|(name, value)| {
                    !(value.is_number() && matches!(name.as_str(), "minimum" | "maximum"))
                });
                let kept = kept.map(|(name, value)| (name.clone(), without_bounds(value)));
                Value::Object(kept.collect())
            }
            other => other.clone(),
        }
    }

    #[test]
    fn both_encodings_define_the_same() {
        let registry = Registry::heddle().unwrap();
        let (document, json) = (as_protobuf(&registry), as_json(&registry));
        let definitions = all(only(&document, &[9]), 1);
        assert_eq!(
            definitions.len(),
            json["definitions"].as_object().unwrap().len()
        );
        for definition in definitions {
            let name = std::str::from_utf8(only(definition, &[1])).unwrap();
            let expected = without_bounds(&json["definitions"][name]);
            assert_eq!(read(only(definition, &[2])), expected, "{name}");
        }
    }
}
