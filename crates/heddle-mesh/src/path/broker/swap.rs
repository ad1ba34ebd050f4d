//! Bringing a table into force at one offset, and keeping the places of consumers that left.
//!
//! ```text
//!   match all that is safe by the old table ─> note who begins, changes, leaves ─> safe ─> the new table decides
//! ```
//! A crash before the notes are safe leaves the old table's work intact; after that, reading the log again gives the same
//! verdicts, because every revision says from which offset on it decides.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::Timestamp;

use super::{READ_AGAIN, Scanner};
use crate::consumer::{CompiledRevision, Consumer, State, note};
use crate::journal::{JournalRecord, Routed};
use crate::log::{Offset, Unavailable};
use crate::path::delivery::plan::DeliveryPlan;
use crate::routes::{self, Start, Table};
use crate::shared::{InForce, Shared};

/// How long a deleted consumer's name keeps its backlog for a new one of the same name.
const PLACE_KEPT: Duration = Duration::from_secs(24 * 3600);
/// How often places are looked through.
pub(super) const PLACES_EVERY: Duration = Duration::from_secs(60);
/// How long to wait before a change that could not be made safe is tried again.
const AGAIN: Duration = Duration::from_millis(200);
/// Revisions remembered for one consumer, so that traces of older events are right. Unfinished events keep theirs.
const REVISIONS_MAX: usize = 64;

impl Scanner {
    pub(super) async fn swap(&mut self, table: Arc<Table>) {
        let consumers = loop {
            // What cannot be read cannot be matched by the old table, nor can it be said where a consumer is to begin.
            let prepared = self.catch_up().and_then(|()| self.prepare(&table));
            match prepared {
                Ok(consumers) => break consumers,
                Err(error) => tracing::error!(%error, "a table waits until the log can be read"),
            }
            if self.is_closing() {
                return;
            }
            self.shared.clock.sleep(READ_AGAIN).await;
        };
        // Invariant: no event is matched by a table that the journal does not know.
        while !self.flush_all().await {
            if self.is_closing() {
                return;
            }
            self.shared.clock.sleep(AGAIN).await;
        }
        self.shared.in_force.store(Arc::new(InForce {
            table,
            consumers: consumers.clone(),
            ready: true,
        }));
        self.shared
            .heartbeats
            .follow(&self.shared.in_force.load().table);
        for consumer in consumers {
            let mut state = consumer.lock();
            consumer.wake(&self.shared, &mut state);
            consumer.ask(&self.shared, &mut state);
        }
        self.shared.notify_changed();
    }

    fn is_closing(&self) -> bool {
        self.shared.closing.load(Ordering::Acquire)
    }

    /// Notes what changes, and gives the consumers in the order of the table. Doing it again changes nothing more.
    fn prepare(&mut self, table: &Table) -> Result<Vec<Arc<Consumer>>, Unavailable> {
        let at = self.scanned();
        let mut routed = HashSet::new();
        let mut consumers = Vec::with_capacity(table.consumers().len());
        for spec in table.consumers() {
            let consumer = self.consumer_of(spec);
            routed.insert(consumer.id);
            update(&self.shared, &consumer, spec, at)?;
            consumers.push(consumer);
        }
        let gone: Vec<Arc<Consumer>> = {
            let all = self.shared.consumers.read();
            let left = all
                .by_id
                .values()
                .filter(|consumer| !routed.contains(&consumer.id));
            left.cloned().collect()
        };
        let when = self.shared.clock.now();
        for consumer in gone {
            if consumer.hears_heartbeats() {
                // Nobody comes back for what is left of them.
                forget(&self.shared, &consumer, &mut consumer.lock(), when);
            } else {
                unroute(&self.shared, &consumer, at, when);
            }
        }
        // Whoever is new from now on was not there before.
        self.shared.consumers.write().unknown_from = None;
        Ok(consumers)
    }

    /// The consumer of this name, whoever made it.
    fn consumer_of(&self, spec: &routes::ConsumerSpec) -> Arc<Consumer> {
        let mut all = self.shared.consumers.write();
        if let Some(consumer) = all.by_key.get(&spec.key) {
            return Arc::clone(consumer);
        }
        all.last += 1;
        let consumer = Arc::new(Consumer::new(all.last, Arc::clone(&spec.key)));
        all.by_id.insert(consumer.id, Arc::clone(&consumer));
        all.by_key
            .insert(Arc::clone(&spec.key), Arc::clone(&consumer));
        consumer
    }

    /// Gives up the places that nobody came back to.
    pub(super) fn give_up_places(&mut self) {
        let now = self.shared.clock.now();
        let kept = jiff::SignedDuration::try_from(PLACE_KEPT).unwrap_or(jiff::SignedDuration::MAX);
        let old = |state: &mut State| {
            let Some((_, since)) = &mut state.routing.unrouted else {
                return false;
            };
            // A clock that was set back makes nobody wait longer than from now on.
            *since = now.min(*since);
            now.duration_since(*since) > kept
        };
        for consumer in self.shared.all_consumers() {
            let mut state = consumer.lock();
            // Whatever is under way ends first.
            if !old(&mut state) || state.window.in_flight() > 0 {
                continue;
            }
            tracing::info!(consumer = %consumer.key, unfinished = state.tally.pending(), "the cursor of a deleted trigger expired");
            forget(&self.shared, &consumer, &mut state, now);
        }
    }
}

/// Makes a consumer what the table says, from `at` on.
fn update(
    shared: &Arc<Shared>,
    consumer: &Arc<Consumer>,
    spec: &Arc<routes::ConsumerSpec>,
    at: Offset,
) -> Result<(), Unavailable> {
    let mut state = consumer.lock();
    let newest = state.routing.revisions.last();
    let same = newest.is_some_and(|revision| {
        revision.fingerprint == spec.fingerprint && revision.until.is_none()
    });
    let edited = newest
        .is_none_or(|revision| revision.uid != spec.uid || revision.generation != spec.generation);
    let from = if same {
        None
    } else {
        Some(begin(shared, &state, spec, at)?)
    };
    if edited && state.window.held.take().is_some() {
        let line = JournalRecord::Held {
            consumer: consumer.id,
            reason: "".into(),
        };
        note(shared, &state, line);
    }
    if let Some(from) = from {
        revise(shared, consumer, &mut state, spec, from, at);
    } else {
        let revision = state.routing.revisions.last_mut();
        if let Some(revision) = revision.filter(|_| edited) {
            revision.uid.clone_from(&spec.uid);
            revision.generation = spec.generation;
            // After a restart it must be known as this generation, or it would be taken for edited once more.
            let from = revision.from;
            note(shared, &state, routed(consumer, spec, from, from));
        }
    }
    state.routing.unrouted = None;
    state.forget_limit();
    let over = state.routing.pause_over.as_ref();
    state.routing.plan = Arc::new(DeliveryPlan::new(spec, shared, over));
    state.routing.spec = Some(Arc::clone(spec));
    state.set_rate(spec.settings.rate);
    consumer.await_resume(shared, &state);
    if state.routing.plan.ordered {
        state.hold_keys_on_record(shared);
    } else {
        state.let_go_of_keys();
    }
    consumer.mark_dirty(shared, &mut state);
    Ok(())
}

/// The first offset that a new revision decides about.
fn begin(
    shared: &Shared,
    state: &State,
    spec: &routes::ConsumerSpec,
    at: Offset,
) -> Result<Offset, Unavailable> {
    if let Some((left, _)) = state.routing.unrouted {
        // It was deleted and is back: it goes on where it left, so that re-creating is not a gap.
        return Ok(left);
    }
    if !state.routing.revisions.is_empty() {
        return Ok(at);
    }
    let first = shared.log.bounds().start;
    let start = match &spec.settings.start {
        Start::New if spec.is_of_heartbeats() => at,
        // Its beginning may be among what the journal lost. Rather an event too many than one too few.
        Start::New => shared.consumers.read().unknown_from.unwrap_or(at),
        Start::Earliest => first,
        Start::Time(time) => shared.log.at_time(*time),
        Start::Event { source, id } => {
            let key = crate::event::key_of(source, id);
            let found = shared.log.find(key, 1)?;
            found.first().copied().unwrap_or(at)
        }
    };
    Ok(start.clamp(first.min(at), at))
}

fn revise(
    shared: &Arc<Shared>,
    consumer: &Arc<Consumer>,
    state: &mut State,
    spec: &routes::ConsumerSpec,
    from: Offset,
    at: Offset,
) {
    state
        .routing
        .revisions
        .retain(|revision| revision.from < from);
    if let Some(last) = state.routing.revisions.last_mut() {
        last.until = last.until.filter(|until| *until < from);
    }
    state.routing.revisions.push(CompiledRevision {
        from,
        until: None,
        uid: spec.uid.clone(),
        generation: spec.generation,
        fingerprint: spec.fingerprint,
        feeds: feeds(spec),
        predicate: Arc::clone(&spec.predicate),
    });
    prune(state, at);
    if from < at {
        // What lies between was matched by nobody: it reads and counts that itself.
        state.cursor.go_back_to(from);
    }
    note(shared, state, routed(consumer, spec, from, at));
}

fn routed(
    consumer: &Consumer,
    spec: &routes::ConsumerSpec,
    from: Offset,
    backfill_to: Offset,
) -> JournalRecord {
    JournalRecord::Routed(Box::new(Routed {
        consumer: consumer.id,
        key: consumer.key.to_string(),
        uid: spec.uid.clone(),
        generation: spec.generation,
        from,
        backfill_to,
        fingerprint: spec.fingerprint,
        feeds: feeds(spec),
        filters: serde_json::to_string(&spec.filters).unwrap_or_default(),
    }))
}

fn feeds(spec: &routes::ConsumerSpec) -> Vec<(String, Vec<String>)> {
    let feeds = spec.feeds.iter();
    feeds
        .map(|feed| (feed.entry.to_string(), feed.via.clone()))
        .collect()
}

/// Forgets revisions that decide about nothing that is unfinished, beyond a bound.
fn prune(state: &mut State, at: Offset) {
    let floor = state.floor(at);
    while state.routing.revisions.len() > REVISIONS_MAX
        && state
            .routing
            .revisions
            .get(1)
            .is_some_and(|second| second.from <= floor)
    {
        state.routing.revisions.remove(0);
    }
}

fn unroute(shared: &Shared, consumer: &Arc<Consumer>, at: Offset, when: Timestamp) {
    let mut state = consumer.lock();
    state.routing.spec = None;
    state.routing.plan = Arc::new(DeliveryPlan::nowhere());
    if state.routing.unrouted.is_some() || state.routing.revisions.is_empty() {
        return;
    }
    state.routing.unrouted = Some((at, when));
    if let Some(revision) = state.routing.revisions.last_mut() {
        revision.until = Some(at);
    }
    let line = JournalRecord::Unrouted {
        consumer: consumer.id,
        at,
        when,
    };
    note(shared, &state, line);
    consumer.mark_dirty(shared, &mut state);
}

/// Whatever it had not finished was removed by whoever deleted it.
fn forget(shared: &Shared, consumer: &Arc<Consumer>, state: &mut State, when: Timestamp) {
    state.routing.spec = None;
    state.routing.plan = Arc::new(DeliveryPlan::nowhere());
    state.tally.removed += state.tally.pending();
    let redriven = state.clear(shared);
    let mut letters = shared.dead.lock();
    redriven.into_iter().for_each(|name| letters.forget(name));
    let rests = !consumer.hears_heartbeats()
        && letters
            .resting()
            .any(|(_, rest)| rest.consumer == consumer.id);
    drop(letters);
    let line = JournalRecord::Forgotten {
        consumer: consumer.id,
        when,
    };
    note(shared, state, line);
    if rests {
        return;
    }
    // Nothing is written about it from now on, whatever is still under way.
    state.forgotten = true;
    let mut all = shared.consumers.write();
    all.by_id.remove(&consumer.id);
    all.by_key.remove(&consumer.key);
}
