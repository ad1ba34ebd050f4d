use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};

use super::*;

/// A broker with an empty catalog, that keeps no promise and is gone after so many requests.
#[derive(Debug)]
struct Mortal {
    left: AtomicUsize,
    /// A request without an answer is one without an end.
    hangs: bool,
}

impl Transport for Mortal {
    fn send(&self, _: Request<Vec<u8>>) -> BoxFuture<'_, Result<Response<Bytes>, Unreachable>> {
        Box::pin(async {
            let less = |left: usize| left.checked_sub(1);
            let alive = self
                .left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
            if alive.is_err() {
                if self.hangs {
                    std::future::pending::<()>().await;
                }
                return Err(Unreachable("connection refused".to_owned()));
            }
            let response = Response::builder().header("content-type", "application/json");
            let body = Bytes::from_static(br#"{"services": []}"#);
            Ok(response.body(body).expect("it is well formed"))
        })
    }
}

fn settings() -> Settings {
    Settings {
        address: "http://broker".to_owned(),
        username: "ann".to_owned(),
        password: "secret".to_owned(),
        only: None,
        missing_version: 400,
        namespace: "default".to_owned(),
    }
}

async fn asked(answers: usize, hangs: bool) -> Report {
    let clock = Clock::simulated("2026-01-02T03:04:05Z".parse().unwrap());
    let left = AtomicUsize::new(answers);
    let broker = Box::new(Mortal { left, hangs });
    let mut observed = 0;
    let chance = Chance::seeded(7);
    let report = run(&settings(), broker, &clock, &chance, |_| observed += 1).await;
    assert_eq!(observed, rules::all().len());
    assert_eq!(report.results.len(), rules::all().len());
    report
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_was_never_there_is_reported_whole() {
    let report = asked(0, false).await;
    let counts = report.counts();
    assert_eq!(counts.not_asked as usize, rules::all().len());
    assert!(
        report
            .not_started
            .is_some_and(|error| is_unreachable(&error))
    );
    assert_eq!(report.interruption.as_deref(), Some("connection refused"));
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_goes_away_breaks_one_promise_and_the_rest_is_not_asked() {
    for hangs in [false, true] {
        let report = asked(3, hangs).await;
        let outcomes: Vec<_> = report
            .results
            .iter()
            .map(|result| &result.outcome)
            .collect();
        let first = outcomes
            .iter()
            .position(|outcome| matches!(outcome, Outcome::NotAsked(_)));
        let first = first.expect("it went away");
        assert!(matches!(outcomes[first - 1], Outcome::Broken(_)));
        let skipped = |outcome: &&Outcome| matches!(outcome, Outcome::NotAsked(why) if why.starts_with("the broker went away"));
        assert!(outcomes[first..].iter().all(skipped), "{outcomes:?}");
        assert!(report.not_started.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_answers_wrongly_is_asked_to_the_end() {
    let counts = asked(100_000, false).await.counts();
    assert_eq!(counts.not_asked, 0);
    assert!(
        counts.broken > 5 && counts.not_applicable > 40,
        "{counts:?}"
    );
}

#[test]
fn only_narrows_by_group_and_by_words() {
    let asked_for = |text: &str| {
        let only = Some(text.to_owned());
        let settings = Settings { only, ..settings() };
        let rules = rules::all().into_iter();
        rules.filter(|rule| settings.asks_for(rule)).count()
    };
    assert_eq!(asked_for("poll"), 4);
    assert_eq!(asked_for("without a version"), 1);
    assert_eq!(asked_for("no such words"), 0);
}
