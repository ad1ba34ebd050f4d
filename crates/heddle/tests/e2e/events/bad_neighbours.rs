//! Six subscribers that misbehave, each in its own way, and one that does not notice.

use std::time::Duration;

use heddle_api::ledger::{DeadLetterDetail, DeadLetterPage};
use serde_json::json;

use super::stage::{self, BROKER, account_of, event, impatient, trigger};
use super::subscriber::{Manner, Subscriber};
use crate::harness::{Server, eventually_or_else};

const EVENTS: u64 = 300;
const PUBLISHERS: u64 = 4;
/// How much of an answer is kept for people: what becomes 1024 characters in the sink's attribute.
const ANSWER_BYTES_MAX: usize = 768;

/// A subscriber at an address of its own, with a Trigger of its name.
async fn move_in(server: &Server, name: &str, manner: Manner) -> Subscriber {
    let subscriber = Subscriber::start().await;
    subscriber.behave("/", manner);
    let spec = json!({"delivery": impatient(2)});
    server
        .apply(&trigger(name, &subscriber.url("/"), spec))
        .await;
    subscriber
}

/// Publishes all events from several connections; not one may be refused.
async fn publish_all(server: &Server) {
    let publishers = (0..PUBLISHERS).map(async |publisher| {
        let mut wire = server.publisher();
        for number in (publisher..EVENTS).step_by(PUBLISHERS as usize) {
            let id = number.to_string();
            let answer = wire.ask("POST", BROKER, &event(&id, "load"), b"data").await;
            let answer = answer.unwrap();
            assert_eq!(answer.status(), 202, "{}", answer.text());
        }
    });
    futures::future::join_all(publishers).await;
}

/// How often each event came, which must be the same for all of them.
#[track_caller]
fn each_came(subscriber: &Subscriber, times: usize) {
    let tally = subscriber.tally("/");
    assert_eq!(tally.len() as u64, EVENTS);
    let others: Vec<_> = tally.iter().filter(|(_, came)| **came != times).collect();
    assert!(
        others.is_empty(),
        "these did not come {times} times: {others:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_good_subscriber_gets_everything_whatever_its_neighbours_do() {
    let server = stage::with_busy_broker().await;
    let hung = move_in(&server, "hung", Manner::Hang).await;
    let slow = move_in(&server, "slow", Manner::Slow(Duration::from_millis(200))).await;
    let busy = move_in(&server, "busy", Manner::Busy(3600)).await;
    let failing = move_in(&server, "failing", Manner::Status(500)).await;
    let wordy = move_in(&server, "wordy", Manner::Wordy(400, 2048)).await;
    let closing = move_in(&server, "closing", Manner::Close).await;
    let good = move_in(&server, "good", Manner::Accept).await;
    for name in [
        "hung", "slow", "busy", "failing", "wordy", "closing", "good",
    ] {
        server.until_ready("triggers", name).await;
    }

    publish_all(&server).await;
    good.until_received("/", EVENTS as usize).await;
    // Nobody waited for the hung one: its attempts have not even run out of time.
    let account = server.account("hung").await;
    assert_eq!((account.matched, account.pending), (EVENTS, EVENTS));
    assert!(account.in_flight > 0, "{account:#?}");

    let accounts = eventually_or_else("the others to fare as they must", async || {
        let accounts = server.accounts().await.consumers;
        let rest = |name| account_of(&accounts, name).dead_letters == EVENTS;
        let delivered = |name| account_of(&accounts, name).delivered == EVENTS;
        if rest("failing")
            && rest("wordy")
            && rest("closing")
            && delivered("good")
            && delivered("slow")
        {
            return Ok(accounts);
        }
        Err(format!("{accounts:#?}"))
    })
    .await;
    each_came(&good, 1);
    each_came(&slow, 1);
    each_came(&failing, 3);
    each_came(&closing, 3);
    each_came(&wordy, 1); // 400 is final.
    // Asked to be left alone for an hour, it keeps what it is owed and is not asked over and over.
    let account = account_of(&accounts, "busy");
    assert_eq!((account.matched, account.pending), (EVENTS, EVENTS));
    assert!(busy.tally("/").values().all(|times| *times == 1));

    let page: DeadLetterPage = server
        .question("dead-letters?consumer=trigger/team-a/wordy&limit=1")
        .await;
    let letter: DeadLetterDetail = server
        .question(&format!("dead-letters/{}", page.items[0].name))
        .await;
    assert_eq!(letter.summary.status, Some(400));
    assert_eq!(letter.answer.unwrap(), "x".repeat(ANSWER_BYTES_MAX));

    // The hung one comes to its senses: what waited is delivered.
    hung.behave("/", Manner::Accept);
    hung.until_received("/", EVENTS as usize).await;
    assert!(!server.log().contains("panicked"), "{}", server.log());
}
