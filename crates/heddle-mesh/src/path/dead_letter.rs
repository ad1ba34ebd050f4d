//! Hop 7: where an event rests when delivery gives up, with the reason.
//!
//! The bytes of a dead letter are in the journal, so the log may forget the event. What is kept in memory is what a list
//! shows, with long texts cut. There is room for so many: a consumer that has [`CONSUMER_MAX`] is sent nothing more until
//! somebody decides about some, so that none has to go without a decision. Replies rest here too (`reply`). Leaving is an act of
//! a named person, or of a trigger that asked for it: sent on its way again, or thrown away. Both change a consumer's account,
//! and are left to [`crate::consumer`].

pub(crate) mod picker;
mod reply;
pub(crate) mod tries;
pub(crate) mod walk;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::journal::positions::{DeadLetterEntry, Sink, short};
use crate::journal::record::ConsumerId;
use crate::journal::{self, Attempted, Dead, DeadReply, JournalRecord};
use crate::log::{Lookup, Offset, Unavailable};
use crate::shared::Shared;

pub(crate) use reply::Answered;

/// Dead letters of one consumer.
const CONSUMER_MAX: u64 = 10_000;
/// Dead letters in all. Beyond it, whoever has more than [`SHARE_MIN`] waits.
const ALL_MAX: u64 = 100_000;
/// A consumer with fewer goes on, whatever others have.
const SHARE_MIN: u64 = 1_000;

/// All dead letters, by name.
#[derive(Debug, Default)]
pub(crate) struct DeadLetters {
    rests: BTreeMap<u64, DeadLetterEntry>,
    /// Those that rest, consumer by consumer.
    by_consumer: BTreeSet<(ConsumerId, u64)>,
    /// How many of each consumer rest. Those on their way again are not among them, or none could be sent to make room.
    counts: HashMap<ConsumerId, u64>,
    /// The same of replies, which are counted apart: they keep nobody from being sent events.
    reply_counts: HashMap<ConsumerId, u64>,
    name_last: u64,
    /// Those whose line is not yet safe, and therefore cannot be read back.
    unsaved: HashMap<u64, Arc<Dead>>,
}

impl DeadLetters {
    pub(crate) fn restored(rests: BTreeMap<u64, DeadLetterEntry>, name_last: u64) -> Self {
        let mut letters = Self {
            name_last,
            ..Self::default()
        };
        for (name, rest) in rests.iter().filter(|(_, rest)| !rest.left) {
            *letters.count_of(rest) += 1;
            letters.by_consumer.insert((rest.consumer, *name));
        }
        letters.rests = rests;
        letters
    }

    pub(crate) fn next_name(&mut self) -> u64 {
        self.name_last += 1;
        self.name_last
    }

    pub(crate) fn rest(&mut self, dead: Dead) {
        let rest = DeadLetterEntry::new(0, &dead);
        *self.count_of(&rest) += 1;
        self.by_consumer.insert((rest.consumer, dead.name));
        self.rests.insert(dead.name, rest);
        self.unsaved.insert(dead.name, Arc::new(dead));
    }

    /// How many rest beside this one.
    fn count_of(&mut self, rest: &DeadLetterEntry) -> &mut u64 {
        let counts = match rest.reply {
            None => &mut self.counts,
            Some(_) => &mut self.reply_counts,
        };
        counts.entry(rest.consumer).or_default()
    }

    /// The line of a dead letter is safe, in this record of the journal.
    pub(crate) fn saved(&mut self, name: u64, journal: Offset) {
        self.unsaved.remove(&name);
        if let Some(rest) = self.rests.get_mut(&name) {
            rest.journal = journal;
        }
    }

    pub(crate) fn forget(&mut self, name: u64) {
        self.leave(name);
        self.rests.remove(&name);
        self.unsaved.remove(&name);
    }

    /// It no longer rests; its record is still needed. Gives the event it is about, unless it had left already.
    pub(crate) fn leave(&mut self, name: u64) -> Option<Offset> {
        let rest = self.rests.get_mut(&name).filter(|rest| !rest.left)?;
        rest.left = true;
        let rest = rest.clone();
        self.by_consumer.remove(&(rest.consumer, name));
        let count = self.count_of(&rest);
        *count = count.saturating_sub(1);
        Some(rest.offset)
    }

    /// How many of a consumer rest, without replies.
    pub(crate) fn count(&self, consumer: ConsumerId) -> u64 {
        self.counts.get(&consumer).copied().unwrap_or_default()
    }

    /// How many replies of a consumer's subscriber rest.
    pub(crate) fn reply_count(&self, consumer: ConsumerId) -> u64 {
        let count = self.reply_counts.get(&consumer);
        count.copied().unwrap_or_default()
    }

    /// Why a consumer may have no more of them, if so.
    pub(crate) fn full(&self, consumer: ConsumerId) -> Option<String> {
        let count = self.count(consumer);
        let all: u64 = self.counts.values().sum();
        let full = count >= CONSUMER_MAX || (all >= ALL_MAX && count >= SHARE_MIN);
        full.then(|| {
            // It is told to whoever may know of this consumer, who need not know how many others have.
            let others = match count >= CONSUMER_MAX {
                true => "",
                false => "with those of all others ",
            };
            format!(
                "it has {count} dead letters, and {others}there is room for no more; redrive or discard some"
            )
        })
    }

    pub(crate) fn redrives(&self, name: u64) -> u32 {
        self.rests.get(&name).map_or(0, |rest| rest.redrives)
    }

    /// The event of a dead letter that the external sink is still to have.
    pub(crate) fn sink_waiting(&self, name: u64) -> Option<Offset> {
        let rest = self.rests.get(&name)?;
        (rest.sink == Sink::Waiting).then_some(rest.offset)
    }

    pub(crate) fn sunk(&mut self, name: u64, status: u16, error: &str) {
        if let Some(rest) = self.rests.get_mut(&name) {
            rest.sink = if (200..300).contains(&status) {
                Sink::Sent
            } else {
                Sink::Failed(short(error))
            };
        }
    }

    pub(crate) fn get(&self, name: u64) -> Option<&DeadLetterEntry> {
        self.rests.get(&name).filter(|rest| !rest.left)
    }

    /// What rests, oldest first.
    pub(crate) fn resting(&self) -> impl Iterator<Item = (u64, &DeadLetterEntry)> {
        let all = self.rests.iter().map(|(name, rest)| (*name, rest));
        all.filter(|(_, rest)| !rest.left)
    }

    /// Those of one consumer that rest, behind a name.
    pub(crate) fn of_consumer(
        &self,
        consumer: ConsumerId,
        after: u64,
    ) -> impl Iterator<Item = (u64, &DeadLetterEntry)> {
        let own = (consumer, after.saturating_add(1))..=(consumer, u64::MAX);
        let names = self.by_consumer.range(own);
        names.filter_map(|(_, name)| Some((*name, self.rests.get(name)?)))
    }

    /// Whose dead letters rest.
    pub(crate) fn consumers(&self) -> Vec<ConsumerId> {
        let counts = self.counts.iter().chain(&self.reply_counts);
        let some = counts.filter(|(_, count)| **count > 0);
        let ids: BTreeSet<ConsumerId> = some.map(|(id, _)| *id).collect();
        ids.into_iter().collect()
    }

    /// The records of the journal that hold dead letters, resting or on their way.
    pub(crate) fn records(&self) -> impl Iterator<Item = Offset> {
        self.rests
            .values()
            .map(|rest| rest.journal)
            .filter(|journal| *journal > 0)
    }

    /// Dead letters whose sink waits, after a restart.
    pub(crate) fn all_sinks_waiting(&self) -> Vec<(ConsumerId, u64)> {
        let waiting = self
            .resting()
            .filter(|(_, rest)| rest.sink == Sink::Waiting);
        waiting.map(|(name, rest)| (rest.consumer, name)).collect()
    }
}

/// A dead letter with its bytes.
pub(crate) fn record(shared: &Shared, name: u64) -> Result<Lookup<Arc<Dead>>, Unavailable> {
    let journal = {
        let letters = shared.dead.lock();
        if let Some(dead) = letters.unsaved.get(&name) {
            return Ok(Lookup::Found(Arc::clone(dead)));
        }
        match letters.rests.get(&name) {
            Some(rest) => rest.journal,
            None => return Ok(Lookup::Gone),
        }
    };
    let found = shared.log.journal().get(journal)?;
    let dead = found.map(|record| dead_in(&record.payload, name));
    match dead {
        Lookup::Found(Some(dead)) => Ok(Lookup::Found(dead)),
        // The journal lost it. The log may still have the event.
        Lookup::Found(None) | Lookup::Damaged | Lookup::Gone => from_log(shared, name),
    }
}

/// A dead letter whose own record is lost, as far as it is known, with the event from the log.
fn from_log(shared: &Shared, name: u64) -> Result<Lookup<Arc<Dead>>, Unavailable> {
    let rest = shared.dead.lock().rests.get(&name).cloned();
    let Some(rest) = rest else {
        return Ok(Lookup::Gone);
    };
    let record = match shared.log.get(rest.offset)? {
        Lookup::Found(record) => record.payload,
        // Of a reply there is something to tell without the event.
        Lookup::Damaged | Lookup::Gone if rest.reply.is_some() => bytes::Bytes::new(),
        Lookup::Damaged | Lookup::Gone => return Ok(Lookup::Damaged),
    };
    Ok(Lookup::Found(Arc::new(Dead {
        attempted: Attempted {
            consumer: rest.consumer,
            offset: rest.offset,
            number: rest.attempts,
            at: rest.at,
            latency_us: 0,
            status: rest.status,
        },
        name,
        redrives: rest.redrives,
        accepted_at: rest.accepted_at,
        reason: rest.reason,
        answer: Vec::new(),
        sink: rest.sink == Sink::Waiting,
        given_up: false,
        record,
        reply: rest.reply.map(|fault| DeadReply {
            fault,
            content_type: String::new(),
        }),
    })))
}

/// The dead letter of this name among the lines of a record.
fn dead_in(payload: &[u8], name: u64) -> Option<Arc<Dead>> {
    let lines = journal::decode(payload).ok()?;
    lines.into_iter().find_map(|line| match line {
        JournalRecord::Dead(dead) if dead.name == name => Some(Arc::from(dead)),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
