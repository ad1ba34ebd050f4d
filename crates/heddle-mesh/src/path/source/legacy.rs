//! The publish API of old Kyma, translated at the door: publishers that know no other go on as they are.
//!
//! ```text
//!   POST /{application}/v1/events            200  the event is on disk: {"event-id", "status", "reason"}
//!   POST /{application}/v2/events            4xx  in that API's own form (error), after its own checks (body)
//!   POST /v1/events, /v2/events              the same for publishers that name the Application in the body or in Source-Id
//!   GET  /{application}/v1/events/subscribed what Triggers ask for of that Application
//!   GET  /v1/health, /v1/status/ready        for probes: whoever asks needs no credentials
//! ```
//! An event goes on as any other: the same identities and policies, the same budget for bodies, the same log. What is
//! published here twice with one id within a while is appended once (repeats); the native door keeps no such promise.
//!
//! Invariant: a path is one API's or the other's, whatever Applications there are. `/v1/events` and `/v2/events` are this
//! API's, so Applications called `v1` and `v2` have no short native path; below `/broker/` and `/channel/` everything is
//! native, so Applications called `broker` and `channel` have no legacy path.

mod body;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod probes;
mod repeats;
mod translate;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use heddle_rt::net::receive::{AnyBody, NotReceived, receive};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use http_body_util::Full;
use serde_json::json;

use self::body::{BodyForm, LegacyBody};
use self::error::{LegacyError, METHOD_NOT_ALLOWED, NOT_FOUND};
pub(crate) use self::repeats::Repeats;
use self::repeats::{AppendedOnce, NotAppended};
use self::translate::{Translation, b3_context};
use super::refusal::PublishError;
use super::refused_log::SeenEvent;
use super::{Coming, Path, Source, account, envelope, hops, request_id, trace_context};
use crate::envelope::Envelope;
use crate::event::Event;
use crate::metrics::{DoorKind, LegacyApi};
use crate::who::Who;

/// How the old API is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LegacySettings {
    /// Whether what only one of the two generations of old servers took is refused.
    pub strict: bool,
    /// For how long an id that was published counts as published.
    pub repeat_window: Duration,
    /// The longest body.
    pub body_bytes_max: usize,
}

impl Default for LegacySettings {
    fn default() -> Self {
        Self {
            strict: false,
            repeat_window: Duration::from_secs(10 * 60),
            body_bytes_max: 64 * 1024,
        }
    }
}

/// What a path of this API means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LegacyCall<'a> {
    /// Without an Application it is named in the request.
    Publish(BodyForm, Option<&'a str>),
    Subscribed(&'a str),
    Health,
    Ready,
    /// Where this API would be if it had such a path.
    Nowhere,
}

/// The call that a path stands for; `None` is for the native door.
pub(super) fn call(path: &str) -> Option<LegacyCall<'_>> {
    let mut parts = path.strip_prefix('/')?.split('/');
    let parts: [Option<&str>; 5] = std::array::from_fn(|_| parts.next());
    let form = |version: &str| match version {
        "v1" => BodyForm::V1,
        _ => BodyForm::V2,
    };
    match parts {
        [Some("broker" | "channel" | ""), ..] => None,
        [Some("v1"), Some("health"), None, ..] => Some(LegacyCall::Health),
        [Some("v1"), Some("status"), Some("ready"), None, ..] => Some(LegacyCall::Ready),
        [Some(version @ ("v1" | "v2")), Some("events"), None, ..] => {
            Some(LegacyCall::Publish(form(version), None))
        }
        [
            Some(name),
            Some(version @ ("v1" | "v2")),
            Some("events"),
            None,
            _,
        ] => Some(LegacyCall::Publish(form(version), Some(name))),
        [
            Some(name),
            Some("v1"),
            Some("events"),
            Some("subscribed"),
            None,
        ] => Some(LegacyCall::Subscribed(name)),
        [Some("v1" | "v2"), ..] | [Some(_), Some("v1" | "v2"), Some("events"), ..] => {
            Some(LegacyCall::Nowhere)
        }
        _ => None,
    }
}

/// Why this listener does not answer whoever asks, in the form of the old API if the path is its own.
#[must_use]
pub fn refuse_at(path: &str, status: StatusCode, message: &str) -> Option<Response<Full<Bytes>>> {
    call(path)?;
    Some(LegacyError::at_the_gate(status, message).response())
}

/// What is learnt of a request on its way, for those who count.
#[derive(Debug, Default)]
struct LegacyUsage {
    application: Option<Box<str>>,
    place: Option<Arc<str>>,
    /// The entry that is asked for, whether it is there or not.
    door: Option<Box<str>>,
    seen: Option<SeenEvent>,
    lenient: bool,
    repeated: bool,
}

impl Source {
    /// The same source with another way to serve the old API.
    #[must_use]
    pub fn with_legacy(mut self, settings: LegacySettings) -> Self {
        self.legacy = settings;
        self
    }

    /// Answers a call of the old API.
    pub(super) async fn legacy(
        &self,
        who: &Who,
        call: LegacyCall<'_>,
        parts: &Parts,
        body: AnyBody<'_>,
    ) -> Response<Full<Bytes>> {
        let begun = self.shared.clock.monotonic();
        let mut usage = LegacyUsage::default();
        let answer = match call {
            LegacyCall::Publish(form, named) if parts.method == Method::POST => {
                if let Some(name) = named {
                    usage.meet(self, name);
                }
                self.publish_legacy(who, (form, named), parts, body, &mut usage)
                    .await
            }
            LegacyCall::Subscribed(name) if parts.method == Method::GET => {
                usage.meet(self, name);
                self.subscribed(who, name, &parts.headers)
            }
            LegacyCall::Nowhere => Err(nowhere()),
            _ => return self.probe_or_refuse(call, &parts.method),
        };
        let mut response = answer.unwrap_or_else(|error| {
            if !matches!(call, LegacyCall::Subscribed(_)) {
                let door = usage.door.as_deref().unwrap_or_else(|| parts.uri.path());
                let told = (error.status, &error.told());
                self.remember_told(who, parts, door, told, usage.seen.as_ref());
            }
            error.response()
        });
        // Who may not publish there does not learn whether it exists.
        if response.status() != StatusCode::FORBIDDEN {
            self.announce_end(&usage, response.headers_mut());
        }
        if !who.is_prober() {
            self.count(call, &usage, response.status().as_u16(), begun);
        }
        response
    }

    async fn publish_legacy(
        &self,
        who: &Who,
        (form, named): (BodyForm, Option<&str>),
        parts: &Parts,
        body: AnyBody<'_>,
        usage: &mut LegacyUsage,
    ) -> Result<Response<Full<Bytes>>, LegacyError> {
        let begun = self.shared.clock.monotonic();
        let headers = &parts.headers;
        let mut entry = match named {
            Some(name) => Some(self.entry(who, &Path::Application(name))?),
            None => None,
        };
        // Held until the event is on disk: it is made from slices of it.
        let received = receive(body, self.legacy_bytes_max(), account(who, parts)).await;
        let received = received.map_err(|error| match error {
            NotReceived::TooLarge(_) => LegacyError::too_large(),
            other => PublishError::from(other).into(),
        })?;
        if received.bytes.is_empty() {
            return Err(LegacyError::empty());
        }
        let body = LegacyBody::read(&received.bytes, form)?;
        let (bytes, source) = (received.bytes.len(), named.unwrap_or(&body.source));
        usage.seen = Some(SeenEvent::of_legacy(bytes, &body.id, source, &body.type_));
        let application = match named {
            Some(name) => Cow::Borrowed(name),
            None => named_in(&body, headers)?,
        };
        if entry.is_none() {
            usage.meet(self, &application);
            entry = Some(self.entry(who, &Path::Application(&application))?);
        }
        let entry = entry.expect("set above");
        usage.lenient = body.check(form, self.legacy.strict)?;
        let drawn;
        let id = match &*body.id {
            "" => {
                drawn = self.shared.chance.uuid();
                drawn.as_str()
            }
            given => given,
        };
        let translation = Translation {
            form,
            application: &application,
            id,
            headers,
            limits: &self.limits,
        };
        let (event, left_out) = translation.event(&body)?;
        if left_out && self.legacy.strict {
            return Err(LegacyError::bad_payload(
                "an extension has a name or a value that no attribute can have",
            ));
        }
        usage.lenient |= left_out;
        self.admit(who, &entry, std::slice::from_ref(&event))?;
        let coming = match who {
            Who::Prober | Who::EdgeProber => Coming::default(),
            _ => {
                let carried = trace_context(headers).or_else(|| b3_context(headers));
                self.coming(carried, &event)
            }
        };
        let mut envelope = envelope(&entry, coming.trace, event, hops(headers))?;
        envelope.request_id = request_id(headers).map(Into::into);
        let wanted = self.is_wanted(&entry, &envelope.event);
        let appended = self
            .append_once(&envelope, wanted, !body.id.is_empty())
            .await?;
        usage.repeated = appended.repeated;
        if !appended.repeated {
            self.tell(&envelope, coming.span, appended.offset, begun);
        }
        Ok(published(id, appended.wanted))
    }

    async fn append_once(
        &self,
        envelope: &Envelope,
        wanted: bool,
        has_id: bool,
    ) -> Result<AppendedOnce, LegacyError> {
        let window = has_id.then_some(self.legacy.repeat_window);
        let appended = self
            .shared
            .repeats
            .append(&self.shared, envelope, wanted, window);
        appended.await.map_err(|error| match error {
            NotAppended::Refused(refused) => PublishError::from(refused).into(),
            NotAppended::Unknown(unavailable) => LegacyError::unavailable(&format!(
                "whether this was published before cannot be looked up: {unavailable}; send it again"
            )),
            NotAppended::TooMany => {
                LegacyError::busy("too many events are being published at once; send it again")
            }
        })
    }

    /// Whether anybody wants the event, by the table that is in force now.
    fn is_wanted(&self, entry: &str, event: &Event) -> bool {
        self.shared.in_force.load().table.is_wanted(entry, event)
    }

    /// What Triggers ask for of an Application, for whoever may publish in its name.
    fn subscribed(
        &self,
        who: &Who,
        application: &str,
        headers: &HeaderMap,
    ) -> Result<Response<Full<Bytes>>, LegacyError> {
        match self.entry(who, &Path::Application(application)) {
            Ok(_) => {}
            // Its events may be asked for before it can publish any.
            Err(refused) if refused.is_application_not_ready() => {}
            Err(refused) => return Err(refused.into()),
        }
        let in_force = self.shared.in_force.load();
        let asked: Vec<_> = in_force
            .table
            .asked_of(application)
            .iter()
            .map(|(name, version)| json!({"name": name, "version": version}))
            .collect();
        let accepts = headers.get(header::ACCEPT);
        let accepts = accepts.and_then(|kinds| kinds.to_str().ok());
        let own = accepts.is_some_and(|kinds| kinds.contains(OWN_FORM));
        let body = match own {
            true => json!({"eventsInfo": asked, "events": asked}),
            false => json!({"eventsInfo": asked}),
        };
        Ok(error::in_json(StatusCode::OK, &body))
    }

    fn legacy_bytes_max(&self) -> usize {
        self.legacy.body_bytes_max.min(self.limits.event_bytes_max)
    }

    fn count(&self, call: LegacyCall<'_>, usage: &LegacyUsage, status: u16, begun: Duration) {
        let metrics = &self.shared.metrics;
        let api = match call {
            LegacyCall::Publish(BodyForm::V1, _) => LegacyApi::V1,
            LegacyCall::Publish(BodyForm::V2, _) => LegacyApi::V2,
            LegacyCall::Subscribed(_) => LegacyApi::Subscribed,
            LegacyCall::Health | LegacyCall::Ready | LegacyCall::Nowhere => return,
        };
        metrics.legacy(usage.place.as_deref(), api, status);
        if usage.lenient {
            metrics.legacy_lenient(usage.place.as_deref());
        }
        if usage.repeated {
            metrics.legacy_repeated(usage.place.as_deref());
        }
        // What was published before is no second event.
        if api != LegacyApi::Subscribed && !usage.repeated {
            let took = self.shared.clock.monotonic().saturating_sub(begun);
            metrics.published(DoorKind::Application, usage.place.as_ref(), status, 1, took);
        }
    }

    /// Says until when this API is there for an Application, if somebody said so.
    fn announce_end(&self, usage: &LegacyUsage, headers: &mut HeaderMap) {
        let Some(application) = &usage.application else {
            return;
        };
        let in_force = self.shared.in_force.load();
        for (name, value) in in_force.table.legacy_notice(application) {
            headers.append(name, value.clone());
        }
    }
}

impl LegacyUsage {
    /// The Application that a request is about, if there is one.
    fn meet(&mut self, source: &Source, name: &str) {
        self.door = Some(Path::Application(name).entry().into());
        self.place = source.known(&Path::Application(name));
        self.application = self.place.is_some().then(|| name.into());
    }
}

/// The media type with which a list of subscriptions has the name that the old documents gave it, too.
const OWN_FORM: &str = "application/vnd.heddle+json";

/// The Application of a publish without one in its path: from the body, or else from the header.
fn named_in<'a>(
    body: &'a LegacyBody<'_>,
    headers: &'a HeaderMap,
) -> Result<Cow<'a, str>, LegacyError> {
    let header = || headers.get("source-id").and_then(|id| id.to_str().ok());
    match &*body.source {
        "" => header().filter(|id| !id.is_empty()).map(Cow::Borrowed),
        source => Some(Cow::Borrowed(source)),
    }
    .ok_or_else(LegacyError::missing_source)
}

fn published(id: &str, wanted: bool) -> Response<Full<Bytes>> {
    let (status, reason) = match wanted {
        true => ("published", "Message successfully published to the channel"),
        false => (
            "ignored",
            "No Trigger wants this event; it is kept and can be traced",
        ),
    };
    let body = json!({"event-id": id, "status": status, "reason": reason});
    error::in_json(StatusCode::OK, &body)
}

fn nowhere() -> LegacyError {
    LegacyError::at_the_gate(StatusCode::NOT_FOUND, NOT_FOUND)
}

fn not_allowed(allowed: &'static str) -> Response<Full<Bytes>> {
    let status = StatusCode::METHOD_NOT_ALLOWED;
    let mut response = LegacyError::at_the_gate(status, METHOD_NOT_ALLOWED).response();
    let allowed = HeaderValue::from_static(allowed);
    response.headers_mut().insert(header::ALLOW, allowed);
    response
}
