use super::*;

fn target<'a>(
    group: &'a str,
    namespace: Option<&'a str>,
    plural: &'a str,
    name: Option<&'a str>,
    subresource: Option<&'a str>,
) -> Path<'a> {
    Path::Object(Target {
        group,
        version: "v1",
        namespace,
        plural,
        name,
        subresource,
    })
}

#[test]
fn paths_say_what_is_meant() {
    let check =
        |input: &'static str, expected: Path<'static>| assert_eq!(path(input), expected, "{input}");
    check(
        "/api/v1/namespaces",
        target("", None, "namespaces", None, None),
    );
    check(
        "/api/v1/namespaces/a",
        target("", None, "namespaces", Some("a"), None),
    );
    check(
        "/api/v1/namespaces/a/status",
        target("", None, "namespaces", Some("a"), Some("status")),
    );
    check(
        "/api/v1/namespaces/a/configmaps",
        target("", Some("a"), "configmaps", None, None),
    );
    check(
        "/api/v1/namespaces/a/configmaps/b",
        target("", Some("a"), "configmaps", Some("b"), None),
    );
    check("/apis/g/v1/things", target("g", None, "things", None, None));
    check(
        "/apis/g/v1/things/x/status",
        target("g", None, "things", Some("x"), Some("status")),
    );
    check(
        "/apis/g/v1/namespaces/a/things/x/status",
        target("g", Some("a"), "things", Some("x"), Some("status")),
    );
    check("/openapi/v3/apis/g/v1", Path::OpenApi("apis/g/v1"));
    check(
        "/apis/g/v1/namespaces/a/things/x/status/deeper",
        Path::Unknown,
    );
    check("/", Path::Root);
}

#[test]
fn queries_that_make_no_sense_are_refused_and_odd_spellings_are_not() {
    let parse = |query: &str| Params::parse(&Method::GET, query);
    assert!(parse("&limit=500").unwrap().limit == Some(500));
    assert!(parse("").is_ok());
    assert!(parse("limit=0").unwrap().limit.is_none());
    assert!(parse("watch=1&allowWatchBookmarks=true").unwrap().watch);
    assert!(parse("limit=many").is_err());
    assert!(parse("watch=perhaps").is_err());
}

#[test]
fn a_refused_parameter_is_told_with_the_options_it_belongs_to() {
    let check = |method: Method, query: &str, expected: &str| {
        let refusal = Params::parse(&method, query).unwrap_err();
        assert_eq!(refusal.code.as_u16(), 422, "{query}");
        assert_eq!(refusal.message, expected);
    };
    check(
        Method::POST,
        "dryRun=Some",
        r#"CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All""#,
    );
    check(
        Method::PATCH,
        "fieldValidation=Loose",
        r#"PatchOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Loose": supported values: "", "Ignore", "Strict", "Warn""#,
    );
    check(
        Method::PUT,
        "fieldManager=a%00b",
        r#"UpdateOptions.meta.k8s.io "" is invalid: fieldManager: Invalid value: "a\0b": invalid character U+0000 (at position 1)"#,
    );
}

#[test]
fn numbers_are_read_up_to_what_they_are_used_for() {
    let parse = |query: &str| Params::parse(&Method::GET, query);
    let seconds =
        |text: &str| parse(&format!("timeoutSeconds={text}")).map(|params| params.timeout_seconds);
    assert_eq!(seconds("5").unwrap(), Some(5));
    assert_eq!(seconds("").unwrap(), None);
    assert_eq!(
        seconds("18446744073709551615").unwrap(),
        Some(TIMEOUT_SECONDS_MAX)
    );
    assert_eq!(
        parse("limit=18446744073709551615").unwrap().limit,
        Some(usize::MAX)
    );
    for wrong in ["-1", "1e308", "18446744073709551616", "0x10", "NaN", "1.5"] {
        for key in ["timeoutSeconds", "limit"] {
            assert!(parse(&format!("{key}={wrong}")).is_err(), "{key}={wrong}");
        }
    }
}
