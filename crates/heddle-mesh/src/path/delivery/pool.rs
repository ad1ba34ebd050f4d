//! The connections to one origin, kept open and used again.
//!
//! HTTP/1 connections carry one delivery at a time; those that rest are taken last in, first out, so that the ones too many
//! grow old and are closed. HTTP/2 carries all deliveries over one connection, which is opened once however many wait for
//! it. How many deliveries are open at once is bounded, so that a destination behind many triggers is not flooded. What is
//! sent and what an answer means is left to the [`courier`](super::courier).

mod framing;
pub(crate) mod fuzzing;
mod head;
mod outgoing;
mod single;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use heddle_rt::net::client::{Http2, Ping};
use heddle_rt::net::dial::{Connect, Place, Protocol};
use heddle_rt::{Clock, Tasks};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http2;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};

pub(super) use self::outgoing::Outgoing;
pub(super) use self::single::{Broken, Single};
use super::sending::Account;

/// How often a busy HTTP/2 connection is asked whether it lives, and how long it may think about it. Without it, a peer
/// that vanished without a word would swallow deliveries until TCP gives up.
const PING: Ping = Ping {
    interval: Duration::from_secs(20),
    timeout: Duration::from_secs(10),
};

/// A request over HTTP/2: the data of an event is a slice of its bytes.
pub(super) type Sent = Request<Full<Bytes>>;

/// What connections may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections to all origins; beyond it one that rests is closed for another, and more wait.
    pub all_max: usize,
    /// Deliveries open at once to one origin; more wait, which counts against their time.
    pub open_max: usize,
    /// Connections that rest, for each origin.
    pub idle_max: usize,
    /// How long a connection may rest.
    pub idle_timeout: Duration,
    /// The head of an answer.
    pub head_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            all_max: 4096,
            open_max: 1024,
            idle_max: 1024,
            idle_timeout: Duration::from_secs(30),
            head_bytes_max: 64 * 1024,
        }
    }
}

/// What the pools of a courier share.
#[derive(Clone, Debug)]
pub(super) struct PoolDeps {
    pub(super) tasks: Tasks,
    pub(super) clock: Clock,
    pub(super) connect: Arc<dyn Connect>,
    pub(super) limits: Limits,
    pub(super) outgoing: Arc<Outgoing>,
}

/// The connections to one origin.
#[derive(Debug)]
pub(super) struct OriginPool {
    deps: PoolDeps,
    place: Place,
    state: Mutex<State>,
    /// Held while it is unknown whether one connection will do for all.
    opening: tokio::sync::Mutex<()>,
    open: Semaphore,
    /// What events on their way to it may hold.
    pub(super) account: Account,
}

#[derive(Debug, Default)]
struct State {
    /// Oldest first.
    idle: Vec<IdleConnection>,
    shared: Option<http2::SendRequest<Full<Bytes>>>,
    shared_used: Duration,
    /// What the origin spoke when it was last connected to.
    speaks: Option<Protocol>,
}

#[derive(Debug)]
struct IdleConnection {
    single: Single,
    since: Duration,
}

/// A connection that is ready for one delivery.
#[derive(Debug)]
pub(super) enum OriginConnection {
    Single(Single),
    Shared(http2::SendRequest<Full<Bytes>>),
}

/// An answer whose body is still to be read.
#[derive(Debug)]
pub(super) struct HttpResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Body,
}

/// What is read of an answer, and what it is read from.
#[derive(Debug)]
pub(super) enum Body {
    Single(Single),
    Shared(Incoming),
}

/// Why a request was not answered.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// The connection had ended while it rested; nothing was heard on it, and another one may do.
    Stale,
    Failed(Broken),
}

impl OriginPool {
    pub(super) fn new(deps: PoolDeps, place: Place) -> Self {
        Self {
            open: Semaphore::new(deps.limits.open_max),
            deps,
            place,
            state: Mutex::default(),
            opening: tokio::sync::Mutex::default(),
            account: Account::default(),
        }
    }

    /// What people call its origin. Two of one name have other roots.
    pub(super) fn name(&self) -> (&str, u16) {
        (&self.place.host, self.place.port)
    }

    /// A place among the deliveries that may be open at once.
    pub(super) async fn turn(&self) -> SemaphorePermit<'_> {
        let turn = self.open.acquire().await;
        turn.expect("the semaphore is never closed")
    }

    /// A connection that rests, or else a new one.
    pub(super) async fn line(&self) -> io::Result<OriginConnection> {
        match self.rested() {
            Some(line) => Ok(line),
            None => self.open().await,
        }
    }

    /// A new connection, because the one that rested was stale.
    pub(super) async fn fresh(&self) -> io::Result<OriginConnection> {
        self.state.lock().shared = None;
        self.open().await
    }

    /// Connects and lets go again: whether anybody is there now, which a connection that rests does not say.
    pub(super) async fn dial(&self) -> io::Result<()> {
        let _turn = self.turn().await;
        let _place = self.deps.outgoing.place().await;
        self.deps.connect.connect(&self.place).await.map(drop)
    }

    fn rested(&self) -> Option<OriginConnection> {
        let now = self.deps.clock.monotonic();
        let mut state = self.state.lock();
        if let Some(shared) = state.live() {
            state.shared_used = now;
            return Some(OriginConnection::Shared(shared));
        }
        while let Some(IdleConnection { mut single, since }) = state.idle.pop() {
            if now.saturating_sub(since) >= self.deps.limits.idle_timeout {
                // The others have rested even longer.
                state.idle.push(IdleConnection { single, since });
                let old = std::mem::take(&mut state.idle);
                drop(state);
                close_all(old);
                return None;
            }
            if single.is_quiet() {
                return Some(OriginConnection::Single(single));
            }
        }
        None
    }

    /// Opens a connection. While it is open whether one will do for all, only one is opened at a time.
    async fn open(&self) -> io::Result<OriginConnection> {
        let undecided = {
            let speaks = self.state.lock().speaks;
            speaks == Some(Protocol::Http2) || (speaks.is_none() && self.place.tls.is_some())
        };
        let mut alone = None;
        if undecided {
            alone = Some(self.opening.lock().await);
            let mut state = self.state.lock();
            if let Some(shared) = state.live() {
                return Ok(OriginConnection::Shared(shared));
            }
            if state.speaks == Some(Protocol::Http1) {
                alone = None;
            }
        }
        let place = self.deps.outgoing.place().await;
        let stream = self.deps.connect.connect(&self.place).await?;
        let protocol = stream.protocol();
        let line = match protocol {
            Protocol::Http1 => {
                let single = Single::new(stream, self.deps.limits.head_bytes_max);
                OriginConnection::Single(single.at(place))
            }
            Protocol::Http2 => {
                let http = Http2 {
                    head_bytes_max: self.deps.limits.head_bytes_max,
                    ping: Some(PING),
                };
                let line = http
                    .begin(&self.deps.tasks, &self.place, stream, place)
                    .await;
                OriginConnection::Shared(line.map_err(io::Error::other)?)
            }
        };
        let mut state = self.state.lock();
        state.speaks = Some(protocol);
        if let OriginConnection::Shared(sender) = &line {
            state.shared = Some(sender.clone());
            state.shared_used = self.deps.clock.monotonic();
        }
        drop(state);
        drop(alone);
        Ok(line)
    }

    /// Takes a connection back whose answer was read to the end.
    pub(super) fn rest(&self, body: Body) {
        let Body::Single(mut single) = body else {
            return;
        };
        if !single.rest() {
            return;
        }
        let since = self.deps.clock.monotonic();
        let mut state = self.state.lock();
        if state.idle.len() < self.deps.limits.idle_max {
            state.idle.push(IdleConnection { single, since });
        }
        drop(state);
        if self.deps.outgoing.is_wanted() {
            self.evict();
        }
    }

    /// Since when the connection rests that has done so longest. One of HTTP/2 may carry something nevertheless.
    pub(super) fn rests_since(&self) -> Option<Duration> {
        let state = self.state.lock();
        let shared = state.shared.as_ref().map(|_| state.shared_used);
        let single = state.idle.first().map(|rest| rest.since);
        single.into_iter().chain(shared).min()
    }

    /// Closes that connection. One of HTTP/2 ends when it carries nothing any more.
    fn evict(&self) {
        let mut state = self.state.lock();
        if state.idle.is_empty() {
            state.shared = None;
            return;
        }
        let oldest = state.idle.remove(0);
        drop(state);
        oldest.single.close();
    }

    #[cfg(test)]
    pub(super) fn resting(&self) -> usize {
        self.state.lock().idle.len()
    }

    /// Closes what has rested for too long, and what the other side has closed.
    pub(super) fn sweep(&self) {
        let now = self.deps.clock.monotonic();
        let old = |since: Duration| now.saturating_sub(since) >= self.deps.limits.idle_timeout;
        let mut state = self.state.lock();
        let ended = |rest: &mut IdleConnection| old(rest.since) || !rest.single.is_quiet();
        let ended = state.idle.extract_if(.., ended).collect();
        // An open delivery has its own hold on the connection.
        if old(state.shared_used) {
            state.shared = None;
        }
        drop(state);
        close_all(ended);
    }
}

impl Drop for OriginPool {
    fn drop(&mut self) {
        close_all(std::mem::take(&mut self.state.get_mut().idle));
    }
}

fn close_all(resting: Vec<IdleConnection>) {
    for rest in resting {
        rest.single.close();
    }
}

impl State {
    fn live(&mut self) -> Option<http2::SendRequest<Full<Bytes>>> {
        if self.shared.as_ref()?.is_closed() {
            self.shared = None;
        }
        self.shared.clone()
    }
}

impl Single {
    /// Sends the head that was written and this body, and waits for the head of the answer.
    pub(super) async fn send(mut self, body: &Bytes) -> Result<HttpResponse, Unanswered> {
        match self.ask(body).await {
            Ok(head) => Ok(HttpResponse {
                status: head.status,
                headers: head.headers,
                body: Body::Single(self),
            }),
            Err(unheard) if unheard.is_stale => Err(Unanswered::Stale),
            Err(unheard) => Err(Unanswered::Failed(unheard.error)),
        }
    }
}

/// Sends a request over HTTP/2 and waits for the head of the answer.
///
/// Others are heard on the same connection, so only a request that was never sent is known to be unheard of.
pub(super) async fn send_shared(
    mut sender: http2::SendRequest<Full<Bytes>>,
    request: Sent,
) -> Result<HttpResponse, Unanswered> {
    let answered = sender.try_send_request(request).await;
    let response = answered.map_err(|failed| match failed.message() {
        Some(_) => Unanswered::Stale,
        None => Unanswered::Failed(failed.into_error().into()),
    })?;
    let (head, body) = response.into_parts();
    Ok(HttpResponse {
        status: head.status,
        headers: head.headers,
        body: Body::Shared(body),
    })
}

impl Body {
    /// Whether there is nothing to read.
    pub(super) fn is_at_end(&self) -> bool {
        match self {
            Self::Single(single) => single.is_at_end(),
            Self::Shared(body) => body.is_end_stream(),
        }
    }

    /// How many bytes are to come at least.
    pub(super) fn announced(&self) -> u64 {
        match self {
            Self::Single(single) => single.announced(),
            Self::Shared(body) => body.size_hint().lower(),
        }
    }

    /// The next piece; `None` behind the last. Dropping the future loses nothing.
    pub(super) async fn piece(&mut self) -> Option<Result<Bytes, Broken>> {
        match self {
            Self::Single(single) => single.piece().await,
            Self::Shared(body) => loop {
                match body.frame().await?.map(|frame| frame.into_data()) {
                    Ok(Ok(data)) => return Some(Ok(data)),
                    Ok(Err(_trailers)) => {}
                    Err(error) => return Some(Err(error.into())),
                }
            },
        }
    }
}
