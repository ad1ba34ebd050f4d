//! The network: every host is a subscriber with a manner, but the one at which heartbeats arrive.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use heddle_mesh::HeartbeatSink;
use heddle_rt::net::dial::{Connect, Connecting, Place, Stream};
use heddle_rt::{Clock, OnError, Tasks};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;

/// Where heartbeats arrive.
pub(crate) const SINK_HOST: &str = "heartbeats";

/// How a subscriber treats what it is sent. Who has no manner accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    Answer(u16),
    /// To the event with this id; accepts all others.
    AnswerTo(&'static str, u16),
    Slow(Duration),
    Hang,
    /// Nobody listens.
    Down,
    /// The handshake fails.
    BadCertificate,
}

#[derive(Debug)]
pub(crate) struct Network {
    clock: Clock,
    tasks: Tasks,
    manners: Mutex<HashMap<String, Manner>>,
    /// Host and id, in order.
    received: Mutex<Vec<(String, String)>>,
    sink: Mutex<Option<HeartbeatSink>>,
    heartbeats: AtomicU64,
}

impl Network {
    pub(crate) fn new(clock: Clock) -> Arc<Self> {
        Arc::new(Self {
            clock,
            tasks: Tasks::new("network"),
            manners: Mutex::default(),
            received: Mutex::default(),
            sink: Mutex::default(),
            heartbeats: AtomicU64::new(0),
        })
    }

    /// A process lives from now on, and hears its heartbeats.
    pub(crate) fn lead_to(&self, sink: HeartbeatSink) {
        *self.sink.lock() = Some(sink);
    }

    pub(crate) fn behave(&self, host: &str, manner: Manner) {
        self.manners.lock().insert(host.to_owned(), manner);
    }

    /// Everybody accepts.
    pub(crate) fn heal(&self) {
        self.manners.lock().clear();
    }

    /// What a host received, in order.
    pub(crate) fn received(&self, host: &str) -> Vec<String> {
        let received = self.received.lock();
        let own = received.iter().filter(|(to, _)| to == host);
        own.map(|(_, id)| id.clone()).collect()
    }

    /// How many heartbeats arrived anywhere.
    pub(crate) fn heartbeats(&self) -> u64 {
        self.heartbeats.load(Ordering::Relaxed)
    }

    fn manner(&self, host: &str) -> Option<Manner> {
        self.manners.lock().get(host).copied()
    }

    async fn answer(&self, host: &str, request: Request<Incoming>) -> Response<Full<Bytes>> {
        if host == SINK_HOST {
            let sink = self.sink.lock().clone();
            self.heartbeats.fetch_add(1, Ordering::Relaxed);
            return sink.expect("a process lives").handle(request).await;
        }
        let (parts, body) = request.into_parts();
        drop(body.collect().await);
        let id = parts.headers.get("ce-id").and_then(|id| id.to_str().ok());
        let id = id.unwrap_or_default().to_owned();
        self.received.lock().push((host.to_owned(), id.clone()));
        let status = match self.manner(host) {
            Some(Manner::Answer(status)) => status,
            Some(Manner::AnswerTo(one, status)) if one == id => status,
            Some(Manner::Slow(by)) => {
                self.clock.sleep(by).await;
                202
            }
            Some(Manner::Hang) => std::future::pending().await,
            _ => 202,
        };
        let response = Response::builder()
            .status(status)
            .header("location", "http://elsewhere.example/");
        response.body(Full::default()).expect("a response")
    }
}

/// The network as the courier knows it.
#[derive(Debug)]
pub(crate) struct Wires(pub(crate) Arc<Network>);

impl Connect for Wires {
    fn connect(&self, place: &Place) -> Connecting {
        let (network, host) = (Arc::clone(&self.0), place.host.clone());
        Box::pin(async move {
            match network.manner(&host) {
                Some(Manner::Down) => return Err(io::ErrorKind::ConnectionRefused.into()),
                Some(Manner::BadCertificate) => {
                    let why = "invalid peer certificate: Expired";
                    return Err(io::Error::new(io::ErrorKind::InvalidData, why));
                }
                _ => {}
            }
            let (near, far) = tokio::io::duplex(64 << 10);
            let tasks = network.tasks.clone();
            let service = hyper::service::service_fn(move |request| {
                let (network, host) = (Arc::clone(&network), host.clone());
                async move { Ok::<_, io::Error>(network.answer(&host, request).await) }
            });
            let serving = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(far), service);
            tasks.spawn("subscriber", OnError::Report, async move {
                // Who hangs up has said enough.
                drop(serving.await);
            });
            Ok(Box::new(near) as Box<dyn Stream>)
        })
    }
}
