use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn object() -> Value {
    json!({
        "spec": {"size": 3, "names": ["a", "b", "c"], "x.y": 1, "parts": {"p": {"n": 1}, "q": {"n": 2}}},
        "metadata": {"annotations": {"example.com/a": "yes"}},
        "status": {"conditions": [
            {"type": "Ready", "status": "True", "n": 1},
            {"type": "Synced", "status": "False", "n": 2},
            {"type": "Late", "n": 3},
        ]},
    })
}

#[track_caller]
fn check(path: &str, expected: Value) {
    let path = JsonPath::parse(path).unwrap();
    let object = object();
    assert_eq!(
        Value::from_iter(path.find(&object).into_iter().cloned()),
        expected
    );
    assert_eq!(path.first(&object).cloned(), expected.get(0).cloned());
}

#[test]
fn paths_lead_where_they_say() {
    check(".spec.size", json!([3]));
    check("{.spec.size}", json!([3]));
    check("$.spec.size", json!([3]));
    check("spec.size", json!([3]));
    check(".spec.names[0]", json!(["a"]));
    check(".spec.names[-1]", json!(["c"]));
    check(".spec.names[7]", json!([]));
    check(".spec.names[-7]", json!([]));
    check(".spec.names[*]", json!(["a", "b", "c"]));
    check(".spec.parts[*].n", json!([1, 2]));
    check(".spec.parts.*.n", json!([1, 2]));
    check(".spec['x.y']", json!([1]));
    check(".spec[\"x.y\"]", json!([1]));
    check(r".spec.x\.y", json!([1]));
    check(r".metadata.annotations.example\.com/a", json!(["yes"]));
    check(
        ".status.conditions[?(@.type==\"Ready\")].status",
        json!(["True"]),
    );
    check(
        ".status.conditions[?(@.type=='Ready')].status",
        json!(["True"]),
    );
    check(
        ".status.conditions[?( @.type == 'Gone' )].status",
        json!([]),
    );
    check(
        ".status.conditions[?(@.type!='Ready')].type",
        json!(["Synced", "Late"]),
    );
    check(".status.conditions[?(@.n>1)].n", json!([2, 3]));
    check(".status.conditions[?(@.n>=2)].n", json!([2, 3]));
    check(".status.conditions[?(@.n<2)].n", json!([1]));
    check(".status.conditions[?(@.n<=2)].n", json!([1, 2]));
    check(".status.conditions[?(@.status)].n", json!([1, 2]));
    check(".missing.too", json!([]));
    check(".spec.size.deeper", json!([]));
}

#[test]
fn the_object_itself_is_a_path_too() {
    for path in [".", "{.}", "$", ""] {
        assert_eq!(
            JsonPath::parse(path).unwrap().find(&json!(1)),
            [&json!(1)],
            "{path:?}"
        );
    }
}

#[test]
fn what_is_no_path_is_refused() {
    for (path, problem) in [
        (".a[", "\"\" is no index"),
        (".a[x]", "\"x\" is no index"),
        (".a['x]", "a quote is not closed"),
        (".a..b", "a name is missing after '.'"),
        (".a[?(@.b=='c']", "expected \")]\""),
        (".a[?(b)]", "expected \"@\""),
        (".a[?(@.b ~ 1)]", "a filter needs a comparison"),
        (
            ".a[?(@.b==c)]",
            "\"c\" is neither a text in quotes nor a number nor a boolean",
        ),
        (".a b", "unexpected \" b\""),
        (".a\\", "nothing follows '\\'"),
    ] {
        assert_eq!(
            JsonPath::parse(path).unwrap_err().problem,
            problem,
            "{path}"
        );
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in ".{0,40}", symbols in r#"[a.\[\]'"?()@=!<>*0-9 \\${}-]{0,30}"#) {
        for path in [text, symbols] {
            if let Ok(path) = JsonPath::parse(&path) {
                path.find(&object());
            }
        }
    }

    #[test]
    fn a_quoted_name_is_taken_as_it_is(name in "[^'\\\\]{1,12}") {
        let path = JsonPath::parse(&format!(".a['{name}']")).unwrap();
        let value = json!({"a": {name: 1}});
        prop_assert_eq!(path.find(&value), [&json!(1)]);
    }
}
