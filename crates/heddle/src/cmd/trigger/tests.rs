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
