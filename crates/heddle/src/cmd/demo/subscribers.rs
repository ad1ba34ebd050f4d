//! The demo's two subscribers: one takes every event, one is out of order until somebody mends it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use heddle_mesh::event::http as cloudevents;
use heddle_rt::net::{self, Door};
use heddle_rt::{OnError, Tasks};
use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::wire::World;

/// Whoever posts here mends the subscriber that fails, and breaks it again.
pub(super) const MEND: &str = "/refunds/mend";
pub(super) const BREAK: &str = "/refunds/break";

/// Arrivals that nobody has looked at yet; more are counted, but not shown.
const ARRIVALS_MAX: usize = 1024;

/// An event that came to one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    pub(super) path: &'static str,
    pub(super) id: String,
    pub(super) type_: String,
    /// What was answered.
    pub(super) answer: u16,
}

/// Both of them, at one address.
#[derive(Debug)]
pub(super) struct Subscribers {
    pub(super) url: String,
    arrivals: mpsc::Receiver<Arrival>,
    counts: Arc<Mutex<HashMap<&'static str, u64>>>,
}

#[derive(Clone, Debug)]
struct Book {
    arrivals_tx: mpsc::Sender<Arrival>,
    counts: Arc<Mutex<HashMap<&'static str, u64>>>,
    mended: Arc<AtomicBool>,
}

impl Subscribers {
    /// Listens on a free port until the tasks are cancelled.
    pub(super) async fn start(tasks: &Tasks, world: &World) -> anyhow::Result<Self> {
        let listener = net::bind(([127, 0, 0, 1], 0).into())
            .await
            .context("cannot listen for the demo's subscribers")?;
        let url = format!("http://{}", listener.address());
        let (arrivals_tx, arrivals) = mpsc::channel(ARRIVALS_MAX);
        let counts: Arc<Mutex<HashMap<_, _>>> = Arc::default();
        let book = Book {
            arrivals_tx,
            counts: counts.clone(),
            mended: Arc::default(),
        };
        let router = Router::new()
            .route("/orders", post(orders))
            .route("/refunds", post(refunds))
            .route(MEND, post(mend))
            .route(BREAK, post(break_again))
            .with_state(book);
        let door = Door {
            clock: world.clock.clone(),
            tls: None,
            plain_on_loopback: true,
            limits: net::Limits::default(),
            budget: heddle_rt::Budget::default(),
        };
        let closing = tasks.cancellation();
        tasks.spawn(
            "subscribers",
            OnError::Report,
            net::serve(listener, door, router, closing),
        );
        Ok(Self {
            url,
            arrivals,
            counts,
        })
    }

    /// The next event that arrives.
    pub(super) async fn next(&mut self) -> Arrival {
        match self.arrivals.recv().await {
            Some(arrival) => arrival,
            None => std::future::pending().await,
        }
    }

    /// How many events came to a path so far.
    pub(super) fn arrived(&self, path: &str) -> u64 {
        self.counts.lock().get(path).copied().unwrap_or_default()
    }
}

async fn orders(State(book): State<Book>, headers: HeaderMap, body: Bytes) -> Response {
    book.note("/orders", StatusCode::OK, &headers, &body)
}

async fn refunds(State(book): State<Book>, headers: HeaderMap, body: Bytes) -> Response {
    if book.mended.load(Ordering::Relaxed) {
        return book.note("/refunds", StatusCode::OK, &headers, &body);
    }
    let answer = book.note("/refunds", StatusCode::SERVICE_UNAVAILABLE, &headers, &body);
    (
        answer.status(),
        "refunds are out of order until they are mended",
    )
        .into_response()
}

async fn mend(State(book): State<Book>) -> &'static str {
    book.mended.store(true, Ordering::Relaxed);
    "refunds work from now on; redrive what could not be delivered\n"
}

async fn break_again(State(book): State<Book>) -> &'static str {
    book.mended.store(false, Ordering::Relaxed);
    "refunds are out of order again\n"
}

impl Book {
    /// Writes an event down. What is no event is refused: then the mesh has made a mistake.
    fn note(
        &self,
        path: &'static str,
        answer: StatusCode,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Response {
        let received = cloudevents::read(headers, body, &cloudevents::Limits::default());
        let events = match received {
            Ok(events) => events,
            Err(refused) => return (refused.status, refused.message).into_response(),
        };
        for event in events {
            *self.counts.lock().entry(path).or_default() += 1;
            let arrival = Arrival {
                path,
                id: event.id().to_owned(),
                type_: event.type_().to_owned(),
                answer: answer.as_u16(),
            };
            if self.arrivals_tx.try_send(arrival).is_err() {
                tracing::debug!(path, "an arrival is counted but not shown");
            }
        }
        answer.into_response()
    }
}
