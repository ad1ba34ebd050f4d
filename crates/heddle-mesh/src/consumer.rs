//! One consumer at work: what waits, what is in flight, what is retried, its window and its cursor.
//!
//! ```text
//!   scanner ──offer──> waiting ──take──> in flight ──settle──> delivered
//!   log ─────refill──>    │       ^          │
//!                         │      due         ├──> on record ──(timer)──> due
//!                    full: catch-up          └──> dead letter
//! ```
//! The parts of its [`State`] are a file each: what it is (`routing`), how far it has read (`cursor`), what waits for a first
//! attempt (`waiting`) and in which order (`keys`), what is tried again (`retries`), what may be under way (`window`) and who
//! attempts it (`lanes`). Invariant: an event of the consumer's own is in exactly one of waiting, in flight, on record, or not
//! yet read; one on record may be in flight again.
//!
//! A consumer that had no work for a while has no task and next to no memory. How an attempt is made is left to
//! [`crate::path::delivery::attempt`], where dead letters rest to [`crate::path::dead_letter`]; neither knows of consumers.
//!
//! Backpressure: what does not fit into memory is read from the log later (`reading`), an event that this mesh has no room for
//! waits (`backpressure`), a destination that allows so many a minute, or is to be sent no more, is throttled (`throttle`), and a failing one is tried by
//! one lane (`breaker`).

mod backpressure;
mod bulk;
mod cursor;
mod dead_letters;
mod expiry;
mod give_up;
mod keys;
mod lanes;
mod last_attempts;
mod lost;
mod pause;
mod reading;
mod reconcile;
mod retries;
mod routing;
mod settle;
mod throttle;
pub(crate) mod timer;
mod unreadable;
mod waiting;
mod window;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::heartbeat;
use crate::journal::positions::Counters;
use crate::journal::record::ConsumerId;
use crate::journal::{ConsumerCheckpoint, JournalRecord};
use crate::log::{Offset, Record};
use crate::metrics::Answers;
use crate::path::delivery::job::{Job, JobKind};
use crate::path::delivery::plan::DeliveryPlan;
use crate::shared::Shared;
use cursor::Cursor;
use expiry::QuotaState;
use lanes::Lanes;
use last_attempts::LastAttempts;
use retries::Retries;
use routing::Routing;
use timer::{TimerEntry, TimerTask};
use waiting::WaitingJobs;
use window::SendWindow;

pub(crate) use bulk::BULK_TICK;
pub(crate) use cursor::ReadMode;
pub(crate) use give_up::{UnfinishedEvents, Way};
pub(crate) use routing::{CompiledRevision, decided_ranges, is_own, revision_at};

/// Events that wait in memory for one consumer; more stay in the log until there is room.
const QUEUE_MAX: usize = 4096;

#[derive(Debug)]
pub(crate) struct Consumer {
    pub(crate) id: ConsumerId,
    pub(crate) key: Arc<str>,
    state: Mutex<State>,
    /// Wakes lanes that are idle.
    lane_wakeup: Notify,
    /// Notified when an attempt is over.
    attempt_finished: Notify,
    /// The oldest event that was not done when somebody last asked, and when it was accepted.
    pub(crate) oldest_seen: Mutex<Option<(Offset, Timestamp)>>,
}

/// All that changes, under one lock.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) routing: Routing,
    pub(crate) cursor: Cursor,
    waiting: WaitingJobs,
    pub(crate) retries: Retries,
    pub(crate) window: SendWindow,
    lanes: Lanes,
    quota: QuotaState,
    pub(crate) tally: Counters,
    /// Since the process began.
    pub(crate) answers: Answers,
    pub(crate) last_attempts: LastAttempts,
    /// It takes part in the next checkpoint.
    dirty: bool,
    /// Its line in the journal was the last about it.
    pub(crate) forgotten: bool,
}

impl Consumer {
    pub(crate) fn new(id: ConsumerId, key: Arc<str>) -> Self {
        Self {
            id,
            key,
            state: Mutex::default(),
            lane_wakeup: Notify::new(),
            attempt_finished: Notify::new(),
            oldest_seen: Mutex::default(),
        }
    }

    /// Whether it is one of heddle's own.
    pub(crate) fn hears_heartbeats(&self) -> bool {
        heartbeat::is_consumer(&self.key)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Takes part in the next checkpoint.
    pub(crate) fn mark_dirty(self: &Arc<Self>, shared: &Shared, state: &mut State) {
        if !std::mem::replace(&mut state.dirty, true) {
            shared.mark_dirty(self);
        }
    }

    /// A lane asks for work.
    pub(crate) fn take(self: &Arc<Self>, shared: &Arc<Shared>) -> Option<(Job, Arc<DeliveryPlan>)> {
        let mut state = self.lock();
        let job = if shared.sends_for(&self.key)
            && state.has_work()
            && self.passes_throttle(shared, &mut state)
        {
            let next = state.next_job(shared);
            next.unwrap_or_else(|unavailable| {
                self.postpone_all(shared, &mut state, &unavailable);
                None
            })
        } else {
            None
        };
        let mut job = job?;
        job.backpressured = job.attempts > 0 && state.retries.backpressure.contains(job.offset);
        state.window.begin(&job);
        self.turn_taken(shared, &mut state, &job);
        self.ask(shared, &mut state);
        Some((job, Arc::clone(&state.routing.plan)))
    }

    /// A retry's time has come.
    pub(crate) fn due(self: &Arc<Self>, shared: &Arc<Shared>, what: TimerTask) {
        let mut state = self.lock();
        let job = match what {
            TimerTask::Throttle => return self.throttle_elapsed(shared, &mut state),
            TimerTask::Resume => return self.look_at_pause(shared, &mut state),
            TimerTask::Event(offset) if state.resume(offset) => {
                return self.wake(shared, &mut state);
            }
            TimerTask::Event(offset) => state.retries.job(offset),
            TimerTask::Sink(name, attempts) => {
                let offset = shared.dead.lock().sink_waiting(name);
                offset.map(|offset| Job::new(JobKind::Sink(name), offset, attempts))
            }
        };
        let Some(job) = job else { return };
        state.retries.due.push_back(job);
        self.wake(shared, &mut state);
    }

    /// Schedules the next look at something. By a duration: what the wall clock does meanwhile makes no difference.
    pub(crate) fn schedule(&self, shared: &Shared, what: TimerTask, wait: Duration) {
        let due = TimerEntry {
            at: shared.clock.monotonic().saturating_add(wait),
            consumer: self.id,
            what,
        };
        shared.retries.add(due);
    }

    /// How far the consumer is; it takes part in no later checkpoint until it changes again.
    ///
    /// Of one that was forgotten there is nothing to say.
    pub(crate) fn checkpoint(&self, scanned: Offset) -> Option<ConsumerCheckpoint> {
        let mut state = self.lock();
        state.dirty = false;
        (!state.forgotten).then(|| ConsumerCheckpoint {
            consumer: self.id,
            matched: state.tally.matched,
            floor: state.floor(scanned),
            counted_to: state.cursor.counted_to.unwrap_or(0),
        })
    }

    /// The last checkpoint was lost.
    pub(crate) fn redo_checkpoint(self: &Arc<Self>, shared: &Shared) {
        let mut state = self.lock();
        self.mark_dirty(shared, &mut state);
    }
}

impl State {
    fn takeable(&self) -> usize {
        let fresh = if self.retries.is_full() {
            0
        } else {
            self.waiting.queue.len()
        };
        fresh + self.retries.due.len()
    }

    /// Whether a lane would find something to do.
    fn has_work(&self) -> bool {
        self.takeable() > 0 && self.may_send() && self.window.has_room(self.routing.plan.window)
    }

    /// How many attempts may be under way.
    fn allowed(&self) -> u32 {
        self.window.breaker.allowed(self.routing.plan.window)
    }

    pub(crate) fn may_send(&self) -> bool {
        self.routing.may_send() && self.window.is_open()
    }

    fn enqueue(&mut self, shared: &Shared, record: &Record) {
        let bytes = record.payload.len();
        self.waiting.queue.push_back(Job {
            record: shared.hold(bytes).then(|| record.clone()),
            ..Job::new(JobKind::Event, record.offset, 0)
        });
    }

    /// Puts an event back whose attempt was neither made nor refused. Under the same lock in which it landed, for a checkpoint in
    /// between would count it as ended.
    pub(crate) fn return_job(&mut self, job: Job) {
        self.waiting.keys.put_back(&job);
        if job.attempts == 0 && job.kind == JobKind::Event {
            self.waiting.requeue(job);
        } else {
            self.retries.due.push_front(job);
        }
    }

    /// Forgets all work; gives the dead letters that were on their way again.
    pub(crate) fn clear(&mut self, shared: &Shared) -> Vec<u64> {
        self.waiting.clear(shared);
        self.cursor.clear();
        self.routing.revisions.clear();
        self.routing.unrouted = None;
        self.quota = QuotaState::default();
        self.retries.clear()
    }

    /// Everything below has ended or is on record.
    pub(crate) fn floor(&self, scanned: Offset) -> Offset {
        let waiting = self.waiting.untried().map(|job| job.offset).min();
        let flying = self.window.events();
        let flying = flying
            .filter(|(offset, attempts)| *attempts == 0 && !self.retries.contains(*offset))
            .map(|(offset, _)| offset)
            .min();
        let unread = self.cursor.unread_from();
        let lowest = [waiting, flying, unread, self.cursor.lost.first()]
            .into_iter()
            .flatten()
            .min();
        lowest.unwrap_or(scanned)
    }

    /// The oldest event that it keeps in the log, or the place where it is.
    pub(crate) fn oldest(&self, scanned: Offset) -> Offset {
        let floor = self.floor(scanned);
        let on_record = self.retries.in_log().next();
        on_record.map_or(floor, |offset| floor.min(offset))
    }

    /// The same without what was sent again, however old that is.
    pub(crate) fn oldest_own(&self, scanned: Offset) -> Offset {
        let floor = self.floor(scanned);
        let mut own = self.retries.in_log();
        let on_record = own.find(|offset| !self.retries.is_resent(*offset));
        on_record.map_or(floor, |offset| floor.min(offset))
    }

    /// Counts an event that the consumer reads before anybody has matched it.
    fn count(&mut self, offset: Offset) {
        if self.cursor.is_uncounted(offset) {
            self.tally.matched += 1;
            self.cursor.counted_to = Some(offset + 1);
        }
    }

    /// Waiting, under way or on record, without what is still unread.
    pub(crate) fn at_hand(&self) -> u64 {
        let flying = self.window.events();
        let flying = flying
            .filter(|(offset, _)| !self.retries.contains(*offset))
            .count();
        (self.waiting.untried().count() + flying + self.retries.on_record.len()) as u64
    }
}

/// Says what happened, while the consumer is locked.
pub(crate) fn note(shared: &Shared, _locked: &State, line: JournalRecord) {
    shared.note(line);
}
