//! A manifest as YAML, for people who keep theirs in files: objects by indentation, everything else as JSON, which is YAML.

use serde_json::Value;

/// The text, with a line break at its end.
pub(crate) fn yaml(object: &Value) -> String {
    let mut text = String::new();
    members(object, 0, &mut text);
    text
}

fn members(object: &Value, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    for (name, value) in object.as_object().into_iter().flatten() {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
        let name = match !name.is_empty() && name.bytes().all(plain) {
            true => name.clone(),
            false => Value::from(name.as_str()).to_string(),
        };
        match value {
            Value::Object(inner) if !inner.is_empty() => {
                text.push_str(&format!("{indent}{name}:\n"));
                members(value, depth + 1, text);
            }
            Value::Array(items) if !items.is_empty() => {
                text.push_str(&format!("{indent}{name}:\n"));
                for item in items {
                    text.push_str(&format!("{indent}- {item}\n"));
                }
            }
            other => text.push_str(&format!("{indent}{name}: {other}\n")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_somebody_typed_stays_one_value() {
        let object = json!({
            "kind": "Trigger",
            "metadata": {"annotations": {"heddle.dev/delivery-order": "ordered", "a: b": "x\ny"}, "labels": {}},
            "spec": {"filters": [{"exact": {"type": "a: b\n- c"}}], "retry": 3},
        });
        let expected = "kind: \"Trigger\"\nmetadata:\n  annotations:\n    \"a: b\": \"x\\ny\"\n    heddle.dev/delivery-order: \"ordered\"\n  \
                        labels: {}\nspec:\n  filters:\n  - {\"exact\":{\"type\":\"a: b\\n- c\"}}\n  retry: 3\n";
        assert_eq!(yaml(&object), expected);
    }
}
