//! One consumer at work: what waits, what is under way, what is tried again, and how much of each.
//!
//! ```text
//!   scanner ──offer──> fresh ──take──> in flight ──settle──> delivered
//!   log ─────refill──>   │               ^   │
//!                        │             again  └──> retrying ──(timer)──> again
//!                   too long: behind          └──> dead letter
//! ```
//! Invariant: an event of the consumer's own is in exactly one of fresh, blocked, in flight, retrying, or not yet read.
//! A consumer that had no work for a while has no task and next to no memory. How an attempt is made is left to [`super::lane`].

mod draining;
mod job;
mod keys;
mod lost;
mod overflow;
mod own;
mod postponed;
mod reading;
mod reconcile;
mod starved;
mod turn;

pub(crate) use draining::{Found, Way};

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use super::breaker::Breaker;
use super::plan::Plan;
use super::timer::{Due, What};
use crate::journal::line::ConsumerId;
use crate::journal::positions::{Retry, Tally};
use crate::journal::{Line, Marked};
use crate::log::{Offset, Record, Unavailable};
use crate::metrics::Answers;
use crate::path::delivery::lane;
use crate::routes;
use crate::shared::Shared;
use lost::Lost;
use overflow::Overflow;
use postponed::Postponed;
use starved::Starved;
use turn::Turn;

pub(crate) use job::{Job, JobKind};
pub(crate) use own::{Revision, is_own};

/// Events that wait in memory for one consumer; more stay in the log until there is room.
pub(crate) const QUEUE_MAX: usize = 4096;
/// Events on record with a failed attempt; beyond that nothing is tried for the first time until one has ended.
pub(crate) const RETRYING_MAX: usize = 2048;

/// Lanes of one consumer that may rest, and for how long.
const RESTING_MAX: u32 = 8;
const RESTING_TIME: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// The scanner hands over events as they come.
    Live,
    /// It reads the log itself, from here.
    Behind { next: Offset, asked: bool },
}

#[derive(Debug)]
pub(crate) struct Consumer {
    pub(crate) id: ConsumerId,
    pub(crate) key: Arc<str>,
    state: Mutex<State>,
    /// Calls lanes that rest.
    bell: Notify,
    /// Rings when an attempt is over.
    landed: Notify,
    /// The oldest event that was not done when somebody last asked, and when it was accepted.
    pub(crate) oldest_seen: Mutex<Option<(Offset, Timestamp)>>,
}

#[derive(Debug)]
pub(crate) struct State {
    /// What it is now; `None` while only its name's place is kept.
    pub(crate) spec: Option<Arc<routes::Consumer>>,
    pub(crate) plan: Arc<Plan>,
    pub(crate) revisions: Vec<Revision>,
    pub(crate) unrouted: Option<(Offset, Timestamp)>,
    pub(crate) fresh: VecDeque<Job>,
    pub(crate) again: VecDeque<Job>,
    /// Events that wait for an earlier one with the same key.
    blocked: HashMap<u64, VecDeque<Job>>,
    blocked_count: usize,
    busy: HashSet<u64>,
    pub(crate) in_flight: BTreeMap<(Offset, bool), u32>,
    pub(crate) retrying: BTreeMap<Offset, Retry>,
    pub(crate) reading: Reading,
    /// Ended before the restart, and to be passed over when they are read again.
    pub(crate) ended: BTreeSet<Offset>,
    /// While it catches up by itself: below this its events are counted.
    pub(crate) counted_to: Option<Offset>,
    pub(crate) tally: Tally,
    /// While it goes through events again whose outcome the journal lost: from where.
    pub(crate) unsure_from: Option<Offset>,
    /// Since the process began.
    pub(crate) answers: Answers,
    /// Lanes at work, or about to be.
    lanes: u32,
    /// Lanes that rest until the bell rings, and how many of them were called.
    resting: u32,
    called: u32,
    pub(crate) breaker: Breaker,
    pub(crate) held: Option<String>,
    /// Why it may have no more dead letters, and is sent nothing.
    pub(crate) dead_full: Option<String>,
    overflow: Overflow,
    starved: Starved,
    postponed: Postponed,
    lost: Lost,
    /// Events hold keys that nobody could read yet.
    keys_unknown: bool,
    turn: Turn,
    dirty: bool,
}

impl Consumer {
    pub(crate) fn new(id: ConsumerId, key: Arc<str>) -> Self {
        let state = State {
            spec: None,
            plan: Arc::new(Plan::nowhere()),
            revisions: Vec::new(),
            unrouted: None,
            fresh: VecDeque::new(),
            again: VecDeque::new(),
            blocked: HashMap::new(),
            blocked_count: 0,
            busy: HashSet::new(),
            in_flight: BTreeMap::new(),
            retrying: BTreeMap::new(),
            reading: Reading::Live,
            ended: BTreeSet::new(),
            counted_to: None,
            tally: Tally::default(),
            unsure_from: None,
            answers: Answers::default(),
            lanes: 0,
            resting: 0,
            called: 0,
            breaker: Breaker::default(),
            held: None,
            dead_full: None,
            overflow: Overflow::default(),
            starved: Starved::default(),
            postponed: Postponed::default(),
            lost: Lost::default(),
            keys_unknown: false,
            turn: Turn::default(),
            dirty: false,
        };
        Self {
            id,
            key,
            state: Mutex::new(state),
            bell: Notify::new(),
            landed: Notify::new(),
            oldest_seen: Mutex::default(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Takes part in the next mark.
    pub(crate) fn touch(self: &Arc<Self>, shared: &Shared, state: &mut State) {
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
        let room = room.min(state.lanes_per_turn());
        let work = u32::try_from(state.takeable()).unwrap_or(u32::MAX);
        let starting = state.lanes.saturating_sub(in_flight);
        for _ in starting..room.min(work) {
            state.lanes += 1;
            if state.resting > 0 {
                state.resting -= 1;
                state.called += 1;
                self.bell.notify_one();
            } else {
                lane::start(Arc::clone(shared), Arc::clone(self));
            }
        }
    }

    /// A lane without work rests for a while, because starting one costs more than an event should. Gives whether it is
    /// to go on.
    pub(crate) async fn rest(&self, shared: &Shared) -> bool {
        let mut bell = std::pin::pin!(self.bell.notified());
        // Before looking: whoever rings after that is heard.
        bell.as_mut().enable();
        {
            let mut state = self.lock();
            // Work that came since this lane last looked counts on it.
            if shared.sends() && state.has_work() {
                return true;
            }
            state.lanes -= 1;
            if state.resting >= RESTING_MAX || !shared.sends() {
                return false;
            }
            state.resting += 1;
        }
        loop {
            let late = shared
                .clock
                .timeout(RESTING_TIME, bell.as_mut())
                .await
                .is_err();
            let mut state = self.lock();
            if state.called > 0 {
                state.called -= 1;
                return true;
            }
            if late || !shared.sends() {
                state.resting -= 1;
                return false;
            }
            // Somebody else answered the call. Still under the lock: the bell keeps one ring for those who do not listen
            // yet, and two of them may be called at once.
            bell.set(self.bell.notified());
            bell.as_mut().enable();
            drop(state);
        }
    }

    /// Sends resting lanes home, when the mesh closes.
    pub(crate) fn dismiss(&self) {
        drop(self.lock());
        self.bell.notify_waiters();
    }

    /// A lane asks for work.
    pub(crate) fn take(self: &Arc<Self>, shared: &Arc<Shared>) -> Option<(Job, Arc<Plan>)> {
        let mut state = self.lock();
        let job = if shared.sends() && state.has_work() && self.has_turn(shared, &mut state) {
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
    pub(crate) fn due(self: &Arc<Self>, shared: &Arc<Shared>, what: What) {
        let mut state = self.lock();
        let job = match what {
            What::Turn => return self.turn_came(shared, &mut state),
            What::Event(offset) if state.resume(offset) => {
                return self.wake(shared, &mut state);
            }
            What::Event(offset) => {
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
            What::Sink(name, attempts) => {
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
        state.again.push_back(job);
        self.wake(shared, &mut state);
    }

    /// Schedules the next look at something. By a duration: what the wall clock does meanwhile makes no difference.
    pub(crate) fn schedule(&self, shared: &Shared, what: What, wait: Duration) {
        let due = Due {
            at: shared.clock.monotonic().saturating_add(wait),
            consumer: self.id,
            what,
        };
        shared.retries.add(due);
    }

    /// How far the consumer is; it takes part in no later mark until it changes again.
    pub(crate) fn mark(&self, scanned: Offset) -> Marked {
        let mut state = self.lock();
        state.dirty = false;
        Marked {
            consumer: self.id,
            matched: state.tally.matched,
            floor: state.floor(scanned),
            counted_to: state.counted_to.unwrap_or(0),
        }
    }

    /// The last mark was lost.
    pub(crate) fn unmark(self: &Arc<Self>, shared: &Shared) {
        let mut state = self.lock();
        self.touch(shared, &mut state);
    }
}

impl State {
    /// Waiting for a first attempt.
    pub(crate) fn waiting(&self) -> usize {
        self.fresh.len() + self.blocked_count + self.postponed.len()
    }

    fn takeable(&self) -> usize {
        let fresh = if self.retrying.len() < RETRYING_MAX {
            self.fresh.len()
        } else {
            0
        };
        fresh + self.again.len()
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
            && self.turn != Turn::Awaited
    }

    fn push_fresh(&mut self, shared: &Shared, record: &Record) {
        let bytes = record.payload.len();
        self.fresh.push_back(Job {
            offset: record.offset,
            attempts: 0,
            kind: JobKind::Event,
            record: shared.hold(bytes).then(|| record.clone()),
            lane_key: None,
        });
    }

    /// Puts an event back that was taken and not tried, at its place: another of its key may have been let go before it and
    /// not have been taken yet.
    fn back_to_fresh(&mut self, job: Job) {
        let place = self
            .fresh
            .partition_point(|waiting| waiting.offset < job.offset);
        self.fresh.insert(place, job);
    }

    fn next_job(&mut self, shared: &Shared) -> Result<Option<Job>, Unavailable> {
        if self.plan.ordered && self.keys_unknown {
            self.work_out_keys(shared)?;
        }
        loop {
            let fresh_allowed = self.retrying.len() < RETRYING_MAX;
            let next = match self.again.pop_front() {
                Some(job) => Some(job),
                None if fresh_allowed => self.fresh.pop_front(),
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
                        self.put_back(job);
                        return Err(unavailable);
                    }
                },
            };
            // An event that was tried before holds its key until it has ended.
            let holds = job.attempts > 0;
            job.lane_key = Some(key);
            if !holds && !self.busy.insert(key) {
                // Most come in order; one that was let go and overtaken goes back to its place.
                let queue = self.blocked.entry(key).or_default();
                let place = queue.partition_point(|waiting| waiting.offset < job.offset);
                queue.insert(place, job);
                self.blocked_count += 1;
                continue;
            }
            self.busy.insert(key);
            return Ok(Some(job));
        }
    }

    /// An attempt is over. The key it held stays held until the event has ended.
    pub(crate) fn landed(&mut self, job: &Job) {
        let key = (job.offset, matches!(job.kind, JobKind::Sink(_)));
        self.in_flight.remove(&key);
    }

    /// Puts an event back whose attempt was neither made nor refused. Under the same lock in which it landed, for a mark in
    /// between would count it as ended.
    pub(crate) fn put_back(&mut self, job: Job) {
        if let Some(key) = job.lane_key.filter(|_| job.attempts == 0) {
            // It is the first to ask for its key again; those that wait for it go on waiting.
            self.busy.remove(&key);
        }
        if job.attempts == 0 && job.kind == JobKind::Event {
            self.back_to_fresh(job);
        } else {
            self.again.push_front(job);
        }
    }

    /// An event that was on record before the restart may end before it is read again; then it is not to be read as new.
    pub(crate) fn pass_over(&mut self, offset: Offset) {
        if matches!(self.reading, Reading::Behind { next, .. } if offset >= next) {
            self.ended.insert(offset);
        }
    }

    /// Forgets all work; gives the dead letters that were on their way again.
    pub(crate) fn clear(&mut self, shared: &Shared) -> Vec<u64> {
        let waiting = self.fresh.iter().chain(self.blocked.values().flatten());
        for record in waiting.filter_map(|job| job.record.as_ref()) {
            shared.give_back(record.payload.len());
        }
        let redriven = self
            .retrying
            .values()
            .filter_map(|retry| retry.redriven)
            .collect();
        self.fresh.clear();
        self.again.clear();
        self.blocked.clear();
        self.blocked_count = 0;
        self.busy.clear();
        self.retrying.clear();
        self.ended.clear();
        self.revisions.clear();
        self.reading = Reading::Live;
        self.counted_to = None;
        self.unrouted = None;
        self.overflow = Overflow::default();
        self.starved = Starved::default();
        self.postponed = Postponed::default();
        self.lost = Lost::default();
        redriven
    }

    /// What waits for its first attempt. Dead letters on their way again are not among them, wherever they wait.
    fn not_on_record(&self) -> impl Iterator<Item = &Job> {
        let waiting = self.fresh.iter().chain(self.blocked.values().flatten());
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
            Reading::Live => None,
            Reading::Behind { next, .. } => Some(next),
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
pub(crate) fn note(shared: &Shared, _locked: &State, line: Line) {
    shared.note(line);
}
