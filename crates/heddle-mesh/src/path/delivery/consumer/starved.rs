//! Events that wait because this mesh has no room for what comes of them: the next hop, or a reply.
//!
//! Kept in memory only. A restart tries them at once and finds out again.

use std::collections::BTreeMap;

use super::State;
use crate::log::Offset;
use crate::shared::Shared;

/// What a consumer has no room for.
#[derive(Debug, Default)]
pub(super) struct Starved {
    /// How often in a row each found none.
    waits: BTreeMap<Offset, u32>,
    /// What the last of them was told.
    why: Box<str>,
}

impl State {
    /// There was no room for an event; gives how often that was so in a row.
    pub(crate) fn starve(&mut self, shared: &Shared, offset: Offset, why: &str) -> u32 {
        if self.starved.waits.is_empty() {
            shared.announce();
        }
        self.starved.why = why.into();
        let waits = self.starved.waits.entry(offset).or_default();
        *waits = waits.saturating_add(1);
        *waits
    }

    /// An attempt ended in some other way, or is not to be made any more.
    pub(crate) fn feed(&mut self, shared: &Shared, offset: Offset) {
        if self.starved.waits.remove(&offset).is_some() && self.starved.waits.is_empty() {
            shared.announce();
        }
    }

    /// Whether the last attempt of an event found no room.
    pub(crate) fn starves(&self, offset: Offset) -> bool {
        self.starved.waits.contains_key(&offset)
    }

    /// Why events wait for room, if some do.
    pub(crate) fn starving(&self) -> Option<String> {
        let Starved { waits, why } = &self.starved;
        (!waits.is_empty())
            .then(|| format!("{why}; it is tried until there is room, at the cost of no attempt"))
    }
}
