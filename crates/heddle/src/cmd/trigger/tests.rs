//! From arguments to one change of the object.

use clap::Parser as _;

use super::*;
use crate::client::stand_in::StandIn;
use crate::cmd::testing::{Screen, world};

#[derive(Debug, clap::Parser)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

const TRIGGER: &str = "/apis/eventing.knative.dev/v1/namespaces/team-a/triggers/orders";

/// What was sent to change the object, and what was shown.
async fn changed(words: &[&str]) -> anyhow::Result<(Value, String)> {
    let server = StandIn::start().await;
    server
        .answers("GET /heddle/v1/session", 200, &json!({"user": "ada"}))
        .answers(
            &format!("PATCH {TRIGGER}"),
            200,
            &json!({"kind": "Trigger"}),
        );
    let screen = Screen::default();
    let command = Line::try_parse_from([&["trigger"], words].concat())?.command;
    let (remote, world, mut terminal) = (server.remote(), world(), screen.terminal());
    let context = CommandContext::new(&remote, &world, &mut terminal);
    command.act(context).await?;
    let asked = server.asked();
    let patch = asked.iter().find(|asked| asked.line.starts_with("PATCH"));
    Ok((patch.unwrap().json(), screen.out()))
}

#[tokio::test]
async fn a_pause_says_who_why_and_until_when() {
    let until = "2126-03-01T12:00:00Z";
    let (patch, shown) = changed(&[
        "pause",
        "team-a/orders",
        "--reason",
        "mending",
        "--until",
        until,
    ])
    .await
    .unwrap();
    let annotations = &patch["metadata"]["annotations"];
    assert_eq!(annotations["heddle.dev/paused"], "true");
    assert_eq!(annotations["heddle.dev/paused-by"], "ada");
    assert_eq!(annotations["heddle.dev/paused-reason"], "mending");
    assert_eq!(annotations["heddle.dev/paused-until"], until);
    assert!(shown.contains(until), "{shown}");
    let (patch, _) = changed(&["resume", "team-a/orders"]).await.unwrap();
    let annotations = patch["metadata"]["annotations"].as_object().unwrap();
    assert_eq!(annotations.len(), 4);
    assert!(annotations.values().all(Value::is_null));
}

#[tokio::test]
async fn a_time_that_is_over_pauses_nothing() {
    let past = ["pause", "team-a/orders", "--until", "2020-01-01T00:00:00Z"];
    let error = changed(&past).await.unwrap_err();
    assert!(error.to_string().contains("is over"), "{error}");
    let both = [
        "pause",
        "team-a/orders",
        "--until",
        "2126-03-01T12:00:00Z",
        "--for",
        "1h",
    ];
    assert!(changed(&both).await.is_err());
}

#[tokio::test]
async fn a_rate_is_one_annotation_and_none_takes_it_away() {
    let (patch, shown) = changed(&["rate", "team-a/orders", "0.50/s"]).await.unwrap();
    let expected = json!({"metadata": {"annotations": {"heddle.dev/rate": "0.5/s"}}});
    assert_eq!(patch, expected);
    assert!(shown.contains("0.5/s at most"), "{shown}");
    let (patch, _) = changed(&["rate", "team-a/orders", "none"]).await.unwrap();
    assert!(patch["metadata"]["annotations"]["heddle.dev/rate"].is_null());
    let error = changed(&["rate", "team-a/orders", "fast"])
        .await
        .unwrap_err();
    assert!(error.to_string().contains("such as 100/s"), "{error}");
}

#[tokio::test]
async fn a_filter_replaces_the_older_form_too() {
    let text = "exact type = a\ncesql amount > 1";
    let (patch, _) = changed(&["filter", "team-a/orders", text]).await.unwrap();
    let filters = json!([{"exact": {"type": "a"}}, {"cesql": "amount > 1"}]);
    assert_eq!(patch["spec"], json!({"filters": filters, "filter": null}));
    let error = changed(&["filter", "team-a/orders", "exact type"])
        .await
        .unwrap_err();
    assert!(error.to_string().contains("character 11"), "{error}");
}

const SIGN: &str = "POST /heddle/v1/triggers/team-a/orders/sign";
const ROTATE: &str = "POST /heddle/v1/triggers/team-a/orders/rotate-key";
const UNSIGN: &str = "POST /heddle/v1/triggers/team-a/orders/unsign";

/// What was asked for and sent along, what went to standard output and what was said beside it.
async fn signed(words: &[&str]) -> anyhow::Result<(String, Value, String, String)> {
    let server = StandIn::start().await;
    let made = json!({
        "trigger": "team-a/orders", "secret": "team-a/orders-signing", "scheme": "v1", "key": "whsec_c2VjcmV0",
        "previousUntil": "2126-03-01T12:00:00Z",
    });
    server
        .answers(SIGN, 200, &made)
        .answers(ROTATE, 200, &made)
        .answers(UNSIGN, 200, &json!({"trigger": "team-a/orders"}));
    let screen = Screen::default();
    let command = Line::try_parse_from([&["trigger", "sign"], words].concat())?.command;
    let (remote, world, mut terminal) = (server.remote(), world(), screen.terminal());
    let context = CommandContext::new(&remote, &world, &mut terminal);
    command.act(context).await?;
    let asked = server.asked().remove(0);
    Ok((asked.line.clone(), asked.json(), screen.out(), screen.err()))
}

#[tokio::test]
async fn a_key_is_alone_on_standard_output_and_shown_nowhere_else() {
    for (words, line, body) in [
        (vec!["team-a/orders"], SIGN, json!({"scheme": "v1"})),
        (
            vec!["team-a/orders", "--ed25519"],
            SIGN,
            json!({"scheme": "v1a"}),
        ),
        (vec!["team-a/orders", "--rotate"], ROTATE, json!({})),
        (
            vec!["team-a/orders", "--rotate", "--ed25519", "--overlap", "7d"],
            ROTATE,
            json!({"scheme": "v1a", "overlap": "7d"}),
        ),
        (
            vec!["team-a/orders", "--rotate", "--overlap", "none"],
            ROTATE,
            json!({"overlap": "none"}),
        ),
    ] {
        let (asked, sent, out, err) = signed(&words).await.unwrap();
        assert_eq!((&*asked, sent), (line, body), "{words:?}");
        assert_eq!(out, "whsec_c2VjcmV0\n");
        assert!(err.contains("only now") && !err.contains("whsec_"), "{err}");
        assert!(err.contains("2126-03-01T12:00:00Z"), "{err}");
    }
    let (_, _, out, _) = signed(&["team-a/orders", "-o", "json"]).await.unwrap();
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(told["key"], "whsec_c2VjcmV0");
}

#[tokio::test]
async fn signing_ends_when_it_is_asked_to_and_flags_that_make_no_sense_do_nothing() {
    let (asked, _, out, _) = signed(&["team-a/orders", "--off"]).await.unwrap();
    assert_eq!(asked, UNSIGN);
    assert!(out.contains("not signed"), "{out}");
    for wrong in [
        vec!["team-a/orders", "--off", "--rotate"],
        vec!["team-a/orders", "--off", "--ed25519"],
        vec!["team-a/orders", "--overlap", "24h"],
        vec!["team-a/orders", "--rotate", "--overlap", "99d"],
    ] {
        assert!(signed(&wrong).await.is_err(), "{wrong:?}");
    }
}
