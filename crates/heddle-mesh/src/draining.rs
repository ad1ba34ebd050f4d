//! What is still to be done for a broker, and the end of it when an application is cut off from one.
//!
//! ```text
//!   channel/kyma-integration/shop ──(link, removed)──> broker/team-a/default ──> triggers
//!                                                           what came by here and has not ended
//! ```
//! Whoever removes a link asks how much is pending behind it, and may end that: as dead letters, which anybody can look at
//! and send on their way again, or as removed, with the name of who asked for it. Every event still ends once, in one line
//! of the journal under the lock of its consumer, so a crash in between leaves some ended and the others pending, and
//! asking again goes on from there.

use std::ops::Range;
use std::sync::Arc;

use heddle_api::dataplane::{Fate, GivenUp};

use crate::consumer::{Consumer, UnfinishedEvents, Way};
use crate::envelope;
use crate::log::{Offset, Record, Unavailable};
use crate::mesh::Mesh;
use crate::shared::Shared;

/// Bytes of the log looked at in one go, and with them what one consumer's lock is held for.
const READ_BYTES: usize = 256 << 10;

/// How, and in whose name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending<'a> {
    pub(crate) fate: Fate,
    pub(crate) why: &'a str,
}

/// Why not everything could be ended. What was, stays so.
#[derive(Debug, thiserror::Error)]
pub enum GiveUpError {
    /// Later; the mesh says in its health what is wrong.
    #[error("outcomes cannot be written down at the moment")]
    Forgetful,
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

impl Mesh {
    /// Events accepted for the triggers of a broker that have not ended. The backlog that a deleted trigger left is not
    /// among them: it waits for a namesake, whether there is a broker or not.
    #[must_use]
    pub fn pending(&self, broker: &str) -> u64 {
        let in_force = self.shared.in_force.load();
        let specs = in_force.table.consumers().iter();
        let own = |feeds: &[crate::routes::Feed]| {
            feeds
                .iter()
                .any(|feed| *feed.entry == *broker && feed.via.is_empty())
        };
        let of_broker: Vec<bool> = specs
            .map(|spec| !spec.is_of_heartbeats() && own(&spec.feeds))
            .collect();
        let scanned = self.shared.scanned();
        let mut pending: u64 = 0;
        for (consumer, _) in in_force
            .consumers
            .iter()
            .zip(&of_broker)
            .filter(|(_, own)| **own)
        {
            let (known, uncounted) = {
                let state = consumer.lock();
                (state.tally.pending(), state.cursor.counted_to)
            };
            pending += known;
            if let Some(from) = uncounted {
                pending += self.own_between(consumer, from..scanned);
            }
        }
        // What is safe in the log and not matched yet; seldom more than a moment's worth.
        let mut matches = Vec::new();
        let unmatched = self.walk(scanned..self.shared.log.bounds().end, |records| {
            for record in records {
                let Ok((entry, event)) = envelope::entry_and_event(&record.payload) else {
                    continue;
                };
                in_force.table.matches(entry, &event, &mut matches);
                let wanted = matches.iter().filter(|index| of_broker[**index as usize]);
                pending += wanted.count() as u64;
            }
        });
        if unmatched.is_err() {
            // Nobody can say what is there; certainly not that nothing is.
            pending = pending.max(1);
        }
        pending
    }

    /// Of those, the ones that came in at `channel`, and those of triggers that were deleted since.
    #[must_use]
    pub fn pending_through(&self, channel: &str, broker: &str) -> u64 {
        let way = Way { channel, broker };
        let mut pending = 0;
        for consumer in self.shared.user_consumers() {
            let redriven = consumer.redriven(&self.shared, way);
            pending += redriven.map_or(1, |redriven| redriven.len() as u64);
            let Some(backlog) = consumer.backlog(way, self.shared.scanned()) else {
                continue;
            };
            let counted = self.walk(backlog, |records| {
                let UnfinishedEvents { waiting, flying } = consumer.count_unfinished(way, records);
                pending += waiting + flying;
            });
            if counted.is_err() {
                pending += 1;
            }
        }
        pending
    }

    /// Ends everything that [`Self::pending_through`] counts; answers when that is safe. Attempts under way may still
    /// deliver their event; those that fail are not repeated.
    pub async fn give_up(
        &self,
        channel: &str,
        broker: &str,
        fate: Fate,
        why: &str,
    ) -> Result<GivenUp, GiveUpError> {
        let (way, ending) = (Way { channel, broker }, Ending { fate, why });
        let mut count = 0;
        for consumer in self.shared.user_consumers() {
            count += give_up_of(&self.shared, &consumer, way, &ending).await?;
        }
        if count > 0 {
            tracing::info!(
                channel,
                broker,
                count,
                why,
                ?fate,
                "pending events were given up"
            );
            self.shared.settled().await;
            self.shared.notify_changed();
        }
        Ok(GivenUp::of(fate, count))
    }

    fn own_between(&self, consumer: &Consumer, range: Range<Offset>) -> u64 {
        let mut own = 0;
        let read = self.walk(range, |records| {
            let state = consumer.lock();
            let unfinished = records.iter().filter(|record| {
                !state.cursor.ended.contains(&record.offset)
                    && !state.retries.contains(record.offset)
                    && state.routing.is_own(record)
            });
            own += unfinished.count() as u64;
        });
        match read {
            Ok(()) => own,
            Err(_) => own + 1,
        }
    }

    /// Shows a part of the log, a batch at a time.
    fn walk(
        &self,
        range: Range<Offset>,
        mut show: impl FnMut(&[Record]),
    ) -> Result<(), Unavailable> {
        let mut next = range.start;
        while next < range.end {
            let batch = self.shared.log.read(next, READ_BYTES)?;
            show(below(&batch.records, range.end));
            if batch.next <= next {
                break;
            }
            next = batch.next;
        }
        Ok(())
    }
}

/// Walks through one consumer's backlog until nothing of it is left.
async fn give_up_of(
    shared: &Arc<Shared>,
    consumer: &Arc<Consumer>,
    way: Way<'_>,
    ending: &Ending<'_>,
) -> Result<u64, GiveUpError> {
    let mut count = 0;
    loop {
        let mut landing = std::pin::pin!(consumer.landing());
        // Before looking: what lands after that is heard of.
        landing.as_mut().enable();
        match walk_once(shared, consumer, way, ending, &mut count).await? {
            WalkEnd::Through => return Ok(count),
            WalkEnd::PastFlying => landing.await,
            WalkEnd::Astray => {}
        }
    }
}

/// How a walk ended.
enum WalkEnd {
    Through,
    /// Attempts were under way.
    PastFlying,
    /// The consumer began to count anew, from before where the walk was.
    Astray,
}

async fn walk_once(
    shared: &Arc<Shared>,
    consumer: &Arc<Consumer>,
    way: Way<'_>,
    ending: &Ending<'_>,
    count: &mut u64,
) -> Result<WalkEnd, GiveUpError> {
    let mut flying = 0;
    let redriven = consumer.redriven(shared, way)?;
    if !redriven.is_empty() && shared.sends() {
        let found = consumer.give_up_redriven(shared, ending, redriven);
        *count += found.waiting;
        flying += found.flying;
    }
    let backlog = consumer.backlog(way, shared.scanned()).unwrap_or_default();
    let mut next = backlog.start;
    while next < backlog.end {
        // What cannot be written down does not happen.
        if !shared.sends() {
            return Err(GiveUpError::Forgetful);
        }
        let batch = shared.log.read(next, READ_BYTES)?;
        let records = below(&batch.records, backlog.end);
        let Ok(found) = consumer.give_up(shared, way, ending, records, next) else {
            return Ok(WalkEnd::Astray);
        };
        *count += found.waiting;
        flying += found.flying;
        if found.waiting > 0 {
            // So that what waits to be written down stays small, whatever the backlog is.
            shared.settled().await;
        }
        if batch.next <= next {
            break;
        }
        next = batch.next;
    }
    Ok(match flying {
        0 => WalkEnd::Through,
        _ => WalkEnd::PastFlying,
    })
}

fn below(records: &[Record], end: Offset) -> &[Record] {
    &records[..records.partition_point(|record| record.offset < end)]
}
