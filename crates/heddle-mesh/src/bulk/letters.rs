//! Dead letters that are taken by an operation, a few of each consumer at a time.
//!
//! In memory there is a place in each consumer's letters, and no list of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use heddle_api::dead_letters::BulkAct;

use super::BulkStep;
use crate::consumer::{BULK_TICK, Consumer};
use crate::journal::bulk::BulkEntry;
use crate::journal::record::ConsumerId;
use crate::ledger::held;
use crate::path::dead_letter::picker::Picker;
use crate::path::dead_letter::walk::LetterWalk;
use crate::shared::Shared;

/// Letters of one consumer that are thrown away in one go, and that are looked at.
const DISCARD_MAX: usize = 200;
const LOOK_MAX: usize = 2_000;

/// An operation of this kind while it runs.
#[derive(Debug)]
pub(super) struct LetterWork {
    pub(super) picker: Arc<Picker>,
    /// The last letter of each consumer that was looked at; `None` before the first look.
    pub(super) places: Option<BTreeMap<ConsumerId, u64>>,
}

/// A few letters of each consumer.
pub(super) fn take_letters(
    shared: &Arc<Shared>,
    entry: &BulkEntry,
    work: &mut LetterWork,
) -> BulkStep {
    let picker = &work.picker;
    let places = work
        .places
        .get_or_insert_with(|| first_look(shared, entry.id, picker, entry));
    let mut all = BulkStep::default();
    places.retain(|consumer, place| {
        let consumer = shared.consumers.read().by_id.get(consumer).cloned();
        let Some(consumer) = consumer else {
            return false;
        };
        let step = take_of(shared, &consumer, picker, entry, *place);
        *place = step.place;
        all.taken += step.taken;
        all.left += step.left;
        all.waits = step.waits.or_else(|| all.waits.take());
        !step.ended
    });
    all.ended = places.is_empty();
    all
}

/// Whose letters there are; and what was taken before this process began is what no longer rests.
fn first_look(
    shared: &Shared,
    id: u64,
    picker: &Picker,
    entry: &BulkEntry,
) -> BTreeMap<ConsumerId, u64> {
    let (mut still, mut places) = (0, BTreeMap::new());
    LetterWalk::new(shared, picker).all_at_once(|met| {
        if entry.act == BulkAct::Discard || met.rest.reply.is_none() {
            still += 1;
            // Nobody else has anything to do with it.
            places.insert(met.rest.consumer, 0);
        }
    });
    if let Some(one) = shared.bulks.table.lock().running.get_mut(&id) {
        one.taken = entry.total.saturating_sub(still);
        one.taken_before = one.taken;
        one.since = shared.clock.monotonic();
    }
    places
}

fn take_of(
    shared: &Arc<Shared>,
    consumer: &Arc<Consumer>,
    picker: &Picker,
    entry: &BulkEntry,
    place: u64,
) -> BulkStep {
    let mut state = consumer.lock();
    let gone = entry.act != BulkAct::Discard && state.routing.spec.is_none();
    let discards = entry.act == BulkAct::Discard;
    let room = match discards {
        true => DISCARD_MAX,
        false if gone => LOOK_MAX,
        false => state.redrive_room(),
    };
    let mut step = BulkStep {
        place,
        ..BulkStep::default()
    };
    let mut names = Vec::new();
    {
        let letters = shared.dead.lock();
        let mut own = letters.of_consumer(consumer.id, place).take(LOOK_MAX);
        step.ended = loop {
            let Some((name, rest)) = own.next() else {
                // None was left, or so many were looked at.
                break letters
                    .of_consumer(consumer.id, step.place)
                    .next()
                    .is_none();
            };
            if name > picker.up_to() {
                break true;
            }
            let sent = entry.act == BulkAct::Discard || rest.reply.is_none();
            if sent && picker.picks(name, rest, &consumer.key) {
                if names.len() >= room {
                    break false;
                }
                names.push(name);
            }
            step.place = name;
        };
    }
    if room == 0 && !step.ended {
        let why = held(&state).unwrap_or_else(|| "as many as may are on their way".to_owned());
        step.waits = Some(format!("{}: {why}", consumer.key));
    }
    for name in names {
        let taken = match discards {
            true => consumer.discard(shared, &mut state, name, &entry.by),
            false => !gone && consumer.redrive(shared, &mut state, name, &entry.by),
        };
        step.taken += u64::from(taken);
        step.left += u64::from(!taken);
    }
    step
}

/// How long it takes to throw so many of one consumer away.
pub(crate) fn time_for_discarding(count: u64) -> Duration {
    let turns = count.div_ceil(DISCARD_MAX as u64);
    BULK_TICK.saturating_mul(u32::try_from(turns).unwrap_or(u32::MAX))
}
