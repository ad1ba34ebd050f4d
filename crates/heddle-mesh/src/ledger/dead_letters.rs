//! Dead letters, listed, shown, sent on their way again and thrown away.

use heddle_api::dead_letters::BulkAct;
use heddle_api::ledger::{
    DeadLetter, DeadLetterDetail, DeadLetterPage, DeadLetterSelection, DeadLettersTaken, DeadReply,
};

use super::Error;
use crate::envelope;
use crate::journal::positions::{DeadLetterEntry, Sink};
use crate::journal::record::ConsumerId;
use crate::mesh::Mesh;
use crate::path::dead_letter;
use crate::path::dead_letter::picker::Picker;

/// Dead letters on one page, unless fewer are asked for.
const PAGE_MAX: usize = 500;

impl Mesh {
    /// What rests and is selected, oldest first, after a name. A selection that says nothing lists everything.
    #[must_use]
    pub fn dead_letters(
        &self,
        selection: &DeadLetterSelection,
        after: u64,
        limit: usize,
    ) -> DeadLetterPage {
        let mut selection = selection.clone();
        selection.all = true;
        self.dead_letters_picked(&Picker::new(&selection, None), after, limit)
    }

    pub(crate) fn dead_letters_picked(
        &self,
        picker: &Picker,
        after: u64,
        limit: usize,
    ) -> DeadLetterPage {
        let consumers = self.shared.consumers.read();
        let letters = self.shared.dead.lock();
        let mut page = DeadLetterPage::default();
        let limit = limit.clamp(1, PAGE_MAX);
        for (name, rest) in letters.resting() {
            let key = consumers.key_of(rest.consumer);
            if !picker.picks(name, rest, key) {
                continue;
            }
            page.total += 1;
            if name <= after {
                continue;
            }
            if page.items.len() < limit {
                page.items.push(shown(name, rest, key));
            } else if page.next.is_none() {
                page.next = page.items.last().map(|last| last.name.clone());
            }
        }
        page
    }

    /// Whose dead letter it is, if it rests.
    pub(crate) fn dead_letter_consumer(&self, name: &str) -> Option<String> {
        let consumers = self.shared.consumers.read();
        let letters = self.shared.dead.lock();
        let rest = letters.get(name.parse().ok()?)?;
        Some(consumers.key_of(rest.consumer).to_owned())
    }

    /// One dead letter with its event.
    pub fn dead_letter(&self, name: &str) -> Result<DeadLetterDetail, Error> {
        let missing = || Error::NotFound(format!("there is no dead letter {name}"));
        let number: u64 = name.parse().map_err(|_| missing())?;
        let mut summary = {
            let consumers = self.shared.consumers.read();
            let letters = self.shared.dead.lock();
            let rest = letters.get(number).ok_or_else(missing)?;
            let key = consumers.key_of(rest.consumer);
            shown(number, rest, key)
        };
        let dead = dead_letter::record(&self.shared, number)?;
        let dead = dead.found().ok_or_else(missing)?;
        let mut text = Vec::new();
        if let Ok((_, event)) = envelope::entry_and_event(&dead.record) {
            crate::event::json::write(&event, &mut text);
            // A list has them short.
            summary.source = event.source().to_owned();
            summary.id = event.id().to_owned();
            summary.type_ = event.type_().to_owned();
        }
        summary.reason.clone_from(&dead.reason);
        if let (Some(shown), Some(reply)) = (&mut summary.reply, &dead.reply) {
            shown.content_type.clone_from(&reply.content_type);
        }
        let answer = String::from_utf8_lossy(&dead.answer).into_owned();
        Ok(DeadLetterDetail {
            summary,
            event: serde_json::from_slice(&text).unwrap_or_default(),
            answer: (!answer.is_empty()).then_some(answer),
            data_hidden: false,
        })
    }

    /// Sends the selected ones on their way again, on somebody's behalf; answers when that is safe.
    pub async fn redrive(&self, selection: &DeadLetterSelection, by: &str) -> DeadLettersTaken {
        let picker = Picker::new(selection, None);
        self.take(&picker, BulkAct::Redrive, by).await
    }

    /// Throws the selected ones away, on somebody's behalf; answers when that is safe.
    pub async fn discard(&self, selection: &DeadLetterSelection, by: &str) -> DeadLettersTaken {
        let picker = Picker::new(selection, None);
        self.take(&picker, BulkAct::Discard, by).await
    }

    pub(crate) async fn take(&self, picker: &Picker, act: BulkAct, by: &str) -> DeadLettersTaken {
        let shared = &self.shared;
        let names: Vec<(u64, ConsumerId, bool)> = {
            let consumers = shared.consumers.read();
            let letters = shared.dead.lock();
            let selected = letters.resting().filter(|(name, rest)| {
                let key = consumers.key_of(rest.consumer);
                picker.picks(*name, rest, key)
            });
            selected
                .map(|(name, rest)| (name, rest.consumer, rest.reply.is_some()))
                .collect()
        };
        let mut taken = DeadLettersTaken::default();
        for (name, id, is_reply) in names {
            if is_reply && act == BulkAct::Redrive {
                taken.replies += 1;
                continue;
            }
            let consumer = shared.consumers.read().by_id.get(&id).cloned();
            let Some(consumer) = consumer else { continue };
            let mut state = consumer.lock();
            let done = match act {
                BulkAct::Redrive => consumer.redrive(shared, &mut state, name, by),
                BulkAct::Discard => consumer.discard(shared, &mut state, name, by),
            };
            taken.count += u64::from(done);
        }
        if taken.count > 0 {
            shared.look_for_dead_letter_room();
            shared.settled().await;
        }
        taken
    }
}

fn shown(name: u64, rest: &DeadLetterEntry, key: &str) -> DeadLetter {
    DeadLetter {
        name: name.to_string(),
        consumer: key.to_owned(),
        offset: rest.offset,
        source: rest.source.clone(),
        id: rest.id.clone(),
        type_: rest.type_.clone(),
        accepted_at: rest.accepted_at,
        dead_at: rest.at,
        reason: rest.reason.clone(),
        status: (rest.status > 0).then_some(rest.status),
        attempts: rest.attempts,
        redrives: rest.redrives,
        sink: match &rest.sink {
            Sink::None => None,
            Sink::Waiting => Some("waiting".to_owned()),
            Sink::Sent => Some("sent".to_owned()),
            Sink::Failed(error) => Some(format!("failed: {error}")),
        },
        reply: rest.reply.map(|fault| DeadReply {
            fault: fault.label().to_owned(),
            content_type: String::new(),
        }),
    }
}
