use clap::Parser as _;
use heddle_api::well_known::OSB_FRONT_ANNOTATION;
use serde_json::json;

use super::*;
use crate::client::stand_in::StandIn;
use crate::cmd::testing::{Screen, world};
use crate::failure::exit_code;

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

/// A server with one instance of a plan, and a catalog with two.
async fn server(front: &str) -> StandIn {
    let server = StandIn::start().await;
    let path = <heddle_api::ServiceInstance as kube::Resource>::url_path(&(), Some("team-a"));
    let object = format!("GET {path}/{}", heddle_api::names::instance("db"));
    let mut instance = json!({"spec": {"serviceID": "s", "planID": "s-small"}});
    instance["metadata"]["annotations"][OSB_FRONT_ANNOTATION] = json!(front);
    server.answers(&object, 200, &instance);
    let catalog = json!({"services": [{"id": "s", "name": "db", "plans": [
        {"id": "s-small", "name": "small", "maintenance_info": {"version": "1.2.0"}},
        {"id": "s-large", "name": "large"},
    ]}]});
    let front = match front {
        "/v2" => front.to_owned(),
        _ => format!("/heddle/v1{front}"),
    };
    server.answers(&format!("GET {front}/catalog"), 200, &catalog);
    let instance = format!("PATCH {front}/service_instances/db");
    server.answers(&instance, 200, &json!({}));
    server
}

async fn run(words: &[&str]) -> (anyhow::Result<String>, Option<Value>) {
    run_at("/osb/team-a/v2", words).await
}

async fn run_at(front: &str, words: &[&str]) -> (anyhow::Result<String>, Option<Value>) {
    let server = server(front).await;
    let line = ["heddle", "db", "-n", "team-a"].iter().chain(words);
    let args = Line::try_parse_from(line).unwrap().args;
    let screen = Screen::default();
    let outcome = update(
        &args,
        CommandContext::new(&server.remote(), &world(), &mut screen.terminal()),
    )
    .await;
    let asked = server.asked();
    let patch = asked.iter().find(|asked| asked.line.starts_with("PATCH"));
    let body = patch.map(|asked| asked.json());
    (outcome.map(|()| screen.out()), body)
}

#[tokio::test]
async fn only_what_was_named_is_asked_for() {
    let (said, body) = run(&["-p", "size=20"]).await;
    assert_eq!(said.unwrap(), "instance db is as asked\n");
    let body = body.unwrap();
    assert_eq!(body["parameters"], json!({"size": 20}));
    assert_eq!(body["service_id"], "s");
    assert_eq!(body["previous_values"]["plan_id"], "s-small");
    assert!(body.get("plan_id").is_none() && body.get("maintenance_info").is_none());

    let (_, body) = run(&["--plan", "large", "--version", "2.0.0"]).await;
    let body = body.unwrap();
    assert_eq!(body["plan_id"], "s-large");
    assert_eq!(body["maintenance_info"], json!({"version": "2.0.0"}));
    assert!(body.get("parameters").is_none());

    let (_, body) = run(&["--version", "latest"]).await;
    assert_eq!(
        body.unwrap()["maintenance_info"],
        json!({"version": "1.2.0"})
    );
}

/// A platform may have asked for the instance.
#[tokio::test]
async fn an_instance_is_changed_at_the_front_that_knows_it() {
    let (said, body) = run_at("/v2", &["--plan", "large"]).await;
    assert_eq!(said.unwrap(), "instance db is as asked\n");
    assert_eq!(body.unwrap()["plan_id"], "s-large");
}

#[tokio::test]
async fn what_cannot_be_meant_is_refused_before_anything_is_changed() {
    for (words, code, said) in [
        (&[][..], 2, "nothing to change"),
        (
            &["--plan", "huge"],
            3,
            "has no plan `huge`; it has small, large",
        ),
        (
            &["--plan", "large", "--version", "latest"],
            1,
            "no version in the catalog",
        ),
    ] {
        let (outcome, body) = run(words).await;
        let error = outcome.unwrap_err();
        assert_eq!(exit_code(&error), code, "{error}");
        assert!(error.to_string().contains(said), "{error}");
        assert!(body.is_none());
    }
}
