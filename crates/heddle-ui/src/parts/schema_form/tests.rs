use serde_json::json;

use super::*;

fn kinds(schema: &Value) -> Vec<(String, bool, FieldKind)> {
    let found = fields(schema, "/parameters").into_iter();
    found
        .map(|field| (field.at, field.required, field.kind))
        .collect()
}

#[test]
fn each_kind_of_value_has_its_field_and_required_ones_come_first() {
    let schema = json!({"type": "object", "required": ["size"], "properties": {
        "a/b": {"type": "string"}, "secret": {"type": "string", "format": "password"},
        "size": {"type": "integer", "minimum": 1}, "share": {"type": "number"}, "on": {"type": "boolean"},
        "colour": {"enum": ["red", 2]}, "tags": {"type": "array"}, "any": {},
        "either": {"type": "object", "properties": {}, "oneOf": []},
    }});
    let at = |name: &str| format!("/parameters/{name}");
    assert_eq!(
        kinds(&schema),
        [
            (at("size"), true, FieldKind::Integer),
            (at("a~1b"), false, FieldKind::Text),
            (at("any"), false, FieldKind::Json),
            (
                at("colour"),
                false,
                FieldKind::Choice(vec![json!("red"), json!(2)])
            ),
            (at("either"), false, FieldKind::Json),
            (at("on"), false, FieldKind::Switch),
            (at("secret"), false, FieldKind::Password),
            (at("share"), false, FieldKind::Number),
            (at("tags"), false, FieldKind::Json),
        ]
    );
    assert_eq!(fields(&schema, "/parameters")[0].help, "at least 1");
}

#[test]
fn objects_are_groups_until_they_are_too_deep_or_too_many() {
    let mut schema = json!({"type": "string"});
    for _ in 0..4 {
        schema = json!({"type": "object", "required": ["x"], "properties": {"x": schema}});
    }
    let mut found = fields(&schema, "");
    let mut depth = 1;
    while let FieldKind::Group(inner) = found[0].kind.clone() {
        assert!(found[0].required);
        found = inner;
        depth += 1;
    }
    assert_eq!((depth, &found[0].kind), (DEPTH_MAX, &FieldKind::Json));
    assert_eq!(found[0].at, "/x/x/x");
    let many: serde_json::Map<String, Value> = (0..=FIELDS_MAX)
        .map(|number| (format!("p{number}"), json!({"type": "string"})))
        .collect();
    let found = kinds(&json!({"properties": many}));
    assert_eq!(found, [("/parameters".to_owned(), false, FieldKind::Json)]);
    assert!(fields(&json!(true), "").is_empty() && fields(&json!(null), "").is_empty());
}

#[test]
fn what_is_drawn_is_text_whatever_it_contains_and_numbers_stay_exact() {
    let hostile = "<script>alert(1)</script>\"'";
    let schema = json!({"properties": {hostile: {"type": "string", "description": hostile, "default": hostile},
        "n": {"type": "integer", "default": 9_007_199_254_740_993_u64}, "c": {"enum": [hostile], "default": hostile}}});
    let drawn = draw(&fields(&schema, "/parameters")).into_string();
    assert!(!drawn.contains("<script>"), "{drawn}");
    assert!(drawn.contains("9007199254740993"), "{drawn}");
    assert!(drawn.contains("selected"), "{drawn}");
}
