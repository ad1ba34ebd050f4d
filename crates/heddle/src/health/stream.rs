//! Server-sent events: what the board says, as it changes, to whoever keeps the connection open.
//!
//! ```text
//!   GET stream                    reset, a verdict for each scope, a pulse; then what changes, about once a second
//!   GET health/…?watch=1          the whole body as event `health`, then again whenever its tag changes
//! ```
//! The last event of each batch has the id to resume from (`Last-Event-ID`): a batch of which a part was read is told again.
//! Whoever reads slowly is told the newest when it comes to read, and the door ends connections on which nothing is read at all.
//! When nothing is new for a while a comment shows that the connection is alive.

mod places;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use heddle_api::access::{Scope, namespace_of};
use heddle_api::health::stream::{GONE, HEALTH, PULSE, PulseEvent, RESET, VERDICT, VerdictEvent};
use heddle_controllers::{HealthBoard, Report};
use heddle_rt::Clock;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use tokio::sync::watch;

use self::places::{StreamPlace, StreamPlaces};
use super::feed::{ChangeFeed, FeedBatch};
use super::query::HealthQuery;
use super::{Found, HealthApi, refuse, tag};

/// How long nothing may be sent, well below what proxies wait.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// How long a client should wait before it connects again, in milliseconds, and who is refused, in seconds.
const RECONNECT_MS: u32 = 2000;
const RETRY_AFTER: &str = "5";

/// What all streams share.
#[derive(Debug)]
pub(super) struct HealthStreams {
    feed: ChangeFeed,
    places: StreamPlaces,
    run: u64,
}

impl HealthStreams {
    pub(super) fn new(run: u64) -> Self {
        Self {
            feed: ChangeFeed::default(),
            places: StreamPlaces::default(),
            run,
        }
    }

    /// The id of a batch: numbers of another process mean nothing here.
    pub(super) fn id(&self, seq: u64) -> String {
        format!("{:x}-{seq}", self.run)
    }

    /// The batch with that id, if it is one of this process.
    pub(super) fn seq(&self, id: &str) -> Option<u64> {
        let (run, seq) = id.split_once('-')?;
        let is_ours = run == format!("{:x}", self.run);
        seq.parse().ok().filter(|_| is_ours)
    }
}

/// `GET stream`.
pub(super) async fn serve(State(api): State<HealthApi>, asked: HealthQuery) -> Response {
    let streams = Arc::clone(&api.streams);
    let mut heard = asked.heard.as_deref().and_then(|id| streams.seq(id));
    let user = asked.user.clone();
    open(&api, &user, move |report| {
        let batch = streams.feed.news(report, heard);
        heard = batch.as_ref().map(|batch| batch.seq).or(heard);
        let id = streams.id(heard.unwrap_or_default());
        News {
            text: batch
                .map(|batch| told(&batch, &asked, &id))
                .unwrap_or_default(),
            id,
            is_last: false,
        }
    })
}

/// A body of health, whenever it changes.
pub(super) fn watch(
    api: &HealthApi,
    asked: HealthQuery,
    find: impl Fn(&Report) -> Found + Send + 'static,
) -> Response {
    let known = asked.known.as_ref().and_then(|tag| tag.to_str().ok());
    let mut heard = asked.heard.clone().or_else(|| known.map(str::to_owned));
    let user = asked.user;
    open(api, &user, move |report| match find(report) {
        Err(message) => News {
            text: event(GONE, &serde_json::json!({"message": message}), ""),
            id: String::new(),
            is_last: true,
        },
        Ok(shown) => {
            let id = tag::of(&shown.body);
            let is_known = heard.replace(id.clone()).as_ref() == Some(&id);
            let text = match is_known {
                true => String::new(),
                false => event(HEALTH, &shown.body, &id),
            };
            News {
                text,
                id,
                is_last: false,
            }
        }
    })
}

/// What is to be sent now.
struct News {
    /// Empty when there is nothing to tell.
    text: String,
    /// What was heard with it.
    id: String,
    /// Nothing comes after it.
    is_last: bool,
}

/// One open connection.
struct OpenStream<F> {
    board: HealthBoard,
    clock: Clock,
    reports: watch::Receiver<u64>,
    news: F,
    /// When something was last sent; nothing was before the first look.
    sent: Option<Duration>,
    is_over: bool,
    _place: StreamPlace,
}

fn open<F>(api: &HealthApi, user: &str, news: F) -> Response
where
    F: FnMut(&Report) -> News + Send + 'static,
{
    let place = match api.streams.places.enter(user) {
        Ok(place) => place,
        Err(open) => return too_many(open),
    };
    let stream = OpenStream {
        board: api.board.clone(),
        clock: api.clock.clone(),
        reports: api.board.changes(),
        news,
        sent: None,
        is_over: false,
        _place: place,
    };
    let kind = HeaderValue::from_static("text/event-stream");
    let fresh = HeaderValue::from_static("no-store");
    let headers = [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, fresh)];
    let body = Body::from_stream(futures::stream::unfold(stream, OpenStream::next));
    (headers, body).into_response()
}

fn too_many(open: usize) -> Response {
    let message = format!("{open} streams are open already; close one, or poll with If-None-Match");
    let mut refused = refuse(
        StatusCode::SERVICE_UNAVAILABLE,
        "too-many-streams",
        &message,
    );
    let pause = HeaderValue::from_static(RETRY_AFTER);
    refused.headers_mut().insert(header::RETRY_AFTER, pause);
    refused
}

impl<F: FnMut(&Report) -> News> OpenStream<F> {
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        if self.is_over {
            return None;
        }
        let text = loop {
            let last = self.sent;
            if last.is_some() {
                // The judge may fall silent; that is looked for too.
                let waiting = self.reports.changed();
                let news_or_late = self.clock.timeout(KEEP_ALIVE, waiting).await;
                drop(news_or_late);
            }
            self.reports.borrow_and_update();
            let news = (self.news)(&self.board.report(&self.clock));
            self.is_over = news.is_last;
            let Some(last) = last else {
                break format!("retry: {RECONNECT_MS}\n\n{}", news.text);
            };
            if !news.text.is_empty() {
                break news.text;
            }
            if self.clock.monotonic().saturating_sub(last) >= KEEP_ALIVE {
                break format!(": alive\nid: {}\n\n", news.id);
            }
        };
        self.sent = Some(self.clock.monotonic());
        Some((Ok(Bytes::from(text)), self))
    }
}

/// A batch as far as somebody asked for it; its last event has the id.
fn told(batch: &FeedBatch, asked: &HealthQuery, id: &str) -> String {
    let mut events: Vec<String> = Vec::new();
    if asked.verdicts {
        let wanted = |scope: &str| asked.wants(scope) && is_theirs(scope, asked);
        let wanted: Vec<_> = (batch.verdicts.iter())
            .filter(|verdict| wanted(&verdict.scope))
            .collect();
        if let Some(reset) = &batch.reset {
            let mut reset = reset.clone();
            reset.scopes = wanted.len() as u64;
            events.push(event(RESET, &reset, ""));
        }
        events.extend(wanted.into_iter().map(|verdict| {
            let mut verdict = VerdictEvent::clone(verdict);
            if asked.within != Scope::All {
                verdict.narrow(&asked.within);
            }
            event(VERDICT, &verdict, "")
        }));
    }
    if let Some(pulse) = batch.pulse.as_ref().filter(|_| asked.pulses) {
        let pulse = pulse_within(pulse, batch, &asked.within);
        events.extend(pulse.map(|pulse| event(PULSE, &*pulse, "")));
    }
    if let Some(last) = events.last_mut() {
        last.insert_str(0, &format!("id: {id}\n"));
    }
    events.concat()
}

/// The numbers of whoever is within a scope; nothing if only those of others changed.
fn pulse_within<'a>(
    pulse: &'a PulseEvent,
    batch: &FeedBatch,
    scope: &Scope,
) -> Option<Cow<'a, PulseEvent>> {
    if *scope == Scope::All {
        return Some(Cow::Borrowed(pulse));
    }
    let within = |consumer: &str| scope.contains(namespace_of(consumer));
    let left_out = batch.left_out_of.iter();
    let left_out = left_out.filter(|(namespace, _)| scope.contains(Some(namespace)));
    let mut pulse = PulseEvent {
        left_out: left_out.map(|(_, count)| *count).sum(),
        sources: BTreeMap::new(),
        ..pulse.clone()
    };
    pulse.n.retain(|consumer, _| within(consumer));
    (pulse.full || !pulse.n.is_empty()).then_some(Cow::Owned(pulse))
}

/// Whether whoever asked may know of a scope: `application/NAME/NAMESPACE` is in a namespace, and others are in none.
fn is_theirs(scope: &str, asked: &HealthQuery) -> bool {
    let namespace = scope.strip_prefix("application/");
    let namespace = namespace.and_then(|rest| Some(rest.split_once('/')?.1));
    asked.within.contains(namespace)
}

/// One event. JSON has no line ends of its own.
fn event(name: &str, data: &impl Serialize, id: &str) -> String {
    let data = serde_json::to_string(data).unwrap_or_default();
    let id = match id {
        "" => String::new(),
        id => format!("id: {id}\n"),
    };
    format!("{id}event: {name}\ndata: {data}\n\n")
}
