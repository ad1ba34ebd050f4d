use serde_json::{Value, json};

use super::*;
use crate::client::ClientArgs;
use crate::client::stand_in::StandIn;
use crate::cmd::testing::{Screen, world};
use crate::failure::exit_code;

const INSTANCE: &str = "/heddle/v1/osb/team-a/v2/service_instances/orders";

async fn server() -> StandIn {
    let server = StandIn::start().await;
    let catalog = json!({"services": [
        {"id": "s1", "name": "shop-events", "plans": [{"id": "p1", "name": "default"}]}
    ]});
    server.answers("GET /heddle/v1/osb/team-a/v2/catalog", 200, &catalog);
    server
}

/// Runs `heddle provision`, and answers with the exit code and both outputs.
async fn run(server: &StandIn, words: &[&str]) -> (u8, String, String) {
    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }
    let line = ["heddle", "shop-events", "-n", "team-a", "--id", "orders"];
    let line = line.iter().chain(words);
    let Line { args } = clap::Parser::parse_from(line);
    let ClientArgs { .. } = &args.request.instance.client;
    let screen = Screen::default();
    let outcome = provision(
        &args,
        CommandContext::new(&server.remote(), &world(), &mut screen.terminal()),
    )
    .await;
    let (code, error) = match outcome {
        Ok(()) => (0, String::new()),
        Err(error) => (exit_code(&error), format!("{error:#}\n")),
    };
    (code, screen.out(), format!("{error}{}", screen.err()))
}

fn operation(state: &str, description: &str) -> Value {
    json!({"state": state, "description": description})
}

#[tokio::test]
async fn what_is_done_at_once_needs_no_waiting() {
    let server = server().await;
    server.answers(&format!("PUT {INSTANCE}"), 201, &json!({}));
    let (code, out, _) = run(&server, &[]).await;
    assert_eq!((code, out.as_str()), (0, "instance orders is ready\n"));
}

#[tokio::test]
async fn without_waiting_the_answer_says_how_to_go_on() {
    let server = server().await;
    server.answers(&format!("PUT {INSTANCE}"), 202, &json!({"operation": "o1"}));
    let (code, out, _) = run(&server, &[]).await;
    assert_eq!(code, 0);
    assert!(
        out.contains("heddle explain instance orders -n team-a"),
        "{out}"
    );
}

#[tokio::test]
async fn waiting_ends_with_what_became_of_the_operation() {
    let poll = format!("GET {INSTANCE}/last_operation");
    for (state, code) in [("succeeded", 0), ("failed", 1)] {
        let server = server().await;
        server
            .answers(&format!("PUT {INSTANCE}"), 202, &json!({"operation": "o1"}))
            .answers(&poll, 200, &operation("in progress", "ChannelReady"))
            .answers(&poll, 200, &operation(state, "that is how it is"));
        let (found, out, err) = run(&server, &["--wait"]).await;
        assert_eq!(found, code, "{out}{err}");
        if state == "failed" {
            assert!(
                err.contains("instance orders failed: that is how it is"),
                "{err}"
            );
        }
        let asked = server.lines();
        assert_eq!(asked[2], format!("{poll}?operation=o1"));
    }
}

#[tokio::test]
async fn patience_ends_and_says_what_was_waited_for() {
    let server = server().await;
    server
        .answers(&format!("PUT {INSTANCE}"), 202, &json!({"operation": "o1"}))
        .answers(
            &format!("GET {INSTANCE}/last_operation"),
            200,
            &operation("in progress", "ChannelReady: the channel is missing"),
        );
    let (code, _, err) = run(&server, &["--wait", "--timeout", "0"]).await;
    assert_eq!(code, 7);
    assert!(err.contains("the channel is missing"), "{err}");
}
