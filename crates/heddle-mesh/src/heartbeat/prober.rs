//! The task that sends heartbeats: one at a time, in the form in which everybody else publishes.
//!
//! Between two of them lies a pause, so that there is never a burst, however many are due. One of an Application is under
//! way at most; while it is, the next one is missed without being sent.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use heddle_api::ledger::ErrorBody;
use heddle_api::refusals as code;
use heddle_api::well_known::INTEGRATION_NAMESPACE;
use heddle_rt::OnError;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use jiff::{SignedDuration, Timestamp};

use super::board::{DueBeat, SourceRefusal};
use super::{EDGE, ProberDeps, TYPE, canary, channel_of, source_of};
use crate::hop;
use crate::path::source::Source;
use crate::shared::Shared;
use crate::who::Who;

/// Between two heartbeats: no more than fifty are sent in a second.
const PAUSE: Duration = Duration::from_millis(20);
/// Heartbeats that may be on their way to the log at once. Those of more Applications wait.
const IN_FLIGHT_MAX: usize = 256;

/// Refusals that say something about the log and nothing about the door.
const OF_THE_LOG: &[&str] = &[
    code::BUSY,
    code::STORAGE_FULL,
    code::STORAGE_LOW,
    code::LOG_EXHAUSTED,
    code::LOG_BROKEN,
    code::EVENT_TOO_LARGE,
];

/// Sends heartbeats until the mesh closes. Before the first table there is nothing to send.
pub(crate) async fn run(deps: ProberDeps) {
    let ProberDeps {
        shared,
        source,
        tasks,
    } = deps;
    let (clock, heartbeats) = (shared.clock.clone(), &shared.heartbeats);
    loop {
        let due = heartbeats.board.lock().next_due();
        let wait = due.map(|due| due.saturating_sub(clock.monotonic()));
        if wait != Some(Duration::ZERO) {
            tokio::select! {
                () = heartbeats.changed.notified() => {}
                () = clock.sleep(wait.unwrap_or_default()), if wait.is_some() => {}
            }
            continue;
        }
        if shared.closing.load(Ordering::Acquire) {
            return;
        }
        if tasks.running() < IN_FLIGHT_MAX {
            let outgoing = heartbeats.board.lock().take_due(clock.monotonic());
            if let Some(outgoing) = outgoing {
                let publishing = publish(Arc::clone(&shared), source.clone(), outgoing);
                tasks.spawn("heartbeat", OnError::Report, publishing);
            }
        }
        clock.sleep(PAUSE).await;
    }
}

async fn publish(shared: Arc<Shared>, source: Source, outgoing: DueBeat) {
    let DueBeat {
        application,
        sequence,
        lifetime,
    } = outgoing;
    let id = format!("{}-{sequence}", shared.heartbeats.run);
    let request = request(&application, &id, shared.clock.now(), lifetime);
    let response = source.handle(&Who::Prober, request).await;
    let refusal = refusal(&application, response).await;
    let heartbeats = &shared.heartbeats;
    heartbeats.published(&application, sequence, refusal);
}

/// A heartbeat of an Application that whoever is let in as [`Who::Prober`] may send, in an id of their own.
#[must_use]
pub fn smoke_request(
    application: &str,
    id: &str,
    now: Timestamp,
    lifetime: Duration,
) -> Request<Full<Bytes>> {
    request(application, id, now, lifetime)
}

/// What is sent through the public listener by whoever is let in as [`Who::EdgeProber`].
#[must_use]
pub fn edge_request(id: &str, now: Timestamp, lifetime: Duration) -> Request<Full<Bytes>> {
    request(EDGE, id, now, lifetime)
}

/// What a publisher would send.
fn request(
    application: &str,
    id: &str,
    now: Timestamp,
    lifetime: Duration,
) -> Request<Full<Bytes>> {
    let path = match application {
        canary::APPLICATION | EDGE => format!("/{}", canary::CHANNEL),
        _ => format!("/{application}/events"),
    };
    let lifetime = SignedDuration::try_from(lifetime).unwrap_or(SignedDuration::MAX);
    let expires = now.saturating_add(lifetime).unwrap_or(Timestamp::MAX);
    Request::post(path)
        .header("ce-specversion", "1.0")
        .header("ce-type", TYPE)
        .header("ce-source", source_of(application))
        .header("ce-id", id)
        .header("ce-expirytime", format!("{expires:.3}"))
        .body(Full::default())
        .expect("names of objects and numbers are fit for headers and paths")
}

/// Why it was not accepted, if it was not.
async fn refusal(application: &str, response: Response<Full<Bytes>>) -> Option<SourceRefusal> {
    let status = response.status();
    if status.is_success() {
        return None;
    }
    let body = response.into_body().collect().await;
    let body = body.map(|body| body.to_bytes()).unwrap_or_default();
    let body: ErrorBody = serde_json::from_slice(&body).unwrap_or_default();
    let of_the_log = OF_THE_LOG.contains(&&*body.code);
    let (hop, object) = match body.code.as_str() {
        _ if of_the_log => (hop::CHANNEL, channel_of(application)),
        code::APPLICATION_NOT_FOUND => (hop::SOURCE, format!("application/{application}")),
        _ if application == canary::APPLICATION => (hop::SOURCE, channel_of(application)),
        _ => (
            hop::SOURCE,
            format!("httpsource/{INTEGRATION_NAMESPACE}/{application}"),
        ),
    };
    Some(SourceRefusal {
        hop,
        object: object.into(),
        why: format!("{status}: {}", body.message).into(),
    })
}
