//! Subscribers with moods, and what each of them did with what it was sent. How they are reached is left to others.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use heddle_rt::{Chance, Clock};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};

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

impl Manner {
    /// Any of them. A slow one is not slower than `slow_ms_max`.
    pub(super) fn some(chance: &Chance, slow_ms_max: u64) -> Self {
        const ANSWERS: [u16; 7] = [400, 404, 410, 429, 500, 503, 503];
        match chance.below(9) {
            0 | 1 => Self::Accepts,
            2..6 => Self::Moody,
            6 => Self::Answers(ANSWERS[chance.below(ANSWERS.len() as u64) as usize]),
            7 => Self::Slow(chance.below(slow_ms_max)),
            _ => Self::Hangs,
        }
    }
}

/// How everybody behaves at the moment; who is not in it accepts.
pub(super) type Manners = Arc<Mutex<BTreeMap<String, Manner>>>;

/// All subscribers of a simulation.
#[derive(Clone, Debug)]
pub(super) struct Subscribers {
    pub(super) clock: Clock,
    pub(super) chance: Chance,
    pub(super) book: Arc<Mutex<Book>>,
    pub(super) manners: Manners,
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

impl Subscribers {
    /// Serves one connection to `host`. `life` is asked, for each request, which life of the process sent it.
    pub(super) async fn serve(
        &self,
        host: &str,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send,
        life: impl Fn() -> u64 + Send + Sync,
    ) {
        let life = &life;
        let service = hyper::service::service_fn(move |request| async move {
            let answered = self.answer(host, request, life).await;
            answered.ok_or(Broken)
        });
        let serving = hyper::server::conn::http1::Builder::new()
            .auto_date_header(false)
            .serve_connection(TokioIo::new(stream), service);
        // A connection that breaks is what simulated networks are for.
        drop(serving.await);
    }

    pub(super) fn manner(&self, host: &str) -> Manner {
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
        life: &(impl Fn() -> u64 + Send + Sync),
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
                    self.book.lock().accept(host, &id, life());
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

#[derive(Debug)]
struct Broken;

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the simulated connection broke")
    }
}

impl std::error::Error for Broken {}
