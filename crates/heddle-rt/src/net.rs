//! Doors: one port that speaks TLS and, where that is safe, plain HTTP.
//!
//! The first byte decides: a TLS record starts with 0x16, which no HTTP request does. Plain HTTP is
//! served only on a loopback address and only when the caller allows it. A door bounds what a
//! stranger can hold: connections (`connections`), header bytes, streams, windows, and the time
//! until the first request, between requests, and for which answers wait to be read (`progress`). Who is at the other end ([`Peer`]) and on whose
//! account a body is received ([`receive`]) travels in the request's extensions; what they may do
//! is decided elsewhere. Going out to somebody else's door is left to [`dial`] and [`client`].

pub mod client;
mod connections;
pub mod dial;
pub mod egress;
pub mod hear_out;
pub mod host;
pub mod own;
mod percent;
mod progress;
pub mod receive;
pub mod subject;
pub mod trust;

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Body, Incoming};
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::{Service, ServiceExt as _};

pub use self::percent::percent_encoded;
pub use tokio_rustls::rustls;

use self::connections::{Connections, Place};
use self::progress::{Sending, Watched};
use self::receive::Intake;
use crate::Clock;
use crate::budget::{Budget, Holder};

/// The first byte of a TLS handshake record.
const TLS_HANDSHAKE: u8 = 0x16;

/// How long to wait after the machine ran out of descriptors, or the door of places, before accepting again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How often an HTTP/2 connection is asked whether anybody is still there, and how long the answer may take.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// A bound port that nobody serves yet.
#[derive(Debug)]
pub struct Listener {
    inner: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Where it listens, with the port that was picked when 0 was asked for.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next connection, for whoever speaks something other than HTTP or wants to speak it badly.
    pub async fn accept(&self) -> io::Result<TcpStream> {
        Ok(self.inner.accept().await?.0)
    }
}

/// Binds a port; 0 picks a free one.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the one place that binds"
)]
pub async fn bind(address: SocketAddr) -> io::Result<Listener> {
    let inner = TcpListener::bind(address).await?;
    let address = inner.local_addr()?;
    Ok(Listener { inner, address })
}

/// Connects to an address.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the one place that connects"
)]
pub async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    TcpStream::connect(address).await
}

/// What a door allows.
#[derive(Clone, Debug)]
pub struct Door {
    pub clock: Clock,
    /// Without it the door speaks plain HTTP only.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// Whether a loopback door may speak plain HTTP.
    pub plain_on_loopback: bool,
    pub limits: Limits,
    /// What the bodies of requests are leased from.
    pub budget: Budget,
}

impl Door {
    /// One that speaks TLS and nothing else, within the usual limits.
    #[must_use]
    pub fn secured(clock: Clock, tls: Arc<rustls::ServerConfig>) -> Self {
        Self {
            clock,
            tls: Some(tls),
            plain_on_loopback: false,
            limits: Limits::default(),
            budget: Budget::default(),
        }
    }
}

/// What a stranger may hold, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// More wait in the kernel's queue.
    pub connections_max: usize,
    /// More from one address are closed.
    pub address_connections_max: usize,
    /// Connections on which nothing is under way; beyond it the one that has rested longest is closed.
    pub resting_max: usize,
    pub header_bytes_max: usize,
    /// Of one HTTP/2 connection.
    pub streams_max: u32,
    /// What may be on its way to us over one HTTP/2 connection, and from us over one of its streams, before somebody reads
    /// it.
    pub window_bytes: u32,
    /// From accepting the connection to the first complete request head, TLS included; and for
    /// each later head on HTTP/1.
    pub head_timeout: Duration,
    /// How long an HTTP/2 connection may rest.
    pub rest_timeout: Duration,
    /// How long a guest may take nothing of what it is sent.
    pub stall_timeout: Duration,
    /// What open requests get when the door closes.
    pub drain_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 4096,
            address_connections_max: 3072,
            resting_max: 512,
            header_bytes_max: 64 * 1024,
            streams_max: 128,
            window_bytes: 64 * 1024,
            head_timeout: Duration::from_secs(10),
            rest_timeout: Duration::from_secs(60),
            stall_timeout: Duration::from_secs(30),
            drain_timeout: Duration::from_secs(10),
        }
    }
}

/// Who is at the other end; in the extensions of every request.
#[derive(Clone, Debug)]
pub struct Peer {
    pub address: SocketAddr,
    pub tls: bool,
    /// The certificate the client proved to own, in DER.
    pub certificate: Option<rustls::pki_types::CertificateDer<'static>>,
    /// What its bodies are received with.
    pub intake: Arc<Intake>,
}

/// What answers at a door.
pub trait DoorService:
    Service<Request<Incoming>, Response = Response<Self::Body>, Error = Infallible, Future: Send>
    + Clone
    + Send
    + Sync
    + 'static
{
    type Body: DoorBody;
}

impl<S, B> DoorService for S
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static,
    B: DoorBody,
{
    type Body = B;
}

/// What it answers with.
pub trait DoorBody:
    Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static
{
}

impl<B> DoorBody for B where
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static
{
}

/// A service of any kind. Both protocols, in plain and over TLS, are compiled once and here, where speed counts, instead of
/// once for each kind in the crate that has it.
type AnyService = Arc<dyn Fn(Request<Incoming>) -> AnyAnswer + Send + Sync>;
type AnyAnswer = Pin<Box<dyn Future<Output = AnyResponse> + Send>>;
type AnyResponse = Response<UnsyncBoxBody<Bytes, Box<dyn Error + Send + Sync>>>;

fn any_service<S: DoorService>(service: S) -> AnyService {
    Arc::new(move |request| {
        let answering = service.clone().oneshot(request);
        Box::pin(async move {
            let Ok(response) = answering.await;
            response.map(|body| body.map_err(Into::into).boxed_unsync())
        })
    })
}

/// Why a door was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("plain HTTP on {0} is not allowed: give the listener TLS, or a loopback address")]
    Plain(SocketAddr),
}

/// Serves until `closing` is cancelled and the open requests have ended or run out of time.
///
/// All connections belong to the returned future: dropping it ends them.
pub async fn serve<S>(
    listener: Listener,
    door: Door,
    service: S,
    closing: CancellationToken,
) -> Result<(), Refused>
where
    S: DoorService,
{
    serve_any(listener, door, any_service(service), closing).await
}

async fn serve_any(
    listener: Listener,
    door: Door,
    service: AnyService,
    closing: CancellationToken,
) -> Result<(), Refused> {
    let plain = door.plain_on_loopback && listener.address.ip().is_loopback();
    if door.tls.is_none() && !plain {
        return Err(Refused::Plain(listener.address));
    }
    let connections = TaskTracker::new();
    let abort = CancellationToken::new();
    let _abort_on_drop = abort.clone().drop_guard();
    let draining = CancellationToken::new();
    let open = Connections::new(door.clock.clone(), door.limits, draining.clone());
    let accepting = async {
        loop {
            if !open.has_room() {
                door.clock.sleep(ACCEPT_PAUSE).await;
                continue;
            }
            let (stream, address) = match listener.inner.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    door.clock.sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let Some(place) = open.enter(address.ip()) else {
                tracing::debug!(%address, "closed: too many connections from this address");
                continue;
            };
            let streams = Streams {
                tracker: connections.clone(),
                abort: abort.clone(),
            };
            let task = ConnectionTask {
                door: door.clone(),
                plain,
                service: Arc::clone(&service),
                streams,
                place,
            };
            connections.spawn(abort.clone().run_until_cancelled_owned(async move {
                if let Err(error) = task.run(stream, address).await {
                    tracing::debug!(%address, %error, "connection ended early");
                }
            }));
        }
    };
    closing.run_until_cancelled(accepting).await;
    drop(listener);
    connections.close();
    draining.cancel();
    if door
        .clock
        .timeout(door.limits.drain_timeout, connections.wait())
        .await
        .is_err()
    {
        tracing::warn!(
            open = connections.len(),
            "requests were cut off when the door closed"
        );
    }
    abort.cancel();
    connections.wait().await;
    Ok(())
}

/// Everything one connection needs.
struct ConnectionTask {
    door: Door,
    plain: bool,
    service: AnyService,
    streams: Streams,
    place: Place,
}

impl ConnectionTask {
    async fn run(
        self,
        stream: TcpStream,
        address: SocketAddr,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        stream.set_nodelay(true)?;
        let (clock, limit) = (self.door.clock.clone(), self.door.limits.head_timeout);
        let connection = Arc::clone(&self.place.connection);
        let ending = connection.ending().clone();
        let mut first = [0];
        let peeking = clock.timeout(limit, stream.peek(&mut first));
        let Some(peeked) = ending.run_until_cancelled(peeking).await else {
            return Ok(());
        };
        if peeked?? == 0 {
            return Ok(());
        }
        let mut peer = Peer {
            address,
            tls: false,
            certificate: None,
            intake: Arc::new(Intake::new(
                self.door.budget.clone(),
                Holder::at(address.ip()),
                clock.clone(),
            )),
        };
        let stream = Watched::new(stream, connection);
        if first[0] != TLS_HANDSHAKE {
            if !self.plain {
                return Err("plain HTTP at a door that speaks TLS only".into());
            }
            return self.speak_http(stream, peer).await;
        }
        let tls = self
            .door
            .tls
            .clone()
            .ok_or("TLS at a door that speaks plain HTTP only")?;
        let handshake = tokio_rustls::TlsAcceptor::from(tls).accept(stream);
        let shaking = clock.timeout(limit, handshake);
        let Some(stream) = ending.run_until_cancelled(shaking).await else {
            return Ok(());
        };
        let stream = stream??;
        let chain = stream.get_ref().1.peer_certificates();
        peer.tls = true;
        peer.certificate = chain
            .and_then(|chain| chain.first())
            .map(|leaf| leaf.clone().into_owned());
        self.speak_http(stream, peer).await
    }

    async fn speak_http<I>(self, stream: I, peer: Peer) -> Result<(), Box<dyn Error + Send + Sync>>
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let limits = self.door.limits;
        let http = self.builder();
        let clock = self.door.clock.clone();
        let (state, service) = (Arc::clone(&self.place.connection), self.service);
        let answer = hyper::service::service_fn(move |mut request: Request<Incoming>| {
            let under_way = state.begin();
            let is_http2 = request.version() == hyper::Version::HTTP_2;
            let limit = is_http2.then_some(limits.stall_timeout);
            request.extensions_mut().insert(peer.clone());
            let answering = service(request);
            async move {
                let response = answering.await;
                let sending = |body| Sending::new(body, under_way, limit);
                Ok::<_, Infallible>(response.map(sending))
            }
        });
        let connection = http.serve_connection(TokioIo::new(stream), answer);
        let mut conversation = std::pin::pin!(connection);
        let mut is_ending = false;
        loop {
            let state = &self.place.connection;
            // The protocol is guessed from the first bytes without a time limit of its own.
            let limit = || match state.has_asked() {
                true => limits.rest_timeout,
                false => limits.head_timeout,
            };
            let left = limit().saturating_sub(state.rested());
            tokio::select! {
                biased;
                ended = conversation.as_mut() => return ended,
                () = state.ending().cancelled(), if !is_ending => {
                    if state.is_evicted() {
                        return Err("its place was given to another".into());
                    }
                }
                () = clock.sleep(left.min(limits.stall_timeout)) => {
                    if state.is_stalled(limits.stall_timeout) {
                        return Err("what it was sent was not read in time".into());
                    }
                    // It may have asked meanwhile.
                    if state.rested() < limit() {
                        continue;
                    }
                    if !state.has_asked() || is_ending {
                        return Err("nothing was heard in time".into());
                    }
                }
            }
            is_ending = true;
            conversation.as_mut().graceful_shutdown();
        }
    }

    fn builder(&self) -> auto::Builder<Streams> {
        let limits = self.door.limits;
        let header_bytes = u32::try_from(limits.header_bytes_max).unwrap_or(u32::MAX);
        let mut http = auto::Builder::new(self.streams.clone());
        // hyper refuses buffers below 8 KiB.
        http.http1()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head_timeout)
            .max_buf_size(limits.header_bytes_max.max(8192));
        http.http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(limits.streams_max)
            .max_header_list_size(header_bytes)
            .initial_stream_window_size(limits.window_bytes)
            .initial_connection_window_size(limits.window_bytes)
            .max_send_buf_size(limits.window_bytes as usize)
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT);
        http
    }
}

/// Runs the streams of HTTP/2 connections where they are waited for and can be ended.
#[derive(Clone)]
struct Streams {
    tracker: TaskTracker,
    abort: CancellationToken,
}

impl<F: Future<Output: Send> + Send + 'static> hyper::rt::Executor<F> for Streams {
    fn execute(&self, stream: F) {
        self.tracker
            .spawn(self.abort.clone().run_until_cancelled_owned(stream));
    }
}

#[cfg(test)]
mod tests;
