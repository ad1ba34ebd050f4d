//! How far a consumer has read the log, and what it knows of events beyond that.
//!
//! ```text
//!   floor ───────────── next ─────────────────── scanned
//!     waits, under way    │ unread: read again,      │ the scanner's to hand over
//!     or on record        │ but for what has `ended` │
//! ```
//! While it keeps up, nothing is unread and all of this is empty. Invariant: `counted_to` is set only while it reads the
//! log itself, for the scanner counts what it hands over.

use std::collections::BTreeSet;

use super::lost::Lost;
use crate::log::Offset;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ReadMode {
    /// The scanner hands over events as they come.
    #[default]
    Live,
    /// It reads the log itself, from here.
    CatchUp { next: Offset, asked: bool },
}

#[derive(Debug, Default)]
pub(crate) struct Cursor {
    pub(crate) reading: ReadMode,
    /// Ended before the restart, and to be passed over when they are read again.
    pub(crate) ended: BTreeSet<Offset>,
    /// While it catches up by itself: below this its events are counted.
    pub(crate) counted_to: Option<Offset>,
    /// While it goes through events again whose outcome the journal lost: from where.
    pub(crate) replay_from: Option<Offset>,
    /// What it read past and could not read.
    pub(super) lost: Lost,
}

impl Cursor {
    /// Where it reads on, if it reads by itself.
    pub(crate) fn unread_from(&self) -> Option<Offset> {
        match self.reading {
            ReadMode::Live => None,
            ReadMode::CatchUp { next, .. } => Some(next),
        }
    }

    /// Whether it has yet to read what is there.
    pub(crate) fn is_unread(&self, offset: Offset) -> bool {
        self.unread_from().is_some_and(|next| next <= offset)
    }

    /// Reads the log from here on.
    pub(crate) fn read_from(&mut self, next: Offset) {
        self.reading = ReadMode::CatchUp { next, asked: false };
    }

    /// What lies from here on was matched by nobody: it is read and counted by the consumer itself.
    pub(crate) fn go_back_to(&mut self, from: Offset) {
        self.read_from(self.unread_from().map_or(from, |next| next.min(from)));
        let counted = self.counted_to.map_or(from, |counted| counted.min(from));
        self.counted_to = Some(counted);
    }

    /// Everything was read: the scanner hands over what comes next.
    pub(super) fn caught_up(&mut self) {
        self.reading = ReadMode::Live;
        self.counted_to = None;
    }

    /// Read up to here, and counted as far.
    pub(super) fn read_to(&mut self, next: Offset) {
        self.read_from(next);
        if let Some(counted) = &mut self.counted_to {
            *counted = (*counted).max(next);
        }
    }

    /// An event that was on record before the restart may end before it is read again; then it is not to be read as new.
    pub(crate) fn pass_over(&mut self, offset: Offset) {
        if self.is_unread(offset) {
            self.ended.insert(offset);
        }
    }

    /// Whether an event of the consumer's own is still to be counted.
    pub(super) fn is_uncounted(&self, offset: Offset) -> bool {
        debug_assert!(self.counted_to.is_none() || self.unread_from().is_some());
        self.counted_to.is_some_and(|counted| counted <= offset)
    }

    /// Nothing is left to read. What was lost to the journal stays to be found out.
    pub(super) fn clear(&mut self) {
        *self = Self {
            replay_from: self.replay_from,
            ..Self::default()
        };
    }
}
