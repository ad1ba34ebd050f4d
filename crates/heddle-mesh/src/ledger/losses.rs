//! What is known to be lost, told to whoever asks for an event that may be part of it.
//!
//! Nothing is denied while damage that is known could be it; and what is told of an event says so where the journal lost
//! records that may have spoken of it.

use std::ops::Range;
use std::sync::Arc;

use heddle_api::counted;
use heddle_api::ledger::TracedEvent;
use jiff::Timestamp;

use super::Error;
use super::visible::Visible;
use crate::event::Event;
use crate::journal::positions::short;
use crate::log::Offset;
use crate::mesh::Mesh;

/// Ranges and dead letters that are named in one sentence; of more the rest is counted.
const NAMED_MAX: usize = 10;
/// One record is enough to know when it was written.
const READ_BYTES: usize = 1;

/// What somebody asks for.
#[derive(Clone, Debug)]
pub(super) struct AskedEvent {
    pub(super) id: Arc<str>,
    pub(super) source: Option<Arc<str>>,
    pub(super) visible: Visible,
}

impl AskedEvent {
    /// Whether it is an event of that name.
    pub(super) fn is(&self, event: &Event) -> bool {
        let source = self.source.as_deref();
        event.id() == &*self.id && source.is_none_or(|source| event.source() == source)
    }
}

impl Mesh {
    /// A sentence for each loss that may be, or concern, what was asked for. `damaged` is where the index has it, and its
    /// bytes are not what was written.
    pub(super) fn losses(
        &self,
        found: &[TracedEvent],
        damaged: &[Offset],
        asked: &AskedEvent,
    ) -> Result<Vec<String>, Error> {
        let mut told = Vec::new();
        // Where an event came in is lost with its bytes. That it was there is told to those who see all events; to others its
        // place is one of those where theirs may have been.
        let damaged = match asked.visible.is_everything() {
            true => damaged,
            false => &[],
        };
        if !damaged.is_empty() {
            let places = damaged.iter().map(|offset| *offset..offset + 1);
            told.push(format!(
                "an event of this source with this id was accepted at {} of the log; it is damaged and its bytes are lost",
                in_words("place", &places.collect::<Vec<_>>())
            ));
        }
        if found.is_empty() {
            told.extend(self.damaged_in_words(damaged));
            told.extend(self.gone_in_words());
            told.extend(self.lost_events(&asked.visible));
        }
        if found.is_empty() || !damaged.is_empty() {
            told.extend(self.resting_in_words(asked));
        }
        told.extend(self.journal_losses(found)?);
        Ok(told)
    }

    /// Events that cannot be read, besides those that are known to be the one.
    fn damaged_in_words(&self, known: &[Offset]) -> Option<String> {
        let mut places = self.shared.log.damaged_at();
        places.retain(|range| {
            !known
                .iter()
                .any(|offset| range.contains(offset) && range.end - range.start == 1)
        });
        (!places.is_empty()).then(|| {
            format!(
                "{} of the log cannot be read any more: the event may have been there",
                in_words("place", &places)
            )
        })
    }

    fn gone_in_words(&self) -> Option<String> {
        let below = self.shared.consumers.read().log_lost_below;
        (below > 0).then(|| {
            format!(
                "the log was lost and begun anew at place {below} when somebody repaired it: events from before are gone"
            )
        })
    }

    fn lost_events(&self, visible: &Visible) -> Vec<String> {
        let lost = |(key, events): (String, u64)| {
            let events = counted(events, "event");
            format!("nobody knows what became of {events} of {key}, which the disk lost")
        };
        let all = self.shared.user_consumers();
        let theirs = all
            .iter()
            .filter(|consumer| visible.shows_consumer(&consumer.key));
        let accounts =
            theirs.map(|consumer| (consumer.key.to_string(), consumer.lock().tally.lost));
        accounts
            .filter(|(_, events)| *events > 0)
            .map(lost)
            .collect()
    }

    /// A dead letter keeps its event when the log no longer has it.
    fn resting_in_words(&self, asked: &AskedEvent) -> Option<String> {
        let (id, source) = (short(&asked.id), asked.source.as_deref().map(short));
        let consumers = self.shared.consumers.read();
        let letters = self.shared.dead.lock();
        let same = letters.resting().filter(|(_, rest)| {
            rest.id == id
                && source.as_ref().is_none_or(|source| *source == rest.source)
                && (asked.visible).shows_consumer(consumers.key_of(rest.consumer))
        });
        let names: Vec<String> = same
            .map(|(name, _)| name.to_string())
            .take(NAMED_MAX)
            .collect();
        (!names.is_empty()).then(|| {
            format!(
                "dead letters keep it: `heddle dead-letters show {}`",
                names.join(" ")
            )
        })
    }

    /// Records of the journal that are lost and may have spoken of these events: those that were written after one of them
    /// was accepted.
    fn journal_losses(&self, found: &[TracedEvent]) -> Result<Option<String>, Error> {
        let Some(accepted_at) = found.iter().map(|event| event.accepted_at).min() else {
            return Ok(None);
        };
        let mut losses = self.shared.consumers.read().losses.clone();
        let mut about = Vec::new();
        for lost in losses.drain(..) {
            let after = self.written_after(lost.end)?;
            if after.is_none_or(|at| at >= accepted_at) {
                about.push(lost);
            }
        }
        Ok((!about.is_empty()).then(|| {
            format!(
                "{} of the journal is lost in both copies: what is told of deliveries may be incomplete, and some may have happened twice",
                in_words("record", &about)
            )
        }))
    }

    /// When the first record that is left from here on was written.
    fn written_after(&self, from: Offset) -> Result<Option<Timestamp>, Error> {
        let batch = self.shared.log.journal().read(from, READ_BYTES)?;
        Ok(batch.records.first().map(|record| record.at))
    }
}

/// `place 7, 9 to 12 and 3 more`.
fn in_words(what: &str, ranges: &[Range<Offset>]) -> String {
    let one = |range: &Range<Offset>| match range.end - range.start {
        1 => range.start.to_string(),
        _ => format!("{} to {}", range.start, range.end - 1),
    };
    let named: Vec<String> = ranges.iter().take(NAMED_MAX).map(one).collect();
    let more = ranges.len().saturating_sub(NAMED_MAX);
    let more = match more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{what} {}{more}", named.join(", "))
}
