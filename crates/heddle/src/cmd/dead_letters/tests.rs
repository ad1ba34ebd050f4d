//! Which dead letters are meant, what is asked before they are taken, and how they look.

use clap::Parser as _;
use heddle_api::ledger::{DeadLetter, DeadLetterDetail, DeadReply};
use heddle_api::raw_json::RawJson;
use serde_json::{Value, json};

use super::*;
use crate::client::stand_in::StandIn;
use crate::cmd::testing::{Screen, world};
use crate::failure::exit_code;

#[derive(Debug, clap::Parser)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

fn command(line: &str) -> Result<Command, clap::Error> {
    let words = ["dead-letters"].into_iter().chain(line.split_whitespace());
    Line::try_parse_from(words).map(|line| line.command)
}

fn taking(line: &str) -> TakeArgs {
    match command(line).unwrap() {
        Command::Redrive(args) | Command::Discard(args) => args,
        other => panic!("{other:?}"),
    }
}

fn request(line: &str) -> Result<Value, String> {
    let request = taking(line).selection.request();
    request
        .map(|request| serde_json::to_value(request).unwrap())
        .map_err(|failure| failure.to_string())
}

#[test]
fn the_command_line_becomes_the_selection() {
    let check = |line: &str, expected: Value| assert_eq!(request(line), Ok(expected), "{line}");
    check("redrive b a b", json!({"names": ["a", "b"]}));
    check("discard --all", json!({"all": true}));
    check(
        "redrive --trigger a/b --type t",
        json!({"consumer": "trigger/a/b", "type": "t"}),
    );
    check(
        "redrive --subscription a/b --source s --id i -n a",
        json!({"consumer": "subscription/a/b", "source": "s", "id": "i", "namespace": "a"}),
    );
    let said = request("discard").unwrap_err();
    assert!(said.starts_with("which dead letters?"), "{said}");
    for wrong in [
        "discard x --all",
        "discard x -n a",
        "discard --all --type t",
        "redrive --trigger a/b --subscription a/b",
        "redrive --trigger b",
        "redrive -n a/b",
        "show",
    ] {
        assert!(command(wrong).is_err(), "{wrong}");
    }
}

fn letter(name: &str, id: &str) -> DeadLetter {
    DeadLetter {
        name: name.to_owned(),
        consumer: "trigger/team-a/orders".to_owned(),
        offset: 42,
        source: "/shop".to_owned(),
        id: id.to_owned(),
        type_: "order.created".to_owned(),
        accepted_at: "2026-01-01T10:00:00Z".parse().unwrap(),
        dead_at: "2026-01-01T10:05:00Z".parse().unwrap(),
        reason: "503 after 3 attempts\x07".to_owned(),
        status: Some(503),
        attempts: 3,
        redrives: 1,
        sink: None,
        reply: None,
    }
}

fn page(items: Vec<DeadLetter>, total: u64, next: Option<&str>) -> Value {
    let next = next.map(str::to_owned);
    serde_json::to_value(DeadLetterPage { items, total, next }).unwrap()
}

async fn server_with_two_pages() -> StandIn {
    let server = StandIn::start().await;
    server
        .answers(
            "GET /heddle/v1/dead-letters",
            200,
            &page(vec![letter("a", "1"), letter("b", "2")], 3, Some("b")),
        )
        .answers(
            "GET /heddle/v1/dead-letters",
            200,
            &page(vec![letter("c", "2")], 3, None),
        );
    server
}

fn listing(line: &str) -> ListArgs {
    match command(line).unwrap() {
        Command::List(args) => args,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_list_goes_over_pages_and_says_what_it_left_out() {
    let server = server_with_two_pages().await;
    let screen = Screen::default();
    let args = listing("list --limit 0 --trigger team-a/orders -o json");
    list(
        &args,
        CommandContext::new(&server.remote(), &world(), &mut screen.terminal()),
    )
    .await
    .unwrap();
    let shown: DeadLetterPage = serde_json::from_str(&screen.out()).unwrap();
    assert_eq!(shown.items.len(), 3);
    assert_eq!(
        server.lines(),
        [
            "GET /heddle/v1/dead-letters?consumer=trigger%2Fteam-a%2Forders&limit=500",
            "GET /heddle/v1/dead-letters?consumer=trigger%2Fteam-a%2Forders&limit=500&after=b",
        ]
    );

    let (server, screen) = (server_with_two_pages().await, Screen::default());
    list(
        &listing("list --limit 2"),
        CommandContext::new(&server.remote(), &world(), &mut screen.terminal()),
    )
    .await
    .unwrap();
    assert_eq!(screen.err(), "2 of 3 shown; --limit 0 shows all\n");
    assert_eq!(screen.out().lines().count(), 3, "{}", screen.out());

    // The server looks for the id, whatever else there is.
    let (server, screen) = (StandIn::start().await, Screen::default());
    let one = page(vec![letter("b", "2")], 1, None);
    server.answers("GET /heddle/v1/dead-letters", 200, &one);
    list(
        &listing("list --id 2 -o json"),
        CommandContext::new(&server.remote(), &world(), &mut screen.terminal()),
    )
    .await
    .unwrap();
    let shown: DeadLetterPage = serde_json::from_str(&screen.out()).unwrap();
    assert_eq!((shown.items.len(), shown.total), (1, 1));
    assert_eq!(
        server.lines(),
        ["GET /heddle/v1/dead-letters?id=2&limit=500"]
    );
}

#[test]
fn a_dead_letter_reads_well_alone_and_in_a_table() {
    let page = DeadLetterPage {
        items: vec![letter("a", "1")],
        total: 1,
        next: None,
    };
    let now = "2026-01-01T10:15:00Z".parse().unwrap();
    insta::assert_snapshot!(render::table(&page, now, false), @r"
    NAME   CONSUMER                TYPE            ID   ATTEMPTS   REDRIVES   AGE      REASON
    a      trigger/team-a/orders   order.created   1    3          1          10 min   503 after 3 attempts
    ");
    let detail = DeadLetterDetail {
        summary: letter("a", "1"),
        event: json!({"id": "1", "data": {"order": 17}}).into(),
        answer: Some("overloaded".to_owned()),
        data_hidden: false,
    };
    insta::assert_snapshot!(render::detail(&detail, false), @r#"
    a
      consumer   trigger/team-a/orders
      event      1 from /shop, place 42 in the log
      type       order.created
      accepted   2026-01-01T10:00:00.000Z
      dead since 2026-01-01T10:05:00.000Z
      reason     503 after 3 attempts 
      answer     503
      tried      3 times, redriven 1 time
      said       overloaded

      {
        "data": {
          "order": 17
        },
        "id": "1"
      }
    "#);
}

#[test]
fn numbers_of_an_event_are_told_as_they_were_written() {
    let event =
        r#"{"id":"1","data":{"a":9007199254740993,"b":10.10,"c":123456789012345678901234567890}}"#;
    let detail = DeadLetterDetail {
        summary: letter("a", "1"),
        event: RawJson::read(event).unwrap(),
        answer: None,
        data_hidden: false,
    };
    let (text, json, yaml) = (
        render::detail(&detail, false),
        render::detail_as_json(&detail),
        render::detail_as_yaml(&detail),
    );
    for told in [&text, &json, &yaml] {
        for number in [
            "9007199254740993",
            "10.10",
            "123456789012345678901234567890",
        ] {
            assert!(told.contains(&format!("\": {number}")), "{told}");
        }
    }
    let read: DeadLetterDetail = serde_json::from_str(&json).unwrap();
    assert_eq!(read.summary, detail.summary);
    assert_eq!(read.event.indented(), detail.event.indented());
    let read: Value = serde_saphyr::from_str(&yaml).unwrap();
    assert_eq!(read["event"]["data"]["a"], 9_007_199_254_740_993_u64);
    let plain = DeadLetterDetail {
        event: json!({"id": "1", "data": {"order": 17}}).into(),
        ..detail
    };
    assert!(render::detail_as_yaml(&plain).contains("    order: 17\n"));
}

#[test]
fn a_reply_is_told_from_an_event() {
    let mut reply = letter("b", "1");
    reply.reason = "the reply has no source".to_owned();
    (reply.status, reply.attempts, reply.redrives) = (Some(200), 1, 0);
    reply.reply = Some(DeadReply {
        fault: "not-an-event".to_owned(),
        content_type: "application/cloudevents+json".to_owned(),
    });
    let now = "2026-01-01T10:15:00Z".parse().unwrap();
    let page = DeadLetterPage {
        items: vec![reply.clone()],
        total: 1,
        next: None,
    };
    insta::assert_snapshot!(render::table(&page, now, false), @r"
    NAME   CONSUMER                TYPE            ID   ATTEMPTS   REDRIVES   AGE      REASON
    b      trigger/team-a/orders   order.created   1    1          0          10 min   (a reply) the reply has no source
    ");
    let detail = DeadLetterDetail {
        summary: reply,
        event: json!({"id": "1"}).into(),
        answer: Some("{\"spec".to_owned()),
        data_hidden: false,
    };
    insta::assert_snapshot!(render::detail(&detail, false), @r#"
    b
      consumer   trigger/team-a/orders
      reply      not-an-event; the event below was delivered, and this is what came back for it
      of type    application/cloudevents+json
      event      1 from /shop, place 42 in the log
      type       order.created
      accepted   2026-01-01T10:00:00.000Z
      dead since 2026-01-01T10:05:00.000Z
      reason     the reply has no source
      answer     200
      tried      1 time, redriven 0 times
      said       {"spec

      {
        "id": "1"
      }
    "#);
}

#[tokio::test]
async fn whoever_redrives_a_reply_is_told_that_it_cannot_be() {
    let table = [
        ("redrive 7", json!({"count": 0, "replies": 1}), Some(2)),
        ("redrive 7 8", json!({"count": 1, "replies": 1}), None),
        ("redrive 7 8 9", json!({"count": 1, "replies": 1}), Some(2)),
        (
            "redrive --all --yes",
            json!({"count": 0, "replies": 2}),
            Some(2),
        ),
        (
            "redrive --all --yes",
            json!({"count": 3, "replies": 2}),
            None,
        ),
    ];
    for (line, answer, code) in table {
        let server = StandIn::start().await;
        server.answers("POST /heddle/v1/dead-letters/redrive", 200, &answer);
        let screen = Screen::default();
        let taken = take(
            &taking(line),
            Verb::Redrive,
            &server.remote(),
            &mut screen.terminal(),
        )
        .await;
        let told = match taken {
            Ok(_) => screen.err(),
            Err(error) => {
                assert_eq!(Some(exit_code(&error)), code, "{line}");
                error.to_string()
            }
        };
        assert!(
            told.contains("a reply cannot be sent again"),
            "{line}: {told}"
        );
    }
}

fn previewed(count: u64) -> Value {
    json!({
        "count": count, "bytes": 3600, "replies": 0, "upTo": "17", "estimateS": [1, 4],
        "hints": ["notCuredByRepeating"],
        "consumers": [{
            "consumer": "trigger/team-a/orders", "count": count, "verdict": "failing",
            "ordered": true, "overtakes": 14,
        }],
    })
}

/// What is told before is also what is told afterwards.
async fn server_that_takes(count: u64) -> StandIn {
    let server = StandIn::start().await;
    for path in ["redrive", "discard"] {
        let path = format!("POST /heddle/v1/dead-letters/{path}");
        server.answers(&path, 200, &previewed(count));
    }
    server
}

#[tokio::test]
async fn many_are_discarded_only_when_somebody_types_how_many() {
    let server = server_that_takes(2).await;
    let args = taking("discard --trigger team-a/orders");
    let screen = Screen::default();
    let remote = server.remote();
    let error = take(&args, Verb::Discard, &remote, &mut screen.terminal()).await;
    let error = error.unwrap_err();
    assert_eq!(exit_code(&error), 2);
    assert_eq!(
        error.to_string(),
        "this would discard 2 dead letters of trigger/team-a/orders; pass --yes to do it"
    );
    for refusal in ["n\n", "", "yes\n", "3\n"] {
        let mut terminal = screen.answered(refusal);
        take(&args, Verb::Discard, &remote, &mut terminal)
            .await
            .unwrap();
    }
    let asked = server.asked();
    let dry = |asked: &Value| asked["dryRun"] == json!(true);
    assert!(
        asked.iter().all(|asked| dry(&asked.json())),
        "nothing was discarded"
    );
    assert_eq!(screen.out(), "");
    let mut terminal = screen.answered("2\n");
    take(&args, Verb::Discard, &remote, &mut terminal)
        .await
        .unwrap();
    assert_eq!(screen.out(), "2 dead letters discarded\n");
    let asked = server.asked();
    let last = asked.last().unwrap();
    assert_eq!(last.line, "POST /heddle/v1/dead-letters/discard");
    let expected = json!({"consumer": "trigger/team-a/orders", "upTo": "17"});
    assert_eq!(last.json(), expected);
}

#[tokio::test]
async fn a_preview_is_told_before_somebody_agrees_and_alone_with_dry_run() {
    let server = server_that_takes(2).await;
    let (remote, screen) = (server.remote(), Screen::default());
    let args = taking("redrive --group cause:trigger/team-a/orders:00 --dry-run");
    take(&args, Verb::Redrive, &remote, &mut screen.terminal())
        .await
        .unwrap();
    let expected = json!({"group": "cause:trigger/team-a/orders:00", "dryRun": true});
    assert_eq!(server.asked().last().unwrap().json(), expected);
    insta::assert_snapshot!(screen.out(), @r"
    this would redrive 2 dead letters, 3600 bytes, in about 1 to 4 s
      trigger/team-a/orders: 2, its subscriber is failing; they go before 14 events that wait, for it keeps an order
    some were refused for what they are, which repeating does not cure: try one first with `heddle dead-letters try NAME`
    ");
    let mut terminal = screen.answered("y\n");
    take(
        &taking("redrive --all"),
        Verb::Redrive,
        &remote,
        &mut terminal,
    )
    .await
    .unwrap();
    assert!(
        screen.err().contains("14 events that wait"),
        "{}",
        screen.err()
    );
}

#[tokio::test]
async fn many_become_an_operation_that_is_watched_to_its_end() {
    let server = StandIn::start().await;
    let operation = |state: &str, count: u64| {
        json!({
            "id": "7", "act": "redrive", "state": state, "by": "ann", "total": 900, "count": count,
            "startedAt": "2026-01-01T10:00:00Z", "ratePerS": 300.0, "etaS": 2,
        })
    };
    server
        .answers(
            "POST /heddle/v1/dead-letters/redrive",
            202,
            &operation("running", 0),
        )
        .answers(
            "GET /heddle/v1/dead-letters/operations/7",
            200,
            &operation("running", 300),
        )
        .answers(
            "GET /heddle/v1/dead-letters/operations/7",
            200,
            &operation("done", 900),
        );
    let (remote, screen, world) = (server.remote(), Screen::default(), world());
    let args = taking("redrive --all --yes");
    let begun = take(&args, Verb::Redrive, &remote, &mut screen.terminal())
        .await
        .unwrap();
    let mut terminal = screen.terminal();
    let ctx = CommandContext::new(&remote, &world, &mut terminal);
    bulk::follow(begun, &args, ctx).await.unwrap();
    let told = screen.err();
    assert!(
        told.contains("operation 7") && told.contains("300 of 900"),
        "{told}"
    );
    assert_eq!(screen.out(), "900 of 900 dead letters redriven\n");
}

#[tokio::test]
async fn named_ones_and_yes_are_not_asked_about() {
    let server = server_that_takes(1).await;
    let screen = Screen::default();
    take(
        &taking("discard a"),
        Verb::Discard,
        &server.remote(),
        &mut screen.terminal(),
    )
    .await
    .unwrap();
    take(
        &taking("redrive --all --yes"),
        Verb::Redrive,
        &server.remote(),
        &mut screen.terminal(),
    )
    .await
    .unwrap();
    assert_eq!(
        server.lines(),
        [
            "POST /heddle/v1/dead-letters/discard",
            "POST /heddle/v1/dead-letters/redrive"
        ]
    );
    assert_eq!(
        screen.out(),
        "1 dead letter discarded\n1 dead letter redriven\n"
    );
    let error = take(
        &taking("redrive a b"),
        Verb::Redrive,
        &server.remote(),
        &mut screen.terminal(),
    )
    .await
    .unwrap_err();
    assert_eq!(exit_code(&error), 3, "{error}");
}

#[tokio::test]
async fn a_mark_says_what_why_and_until_when() {
    let (server, screen) = (StandIn::start().await, Screen::default());
    let marked = json!({
        "key": "cause:trigger/a/b:ff", "as": "ignored", "note": "tests\u{7}", "by": "ada", "at": "2026-01-01T00:00:00Z",
        "until": "2126-01-01T00:00:00Z", "upTo": "7", "more": 3,
    });
    let path = "/heddle/v1/dead-letters/groups/cause%3Atrigger%2Fa%2Fb%3Aff/mark";
    server.answers(&format!("POST {path}"), 200, &marked);
    let line =
        "mark cause:trigger/a/b:ff --as ignored --note tests --until 2126-01-01T00:00:00Z --more 3";
    let Command::Mark(args) = command(line).unwrap() else {
        panic!("{line}");
    };
    let (remote, world, mut terminal) = (server.remote(), world(), screen.terminal());
    args.act(CommandContext::new(&remote, &world, &mut terminal))
        .await
        .unwrap();
    let expected =
        json!({"as": "ignored", "note": "tests", "until": "2126-01-01T00:00:00Z", "more": 3});
    assert_eq!(server.asked()[0].json(), expected);
    let shown = screen.out();
    assert!(
        shown.starts_with("ignored until 2126-01-01 00:00 UTC (ada): tests"),
        "{shown}"
    );
    assert!(!shown.contains('\u{7}'), "{shown:?}");
    for wrong in [
        "mark",
        "mark 7",
        "mark 7 --note x --as fine",
        "mark 7 --note x --for 1h --until 2126-01-01T00:00:00Z",
        "unmark",
    ] {
        assert!(command(wrong).is_err(), "{wrong}");
    }
}

#[tokio::test]
async fn links_lead_to_the_pages_of_letters_that_are_there() {
    let server = StandIn::start().await;
    let mut detail = serde_json::to_value(letter("a", "order-1")).unwrap();
    detail["event"] = json!({"specversion": "1.0", "id": "order-1"});
    server
        .answers("GET /heddle/v1/dead-letters/a", 200, &detail)
        .answers("GET /heddle/v1/dead-letters/b%2Fc", 200, &detail);
    let (screen, remote) = (Screen::default(), server.remote());
    let Command::Show(args) = command("show a b/c --link").unwrap() else {
        panic!("the line says show");
    };
    show(&args, &remote, &mut screen.terminal()).await.unwrap();
    let page = |name: &str| format!("{}/ui/dead-letters/{name}\n", remote.url());
    assert_eq!(screen.out(), page("a") + &page("b%2Fc"));
}
