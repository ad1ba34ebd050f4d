//! What the mesh knows of its own health, gathered about once a second without reading the log for it.
//!
//! Ages are those of the monotonic clock: what somebody sets the time to changes none. An event is as old as the reading
//! that first saw the log reach beyond it; only for what is older than anybody remembers the log is asked, for a few
//! consumers at a time.

use std::sync::Arc;
use std::time::Duration;

use heddle_api::dataplane::{ConsumerReading, LogReading, MeshReading};
use heddle_store::Health;

use super::samples::LogSamples;
use crate::consumer::{Consumer, ReadMode};
use crate::heartbeat::PathFacts;
use crate::journal::record::ConsumerId;
use crate::log::{Offset, SegmentInfo};
use crate::mesh::Mesh;

/// Events looked up in the log for one reading, at most. Each is looked up once.
const LOOK_UPS_MAX: usize = 32;

/// One reading under way.
struct Gathering<'a> {
    now: Duration,
    scanned: Offset,
    samples: &'a LogSamples,
    segments: Vec<SegmentInfo>,
    look_ups_left: usize,
    /// Who keeps the most, and from where on.
    largest: Option<(Offset, Arc<str>)>,
    /// What waits for whom.
    pending: Vec<(ConsumerId, u64)>,
}

impl Mesh {
    /// The evidence for health, at this moment.
    #[must_use]
    pub fn reading(&self) -> MeshReading {
        let shared = &self.shared;
        let in_force = shared.in_force.load_full();
        let now = shared.clock.monotonic();
        // The end is looked at before the scanner's place: what lies between the two is waiting, and nothing else.
        let end = shared.log.bounds().end;
        let mut samples = shared.samples.lock();
        samples.look(now, end);
        let segments = shared.log.segments();
        let mut log = self.log_reading(&mut samples, &segments, now);
        let scanned = shared.scanned();
        log.end = Some(end);
        log.unmatched = end.saturating_sub(scanned);
        if log.unmatched > 0 {
            let age = samples.age(scanned, now);
            log.unmatched_for = Some(age.unwrap_or_default());
        }
        let mut gathering = Gathering {
            now,
            scanned,
            samples: &samples,
            segments,
            look_ups_left: LOOK_UPS_MAX,
            largest: None,
            pending: Vec::new(),
        };
        let mut consumers: Vec<ConsumerReading> = Vec::new();
        for consumer in self.consumers_by_key() {
            consumers.push(self.consumer_reading(&consumer, &mut gathering));
        }
        log.largest = gathering.largest.map(|(_, key)| key.to_string());
        let pending = gathering.pending;
        samples.backlogs(now, &pending);
        drop(samples);
        let held = self.journal_stalled();
        let facts = PathFacts {
            table: &in_force.table,
            held: held.as_deref(),
            faults: &shared.faults,
        };
        let (heartbeats, canary) = shared.heartbeats.readings(&facts);
        MeshReading {
            routing: in_force.ready,
            store: None,
            log,
            heartbeats,
            canary,
            edge: None,
            consumers,
            doors: shared.metrics.door_readings(),
            denied_links: in_force.table.denied_links(),
        }
    }

    fn log_reading(
        &self,
        samples: &mut LogSamples,
        segments: &[SegmentInfo],
        now: Duration,
    ) -> LogReading {
        let shared = &self.shared;
        let room = shared.log.room().borrow().clone();
        let known = !room.dir.as_os_str().is_empty();
        let (broken, refusing) = match shared.log.health() {
            Health::Poisoned(reason) => (Some(reason), None),
            _ => (None, self.health().err()),
        };
        let usable = room.free_bytes.saturating_sub(room.reserve_bytes());
        let is_full = matches!(shared.log.health(), Health::Full) || room.low;
        let used: u64 = segments.iter().map(|one| one.bytes).sum();
        let used_ratio = match is_full {
            true => 1.0,
            false => used as f64 / (used.saturating_add(usable)).max(1) as f64,
        };
        if known {
            samples.room(now, room.free_bytes);
        }
        LogReading {
            broken,
            refusing,
            journal_stalled: self.stall_reason(),
            used_ratio: (known || is_full).then_some(used_ratio),
            disk_full: known
                .then(|| samples.disk_full(now, room.free_bytes, usable))
                .flatten(),
            damaged: shared.log.damaged(),
            journal_lost: shared.consumers.read().lost_records,
            ..LogReading::default()
        }
    }

    /// Why outcomes cannot be written down, if they cannot.
    fn stall_reason(&self) -> Option<String> {
        self.journal_stalled()?;
        Some(self.shared.stall_reason.lock().clone())
    }

    fn consumer_reading(
        &self,
        consumer: &Arc<Consumer>,
        gathering: &mut Gathering<'_>,
    ) -> ConsumerReading {
        let now = gathering.now;
        let ago = |at: Duration| now.saturating_sub(at);
        let state = consumer.lock();
        let tally = state.tally;
        let pending = match state.cursor.reading {
            ReadMode::CatchUp { .. } => tally.pending(),
            ReadMode::Live => state.at_hand(),
        };
        let accounted = tally.ended() + pending;
        let spec = state.routing.spec.as_ref();
        let mut reading = ConsumerReading {
            key: consumer.key.to_string(),
            entries: spec.map_or_else(Vec::new, |spec| {
                let feeds = spec.feeds.iter();
                feeds.map(|feed| feed.entry.to_string()).collect()
            }),
            matched: tally.matched,
            delivered: tally.delivered,
            pending,
            retrying: state.retries.on_record.len() as u64,
            in_flight: state.window.in_flight() as u64,
            failures: state.last_attempts.failures,
            dead_letters: 0,
            oldest_pending: None,
            succeeded: state.last_attempts.succeeded.map(ago),
            failed: state
                .last_attempts
                .failed
                .as_ref()
                .map(|(at, why)| (ago(*at), why.clone())),
            unaccounted: (tally.matched + tally.resent).abs_diff(accounted),
            probe: state
                .routing
                .plan
                .probe
                .as_ref()
                .map(|probe| probe.reading(now)),
        };
        let scanned = gathering.scanned;
        let oldest = (pending > 0).then(|| (state.oldest(scanned), state.oldest_own(scanned)));
        drop(state);
        gathering.pending.push((consumer.id, pending));
        reading.dead_letters = self.shared.dead.lock().count(consumer.id);
        if let Some((oldest, oldest_own)) = oldest {
            gathering.keeps(consumer, oldest);
            // What somebody had sent again is old and not late.
            reading.oldest_pending = self.age(consumer, oldest_own, gathering);
        }
        reading
    }

    /// How old a consumer's oldest event is; `None` when too many were asked for at once.
    fn age(
        &self,
        consumer: &Consumer,
        oldest: Offset,
        gathering: &mut Gathering<'_>,
    ) -> Option<Duration> {
        if let Some(age) = gathering.samples.age(oldest, gathering.now) {
            return Some(age);
        }
        let is_known = consumer
            .oldest_seen
            .lock()
            .is_some_and(|(at, _)| at == oldest);
        if !is_known {
            gathering.look_ups_left = gathering.look_ups_left.checked_sub(1)?;
        }
        let accepted = self.accepted(consumer, oldest)?;
        let age = self.shared.clock.now().duration_since(accepted);
        Some(Duration::try_from(age).unwrap_or_default())
    }
}

impl Gathering<'_> {
    /// Whoever has the oldest unfinished event keeps the most. The segment that is appended to is kept by nobody.
    fn keeps(&mut self, consumer: &Consumer, oldest: Offset) {
        let mut segments = self.segments.iter();
        let keeps = segments.any(|segment| segment.sealed && segment.next > oldest);
        let most = self.largest.as_ref();
        if keeps && most.is_none_or(|(most, _)| oldest < *most) {
            self.largest = Some((oldest, Arc::clone(&consumer.key)));
        }
    }
}
