//! The connections to one origin, kept open and used again.
//!
//! HTTP/1 connections carry one delivery at a time; those that rest are taken last in, first out, so that the ones too many
//! grow old and are closed. HTTP/2 carries all deliveries over one connection, which is opened once however many wait for
//! it. Each connection is one task. How many deliveries are open at once is bounded, so that a destination behind many
//! triggers is not flooded. What is sent and what an answer means is left to the [`courier`](super::courier).

mod heard;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use heddle_rt::net::dial::{Connect, Place, Protocol, Stream};
use heddle_rt::{Clock, OnError, Tasks};
use http::{HeaderMap, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::task::TaskTracker;

use self::heard::{Heard, Listening};

/// How often a busy HTTP/2 connection is asked whether it lives, and how long it may think about it. Without it, a peer
/// that vanished without a word would swallow deliveries until TCP gives up.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// What is sent: the data of an event is a slice of its bytes.
pub(super) type Body = Full<Bytes>;

/// What connections may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Deliveries open at once to one origin; more wait, which counts against their time.
    pub open_max: usize,
    /// Connections that rest, for each origin.
    pub idle_max: usize,
    /// How long a connection may rest.
    pub idle_timeout: Duration,
    /// The head of an answer. Also how much of an answer a connection buffers.
    pub head_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            open_max: 1024,
            idle_max: 1024,
            idle_timeout: Duration::from_secs(30),
            head_bytes_max: 64 * 1024,
        }
    }
}

/// What the pools of a courier share.
#[derive(Clone, Debug)]
pub(super) struct Means {
    pub(super) tasks: Tasks,
    pub(super) clock: Clock,
    pub(super) connect: Arc<dyn Connect>,
    pub(super) limits: Limits,
}

/// The connections to one origin.
#[derive(Debug)]
pub(super) struct Pool {
    means: Means,
    place: Place,
    state: Mutex<State>,
    /// Held while it is unknown whether one connection will do for all.
    opening: tokio::sync::Mutex<()>,
    open: Semaphore,
}

#[derive(Debug, Default)]
struct State {
    /// Oldest first.
    idle: Vec<Resting>,
    shared: Option<http2::SendRequest<Body>>,
    shared_used: Duration,
    /// What the origin spoke when it was last connected to.
    speaks: Option<Protocol>,
}

#[derive(Debug)]
struct Resting {
    single: Single,
    since: Duration,
}

/// A connection that is ready for one delivery.
#[derive(Debug)]
pub(super) enum Line {
    Single(Single),
    Shared(http2::SendRequest<Body>),
}

/// An HTTP/1 connection.
#[derive(Debug)]
pub(super) struct Single {
    sender: http1::SendRequest<Body>,
    heard: Arc<Heard>,
    /// What had been heard when it was taken from rest; `None` when it was just opened.
    heard_at_rest: Option<u64>,
    /// The headers of the last answer, emptied, for the next request: hyper turns the one into the other.
    spare: HeaderMap,
}

/// Why a request was not answered.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// The connection had ended while it rested; nothing was heard on it, and another one may do.
    Stale,
    Failed(hyper::Error),
}

impl Pool {
    pub(super) fn new(means: Means, place: Place) -> Self {
        Self {
            open: Semaphore::new(means.limits.open_max),
            means,
            place,
            state: Mutex::default(),
            opening: tokio::sync::Mutex::default(),
        }
    }

    /// A place among the deliveries that may be open at once.
    pub(super) async fn turn(&self) -> SemaphorePermit<'_> {
        let turn = self.open.acquire().await;
        turn.expect("the semaphore is never closed")
    }

    /// A connection that rests, or else a new one.
    pub(super) async fn line(&self) -> io::Result<Line> {
        loop {
            match self.rested() {
                None => return self.open().await,
                Some(Line::Single(mut single)) => {
                    // At once, unless the connection has ended or has yet to notice that the last answer was read.
                    if single.sender.ready().await.is_ok() {
                        return Ok(Line::Single(single));
                    }
                }
                Some(shared) => return Ok(shared),
            }
        }
    }

    /// A new connection, because the one that rested was stale.
    pub(super) async fn fresh(&self) -> io::Result<Line> {
        self.state.lock().shared = None;
        self.open().await
    }

    fn rested(&self) -> Option<Line> {
        let now = self.means.clock.monotonic();
        let mut state = self.state.lock();
        if let Some(shared) = state.live() {
            state.shared_used = now;
            return Some(Line::Shared(shared));
        }
        while let Some(Resting { mut single, since }) = state.idle.pop() {
            if now.saturating_sub(since) >= self.means.limits.idle_timeout {
                // The others have rested even longer.
                state.idle.clear();
                break;
            }
            if !single.sender.is_closed() {
                single.heard_at_rest = Some(single.heard.bytes());
                return Some(Line::Single(single));
            }
        }
        None
    }

    /// Opens a connection. While it is open whether one will do for all, only one is opened at a time.
    async fn open(&self) -> io::Result<Line> {
        let undecided = {
            let speaks = self.state.lock().speaks;
            speaks == Some(Protocol::Http2) || (speaks.is_none() && self.place.tls.is_some())
        };
        let mut alone = None;
        if undecided {
            alone = Some(self.opening.lock().await);
            let mut state = self.state.lock();
            if let Some(shared) = state.live() {
                return Ok(Line::Shared(shared));
            }
            if state.speaks == Some(Protocol::Http1) {
                alone = None;
            }
        }
        let stream = self.means.connect.connect(&self.place).await?;
        let protocol = stream.protocol();
        let line = match protocol {
            Protocol::Http1 => self.speak_http1(stream).await,
            Protocol::Http2 => self.speak_http2(stream).await,
        };
        let line = line.map_err(io::Error::other)?;
        let mut state = self.state.lock();
        state.speaks = Some(protocol);
        if let Line::Shared(sender) = &line {
            state.shared = Some(sender.clone());
            state.shared_used = self.means.clock.monotonic();
        }
        drop(state);
        drop(alone);
        Ok(line)
    }

    async fn speak_http1(&self, stream: Box<dyn Stream>) -> hyper::Result<Line> {
        let (stream, heard) = Listening::to(stream);
        let (sender, connection) = http1::Builder::new()
            // hyper refuses buffers below 8 KiB.
            .max_buf_size(self.means.limits.head_bytes_max.max(8192))
            .handshake(TokioIo::new(stream))
            .await?;
        self.run(connection);
        Ok(Line::Single(Single {
            sender,
            heard,
            heard_at_rest: None,
            spare: HeaderMap::new(),
        }))
    }

    async fn speak_http2(&self, stream: Box<dyn Stream>) -> hyper::Result<Line> {
        let head_bytes = u32::try_from(self.means.limits.head_bytes_max).unwrap_or(u32::MAX);
        let streams = Streams::default();
        let (sender, connection) = http2::Builder::new(streams.clone())
            .timer(TokioTimer::new())
            .max_header_list_size(head_bytes)
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT)
            .handshake(TokioIo::new(stream))
            .await?;
        self.run(async move {
            let ended = connection.await;
            streams.tracker.close();
            streams.tracker.wait().await;
            ended
        });
        Ok(Line::Shared(sender))
    }

    /// A connection lives until either side lets go of it. How it ended is told to whoever waits for an answer.
    fn run(&self, connection: impl Future<Output = hyper::Result<()>> + Send + 'static) {
        let name = format!("connection to {}:{}", self.place.host, self.place.port);
        self.means.tasks.spawn(&name, OnError::Report, async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "connection ended early");
            }
        });
    }

    /// Takes a connection back whose answer was read to the end.
    pub(super) fn rest(&self, line: Line, mut headers: HeaderMap) {
        let Line::Single(mut single) = line else {
            return;
        };
        if single.sender.is_closed() {
            return;
        }
        headers.clear();
        single.spare = headers;
        let since = self.means.clock.monotonic();
        let mut state = self.state.lock();
        if state.idle.len() < self.means.limits.idle_max {
            state.idle.push(Resting { single, since });
        }
    }

    /// Closes what has rested for too long.
    pub(super) fn sweep(&self) {
        let now = self.means.clock.monotonic();
        let old = |since: Duration| now.saturating_sub(since) >= self.means.limits.idle_timeout;
        let mut state = self.state.lock();
        let ended = |single: &Single| single.sender.is_closed();
        state
            .idle
            .retain(|rest| !old(rest.since) && !ended(&rest.single));
        // An open delivery has its own hold on the connection.
        if old(state.shared_used) {
            state.shared = None;
        }
    }
}

impl State {
    fn live(&mut self) -> Option<http2::SendRequest<Body>> {
        if self.shared.as_ref()?.is_closed() {
            self.shared = None;
        }
        self.shared.clone()
    }
}

impl Line {
    /// Room for the headers of a request.
    pub(super) fn headers(&mut self) -> HeaderMap {
        match self {
            Self::Single(single) => std::mem::take(&mut single.spare),
            Self::Shared(_) => HeaderMap::new(),
        }
    }

    /// Sends a request and waits for the head of the answer.
    pub(super) async fn send(
        &mut self,
        request: Request<Body>,
    ) -> Result<Response<Incoming>, Unanswered> {
        match self {
            Self::Single(single) => {
                let answered = single.sender.try_send_request(request).await;
                answered.map_err(|failed| {
                    let unsent = failed.message().is_some();
                    let error = failed.into_error();
                    let silent = single.heard_at_rest == Some(single.heard.bytes());
                    if silent && (unsent || has_hung_up(&error)) {
                        Unanswered::Stale
                    } else {
                        Unanswered::Failed(error)
                    }
                })
            }
            // Others are heard on the same connection, so only a request that was never sent is known to be unheard of.
            Self::Shared(sender) => {
                let answered = sender.try_send_request(request).await;
                answered.map_err(|failed| match failed.message() {
                    Some(_) => Unanswered::Stale,
                    None => Unanswered::Failed(failed.into_error()),
                })
            }
        }
    }
}

/// Whether the other side ended the connection, rather than said something we do not understand.
fn has_hung_up(error: &hyper::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected};
    let source = std::error::Error::source(error);
    let io = source.and_then(|source| source.downcast_ref::<io::Error>());
    let gone = [BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected];
    error.is_canceled()
        || error.is_closed()
        || error.is_incomplete_message()
        || io.is_some_and(|io| gone.contains(&io.kind()))
}

/// Runs the streams of one HTTP/2 connection. They end with the connection, which waits for them.
#[derive(Clone, Debug, Default)]
struct Streams {
    tracker: TaskTracker,
}

impl<F: Future<Output: Send> + Send + 'static> hyper::rt::Executor<F> for Streams {
    fn execute(&self, stream: F) {
        self.tracker.spawn(stream);
    }
}
