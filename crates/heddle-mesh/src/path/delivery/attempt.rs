//! One attempt at an event: read it, send it, and lead its reply where replies go.
//!
//! What came of it is only told. Settling that, with a line in the journal, is left to the consumer, and so is when to try
//! again. Dropping an attempt halfway settles nothing: the event is still the consumer's to deliver, and so shutting down is
//! never a failed attempt.

mod load;
mod own;
mod reply;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use futures::FutureExt as _;
use heddle_api::attributes::{Attributes as _, Value};
use http::{HeaderName, HeaderValue};
use jiff::Timestamp;

use super::courier::{Extra, Outcome, Reply};
use super::job::{Job, JobKind};
use super::plan::{DeliveryPlan, Target};
use super::sending::SendingRoom;
use super::signing::{MessageSigning, message_id};
use crate::envelope::{Cause, Envelope, TraceContext};
use crate::event::Event;
use crate::faults::Suffers;
use crate::heartbeat;
use crate::journal::{BadReply, Dead};
use crate::log::{AppendRefused, Lookup, Unavailable};
use crate::observer::{Attempted, Seen};
use crate::path::{channel, dead_letter};
use crate::shared::Shared;
use crate::span::Span;
use load::load;

/// Of the answer's body, what fits into 1024 characters of base64: existing consumers of dead letters expect no more.
pub(crate) const ANSWER_BYTES_MAX: usize = 768;

/// Why an event rests that nobody can read any more.
pub(crate) const DAMAGED: &str = "its record in the log is damaged and its bytes are lost";

/// Why a reply that calls itself a heartbeat goes nowhere.
const RESERVED: &str = "its type is reserved for heddle's own heartbeats";

/// Why an event was not appended to another place of this mesh.
enum NotTaken {
    /// It never will be, for what it is.
    Unfit(String),
    Later(String),
}

/// What came of an attempt.
#[derive(Debug)]
pub(crate) enum AttemptResult {
    Delivered {
        status: u16,
        /// What came back for it and could not go on.
        bad_reply: Option<Box<BadReply>>,
    },
    Failed(FailedAttempt),
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

/// How an attempt failed.
#[derive(Debug)]
pub(crate) struct FailedAttempt {
    pub(crate) status: u16,
    /// Whether another attempt could help.
    pub(crate) again: bool,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) error: String,
    pub(crate) answer: Bytes,
}

impl AttemptResult {
    fn delivered(status: u16) -> Self {
        Self::Delivered {
            status,
            bad_reply: None,
        }
    }

    fn again(error: impl Into<String>) -> Self {
        Self::failed(error.into(), true)
    }

    fn never(error: impl Into<String>) -> Self {
        Self::failed(error.into(), false)
    }

    /// Without an answer.
    fn failed(error: String, again: bool) -> Self {
        Self::Failed(FailedAttempt {
            status: 0,
            again,
            retry_after: None,
            error,
            answer: Bytes::new(),
        })
    }
}

/// An attempt that was made, or found that it could not be.
pub(crate) struct FinishedAttempt<'a> {
    pub(crate) result: AttemptResult,
    /// The event's record; empty when it cannot be read.
    pub(crate) payload: Bytes,
    pub(crate) accepted_at: Timestamp,
    pub(crate) latency: Duration,
    pub(crate) at: Timestamp,
    /// The same by the monotonic clock.
    pub(crate) ended: Duration,
    /// Held until what came of the attempt is settled.
    pub(crate) room: SendingRoom<'a>,
}

/// Attempts a job of the consumer with that key. When the event cannot be read for now, nothing was attempted.
pub(crate) async fn run<'a>(
    shared: &'a Arc<Shared>,
    consumer: &str,
    job: &mut Job,
    plan: &'a DeliveryPlan,
) -> Result<FinishedAttempt<'a>, Unavailable> {
    let found = load(shared, job, plan).await?;
    let begun = shared.clock.monotonic();
    let result = match &found {
        Lookup::Damaged => AttemptResult::never(DAMAGED),
        Lookup::Gone => AttemptResult::never("its record is gone from the log"),
        Lookup::Found(loaded) => {
            if job.attempts == 0 && job.kind == JobKind::Event && !plan.of_heartbeats {
                let now = shared.clock.now();
                shared.metrics.first_attempt(loaded.accepted_at, now);
            }
            let attempt = attempt(shared, consumer, job, plan, &loaded.payload);
            let attempt = AssertUnwindSafe(attempt);
            // A panic is a bug of ours in one attempt, and no reason to lose the event or the lane.
            let result = attempt.catch_unwind().await;
            result
                .unwrap_or_else(|_| Ok(AttemptResult::again("heddle panicked while sending it")))?
        }
    };
    let ended = shared.clock.monotonic();
    let latency = ended.saturating_sub(begun);
    let at = shared.clock.now();
    if !plan.of_heartbeats {
        shared.metrics.attempted(latency);
    }
    let (payload, accepted_at, room) = match found.found() {
        Some(loaded) => (loaded.payload, loaded.accepted_at, loaded.room),
        None => (Bytes::new(), at, SendingRoom::Unneeded),
    };
    let delivered = matches!(result, AttemptResult::Delivered { .. });
    if delivered && job.kind == JobKind::Event && !plan.of_heartbeats {
        shared.metrics.delivered(accepted_at, at);
    }
    Ok(FinishedAttempt {
        result,
        payload,
        accepted_at,
        latency,
        at,
        ended,
        room,
    })
}

async fn attempt(
    shared: &Arc<Shared>,
    consumer: &str,
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
    if plan.of_heartbeats {
        return Ok(attempt.stamped(&plan.target, &envelope.event).await);
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
    /// Its key.
    consumer: &'a str,
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
            AttemptResult::Failed(failed) => (failed.status, Some(failed.error.as_str())),
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
            consumer: self.consumer,
            sink: self.job.is_sink(),
            number: self.job.attempts + 1,
            status,
            error,
        });
        done
    }

    /// Sends a heartbeat, and leaves a mark on the board.
    async fn stamped(&self, target: &Target, event: &Event) -> AttemptResult {
        let heartbeats = &self.shared.heartbeats;
        let _turn = heartbeats.attempted(self.consumer, event.id()).await;
        let done = self.send(target, event).await;
        if let AttemptResult::Failed(FailedAttempt { error: why, .. })
        | AttemptResult::Backpressured { why, .. } = &done
        {
            heartbeats.failed(self.consumer, event.id(), why);
        }
        done
    }

    async fn send(&self, target: &Target, event: &Event) -> AttemptResult {
        match self
            .shared
            .faults
            .suffers(&self.envelope.entry, self.consumer)
        {
            Suffers::Nothing => {}
            Suffers::Failure => return AttemptResult::again("failed by fault injection"),
            Suffers::Delay(by) => self.shared.clock.sleep(by).await,
        }
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
        // A sink is somebody else's, and what goes there is not what the publisher said.
        let signer = plan.signer.as_deref().filter(|_| !self.job.is_sink());
        let signer = signer.map(|signer| (signer, message_id(event.source(), event.id())));
        let signing = signer.as_ref().map(|(signer, id)| MessageSigning {
            signer,
            id,
            clock: &shared.clock,
        });
        let extra = Extra {
            signing,
            ..self.extra(wants_reply, headers)
        };
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
            } => AttemptResult::Failed(FailedAttempt {
                status,
                again: retry,
                retry_after,
                error: format!("the subscriber answered {status}"),
                answer,
            }),
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
        if heartbeat::is_reserved(event.type_()) {
            return Err(NotTaken::Unfit(RESERVED.to_owned()));
        }
        let Some(hops_left) = self.envelope.hops_left.checked_sub(1) else {
            let why = "it has passed too many brokers: there is a loop";
            return Err(NotTaken::Unfit(why.to_owned()));
        };
        let onward = Envelope {
            entry: (&**entry).into(),
            hops_left,
            cause: Some(Cause {
                offset: self.job.offset,
                consumer: self.consumer.into(),
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
            signing: None,
        }
    }

    /// Why the subscriber is not called: what it said last time found no room here, and would find none now.
    fn reply_has_no_room(&self) -> Option<AttemptResult> {
        let to_log = matches!(self.plan.reply, Target::Entry(_)) && !self.job.is_sink();
        if !to_log || !self.job.backpressured {
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
fn sink_event(plan: &DeliveryPlan, event: &Event, dead: Option<&Dead>) -> Event {
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
