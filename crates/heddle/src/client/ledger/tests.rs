//! What is asked and how refusals sound, against a stand-in.

use serde_json::json;

use super::*;
use crate::client::stand_in::StandIn;
use crate::failure::exit_code;

#[tokio::test]
async fn every_question_is_asked_at_its_path_with_everything_escaped() {
    let server = StandIn::start().await;
    let remote = server.remote();
    let ledger = Ledger::of(&remote);
    let page = json!({"items": [], "total": 0});
    server
        .answers("GET /heddle/v1/trace", 200, &json!({"events": []}))
        .answers("GET /heddle/v1/dead-letters", 200, &page)
        .answers(
            "POST /heddle/v1/dead-letters/redrive",
            200,
            &json!({"count": 2}),
        )
        .answers(
            "POST /heddle/v1/dead-letters/discard",
            200,
            &json!({"count": 1}),
        );
    ledger.trace("a b&c=ü", Some("/shop?x")).await.unwrap();
    let asked = DeadLetterQuery {
        consumer: Some("trigger/a/b".to_owned()),
        limit: 7,
        after: Some("x+y".to_owned()),
        ..DeadLetterQuery::default()
    };
    ledger.dead_letters(&asked).await.unwrap();
    let selection = DeadLetterSelection {
        all: true,
        ..DeadLetterSelection::default()
    };
    let taken = |answer| match answer {
        TakeAnswer::Taken(taken) => taken.count,
        TakeAnswer::Begun(begun) => panic!("{begun:?}"),
    };
    assert_eq!(taken(ledger.redrive(&selection).await.unwrap()), 2);
    assert_eq!(taken(ledger.discard(&selection).await.unwrap()), 1);
    assert_eq!(
        server.lines(),
        [
            "GET /heddle/v1/trace?id=a%20b%26c%3D%C3%BC&source=%2Fshop%3Fx",
            "GET /heddle/v1/dead-letters?consumer=trigger%2Fa%2Fb&limit=7&after=x%2By",
            "POST /heddle/v1/dead-letters/redrive",
            "POST /heddle/v1/dead-letters/discard",
        ]
    );
    assert_eq!(server.asked()[2].json(), json!({"all": true}));
    let missing = ledger.dead_letter("../x").await.unwrap_err();
    assert_eq!(server.lines()[4], "GET /heddle/v1/dead-letters/..%2Fx");
    assert_eq!(exit_code(&missing), 3, "{missing}");
}

#[tokio::test]
async fn a_refusal_keeps_the_servers_words_and_gets_the_exit_code_of_its_remedy() {
    let refusal = json!({"code": "filter-invalid", "message": "the filter is\nwrong", "attribute": "type", "at": 4});
    for (code, expected) in [(400, 1), (404, 3), (409, 4), (403, 5), (503, 1)] {
        let server = StandIn::start().await;
        server.answers("GET /heddle/v1/accounts", code, &refusal);
        let remote = server.remote();
        let error = Ledger::of(&remote).accounts().await.unwrap_err();
        assert_eq!(exit_code(&error), expected, "for {code}");
        assert_eq!(
            error.to_string(),
            "accounts: the filter is wrong (code filter-invalid, attribute type, at 4)"
        );
        assert_eq!(server.lines().len(), 1, "a refusal is not asked for twice");
    }
}
