//! The one place where a refused publish becomes an answer. Each says what is wrong and what to do.

use std::time::Duration;

use bytes::Bytes;
use heddle_api::refusals as code;
use heddle_rt::net::receive::NotReceived;
use http::{HeaderValue, Method, Response, StatusCode, header};
use http_body_util::Full;

use super::refused_log::SeenEvent;
use crate::event::http::{Mode, Refused as NotAnEvent};
use crate::log::AppendRefused;
use crate::metrics::DoorKind;
use crate::who::{Denied, Who};

/// How long to wait before trying again: as long as a busy log takes to write what it has.
const AFTER_BUSY: Duration = Duration::from_secs(1);
/// Room does not come back by itself as fast.
const AFTER_FULL: Duration = Duration::from_secs(10);

/// Why a publish was refused.
#[derive(Debug)]
pub(super) struct PublishError {
    status: StatusCode,
    retry_after: Option<Duration>,
    body: heddle_api::ledger::ErrorBody,
    /// What is known of the event, where headers do not say it.
    seen: Option<Box<SeenEvent>>,
}

impl PublishError {
    pub(super) fn new(status: StatusCode, code: &str, message: impl Into<String>) -> Self {
        debug_assert!(code::is_known(code, status.as_u16()), "{status} {code}");
        Self {
            status,
            retry_after: None,
            body: heddle_api::ledger::ErrorBody {
                code: code.to_owned(),
                message: message.into(),
                ..heddle_api::ledger::ErrorBody::default()
            },
            seen: None,
        }
    }

    /// Remembers which event it was, as far as its body says.
    pub(super) fn seen_in(mut self, mode: Mode, body: &[u8]) -> Self {
        self.seen = Some(SeenEvent::in_body(mode, self.body.index, body).into());
        self
    }

    pub(super) fn seen(&self) -> Option<&SeenEvent> {
        self.seen.as_deref()
    }

    /// What is answered.
    pub(super) fn told(&self) -> (StatusCode, &heddle_api::ledger::ErrorBody) {
        (self.status, &self.body)
    }

    fn after(mut self, pause: Duration) -> Self {
        self.retry_after = Some(pause);
        self
    }

    #[cfg(test)]
    pub(super) fn at(mut self, index: Option<u64>) -> Self {
        self.body.index = index;
        self
    }

    fn about(mut self, attribute: &str) -> Self {
        self.body.attribute = Some(attribute.to_owned());
        self
    }

    /// The status and what is told, for who needs no response.
    pub(super) fn into_parts(self) -> (StatusCode, heddle_api::ledger::ErrorBody) {
        (self.status, self.body)
    }

    /// When to come again.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Whether it is about an Application that is there and takes no events yet.
    pub(super) fn is_application_not_ready(&self) -> bool {
        self.body.code == code::APPLICATION_NOT_READY
    }

    pub(super) fn response(&self) -> Response<Full<Bytes>> {
        let body = serde_json::to_vec(&self.body).expect("a refusal is texts and numbers");
        let mut response = Response::new(Full::new(Bytes::from(body)));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        if let Some(pause) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(pause.as_secs()));
        }
        if self.status == StatusCode::METHOD_NOT_ALLOWED {
            headers.insert(header::ALLOW, HeaderValue::from_static("POST, OPTIONS"));
        }
        response
    }
}

impl From<NotAnEvent> for PublishError {
    fn from(refused: NotAnEvent) -> Self {
        let mut refusal = Self::new(refused.status, refused.code, refused.message);
        refusal.body.attribute = refused.attribute;
        refusal.body.index = refused.index.map(|index| index as u64);
        refusal
    }
}

impl From<NotReceived> for PublishError {
    fn from(error: NotReceived) -> Self {
        match error {
            NotReceived::TooLarge(bytes_max) => too_large(bytes_max),
            NotReceived::Broken(error) => body_broken(&error),
            NotReceived::TooSlow => {
                let message = "the body arrived too slowly; send it again, at once";
                Self::new(StatusCode::REQUEST_TIMEOUT, code::BODY_TOO_SLOW, message)
            }
            NotReceived::NoRoom => {
                let message = "too many requests are being received at once; send it again";
                Self::new(StatusCode::SERVICE_UNAVAILABLE, code::OVERLOADED, message)
                    .after(AFTER_BUSY)
            }
        }
    }
}

impl From<AppendRefused> for PublishError {
    fn from(refused: AppendRefused) -> Self {
        let message = refused.to_string();
        match refused {
            AppendRefused::TooLarge { .. } => Self::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                code::EVENT_TOO_LARGE,
                message,
            ),
            AppendRefused::Busy => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, code::BUSY, message).after(AFTER_BUSY)
            }
            AppendRefused::Full => Self::new(
                StatusCode::INSUFFICIENT_STORAGE,
                code::STORAGE_FULL,
                message,
            )
            .after(AFTER_FULL),
            AppendRefused::Exhausted(_) => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                code::LOG_EXHAUSTED,
                message,
            )
            .after(AFTER_BUSY),
            AppendRefused::Low(room) => {
                let mut refusal =
                    Self::new(StatusCode::INSUFFICIENT_STORAGE, code::STORAGE_LOW, message)
                        .after(AFTER_FULL);
                refusal.body.message.push_str(
                    "; make room there or keep less free (eventsReserveMebibytes), it goes on by itself",
                );
                refusal.body.details = [
                    ("directory", room.dir.display().to_string().into()),
                    ("freeBytes", room.free_bytes.into()),
                    ("neededBytes", room.needed_bytes.into()),
                ]
                .map(|(name, value)| (name.to_owned(), value))
                .into();
                refusal
            }
            AppendRefused::Broken(_) => log_broken(
                message,
                "not-stored",
                "; nothing of this request was stored: send it again once the server has been restarted",
            ),
            // The write that failed may have reached the disk, and recovery keeps whatever is whole.
            AppendRefused::Undetermined(_) => log_broken(
                message,
                "unknown",
                "; whether this request was stored is known only after a restart: send it again with the same ids, it may \
                 then arrive twice",
            ),
        }
    }
}

fn log_broken(message: String, fate: &str, remedy: &str) -> PublishError {
    let message = message + remedy;
    let mut refusal = PublishError::new(StatusCode::SERVICE_UNAVAILABLE, code::LOG_BROKEN, message);
    refusal.body.details = [("fate".to_owned(), fate.into())].into();
    refusal
}

pub(super) fn no_such_path() -> PublishError {
    let message = "publish with POST to /{application}/events, /broker/{namespace}/{name} or /channel/{namespace}/{name}";
    PublishError::new(StatusCode::NOT_FOUND, code::NO_SUCH_PATH, message)
}

pub(super) fn method_not_allowed(method: &Method) -> PublishError {
    let message = format!("{method} means nothing here; publish with POST");
    PublishError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        code::METHOD_NOT_ALLOWED,
        message,
    )
}

pub(super) fn starting() -> PublishError {
    let message = "the mesh has no routes yet; it will have them in a moment";
    PublishError::new(StatusCode::SERVICE_UNAVAILABLE, code::STARTING, message).after(AFTER_BUSY)
}

pub(super) fn no_application(name: &str) -> PublishError {
    let message = format!("there is no Application {name:?}; apply one first, or correct the path");
    PublishError::new(StatusCode::NOT_FOUND, code::APPLICATION_NOT_FOUND, message)
}

pub(super) fn application_not_ready(name: &str, reason: &str) -> PublishError {
    let message = format!("the Application {name:?} takes no events: {reason}");
    PublishError::new(
        StatusCode::SERVICE_UNAVAILABLE,
        code::APPLICATION_NOT_READY,
        message,
    )
    .after(AFTER_BUSY)
}

pub(super) fn no_entry(kind: DoorKind, place: &str) -> PublishError {
    let place = place.split_once('/').map_or(place, |(_, place)| place);
    let kind = match kind {
        DoorKind::Channel => "Channel",
        DoorKind::Broker | DoorKind::Application => "Broker",
    };
    let message = format!("there is no {kind} {place}; apply one first, or correct the path");
    PublishError::new(StatusCode::NOT_FOUND, code::ENTRY_NOT_FOUND, message)
}

/// Known, and not allowed here.
pub(super) fn forbidden(
    who: &Who,
    entry: &str,
    denied: Denied,
    index: Option<u64>,
) -> PublishError {
    let subject = who.subject().unwrap_or_default();
    let namespace = entry.split('/').nth(1).unwrap_or_default();
    let message = match denied {
        Denied::NotGranted => format!(
            "{subject} may not publish to {entry}: an EventPolicy in {namespace} with spec.from sub {subject:?} would allow it"
        ),
        Denied::Filtered => format!(
            "{subject} may not publish this event to {entry}: the filters of the EventPolicies in {namespace} do not let it pass"
        ),
    };
    let mut refusal = PublishError::new(StatusCode::FORBIDDEN, code::FORBIDDEN, message);
    refusal.body.index = index;
    refusal
}

/// Only the mesh sends these.
pub(super) fn type_reserved(type_: &str, index: Option<u64>) -> PublishError {
    let message =
        format!("the type {type_:?} is reserved for heddle's own heartbeats; use another type");
    let mut refusal =
        PublishError::new(StatusCode::FORBIDDEN, code::TYPE_RESERVED, message).about("type");
    refusal.body.index = index;
    refusal
}

/// The probe's own credential, in somebody else's hands or for something else.
pub(super) fn not_the_probe() -> PublishError {
    let message =
        "these credentials are good for heddle's own heartbeat from outside and for nothing else";
    PublishError::new(StatusCode::FORBIDDEN, code::FORBIDDEN, message)
}

fn too_large(bytes_max: usize) -> PublishError {
    let message = format!(
        "the request is larger than {bytes_max} bytes; send less at once, or refer to the data"
    );
    PublishError::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        code::REQUEST_TOO_LARGE,
        message,
    )
}

fn body_broken(error: &str) -> PublishError {
    let message = format!("the body did not arrive whole: {error}");
    PublishError::new(StatusCode::BAD_REQUEST, code::BODY_INCOMPLETE, message)
}

pub(super) fn hops_unreadable(text: &str) -> PublishError {
    let message = format!("knativebrokerttl is {text:?}, which is no number");
    PublishError::new(StatusCode::BAD_REQUEST, code::ATTRIBUTE_INVALID, message)
        .about("knativebrokerttl")
}

pub(super) fn loop_suspected() -> PublishError {
    let message =
        "the event has passed too many brokers (knativebrokerttl is used up): look for a loop";
    PublishError::new(StatusCode::BAD_REQUEST, code::LOOP, message).about("knativebrokerttl")
}
