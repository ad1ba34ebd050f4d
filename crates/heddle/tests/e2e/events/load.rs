//! Publishers that do not stop until they are told to, and remember what they sent.

use std::collections::BTreeSet;

use futures::future::join_all;

use super::stage::{BROKER, event};
use super::subscriber::Subscriber;
use super::wire::Wire;
use crate::harness::{Acknowledgements, eventually_or_else};

/// What a run of publishers did.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    /// Whether or not there was an answer.
    pub(crate) tried: BTreeSet<String>,
    /// Those that the server promised to deliver.
    pub(crate) acknowledged: BTreeSet<String>,
}

impl Sent {
    pub(crate) fn add(&mut self, other: Self) {
        self.tried.extend(other.tried);
        self.acknowledged.extend(other.acknowledged);
    }

    /// Waits until everything acknowledged has arrived, and checks that nothing else has.
    pub(crate) async fn until_arrived(&self, subscriber: &Subscriber, path: &str) {
        eventually_or_else("every acknowledged event", async || {
            let arrived = subscriber.tally(path);
            let missing = |id: &&String| !arrived.contains_key(*id);
            let missing: Vec<&String> = self.acknowledged.iter().filter(missing).collect();
            match missing.first() {
                None => Ok(()),
                Some(first) => Err(format!("{} are missing, {first} first", missing.len())),
            }
        })
        .await;
        let arrived: BTreeSet<String> = subscriber.ids(path).into_iter().collect();
        let invented: Vec<&String> = arrived.difference(&self.tried).collect();
        assert!(invented.is_empty(), "nobody sent {invented:?}");
    }
}

/// Publishers on an events listener.
#[derive(Debug)]
pub(crate) struct Load {
    url: String,
    /// The start of every id.
    prefix: String,
    acknowledged: Acknowledgements,
}

impl Load {
    pub(crate) fn on(url: &str, prefix: &str) -> Self {
        Self {
            url: url.to_owned(),
            prefix: prefix.to_owned(),
            acknowledged: Acknowledgements::default(),
        }
    }

    /// Publishes with so many publishers until the listener goes away, which it may only do once it is allowed to.
    pub(crate) async fn run(&self, publishers: usize) -> Sent {
        let runs = join_all((0..publishers).map(|publisher| self.publisher(publisher))).await;
        let mut sent = Sent::default();
        for run in runs {
            sent.add(run);
        }
        sent
    }

    async fn publisher(&self, publisher: usize) -> Sent {
        let mut wire = Wire::to(&self.url);
        let mut sent = Sent::default();
        for number in 0.. {
            let id = format!("{}-{publisher}-{number}", self.prefix);
            sent.tried.insert(id.clone());
            let headers = event(&id, "load");
            let answer = wire.ask("POST", BROKER, &headers, id.as_bytes()).await;
            match answer {
                Ok(answer) if answer.status() == 202 => {
                    sent.acknowledged.insert(id);
                    self.acknowledged.add();
                }
                Ok(answer) => panic!("{id} was refused: {answer:?}"),
                Err(error) => {
                    let failure = format!("{id} was not answered: {error}");
                    self.acknowledged.missing(&failure);
                    break;
                }
            }
        }
        sent
    }

    /// Waits for so many acknowledgements; from then on the listener may go away.
    pub(crate) async fn until_acknowledged(&self, count: usize) {
        self.acknowledged.until(count, "events to be taken").await;
    }
}
