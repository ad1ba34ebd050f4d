use serde_json::json;

use super::*;
use crate::client::stand_in::StandIn;
use crate::cmd::testing::{Screen, world};

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

#[tokio::test]
async fn credentials_are_shown_whether_they_came_at_once_or_later() {
    let object = "GET /apis/heddle.dev/v1alpha1/namespaces/team-a/serviceinstances/crm";
    let path = "/heddle/v1/osb/team-a/v2/service_instances/crm/service_bindings/web";
    let credentials = json!({"credentials": {"GATEWAY_URL": "http://crm.example"}});
    for later in [false, true] {
        let server = StandIn::start().await;
        server.answers(
            object,
            200,
            &json!({"spec": {"serviceID": "s1", "planID": "p1"}}),
        );
        if later {
            server
                .answers(&format!("PUT {path}"), 202, &json!({}))
                .answers(
                    &format!("GET {path}/last_operation"),
                    200,
                    &json!({"state": "succeeded"}),
                )
                .answers(&format!("GET {path}"), 200, &credentials);
        } else {
            server.answers(&format!("PUT {path}"), 201, &credentials);
        }
        let line = ["heddle", "crm", "-n", "team-a", "--id", "web"];
        let Line { args } = clap::Parser::parse_from(line);
        let screen = Screen::default();
        bind(
            &args,
            CommandContext::new(&server.remote(), &world(), &mut screen.terminal()),
        )
        .await
        .unwrap();
        assert_eq!(
            screen.out(),
            "binding web\n  GATEWAY_URL http://crm.example\n"
        );
    }
}
