use serde_json::json;

use super::*;

fn parameters(param: &[&str], params: Option<&str>) -> String {
    let args = ParameterArgs {
        param: param.iter().map(ToString::to_string).collect(),
        params: params.map(str::to_owned),
    };
    match args.value() {
        Ok(value) => value.to_string(),
        Err(failure) => failure.to_string(),
    }
}

#[test]
fn parameters_are_json_where_they_can_be_and_text_otherwise() {
    assert_eq!(parameters(&[], None), "{}");
    assert_eq!(
        parameters(&["n=3", "on=true", "region=eu", "text=a=b"], None),
        json!({"n": 3, "on": true, "region": "eu", "text": "a=b"}).to_string()
    );
    assert_eq!(parameters(&[], Some(r#"{"a":[1]}"#)), r#"{"a":[1]}"#);
    assert_eq!(
        parameters(&["a"], None),
        "`a` is no parameter; write NAME=VALUE"
    );
    assert_eq!(
        parameters(&["a=1", "a=2"], None),
        "parameter a is given twice"
    );
    assert_eq!(parameters(&[], Some("[]")), "--params is no JSON object");
}

#[test]
fn what_is_waited_for_is_told_without_when_it_began() {
    for (said, news) in [
        ("making it", "making it"),
        (
            "waiting for Ready since 2026-11-16T02:10:22Z: waiting for LinkReady since 2026-11-16T02:10:21.5Z: no policy",
            "waiting for Ready: waiting for LinkReady: no policy",
        ),
        (
            "unchanged since yesterday, at least",
            "unchanged since yesterday, at least",
        ),
        ("down since 2026-11-16T02:10:22Z", "down"),
    ] {
        assert_eq!(without_times(said), news);
    }
}
