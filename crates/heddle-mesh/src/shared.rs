//! What the parts of a running mesh have in common.
//!
//! Lock order: a consumer's state, then the list of consumers or the dead letters, then the lines. The list may be held
//! with the dead letters, never while a consumer is being locked. Consents are asked for and looked at last, and so is the
//! board of heartbeats. No lock is held across an await.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use arc_swap::ArcSwap;
use heddle_api::dataplane::Resources;
use heddle_api::mask::Mask;
use heddle_rt::{Chance, Clock, Tasks};
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, watch};

use crate::aside::Aside;
use crate::bulk::Bulks;
use crate::consumer::Consumer;
use crate::consumer::timer::Timer;
use crate::faults::InjectedFaults;
use crate::heartbeat::Heartbeats;
use crate::journal::JournalRecord;
use crate::journal::record::ConsumerId;
use crate::ledger::hints::Hints;
use crate::ledger::samples::LogSamples;
use crate::log::{Log, Offset};
use crate::marks::MarkedGroups;
use crate::metrics::Metrics;
use crate::observer::Observer;
use crate::path::broker::refills::Refills;
use crate::path::dead_letter::DeadLetters;
use crate::path::dead_letter::tries::Tries;
use crate::path::delivery::consent::{Consent, Consents};
use crate::path::delivery::courier::Courier;
use crate::path::delivery::subscriber_probe::SubscriberProbes;
use crate::path::source::legacy::Repeats;
use crate::path::source::refused_log::RefusedLog;
use crate::routes::Table;

/// Bytes of events that waiting deliveries may hold in memory; beyond that they are read again when their turn comes.
const HELD_BYTES_MAX: usize = 16 << 20;

/// The table in force, and the consumers behind it.
#[derive(Debug)]
pub(crate) struct InForce {
    pub(crate) table: Arc<Table>,
    /// In the order of the table's consumers.
    pub(crate) consumers: Vec<Arc<Consumer>>,
    /// Whether any table came into force yet. Before that nothing can be published.
    pub(crate) ready: bool,
}

/// All consumers that have a name's place, routed or not.
#[derive(Debug, Default)]
pub(crate) struct Consumers {
    /// In order, so that whoever walks through all of them does so the same way each time. So is the other map, which
    /// lets go of them last: their connections are closed then, and in which order can be seen from outside.
    pub(crate) by_id: BTreeMap<ConsumerId, Arc<Consumer>>,
    pub(crate) by_key: BTreeMap<Arc<str>, Arc<Consumer>>,
    pub(crate) last: ConsumerId,
    /// Until the first table: from where on a consumer that nobody remembers takes part, if the journal lost records.
    pub(crate) unknown_from: Option<Offset>,
    /// Records that the journal lost, so far.
    pub(crate) lost_records: u64,
    /// Where in the journal they were, the first of them.
    pub(crate) losses: Vec<Range<Offset>>,
    /// A repair accepted that everything below is gone from the log; 0 if none did.
    pub(crate) log_lost_below: Offset,
}

impl Consumers {
    /// Empty for one that is gone.
    pub(crate) fn key_of(&self, id: ConsumerId) -> &str {
        self.by_id.get(&id).map_or("", |consumer| &consumer.key)
    }
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    pub(crate) chance: Chance,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) courier: Courier,
    /// Deliveries under way.
    pub(crate) lanes: Tasks,
    /// Questions to destinations whether they want any, and whether they are there.
    pub(crate) asking: Tasks,
    /// Where questions are worked on.
    pub(crate) aside: Arc<Aside>,
    pub(crate) hints: Arc<Hints>,
    pub(crate) consents: Consents,
    pub(crate) subscriber_probes: SubscriberProbes,
    pub(crate) in_force: ArcSwap<InForce>,
    /// What the newest table was compiled from, for those who ask what a change would do.
    pub(crate) resources: ArcSwap<Resources>,
    pub(crate) consumers: RwLock<Consumers>,
    pub(crate) dead: Mutex<DeadLetters>,
    /// Every event below was matched.
    pub(crate) scanned: AtomicU64,
    lines: Mutex<Vec<JournalRecord>>,
    dirty: Mutex<Vec<Arc<Consumer>>>,
    /// Somebody waits for the lines to be safe.
    pub(crate) flush: Notify,
    /// Counts flushes that began, and those that are safe.
    pub(crate) begun: AtomicU64,
    pub(crate) safe: watch::Sender<u64>,
    /// Consumers that fell behind and have room again.
    pub(crate) refills: Refills,
    pub(crate) retries: Arc<Timer>,
    /// Nothing new is sent: the mesh is closing.
    pub(crate) closing: AtomicBool,
    /// Nothing new is sent: what was done cannot be remembered.
    pub(crate) journal_stalled: AtomicBool,
    /// What the journal said when it last took nothing.
    pub(crate) stall_reason: Mutex<String>,
    /// What the last readings saw. Locked before consumers, and by readings only.
    pub(crate) samples: Mutex<LogSamples>,
    held_bytes: AtomicUsize,
    pub(crate) metrics: Metrics,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    /// Grows when something changed that controllers show.
    pub(crate) changes: watch::Sender<u64>,
    /// Locked last, and only for heartbeats.
    pub(crate) heartbeats: Heartbeats,
    pub(crate) faults: InjectedFaults,
    /// Locked before consumers by whoever takes letters, and not while one is locked.
    pub(crate) bulks: Bulks,
    /// Locked before consumers and letters.
    /// What of data is hidden from everybody below administrator.
    pub(crate) mask: Arc<Mask>,
    pub(crate) marks: MarkedGroups,
    /// Locked last.
    pub(crate) tries: Tries,
    /// Locked by whoever is refused, and alone.
    pub(crate) refused: RefusedLog,
    /// Locked last; while it is, events may be handed to the log.
    pub(crate) repeats: Repeats,
}

/// What a [`Shared`] is made from.
pub(crate) struct Parts {
    pub(crate) clock: Clock,
    pub(crate) chance: Chance,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) courier: Courier,
    pub(crate) lanes: Tasks,
    pub(crate) asking: Tasks,
    pub(crate) consumers: Consumers,
    pub(crate) dead: DeadLetters,
    pub(crate) scanned: Offset,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    pub(crate) heartbeat_sink: Option<String>,
    pub(crate) bulks: Bulks,
    pub(crate) marks: MarkedGroups,
    pub(crate) mask: Arc<Mask>,
}

impl Shared {
    pub(crate) fn new(parts: Parts) -> Self {
        let (clock, sink) = (parts.clock.clone(), parts.heartbeat_sink);
        Self {
            heartbeats: Heartbeats::new(clock, &parts.chance, sink),
            faults: InjectedFaults::default(),
            aside: Aside::new(&parts.clock, &parts.asking),
            hints: Arc::new(Hints::of(&*parts.log)),
            bulks: parts.bulks,
            mask: parts.mask,
            marks: parts.marks,
            tries: Tries::default(),
            refused: RefusedLog::default(),
            repeats: Repeats::new(parts.clock.monotonic(), parts.log.bounds().end),
            clock: parts.clock,
            chance: parts.chance,
            log: parts.log,
            courier: parts.courier,
            lanes: parts.lanes,
            asking: parts.asking,
            consents: Consents::default(),
            subscriber_probes: SubscriberProbes::default(),
            in_force: ArcSwap::from_pointee(InForce {
                table: Arc::new(Table::empty()),
                consumers: Vec::new(),
                ready: false,
            }),
            resources: ArcSwap::default(),
            consumers: RwLock::new(parts.consumers),
            dead: Mutex::new(parts.dead),
            scanned: AtomicU64::new(parts.scanned),
            lines: Mutex::default(),
            dirty: Mutex::default(),
            flush: Notify::new(),
            begun: AtomicU64::new(0),
            safe: watch::Sender::new(0),
            refills: Refills::default(),
            retries: Arc::default(),
            closing: AtomicBool::new(false),
            journal_stalled: AtomicBool::new(false),
            stall_reason: Mutex::default(),
            samples: Mutex::default(),
            held_bytes: AtomicUsize::new(0),
            metrics: Metrics::default(),
            observer: parts.observer,
            changes: watch::Sender::new(1),
        }
    }

    /// Those of users, without those that hear heartbeats.
    pub(crate) fn user_consumers(&self) -> Vec<Arc<Consumer>> {
        let all = self.consumers.read();
        let of_users = all.by_id.values().filter(|one| !one.hears_heartbeats());
        of_users.cloned().collect()
    }

    /// All consumers, in order. The list is not held: whoever gives up a place has the consumer and wants the list.
    pub(crate) fn all_consumers(&self) -> Vec<Arc<Consumer>> {
        self.consumers.read().by_id.values().cloned().collect()
    }

    /// Some dead letters left: consumers that waited for room go on if they may have more.
    pub(crate) fn look_for_dead_letter_room(self: &Arc<Self>) {
        for consumer in self.all_consumers() {
            consumer.look_for_room(self);
        }
    }

    /// A destination consented, or does no longer: whoever waits for it looks again.
    pub(crate) fn consent_changed(self: &Arc<Self>, consent: &Arc<Consent>) {
        for consumer in self.all_consumers() {
            let mut state = consumer.lock();
            let needs = state.routing.plan.consent.as_ref();
            if needs.is_some_and(|needed| Arc::ptr_eq(needed, consent)) {
                consumer.wake(self, &mut state);
            }
        }
        self.notify_changed();
    }

    pub(crate) fn scanned(&self) -> Offset {
        self.scanned.load(Ordering::Acquire)
    }

    /// Writes a line. Whoever changes a consumer does so while holding its lock: a checkpoint that is made later includes it.
    pub(crate) fn note(&self, line: JournalRecord) {
        self.lines.lock().push(line);
    }

    /// The consumer's place in the next checkpoint.
    pub(crate) fn mark_dirty(&self, consumer: &Arc<Consumer>) {
        self.dirty.lock().push(Arc::clone(consumer));
    }

    pub(crate) fn take_dirty(&self) -> Vec<Arc<Consumer>> {
        std::mem::take(&mut *self.dirty.lock())
    }

    pub(crate) fn take_lines(&self) -> Vec<JournalRecord> {
        std::mem::take(&mut *self.lines.lock())
    }

    /// Puts lines back that could not be made safe, before those that came since.
    pub(crate) fn return_lines(&self, mut lines: Vec<JournalRecord>) {
        let mut waiting = self.lines.lock();
        lines.append(&mut waiting);
        *waiting = lines;
    }

    /// Whether there is something to make safe, be it only to learn that the journal takes lines again.
    pub(crate) fn has_news(&self) -> bool {
        self.journal_stalled.load(Ordering::Acquire)
            || !self.lines.lock().is_empty()
            || !self.dirty.lock().is_empty()
    }

    /// Completes once everything noted so far is safe.
    pub(crate) async fn settled(&self) {
        // The flush that begins next takes it; the one under way may not.
        let wanted = self.begun.load(Ordering::Acquire) + 1;
        let mut safe = self.safe.subscribe();
        self.flush.notify_one();
        // The sender lives as long as `self`.
        drop(safe.wait_for(|safe| *safe >= wanted).await);
    }

    /// Whether deliveries may begin.
    pub(crate) fn sends(&self) -> bool {
        !self.closing.load(Ordering::Acquire) && !self.journal_stalled.load(Ordering::Acquire)
    }

    /// Whether those of a consumer may, too.
    pub(crate) fn sends_for(&self, consumer: &str) -> bool {
        self.sends() && !self.faults.holds(consumer)
    }

    /// Whether a waiting delivery may keep its event's bytes; `give_back` undoes it.
    pub(crate) fn hold(&self, bytes: usize) -> bool {
        let before = self.held_bytes.fetch_add(bytes, Ordering::Relaxed);
        if before + bytes <= HELD_BYTES_MAX {
            return true;
        }
        self.give_back(bytes);
        false
    }

    pub(crate) fn give_back(&self, bytes: usize) {
        self.held_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn notify_changed(&self) {
        self.changes.send_modify(|revision| *revision += 1);
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // The timer's task holds no mesh while it waits.
        self.retries.wake();
    }
}
