use serde_json::json;

use super::*;

#[test]
fn duplicate_keys_are_named_with_their_path() {
    let decoded = json(br#"{"a":1,"b":{"c":1,"c":2},"a":3,"l":[{"x":1,"x":2}]}"#).unwrap();
    assert_eq!(
        decoded.value,
        json!({"a": 3, "b": {"c": 2}, "l": [{"x": 2}]})
    );
    assert_eq!(decoded.duplicates, ["b.c", "a", "l[0].x"]);
}

#[test]
fn a_whole_number_is_kept_as_one_however_it_is_written() {
    let decoded = json(b"[3.0, -2e2, 0.5, 1e300, 9007199254740993]").unwrap();
    assert_eq!(
        decoded.value.to_string(),
        "[3,-200,0.5,1e+300,9007199254740993]"
    );
}

#[test]
fn ten_thousand_levels_are_refused_without_overflowing_the_stack() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = open.repeat(10_000) + "1" + &close.repeat(10_000);
        let refusal = json(deep.as_bytes()).unwrap_err();
        assert_eq!(refusal.code.as_u16(), 400, "{}", refusal.message);
        assert_eq!(
            yaml(format!("a: {deep}").as_bytes())
                .unwrap_err()
                .code
                .as_u16(),
            400
        );
    }
}

#[test]
fn garbage_is_a_bad_request_that_says_where() {
    for text in ["", "{", "{}{}", "nonsense", "{\"a\":}"] {
        let refusal = json(text.as_bytes()).unwrap_err();
        assert_eq!(refusal.code.as_u16(), 400);
        assert!(refusal.message.contains("line"), "{}", refusal.message);
    }
}

#[test]
fn yaml_and_json_read_the_same() {
    let from_yaml = yaml(b"a: 1\nb: [x, true, null]\nc: {d: '1'}\n")
        .unwrap()
        .value;
    assert_eq!(
        from_yaml,
        json!({"a": 1, "b": ["x", true, null], "c": {"d": "1"}})
    );
    assert_eq!(yaml(b" {\"a\": 1}").unwrap().value, json!({"a": 1}));
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused() {
    let (parts, ()) = http::Request::new(()).into_parts();
    let somebody = Identity::new("somebody", &[]);
    let body = axum::body::Body::from(vec![b' '; BODY_BYTES_MAX + 1]);
    let refused = read(body, &parts, &somebody).await.unwrap_err();
    assert_eq!(refused.code.as_u16(), 413);
    let body = axum::body::Body::from("{}");
    let received = read(body, &parts, &somebody).await.unwrap();
    assert_eq!(&received.bytes[..], b"{}");
}
