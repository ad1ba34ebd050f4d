//! Dead letters, listed, shown, sent on their way again and thrown away.

use heddle_api::dead_letters::BulkAct;
use heddle_api::ledger::{
    DeadLetter, DeadLetterDetail, DeadLetterPage, DeadLetterSelection, DeadLettersTaken, DeadReply,
};
use heddle_api::mask::Mask;

use super::{Error, ShownData, shown_event};
use crate::envelope;
use crate::journal::positions::{DeadLetterEntry, Sink};
use crate::journal::record::ConsumerId;
use crate::mesh::Mesh;
use crate::path::dead_letter;
use crate::path::dead_letter::picker::Picker;
use crate::path::dead_letter::walk::LetterWalk;

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
        let picker = Picker::new(&selection, None);
        let mut names = Vec::new();
        LetterWalk::new(&self.shared, &picker).all_at_once(|met| names.push(met.name));
        self.dead_letter_page(names, after, limit)
    }

    pub(crate) async fn dead_letters_picked(
        &self,
        picker: &Picker,
        after: u64,
        limit: usize,
    ) -> DeadLetterPage {
        let mut names = Vec::new();
        let walk = LetterWalk::new(&self.shared, picker);
        walk.all(|met| names.push(met.name)).await;
        self.dead_letter_page(names, after, limit)
    }

    /// Those of the names behind one, as many as fit.
    fn dead_letter_page(&self, mut names: Vec<u64>, after: u64, limit: usize) -> DeadLetterPage {
        names.sort_unstable();
        let total = names.len() as u64;
        let behind = names.partition_point(|name| *name <= after);
        let behind = &names[behind..];
        let some = &behind[..behind.len().min(limit.clamp(1, PAGE_MAX))];
        let consumers = self.shared.consumers.read();
        let letters = self.shared.dead.lock();
        let items = some.iter().filter_map(|name| {
            // It may have left meanwhile.
            let rest = letters.get(*name)?;
            Some(shown(*name, rest, consumers.key_of(rest.consumer)))
        });
        DeadLetterPage {
            items: items.collect(),
            total,
            next: (some.last().filter(|_| some.len() < behind.len())).map(u64::to_string),
        }
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
        self.dead_letter_for(name, None)
    }

    /// The same for somebody from whom something is hidden in data.
    pub(crate) fn dead_letter_for(
        &self,
        name: &str,
        mask: Option<&Mask>,
    ) -> Result<DeadLetterDetail, Error> {
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
        let (mut text, mut data_hidden) = (Vec::new(), false);
        if let Ok((_, event)) = envelope::entry_and_event(&dead.record) {
            let shown = ShownData::of(&event, mask);
            data_hidden = shown == ShownData::Withheld;
            crate::event::json::write(&shown_event(&event, shown), &mut text);
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
            // As it is: to read it would round its numbers.
            event: serde_json::from_slice(&text).unwrap_or_default(),
            answer: (!answer.is_empty()).then_some(answer),
            data_hidden,
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
        let mut names: Vec<(u64, ConsumerId, bool)> = Vec::new();
        let walk = LetterWalk::new(shared, picker);
        walk.all(|met| names.push((met.name, met.rest.consumer, met.rest.reply.is_some())))
            .await;
        names.sort_unstable();
        let mut taken = DeadLettersTaken::default();
        for (name, id, is_reply) in names {
            if is_reply && act == BulkAct::Redrive {
                taken.replies += 1;
                continue;
            }
            let consumer = shared.consumers.read().by_id.get(&id).cloned();
            let Some(consumer) = consumer else { continue };
            let mut state = consumer.lock();
            let done = match act == BulkAct::Discard {
                true => consumer.discard(shared, &mut state, name, by),
                false => consumer.redrive(shared, &mut state, name, by),
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
