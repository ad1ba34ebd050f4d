//! Speaking HTTP on a connection that [`dial`](super::dial) made, for those who keep their connections themselves.
//!
//! A connection is a task of whoever opened it and ends with it, and so do its streams. Which connections are kept, how
//! many and for how long is left to the caller, and so is an HTTP/1 connection that is no task: a delivery drives its own.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, Uri, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio_util::task::TaskTracker;

use super::dial::{Place, Protocol, Stream};
use crate::{OnError, Tasks};

/// How an HTTP/2 connection is spoken.
#[derive(Clone, Copy, Debug)]
pub struct Http2 {
    /// The head of an answer.
    pub head_bytes_max: usize,
    /// Asks a busy connection now and then whether it lives.
    pub ping: Option<Ping>,
}

/// How often, and how long the other side may think about it.
#[derive(Clone, Copy, Debug)]
pub struct Ping {
    pub interval: Duration,
    pub timeout: Duration,
}

impl Http2 {
    /// Begins a connection to `place`. It holds `held` until it and all of its streams have ended.
    pub async fn begin(
        self,
        tasks: &Tasks,
        place: &Place,
        stream: Box<dyn Stream>,
        held: impl Send + 'static,
    ) -> hyper::Result<http2::SendRequest<Full<Bytes>>> {
        let streams = ClientStreams::default();
        let mut http = http2::Builder::new(streams.clone());
        let head_bytes = u32::try_from(self.head_bytes_max).unwrap_or(u32::MAX);
        http.max_header_list_size(head_bytes);
        if let Some(ping) = self.ping {
            http.timer(TokioTimer::new())
                .keep_alive_interval(ping.interval)
                .keep_alive_timeout(ping.timeout);
        }
        let (sender, connection) = http.handshake(TokioIo::new(stream)).await?;
        run(tasks, place, async move {
            let ended = connection.await;
            streams.tracker.close();
            streams.tracker.wait().await;
            drop(held);
            ended
        });
        Ok(sender)
    }
}

/// Begins an HTTP/1 connection to `place`, on which the head of an answer has no more than `head_bytes_max`.
pub async fn begin_http1(
    tasks: &Tasks,
    place: &Place,
    stream: Box<dyn Stream>,
    head_bytes_max: usize,
) -> hyper::Result<http1::SendRequest<Full<Bytes>>> {
    let (sender, connection) = http1::Builder::new()
        .max_buf_size(head_bytes_max)
        .handshake(TokioIo::new(stream))
        .await?;
    run(tasks, place, connection);
    Ok(sender)
}

/// Says one thing on a connection of its own, in whatever it speaks. The request has an absolute address; the connection ends
/// with the answer.
pub async fn ask_once(
    tasks: &Tasks,
    place: &Place,
    stream: Box<dyn Stream>,
    mut request: Request<Full<Bytes>>,
) -> hyper::Result<Response<Incoming>> {
    if stream.protocol() == Protocol::Http2 {
        let http = Http2 {
            head_bytes_max: ONCE_HEAD_BYTES_MAX,
            ping: None,
        };
        let mut sender = http.begin(tasks, place, stream, ()).await?;
        return sender.send_request(request).await;
    }
    let mut sender = begin_http1(tasks, place, stream, ONCE_HEAD_BYTES_MAX).await?;
    let authority = request.uri().authority().map(ToString::to_string);
    if let Some(Ok(host)) = authority.map(HeaderValue::try_from) {
        request.headers_mut().insert(header::HOST, host);
    }
    if let Some(path) = request.uri().path_and_query().cloned() {
        *request.uri_mut() = Uri::from(path);
    }
    sender.send_request(request).await
}

/// The head of an answer to [`ask_once`].
const ONCE_HEAD_BYTES_MAX: usize = 16 << 10;

/// Runs a connection until either side lets go of it. How it ended is told to whoever waits for an answer.
fn run(
    tasks: &Tasks,
    place: &Place,
    connection: impl Future<Output = hyper::Result<()>> + Send + 'static,
) {
    let name = format!("connection to {}:{}", place.host, place.port);
    tasks.spawn(&name, OnError::Report, async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "connection ended early");
        }
    });
}

/// Runs the streams of one HTTP/2 connection. They end with the connection, which waits for them.
#[derive(Clone, Debug, Default)]
struct ClientStreams {
    tracker: TaskTracker,
}

impl<F: Future<Output: Send> + Send + 'static> hyper::rt::Executor<F> for ClientStreams {
    fn execute(&self, stream: F) {
        self.tracker.spawn(stream);
    }
}
