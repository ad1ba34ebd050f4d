//! How many dead letters of a consumer may go on their way again at once when many are to.
//!
//! What is due goes before what was never tried. Fresh events therefore get their turn only if those that are sent again
//! leave them some: half of the window is theirs, and a consumer with a window of one alternates.

use std::time::Duration;

use super::State;

/// With so many on record, no more are sent again: beyond twice as many nothing fresh would be tried at all.
const ON_RECORD_MAX: usize = 1024;
/// An attempt takes so long where none was made yet.
const LATENCY: Duration = Duration::from_millis(20);
/// How often the room is looked at.
pub(crate) const BULK_TICK: Duration = Duration::from_millis(20);

impl State {
    /// How many dead letters may go on their way again now.
    pub(crate) fn redrive_room(&self) -> usize {
        let on_record = &self.retries.on_record;
        if on_record.len() >= ON_RECORD_MAX {
            return 0;
        }
        let again = on_record.values();
        let untried = again.filter(|retry| retry.redriven.is_some() && retry.attempts == 0);
        self.redriven_at_once().saturating_sub(untried.count())
    }

    fn redriven_at_once(&self) -> usize {
        (self.allowed() as usize / 2).max(1)
    }

    /// How long it takes to send so many again, if nothing else is to be done and the subscriber answers as it did lately.
    pub(crate) fn time_for(&self, count: u64) -> Duration {
        let latency = self.last_attempts.latency.unwrap_or(LATENCY);
        let turns = count.div_ceil(self.redriven_at_once() as u64);
        let turns = u32::try_from(turns).unwrap_or(u32::MAX);
        latency.max(BULK_TICK).saturating_mul(turns)
    }
}
