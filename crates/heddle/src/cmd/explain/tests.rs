//! From arguments and objects to the question, and from the answer to text.

use clap::Parser as _;
use heddle_api::ledger::Accounts;
use heddle_api::signing::{SigningFacts, SigningKeyFacts, SigningScheme};
use serde_json::json;

use super::*;
use crate::client::stand_in::StandIn;
use crate::cmd::testing::Screen;
use crate::failure::exit_code;

#[derive(Debug, clap::Parser)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

fn args(words: &[&str]) -> TriggerArgs {
    let line = Line::parse_from([&["explain", "trigger"], words].concat());
    match line.command {
        Command::Trigger(args) => *args,
        Command::Instance(_) | Command::Silence(_) => unreachable!("the line says trigger"),
    }
}

const TRIGGER: &str = "/apis/eventing.knative.dev/v1/namespaces/team-a/triggers/orders";

fn trigger(spec: &Value) -> Value {
    json!({
        "apiVersion": "eventing.knative.dev/v1", "kind": "Trigger",
        "metadata": {"name": "orders", "namespace": "team-a"},
        "spec": spec,
        "status": {"conditions": [
            {"type": "BrokerReady", "status": "True"},
            {"type": "Ready", "status": "False", "reason": "SubscriberNotFound", "message": "service/shop does not exist"},
        ]},
    })
}

async fn server(spec: &Value) -> StandIn {
    let server = StandIn::start().await;
    let event = |offset: u64, reason: &str| json!({"offset": offset, "source": "/shop", "id": format!("o-{offset}"), "type": "order.created", "reason": reason});
    let explanation = json!({
        "examined": 3, "matched": 1,
        "matches": [event(9, "every term holds")],
        "misses": [event(8, "tier is silver, not gold"), event(7, "there is no attribute tier")],
    });
    let account = Account {
        consumer: "trigger/team-a/orders".to_owned(),
        matched: 12,
        delivered: 9,
        dead_lettered: 1,
        pending: 2,
        in_flight: 1,
        retrying: 1,
        held: Some("the subscriber has no address".to_owned()),
        rate: Some("0.5/s".to_owned()),
        rate_delay_s: Some(4.0),
        signing: Some(SigningFacts {
            secret: "team-a/orders-signing".to_owned(),
            keys: vec![SigningKeyFacts {
                scheme: SigningScheme::HmacSha256,
                public_key: None,
                until: None,
            }],
        }),
        schedule: "at once, then after 0.2 s and 0.4 s".to_owned(),
        ..Account::default()
    };
    let accounts = Accounts {
        consumers: vec![Account::default(), account],
        ..Accounts::default()
    };
    server
        .answers(&format!("GET {TRIGGER}"), 200, &trigger(spec))
        .answers("POST /heddle/v1/explain", 200, &explanation)
        .answers(
            "GET /heddle/v1/accounts",
            200,
            &serde_json::to_value(accounts).unwrap(),
        );
    server
}

async fn asked(spec: &Value, words: &[&str]) -> Value {
    let server = server(spec).await;
    explain(
        &args(words),
        &server.remote(),
        &mut Screen::default().terminal(),
    )
    .await
    .unwrap();
    let questions = server.asked();
    let question = questions
        .iter()
        .find(|asked| asked.line.starts_with("POST"))
        .unwrap();
    question.json()
}

#[tokio::test]
async fn the_filter_comes_from_the_trigger_unless_another_is_proposed() {
    let spec = json!({"broker": "main", "filters": [{"exact": {"type": "order.created"}}], "filter": {"attributes": {"type": "old"}}});
    let expected = json!({"entry": "broker/team-a/main", "filters": [{"exact": {"type": "order.created"}}], "last": 10_000});
    assert_eq!(asked(&spec, &["team-a/orders"]).await, expected);
    assert_eq!(asked(&spec, &["orders", "-n", "team-a"]).await, expected);
    assert_eq!(
        asked(
            &spec,
            &[
                "team-a/orders",
                "--filter",
                "type=a=b",
                "--prefix",
                "source=/s",
                "--suffix",
                "id=9",
                "--cesql",
                "EXISTS x",
                "--last",
                "5"
            ]
        )
        .await,
        json!({
            "entry": "broker/team-a/main", "last": 5, "against": "trigger/team-a/orders",
            "filters": [{"exact": {"type": "a=b"}}, {"prefix": {"source": "/s"}}, {"suffix": {"id": "9"}}, {"cesql": "EXISTS x"}],
        })
    );
    assert_eq!(
        asked(&spec, &["team-a/orders", "--broker", "b/c"]).await["entry"],
        "broker/b/c"
    );
}

#[tokio::test]
async fn the_older_filter_is_understood_and_no_filter_means_every_event() {
    let older = json!({"filter": {"attributes": {"type": "order.created", "tier": ""}}});
    assert_eq!(
        asked(&older, &["team-a/orders"]).await,
        json!({"entry": "broker/team-a/default", "last": 10_000, "filters": [{"exact": {"type": "order.created"}}, {"cesql": "EXISTS tier"}]})
    );
    assert_eq!(
        asked(&json!({}), &["team-a/orders"]).await.get("filters"),
        None
    );
}

#[tokio::test]
async fn a_trigger_can_be_tried_before_it_exists() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trigger.yaml");
    let write = |text: &str| {
        heddle_rt::Vfs::write_atomic(&heddle_rt::DiskVfs, &path, text.as_bytes(), 0o600).unwrap()
    };
    let text = "apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {name: x}
spec: {filters: [{cesql: 'amount > 3'}]}
";
    write(text);
    let file = path.to_str().unwrap();
    assert_eq!(
        asked(&json!({}), &["--file", file, "-n", "team-b"]).await,
        json!({"entry": "broker/team-b/default", "last": 10_000, "filters": [{"cesql": "amount > 3"}]})
    );
    write(&format!("{text}---\n{text}"));
    let server = server(&json!({})).await;
    let refused = async |words: &[&str]| {
        let done = explain(
            &args(words),
            &server.remote(),
            &mut Screen::default().terminal(),
        )
        .await;
        exit_code(&done.unwrap_err())
    };
    assert_eq!(
        refused(&["--file", file]).await,
        2,
        "two triggers are one too many"
    );
    assert_eq!(refused(&[]).await, 2, "nothing to explain");
    assert_eq!(refused(&["team-a/orders", "-n", "team-b"]).await, 2);
    assert_eq!(refused(&["team-a/nobody"]).await, 3);
}

#[tokio::test]
async fn an_existing_trigger_is_explained_with_its_condition_account_and_schedule() {
    let spec =
        json!({"filters": [{"exact": {"tier": "gold"}}, {"not": {"prefix": {"type": "test."}}}]});
    let (server, screen) = (server(&spec).await, Screen::default());
    explain(
        &args(&["team-a/orders"]),
        &server.remote(),
        &mut screen.terminal(),
    )
    .await
    .unwrap();
    insta::assert_snapshot!(screen.out(), @r#"
    trigger/team-a/orders
      ready     no: SubscriberNotFound: service/shop does not exist
      account   matched 12: delivered 9, dead-lettered 1, expired 0, removed 0, pending 2 (1 in flight, 1 retrying)
      held      the subscriber has no address
      rate      0.5/s at most; the 2 that wait take 4.0 s
      signed    with HMAC-SHA256 (v1); kept in Secret team-a/orders-signing
      schedule  at once, then after 0.2 s and 0.4 s
      goes to   nowhere; the subscriber has no address

    tier=gold and {"not":{"prefix":{"type":"test."}}} on broker/team-a/default
    would have matched 1 of the newest 3 events

    newest matches
      PLACE   ID    TYPE            SOURCE   REASON
      9       o-9   order.created   /shop    every term holds

    newest misses
      PLACE   ID    TYPE            SOURCE   REASON
      8       o-8   order.created   /shop    tier is silver, not gold
      7       o-7   order.created   /shop    there is no attribute tier
    "#);
    let screen = Screen::default();
    explain(
        &args(&["--filter", "tier=gold", "-o", "yaml"]),
        &server.remote(),
        &mut screen.terminal(),
    )
    .await
    .unwrap();
    assert!(screen.out().contains("matched: 1"), "{}", screen.out());
    assert!(screen.out().contains("account: null"), "{}", screen.out());
}

#[tokio::test]
async fn a_link_leads_to_the_page_of_a_trigger_that_exists() {
    let server = server(&json!({"broker": "main"})).await;
    let (screen, remote) = (Screen::default(), server.remote());
    let asked = args(&["team-a/orders", "--link"]);
    explain(&asked, &remote, &mut screen.terminal())
        .await
        .unwrap();
    let page = format!("{}/ui/triggers/team-a/orders\n", remote.url());
    assert_eq!(screen.out(), page);
    let proposed = args(&["--broker", "team-a/main", "--link"]);
    let refused = explain(&proposed, &remote, &mut screen.terminal()).await;
    assert_eq!(exit_code(&refused.unwrap_err()), 2);
}
