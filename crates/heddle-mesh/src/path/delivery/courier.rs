//! The courier: carries one event to one place and reports what became of it.
//!
//! One call is one attempt. It has one time limit, from waiting for a connection to the last byte of the answer, and it
//! always ends with a [`Report`]: nothing a destination does makes it wait longer, take more memory than an event may
//! have and the budget of the process allows, or go elsewhere, for redirects are not followed. Of what came with an event
//! only the event travels on, its trace context and the id of its request; no credential that was shown to heddle is
//! shown to anybody else.
//!
//! A connection that rested and turns out to be closed is replaced without a word, once, and only if nothing was heard on
//! it. That may deliver twice what a destination took without answering, which at-least-once delivery allows.
//! When to try, how often, and what follows is left to the broker; the rules for it are in
//! [`policy`](super::retry_policy).

mod probe;
mod unfit;

use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use heddle_api::duck::DeliveryFormat;
use heddle_rt::budget::{Class, Lease};
use heddle_rt::net::dial::{Connect, Place};
use heddle_rt::net::own::OwnListener;
use heddle_rt::vfs::is_exhausted;
use heddle_rt::{Budget, Clock, OnError, Tasks};
use http::header::{RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use http_body_util::Full;
use tokio::sync::SemaphorePermit;

use super::address::Parsed;
pub use super::address::{Address, BadAddress};
use super::answer::{ANSWER_BYTES_MAX, DRAIN_TIME_MAX, DeliveryOutcome, End, Reader, verdict};
use super::pool::{
    self, Body, HttpResponse, Limits, OriginConnection, OriginPool, Outgoing, PoolDeps, Unanswered,
};
use super::retry_after::retry_after;
use super::sending::Sending;
use super::signing::MessageSigning;
use crate::event::http as ce;
use crate::event::{Event, Form};
use crate::journal::{BadReply, REPLY_BYTES_MAX};
use crate::path::source::handshake;
pub(crate) use probe::{ProbeOutcome, ProbeRequest};
use unfit::Unfit;

static PREFER: HeaderName = HeaderName::from_static("prefer");
static REPLY: HeaderValue = HeaderValue::from_static("reply");
static TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
static TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// How many brokers the event may still pass, for a door of ours that it reaches on a way nobody can see through, such as a
/// forwarder. It is no part of the event.
/// How the text begins that says that a destination took too long.
pub(crate) const NO_ANSWER_WITHIN: &str = "no answer within";

pub(crate) static HOPS_LEFT: HeaderName = HeaderName::from_static("heddle-hops-left");
static HEDDLE: HeaderValue = HeaderValue::from_static("heddle");

/// What a courier works with.
#[derive(Clone, Debug)]
pub struct CourierOptions {
    /// Looks after the connections that rest, and carries those of HTTP/2. A delivery under way ends with whoever waits for it.
    pub tasks: Tasks,
    pub clock: Clock,
    pub connect: Arc<dyn Connect>,
    pub limits: Limits,
    /// What a reply may be.
    pub replies: ce::Limits,
    /// What replies being read, and events being sent, are leased from.
    pub budget: Budget,
}

/// Carries events. Cheap to clone; clones share connections.
#[derive(Clone, Debug)]
pub struct Courier {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    deps: PoolDeps,
    replies: ce::Limits,
    budget: Budget,
    sending: Sending,
}

/// What is sent besides the event.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extra<'a> {
    /// W3C trace context. Text that cannot be a header is left out.
    pub traceparent: Option<&'a str>,
    pub tracestate: Option<&'a str>,
    /// What the publisher called its request.
    pub request_id: Option<&'a str>,
    /// How many brokers the event may still pass.
    pub hops_left: Option<u8>,
    /// Says that an event in the answer is welcome.
    pub prefer_reply: bool,
    /// Headers that belong to the destination, such as `WebHook-Request-Origin`.
    pub headers: &'a [(HeaderName, HeaderValue)],
    /// What signs it, headers and body as they are sent.
    pub signing: Option<MessageSigning<'a>>,
}

/// What became of one attempt.
#[derive(Debug)]
pub struct Report {
    pub outcome: Outcome,
    pub latency: Duration,
    /// The right to hold the reply.
    pub held: Option<Lease>,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Delivered.
    Accepted { status: u16, reply: Reply },
    /// Answered, and not with success.
    Refused {
        status: u16,
        /// Whether this status may be different next time.
        retry: bool,
        /// What a 429 or 503 asked for.
        retry_after: Option<Duration>,
        /// The beginning of the body, at most [`ANSWER_BYTES_MAX`] bytes.
        answer: Bytes,
    },
    /// The destination wants no more events, ever (410).
    Gone,
    /// No answer, or none that could be understood: to be tried again.
    Failed { error: String },
    /// The address is the events listener of this process. Nothing was sent, for there is a shorter way.
    OwnListener,
    /// Nothing was sent: this machine had too little to connect with. The destination is not to blame.
    Unsent { error: String },
}

/// What came with the success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    None,
    Event(Event),
    /// Something that says it is an event and is not. Asking again would not make it one.
    Bad(Box<BadReply>),
}

impl Outcome {
    /// Whether the destination did its part, be it to say no: what a [`Breaker`](super::breaker::Breaker) counts as success.
    #[must_use]
    pub fn answered(&self) -> bool {
        match self {
            Self::Accepted { .. } | Self::Gone | Self::OwnListener => true,
            Self::Refused { retry, .. } => !retry,
            Self::Failed { .. } | Self::Unsent { .. } => false,
        }
    }
}

/// An answer, and the right to read it.
struct Heard<'a> {
    answer: HttpResponse,
    /// Held until the body is read.
    _turn: SemaphorePermit<'a>,
}

impl Courier {
    /// A courier, and a task that closes connections which rest for too long.
    #[must_use]
    pub fn new(options: CourierOptions) -> Self {
        let inner = Arc::new(Inner {
            deps: PoolDeps {
                tasks: options.tasks.clone(),
                clock: options.clock.clone(),
                connect: options.connect,
                limits: options.limits,
                outgoing: Arc::new(Outgoing::new(options.limits.all_max)),
            },
            replies: options.replies,
            sending: Sending::new(options.budget.clone()),
            budget: options.budget,
        });
        let courier = Arc::downgrade(&inner);
        let pause = (options.limits.idle_timeout / 2).max(Duration::from_millis(100));
        let sweeping = async move {
            loop {
                options.clock.sleep(pause).await;
                let Some(inner) = courier.upgrade() else {
                    return;
                };
                inner.deps.outgoing.sweep();
            }
        };
        options
            .tasks
            .spawn("close idle connections", OnError::Report, sweeping);
        Self { inner }
    }

    /// Reads an address once for all deliveries to it. Whoever holds it keeps its connections open.
    pub fn address(&self, url: &str, ca_certs: Option<&str>) -> Result<Arc<Address>, BadAddress> {
        let parsed = Parsed::new(url, ca_certs)?;
        let pool = self.inner.pool(&parsed.place);
        Ok(Arc::new(parsed.with(pool)))
    }

    /// Room for events while they are sent.
    pub(crate) fn sending(&self) -> &Sending {
        &self.inner.sending
    }

    /// Makes one attempt. Without `form` the event is sent in the form in which it came.
    pub async fn send(
        &self,
        to: &Address,
        event: &Event,
        form: Option<DeliveryFormat>,
        extra: &Extra<'_>,
        timeout: Duration,
    ) -> Report {
        let clock = &self.inner.deps.clock;
        let start = clock.monotonic();
        let form = form.unwrap_or_else(|| match event.form() {
            Form::Structured => DeliveryFormat::Json,
            Form::Binary => DeliveryFormat::Binary,
        });
        let asking = ask(to, Say::Event(event, form), extra);
        let mut held = None;
        let outcome = match clock.timeout(timeout, asking).await {
            Ok(Ok(heard)) => {
                let left = timeout.saturating_sub(clock.monotonic().saturating_sub(start));
                let judging = self.inner.judge(to, heard.answer, left, &mut held);
                judging.await
            }
            Ok(Err(Unsent::OwnListener)) => Outcome::OwnListener,
            Ok(Err(Unsent::Failed(error))) => Outcome::Failed { error },
            Ok(Err(Unsent::Exhausted(error))) => Outcome::Unsent { error },
            Err(late) => Outcome::Failed {
                error: format!("{NO_ANSWER_WITHIN} {:?}", late.0),
            },
        };
        let latency = clock.monotonic().saturating_sub(start);
        Report {
            outcome,
            latency,
            held,
        }
    }

    /// Asks a destination something by its exact URL, with these headers and no body. Any answer is one, also a redirect.
    pub async fn options(
        &self,
        to: &Address,
        headers: &[(HeaderName, HeaderValue)],
        timeout: Duration,
    ) -> Result<(u16, HeaderMap), String> {
        let extra = Extra {
            headers,
            ..Extra::default()
        };
        let asking = ask(to, Say::Options, &extra);
        let answer = match self.inner.deps.clock.timeout(timeout, asking).await {
            Ok(Ok(heard)) => heard.answer,
            // We do consent to what we send ourselves.
            Ok(Err(Unsent::OwnListener)) => return Ok((200, consent_to(headers))),
            Ok(Err(Unsent::Failed(error) | Unsent::Exhausted(error))) => return Err(error),
            Err(late) => return Err(format!("{NO_ANSWER_WITHIN} {:?}", late.0)),
        };
        let reader = Reader::drain(answer.body);
        self.inner.read(to, reader, DRAIN_TIME_MAX).await;
        Ok((answer.status.as_u16(), answer.headers))
    }
}

/// What is said to a destination.
#[derive(Clone, Copy)]
enum Say<'a> {
    Event(&'a Event, DeliveryFormat),
    Options,
}

/// Why there is no answer.
enum Unsent {
    OwnListener,
    Failed(String),
    /// There was no connection to say it over, for want of something that this machine has too little of.
    Exhausted(String),
}

impl From<io::Error> for Unsent {
    fn from(error: io::Error) -> Self {
        if OwnListener::is_cause_of(&error) {
            return Self::OwnListener;
        }
        if is_exhausted(&error) {
            let words = in_words(&error);
            return Self::Exhausted(format!("no connection could be opened: {words}"));
        }
        Self::Failed(in_words(&error))
    }
}

/// What our own door says to somebody who asks for its consent.
fn consent_to(asked: &[(HeaderName, HeaderValue)]) -> HeaderMap {
    handshake(&asked.iter().cloned().collect())
        .into_parts()
        .0
        .headers
}

/// Says it and waits for the head of the answer.
async fn ask<'a>(to: &'a Address, say: Say<'_>, extra: &Extra<'_>) -> Result<Heard<'a>, Unsent> {
    let turn = to.pool.turn().await;
    let mut line = to.pool.line().await?;
    // A new connection is never stale, so this ends.
    loop {
        let answered = match line {
            OriginConnection::Single(mut single) => {
                let body = write(to, say, extra, single.output());
                single.send(&body).await
            }
            OriginConnection::Shared(sender) => {
                pool::send_shared(sender, request(to, say, extra)).await
            }
        };
        match answered {
            Ok(answer) => {
                return Ok(Heard {
                    answer,
                    _turn: turn,
                });
            }
            Err(Unanswered::Failed(error)) => return Err(Unsent::Failed(in_words(&error))),
            Err(Unanswered::Stale) => line = to.pool.fresh().await?,
        }
    }
}

/// Writes the head of a request in HTTP/1 and gives its body.
fn write(to: &Address, say: Say<'_>, extra: &Extra<'_>, head: &mut Vec<u8>) -> Bytes {
    let method: &[u8] = match say {
        Say::Event(..) => b"POST",
        Say::Options => b"OPTIONS",
    };
    head.extend_from_slice(method);
    head.extend_from_slice(&to.opening);
    let body = match say {
        Say::Event(event, DeliveryFormat::Json) => ce::write_structured_head(event, head),
        Say::Event(event, DeliveryFormat::Binary) => ce::write_binary_head(event, head),
        Say::Options => Bytes::new(),
    };
    write!(head, "content-length: {}\r\n", body.len()).expect("a vector takes all bytes");
    if let Some(hops_left) = extra.hops_left {
        write!(head, "{HOPS_LEFT}: {hops_left}\r\n").expect("a vector takes all bytes");
    }
    extra.each(&body, |name, value| {
        field(head, name.as_str(), value.as_bytes())
    });
    head.extend_from_slice(b"\r\n");
    body
}

fn field(head: &mut Vec<u8>, name: &str, value: &[u8]) {
    for part in [name.as_bytes(), b": ", value, b"\r\n"] {
        head.extend_from_slice(part);
    }
}

/// The request in HTTP/2.
fn request(to: &Address, say: Say<'_>, extra: &Extra<'_>) -> Request<Full<Bytes>> {
    let mut headers = HeaderMap::new();
    let (method, body) = match say {
        Say::Event(event, DeliveryFormat::Json) => {
            (Method::POST, ce::write_structured(event, &mut headers))
        }
        Say::Event(event, DeliveryFormat::Binary) => {
            (Method::POST, ce::write_binary(event, &mut headers))
        }
        Say::Options => (Method::OPTIONS, Bytes::new()),
    };
    headers.insert(USER_AGENT, HEDDLE.clone());
    if let Some(hops_left) = extra.hops_left {
        headers.insert(HOPS_LEFT.clone(), u16::from(hops_left).into());
    }
    extra.each(&body, |name, value| {
        headers.insert(name.clone(), value.clone());
    });
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    *request.uri_mut() = to.whole.clone();
    *request.headers_mut() = headers;
    request
}

impl Extra<'_> {
    /// Everything but the hops as headers. Signatures are of the body with which they are sent.
    fn each(&self, body: &[u8], mut header: impl FnMut(&HeaderName, &HeaderValue)) {
        if self.prefer_reply {
            header(&PREFER, &REPLY);
        }
        let texts = [
            (&TRACEPARENT, self.traceparent),
            (&TRACESTATE, self.tracestate),
            (&REQUEST_ID, self.request_id),
        ];
        for (name, text) in texts {
            if let Some(Ok(value)) = text.map(HeaderValue::from_str) {
                header(name, &value);
            }
        }
        for (name, value) in self.headers {
            header(name, value);
        }
        if let Some(signing) = &self.signing {
            for (name, value) in signing.headers(body) {
                header(name, &value);
            }
        }
    }
}

impl Inner {
    /// Reads what the answer's status makes worth reading and says what it means.
    async fn judge(
        &self,
        to: &Address,
        answer: HttpResponse,
        left: Duration,
        held: &mut Option<Lease>,
    ) -> Outcome {
        let status = answer.status.as_u16();
        // The status says it all already; the rest of the answer does not get all the time there is.
        let patience = left.min(DRAIN_TIME_MAX);
        match verdict(status) {
            DeliveryOutcome::Delivered { may_reply } => {
                // What is no event by its head does not become one by its body.
                let claims = || ce::reply(&answer.headers, &Bytes::new(), &self.replies);
                if may_reply {
                    match claims() {
                        Ok(None) => {}
                        // Nor does what is in a form that is not read here.
                        Err(refused) if refused.status == StatusCode::UNSUPPORTED_MEDIA_TYPE => {
                            return self.judge_unfit(to, answer, patience, refused.into()).await;
                        }
                        Ok(Some(_)) | Err(_) => {
                            return self.judge_reply(to, answer, left, held).await;
                        }
                    }
                }
                self.read(to, Reader::drain(answer.body), patience).await;
                let reply = Reply::None;
                Outcome::Accepted { status, reply }
            }
            DeliveryOutcome::Gone => {
                self.read(to, Reader::drain(answer.body), patience).await;
                Outcome::Gone
            }
            DeliveryOutcome::Refused { retry } => {
                let retry_after = self.retry_after(&answer);
                let reader = Reader::beginning(answer.body, ANSWER_BYTES_MAX);
                let kept = self.read(to, reader, patience).await;
                Outcome::Refused {
                    status,
                    retry,
                    retry_after,
                    // A copy, for a slice would hold on to the whole buffer of the connection.
                    answer: Bytes::copy_from_slice(&kept),
                }
            }
        }
    }

    /// Delivered, with a reply. A reply that was cut off is asked for again: nobody else knows what it was.
    async fn judge_reply(
        &self,
        to: &Address,
        answer: HttpResponse,
        left: Duration,
        held: &mut Option<Lease>,
    ) -> Outcome {
        let mode = ce::mode(&answer.headers);
        let bytes_max = mode.map_or(0, |mode| self.replies.body_bytes_max(mode));
        if answer.body.announced() > bytes_max as u64 {
            let patience = left.min(DRAIN_TIME_MAX);
            let why = Unfit::too_large(bytes_max);
            return self.judge_unfit(to, answer, patience, why).await;
        }
        let HttpResponse {
            status,
            headers,
            body,
        } = answer;
        let lease = self.budget.lease(Class::Reply, to.holder.clone());
        let mut reader = Reader::whole(body, bytes_max, lease);
        let end = self.read_within(&mut reader, left).await;
        *held = reader.take_lease();
        let (kept, body) = reader.into_parts();
        let failed = |error| Outcome::Failed { error };
        let reply = match &end {
            Some(End::Whole) => self.reply(&headers, &kept),
            Some(End::TooLong) => Unfit::too_large(bytes_max).reply(&headers, &kept),
            Some(End::Broken(error)) => {
                return failed(format!("the reply was cut off: {}", in_words(error)));
            }
            None => return failed("the reply did not end in time".to_owned()),
        };
        let status = status.as_u16();
        rest(to, body, end.as_ref());
        Outcome::Accepted { status, reply }
    }

    fn reply(&self, headers: &HeaderMap, body: &Bytes) -> Reply {
        match ce::reply(headers, body, &self.replies) {
            Ok(event) => event.map_or(Reply::None, Reply::Event),
            Err(refused) => Unfit::from(refused).reply(headers, body),
        }
    }

    /// Delivered, with what cannot be a reply whatever is in it. Its beginning is for people.
    async fn judge_unfit(
        &self,
        to: &Address,
        answer: HttpResponse,
        patience: Duration,
        why: Unfit,
    ) -> Outcome {
        let reader = Reader::beginning(answer.body, REPLY_BYTES_MAX);
        let kept = self.read(to, reader, patience).await;
        Outcome::Accepted {
            status: answer.status.as_u16(),
            reply: why.reply(&answer.headers, &kept),
        }
    }

    /// Reads a body that changes nothing about the outcome, and gives what was kept of it.
    async fn read(&self, to: &Address, mut reader: Reader, patience: Duration) -> Bytes {
        let end = self.read_within(&mut reader, patience).await;
        let (kept, body) = reader.into_parts();
        rest(to, body, end.as_ref());
        kept
    }

    /// Reads a body; without an end when the time was up.
    async fn read_within(&self, reader: &mut Reader, patience: Duration) -> Option<End> {
        if reader.is_at_end() {
            return Some(End::Whole);
        }
        let reading = self.deps.clock.timeout(patience, reader.read());
        reading.await.ok()
    }

    fn retry_after(&self, answer: &HttpResponse) -> Option<Duration> {
        let asks = [
            StatusCode::TOO_MANY_REQUESTS,
            StatusCode::SERVICE_UNAVAILABLE,
        ];
        if !asks.contains(&answer.status) {
            return None;
        }
        retry_after(answer.headers.get(RETRY_AFTER)?, self.deps.clock.now())
    }

    fn pool(&self, place: &Place) -> Arc<OriginPool> {
        let make = || OriginPool::new(self.deps.clone(), place.clone());
        self.deps.outgoing.pool(place, make)
    }
}

/// Lets a connection rest whose answer was read to the end.
fn rest(to: &Address, body: Body, end: Option<&End>) {
    if matches!(end, Some(End::Whole)) {
        to.pool.rest(body);
    }
}

/// An error with its causes, for whoever looks after the destination.
fn in_words(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| {
        let cause = cause.to_string();
        // Some errors already speak for their cause.
        if text.contains(&cause) {
            text
        } else {
            format!("{text}: {cause}")
        }
    })
}

#[cfg(test)]
mod tests;
