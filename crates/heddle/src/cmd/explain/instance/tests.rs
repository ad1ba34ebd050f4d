use serde_json::{Value, json};

use super::*;
use crate::client::stand_in::StandIn;
use crate::cmd::testing::Screen;
use crate::wire::World;

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

const OBJECTS: &str = "/apis/heddle.dev/v1alpha1/namespaces/team-a";

fn instance(phase: &str, conditions: &Value) -> Value {
    json!({
        "apiVersion": "heddle.dev/v1alpha1", "kind": "ServiceInstance",
        "metadata": {"name": "orders", "namespace": "team-a"},
        "spec": {
            "instanceID": "orders", "serviceID": "s1", "planID": "p1",
            "application": {"name": "shop", "serviceID": "s1"},
            "operation": {"id": "o1", "kind": "provision", "requestHash": "h",
                "acceptedAt": "2026-01-01T00:00:00Z", "deadline": "2026-01-01T00:54:00Z"},
        },
        "status": {
            "phase": phase, "conditions": conditions,
            "operation": {"id": "o1", "kind": "provision", "state": "inProgress", "description": "ChannelReady"},
        },
    })
}

fn flow() -> Value {
    json!({
        "apiVersion": "heddle.dev/v1alpha1", "kind": "EventFlow",
        "metadata": {"name": "orders", "namespace": "team-a"},
        "spec": {"application": "shop", "serviceID": "s1"},
        "status": {"conditions": [
            {"type": "Allowed", "status": "True"},
            {"type": "ChannelReady", "status": "False", "reason": "ChannelMissing",
             "message": "Channel kyma-integration/shop does not exist", "lastTransitionTime": "2026-01-01T00:00:30Z"},
            {"type": "Ready", "status": "False", "reason": "ChannelMissing", "message": "as above"},
        ]},
    })
}

async fn run(instance: &Value, flow: Option<&Value>) -> String {
    let server = StandIn::start().await;
    server.answers(
        &format!("GET {OBJECTS}/serviceinstances/orders"),
        200,
        instance,
    );
    let services = json!([{"id": "s1", "name": "shop-orders"}]);
    server.answers(
        "GET /apis/applicationconnector.kyma-project.io/v1alpha1/applications/shop",
        200,
        &json!({"metadata": {"name": "shop"}, "spec": {"services": services}}),
    );
    if let Some(flow) = flow {
        server.answers(&format!("GET {OBJECTS}/eventflows/orders"), 200, flow);
    }
    let Line { args } = clap::Parser::parse_from(["heddle", "orders", "-n", "team-a"]);
    let now: Timestamp = "2026-01-01T00:02:00Z".parse().unwrap();
    let world = World {
        clock: heddle_rt::Clock::simulated(now),
        ..crate::cmd::testing::world()
    };
    let screen = Screen::default();
    explain(
        &args,
        CommandContext::new(&server.remote(), &world, &mut screen.terminal()),
    )
    .await
    .unwrap();
    screen.out()
}

#[tokio::test]
async fn what_is_waited_for_is_told_with_object_reason_and_remedy() {
    let text = run(&instance("Provisioning", &json!([])), Some(&flow())).await;
    insta::assert_snapshot!(text, @r"
    orders  Provisioning
      service    shop-orders of application shop
      operation  provision in progress, asked for 2 min ago: ChannelReady; the platform is told it failed at 2026-01-01T00:54:00.000Z
      waits for  ChannelReady of eventflow/orders for 90 s
                 ChannelMissing: Channel kyma-integration/shop does not exist
                 it goes on by itself as soon as that changes
    ");
}

#[tokio::test]
async fn an_instance_at_rest_waits_for_nothing() {
    let text = run(&instance("Running", &json!([])), None).await;
    assert!(text.contains("waits for  nothing"), "{text}");
}

#[tokio::test]
async fn what_people_must_do_is_told_once_with_the_deadline_that_holds() {
    let message = "ApplicationMapping team-a/shop does not exist; create it to allow the service";
    let conditions = json!([
        {"type": "Allowed", "status": "False", "reason": "MappingMissing", "message": message,
         "lastTransitionTime": "2026-01-01T00:01:30Z"},
        {"type": "Provisioned", "status": "False", "reason": "InProgress",
         "message": "EventFlow team-a/orders is made as soon as the namespace may use the service"},
        {"type": "Ready", "status": "False", "reason": "MappingMissing", "message": message},
    ]);
    let mut instance = instance("Provisioning", &conditions);
    instance["status"]["operation"]["description"] = json!(format!(
        "waiting for Allowed since 2026-01-01T00:01:30Z: {message}"
    ));
    let text = run(&instance, None).await;
    insta::assert_snapshot!(text, @r"
    orders  Provisioning
      service    shop-orders of application shop
      operation  provision in progress, asked for 2 min ago; the platform is told it failed at 2026-01-01T00:02:30.000Z
      waits for  Allowed of serviceinstance/orders for 30 s
                 MappingMissing: ApplicationMapping team-a/shop does not exist; create it to allow the service
                 somebody has to act first: MappingMissing does not go away by itself
    ");
    assert_eq!(text.matches(message).count(), 1, "{text}");
}
