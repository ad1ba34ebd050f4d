//! A workload from a seed, what the log answered, and whether what it holds is true to that.

use std::collections::BTreeMap;
use std::ops::Range;

use heddle_rt::Chance;
use heddle_store::events::{AppendError, Draft, EventLog, RemoveError};

use crate::support::*;

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// One append of records with these payloads.
    Append(Vec<Vec<u8>>),
    Seal,
    RemoveOldest,
}

/// Some steps. Every payload is different from all others, also from those of other seeds.
pub(crate) fn steps(seed: u64, count: usize) -> Vec<Step> {
    let chance = Chance::seeded(seed);
    let payload = |step: usize, number: u64| {
        let bytes = usize::try_from(chance.below(260)).expect("nothing is in the way");
        let mut payload = format!("{seed}/{step}/{number}:").into_bytes();
        payload.resize(payload.len() + bytes, b'.');
        payload
    };
    let step = |step| match chance.below(12) {
        0 => Step::Seal,
        1 => Step::RemoveOldest,
        _ => {
            let records = 1 + chance.below(4);
            Step::Append((0..records).map(|number| payload(step, number)).collect())
        }
    };
    (0..count).map(step).collect()
}

/// What the log has promised.
#[derive(Clone, Debug, Default)]
pub(crate) struct Promises {
    acknowledged: BTreeMap<u64, Vec<u8>>,
    /// Appends without an answer that can be relied on: all of one or nothing, behind the others.
    in_doubt: Vec<Vec<Vec<u8>>>,
    removed: Vec<Range<u64>>,
    removals_in_doubt: Vec<Range<u64>>,
    pub(crate) refused_count: usize,
}

pub(crate) fn key(payload: &[u8]) -> u64 {
    u64::from(crc(payload)) | 1 << 40
}

fn crc(payload: &[u8]) -> u32 {
    let add = |sum: u32, byte: &u8| sum.rotate_left(5) ^ u32::from(*byte);
    payload.iter().fold(payload.len() as u32, add)
}

impl Promises {
    /// Tells the story to a log and notes every answer.
    pub(crate) async fn tell(&mut self, log: &EventLog, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Append(payloads) => self.append(log, payloads).await,
                Step::Seal => log.seal(),
                Step::RemoveOldest => self.remove_oldest(log).await,
            }
        }
    }

    pub(crate) async fn append(&mut self, log: &EventLog, payloads: &[Vec<u8>]) {
        let drafts: Vec<Draft<'_>> = payloads
            .iter()
            .map(|payload| draft(key(payload), payload))
            .collect();
        match log.append(&drafts).await {
            Ok(offsets) => {
                assert_eq!(offsets.end - offsets.start, payloads.len() as u64);
                for (offset, payload) in offsets.zip(payloads) {
                    let before = self.acknowledged.insert(offset, payload.clone());
                    assert_eq!(before, None, "offset {offset} was given out twice");
                }
            }
            Err(
                AppendError::Full
                | AppendError::Exhausted(_)
                | AppendError::Busy
                | AppendError::Poisoned(_),
            ) => {
                self.refused_count += 1;
            }
            Err(AppendError::Undetermined(_)) => {
                self.refused_count += 1;
                self.in_doubt.push(payloads.to_vec());
            }
            Err(error) => panic!("{error}"),
        }
    }

    async fn remove_oldest(&mut self, log: &EventLog) {
        let Some(oldest) = log.segments().into_iter().find(|segment| segment.sealed) else {
            return;
        };
        let offsets = oldest.first..oldest.next;
        match log.remove_segment(oldest.first).await {
            Ok(()) => self.removed.push(offsets),
            Err(RemoveError::Io { .. }) => self.removals_in_doubt.push(offsets),
            Err(error) => panic!("{error}"),
        }
    }

    /// Fails the test if a log breaks a promise.
    pub(crate) fn hold(&self, log: &EventLog, context: impl std::fmt::Display) {
        if let Err(broken) = self.judge(log) {
            panic!("{context}: {broken}");
        }
    }

    /// Compares a log with what was promised. The first broken promise is the error.
    pub(crate) fn judge(&self, log: &EventLog) -> Result<(), String> {
        let found: BTreeMap<u64, Vec<u8>> = all(log)
            .into_iter()
            .map(|record| (record.offset, record.payload.to_vec()))
            .collect();
        if let Some(damage) = log.damage().first() {
            return Err(format!("damage where nothing was damaged: {damage}"));
        }
        let end = self
            .acknowledged
            .keys()
            .next_back()
            .map_or(1, |last| last + 1);
        let removed = |offset: &u64| self.removed.iter().any(|range| range.contains(offset));
        for (offset, payload) in &self.acknowledged {
            match found.get(offset) {
                Some(other) if other != payload => {
                    return Err(format!("the acknowledged record {offset} has changed"));
                }
                Some(_) if removed(offset) => {
                    return Err(format!("the removed record {offset} is back"));
                }
                None if !removed(offset) && !self.may_be_gone(*offset, &found) => {
                    return Err(format!("the acknowledged record {offset} is lost"));
                }
                _ => {}
            }
            let offsets = log
                .find(key(payload), 10)
                .map_err(|error| error.to_string())?;
            if offsets.contains(offset) != found.contains_key(offset) {
                return Err(format!("the record {offset} is not found by its key"));
            }
        }
        let extra: Vec<_> = found.range(end..).collect();
        let unexpected = found
            .range(..end)
            .find(|(offset, _)| !self.acknowledged.contains_key(offset));
        if let Some((offset, _)) = unexpected {
            return Err(format!("the record {offset} was never acknowledged"));
        }
        let consecutive = extra
            .iter()
            .zip(end..)
            .all(|((offset, _), due)| **offset == due);
        let payloads: Vec<&Vec<u8>> = extra.into_iter().map(|(_, payload)| payload).collect();
        let whole = payloads.is_empty()
            || self
                .in_doubt
                .first()
                .is_some_and(|first| first.iter().eq(payloads.iter().copied()));
        if !consecutive || !whole {
            return Err(format!(
                "{} records appear that should not, or not so",
                payloads.len()
            ));
        }
        Ok(())
    }

    /// Part of a removal without an answer, and gone as a whole.
    fn may_be_gone(&self, offset: u64, found: &BTreeMap<u64, Vec<u8>>) -> bool {
        self.removals_in_doubt
            .iter()
            .any(|range| range.contains(&offset) && found.range(range.clone()).next().is_none())
    }

    /// After a restart everybody knows what has become of what was in doubt.
    pub(crate) fn settle(&mut self, log: &EventLog) {
        let found: BTreeMap<u64, Vec<u8>> = all(log)
            .into_iter()
            .map(|record| (record.offset, record.payload.to_vec()))
            .collect();
        self.in_doubt.clear();
        for range in self.removals_in_doubt.drain(..) {
            if found.range(range.clone()).next().is_none() {
                self.removed.push(range);
            }
        }
        self.acknowledged.extend(found);
    }
}
