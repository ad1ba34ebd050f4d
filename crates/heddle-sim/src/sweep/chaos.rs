//! The fault layer: a tower service between the controllers' client and the API server.
//!
//! Writes and watch events are numbered as they pass, over restarts of the controllers; a fault strikes one
//! number. A crash is played by never answering: whoever runs the controllers is told, and starts them anew.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{StreamExt as _, stream};
use heddle_apiserver::{ApiServer, InProcess};
use heddle_rt::Clock;
use heddle_rt::net::receive::RequestBody;
use heddle_store::{Listing, ResourceVersion};
use http::{Method, Request, Response, StatusCode};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;

/// What tells the lists that fill caches from those that a reconcile reads for itself: the size of a page that kube's watcher
/// asks for. The trial of a controller that trusts its cache fails when this is no longer so.
const CACHE_PAGE: &str = "limit=500";

/// How long a frozen view lasts. Longer than any back-off of a controller.
const FROZEN_SECONDS: u64 = 120;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    Write {
        number: usize,
        fault: WriteFault,
    },
    Event {
        number: usize,
        fault: EventFault,
    },
    /// After the story, the controllers restart and see what caches are filled from, lists in pages and watches, as it was
    /// then; what a reconcile reads for itself is live.
    StaleRestart {
        revision: usize,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteFault {
    CrashBefore,
    CrashAfter,
    /// Carried out, but the caller is told that it failed.
    ReplyLost,
    Refused(u16),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventFault {
    Dropped,
    Doubled,
    Expired,
}

/// What can happen to one write. Being told to come later and being told of an error are the same to a client that tries
/// again, so they take turns.
pub(super) fn write_faults(number: usize) -> [WriteFault; 5] {
    [
        WriteFault::CrashBefore,
        WriteFault::CrashAfter,
        WriteFault::ReplyLost,
        WriteFault::Refused(409),
        WriteFault::Refused(if number.is_multiple_of(2) { 500 } else { 429 }),
    ]
}

pub(super) const EVENT_FAULTS: [EventFault; 3] = [
    EventFault::Dropped,
    EventFault::Doubled,
    EventFault::Expired,
];

/// What the layer has seen and still has to do. Shared by all lives of the controllers.
#[derive(Debug)]
pub(super) struct Chaos {
    server: ApiServer,
    clock: Clock,
    fault: Option<Fault>,
    seen: Mutex<Seen>,
    pub crash: Notify,
}

#[derive(Debug, Default)]
struct Seen {
    writes: usize,
    events: usize,
    /// Every resource as it was after each write that passed, oldest first.
    revisions: Vec<HashMap<Arc<str>, Listing>>,
    frozen: Option<usize>,
}

impl Chaos {
    pub(super) fn new(server: ApiServer, clock: Clock, fault: Option<Fault>) -> Arc<Self> {
        Arc::new(Self {
            server,
            clock,
            fault,
            seen: Mutex::default(),
            crash: Notify::new(),
        })
    }

    pub(super) fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    pub(super) fn counts(&self) -> (usize, usize, usize) {
        let seen = self.seen.lock();
        (seen.writes, seen.events, seen.revisions.len())
    }

    /// Remembers how everything looks now; users' writes call this as well.
    pub(super) fn remember(&self) {
        let store = self.server.store();
        let resources = store.counts();
        let revision = resources
            .into_iter()
            .map(|(name, _)| (Arc::clone(&name), store.list(&name, None)))
            .collect();
        self.seen.lock().revisions.push(revision);
    }

    /// From now on lists and watches show the asked revision, until `thaw`.
    pub(super) fn freeze(&self) {
        if let Some(Fault::StaleRestart { revision }) = self.fault {
            self.seen.lock().frozen = Some(revision);
        }
    }

    pub(super) async fn thaw(&self) {
        if self.seen.lock().frozen.is_some() {
            self.clock
                .sleep(std::time::Duration::from_secs(FROZEN_SECONDS))
                .await;
            self.seen.lock().frozen = None;
        }
    }

    fn strikes_write(&self) -> Option<WriteFault> {
        let passing = next_number(&mut self.seen.lock().writes);
        match self.fault {
            Some(Fault::Write { number, fault }) if number == passing => Some(fault),
            _ => None,
        }
    }

    fn strikes_event(&self) -> Option<EventFault> {
        let passing = next_number(&mut self.seen.lock().events);
        match self.fault {
            Some(Fault::Event { number, fault }) if number == passing => Some(fault),
            _ => None,
        }
    }
}

/// Counts one more, and says which it is.
fn next_number(count: &mut usize) -> usize {
    *count += 1;
    *count - 1
}

/// The service handed to the controllers' client.
#[derive(Debug, Clone)]
pub(super) struct Layer {
    pub inner: InProcess,
    pub chaos: Arc<Chaos>,
}

impl<B: RequestBody + 'static> tower::Service<Request<B>> for Layer {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let mut inner = self.inner.clone();
        let chaos = Arc::clone(&self.chaos);
        Box::pin(async move {
            // Leases and Events are bookkeeping: they are neither counted nor struck.
            let path = request.uri().path();
            if path.contains("/leases") || path.contains("/events") {
                return tower::Service::call(&mut inner, request).await;
            }
            let query = request.uri().query().unwrap_or_default();
            if query.contains("watch=true") {
                return watch(&chaos, &mut inner, request).await;
            }
            // A trial writes nothing, and goes on for ever.
            if request.method() != Method::GET && !query.contains("dryRun=") {
                return write(&chaos, &mut inner, request).await;
            }
            if let Some(stale) = stale_list(&chaos, &request) {
                return Ok(stale);
            }
            tower::Service::call(&mut inner, request).await
        })
    }
}

async fn write<B: RequestBody + 'static>(
    chaos: &Chaos,
    inner: &mut InProcess,
    request: Request<B>,
) -> Result<Response<Body>, Infallible> {
    match chaos.strikes_write() {
        None => {
            let response = tower::Service::call(inner, request).await;
            chaos.remember();
            response
        }
        Some(WriteFault::Refused(code)) => Ok(refusal(code)),
        Some(WriteFault::ReplyLost) => {
            tower::Service::call(inner, request).await?;
            chaos.remember();
            Ok(refusal(500))
        }
        Some(fault) => {
            if fault == WriteFault::CrashAfter {
                tower::Service::call(inner, request).await?;
                chaos.remember();
            }
            chaos.crash.notify_one();
            std::future::pending().await
        }
    }
}

/// What an API server answers that was told to fail.
pub fn refusal(code: u16) -> Response<Body> {
    let reason = match code {
        409 => "Conflict",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        _ => "InternalError",
    };
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "injected", "reason": reason, "code": code,
    });
    let mut response = Response::new(Body::from(status.to_string()));
    *response.status_mut() = StatusCode::from_u16(code).expect("a valid code");
    response
}

/// A list as it was at the frozen revision.
fn stale_list<B>(chaos: &Chaos, request: &Request<B>) -> Option<Response<Body>> {
    let query = request.uri().query().unwrap_or_default();
    if !query.split('&').any(|part| part == CACHE_PAGE) {
        return None;
    }
    let seen = chaos.seen.lock();
    let revision = seen.revisions.get(seen.frozen?)?;
    let (resource, namespace) = collection(request.uri().path())?;
    let resource = chaos
        .server
        .registry()
        .find(resource.0, resource.1, resource.2)?;
    let listing = revision.get(&resource.storage);
    let version = revision
        .values()
        .map(|listing| listing.version)
        .max()
        .unwrap_or(ResourceVersion::new(0));
    let items: Vec<Value> = listing
        .into_iter()
        .flat_map(|listing| &listing.items)
        .filter(|item| namespace.is_none_or(|namespace| &*item.key.namespace == namespace))
        .filter_map(|item| serde_json::from_slice(&item.json()).ok())
        .collect();
    let list = json!({
        "kind": resource.list_kind(), "apiVersion": resource.api_version(),
        "metadata": {"resourceVersion": version.to_string()}, "items": items,
    });
    Some(Response::new(Body::from(list.to_string())))
}

type Collection<'a> = ((&'a str, &'a str, &'a str), Option<&'a str>);

/// The resource and namespace of a list path; `None` for a single object.
fn collection(path: &str) -> Option<Collection<'_>> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    match parts.as_slice() {
        ["api", version, plural] => Some((("", version, plural), None)),
        ["api", version, "namespaces", namespace, plural] => {
            Some((("", version, plural), Some(namespace)))
        }
        ["apis", group, version, plural] => Some(((group, version, plural), None)),
        ["apis", group, version, "namespaces", namespace, plural] => {
            Some(((group, version, plural), Some(namespace)))
        }
        _ => None,
    }
}

/// Lets a watch through line by line, so that single events can be struck.
async fn watch<B: RequestBody + 'static>(
    chaos: &Arc<Chaos>,
    inner: &mut InProcess,
    request: Request<B>,
) -> Result<Response<Body>, Infallible> {
    while chaos.seen.lock().frozen.is_some() {
        chaos.clock.sleep(std::time::Duration::from_secs(1)).await;
    }
    let (parts, body) = tower::Service::call(inner, request).await?.into_parts();
    let chaos = Arc::clone(chaos);
    let lines = body
        .into_data_stream()
        .flat_map(|chunk| stream::iter(lines(&chunk.unwrap_or_default())));
    let struck = lines
        .map(move |line| {
            if is_event(&line) {
                strike(chaos.strikes_event(), line)
            } else {
                (line, false)
            }
        })
        .scan(false, |over, (line, last)| {
            let ended = std::mem::replace(over, last);
            futures::future::ready((!ended).then_some(line))
        })
        .filter(|line| futures::future::ready(!line.is_empty()))
        .map(Ok::<_, Infallible>);
    Ok(Response::from_parts(parts, Body::from_stream(struck)))
}

/// The line to send, and whether the stream ends with it.
fn strike(fault: Option<EventFault>, line: Bytes) -> (Bytes, bool) {
    match fault {
        None => (line, false),
        Some(EventFault::Dropped) => (Bytes::new(), false),
        Some(EventFault::Doubled) => ([&line[..], &line[..]].concat().into(), false),
        Some(EventFault::Expired) => {
            let status = json!({"type": "ERROR", "object": {
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "too old resource version", "reason": "Expired", "code": 410,
            }});
            ((status.to_string() + "\n").into(), true)
        }
    }
}

fn lines(chunk: &[u8]) -> Vec<Bytes> {
    chunk
        .split_inclusive(|byte| *byte == b'\n')
        .map(Bytes::copy_from_slice)
        .collect()
}

fn is_event(line: &[u8]) -> bool {
    !line.starts_with(b"{\"type\":\"BOOKMARK\"") && !line.starts_with(b"{\"type\":\"ERROR\"")
}
