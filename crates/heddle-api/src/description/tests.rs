use super::*;
use serde_json::json;

/// In the way of existing bundles: parameters shared by an anchor, old spellings, members without a value.
const GOOD: &str = r#"
version: 1.0
name: sqlite-apb
description: A database in a file
bindable: yes
async: optional
tags: [database, sqlite]
bundleVersion: "1.10.0"
metadata:
  displayName: SQLite
_parameters: &parameters
  - name: file
    type: String
    required: True
    maxlength: 64
    pattern: '^[a-z]+(?!\.tmp)$'
  - name: mode
    title: Mode
    type: enum
    enum: [ro, rw]
    default: rw
    updatable: true
    display_group: Access
  - name: password
    type: string
    required: true
    display_type: password
    display_group: Access
    dependencies:
      - {key: mode, value: rw}
  - name: pages
    type: INT
    minimum: 1
    exclusive_maximum: 100
    updatable: true
plans:
  - name: small
    description: A little
    free: yes
    parameters: *parameters
    bind_parameters:
    updates_to: [large]
  - name: large
    parameters: *parameters
    bind_parameters:
      - name: role
        type: string
"#;

fn refused(change: impl FnOnce(&mut Value)) -> String {
    let (members, _) = read(GOOD).unwrap();
    let mut value = Value::Object(members);
    change(&mut value);
    let Value::Object(members) = value else {
        unreachable!("it was an object");
    };
    Description::of(&members).unwrap_err()
}

#[test]
fn a_description_of_the_usual_kind_is_understood() {
    let (members, description) = read(GOOD).unwrap();
    assert_eq!(members["name"], json!("sqlite-apb"));
    assert_eq!(description.version().as_deref(), Some("1.10.0"));
    assert!(description.bindable);
    let small = description.plan("small").unwrap();
    assert_eq!(small.free, Some(true));
    assert_eq!(small.parameters.len(), 4);
    assert_eq!(small.parameters[0].max_length, Some(64));
    assert_eq!(Value::from(small.defaults()), json!({"mode": "rw"}));
    assert_eq!(Description::of(&members), Ok(description));
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    type Change = fn(&mut Value);
    let table: [(Change, &str); 22] = [
        (
            |d| d["name"] = json!(" "),
            "the description has an empty name",
        ),
        (
            |d| d["name"] = json!(["x"]),
            "name of the description: invalid type: sequence",
        ),
        (
            |d| d["version"] = json!("2.0"),
            "version \"2.0\" is that of the format",
        ),
        (
            |d| d["version"] = json!(null),
            "version, which is that of the format, is missing",
        ),
        (
            |d| d["bundleVersion"] = json!(1.1),
            "bundleVersion is not a text of 1 to 256 characters",
        ),
        (|d| d["async"] = json!("maybe"), "async is \"maybe\""),
        (
            |d| d["bindable"] = json!("perhaps"),
            "bindable of the description: \"perhaps\" is neither",
        ),
        (|d| d["plans"] = json!([]), "it has no plans"),
        (
            |d| d["plans"] = json!({}),
            "plans of the description is not a list",
        ),
        (|d| d["plans"][1] = json!("x"), "plan 2 is not a mapping"),
        (
            |d| d["plans"][1] = json!({"free": true}),
            "plan 2: missing field `name`",
        ),
        (
            |d| d["plans"][1]["name"] = json!("small"),
            "two plans have the name small",
        ),
        (
            |d| d["plans"][0]["updates_to"] = json!(["huge"]),
            "plan small updates to huge",
        ),
        (
            |d| d["plans"][0]["free"] = json!(3),
            "free of plan small: 3 is neither",
        ),
        (
            |d| d["plans"][0]["parameters"][1]["type"] = json!("text"),
            "parameter mode of plan small has the type \"text\"",
        ),
        (
            |d| d["plans"][0]["parameters"][1]["enum"] = json!(null),
            "parameter mode of plan small is of type enum",
        ),
        (
            |d| d["plans"][0]["parameters"][1]["name"] = json!("file"),
            "parameter file of plan small is there twice",
        ),
        (
            |d| d["plans"][0]["parameters"][0]["pattern"] = json!("(a"),
            "parameter file of plan small has the pattern \"(a\"",
        ),
        (
            |d| d["plans"][0]["parameters"][3]["minimum"] = json!("x"),
            "minimum of parameter pages of plan small: invalid type",
        ),
        (
            |d| d["plans"][0]["parameters"][3]["minimum"] = json!(200),
            "parameter pages of plan small has a lower limit above",
        ),
        (
            |d| d["plans"][0]["parameters"][2]["dependencies"][0]["key"] = json!("x"),
            "parameter password of plan small depends on x",
        ),
        (
            |d| d["plans"][1]["bind_parameters"][0]["type"] = json!("x"),
            "bind parameter role of plan large has the type",
        ),
    ];
    for (change, expected) in table {
        let message = refused(change);
        assert!(
            message.starts_with(expected),
            "{message:?} begins with {expected:?}"
        );
    }
}

#[test]
fn a_schema_that_platforms_would_not_take_is_refused() {
    let message = refused(|d| {
        d["plans"][0]["parameters"][0]["description"] = json!("x".repeat(70_000));
    });
    assert!(
        message.starts_with("the parameters of plan small make a schema of 7"),
        "{message}"
    );
}

/// Each has far more values than its length tells, or would take a parser far down. Nothing here looks at a clock: what is
/// asserted is that the budget ends the work, long before the values are there.
#[test]
fn bombs_are_refused_by_what_they_would_cost() {
    let laughs = {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for n in 1..12 {
            let before = vec![format!("*a{}", n - 1); 10].join(", ");
            text.push_str(&format!("a{n}: &a{n} [{before}]\n"));
        }
        text
    };
    let shared = format!(
        "a: &a {}\nb: [{}]\n",
        "[x, x, x, x, x, x, x, x, x, x]",
        vec!["*a"; 5000].join(", ")
    );
    for text in [
        laughs,
        shared,
        format!("a: {}{}", "[".repeat(5000), "]".repeat(5000)),
        (0..200).map(|n| format!("{}k:\n", " ".repeat(n))).collect(),
        format!("a: [{}]", "x,".repeat(200_000)),
        "---\na: 1\n".repeat(50),
        "a: &a [*a]".to_owned(),
        "x".repeat(TEXT_BYTES_MAX + 1),
    ] {
        let shown: String = text.chars().take(40).collect();
        let message = read(&text).unwrap_err();
        assert!(message.len() < 1000, "{shown}: {message}");
        assert!(
            message.starts_with("the description cannot be read")
                || message.starts_with("the description has"),
            "{shown}: {message}"
        );
    }
}

#[test]
fn text_that_is_no_description_is_refused() {
    for text in ["", "x", "[1]", "a: b: c", "name: x\nname: y", "\u{0}"] {
        assert!(read(text).is_err(), "{text:?}");
    }
}

#[test]
fn parameters_become_schemas_of_the_oldest_draft() {
    let (_, description) = read(GOOD).unwrap();
    let schemas = description.plans[0].schemas();
    insta::assert_json_snapshot!(
        json!({"create": schemas.create, "update": schemas.update, "bind": schemas.bind})
    );
    assert_eq!(
        form_definition(&description.plans[0].parameters),
        json!([
            "file",
            {"type": "fieldset", "title": "Access", "items": ["mode", {"key": "password", "type": "password"}]},
            "pages",
        ])
    );
}

#[test]
fn every_type_and_limit_has_its_keyword() {
    let plan = |parameter: Value| {
        let members = json!({"version": "1.0.0", "name": "x", "plans": [{"name": "p", "parameters": [parameter]}]});
        let description = Description::of(members.as_object().unwrap()).unwrap();
        description.plans[0].schemas().create["properties"]["p"].clone()
    };
    for (word, type_) in [
        ("String", json!("string")),
        ("int", json!("integer")),
        ("INTEGER", json!("integer")),
        ("number", json!("number")),
        ("bool", json!("boolean")),
        ("Boolean", json!("boolean")),
        ("object", json!("object")),
        ("array", json!("array")),
        ("nil", json!("null")),
        ("null", json!("null")),
    ] {
        assert_eq!(
            plan(json!({"name": "p", "type": word})),
            json!({"type": type_}),
            "{word}"
        );
    }
    assert_eq!(
        plan(json!({"name": "p", "type": "enum", "enum": [1, 2]})),
        json!({"enum": [1, 2]}),
        "values that are no texts"
    );
    assert_eq!(
        plan(
            json!({"name": "p", "minimum": 1, "exclusive_minimum": 1, "maximum": 2.5, "exclusive_maximum": 3, "multiple_of": 0.5})
        ),
        json!({"minimum": 1, "exclusiveMinimum": true, "maximum": 2.5, "multipleOf": 0.5})
    );
}

#[test]
fn patterns_are_checked_for_what_no_engine_takes() {
    for good in [
        "",
        "^[a-z]{1,3}$",
        "a|b",
        r"\d+\.",
        "(?:a)(?=b)(?!c)(?<=d)(?<!e)(?<name>f)",
        "[^\\]]",
        "a{",
        "a{x}",
        "a{,2}",
        "x{2,}?",
        "(a*)+",
        "[[]",
        "{",
        "ü+",
    ] {
        assert_eq!(pattern::check(good), Ok(()), "{good}");
    }
    let long = "a".repeat(1025);
    for bad in [
        "(",
        ")",
        "(a",
        "a)",
        "[a",
        "[]",
        "*",
        "a**",
        "(+a)",
        "|?",
        "\\",
        "[\\",
        "(?a)",
        "(?<a",
        "(?<>a)",
        "a{2,1}",
        "{2}",
        "a{1001}",
        long.as_str(),
    ] {
        assert!(pattern::check(bad).is_err(), "{bad}");
    }
}
