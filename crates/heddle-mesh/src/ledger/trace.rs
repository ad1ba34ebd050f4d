//! One event, from its acceptance to its end at every consumer.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use heddle_api::ledger::{Attempt, BadReply, Cause, ConsumerTrace, EventState, Trace, TracedEvent};
use heddle_api::search::IndexedWord;
use heddle_api::span;
use jiff::Timestamp;

use super::Error;
use super::hints::HintWord;
use super::look_back::{LOOK_BYTES_MAX, Look, LookBack};
use super::losses::AskedEvent;
use super::visible::Visible;
use crate::consumer::{Consumer, State};
use crate::envelope::Envelope;
use crate::event::key_of;
use crate::heartbeat;
use crate::journal::record::ConsumerId;
use crate::journal::{self, Attempted, Dead, JournalRecord};
use crate::log::{Lookup, Offset, Record};
use crate::mesh::Mesh;
use crate::path::delivery::plan::Target;
use crate::path::trigger::Predicate;

/// Events with the same source and id that are shown, and after how many with the same id no older ones are looked for.
const EVENTS_MAX: usize = 100;
/// Consumers that did not want the event and are shown all the same.
const FILTERED_MAX: usize = 1000;

impl Mesh {
    /// Every retained event of this source with this id, for somebody who sees everything.
    pub fn trace(&self, id: &str, source: &str) -> Result<Trace, Error> {
        let asked = AskedEvent {
            id: id.into(),
            source: Some(source.into()),
            visible: Visible::everything(),
        };
        let mut found = TracedEvents::default();
        for offset in self.shared.log.find(key_of(source, id), EVENTS_MAX)? {
            found.push(offset, self.traced_at(offset, &asked)?);
        }
        self.trace_of(found, &asked)
    }

    /// The newest retained events with this id, whatever their source, for somebody who sees everything.
    pub async fn trace_by_id(&self, id: &str, range: Range<Offset>) -> Result<Trace, Error> {
        self.trace_for(id, None, range, &Visible::everything())
            .await
    }

    /// The newest retained events with this id that somebody may see, and what they may know of each. Those of one source are
    /// in an index. Without a source, of very many, and in a part of the log, events are looked through, but for segments that
    /// surely have none; should that take long, the answer says how far it was.
    pub async fn trace_for(
        &self,
        id: &str,
        source: Option<&str>,
        range: Range<Offset>,
        visible: &Visible,
    ) -> Result<Trace, Error> {
        let asked = AskedEvent {
            id: id.into(),
            source: source.map(Into::into),
            visible: visible.clone(),
        };
        let whole = (0, Offset::MAX) == (range.start, range.end);
        if let Some(source) = source.filter(|_| whole) {
            let key = key_of(source, id);
            let indexed = self.aside(move |mesh| Ok(mesh.shared.log.find(key, EVENTS_MAX + 1)?));
            let indexed = indexed.await?;
            if indexed.len() <= EVENTS_MAX {
                return self.trace_at(indexed, asked).await;
            }
        }
        let end = self.shared.log.bounds().end;
        let mut words = vec![HintWord::of(IndexedWord::Id, id)];
        words.extend(source.map(|source| HintWord::of(IndexedWord::Source, source)));
        let looking = LookBack::new(
            Arc::clone(&self.shared.log),
            Arc::clone(&self.shared.hints),
            range,
            words,
            IdSearch::new(asked.clone()),
        );
        let (search, stopped) = self.look(looking, LOOK_BYTES_MAX).await?;
        Ok(Trace {
            older: search.cut.or(stopped),
            // How many events there are is not told to those who see some of them.
            next: visible.is_everything().then_some(end),
            ..self.trace_at(search.found, asked).await?
        })
    }

    /// Each event in a slice of its own: it may have very many consumers.
    async fn trace_at(
        &self,
        offsets: impl IntoIterator<Item = Offset>,
        asked: AskedEvent,
    ) -> Result<Trace, Error> {
        let mut found = TracedEvents::default();
        for offset in offsets {
            let asked = asked.clone();
            let traced = self.aside(move |mesh| mesh.traced_at(offset, &asked));
            found.push(offset, traced.await?);
        }
        self.aside(move |mesh| mesh.trace_of(found, &asked)).await
    }

    fn trace_of(&self, found: TracedEvents, asked: &AskedEvent) -> Result<Trace, Error> {
        Ok(Trace {
            losses: self.losses(&found.events, &found.damaged, asked)?,
            events: found.events,
            refused: self.refused_like(asked),
            ..Trace::default()
        })
    }

    /// The event at a place, if it is the one asked for: different names may share a key.
    fn traced_at(&self, offset: Offset, asked: &AskedEvent) -> Result<Lookup<TracedEvent>, Error> {
        let record = match self.shared.log.get(offset)? {
            Lookup::Found(record) => record,
            Lookup::Damaged => return Ok(Lookup::Damaged),
            Lookup::Gone => return Ok(Lookup::Gone),
        };
        match Envelope::decode(&record.payload) {
            Ok(envelope)
                if asked.is(&envelope.event)
                    && asked.visible.shows_event(&envelope, record.offset) =>
            {
                let traced = self.traced(&record, &envelope, &asked.visible)?;
                Ok(Lookup::Found(traced))
            }
            _ => Ok(Lookup::Gone),
        }
    }

    /// What somebody may know of what became of an event.
    fn traced(
        &self,
        record: &Record,
        envelope: &Envelope,
        visible: &Visible,
    ) -> Result<TracedEvent, Error> {
        let histories = self.histories(&BTreeSet::from([record.offset]))?;
        let histories = histories.get(&record.offset);
        let scanned = self.shared.scanned();
        let mut verdicts = Vec::new();
        let mut filtered = 0;
        let consumers = match heartbeat::is_reserved(envelope.event.type_()) {
            false => self.consumers_by_key(),
            true => self.shared.all_consumers(),
        };
        let is_asked = |one: &Arc<Consumer>| {
            one.hears_heartbeats() == heartbeat::is_reserved(envelope.event.type_())
                && visible.shows_consumer(&one.key)
        };
        for consumer in consumers.into_iter().filter(is_asked) {
            let history = histories.and_then(|histories| histories.get(&consumer.id));
            let was_resent = history.is_some_and(|history| history.iter().any(is_resent));
            let decided = decided(&consumer, record.offset, &envelope.entry);
            let refusal = match &decided {
                // Whoever had it sent again asked the filter of that time.
                _ if was_resent => None,
                Some((predicate, _)) => predicate.explain(&envelope.event).err(),
                None => continue,
            };
            let via = decided.map_or_else(Vec::new, |(_, via)| via);
            let mut verdict = undecided(&consumer.key, via);
            match refusal {
                Some(reason) => (verdict.state, verdict.reason) = (EventState::Filtered, reason),
                None => follow(&mut verdict, &consumer, record.offset, history, scanned),
            }
            if verdict.state == EventState::Filtered {
                filtered += 1;
                if filtered > FILTERED_MAX {
                    continue;
                }
            }
            verdicts.push(verdict);
        }
        let event = &envelope.event;
        Ok(TracedEvent {
            offset: record.offset,
            source: event.source().to_owned(),
            id: event.id().to_owned(),
            type_: event.type_().to_owned(),
            accepted_at: record.at,
            entry: envelope.entry.to_string(),
            request_id: envelope.request_id.as_deref().map(str::to_owned),
            data_bytes: event.data().map_or(0, |data| data.len() as u64),
            cause: (envelope.cause.as_ref())
                .filter(|cause| visible.shows_consumer(&cause.consumer))
                .map(|cause| Cause {
                    offset: cause.offset,
                    consumer: cause.consumer.to_string(),
                }),
            summary: summary(&verdicts, record.offset >= scanned),
            verdicts,
        })
    }

    /// What the journal says about some events, per event and consumer. Lines that are not safe yet are made so first by the
    /// caller.
    pub(super) fn histories(&self, offsets: &BTreeSet<Offset>) -> Result<Histories, Error> {
        let journal = self.shared.log.journal();
        let mut histories = Histories::new();
        let buckets: BTreeSet<u64> = offsets.iter().copied().map(journal::bucket_of).collect();
        for bucket in buckets {
            for at in journal.find(bucket, usize::MAX)? {
                let Some(record) = journal.get(at)?.found() else {
                    continue;
                };
                let Ok(lines) = journal::decode(&record.payload) else {
                    continue;
                };
                for line in lines {
                    if let Some(offset) = line.offset()
                        && offsets.contains(&offset)
                        && let Some(consumer) = line.consumer()
                    {
                        let event = histories.entry(offset).or_default();
                        event.entry(consumer).or_default().push(line);
                    }
                }
            }
        }
        Ok(histories)
    }

    /// Whether an event was sent again to a consumer, whatever it wanted when it came.
    pub(super) fn was_resent(consumer: &Consumer, offset: Offset, histories: &Histories) -> bool {
        let history = histories.get(&offset);
        let history = history.and_then(|history| history.get(&consumer.id));
        history.is_some_and(|history| history.iter().any(is_resent))
    }

    /// Where an event is for a consumer that wants it.
    pub(super) fn state_at(
        &self,
        consumer: &Consumer,
        offset: Offset,
        histories: &Histories,
    ) -> EventState {
        let history = histories.get(&offset);
        let history = history.and_then(|history| history.get(&consumer.id));
        let mut verdict = undecided("", Vec::new());
        follow(
            &mut verdict,
            consumer,
            offset,
            history,
            self.shared.scanned(),
        );
        verdict.state
    }
}

/// What decides about an event of this entry for a consumer, and the hops to it; `None` for one that had no part in it.
/// Whoever asks decides when it is unlocked again: a consumer at work does not wait for that.
fn decided(
    consumer: &Consumer,
    offset: Offset,
    entry: &str,
) -> Option<(Arc<Predicate>, Vec<String>)> {
    let state = consumer.lock();
    let revision = state.routing.revision_at(offset)?;
    let mut feeds = revision.feeds.iter();
    let (_, via) = feeds.find(|(feed, _)| feed == entry)?;
    Some((Arc::clone(&revision.predicate), via.clone()))
}

/// Lines of the journal about events.
pub(super) type Histories = BTreeMap<Offset, BTreeMap<ConsumerId, Vec<JournalRecord>>>;

/// Events that were found, and places where one was that nobody can read any more.
#[derive(Default)]
struct TracedEvents {
    events: Vec<TracedEvent>,
    damaged: Vec<Offset>,
}

impl TracedEvents {
    fn push(&mut self, offset: Offset, found: Lookup<TracedEvent>) {
        match found {
            Lookup::Found(event) => self.events.push(event),
            Lookup::Damaged => self.damaged.push(offset),
            Lookup::Gone => {}
        }
    }
}

/// A search for events by their id, and by their source if that is known.
struct IdSearch {
    asked: AskedEvent,
    /// The newest so far, oldest first. No event is held: each may be as long as an event may be.
    found: VecDeque<Offset>,
    chunk: Vec<Offset>,
    /// The oldest that is kept, when older ones were found and left out.
    cut: Option<Offset>,
}

impl IdSearch {
    fn new(asked: AskedEvent) -> Self {
        Self {
            asked,
            found: VecDeque::new(),
            chunk: Vec::new(),
            cut: None,
        }
    }
}

impl Look for IdSearch {
    fn record(&mut self, record: Record) {
        let Ok(envelope) = Envelope::decode(&record.payload) else {
            return;
        };
        let visible = &self.asked.visible;
        if self.asked.is(&envelope.event) && visible.shows_event(&envelope, record.offset) {
            self.chunk.push(record.offset);
        }
    }

    /// What a chunk brought is older than what was found before it.
    fn chunk(&mut self) -> Result<ControlFlow<()>, Error> {
        for offset in self.chunk.drain(..).rev() {
            if self.found.len() >= EVENTS_MAX {
                self.cut = self.found.front().copied();
                return Ok(ControlFlow::Break(()));
            }
            self.found.push_front(offset);
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// What is told of an event of which nothing is known.
fn undecided(consumer: &str, via: Vec<String>) -> ConsumerTrace {
    ConsumerTrace {
        consumer: consumer.to_owned(),
        via,
        state: EventState::Pending,
        reason: String::new(),
        attempts: Vec::new(),
        next_attempt_at: None,
        ended_at: None,
    }
}

/// What became of an event that is wanted.
fn follow(
    verdict: &mut ConsumerTrace,
    consumer: &Consumer,
    offset: Offset,
    history: Option<&Vec<JournalRecord>>,
    scanned: Offset,
) {
    if offset >= scanned {
        verdict.reason = "accepted and not matched yet".to_owned();
        return;
    }
    for line in history.into_iter().flatten() {
        recount(verdict, line);
    }
    if verdict.ended_at.is_none() {
        whereabouts(verdict, &consumer.lock(), offset);
    }
}

/// Where an event is that has not ended: whether an attempt failed is known from the journal.
pub(super) fn open_state(consumer: &Consumer, offset: Offset, has_failed: bool) -> EventState {
    let mut verdict = undecided("", Vec::new());
    if has_failed {
        verdict.state = EventState::Retrying;
    }
    whereabouts(&mut verdict, &consumer.lock(), offset);
    verdict.state
}

fn is_resent(line: &JournalRecord) -> bool {
    matches!(line, JournalRecord::Resent { .. })
}

/// Takes in one line of the event's history.
fn recount(verdict: &mut ConsumerTrace, line: &JournalRecord) {
    let mut end = |state, at: Timestamp, reason: String| {
        verdict.state = state;
        verdict.ended_at = Some(at);
        verdict.next_attempt_at = None;
        verdict.reason = reason;
    };
    match line {
        JournalRecord::Failed {
            attempted,
            error,
            next_at,
            ..
        } => {
            verdict
                .attempts
                .push(attempt(attempted, Some(error.to_string())));
            verdict.state = EventState::Retrying;
            verdict.reason = error.to_string();
            verdict.next_attempt_at = Some(*next_at);
            verdict.ended_at = None;
        }
        JournalRecord::Delivered(attempted) => {
            end(
                EventState::Delivered,
                attempted.at,
                format!("the subscriber answered {}", attempted.status),
            );
            verdict.attempts.push(attempt(attempted, None));
        }
        JournalRecord::Dead(dead) if dead.reply.is_some() => replied(verdict, dead),
        JournalRecord::Dead(dead) => {
            end(
                EventState::DeadLettered,
                dead.attempted.at,
                dead.reason.clone(),
            );
            if !dead.given_up {
                verdict
                    .attempts
                    .push(attempt(&dead.attempted, Some(dead.reason.clone())));
            }
        }
        JournalRecord::Expired { at, reason, .. } => {
            end(EventState::Expired, *at, reason.to_string())
        }
        JournalRecord::Discarded {
            name,
            by,
            reply: true,
            ..
        } => reply_discarded(verdict, *name, by),
        JournalRecord::Discarded { at, by, .. } => {
            end(EventState::Removed, *at, format!("thrown away by {by}"))
        }
        JournalRecord::Removed { at, by, .. } => {
            end(EventState::Removed, *at, format!("removed: {by}"));
        }
        JournalRecord::Redriven { by, .. } => {
            verdict.state = EventState::Pending;
            verdict.ended_at = None;
            verdict.reason = format!("sent on its way again by {by}");
        }
        JournalRecord::Resent { operation, by, .. } => {
            verdict.state = EventState::Pending;
            verdict.ended_at = None;
            verdict.reason = format!("sent again by {by}, with operation {operation}");
        }
        JournalRecord::Sunk {
            at, status, error, ..
        } => verdict.attempts.push(Attempt {
            number: 1,
            at: *at,
            status: (*status > 0).then_some(*status),
            latency_ms: 0.0,
            error: (!error.is_empty()).then(|| error.to_string()),
            to_dead_letter_sink: true,
            bad_reply: None,
        }),
        JournalRecord::Routed(_)
        | JournalRecord::Unrouted { .. }
        | JournalRecord::Forgotten { .. }
        | JournalRecord::Held { .. }
        | JournalRecord::Lost { .. }
        | JournalRecord::Checkpoint(_)
        | JournalRecord::Bulk(_)
        | JournalRecord::Mark(_) => {}
    }
}

/// What came back for an attempt could not go on. When the line of the delivery itself is lost, this one tells of it.
fn replied(verdict: &mut ConsumerTrace, dead: &Dead) {
    let Some(fault) = dead.reply.as_ref().map(|reply| reply.fault) else {
        return;
    };
    let bad_reply = BadReply {
        fault: fault.label().to_owned(),
        reason: dead.reason.clone(),
        dead_letter: dead.is_kept().then(|| dead.name.to_string()),
        discarded_by: None,
    };
    let mut attempts = verdict.attempts.iter_mut().rev();
    let known = attempts
        .find(|attempt| attempt.number == dead.attempted.number && attempt.at == dead.attempted.at);
    match known {
        Some(attempt) => attempt.bad_reply = Some(bad_reply),
        None => verdict.attempts.push(Attempt {
            bad_reply: Some(bad_reply),
            ..attempt(&dead.attempted, None)
        }),
    }
}

fn reply_discarded(verdict: &mut ConsumerTrace, name: u64, by: &str) {
    let name = name.to_string();
    let mut replies = verdict
        .attempts
        .iter_mut()
        .filter_map(|attempt| attempt.bad_reply.as_mut());
    if let Some(reply) = replies.find(|reply| reply.dead_letter.as_ref() == Some(&name)) {
        reply.discarded_by = Some(by.to_owned());
    }
}

fn attempt(attempted: &Attempted, error: Option<String>) -> Attempt {
    Attempt {
        number: attempted.number,
        at: attempted.at,
        status: (attempted.status > 0).then_some(attempted.status),
        latency_ms: f64::from(attempted.latency_us) / 1000.0,
        error,
        to_dead_letter_sink: false,
        bad_reply: None,
    }
}

/// Where an event is that has not ended: under way, waiting for its turn, or held back.
fn whereabouts(verdict: &mut ConsumerTrace, state: &State, offset: Offset) {
    if state.window.contains(offset) {
        verdict.state = EventState::Delivering;
        verdict.reason = "an attempt is under way".to_owned();
        return;
    }
    let held = held(state);
    if let Some(reason) = held {
        verdict.state = EventState::Waiting;
        verdict.reason = reason;
        return;
    }
    if let Some(retry) = state.retries.on_record.get(&offset)
        && verdict.state == EventState::Retrying
    {
        // Waiting for room is no attempt: it moves the time without a line.
        verdict.next_attempt_at = Some(retry.next_at);
        return;
    }
    verdict.state = EventState::Pending;
    if verdict.reason.is_empty() {
        verdict.reason = if state.cursor.is_unread(offset) {
            "waiting in the log: the subscriber is slower than its events".to_owned()
        } else {
            "waiting for its turn".to_owned()
        };
        if let Some(rate) = state.routing.plan.rate {
            let waiting = state.tally.pending();
            let span = span(rate.time_for(waiting));
            verdict.reason = format!(
                "waiting for its turn: no more than {rate} are sent, and {waiting} that wait take {span}"
            );
        }
    }
}

/// Why a consumer sends nothing at the moment.
pub(crate) fn held(state: &State) -> Option<String> {
    if state.routing.spec.is_none() {
        return Some(
            "it was deleted; its backlog is kept for a new one of the same name".to_owned(),
        );
    }
    if let Some(pause) = &state.routing.plan.pause {
        return Some(pause.in_words());
    }
    let window = &state.window;
    if let Some(reason) = window.held.as_ref().or(window.dead_full.as_ref()) {
        return Some(reason.clone());
    }
    let plan = &state.routing.plan;
    match &plan.target {
        Target::None => Some("it has no subscriber".to_owned()),
        Target::Unresolved(reason) => Some(reason.clone()),
        Target::Url(_) | Target::Entry(_) => plan.unconsented().or_else(|| state.unreadable()),
    }
}

/// The furthest hop that is not done with the event, in words.
fn summary(verdicts: &[ConsumerTrace], unmatched: bool) -> String {
    if unmatched {
        return "on disk, not matched yet".to_owned();
    }
    let wanted: Vec<&ConsumerTrace> = verdicts
        .iter()
        .filter(|verdict| verdict.state != EventState::Filtered)
        .collect();
    let open = wanted.iter().find(|verdict| verdict.ended_at.is_none());
    match open {
        Some(verdict) => format!("{}: {}", verdict.consumer, verdict.reason),
        None => "done".to_owned(),
    }
}
