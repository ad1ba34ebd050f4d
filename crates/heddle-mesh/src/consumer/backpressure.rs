//! Events that wait because this mesh has no room for what comes of them: the next hop, or a reply.
//!
//! Kept in memory only. A restart tries them at once and finds out again.

use std::collections::BTreeMap;

use crate::log::Offset;
use crate::shared::Shared;

/// What a consumer has no room for.
#[derive(Debug, Default)]
pub(crate) struct Backpressure {
    /// How often in a row each found none.
    waits: BTreeMap<Offset, u32>,
    /// What the last of them was told.
    why: Box<str>,
}

impl Backpressure {
    /// There was no room for an event; gives how often that was so in a row.
    pub(crate) fn begin(&mut self, shared: &Shared, offset: Offset, why: &str) -> u32 {
        if self.waits.is_empty() {
            shared.notify_changed();
        }
        self.why = why.into();
        let waits = self.waits.entry(offset).or_default();
        *waits = waits.saturating_add(1);
        *waits
    }

    /// An attempt ended in some other way, or is not to be made any more.
    pub(crate) fn end(&mut self, shared: &Shared, offset: Offset) {
        if self.waits.remove(&offset).is_some() && self.waits.is_empty() {
            shared.notify_changed();
        }
    }

    /// Whether the last attempt of an event found no room.
    pub(crate) fn contains(&self, offset: Offset) -> bool {
        self.waits.contains_key(&offset)
    }

    /// Why events wait for room, if some do.
    pub(crate) fn reason(&self) -> Option<String> {
        let Self { waits, why } = self;
        (!waits.is_empty())
            .then(|| format!("{why}; it is tried until there is room, at the cost of no attempt"))
    }
}
