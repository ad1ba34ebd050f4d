//! What was published, who was owed it, and who got it: the oracle's own account, kept apart from the mesh.
//!
//! Both simulations write it, the one over pipes and the one over a network, so that both ask for the same things.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::figures::Figures;
use super::wish::Wish;

/// What the publisher was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PublishResult {
    Accepted,
    /// For good: nobody may ever see it.
    Refused,
    /// The disk broke meanwhile, or the answer was lost. It may be kept or not.
    Unknown,
}

#[derive(Clone, Debug)]
pub(super) struct Published {
    pub(super) id: String,
    pub(super) type_: &'static str,
    pub(super) key: u64,
    pub(super) data: Bytes,
    pub(super) answer: Option<PublishResult>,
    /// How often it was sent. Each may be kept, and is then delivered as an event of its own.
    copies: usize,
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
    /// The number of each event in `published`, by its id.
    numbers: BTreeMap<String, usize>,
    /// Per trigger, the events it is owed.
    pub(super) owed: BTreeMap<String, BTreeSet<usize>>,
    /// Who saw what, whatever they answered.
    seen: BTreeSet<(String, usize)>,
    receipts: BTreeMap<(String, usize), Receipts>,
    /// Per trigger, events in the order in which they were first accepted.
    order: BTreeMap<String, Vec<usize>>,
    pub(super) figures: Figures,
    /// The life of the process, counted from 0.
    pub(super) life: u64,
    /// An answer may get lost on its way, so that the mesh is right to try again what was accepted.
    pub(super) answers_get_lost: bool,
    wrong: Option<String>,
}

impl Book {
    /// The first thing that was wrong.
    pub(super) fn verdict(&self) -> Result<(), String> {
        self.wrong.clone().map_or(Ok(()), Err)
    }

    pub(super) fn blame(&mut self, what: String) {
        self.wrong.get_or_insert(what);
    }

    /// Something that happened, for the hash of the history.
    pub(super) fn note(&mut self, what: &str) {
        self.figures.note(what);
    }

    /// An event that its publisher is about to send. Gives its number.
    pub(super) fn draft(
        &mut self,
        id: String,
        type_: &'static str,
        key: u64,
        data: Bytes,
    ) -> usize {
        let number = self.published.len();
        self.numbers.insert(id.clone(), number);
        self.published.push(Published {
            id,
            type_,
            key,
            data,
            answer: None,
            copies: 0,
        });
        number
    }

    /// It is sent, perhaps once more: what was refused before may be taken now.
    pub(super) fn send(&mut self, number: usize) {
        let published = &mut self.published[number];
        published.copies += 1;
        published.answer = published
            .answer
            .filter(|answer| *answer != PublishResult::Refused);
    }

    /// Its publisher was told something. Gives whether it is known only now to be kept.
    pub(super) fn answered(&mut self, number: usize, answer: PublishResult) -> bool {
        let published = &mut self.published[number];
        let before = published.answer;
        // One copy that is kept is enough, and one that may be kept cannot be called back.
        let stays = match before {
            Some(PublishResult::Accepted) => true,
            Some(PublishResult::Unknown) => answer == PublishResult::Refused,
            Some(PublishResult::Refused) | None => false,
        };
        if stays {
            return false;
        }
        published.answer = Some(answer);
        let accepted = answer == PublishResult::Accepted;
        self.figures.published += u64::from(accepted);
        accepted
    }

    pub(super) fn owe(&mut self, trigger: &str, number: usize) {
        let owed = self.owed.entry(trigger.to_owned()).or_default();
        owed.insert(number);
    }

    /// The events of which nobody knows whether they were kept.
    pub(super) fn unknown(&self) -> impl Iterator<Item = usize> {
        let published = self.published.iter().enumerate();
        published
            .filter(|(_, published)| published.answer == Some(PublishResult::Unknown))
            .map(|(number, _)| number)
    }

    /// A subscriber sees an event.
    pub(super) fn receive(&mut self, host: &str, id: &str, data: &[u8]) {
        self.figures.received += 1;
        self.note(host);
        self.note(id);
        if let Err(wrong) = self.rightly(host, id, data) {
            self.blame(format!("{host} received event {id}: {wrong}"));
        }
    }

    /// A dead letter of a trigger, whose event is given if it was sent.
    pub(super) fn lies_dead(&mut self, trigger: &str, id: &str, data: &[u8]) -> Option<usize> {
        let rightly = self.rightly(trigger, id, data);
        if let Err(wrong) = &rightly {
            self.blame(format!("a dead letter of {trigger} is event {id}: {wrong}"));
        }
        rightly.ok()
    }

    /// The number of an event at a trigger, or why it should not be there.
    fn rightly(&mut self, trigger: &str, id: &str, data: &[u8]) -> Result<usize, &'static str> {
        let number = *self.numbers.get(id).ok_or("nobody published it")?;
        let published = &self.published[number];
        self.seen.insert((trigger.to_owned(), number));
        if published.answer == Some(PublishResult::Refused) {
            return Err("its publisher was told that it was refused");
        }
        if published.copies == 0 {
            return Err("its publisher has not sent it");
        }
        if published.data != data {
            return Err("its bytes have changed");
        }
        let owed = self.owed.get(trigger);
        let owed = owed.is_some_and(|owed| owed.contains(&number));
        if published.answer == Some(PublishResult::Accepted) && !owed {
            return Err("it is none of its own");
        }
        Ok(number)
    }

    /// The subscriber took what this life of the process sent it, and its answer is on the way.
    pub(super) fn accept(&mut self, host: &str, id: &str, life: u64) {
        let Some(event) = self.numbers.get(id).copied() else {
            return;
        };
        let receipts = self.receipts.entry((host.to_owned(), event)).or_default();
        let repeated = !receipts.accepted_in.is_empty();
        receipts.accepted_in.push(life);
        let in_this_life = receipts.accepted_in.iter().filter(|one| **one == life);
        let too_often = in_this_life.count() > self.published[event].copies;
        if !repeated {
            self.order.entry(host.to_owned()).or_default().push(event);
        }
        self.figures.repeated += u64::from(repeated);
        if too_often && !self.answers_get_lost {
            self.blame(format!(
                "{host} had accepted event {id} and received it again"
            ));
        }
    }

    /// Every debt is paid, by a delivery or by a dead letter, and nobody saw what was none of theirs.
    pub(super) fn settle(&mut self, resting: &BTreeSet<(String, usize)>) {
        self.figures.owed = self.owed.values().map(|owed| owed.len() as u64).sum();
        self.figures.dead_letters = resting.len() as u64;
        let mut wrong = Vec::new();
        for (trigger, owed) in &self.owed {
            for event in owed {
                let place = (trigger.clone(), *event);
                let paid = self.receipts.contains_key(&place) || resting.contains(&place);
                if !paid {
                    let id = &self.published[*event].id;
                    wrong.push(format!("{trigger} never got event {id}"));
                }
            }
        }
        // Some were seen before their publisher was told anything, so they are judged once more.
        for (trigger, event) in &self.seen {
            let published = &self.published[*event];
            let owed = self.owed.get(trigger);
            let owed = owed.is_some_and(|owed| owed.contains(event));
            let right = match published.answer {
                Some(PublishResult::Accepted) => owed,
                Some(PublishResult::Refused) => false,
                Some(PublishResult::Unknown) | None => true,
            };
            if !right {
                let (id, answer) = (&published.id, published.answer);
                wrong.push(format!("{trigger} should not have seen {id}: {answer:?}"));
            }
        }
        if !wrong.is_empty() {
            self.blame(wrong.join("; "));
        }
    }

    /// Nobody saw an event of a type that they never asked for, whatever its publisher was told.
    pub(super) fn check_types(&mut self, wishes: &[Wish]) {
        let wants = |trigger: &str, type_| {
            let mut wishes = wishes.iter().filter(|wish| wish.name == trigger);
            wishes.any(|wish| wish.wants(type_))
        };
        let mut seen = self.seen.iter();
        let wrong = seen.find(|(trigger, event)| !wants(trigger, self.published[*event].type_));
        if let Some((trigger, event)) = wrong {
            let id = &self.published[*event].id;
            self.blame(format!("{trigger} never asked for events like {id}"));
        }
    }

    /// Events of one key were first accepted in the order in which they were published, but for those that are exempt.
    pub(super) fn check_order(&mut self, trigger: &str, exempt: &BTreeSet<usize>) {
        let mut last: BTreeMap<u64, usize> = BTreeMap::new();
        let order = self.order.get(trigger).cloned().unwrap_or_default();
        for event in order.into_iter().filter(|event| !exempt.contains(event)) {
            let before = last.insert(self.published[event].key, event);
            if let Some(before) = before.filter(|before| *before > event) {
                let [event, before] = [event, before].map(|number| &self.published[number].id);
                self.blame(format!(
                    "{trigger} is ordered and got event {event} after {before}"
                ));
            }
        }
    }
}
