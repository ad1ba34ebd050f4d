//! The layer around everything: one line for each change, written before the answer goes out.
//!
//! ```text
//!   cannot be recorded            507 or 503, and nothing is done, unless it is a way out of that (`RecordNeed`)
//!   done, then not recorded       507 or 503: an answer with 2xx is on disk
//!   refused, then not recorded    the refusal as it is
//!   left before the answer        a line that says so, which nobody waits for
//! ```
//! The handler runs in the task of its connection and is dropped with it, while a commit that it began goes on. The line is
//! held by a guard for that reason: dropped, it writes itself.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use heddle_api::audit::{AuditDoor, AuditEntry, AuditOutcome, ChangeNote, bounded};
use heddle_apiserver::ApiServer;
use heddle_rt::net::Peer;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde_json::json;

use super::change::{self, AuditedChange, RecordNeed};
use super::noted::{AuditCaller, AuditSlip};
use super::{AuditLog, Unrecordable};
use crate::session::LoggedIn;

/// As much as is kept of what a client calls itself, and of the id it gave its request.
const HEADER_BYTES_MAX: usize = 128;
/// Names a request; the second is what platforms send.
const REQUEST_IDS: [HeaderName; 2] = [
    HeaderName::from_static("x-request-id"),
    HeaderName::from_static("x-broker-api-request-identity"),
];
/// When to come back after a full disk, in seconds.
const RETRY_AFTER: u16 = 5;

/// What the layer needs.
#[derive(Clone, Debug)]
pub(crate) struct AuditDoorway {
    pub(crate) log: AuditLog,
    pub(crate) server: ApiServer,
}

/// Records what a request changes.
pub(crate) async fn record(
    State(doorway): State<AuditDoorway>,
    mut request: Request,
    next: Next,
) -> Response {
    let change = AuditedChange::of(&doorway.server, request.method(), request.uri());
    let Some(AuditedChange { mut entry, need }) = change else {
        return next.run(request).await;
    };
    if let Err(fault) = doorway.log.is_recordable().await
        && need.forbids(&fault)
    {
        doorway.log.missed();
        let message = format!("nothing was changed, because it could not be recorded: {fault}");
        return unrecorded(entry.door, &fault, &message);
    }
    describe(&mut entry, &request);
    let slip = AuditSlip::default();
    request.extensions_mut().insert(slip.clone());
    let line = UnwrittenLine {
        log: doorway.log,
        slip,
        entry: Some(entry),
    };
    let response = next.run(request).await;
    line.write(response, need).await
}

/// What the head of a request says of where it comes from.
fn describe(entry: &mut AuditEntry, request: &Request) {
    let headers = request.headers();
    let peer = request.extensions().get::<Peer>();
    entry.address = peer.map(|peer| peer.address.ip().to_canonical().to_string());
    entry.user_agent = text(headers, &header::USER_AGENT);
    entry.request_id = REQUEST_IDS.iter().find_map(|name| text(headers, name));
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?;
    (!value.is_empty()).then(|| bounded(value, HEADER_BYTES_MAX))
}

/// A line whose end is not known yet.
struct UnwrittenLine {
    log: AuditLog,
    slip: AuditSlip,
    entry: Option<AuditEntry>,
}

impl UnwrittenLine {
    /// Writes the line and hands out the answer, or what has to be said instead.
    async fn write(mut self, response: Response, need: RecordNeed) -> Response {
        let Some(mut entry) = self.entry.take() else {
            return response;
        };
        self.slip.add_to(&mut entry);
        if let Some(logged_in) = response.extensions().get::<LoggedIn>() {
            let caller = AuditCaller {
                identity: logged_in.identity.clone(),
                impersonator: None,
                session: false,
            };
            caller.add_to(&mut entry);
        }
        let note = response.extensions().get::<ChangeNote>().cloned();
        let note = note.unwrap_or_default();
        if note.is_question {
            return response;
        }
        let status = note.status.unwrap_or_else(|| response.status().as_u16());
        change::add(&mut entry, note);
        entry.status = Some(status);
        entry.outcome = AuditOutcome::of(status);
        let (door, was_done) = (entry.door, entry.outcome == AuditOutcome::Done);
        match self.log.record(entry).await {
            Err(fault) if was_done && need.forbids(&fault) => {
                let message = format!("it was carried out and could not be recorded: {fault}");
                unrecorded(door, &fault, &message)
            }
            _ => response,
        }
    }
}

impl Drop for UnwrittenLine {
    fn drop(&mut self) {
        if let Some(mut entry) = self.entry.take() {
            self.slip.add_to(&mut entry);
            self.log.record_left(entry);
        }
    }
}

/// Says that a change is missing from the log, as whoever asked expects to be told.
fn unrecorded(door: AuditDoor, fault: &Unrecordable, message: &str) -> Response {
    let (status, reason, remedy) = match fault {
        Unrecordable::Full => (
            StatusCode::INSUFFICIENT_STORAGE,
            "InsufficientStorage",
            "make room on the disk of the data directory; deletions and discards are carried out all the same",
        ),
        Unrecordable::Exhausted(_) => (
            StatusCode::SERVICE_UNAVAILABLE,
            "ServiceUnavailable",
            "try again",
        ),
        Unrecordable::Broken(_) => (
            StatusCode::SERVICE_UNAVAILABLE,
            "ServiceUnavailable",
            "look at the disk, and restart the server",
        ),
    };
    let message = format!("{message}; {remedy}");
    let body = match door {
        AuditDoor::Broker => json!({"error": reason, "description": message}),
        AuditDoor::Resources => json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "reason": reason, "code": status.as_u16(), "message": message,
        }),
        _ => json!({"code": "unrecordable", "message": message}),
    };
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        ),
        (header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER)),
    ];
    (status, headers, body.to_string()).into_response()
}
