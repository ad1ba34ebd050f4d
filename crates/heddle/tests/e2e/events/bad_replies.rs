//! A subscriber that replies with what is no event: delivered, counted, told, kept, and gone when somebody says so.

use heddle_api::ledger::{DeadLetterPage, Trace};
use serde_json::{Value, json};

use super::stage::{self, BROKER, trigger};
use super::subscriber::{Manner, Subscriber};
use crate::harness::{Server, eventually_or_else};

const STRUCTURED: &str = "content-type: application/cloudevents+json\r\n";

const EVENT: &str = "ce-specversion: 1.0\r\nce-type: t\r\nce-source: /s\r\nce-id: r\r\n";

/// Each kind of bad reply, by the path that gives it.
fn kinds() -> [(&'static str, &'static str, Manner); 3] {
    let zipped = "content-type: application/cloudevents+json\r\ncontent-encoding: gzip\r\n";
    [
        (
            "malformed",
            "not-an-event",
            Manner::Say(STRUCTURED, "{\"specversion\": \"1.0\"}".to_owned()),
        ),
        (
            "oversized",
            "too-large",
            Manner::Say(EVENT, "x".repeat(2 << 20)),
        ),
        (
            "encoded",
            "undecodable",
            Manner::Say(zipped, "zipped".to_owned()),
        ),
    ]
}

async fn dead_letters(server: &Server) -> DeadLetterPage {
    server.question("dead-letters").await
}

/// The trigger says that it has bad replies, or that it has none.
async fn until_condition(server: &Server, name: &str, reason: Option<&str>) {
    let what = format!("trigger {name} to say {reason:?}");
    eventually_or_else(&what, async || {
        let ready = server
            .until_condition("triggers", name, "SubscriptionReady", "True")
            .await;
        match ready["reason"].as_str() == reason {
            true => Ok(()),
            false => Err(ready.to_string()),
        }
    })
    .await;
}

#[tokio::test]
async fn bad_replies_are_counted_told_kept_over_a_kill_and_discarded() {
    let subscriber = Subscriber::start().await;
    let mut server = stage::with_broker().await;
    for (name, _, manner) in kinds() {
        let path = format!("/{name}");
        subscriber.behave(&path, manner);
        let object = trigger(name, &subscriber.url(&path), json!({}));
        server.apply_trigger(&object).await;
    }
    server.publish(BROKER, "1", "order.created").await;
    server.until_dead(3).await;
    let metrics = server.metrics().await;
    for (name, fault, _) in kinds() {
        let line = format!(
            "heddle_bad_replies_total{{kind=\"trigger\",ns=\"team-a\",trigger=\"{name}\",reason=\"{fault}\"}} 1"
        );
        assert!(metrics.contains(&line), "{metrics}");
        until_condition(&server, name, Some("BadReplies")).await;
    }
    server.kill();
    server.launch().await;
    for (name, fault, _) in kinds() {
        until_condition(&server, name, Some("BadReplies")).await;
        let account = server.account(name).await;
        assert_eq!((account.delivered, account.dead_lettered), (1, 0));
        assert_eq!((account.dead_replies, account.difference()), (1, 0));
        let list = [
            "dead-letters",
            "list",
            "--trigger",
            &format!("team-a/{name}"),
        ];
        let table = server.heddle(&list).ok();
        assert!(table.contains("(a reply)"), "{table}");
        let page = dead_letters(&server).await;
        let own = |letter: &&heddle_api::ledger::DeadLetter| letter.consumer.ends_with(name);
        let letter = page.items.iter().find(own).unwrap();
        assert_eq!(letter.reply.as_ref().unwrap().fault, fault);
        let redrive = server.heddle(&["dead-letters", "redrive", &letter.name]);
        assert_eq!(redrive.code, Some(2), "{redrive:?}");
        assert!(
            redrive.err.contains("a reply cannot be sent again"),
            "{redrive:?}"
        );
    }
    let shown = server.heddle(&["trace", "1"]).ok();
    assert_eq!(
        shown.matches("its reply could not go on").count(),
        3,
        "{shown}"
    );
    let doctor = server.heddle(&["doctor"]);
    assert!(doctor.out.contains("1 reply at rest"), "{doctor:?}");
    let discard = ["dead-letters", "discard", "--all", "--yes"];
    assert_eq!(server.heddle(&discard).ok(), "3 dead letters discarded\n");
    for (name, ..) in kinds() {
        until_condition(&server, name, None).await;
    }
    let trace: Trace = server.trace("1").await;
    let told = serde_json::to_value(&trace).unwrap();
    let replies: Vec<&Value> = told["events"][0]["verdicts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|verdict| &verdict["attempts"][0]["badReply"])
        .collect();
    assert_eq!(replies.len(), 3);
    assert!(
        replies.iter().all(|reply| reply["discardedBy"].is_string()),
        "{told}"
    );
    assert_eq!(dead_letters(&server).await.total, 0);
}
