//! What was published, who was owed it, and who got it: the oracle's own account, kept apart from the mesh.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

/// What a run was made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    pub published: u64,
    pub owed: u64,
    pub received: u64,
    pub repeated: u64,
    pub dead_letters: u64,
    pub crashes: u64,
    pub faults: u64,
    /// A hash of every receipt in order: the same for the same seed.
    pub digest: u64,
}

/// What the publisher was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Accepted,
    /// For good: nobody may ever see it.
    Refused,
    /// The disk broke meanwhile. It may be kept or not.
    Unknown,
}

#[derive(Clone, Debug)]
pub(super) struct Published {
    pub(super) answer: Option<Answer>,
    pub(super) type_: &'static str,
    pub(super) key: u64,
    pub(super) data: Bytes,
}

/// One event at one subscriber.
#[derive(Clone, Debug, Default)]
struct Receipts {
    /// The lives of the process in which the subscriber answered with success, and the answer got out.
    accepted_in: Vec<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Book {
    pub(super) published: Vec<Published>,
    /// Per trigger, the events it is owed.
    pub(super) owed: BTreeMap<String, BTreeSet<usize>>,
    receipts: BTreeMap<(String, usize), Receipts>,
    /// Per trigger, events in the order in which they were first accepted.
    order: BTreeMap<String, Vec<usize>>,
    pub(super) figures: Figures,
    /// The life of the process, counted from 0.
    pub(super) life: u64,
    wrong: Option<String>,
}

impl Book {
    /// The first thing that was wrong.
    pub(super) fn verdict(&self) -> Result<(), String> {
        self.wrong.clone().map_or(Ok(()), Err)
    }

    fn blame(&mut self, what: String) {
        self.wrong.get_or_insert(what);
    }

    pub(super) fn receive(&mut self, host: &str, id: &str, data: &[u8]) {
        self.figures.received += 1;
        for byte in host.bytes().chain(id.bytes()) {
            self.figures.digest =
                (self.figures.digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        let event = id.parse::<usize>().ok();
        let published = event.and_then(|number| self.published.get(number));
        let wrong = match published {
            None => Some("nobody published it"),
            Some(published) if published.answer == Some(Answer::Refused) => {
                Some("its publisher was told that it was refused")
            }
            Some(published) if published.data != data => Some("its bytes have changed"),
            Some(published) => {
                let owed = self.owed.get(host);
                let known = published.answer == Some(Answer::Accepted);
                let owed =
                    owed.is_some_and(|owed| event.is_some_and(|event| owed.contains(&event)));
                (known && !owed).then_some("it is none of its own")
            }
        };
        if let Some(wrong) = wrong {
            self.blame(format!("{host} received event {id}: {wrong}"));
        }
    }

    /// The subscriber took it, and its answer is on the way.
    pub(super) fn accept(&mut self, host: &str, id: &str) {
        let Ok(event) = id.parse::<usize>() else {
            return;
        };
        let life = self.life;
        let receipts = self.receipts.entry((host.to_owned(), event)).or_default();
        let repeated = !receipts.accepted_in.is_empty();
        let in_this_life = receipts.accepted_in.contains(&life);
        receipts.accepted_in.push(life);
        if !repeated {
            self.order.entry(host.to_owned()).or_default().push(event);
        }
        self.figures.repeated += u64::from(repeated);
        if in_this_life {
            self.blame(format!(
                "{host} had accepted event {id} and received it again"
            ));
        }
    }

    /// Every debt is paid, by a delivery or by a dead letter.
    pub(super) fn settle(&mut self, resting: &BTreeSet<(String, usize)>) {
        self.figures.owed = self.owed.values().map(|owed| owed.len() as u64).sum();
        self.figures.dead_letters = resting.len() as u64;
        let mut unpaid = Vec::new();
        for (trigger, owed) in &self.owed {
            for event in owed {
                let place = (trigger.clone(), *event);
                let paid = self.receipts.contains_key(&place) || resting.contains(&place);
                if !paid {
                    unpaid.push(format!("{trigger} never got event {event}"));
                }
            }
        }
        if !unpaid.is_empty() {
            self.blame(unpaid.join("; "));
        }
    }

    /// Events of one key were first accepted in the order in which they were published, but for those that died.
    pub(super) fn check_order(&mut self, trigger: &str, died: &BTreeSet<usize>) {
        let mut last: BTreeMap<u64, usize> = BTreeMap::new();
        let order = self.order.get(trigger).cloned().unwrap_or_default();
        for event in order.into_iter().filter(|event| !died.contains(event)) {
            let before = last.insert(self.published[event].key, event);
            if let Some(before) = before.filter(|before| *before > event) {
                self.blame(format!(
                    "{trigger} is ordered and got event {event} after {before}"
                ));
            }
        }
    }
}
