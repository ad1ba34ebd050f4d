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

#[tokio::test]
async fn the_instance_itself_says_which_plan_it_has() {
    let server = StandIn::start().await;
    let object = "GET /apis/heddle.dev/v1alpha1/namespaces/team-a/serviceinstances/orders";
    let path = "/heddle/v1/osb/team-a/v2/service_instances/orders";
    server
        .answers(
            object,
            200,
            &json!({"spec": {"serviceID": "s1", "planID": "p1"}}),
        )
        .answers(&format!("DELETE {path}"), 202, &json!({"operation": "o2"}))
        .answers(
            &format!("GET {path}/last_operation"),
            200,
            &json!({"state": "succeeded", "description": "3 events drained"}),
        );
    let line = ["heddle", "orders", "-n", "team-a", "--wait"];
    let Line { args } = clap::Parser::parse_from(line);
    let screen = Screen::default();
    deprovision(
        &args,
        CommandContext::new(&server.remote(), &world(), &mut screen.terminal()),
    )
    .await
    .unwrap();
    assert_eq!(screen.out(), "instance orders is gone: 3 events drained\n");
    let query = "accepts_incomplete=true&service_id=s1&plan_id=p1";
    assert_eq!(server.lines()[1], format!("DELETE {path}?{query}"));
}

#[tokio::test]
async fn an_unknown_instance_is_not_found() {
    let server = StandIn::start().await;
    server.answers("GET /api/v1/namespaces/team-a", 200, &json!({}));
    let Line { args } = clap::Parser::parse_from(["heddle", "orders", "-n", "team-a"]);
    let screen = Screen::default();
    let outcome = deprovision(
        &args,
        CommandContext::new(&server.remote(), &world(), &mut screen.terminal()),
    )
    .await;
    let error = outcome.unwrap_err();
    assert_eq!(exit_code(&error), 3, "{error:#}");
    assert!(
        error
            .to_string()
            .contains("namespace team-a has no instance orders")
    );
}
