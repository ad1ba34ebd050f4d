//! One consumer at work: its queue, what is in flight, what is retried, its window and its cursor.
//!
//! ```text
//!   scanner ──offer──> queue ──take──> in flight ──settle──> delivered
//!   log ─────refill──>   │               ^   │
//!                        │       retry_queue  └──> retrying ──(timer)──> retry_queue
//!                   too long: catch-up        └──> dead letter
//! ```
//! Invariant: an event of the consumer's own is in exactly one of queue, blocked, in flight, retrying, or not yet read.
//! A consumer that had no work for a while has no task and next to no memory. How an attempt is made is left to
//! [`crate::path::delivery::lane`].
//!
//! Backpressure: a queue that is full is read from the log later (`reading`), an event that this mesh has no room for waits
//! (`backpressure`), a destination that allows so many a minute is throttled (`throttle`), and a failing one is tried by one
//! lane (`breaker`).

mod backpressure;
mod draining;
mod job;
mod keys;
mod lost;
mod own;
mod quota;
mod reading;
mod reconcile;
mod throttle;
mod unreadable;

pub(crate) use draining::{Found, Way};

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::journal::positions::{Counters, Retry};
use crate::journal::record::ConsumerId;
use crate::journal::{ConsumerCheckpoint, JournalRecord};
use crate::log::{Offset, Record, Unavailable};
use crate::metrics::Answers;
use crate::path::delivery::breaker::Breaker;
use crate::path::delivery::lane;
use crate::path::delivery::plan::DeliveryPlan;
use crate::path::delivery::timer::{TimerEntry, TimerTask};
use crate::routes;
use crate::shared::Shared;
use backpressure::Backpressure;
use lost::Lost;
use quota::QuotaState;
use throttle::Throttle;
use unreadable::UnreadableJobs;

pub(crate) use job::{Job, JobKind};
pub(crate) use own::{Revision, is_own};

/// Events that wait in memory for one consumer; more stay in the log until there is room.
pub(crate) const QUEUE_MAX: usize = 4096;
/// Events on record with a failed attempt; beyond that nothing is tried for the first time until one has ended.
pub(crate) const RETRYING_MAX: usize = 2048;

/// Lanes of one consumer that may be idle, and for how long.
const IDLE_LANES_MAX: u32 = 8;
const LANE_IDLE_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadMode {
    /// The scanner hands over events as they come.
    Live,
    /// It reads the log itself, from here.
    CatchUp { next: Offset, asked: bool },
}

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

#[derive(Debug)]
pub(crate) struct State {
    /// What it is now; `None` while only its name's place is kept.
    pub(crate) spec: Option<Arc<routes::ConsumerSpec>>,
    pub(crate) plan: Arc<DeliveryPlan>,
    pub(crate) revisions: Vec<Revision>,
    pub(crate) unrouted: Option<(Offset, Timestamp)>,
    pub(crate) queue: VecDeque<Job>,
    pub(crate) retry_queue: VecDeque<Job>,
    /// Events that wait for an earlier one with the same key.
    blocked: HashMap<u64, VecDeque<Job>>,
    blocked_count: usize,
    keys_held: HashSet<u64>,
    pub(crate) in_flight: BTreeMap<(Offset, bool), u32>,
    pub(crate) retrying: BTreeMap<Offset, Retry>,
    pub(crate) reading: ReadMode,
    /// Ended before the restart, and to be passed over when they are read again.
    pub(crate) ended: BTreeSet<Offset>,
    /// While it catches up by itself: below this its events are counted.
    pub(crate) counted_to: Option<Offset>,
    pub(crate) tally: Counters,
    /// While it goes through events again whose outcome the journal lost: from where.
    pub(crate) replay_from: Option<Offset>,
    /// Since the process began.
    pub(crate) answers: Answers,
    /// Lanes at work, or about to be.
    lanes: u32,
    /// Lanes that are idle, and how many of them were woken and have not noticed yet.
    idle_lanes: u32,
    lanes_woken: u32,
    pub(crate) breaker: Breaker,
    pub(crate) held: Option<String>,
    /// Why it may have no more dead letters, and is sent nothing.
    pub(crate) dead_full: Option<String>,
    quota: QuotaState,
    backpressure: Backpressure,
    postponed: UnreadableJobs,
    lost: Lost,
    /// Events hold keys that nobody could read yet.
    keys_unknown: bool,
    throttle: Throttle,
    dirty: bool,
}

impl Consumer {
    pub(crate) fn new(id: ConsumerId, key: Arc<str>) -> Self {
        let state = State {
            spec: None,
            plan: Arc::new(DeliveryPlan::nowhere()),
            revisions: Vec::new(),
            unrouted: None,
            queue: VecDeque::new(),
            retry_queue: VecDeque::new(),
            blocked: HashMap::new(),
            blocked_count: 0,
            keys_held: HashSet::new(),
            in_flight: BTreeMap::new(),
            retrying: BTreeMap::new(),
            reading: ReadMode::Live,
            ended: BTreeSet::new(),
            counted_to: None,
            tally: Counters::default(),
            replay_from: None,
            answers: Answers::default(),
            lanes: 0,
            idle_lanes: 0,
            lanes_woken: 0,
            breaker: Breaker::default(),
            held: None,
            dead_full: None,
            quota: QuotaState::default(),
            backpressure: Backpressure::default(),
            postponed: UnreadableJobs::default(),
            lost: Lost::default(),
            keys_unknown: false,
            throttle: Throttle::default(),
            dirty: false,
        };
        Self {
            id,
            key,
            state: Mutex::new(state),
            lane_wakeup: Notify::new(),
            attempt_finished: Notify::new(),
            oldest_seen: Mutex::default(),
        }
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

    /// Starts as many lanes as there is work and permission for.
    pub(crate) fn wake(self: &Arc<Self>, shared: &Arc<Shared>, state: &mut State) {
        if !shared.sends() || !state.may_send() {
            return;
        }
        let in_flight = u32::try_from(state.in_flight.len()).unwrap_or(u32::MAX);
        let room = state.allowed().saturating_sub(in_flight);
        let room = room.min(state.lanes_throttled());
        let work = u32::try_from(state.takeable()).unwrap_or(u32::MAX);
        let starting = state.lanes.saturating_sub(in_flight);
        for _ in starting..room.min(work) {
            state.lanes += 1;
            if state.idle_lanes > 0 {
                state.idle_lanes -= 1;
                state.lanes_woken += 1;
                self.lane_wakeup.notify_one();
            } else {
                lane::start(Arc::clone(shared), Arc::clone(self));
            }
        }
    }

    /// A lane without work stays idle for a while, because starting one costs more than an event should. Gives whether it is
    /// to go on.
    pub(crate) async fn park(&self, shared: &Shared) -> bool {
        let mut wakeup = std::pin::pin!(self.lane_wakeup.notified());
        // Before looking: whoever rings after that is heard.
        wakeup.as_mut().enable();
        {
            let mut state = self.lock();
            // Work that came since this lane last looked counts on it.
            if shared.sends() && state.has_work() {
                return true;
            }
            state.lanes -= 1;
            if state.idle_lanes >= IDLE_LANES_MAX || !shared.sends() {
                return false;
            }
            state.idle_lanes += 1;
        }
        loop {
            let late = shared
                .clock
                .timeout(LANE_IDLE_TIMEOUT, wakeup.as_mut())
                .await
                .is_err();
            let mut state = self.lock();
            if state.lanes_woken > 0 {
                state.lanes_woken -= 1;
                return true;
            }
            if late || !shared.sends() {
                state.idle_lanes -= 1;
                return false;
            }
            // Somebody else answered the call. Still under the lock: the notification is kept for one that does not listen
            // yet, and two of them may be called at once.
            wakeup.set(self.lane_wakeup.notified());
            wakeup.as_mut().enable();
            drop(state);
        }
    }

    /// Stops idle lanes, when the mesh closes.
    pub(crate) fn stop_idle_lanes(&self) {
        drop(self.lock());
        self.lane_wakeup.notify_waiters();
    }

    /// A lane asks for work.
    pub(crate) fn take(self: &Arc<Self>, shared: &Arc<Shared>) -> Option<(Job, Arc<DeliveryPlan>)> {
        let mut state = self.lock();
        let job = if shared.sends() && state.has_work() && self.passes_throttle(shared, &mut state)
        {
            let next = state.next_job(shared);
            next.unwrap_or_else(|unavailable| {
                self.postpone_all(shared, &mut state, &unavailable);
                None
            })
        } else {
            None
        };
        let job = job?;
        let key = (job.offset, matches!(job.kind, JobKind::Sink(_)));
        state.in_flight.insert(key, job.attempts);
        self.ask(shared, &mut state);
        Some((job, Arc::clone(&state.plan)))
    }

    /// A retry's time has come.
    pub(crate) fn due(self: &Arc<Self>, shared: &Arc<Shared>, what: TimerTask) {
        let mut state = self.lock();
        let job = match what {
            TimerTask::Throttle => return self.throttle_elapsed(shared, &mut state),
            TimerTask::Event(offset) if state.resume(offset) => {
                return self.wake(shared, &mut state);
            }
            TimerTask::Event(offset) => {
                let Some(retry) = state.retrying.get(&offset) else {
                    return;
                };
                Job {
                    offset,
                    attempts: retry.attempts,
                    kind: retry.redriven.map_or(JobKind::Event, JobKind::Redriven),
                    record: None,
                    lane_key: None,
                }
            }
            TimerTask::Sink(name, attempts) => {
                let Some(offset) = shared.dead.lock().sink_waiting(name) else {
                    return;
                };
                Job {
                    offset,
                    attempts,
                    kind: JobKind::Sink(name),
                    record: None,
                    lane_key: None,
                }
            }
        };
        state.retry_queue.push_back(job);
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
    pub(crate) fn checkpoint(&self, scanned: Offset) -> ConsumerCheckpoint {
        let mut state = self.lock();
        state.dirty = false;
        ConsumerCheckpoint {
            consumer: self.id,
            matched: state.tally.matched,
            floor: state.floor(scanned),
            counted_to: state.counted_to.unwrap_or(0),
        }
    }

    /// The last checkpoint was lost.
    pub(crate) fn redo_checkpoint(self: &Arc<Self>, shared: &Shared) {
        let mut state = self.lock();
        self.mark_dirty(shared, &mut state);
    }
}

impl State {
    /// Waiting for a first attempt.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len() + self.blocked_count + self.postponed.len()
    }

    fn takeable(&self) -> usize {
        let fresh = if self.retrying.len() < RETRYING_MAX {
            self.queue.len()
        } else {
            0
        };
        fresh + self.retry_queue.len()
    }

    /// Whether a lane would find something to do.
    fn has_work(&self) -> bool {
        self.takeable() > 0 && self.may_send() && self.in_flight.len() < self.allowed() as usize
    }

    /// How many attempts may be under way.
    fn allowed(&self) -> u32 {
        self.breaker.allowed(self.plan.window)
    }

    pub(crate) fn may_send(&self) -> bool {
        self.spec.as_ref().is_some_and(|spec| !spec.settings.paused)
            && self.held.is_none()
            && self.dead_full.is_none()
            && self.plan.has_target()
            && self.plan.has_consent()
            && self.throttle != Throttle::Scheduled
    }

    fn enqueue(&mut self, shared: &Shared, record: &Record) {
        let bytes = record.payload.len();
        self.queue.push_back(Job {
            offset: record.offset,
            attempts: 0,
            kind: JobKind::Event,
            record: shared.hold(bytes).then(|| record.clone()),
            lane_key: None,
        });
    }

    /// Puts an event back that was taken and not tried, at its place: another of its key may have been let go before it and
    /// not have been taken yet.
    fn requeue(&mut self, job: Job) {
        let place = self
            .queue
            .partition_point(|waiting| waiting.offset < job.offset);
        self.queue.insert(place, job);
    }

    fn next_job(&mut self, shared: &Shared) -> Result<Option<Job>, Unavailable> {
        if self.plan.ordered && self.keys_unknown {
            self.work_out_keys(shared)?;
        }
        loop {
            let fresh_allowed = self.retrying.len() < RETRYING_MAX;
            let next = match self.retry_queue.pop_front() {
                Some(job) => Some(job),
                None if fresh_allowed => self.queue.pop_front(),
                None => None,
            };
            let Some(mut job) = next else { return Ok(None) };
            if !self.plan.ordered || matches!(job.kind, JobKind::Sink(_)) {
                return Ok(Some(job));
            }
            let key = match job.lane_key {
                Some(key) => key,
                None => match keys::lane_key(shared, &job) {
                    Ok(key) => key,
                    Err(unavailable) => {
                        self.return_job(job);
                        return Err(unavailable);
                    }
                },
            };
            // An event that was tried before holds its key until it has ended.
            let holds = job.attempts > 0;
            job.lane_key = Some(key);
            if !holds && !self.keys_held.insert(key) {
                // Most come in order; one that was let go and overtaken goes back to its place.
                let queue = self.blocked.entry(key).or_default();
                let place = queue.partition_point(|waiting| waiting.offset < job.offset);
                queue.insert(place, job);
                self.blocked_count += 1;
                continue;
            }
            self.keys_held.insert(key);
            return Ok(Some(job));
        }
    }

    /// An attempt is over. The key it held stays held until the event has ended.
    pub(crate) fn attempt_finished(&mut self, job: &Job) {
        let key = (job.offset, matches!(job.kind, JobKind::Sink(_)));
        self.in_flight.remove(&key);
    }

    /// Puts an event back whose attempt was neither made nor refused. Under the same lock in which it landed, for a checkpoint in
    /// between would count it as ended.
    pub(crate) fn return_job(&mut self, job: Job) {
        if let Some(key) = job.lane_key.filter(|_| job.attempts == 0) {
            // It is the first to ask for its key again; those that wait for it go on waiting.
            self.keys_held.remove(&key);
        }
        if job.attempts == 0 && job.kind == JobKind::Event {
            self.requeue(job);
        } else {
            self.retry_queue.push_front(job);
        }
    }

    /// An event that was on record before the restart may end before it is read again; then it is not to be read as new.
    pub(crate) fn pass_over(&mut self, offset: Offset) {
        if matches!(self.reading, ReadMode::CatchUp { next, .. } if offset >= next) {
            self.ended.insert(offset);
        }
    }

    /// Forgets all work; gives the dead letters that were on their way again.
    pub(crate) fn clear(&mut self, shared: &Shared) -> Vec<u64> {
        let waiting = self.queue.iter().chain(self.blocked.values().flatten());
        for record in waiting.filter_map(|job| job.record.as_ref()) {
            shared.give_back(record.payload.len());
        }
        let redriven = self
            .retrying
            .values()
            .filter_map(|retry| retry.redriven)
            .collect();
        self.queue.clear();
        self.retry_queue.clear();
        self.blocked.clear();
        self.blocked_count = 0;
        self.keys_held.clear();
        self.retrying.clear();
        self.ended.clear();
        self.revisions.clear();
        self.reading = ReadMode::Live;
        self.counted_to = None;
        self.unrouted = None;
        self.quota = QuotaState::default();
        self.backpressure = Backpressure::default();
        self.postponed = UnreadableJobs::default();
        self.lost = Lost::default();
        redriven
    }

    /// What waits for its first attempt. Dead letters on their way again are not among them, wherever they wait.
    fn not_on_record(&self) -> impl Iterator<Item = &Job> {
        let waiting = self.queue.iter().chain(self.blocked.values().flatten());
        let waiting = waiting.chain(self.postponed.jobs());
        waiting.filter(|job| job.kind == JobKind::Event && job.attempts == 0)
    }

    /// Everything below has ended or is on record.
    pub(crate) fn floor(&self, scanned: Offset) -> Offset {
        let waiting = self.not_on_record().map(|job| job.offset).min();
        let flying = self.in_flight.iter();
        let flying = flying
            .filter(|((offset, sink), attempts)| {
                !sink && **attempts == 0 && !self.retrying.contains_key(offset)
            })
            .map(|((offset, _), _)| *offset)
            .min();
        let unread = match self.reading {
            ReadMode::Live => None,
            ReadMode::CatchUp { next, .. } => Some(next),
        };
        let lowest = [waiting, flying, unread, self.lost.first()]
            .into_iter()
            .flatten()
            .min();
        lowest.unwrap_or(scanned)
    }

    /// The oldest event that it keeps in the log, or the place where it is.
    pub(crate) fn oldest(&self, scanned: Offset) -> Offset {
        let mut on_record = self.retrying.iter();
        let on_record = on_record.find(|(_, retry)| retry.redriven.is_none());
        let floor = self.floor(scanned);
        on_record.map_or(floor, |(offset, _)| floor.min(*offset))
    }

    /// Counts an event that the consumer reads before anybody has matched it.
    fn count(&mut self, offset: Offset) {
        if self.counted_to.is_some_and(|counted| offset >= counted) {
            self.tally.matched += 1;
            self.counted_to = Some(offset + 1);
        }
    }

    /// Waiting, under way or on record, without what is still unread.
    pub(crate) fn at_hand(&self) -> u64 {
        let flying = self.in_flight.keys();
        let flying = flying
            .filter(|(offset, sink)| !sink && !self.retrying.contains_key(offset))
            .count();
        (self.not_on_record().count() + flying + self.retrying.len()) as u64
    }
}

/// Says what happened, while the consumer is locked.
pub(crate) fn note(shared: &Shared, _locked: &State, line: JournalRecord) {
    shared.note(line);
}
