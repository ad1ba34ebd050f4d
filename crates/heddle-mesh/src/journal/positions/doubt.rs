//! What follows from records that the journal lost.
//!
//! ```text
//!   records   ── known ──│ lost │── known again ──>  end
//!   a consumer    floor ─┘
//!                   └── events from here on that no intact record ends are gone through again
//! ```
//! A lost record may have ended events, put them on record, introduced a consumer. None of that may make an intact event
//! vanish: from where a consumer was before the loss, every event of its own that no intact record ends is unfinished. Some
//! are delivered twice. Those the log no longer has are counted and told as lost when the consumer has gone through all.

use std::ops::Range;

use super::{Position, Positions, Retry};
use crate::journal::record::ConsumerId;
use crate::log::Offset;

/// Losses that are remembered one by one; more are counted.
const LOSSES_MAX: usize = 64;

/// Where a consumer was before records were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// Every event of its own below has ended or is on record.
    pub floor: Offset,
    /// How many events were its own, up to `counted_to`.
    pub matched: u64,
    pub counted_to: Offset,
}

impl Positions {
    /// These records of the journal can be read nowhere.
    pub fn lose(&mut self, records: Range<Offset>) {
        self.lost_records += records.end - records.start;
        if self.losses.len() < LOSSES_MAX {
            self.losses.push(records);
        }
        let scanned = self.scanned.max(1);
        for position in self.consumers.values_mut() {
            let doubt = position.doubt_from(scanned);
            position.doubt.get_or_insert(doubt);
        }
        self.unknown_from.get_or_insert(scanned);
    }

    /// Whether anything that was lost still has to be made up for.
    #[must_use]
    pub fn in_doubt(&self) -> bool {
        let mut positions = self.consumers.values();
        positions.any(|position| position.doubt.is_some())
    }

    /// Turns doubt into work: every consumer goes back to where it was before the loss.
    pub fn resolve(&mut self) {
        for position in self.consumers.values_mut() {
            let Some(doubt) = position.doubt.take() else {
                continue;
            };
            position.floor = position.floor.min(doubt.floor);
            position.tally.matched = doubt.matched;
            let counted = position.counted_to.unwrap_or(doubt.counted_to);
            position.counted_to = Some(counted.min(doubt.counted_to));
            position.unsure_from = Some(position.floor);
        }
        self.settle_nameless();
    }

    /// A consumer that only lines after a loss speak of. Whoever it was is told apart by its number.
    pub(super) fn introduce(&mut self, id: ConsumerId) {
        self.consumer_last = self.consumer_last.max(id);
        if let Some(from) = self.unknown_from {
            self.consumers.entry(id).or_insert_with(|| Position {
                key: nameless(id),
                floor: from,
                doubt: Some(Doubt {
                    floor: from,
                    matched: 0,
                    counted_to: from,
                }),
                ..Position::default()
            });
        }
    }

    /// Whoever has lost its name cannot be sent anything. Its events are gone through by the consumer that the next table
    /// makes of its trigger; what rests of it stays.
    fn settle_nameless(&mut self) {
        let names: Vec<ConsumerId> = self
            .consumers
            .iter()
            .filter(|(id, position)| position.key == nameless(**id))
            .map(|(id, _)| *id)
            .collect();
        for id in names {
            let own = self.dead.values_mut().filter(|rest| rest.consumer == id);
            let (mut events, mut replies) = (0, 0);
            for rest in own {
                rest.left = false;
                match rest.reply {
                    None => events += 1,
                    Some(_) => replies += 1,
                }
            }
            if events + replies == 0 {
                self.consumers.remove(&id);
            } else if let Some(position) = self.consumers.get_mut(&id) {
                position.retrying.clear();
                position.ended.clear();
                position.counted_to = None;
                position.unsure_from = None;
                position.tally.dead = events;
                let ended = position.tally.ended();
                position.tally.matched = ended.saturating_sub(position.tally.resent);
            }
        }
    }

    /// An event that rests is spoken of again, so it was redriven by a line that was lost.
    pub(super) fn notice_redrive(&mut self, id: ConsumerId, offset: Offset) {
        let Some(position) = self.consumers.get_mut(&id) else {
            return;
        };
        // Rare, so that looking through all of them is fine.
        if position.doubt.is_none() || position.retrying.contains_key(&offset) {
            return;
        }
        let mut resting = self.dead.iter_mut();
        let found = resting
            .find(|(_, rest)| {
                rest.consumer == id && rest.offset == offset && !rest.left && rest.reply.is_none()
            })
            .map(|(name, rest)| {
                rest.left = true;
                (*name, rest.at)
            });
        if let Some((name, at)) = found {
            position.tally.dead = position.tally.dead.saturating_sub(1);
            position.ended.remove(&offset);
            let retry = Retry::untried(at, Some(name));
            position.retrying.insert(offset, retry);
        }
    }
}

impl Position {
    /// What is known now, if nothing that follows can be trusted to be complete.
    fn doubt_from(&self, scanned: Offset) -> Doubt {
        Doubt {
            floor: self.floor.min(scanned),
            matched: self.tally.matched,
            counted_to: self.counted_to.unwrap_or(scanned),
        }
    }

    /// A consumer without a name is introduced again. Gives from where on it takes part: earlier than it says, for what
    /// introduced it first is lost.
    pub(super) fn named(&mut self, id: ConsumerId, key: &str, from: Offset) -> Offset {
        if self.key != nameless(id) {
            return from;
        }
        key.clone_into(&mut self.key);
        from.min(self.floor)
    }

    /// Ended events at or above this are remembered.
    pub(super) fn sure_floor(&self) -> Offset {
        self.doubt
            .map_or(self.floor, |doubt| doubt.floor.min(self.floor))
    }
}

fn nameless(id: ConsumerId) -> String {
    format!("unknown/consumer-{id}")
}
