//! Subscribers with moods, reached over pipes that may not open, break, or swallow the answer.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use heddle_rt::net::dial::{Connect, Connecting, Place, Stream};
use heddle_rt::{Chance, Clock, OnError, Tasks};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;

use super::book::Book;

/// How a subscriber treats what it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    Accepts,
    Answers(u16),
    /// Anything may happen to each attempt.
    Moody,
    /// Accepts, after this many milliseconds.
    Slow(u64),
    Hangs,
}

/// The network of one life of the process.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) clock: Clock,
    pub(super) chance: Chance,
    pub(super) tasks: Tasks,
    pub(super) book: Arc<Mutex<Book>>,
    pub(super) manners: Arc<Mutex<std::collections::BTreeMap<String, Manner>>>,
}

/// What becomes of one request.
enum Fate {
    Answer(u16),
    /// The connection breaks before the subscriber has seen anything.
    BrokenBefore,
    /// It took the event, and its answer is lost.
    BrokenAfter,
    Hang,
}

impl Network {
    fn manner(&self, host: &str) -> Manner {
        let manners = self.manners.lock();
        manners.get(host).copied().unwrap_or(Manner::Accepts)
    }

    async fn fate(&self, host: &str) -> Fate {
        match self.manner(host) {
            Manner::Accepts => Fate::Answer(200),
            Manner::Answers(status) => Fate::Answer(status),
            Manner::Hangs => Fate::Hang,
            Manner::Slow(millis) => {
                self.clock.sleep(Duration::from_millis(millis)).await;
                Fate::Answer(202)
            }
            Manner::Moody => {
                let pause = self.chance.below(300);
                self.clock.sleep(Duration::from_millis(pause)).await;
                match self.chance.below(10) {
                    0 => Fate::BrokenBefore,
                    1 => Fate::BrokenAfter,
                    2 => Fate::Hang,
                    3 => Fate::Answer(400),
                    4 => Fate::Answer(429),
                    5 => Fate::Answer(503),
                    _ => Fate::Answer(204),
                }
            }
        }
    }

    /// `None` breaks the connection.
    async fn answer(
        &self,
        host: &str,
        request: Request<Incoming>,
    ) -> Option<Response<Full<Bytes>>> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.ok()?.to_bytes();
        let id = parts.headers.get("ce-id")?.to_str().ok()?.to_owned();
        let fate = self.fate(host).await;
        if matches!(fate, Fate::BrokenBefore) {
            return None;
        }
        self.book.lock().receive(host, &id, &body);
        match fate {
            Fate::BrokenBefore | Fate::BrokenAfter => None,
            Fate::Hang => std::future::pending().await,
            Fate::Answer(status) => {
                if (200..300).contains(&status) {
                    self.book.lock().accept(host, &id);
                }
                let response = Response::builder().status(status);
                Some(
                    response
                        .body(Full::default())
                        .expect("a status is a response"),
                )
            }
        }
    }
}

/// The network as the courier sees it.
#[derive(Clone, Debug)]
pub(super) struct Wires(pub(super) Arc<Network>);

impl Connect for Wires {
    fn connect(&self, place: &Place) -> Connecting {
        let (network, host) = (Arc::clone(&self.0), place.host.clone());
        Box::pin(async move {
            if network.manner(&host) == Manner::Moody {
                let pause = network.chance.below(100);
                network.clock.sleep(Duration::from_millis(pause)).await;
                if network.chance.below(8) == 0 {
                    return Err(io::ErrorKind::ConnectionRefused.into());
                }
            }
            let (near, far) = tokio::io::duplex(16 << 10);
            let serving = Arc::clone(&network);
            let service = hyper::service::service_fn(move |request| {
                let (network, host) = (Arc::clone(&serving), host.clone());
                async move {
                    match network.answer(&host, request).await {
                        Some(response) => Ok::<_, Broken>(response),
                        None => Err(Broken),
                    }
                }
            });
            let serving = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(far), service);
            network
                .tasks
                .spawn("subscriber", OnError::Report, async move {
                    // A connection that breaks is what this network is for.
                    drop(serving.await);
                    Ok::<(), Infallible>(())
                });
            Ok(Box::new(near) as Box<dyn Stream>)
        })
    }
}

#[derive(Debug)]
struct Broken;

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the simulated connection broke")
    }
}

impl std::error::Error for Broken {}
