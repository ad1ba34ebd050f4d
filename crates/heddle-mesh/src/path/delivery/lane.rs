//! A lane: takes one event after the other, attempts it, and settles what came of it, until there is no more work.
//!
//! Settling happens under the consumer's lock and together with its line in the journal, so that a checkpoint made later counts
//! on nothing that is not written. Cancelling a lane drops the attempt under way: nothing is settled, the event is still
//! the consumer's to deliver, and so shutting down is never a failed attempt.

mod load;
mod own;
mod reply;
mod settle;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use futures::FutureExt as _;
use heddle_api::attributes::{Attributes as _, Value};
use heddle_rt::OnError;
use http::{HeaderName, HeaderValue};
use jiff::Timestamp;

use super::courier::{Extra, Outcome, Reply};
use super::plan::{DeliveryPlan, Target};
use super::sending::Room;
use crate::consumer::{Consumer, Job, JobKind};
use crate::envelope::{self, Cause, Envelope, TraceContext};
use crate::event::Event;
use crate::journal::{self, BadReply};
use crate::log::{AppendRefused, Lookup, Unavailable};
use crate::observer::{Attempted, Seen};
use crate::path::{channel, dead_letter};
use crate::shared::Shared;
use crate::span::Span;
use load::load;
use settle::{settle, settle_sink};

/// Of the answer's body, what fits into 1024 characters of base64: existing consumers of dead letters expect no more.
const ANSWER_BYTES_MAX: usize = 768;

/// Why an event rests that nobody can read any more.
pub(crate) const DAMAGED: &str = "its record in the log is damaged and its bytes are lost";

pub(crate) fn start(shared: Arc<Shared>, consumer: Arc<Consumer>) {
    let lanes = shared.lanes.clone();
    // Boxed once: the future of an attempt is large, and is moved several times until it is a task.
    let lane = Box::pin(async move {
        loop {
            while let Some((job, plan)) = consumer.take(&shared) {
                run(&shared, &consumer, job, &plan).await;
            }
            if !consumer.park(&shared).await {
                return;
            }
        }
    });
    lanes.spawn("lane", OnError::Report, lane);
}

/// Why an event was not appended to another place of this mesh.
enum NotTaken {
    /// It never will be, for what it is.
    Unfit(String),
    Later(String),
}

/// What came of an attempt.
#[derive(Debug)]
enum AttemptResult {
    Delivered {
        status: u16,
        /// What came back for it and could not go on.
        bad_reply: Option<Box<BadReply>>,
    },
    Failed {
        status: u16,
        /// Whether another attempt could help.
        again: bool,
        retry_after: Option<Duration>,
        error: String,
        answer: Bytes,
    },
    /// This mesh cannot take what came of it: no room, too much to write, a failed disk. The subscriber is not to blame.
    Backpressured {
        why: String,
        /// The subscriber was called for it.
        called: bool,
    },
    /// The subscriber asked to be left alone.
    Gone,
    Expired(String),
    /// It could not be attempted; nobody is to blame.
    NotAttempted,
}

impl AttemptResult {
    fn delivered(status: u16) -> Self {
        Self::Delivered {
            status,
            bad_reply: None,
        }
    }

    fn again(error: impl Into<String>) -> Self {
        Self::Failed {
            status: 0,
            again: true,
            retry_after: None,
            error: error.into(),
            answer: Bytes::new(),
        }
    }

    fn never(error: impl Into<String>) -> Self {
        Self::Failed {
            status: 0,
            again: false,
            retry_after: None,
            error: error.into(),
            answer: Bytes::new(),
        }
    }
}

async fn run(
    shared: &Arc<Shared>,
    consumer: &Arc<Consumer>,
    mut job: Job,
    plan: &Arc<DeliveryPlan>,
) {
    let found = load(shared, &mut job, plan).await;
    let begun = shared.clock.monotonic();
    let done = match &found {
        Err(unavailable) => Err(unavailable.clone()),
        Ok(Lookup::Damaged) => Ok(AttemptResult::never(DAMAGED)),
        Ok(Lookup::Gone) => Ok(AttemptResult::never("its record is gone from the log")),
        Ok(Lookup::Found(loaded)) => {
            let attempt = attempt(shared, consumer, &job, plan, &loaded.payload);
            let attempt = AssertUnwindSafe(attempt);
            // A panic is a bug of ours in one attempt, and no reason to lose the event or the lane.
            let done = attempt.catch_unwind().await;
            done.unwrap_or_else(|_| Ok(AttemptResult::again("heddle panicked while sending it")))
        }
    };
    let done = match done {
        Ok(done) => done,
        Err(unavailable) => return consumer.postpone(shared, job, &unavailable),
    };
    let latency = shared.clock.monotonic().saturating_sub(begun);
    let at = shared.clock.now();
    let found = found.ok().and_then(Lookup::found);
    let (payload, accepted_at, _room) = match found {
        Some(loaded) => (loaded.payload, loaded.accepted_at, loaded.room),
        None => (Bytes::new(), at, Room::Unneeded),
    };
    let tried = FinishedAttempt {
        job,
        payload,
        accepted_at,
        latency,
        at,
    };
    shared.metrics.attempted(latency);
    match tried.job.kind {
        JobKind::Sink(name) => settle_sink(shared, consumer, plan, &tried, name, done),
        JobKind::Event | JobKind::Redriven(_) => settle(shared, consumer, plan, tried, done),
    }
}

/// An attempt that was made.
struct FinishedAttempt {
    job: Job,
    payload: Bytes,
    accepted_at: Timestamp,
    latency: Duration,
    at: Timestamp,
}

impl FinishedAttempt {
    /// Where the event came in; empty when its record cannot be read.
    fn entry(&self) -> &str {
        envelope::entry(&self.payload).unwrap_or_default()
    }

    fn attempted(&self, consumer: &Consumer, status: u16) -> journal::Attempted {
        journal::Attempted {
            consumer: consumer.id,
            offset: self.job.offset,
            number: self.job.attempts + 1,
            at: self.at,
            latency_us: u32::try_from(self.latency.as_micros()).unwrap_or(u32::MAX),
            status,
        }
    }
}

/// A job's event and when it was accepted: from the log, or from the dead letter it was.
pub(crate) fn find(shared: &Shared, job: &Job) -> Result<Lookup<(Bytes, Timestamp)>, Unavailable> {
    match job.kind {
        JobKind::Event => {
            let found = shared.log.get(job.offset)?;
            Ok(found.map(|record| (record.payload, record.at)))
        }
        JobKind::Redriven(name) | JobKind::Sink(name) => {
            let found = dead_letter::record(shared, name)?;
            Ok(found.map(|dead| (dead.record.clone(), dead.accepted_at)))
        }
    }
}

async fn attempt(
    shared: &Arc<Shared>,
    consumer: &Consumer,
    job: &Job,
    plan: &DeliveryPlan,
    payload: &Bytes,
) -> Result<AttemptResult, Unavailable> {
    let Ok(envelope) = Envelope::decode(payload) else {
        return Ok(AttemptResult::never("its record cannot be read"));
    };
    let hop = envelope
        .trace
        .as_ref()
        .map(|trace| Hop::after(shared, trace));
    let attempt = Attempt {
        shared,
        consumer,
        job,
        plan,
        envelope: &envelope,
        hop: hop.as_ref(),
    };
    if let JobKind::Sink(name) = job.kind {
        let dead = dead_letter::record(shared, name)?.found();
        let event = sink_event(plan, &envelope.event, dead.as_deref());
        return Ok(attempt.watched(&plan.sink, &event).await);
    }
    if let Some(reason) = expired(shared, &envelope.event) {
        return Ok(AttemptResult::Expired(reason));
    }
    Ok(attempt.watched(&plan.target, &envelope.event).await)
}

/// Why the event must no longer be sent, if its publisher said so.
fn expired(shared: &Shared, event: &Event) -> Option<String> {
    let text = event.text("expirytime")?;
    let at: Timestamp = text.parse().ok()?;
    (at <= shared.clock.now()).then(|| format!("its expirytime {text} has passed"))
}

/// What an attempt is made of.
#[derive(Clone, Copy)]
struct Attempt<'a> {
    shared: &'a Arc<Shared>,
    consumer: &'a Consumer,
    job: &'a Job,
    plan: &'a DeliveryPlan,
    envelope: &'a Envelope,
    /// Where in its trace the attempt is. A reply goes on from here.
    hop: Option<&'a Hop>,
}

impl Attempt<'_> {
    /// Sends, and tells whoever watches.
    async fn watched(&self, target: &Target, event: &Event) -> AttemptResult {
        let Some((observer, hop)) = self.shared.observer.as_ref().zip(self.hop) else {
            return self.send(target, event).await;
        };
        let Some(span) = hop.span.filter(Span::is_sampled) else {
            return self.send(target, event).await;
        };
        let clock = &self.shared.clock;
        let begun = clock.monotonic();
        let done = self.send(target, event).await;
        let (status, error) = match &done {
            AttemptResult::Delivered { status, .. } => (*status, None),
            AttemptResult::Failed { status, error, .. } => (*status, Some(error.as_str())),
            AttemptResult::Backpressured { why, .. } => (0, Some(why.as_str())),
            AttemptResult::Gone => (410, Some("the subscriber wants no more events")),
            AttemptResult::Expired(_) | AttemptResult::NotAttempted => return done,
        };
        observer.attempted(&Attempted {
            seen: Seen {
                span,
                parent: hop.parent,
                state: &hop.trace.state,
                event,
                offset: self.job.offset,
                ended: clock.now(),
                took: clock.monotonic().saturating_sub(begun),
            },
            consumer: &self.consumer.key,
            sink: self.job.is_sink(),
            number: self.job.attempts + 1,
            status,
            error,
        });
        done
    }

    async fn send(&self, target: &Target, event: &Event) -> AttemptResult {
        let address = match target {
            Target::None | Target::Unresolved(_) => return AttemptResult::NotAttempted,
            Target::Entry(entry) => return self.pass_on(entry, event).await,
            Target::Url(address) => address,
        };
        if let Some(done) = self.reply_has_no_room() {
            return done;
        }
        let (shared, plan) = (self.shared, self.plan);
        let wants_reply = !matches!(plan.reply, Target::None) && !self.job.is_sink();
        let asked = plan.consent.as_ref().filter(|_| !self.job.is_sink());
        let headers = asked.map_or(&[][..], |consent| consent.headers());
        let extra = self.extra(wants_reply, headers);
        let timeout = plan.policy.timeout;
        let report = shared
            .courier
            .send(address, event, plan.format, &extra, timeout)
            .await;
        // Until the reply has been sent on.
        let _held = report.held;
        match report.outcome {
            Outcome::Accepted { status, reply } => match reply {
                Reply::Event(reply) if wants_reply => self.send_reply(status, &reply).await,
                Reply::Bad(bad_reply) if wants_reply => AttemptResult::Delivered {
                    status,
                    bad_reply: Some(bad_reply),
                },
                // Nobody asked for it.
                Reply::None | Reply::Event(_) | Reply::Bad(_) => AttemptResult::delivered(status),
            },
            Outcome::Gone => AttemptResult::Gone,
            Outcome::Refused {
                status,
                retry,
                retry_after,
                answer,
            } => AttemptResult::Failed {
                status,
                again: retry,
                retry_after,
                error: format!("the subscriber answered {status}"),
                answer,
            },
            Outcome::Failed { error } => AttemptResult::again(error),
            Outcome::OwnListener => self.lead(address, event).await,
            Outcome::Unsent { error } => AttemptResult::Backpressured {
                why: error,
                called: false,
            },
        }
    }

    /// Appends to another broker or channel of this mesh.
    async fn pass_on(&self, entry: &Arc<str>, event: &Event) -> AttemptResult {
        match self.append(entry, event).await {
            Ok(()) => AttemptResult::delivered(202),
            Err(NotTaken::Unfit(why)) => AttemptResult::never(why),
            Err(NotTaken::Later(why)) => AttemptResult::Backpressured { why, called: false },
        }
    }

    async fn append(&self, entry: &Arc<str>, event: &Event) -> Result<(), NotTaken> {
        let Some(hops_left) = self.envelope.hops_left.checked_sub(1) else {
            let why = "it has passed too many brokers: there is a loop";
            return Err(NotTaken::Unfit(why.to_owned()));
        };
        let onward = Envelope {
            entry: (&**entry).into(),
            hops_left,
            cause: Some(Cause {
                offset: self.job.offset,
                consumer: (&*self.consumer.key).into(),
            }),
            trace: self.hop.map(|hop| hop.trace.clone()),
            request_id: self.envelope.request_id.clone(),
            event: event.clone(),
        };
        match channel::append(self.shared, &onward).await {
            Ok(_) => {
                self.shared.metrics.passed_on();
                Ok(())
            }
            Err(refused @ AppendRefused::TooLarge { .. }) => {
                Err(NotTaken::Unfit(refused.to_string()))
            }
            Err(refused) => Err(NotTaken::Later(refused.to_string())),
        }
    }

    /// What goes along with the event.
    fn extra<'b>(
        &'b self,
        prefer_reply: bool,
        headers: &'b [(HeaderName, HeaderValue)],
    ) -> Extra<'b> {
        let trace = self.hop.map(|hop| &hop.trace);
        let state = trace.map(|trace| &*trace.state);
        Extra {
            traceparent: trace.map(|trace| &*trace.parent),
            tracestate: state.filter(|state| !state.is_empty()),
            request_id: self.envelope.request_id.as_deref(),
            hops_left: Some(self.envelope.hops_left),
            prefer_reply,
            headers,
        }
    }

    /// Why the subscriber is not called: what it said last time found no room here, and would find none now.
    fn reply_has_no_room(&self) -> Option<AttemptResult> {
        let to_log = matches!(self.plan.reply, Target::Entry(_)) && !self.job.is_sink();
        if !to_log
            || self.job.attempts == 0
            || !self
                .consumer
                .lock()
                .retries
                .backpressure
                .contains(self.job.offset)
        {
            return None;
        }
        let log = &self.shared.log;
        log.survey();
        let room = log.room().borrow().clone();
        room.low.then(|| AttemptResult::Backpressured {
            why: format!(
                "its reply would not be accepted: {}",
                AppendRefused::Low(Box::new(room))
            ),
            called: false,
        })
    }
}

/// The same trace, one step further.
struct Hop {
    /// `None` for a context that was kept by a version which was less strict.
    span: Option<Span>,
    /// The id of the span before.
    parent: Option<u64>,
    trace: TraceContext,
}

impl Hop {
    fn after(shared: &Shared, trace: &TraceContext) -> Self {
        let before = Span::read(&trace.parent);
        let span = before.map(|before| before.child(&shared.chance));
        let parent = span.map(|span| span.to_string().into());
        Self {
            span,
            parent: before.map(|before| before.id()),
            trace: TraceContext {
                parent: parent.unwrap_or_else(|| trace.parent.clone()),
                state: trace.state.clone(),
            },
        }
    }
}

/// The event for the external sink, with Knative's words for what went wrong.
fn sink_event(plan: &DeliveryPlan, event: &Event, dead: Option<&journal::Dead>) -> Event {
    let destination = plan.destination.as_deref().unwrap_or_default();
    let code = dead.map_or(0, |dead| i32::from(dead.attempted.status));
    let answer = dead.map(|dead| dead.answer.as_slice()).unwrap_or_default();
    let answer = BASE64_STANDARD.encode(&answer[..answer.len().min(ANSWER_BYTES_MAX)]);
    event.with(&[
        (
            "knativeerrordest",
            (!destination.is_empty()).then_some(Value::Text(destination)),
        ),
        ("knativeerrorcode", Some(Value::Integer(code))),
        (
            "knativeerrordata",
            (!answer.is_empty()).then_some(Value::Text(&answer)),
        ),
    ])
}
