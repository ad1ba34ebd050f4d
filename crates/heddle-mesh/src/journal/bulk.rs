//! Something that is done with many dead letters, or with many events of the log: the line that says so, and what is remembered of it.
//!
//! A line is written when it begins and when it has ended, and says all there is to say: the last one counts. What is done
//! with each letter is a line of its own, as ever, so nothing else is needed to go on after a restart: whatever is selected
//! and still rests is still to be taken, and a letter that comes to rest later has a name beyond the last that is meant. An event
//! that is sent again stays in the log, so the line of each moves the place from which its operation goes on.

use std::collections::BTreeMap;

use heddle_api::dead_letters::{BulkAct, BulkState};
use jiff::Timestamp;
use serde_json::Value;

use crate::codec::{Put, Take, Unreadable};
use crate::log::Offset;

/// Of those that ended so many are remembered, the newest.
const ENDED_MAX: usize = 50;
/// Which letters are meant is said by a text of at most so many bytes once nobody needs it to go on.
const ENDED_SELECTION_BYTES_MAX: usize = 1024;

/// Since layout 9 of snapshots, and with a place behind the rest.
const RESEND: u8 = 3;

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkEntry {
    /// Given out once.
    pub id: u64,
    pub act: BulkAct,
    pub state: BulkState,
    pub begun_at: Timestamp,
    pub by: String,
    /// When it ended, or began.
    pub at: Timestamp,
    /// Who stopped it.
    pub stopped_by: String,
    pub total: u64,
    /// Known when it has ended.
    pub taken: u64,
    pub left: u64,
    /// No letter beyond this is meant, or no event from here on.
    pub up_to: u64,
    /// Which letters or events, and of which namespaces, as JSON.
    pub selection: String,
    /// Where events that are sent again go on: all that are meant below were. Of letters nobody needs to know.
    pub place: Offset,
}

impl BulkEntry {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.u64(self.id);
        out.u8(match self.act {
            BulkAct::Redrive => 1,
            BulkAct::Discard => 2,
            BulkAct::Resend => RESEND,
        });
        out.u8(match self.state {
            BulkState::Running => 1,
            BulkState::Done => 2,
            BulkState::Stopped => 3,
        });
        out.time(self.begun_at);
        out.str(&self.by);
        out.time(self.at);
        out.str(&self.stopped_by);
        for number in [self.total, self.taken, self.left, self.up_to] {
            out.u64(number);
        }
        out.str(&self.selection);
        if self.act == BulkAct::Resend {
            out.u64(self.place);
        }
    }

    pub(super) fn decode(take: &mut Take<'_>) -> Result<Self, Unreadable> {
        let mut entry = Self {
            id: take.u64()?,
            act: match take.u8()? {
                1 => BulkAct::Redrive,
                2 => BulkAct::Discard,
                RESEND => BulkAct::Resend,
                _ => return Err(Unreadable::Newer("what is done with many dead letters")),
            },
            state: match take.u8()? {
                1 => BulkState::Running,
                2 => BulkState::Done,
                3 => BulkState::Stopped,
                _ => return Err(Unreadable::Newer("the state of an operation")),
            },
            begun_at: take.time()?,
            by: take.string()?,
            at: take.time()?,
            stopped_by: take.string()?,
            total: take.u64()?,
            taken: take.u64()?,
            left: take.u64()?,
            up_to: take.u64()?,
            selection: take.string()?,
            place: 0,
        };
        if entry.act == BulkAct::Resend {
            entry.place = take.u64()?;
        }
        Ok(entry)
    }
}

/// All of them, as far as they are remembered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BulkEntries {
    pub all: BTreeMap<u64, BulkEntry>,
    /// The highest id given out so far.
    pub last: u64,
}

impl BulkEntries {
    /// Takes in what the newest line says of one, and forgets what is too much to remember.
    pub fn apply(&mut self, entry: &BulkEntry) {
        let mut entry = entry.clone();
        self.last = self.last.max(entry.id);
        if entry.state != BulkState::Running && entry.selection.len() > ENDED_SELECTION_BYTES_MAX {
            entry.selection = without_names(&entry.selection);
        }
        self.all.insert(entry.id, entry);
        let ended = self.all.values();
        let ended = ended.filter(|entry| entry.state != BulkState::Running);
        let ended: Vec<u64> = ended.map(|entry| entry.id).collect();
        for id in &ended[..ended.len().saturating_sub(ENDED_MAX)] {
            self.all.remove(id);
        }
    }

    /// An event was sent again as a part of one.
    pub(super) fn resent(&mut self, id: u64, offset: Offset) {
        if let Some(entry) = self.all.get_mut(&id) {
            entry.taken += 1;
            entry.place = entry.place.max(offset + 1);
        }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.u64(self.last);
        out.u64(self.all.len() as u64);
        for entry in self.all.values() {
            entry.encode(out);
        }
    }

    pub(super) fn decode(take: &mut Take<'_>) -> Result<Self, Unreadable> {
        let mut entries = Self {
            last: take.u64()?,
            ..Self::default()
        };
        for _ in 0..take.u64()? {
            let entry = BulkEntry::decode(take)?;
            entries.all.insert(entry.id, entry);
        }
        Ok(entries)
    }
}

/// What is left of a selection that is too long to be remembered: everything but the letters it named one by one. In which
/// namespaces it acted stays known, since that decides who may see it.
fn without_names(selection: &str) -> String {
    let Ok(mut recorded) = serde_json::from_str::<Value>(selection) else {
        return String::new();
    };
    if let Some(selection) = recorded["selection"].as_object_mut() {
        selection.remove("names");
    }
    recorded.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_see_an_operation_is_known_when_its_letters_are_forgotten() {
        let names: Vec<u64> = (0..1_000).collect();
        let long = serde_json::json!({"selection": {"names": names}, "namespaces": ["team-a"]});
        let mut done = entry(1, BulkState::Done);
        done.selection = long.to_string();
        let mut entries = BulkEntries::default();
        entries.apply(&done);
        let kept = &entries.all[&1].selection;
        assert!(kept.contains("team-a") && kept.len() < 100, "{kept}");
    }

    fn entry(id: u64, state: BulkState) -> BulkEntry {
        BulkEntry {
            id,
            act: BulkAct::Redrive,
            state,
            begun_at: Timestamp::UNIX_EPOCH,
            by: "ann".to_owned(),
            at: Timestamp::UNIX_EPOCH,
            stopped_by: String::new(),
            total: 10,
            taken: 0,
            left: 0,
            up_to: 99,
            selection: "{}".to_owned(),
            place: 0,
        }
    }

    #[test]
    fn each_event_that_is_sent_again_moves_the_place_of_its_operation() {
        let mut entries = BulkEntries::default();
        let mut resend = entry(1, BulkState::Running);
        resend.act = BulkAct::Resend;
        resend.place = 5;
        entries.apply(&resend);
        for offset in [7, 9] {
            entries.resent(1, offset);
        }
        entries.resent(2, 30);
        let now = &entries.all[&1];
        assert_eq!((now.taken, now.place, entries.all.len()), (2, 10, 1));
        let mut bytes = Vec::new();
        entries.encode(&mut bytes);
        assert_eq!(BulkEntries::decode(&mut Take(&bytes)), Ok(entries));
    }

    #[test]
    fn those_that_run_are_all_remembered_and_of_the_others_the_newest() {
        let mut entries = BulkEntries::default();
        entries.apply(&entry(1, BulkState::Running));
        for id in 2..=200 {
            entries.apply(&entry(id, BulkState::Running));
            let mut long = entry(id, BulkState::Done);
            long.selection = "x".repeat(10_000);
            entries.apply(&long);
        }
        assert_eq!(entries.last, 200);
        assert_eq!(entries.all.len(), 1 + ENDED_MAX);
        assert_eq!(entries.all[&1].state, BulkState::Running);
        assert!(entries.all[&200].selection.is_empty());
        let mut bytes = Vec::new();
        entries.encode(&mut bytes);
        assert_eq!(BulkEntries::decode(&mut Take(&bytes)), Ok(entries));
    }
}
