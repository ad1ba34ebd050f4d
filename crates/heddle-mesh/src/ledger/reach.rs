//! Which consumers have a say about the events that came in at an entry, and what decides for each.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use crate::consumer::{Consumer, decided_ranges};
use crate::log::Offset;
use crate::path::trigger::Predicate;

/// A consumer that events of an entry reach or have reached, and what decides about them, as it was when the search began. No
/// consumer is locked to find out what it does not want.
pub(super) struct ReachedConsumer {
    pub(super) consumer: Arc<Consumer>,
    decisions: Decisions,
}

/// Places of the log, in order, and by what is decided there.
type Decisions = Vec<(Range<Offset>, Arc<Predicate>)>;

/// Those of these consumers that events of an entry reach or have reached, by entry.
pub(super) fn by_entry(
    consumers: impl Iterator<Item = Arc<Consumer>>,
) -> HashMap<String, Vec<ReachedConsumer>> {
    let mut reach: HashMap<String, Vec<ReachedConsumer>> = HashMap::new();
    for consumer in consumers {
        for (entry, decisions) in ReachedConsumer::decisions(&consumer) {
            let reached = reach.entry(entry).or_default();
            reached.push(ReachedConsumer {
                consumer: Arc::clone(&consumer),
                decisions,
            });
        }
    }
    reach
}

impl ReachedConsumer {
    /// What decides for a consumer, by entry.
    fn decisions(consumer: &Consumer) -> BTreeMap<String, Decisions> {
        let mut by_entry: BTreeMap<String, Decisions> = BTreeMap::new();
        let state = consumer.lock();
        for (revision, range) in decided_ranges(&state.routing.revisions) {
            for (entry, _) in &revision.feeds {
                let predicate = Arc::clone(&revision.predicate);
                let decisions = by_entry.entry(entry.clone()).or_default();
                decisions.push((range.clone(), predicate));
            }
        }
        by_entry
    }

    pub(super) fn decides(&self, offset: Offset) -> Option<&Predicate> {
        let mut newest = self.decisions.iter().rev();
        let (_, predicate) = newest.find(|(range, _)| range.contains(&offset))?;
        Some(predicate)
    }
}
