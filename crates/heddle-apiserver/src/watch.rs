//! Watches: a position in the store's history and a filter, turned into lines of JSON.
//!
//! A slow reader costs nothing but its own delay: it holds a cursor, not a queue, and if the history moves past
//! it, it is told 410 and lists again. Selectors act on transitions: an object that stops matching is reported
//! as deleted, one that starts matching as added.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::{BufMut, Bytes, BytesMut};
use futures::stream;
use heddle_store::{Change, ChangeKind, Expired, Object, ResourceVersion, Watch};
use http::Response;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;

use crate::negotiate::{self, Form};
use crate::read::{forbidden, include_object, parse_version};
use crate::registry::Resource;
use crate::serve::{Call, bytes_response};
use crate::status::{Result, StatusError};
use crate::table::IncludeObject;
use crate::view::{self, Filter};
use crate::{Inner, events, object};

/// A bookmark at least this often, so that a quiet watch can resume from a recent version after a restart.
const BOOKMARK: Duration = Duration::from_secs(50);
/// The last bookmark comes this long before the end, so that whoever comes back resumes from a recent version.
const FAREWELL: Duration = Duration::from_secs(2);
/// A watch without its own limit ends here, so that clients come back and rebalance. kube-apiserver: 30 to 60 min.
const SECONDS_MAX: u64 = 1_800;
/// Changes that are ready together are sent together, up to about this many bytes.
const CHUNK_BYTES: usize = 64 * 1024;

pub(crate) fn watch(inner: &Arc<Inner>, call: Call) -> Result<Response<Body>> {
    let form = negotiate::form(&call.parts.headers)?;
    let include = include_object(&call)?;
    let params = &call.params;
    let mut field_selector = params.field_selector.clone();
    if let Some(name) = &call.name {
        let separator = if field_selector.is_empty() { "" } else { "," };
        field_selector = format!("{field_selector}{separator}metadata.name={name}");
    }
    let filter = Filter::parse(&call, &params.label_selector, &field_selector)?;
    let permit = Arc::clone(&inner.watches)
        .try_acquire_owned()
        .map_err(|_| StatusError::too_many_requests())?;
    let seconds = params
        .timeout_seconds
        .filter(|s| *s > 0)
        .unwrap_or(SECONDS_MAX);
    let now = inner.clock.monotonic();
    let until = now + Duration::from_secs(seconds);
    let mut stream = Stream {
        inner: Arc::clone(inner),
        resource: Arc::clone(&call.resource),
        filter,
        form,
        include,
        bookmarks: params.bookmarks,
        until,
        bookmark_at: next_bookmark(now, until),
        described: false,
        phase: Phase::Over,
        _permit: permit,
    };
    stream.phase = match start(inner, &call) {
        Ok(phase) => phase,
        // Too old is not an HTTP error: the stream opens and its only event says so.
        Err(refusal) if refusal.reason == "Expired" => Phase::Failed(refusal),
        Err(refusal) => return Err(refusal),
    };
    let body = Body::from_stream(stream::unfold(stream, |mut stream| async move {
        let chunk = stream.chunk().await?;
        Some((Ok::<_, std::convert::Infallible>(chunk), stream))
    }));
    let mut response = bytes_response(http::StatusCode::OK, Bytes::new());
    *response.body_mut() = body;
    Ok(response)
}

enum Phase {
    /// Objects that exist already, still to be announced; then what follows.
    Initial {
        items: std::vec::IntoIter<Arc<Object>>,
        end_bookmark: bool,
        watch: Watch,
        version: String,
    },
    Live(Watch),
    Failed(StatusError),
    Over,
}

fn start(inner: &Inner, call: &Call) -> Result<Phase> {
    let params = &call.params;
    let resource = &call.resource.storage;
    let streaming = params.send_initial_events == Some(true);
    if params.send_initial_events.is_some() && params.resource_version_match != "NotOlderThan" {
        let text =
            "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        return Err(forbidden("resourceVersionMatch", text));
    }
    if params.send_initial_events.is_none() && !params.resource_version_match.is_empty() {
        let text = "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
        return Err(forbidden("resourceVersionMatch", text));
    }
    let from_start = matches!(params.resource_version.as_str(), "" | "0")
        && params.send_initial_events != Some(false);
    if !streaming && !from_start {
        let from = match params.resource_version.as_str() {
            "" | "0" => inner.store.version(),
            text => parse_version(text)?,
        };
        return inner
            .store
            .watch(resource, from)
            .map(Phase::Live)
            .map_err(|expired| refuse(from, &expired));
    }
    if streaming && !params.resource_version.is_empty() {
        let asked = parse_version(&params.resource_version)?;
        let current = inner.store.version();
        if asked > current {
            return Err(StatusError::future_version(asked.get(), current.get()));
        }
    }
    let (listing, watch) = inner.store.list_and_watch(resource);
    Ok(Phase::Initial {
        items: listing.items.into_iter(),
        end_bookmark: streaming,
        watch,
        version: listing.version.to_string(),
    })
}

fn refuse(asked: ResourceVersion, expired: &Expired) -> StatusError {
    match expired {
        Expired::Future { latest } => StatusError::future_version(asked.get(), latest.get()),
        Expired::TooOld { oldest } => {
            StatusError::expired(format!("too old resource version: {asked} ({oldest})"))
        }
        Expired::Closed => StatusError::unavailable("heddle is shutting down"),
    }
}

struct Stream {
    inner: Arc<Inner>,
    resource: Arc<Resource>,
    filter: Filter,
    form: Form,
    include: IncludeObject,
    bookmarks: bool,
    until: Duration,
    bookmark_at: Duration,
    /// Whether a table with column definitions has been sent.
    described: bool,
    phase: Phase,
    _permit: OwnedSemaphorePermit,
}

impl Stream {
    /// The next bytes to send; `None` ends the response.
    async fn chunk(&mut self) -> Option<Bytes> {
        let mut out = BytesMut::new();
        loop {
            match std::mem::replace(&mut self.phase, Phase::Over) {
                Phase::Over => return (!out.is_empty()).then(|| out.freeze()),
                Phase::Failed(refusal) => {
                    line(&mut out, "ERROR", refusal.to_json().to_string().as_bytes());
                }
                Phase::Initial {
                    mut items,
                    end_bookmark,
                    watch,
                    version,
                } => {
                    while out.len() < CHUNK_BYTES {
                        let Some(item) = items.next() else { break };
                        if self.filter.matches(&self.resource, &item) {
                            self.event(&mut out, "ADDED", &item);
                        }
                    }
                    if items.len() > 0 {
                        self.phase = Phase::Initial {
                            items,
                            end_bookmark,
                            watch,
                            version,
                        };
                        return Some(out.freeze());
                    }
                    if end_bookmark {
                        self.bookmark(&mut out, &version, true);
                    }
                    self.phase = Phase::Live(watch);
                    if !out.is_empty() {
                        return Some(out.freeze());
                    }
                }
                Phase::Live(watch) => {
                    if self.live(&mut out, watch).await {
                        return Some(out.freeze());
                    }
                }
            }
        }
    }

    /// Waits for changes, a bookmark's time or the end. True when there is something to send now.
    async fn live(&mut self, out: &mut BytesMut, mut watch: Watch) -> bool {
        loop {
            loop {
                match watch.try_next() {
                    Ok(Some(change)) => self.change(out, &change),
                    Ok(None) => break,
                    Err(expired) => {
                        self.phase = Phase::Failed(refuse(watch.position(), &expired));
                        return false;
                    }
                }
                if out.len() >= CHUNK_BYTES {
                    break;
                }
            }
            if !out.is_empty() {
                self.phase = Phase::Live(watch);
                return true;
            }
            let now = self.inner.clock.monotonic();
            if now >= self.until {
                return false;
            }
            if self.bookmarks && now >= self.bookmark_at {
                self.bookmark_at = next_bookmark(now, self.until);
                let version = watch.position().to_string();
                self.bookmark(out, &version, false);
                self.phase = Phase::Live(watch);
                return true;
            }
            let wake = if self.bookmarks {
                self.until.min(self.bookmark_at)
            } else {
                self.until
            };
            match self.inner.clock.timeout(wake - now, watch.next()).await {
                Ok(Ok(change)) => self.change(out, &change),
                Ok(Err(expired)) => {
                    self.phase = Phase::Failed(refuse(watch.position(), &expired));
                    return false;
                }
                Err(_) => {}
            }
        }
    }

    /// What this change means to a client that sees only what its filter lets through.
    fn change(&mut self, out: &mut BytesMut, change: &Change) {
        let in_scope = |object: &Object| {
            self.filter
                .namespace
                .as_deref()
                .is_none_or(|namespace| namespace == &*object.key.namespace)
        };
        if !in_scope(&change.object) {
            return;
        }
        let now = change.kind != ChangeKind::Deleted
            && self.filter.matches(&self.resource, &change.object);
        let before = match (&change.previous, change.kind) {
            (Some(previous), _) => self.filter.matches(&self.resource, previous),
            (None, ChangeKind::Added) => false,
            // After a restart the earlier state is not known: rather report a deletion too many than one too few.
            (None, _) => true,
        };
        let kind = match (before, now) {
            (false, false) => return,
            (false, true) => "ADDED",
            (true, true) => "MODIFIED",
            (true, false) => "DELETED",
        };
        match &change.previous {
            // What left the selection is shown as it was when it last belonged to it, at the version of leaving.
            Some(previous) if kind == "DELETED" && change.kind != ChangeKind::Deleted => {
                let left = object::at_version(previous, change.object.version);
                self.event(out, kind, &left);
            }
            _ => self.event(out, kind, &change.object),
        }
    }

    fn event(&mut self, out: &mut BytesMut, kind: &str, object: &Object) {
        let bytes = match self.form {
            Form::Table => {
                let define = !std::mem::replace(&mut self.described, true);
                let table = view::table(
                    &self.resource,
                    [object],
                    self.include,
                    self.inner.clock.now(),
                    define,
                );
                Bytes::from(table.to_string())
            }
            Form::Metadata => view::metadata(object),
            Form::Object | Form::Lean => {
                let json = object.json();
                match self.form {
                    _ if is_tombstone(&json) => tombstone(&self.resource, &json),
                    Form::Lean => view::lean(&self.resource, json),
                    _ => view::whole(&self.resource, json),
                }
            }
        };
        line(out, kind, &bytes);
    }

    fn bookmark(&mut self, out: &mut BytesMut, version: &str, initial_events_end: bool) {
        let mut metadata = json!({"resourceVersion": version, "creationTimestamp": null});
        if initial_events_end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let object: Value = match self.form {
            Form::Object | Form::Lean => {
                json!({"kind": self.resource.kind, "apiVersion": self.resource.api_version(), "metadata": metadata})
            }
            Form::Metadata => {
                json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
            }
            Form::Table => json!({
                "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": version},
                "columnDefinitions": null,
                "rows": [{"cells": [], "object": {
                    "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
                }}],
            }),
        };
        line(out, "BOOKMARK", object.to_string().as_bytes());
    }
}

/// When to send the bookmark after this moment: regularly, and once shortly before the end.
fn next_bookmark(now: Duration, until: Duration) -> Duration {
    let last = until.saturating_sub(FAREWELL);
    if now < last {
        last.min(now + BOOKMARK)
    } else {
        now + BOOKMARK
    }
}

fn line(out: &mut BytesMut, kind: &str, object: &[u8]) {
    out.reserve(object.len() + 40);
    out.put_slice(b"{\"type\":\"");
    out.put_slice(kind.as_bytes());
    out.put_slice(b"\",\"object\":");
    out.put_slice(object);
    out.put_slice(b"}\n");
}

/// Of an object deleted before a restart only its identity is left.
fn is_tombstone(json: &[u8]) -> bool {
    !json.starts_with(b"{\"apiVersion\"") && object::parse_json(json).get("kind").is_none()
}

fn tombstone(resource: &Resource, json: &[u8]) -> Bytes {
    let mut value = object::parse_json(json);
    value["kind"] = json!(resource.kind);
    value["apiVersion"] = json!(resource.api_version());
    Bytes::from(events::to_served(resource, value).to_string())
}
