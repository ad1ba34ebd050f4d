//! Hop 1: accept a CloudEvent over HTTP; answer only after hop 2 is durable.
//!
//! ```text
//!   POST    /{application}/events          202   the event is on disk
//!   POST    /broker/{namespace}/{name}     4xx   the event cannot be taken as it is: what is wrong with it
//!   POST    /channel/{namespace}/{name}    429   too much at once            507  no room    (both say when to come back)
//!   OPTIONS the same paths                       the handshake of the webhook specification
//!   GET, POST /heddle/v1/webhook-consent/{token} the consent of a subscriber that was asked for it and answers later
//! ```
//! The publish API of old Kyma is served beside these paths, by [`legacy`].
//!
//! Everything a stranger sends is bounded before it is kept. Who it is has been found out before this hop; whether they
//! may publish here is asked twice, before the body is read and, where a policy has filters, for each event.

mod consent;
pub mod legacy;
mod refusal;
pub(crate) mod refused_log;
pub(crate) mod republish;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use heddle_rt::net::hear_out::hear_out_short;
use heddle_rt::net::receive::{Account, AnyBody, Intake, RequestBody, receive};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};

use crate::envelope::{Envelope, HOPS_MAX, TraceContext};
use crate::event::Event;
use crate::event::http::{Limits, Received};
use crate::heartbeat;
use crate::log::Offset;
use crate::metrics::DoorKind;
use crate::observer::{Accepted, Seen};
use crate::path::channel;
use crate::path::delivery::courier::HOPS_LEFT;
use crate::routes::Door;
use crate::shared::{InForce, Shared};
use crate::span::Span;
use crate::who::{self, Who};
use heddle_api::attributes::Attributes as _;
use heddle_api::well_known::INTEGRATION_NAMESPACE;
use legacy::LegacySettings;
use refusal::PublishError;

/// Knative's name for how many brokers an event may still pass.
const HOPS_ATTRIBUTE: &str = "knativebrokerttl";

/// The service behind the events listener. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Source {
    shared: Arc<Shared>,
    limits: Limits,
    legacy: LegacySettings,
}

impl Source {
    pub(crate) fn new(shared: Arc<Shared>, limits: Limits) -> Self {
        Self {
            shared,
            limits,
            legacy: LegacySettings::default(),
        }
    }

    /// Takes a request of somebody and answers it. What is refused is heard out first if it is short: whoever is answered in
    /// the middle of a sentence finds the connection closed, and may never read why.
    pub async fn handle<B: RequestBody>(
        &self,
        who: &Who,
        request: Request<B>,
    ) -> Response<Full<Bytes>> {
        let (parts, body) = request.into_parts();
        let mut body = std::pin::pin!(body.map_err(|error| error.to_string()));
        let response = self.answer(who, &parts, body.as_mut()).await;
        if !response.status().is_success() {
            hear_out_short(body, &self.shared.clock).await;
        }
        response
    }

    async fn answer(&self, who: &Who, parts: &Parts, body: AnyBody<'_>) -> Response<Full<Bytes>> {
        if let Some(call) = legacy::call(parts.uri.path()) {
            return self.legacy(who, call, parts, body).await;
        }
        let begun = self.shared.clock.monotonic();
        let door = match path(parts.uri.path()) {
            Some(door) => door,
            None => {
                let refusal = refusal::no_such_path();
                self.remember(who, parts, parts.uri.path(), &refusal);
                return refusal.response();
            }
        };
        if parts.method == Method::OPTIONS {
            return handshake(&parts.headers);
        }
        if parts.method != Method::POST {
            let refusal = refusal::method_not_allowed(&parts.method);
            self.remember(who, parts, &door.entry(), &refusal);
            return refusal.response();
        }
        let kind = door.kind();
        let entry = self.entry(who, &door);
        let place = entry
            .as_ref()
            .map_or_else(|_| self.known(&door), |entry| Some(Arc::clone(entry)));
        let accepted = match entry {
            Ok(entry) => self.accept(who, &entry, parts, body, begun).await,
            Err(refusal) => Err(refusal),
        };
        let (response, events) = match accepted {
            Ok(events) => (accepted_response(), events),
            Err(refusal) => {
                self.remember(who, parts, &door.entry(), &refusal);
                (refusal.response(), 1)
            }
        };
        let took = self.shared.clock.monotonic().saturating_sub(begun);
        let status = response.status().as_u16();
        // Numbers are about what others publish.
        if !who.is_prober() {
            let metrics = &self.shared.metrics;
            metrics.published(kind, place.as_ref(), status, events, took);
        }
        response
    }

    async fn accept(
        &self,
        who: &Who,
        entry: &Arc<str>,
        parts: &Parts,
        body: AnyBody<'_>,
        begun: Duration,
    ) -> Result<u64, PublishError> {
        let headers = &parts.headers;
        let mode = crate::event::http::mode(headers)?;
        let account = account(who, parts);
        let bytes_max = self.limits.body_bytes_max(mode);
        // Held until the events are on disk: they are slices of it.
        let body = receive(body, bytes_max, account).await?;
        let taken = self.take(who, entry, headers, &body.bytes, begun).await;
        taken.map_err(|refusal| refusal.seen_in(mode, &body.bytes))
    }

    /// Takes what was received whole.
    async fn take(
        &self,
        who: &Who,
        entry: &Arc<str>,
        headers: &HeaderMap,
        body: &Bytes,
        begun: Duration,
    ) -> Result<u64, PublishError> {
        let (received, unencoded) = crate::event::http::read_counting(headers, body, &self.limits)?;
        self.shared.metrics.unencoded(unencoded);
        let trace = trace_context(headers);
        let request_id = request_id(headers);
        let hops = hops(headers);
        match received {
            Received::One(event) => {
                self.admit(who, entry, std::slice::from_ref(&event))?;
                let coming = match who {
                    Who::Prober | Who::EdgeProber => Coming::default(),
                    _ => self.coming(trace, &event),
                };
                let mut envelope = envelope(entry, coming.trace, event, hops)?;
                envelope.request_id = request_id.map(Into::into);
                let offsets = channel::append(&self.shared, &envelope).await?;
                self.tell(&envelope, coming.span, offsets.start, begun);
                Ok(1)
            }
            Received::Batch(events) if events.is_empty() => Ok(0),
            Received::Batch(events) => {
                self.admit(who, entry, &events)?;
                let mut envelopes = Vec::with_capacity(events.len());
                let mut spans = Vec::new();
                for event in events {
                    let coming = self.coming(trace.clone(), &event);
                    spans.extend(coming.span.map(|span| (envelopes.len(), span)));
                    let mut envelope = envelope(entry, coming.trace, event, hops)?;
                    envelope.request_id = request_id.map(Into::into);
                    envelopes.push(envelope);
                }
                let offsets = channel::append_all(&self.shared, &envelopes).await?;
                for (index, span) in spans {
                    let offset = offsets.start + index as u64;
                    self.tell(&envelopes[index], Some(span), offset, begun);
                }
                Ok(envelopes.len() as u64)
            }
        }
    }

    /// The place in a trace at which an event comes.
    ///
    /// Headers say what the hop before this one was, and win over the attribute, which says where the trace began.
    fn coming(&self, carried: Option<TraceContext>, event: &Event) -> Coming {
        if self.shared.observer.is_none() {
            return Coming {
                trace: carried,
                span: None,
            };
        }
        let carried = carried.or_else(|| attribute_context(event));
        let parent = carried
            .as_ref()
            .and_then(|carried| Span::read(&carried.parent));
        if parent.is_some_and(|parent| !parent.is_sampled()) {
            return Coming {
                trace: carried,
                span: None,
            };
        }
        let chance = &self.shared.chance;
        let span = parent.map_or_else(|| Span::first(chance), |parent| parent.child(chance));
        let trace = TraceContext {
            parent: span.to_string().into(),
            state: carried.map(|carried| carried.state).unwrap_or_default(),
        };
        Coming {
            trace: Some(trace),
            span: Some((span, parent.map(|parent| parent.id()))),
        }
    }

    /// Tells whoever watches that an event was accepted.
    fn tell(
        &self,
        envelope: &Envelope,
        span: Option<(Span, Option<u64>)>,
        offset: Offset,
        begun: Duration,
    ) {
        let (Some(observer), Some((span, parent))) = (&self.shared.observer, span) else {
            return;
        };
        let clock = &self.shared.clock;
        observer.accepted(&Accepted {
            seen: Seen {
                span,
                parent,
                state: envelope.trace.as_ref().map_or("", |trace| &trace.state),
                event: &envelope.event,
                offset,
                ended: clock.now(),
                took: clock.monotonic().saturating_sub(begun),
            },
            entry: &envelope.entry,
        });
    }

    /// The place that somebody wanted to publish to, when it is not open: an Application that exists has one by its name.
    fn known(&self, door: &Path<'_>) -> Option<Arc<str>> {
        let Path::Application(name) = door else {
            return None;
        };
        let in_force = self.shared.in_force.load();
        in_force.table.application(name)?;
        Some(format!("channel/{INTEGRATION_NAMESPACE}/{name}").into())
    }

    /// The entry behind a path, if it is open to them. Who may not publish there does not learn whether it exists.
    fn entry(&self, who: &Who, door: &Path<'_>) -> Result<Arc<str>, PublishError> {
        let in_force = self.shared.in_force.load();
        if !in_force.ready {
            return Err(refusal::starting());
        }
        if let Who::Application(_) = who {
            let entry = door.entry();
            who::may_enter(who, &in_force.table, &entry)
                .map_err(|denied| refusal::forbidden(who, &entry, denied, None))?;
        }
        // What it shows may be read by whoever ends TLS before this listener, so it is good for nothing else.
        if *who == Who::EdgeProber && door.entry() != heartbeat::canary::CHANNEL {
            return Err(refusal::not_the_probe());
        }
        if cfg!(feature = "fault-injection") && self.shared.faults.refuses(&door.entry()) {
            return Err(refusal::starting());
        }
        match door {
            // No door leads there but the probers'.
            Path::Entry(_, place) if who.is_prober() => {
                let found = in_force.table.entry(place);
                let found = found.map(|entry| Arc::clone(&entry.name));
                found.ok_or_else(refusal::starting)
            }
            _ => door.open(&in_force),
        }
    }

    /// Whether these events may be published, all of them.
    fn admit(&self, who: &Who, entry: &str, events: &[Event]) -> Result<(), PublishError> {
        let index_of = |index: usize| (events.len() > 1).then_some(index as u64);
        let mut reserved = events
            .iter()
            .map(|event| heartbeat::is_reserved(event.type_()));
        if *who == Who::EdgeProber && !reserved.all(|reserved| reserved) {
            return Err(refusal::not_the_probe());
        }
        if !who.is_prober()
            && let Some(index) = reserved.position(|reserved| reserved)
        {
            return Err(refusal::type_reserved(
                events[index].type_(),
                index_of(index),
            ));
        }
        let Who::Application(_) = who else {
            return Ok(());
        };
        let in_force = self.shared.in_force.load();
        for (index, event) in events.iter().enumerate() {
            who::may(who, &in_force.table, entry, event)
                .map_err(|denied| refusal::forbidden(who, entry, denied, index_of(index)))?;
        }
        Ok(())
    }
}

/// On whose account a request is received. Whoever said who they are has one of their own.
fn account<'a>(who: &'a Who, parts: &'a Parts) -> Option<Account<'a>> {
    let intake = Intake::of(&parts.extensions)?;
    Some(match who {
        Who::Application(name) => intake.account_of(name),
        Who::Administrator => intake.account_of(ADMINISTRATOR),
        Who::Anonymous | Who::Prober | Who::EdgeProber => intake.account(),
    })
}

/// No Application is called that.
const ADMINISTRATOR: &str = "administrator/";

/// How an event comes.
#[derive(Default)]
struct Coming {
    /// What is kept with it.
    trace: Option<TraceContext>,
    /// Its span and the id of the span before it, when somebody watches.
    span: Option<(Span, Option<u64>)>,
}

/// What a path means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path<'a> {
    Application(&'a str),
    /// `broker/NAMESPACE/NAME` or `channel/NAMESPACE/NAME`, which is the entry's name too.
    Entry(DoorKind, &'a str),
}

impl Path<'_> {
    /// The entry that it leads to, if there is one.
    fn entry(&self) -> Cow<'_, str> {
        match self {
            Self::Application(name) => format!("channel/{INTEGRATION_NAMESPACE}/{name}").into(),
            Self::Entry(_, place) => (*place).into(),
        }
    }

    /// The entry that it leads to, if that is there.
    fn open(&self, in_force: &InForce) -> Result<Arc<str>, PublishError> {
        match self {
            Self::Application(name) => match in_force.table.application(name) {
                Some(Door::Open { entry }) => Ok(Arc::clone(entry)),
                Some(Door::NotReady { reason }) => {
                    Err(refusal::application_not_ready(name, reason))
                }
                None => Err(refusal::no_application(name)),
            },
            Self::Entry(kind, place) => {
                let found = in_force.table.entry(place);
                let found = found.filter(|entry| !heartbeat::canary::is_part(&entry.name));
                let found = found.map(|entry| Arc::clone(&entry.name));
                found.ok_or_else(|| refusal::no_entry(*kind, place))
            }
        }
    }

    fn kind(&self) -> DoorKind {
        match self {
            Self::Application(_) => DoorKind::Application,
            Self::Entry(kind, _) => *kind,
        }
    }
}

/// The entry behind a path of this listener, for who needs not ask at the door; or what the door would answer.
pub(crate) fn place_at(in_force: &InForce, at: &str) -> Result<Arc<str>, (StatusCode, String)> {
    let door = path(at).ok_or_else(refusal::no_such_path);
    door.and_then(|door| door.open(in_force))
        .map_err(|refusal| {
            let (status, told) = refusal.into_parts();
            (status, told.message)
        })
}

fn path(path: &str) -> Option<Path<'_>> {
    let place = path.strip_prefix('/')?;
    let mut parts = place.split('/');
    let parts = [parts.next(), parts.next(), parts.next(), parts.next()];
    match parts {
        [Some("broker"), Some(namespace), Some(name), None]
            if !namespace.is_empty() && !name.is_empty() =>
        {
            Some(Path::Entry(DoorKind::Broker, place))
        }
        [Some("channel"), Some(namespace), Some(name), None]
            if !namespace.is_empty() && !name.is_empty() =>
        {
            Some(Path::Entry(DoorKind::Channel, place))
        }
        // Those are the old API's, whatever Applications there are.
        [Some("v1" | "v2"), Some("events"), None, None] => None,
        [Some(application), Some("events"), None, None] if !application.is_empty() => {
            Some(Path::Application(application))
        }
        _ => None,
    }
}

/// The event with what is known about its coming. How far it may still go is for brokers to know, not for subscribers.
fn envelope(
    entry: &Arc<str>,
    trace: Option<TraceContext>,
    event: Event,
    hops: Option<i64>,
) -> Result<Envelope, PublishError> {
    let declared = event.text(HOPS_ATTRIBUTE).map(|text| {
        let hops: Result<i64, _> = text.parse();
        hops.map_err(|_| refusal::hops_unreadable(text))
    });
    let declared = declared.transpose()?;
    let event = match declared {
        None => event,
        Some(_) => event.with(&[(HOPS_ATTRIBUTE, None)]),
    };
    let hops_left = match hops.into_iter().chain(declared).min() {
        None => HOPS_MAX,
        Some(..=0) => return Err(refusal::loop_suspected()),
        Some(hops) => u8::try_from(hops - 1).unwrap_or(HOPS_MAX),
    };
    Ok(Envelope {
        entry: (&**entry).into(),
        hops_left,
        cause: None,
        trace,
        request_id: None,
        event,
    })
}

/// How many brokers the events of a request may still pass, if a mesh says so that delivered them here.
fn hops(headers: &HeaderMap) -> Option<i64> {
    let hops: u8 = headers.get(&HOPS_LEFT)?.to_str().ok()?.parse().ok()?;
    Some(hops.into())
}

/// The longest id of a request that is carried on.
const REQUEST_ID_BYTES_MAX: usize = 128;

/// What the publisher calls its request, if that is short and can be shown to anybody.
fn request_id(headers: &HeaderMap) -> Option<&str> {
    let id = headers.get("x-request-id")?.to_str().ok()?;
    let plain = id.bytes().all(|byte| byte.is_ascii_graphic());
    (plain && (1..=REQUEST_ID_BYTES_MAX).contains(&id.len())).then_some(id)
}

/// The longest trace context that is carried on; the specification asks for 512 bytes of state.
const TRACE_BYTES_MAX: usize = 512;

fn trace_context(headers: &HeaderMap) -> Option<TraceContext> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    carried(text("traceparent"), text("tracestate"))
}

/// The context in the attributes of the extension for distributed tracing.
fn attribute_context(event: &Event) -> Option<TraceContext> {
    carried(event.text("traceparent"), event.text("tracestate"))
}

fn carried(parent: Option<&str>, state: Option<&str>) -> Option<TraceContext> {
    let short = |text: &&str| text.len() <= TRACE_BYTES_MAX;
    let parent = parent
        .filter(short)
        .filter(|parent| Span::read(parent).is_some())?;
    Some(TraceContext {
        parent: parent.into(),
        state: state.filter(short).unwrap_or_default().into(),
    })
}

fn accepted_response() -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

/// Consent to be sent events, for senders that ask first.
pub(super) fn handshake(headers: &HeaderMap) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    let answer = response.headers_mut();
    answer.insert(header::ALLOW, HeaderValue::from_static("POST, OPTIONS"));
    if let Some(origin) = headers.get("webhook-request-origin") {
        answer.insert("webhook-allowed-origin", origin.clone());
        answer.insert("webhook-allowed-rate", HeaderValue::from_static("*"));
    }
    response
}
