use clap::Parser as _;
use serde_json::json;

use super::*;
use crate::client::stand_in::StandIn;
use crate::cmd::testing::Screen;
use crate::failure::exit_code;

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

async fn run(status: Value, words: &[&str]) -> (anyhow::Result<()>, Screen) {
    let server = StandIn::start().await;
    let instances = heddle_api::ServiceInstance::url_path(&(), Some("team-a"));
    let bindings = ServiceBinding::url_path(&(), Some("team-a"));
    for path in [
        format!("{instances}/{}", names::instance("db")),
        format!("{bindings}/{}", names::binding("web")),
    ] {
        server.answers(&format!("GET {path}"), 200, &json!({"status": status}));
    }
    server.answers(
        "GET /heddle/v1/runs/run-1/log",
        200,
        &json!("no disks left"),
    );
    let line = ["heddle", "db", "-n", "team-a"].iter().chain(words);
    let args = Line::try_parse_from(line).unwrap().args;
    let screen = Screen::default();
    let shown = show(&args, &server.remote(), &mut screen.terminal()).await;
    (shown, screen)
}

#[tokio::test]
async fn the_log_of_the_last_action_is_shown_with_how_it_ended() {
    let report = json!({"id": "run-1", "action": "provision", "attempt": 1, "startedAt": "2026-01-01T00:00:00Z", "ended": "exit code 3"});
    for words in [&[][..], &["--binding", "web"]] {
        let (shown, screen) = run(json!({"run": report}), words).await;
        shown.unwrap();
        assert!(screen.out().contains("no disks left"), "{}", screen.out());
        assert!(
            screen.err().contains("attempt 1: exit code 3"),
            "{}",
            screen.err()
        );
    }
}

#[tokio::test]
async fn what_never_had_an_action_says_so() {
    let (shown, _) = run(json!({}), &[]).await;
    let error = shown.unwrap_err();
    assert_eq!(exit_code(&error), 3);
    assert!(error.to_string().contains("has no action"), "{error}");
}
