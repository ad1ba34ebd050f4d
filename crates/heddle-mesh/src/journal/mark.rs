//! What somebody said about a group of dead letters: the line that says so, and what is remembered of it.
//!
//! A line is written when a group is marked and when its mark is taken away; the last one about a group counts. Whether a
//! mark still holds follows from the letters that rest and from the time, and is written nowhere.

use std::collections::BTreeMap;

use heddle_api::dead_letters::marks::MarkKind;
use jiff::Timestamp;

use crate::codec::{Put, Take, Unreadable};

/// In the place of a kind: the mark was taken away.
const NO_MARK: u8 = 0;

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMarkEntry {
    /// Of the group.
    pub key: String,
    /// `None` takes the mark away.
    pub kind: Option<MarkKind>,
    pub at: Timestamp,
    pub by: String,
    pub note: String,
    pub until: Timestamp,
    /// The last letter that it is about, and how many more it allows for.
    pub up_to: u64,
    pub more: u64,
}

impl GroupMarkEntry {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.str(&self.key);
        out.u8(match self.kind {
            None => NO_MARK,
            Some(MarkKind::Known) => 1,
            Some(MarkKind::Ignored) => 2,
        });
        out.time(self.at);
        out.str(&self.by);
        out.str(&self.note);
        out.time(self.until);
        out.u64(self.up_to);
        out.u64(self.more);
    }

    pub(super) fn decode(take: &mut Take<'_>) -> Result<Self, Unreadable> {
        Ok(Self {
            key: take.string()?,
            kind: match take.u8()? {
                NO_MARK => None,
                1 => Some(MarkKind::Known),
                2 => Some(MarkKind::Ignored),
                _ => return Err(Unreadable::Newer("the mark of a group of dead letters")),
            },
            at: take.time()?,
            by: take.string()?,
            note: take.string()?,
            until: take.time()?,
            up_to: take.u64()?,
            more: take.u64()?,
        })
    }
}

/// All marks there are, by the key of their group. How many there may be is seen to before a line is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupMarks {
    pub all: BTreeMap<String, GroupMarkEntry>,
}

impl GroupMarks {
    /// Takes in what a line says.
    pub fn apply(&mut self, entry: &GroupMarkEntry) {
        match entry.kind {
            Some(_) => drop(self.all.insert(entry.key.clone(), entry.clone())),
            None => drop(self.all.remove(&entry.key)),
        }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.u64(self.all.len() as u64);
        for entry in self.all.values() {
            entry.encode(out);
        }
    }

    pub(super) fn decode(take: &mut Take<'_>) -> Result<Self, Unreadable> {
        let mut marks = Self::default();
        for _ in 0..take.u64()? {
            let entry = GroupMarkEntry::decode(take)?;
            marks.all.insert(entry.key.clone(), entry);
        }
        Ok(marks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_about_a_group_counts() {
        let entry = |key: &str, kind| GroupMarkEntry {
            key: key.to_owned(),
            kind,
            at: Timestamp::UNIX_EPOCH,
            by: "ann".to_owned(),
            note: "known".to_owned(),
            until: Timestamp::UNIX_EPOCH,
            up_to: 3,
            more: 1,
        };
        let mut marks = GroupMarks::default();
        marks.apply(&entry("a", Some(MarkKind::Known)));
        marks.apply(&entry("b", Some(MarkKind::Ignored)));
        marks.apply(&entry("a", Some(MarkKind::Ignored)));
        assert_eq!(marks.all["a"].kind, Some(MarkKind::Ignored));
        let mut bytes = Vec::new();
        marks.encode(&mut bytes);
        assert_eq!(GroupMarks::decode(&mut Take(&bytes)), Ok(marks.clone()));
        for key in ["a", "b", "c"] {
            marks.apply(&entry(key, None));
        }
        assert_eq!(marks, GroupMarks::default());
    }
}
