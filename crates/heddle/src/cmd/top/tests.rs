use serde_json::json;

use super::*;
use crate::client::stand_in::StandIn;
use crate::cmd::testing::{Screen, world};

fn args(namespace: Option<&str>, rows: u16) -> Args {
    Args {
        namespace: namespace.map(str::to_owned),
        rows,
        count: None,
        output: ReportFormat::Table,
        client: ClientArgs {
            kubeconfig: None,
            context: None,
            data_dir: "nowhere".into(),
        },
    }
}

fn picture() -> Picture {
    let mut picture = Picture::default();
    let pulse = json!({"seq": 1, "at": "2026-01-01T00:00:00Z", "full": true,
        "n": {"trigger/team-a/busy": [120.5, 120.5, 0.0, 3.0, 0.0, 3.0],
            "trigger/team-a/ill": [1.0, 0.0, 4.0, 70.0, 130.0, 1.0],
            "subscription/team-b/old": [0.0, 0.0, 0.0, 5.0, 9.0, 0.0]},
        "sources": {"application/shop": [121.0, 0.0, 0.5, 2.0]}});
    picture.take(serde_json::from_value(pulse).unwrap());
    picture
}

#[test]
fn the_most_troubled_come_first() {
    insta::assert_snapshot!(picture().text(&args(None, 20), false), @r"
    2026-01-01T00:00:00Z

    CONSUMER                  MATCHED/S   DELIVERED/S   FAILED/S   PENDING   OLDEST    IN FLIGHT
    trigger/team-a/ill        1.0         0.0           4.0        70        2 min     1
    subscription/team-b/old   0.0         0.0           0.0        5         9.0 s     0
    trigger/team-a/busy       120.5       120.5         0.0        3         0.00 ms   3

    APPLICATION   ACCEPTED/S   REFUSED/S   FAILED/S   UNMATCHED/S
    shop          121.0        0.0         0.5        2.0
    ");
}

#[test]
fn a_picture_has_an_end_and_says_what_it_leaves_out() {
    let text = picture().text(&args(Some("team-a"), 1), false);
    assert!(text.contains("trigger/team-a/ill"), "{text}");
    assert!(text.contains("and 1 more; --rows shows them"), "{text}");
    assert!(
        !text.contains("team-b") && !text.contains("APPLICATION"),
        "{text}"
    );
}

#[test]
fn changes_are_kept_and_what_is_idle_goes() {
    let mut picture = picture();
    let change = json!({"seq": 2, "at": "2026-01-01T00:00:01Z",
        "n": {"trigger/team-a/ill": null, "trigger/team-a/busy": [1.0, 1.0, 0.0, 0.0, 0.0, 0.0]}, "sources": {"application/shop": null}});
    picture.take(serde_json::from_value(change).unwrap());
    let text = picture.text(&args(None, 20), false);
    assert!(
        !text.contains("/ill") && text.contains("nobody publishes"),
        "{text}"
    );
    let pulse = picture.pulse(&args(None, 20));
    assert_eq!((pulse.seq, pulse.n.len()), (2, 2));
    picture.take(PulseEvent {
        full: true,
        ..PulseEvent::default()
    });
    let text = picture.text(&args(None, 20), false);
    assert!(text.contains("no event is on its way"), "{text}");
}

#[tokio::test]
async fn without_a_terminal_one_picture_is_printed() {
    let server = StandIn::start().await;
    let pulse = "retry: 2000\n\nid: 1-1\nevent: pulse\ndata: {\"seq\":1,\"at\":\"2026-01-01T00:00:00Z\",\"full\":true,\"n\":{\"trigger/a/b\":[1,1,0,0,0,0]}}\n\n";
    server.answers_text("GET /heddle/v1/stream", 200, pulse);
    let screen = Screen::default();
    let remote = server.remote();
    follow(&args(None, 20), &remote, &world(), &mut screen.terminal())
        .await
        .unwrap();
    assert!(screen.out().contains("trigger/a/b"), "{}", screen.out());
    assert!(!screen.out().contains('\x1b'), "{}", screen.out());
    assert_eq!(server.lines(), ["GET /heddle/v1/stream?topics=pulse"]);
}
