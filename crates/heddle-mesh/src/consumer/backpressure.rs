//! Events that wait because this mesh has no room for what comes of them: the next hop, or a reply.
//!
//! Kept in memory only. A restart tries them at once and finds out again.

use std::collections::BTreeMap;

use super::State;
use crate::log::Offset;
use crate::shared::Shared;

/// What a consumer has no room for.
#[derive(Debug, Default)]
pub(super) struct Backpressure {
    /// How often in a row each found none.
    waits: BTreeMap<Offset, u32>,
    /// What the last of them was told.
    why: Box<str>,
}

impl State {
    /// There was no room for an event; gives how often that was so in a row.
    pub(crate) fn begin_backpressure(&mut self, shared: &Shared, offset: Offset, why: &str) -> u32 {
        if self.backpressure.waits.is_empty() {
            shared.notify_changed();
        }
        self.backpressure.why = why.into();
        let waits = self.backpressure.waits.entry(offset).or_default();
        *waits = waits.saturating_add(1);
        *waits
    }

    /// An attempt ended in some other way, or is not to be made any more.
    pub(crate) fn end_backpressure(&mut self, shared: &Shared, offset: Offset) {
        if self.backpressure.waits.remove(&offset).is_some() && self.backpressure.waits.is_empty() {
            shared.notify_changed();
        }
    }

    /// Whether the last attempt of an event found no room.
    pub(crate) fn is_backpressured(&self, offset: Offset) -> bool {
        self.backpressure.waits.contains_key(&offset)
    }

    /// Why events wait for room, if some do.
    pub(crate) fn backpressure_reason(&self) -> Option<String> {
        let Backpressure { waits, why } = &self.backpressure;
        (!waits.is_empty())
            .then(|| format!("{why}; it is tried until there is room, at the cost of no attempt"))
    }
}
