//! The connections to one server, for as long as a registry is read.
//!
//! HTTP/1 connections are used one request at a time and rest in between; HTTP/2 carries all over one. Every connection is
//! a task of the reading, and ends with it.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use heddle_rt::Tasks;
use heddle_rt::net::client::{Http2, begin_http1};
use heddle_rt::net::dial::{Connect, Place, Protocol, Stream};
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Requests open at once to one server: enough to be quick, too few to be a nuisance.
pub(super) const OPEN_MAX: usize = 8;
/// The head of an answer.
const HEAD_BYTES_MAX: usize = 64 * 1024;

pub(super) type Body = Full<Bytes>;

/// The connections to one server.
#[derive(Debug)]
pub(super) struct Pool {
    tasks: Tasks,
    place: Place,
    idle: Mutex<Vec<http1::SendRequest<Body>>>,
    shared: Mutex<Option<http2::SendRequest<Body>>>,
    open: Arc<Semaphore>,
}

/// A connection that is ready for one request.
#[derive(Debug)]
pub(super) enum Line {
    Single(http1::SendRequest<Body>, Age),
    Shared(http2::SendRequest<Body>, Age),
}

/// Whether a connection may have ended while nobody looked, so that a failure says nothing about the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Age {
    Fresh,
    Used,
}

impl Pool {
    pub(super) fn new(tasks: Tasks, place: Place) -> Self {
        Self {
            tasks,
            place,
            idle: Mutex::default(),
            shared: Mutex::default(),
            open: Arc::new(Semaphore::new(OPEN_MAX)),
        }
    }

    /// A place among the requests that may be open at once.
    pub(super) async fn turn(&self) -> OwnedSemaphorePermit {
        let turn = self.open.clone().acquire_owned().await;
        turn.expect("the semaphore is never closed")
    }

    /// A connection that rests.
    pub(super) async fn rested(&self) -> Option<Line> {
        let shared = self.shared.lock().clone();
        if let Some(shared) = shared.filter(|shared| !shared.is_closed()) {
            return Some(Line::Shared(shared, Age::Used));
        }
        loop {
            let mut single = self.idle.lock().pop()?;
            if single.ready().await.is_ok() {
                return Some(Line::Single(single, Age::Used));
            }
        }
    }

    /// A new connection.
    pub(super) async fn fresh(&self, connect: &dyn Connect) -> io::Result<Line> {
        let stream = connect.connect(&self.place).await?;
        let line = match stream.protocol() {
            Protocol::Http1 => self.speak_http1(stream).await,
            Protocol::Http2 => self.speak_http2(stream).await,
        };
        line.map_err(io::Error::other)
    }

    async fn speak_http1(&self, stream: Box<dyn Stream>) -> hyper::Result<Line> {
        let sender = begin_http1(&self.tasks, &self.place, stream, HEAD_BYTES_MAX).await?;
        Ok(Line::Single(sender, Age::Fresh))
    }

    async fn speak_http2(&self, stream: Box<dyn Stream>) -> hyper::Result<Line> {
        let http = Http2 {
            head_bytes_max: HEAD_BYTES_MAX,
            ping: None,
        };
        let sender = http.begin(&self.tasks, &self.place, stream, ()).await?;
        *self.shared.lock() = Some(sender.clone());
        Ok(Line::Shared(sender, Age::Fresh))
    }

    /// Takes a connection back whose answer was read to the end.
    pub(super) fn rest(&self, line: Line) {
        if let Line::Single(sender, _) = line
            && !sender.is_closed()
        {
            self.idle.lock().push(sender);
        }
    }
}

impl Line {
    pub(super) fn age(&self) -> Age {
        let (Self::Single(_, age) | Self::Shared(_, age)) = self;
        *age
    }

    pub(super) async fn send(
        &mut self,
        request: Request<Body>,
    ) -> hyper::Result<Response<Incoming>> {
        match self {
            Self::Single(sender, _) => sender.send_request(request).await,
            Self::Shared(sender, _) => sender.send_request(request).await,
        }
    }
}
