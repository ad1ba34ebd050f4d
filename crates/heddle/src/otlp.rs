//! Spans for a collector: OTLP over HTTP, in JSON, behind the cargo feature `otlp`.
//!
//! ```text
//!   mesh ──observer, one try_send──> queue ──> batches, one request at a time ──> ENDPOINT/v1/traces
//!                                      └ full: dropped and counted      └ given up: dropped and counted
//! ```
//! The path of an event is never slowed down: what finds no room is dropped, and `heddle_otlp_spans_dropped_total` says
//! so. Written by hand, because OpenTelemetry's own packages bring fifteen more with a clock, chance and threads of
//! their own, for a document that fits on a page (`json.rs`). What a span says is `record.rs`.

mod json;
mod record;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use heddle_mesh::Observer;
use heddle_mesh::observer::{Accepted, Attempted};
use heddle_rt::backoff::{self, Backoff};
use heddle_rt::{Chance, Clock, OnError, Tasks};
use http::{HeaderMap, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Limited};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::record::Record;
use crate::base_url;
use crate::client::Remote;
use crate::failure::Failure;
use crate::wire::World;

/// Spans that wait to be sent. Each takes about a kilobyte, and a second of a busy mesh should fit.
const QUEUE_MAX: usize = 8192;
/// Spans in one request; collectors take some megabytes.
const BATCH_MAX: usize = 512;
/// How long the first span of a batch waits for others.
const LINGER: Duration = Duration::from_secs(1);
/// How long a request may take. The number is the specification's.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(10);
/// How often a batch is sent; meanwhile the queue fills.
const TRIES_MAX: u32 = 5;
const PAUSES: backoff::Limits = backoff::Limits {
    min: Duration::from_millis(500),
    max: Duration::from_secs(10),
};
/// The longest pause that a collector may ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);
/// Of an answer nothing is read but how many spans were refused.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Whether spans can be sent to `endpoint`.
pub(crate) fn check(endpoint: &str) -> Result<(), Failure> {
    address(endpoint).map(drop)
}

fn address(endpoint: &str) -> Result<Uri, Failure> {
    let what = "address of an OTLP collector";
    base_url::parse(endpoint, what, &["http", "https"], "http://127.0.0.1:4318")
}

/// Sends spans. Clones are the same exporter.
#[derive(Clone, Debug)]
pub(crate) struct Exporter {
    intake: Arc<Intake>,
    clock: Clock,
    tasks: Tasks,
}

/// Where spans come in, and what became of them.
#[derive(Debug)]
struct Intake {
    records: mpsc::Sender<Record>,
    sent: AtomicU64,
    dropped: AtomicU64,
}

impl Exporter {
    /// Begins to send what its observer is told.
    pub(crate) fn start(endpoint: &str, world: &World, tasks: &Tasks) -> anyhow::Result<Self> {
        let remote = Remote::anonymous(address(endpoint)?, endpoint.to_owned())
            .context("cannot send spans")?;
        let (intake, records) = Intake::new();
        let exporter = Self {
            intake: Arc::clone(&intake),
            clock: world.clock.clone(),
            tasks: tasks.child("otlp"),
        };
        let worker = Worker {
            remote,
            records,
            intake,
            clock: world.clock.clone(),
            chance: world.chance.clone(),
            failing: false,
        };
        let run = |closing| worker.run(closing);
        exporter
            .tasks
            .spawn_finishing("exporter", OnError::Report, run);
        Ok(exporter)
    }

    /// Whom the mesh tells.
    pub(crate) fn observer(&self) -> Arc<dyn Observer> {
        Arc::clone(&self.intake) as Arc<dyn Observer>
    }

    /// The text that Prometheus reads, without the end mark.
    pub(crate) fn metrics_text(&self) -> String {
        let (sent, dropped) = (&self.intake.sent, &self.intake.dropped);
        format!(
            "# TYPE heddle_otlp_spans_sent counter\n\
             # HELP heddle_otlp_spans_sent Spans that the collector took.\n\
             heddle_otlp_spans_sent_total {}\n\
             # TYPE heddle_otlp_spans_dropped counter\n\
             # HELP heddle_otlp_spans_dropped Spans that found no room or no collector.\n\
             heddle_otlp_spans_dropped_total {}\n",
            sent.load(Ordering::Relaxed),
            dropped.load(Ordering::Relaxed)
        )
    }

    /// Sends what waits, once and no longer than `patience`.
    pub(crate) async fn close(&self, patience: Duration) {
        self.tasks.cancel();
        let ended = self.clock.timeout(patience, self.tasks.join()).await;
        let dropped = self.intake.dropped.load(Ordering::Relaxed);
        if ended.is_err() {
            tracing::warn!(dropped, "the collector did not take the last spans in time");
        } else if dropped > 0 {
            tracing::warn!(dropped, "some spans were not sent");
        }
    }
}

impl Intake {
    fn new() -> (Arc<Self>, mpsc::Receiver<Record>) {
        let (records, waiting) = mpsc::channel(QUEUE_MAX);
        let intake = Self {
            records,
            sent: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        };
        (Arc::new(intake), waiting)
    }

    /// The room comes first: without any, nothing is copied.
    fn put(&self, make: impl FnOnce() -> Record) {
        match self.records.try_reserve() {
            Ok(room) => room.send(make()),
            Err(_) => self.drop_some(1),
        }
    }

    fn drop_some(&self, count: u64) {
        self.dropped.fetch_add(count, Ordering::Relaxed);
    }
}

impl Observer for Intake {
    fn accepted(&self, accepted: &Accepted<'_>) {
        self.put(|| Record::of_accepted(accepted));
    }

    fn attempted(&self, attempted: &Attempted<'_>) {
        self.put(|| Record::of_attempted(attempted));
    }
}

/// The one who sends.
struct Worker {
    remote: Remote,
    records: mpsc::Receiver<Record>,
    intake: Arc<Intake>,
    clock: Clock,
    chance: Chance,
    /// Whether people were told that the collector does not answer.
    failing: bool,
}

/// What became of a request.
enum Posted {
    /// Taken, but for so many spans.
    Taken { refused: u64 },
    /// It would be refused again.
    Refused(String),
    /// It may be taken later.
    Failed { reason: String, pause: Duration },
}

impl Worker {
    async fn run(mut self, closing: CancellationToken) {
        loop {
            let batch = self.batch(&closing).await;
            if batch.is_empty() {
                return;
            }
            self.send(&batch, &closing).await;
        }
    }

    /// What waits, as much as goes into a request; nothing when it closes and all was sent.
    async fn batch(&mut self, closing: &CancellationToken) -> Vec<Record> {
        let mut batch = Vec::new();
        let gathering = async {
            take(&mut self.records, &mut batch).await;
            let filling = async { while take(&mut self.records, &mut batch).await {} };
            self.clock.timeout(LINGER, filling).await
        };
        if closing.run_until_cancelled(gathering).await.is_none() {
            self.records.close();
            while take(&mut self.records, &mut batch).await {}
        }
        batch
    }

    /// Sends a batch, again if that may help. When it closes there is one more try.
    async fn send(&mut self, batch: &[Record], closing: &CancellationToken) {
        let count = batch.len() as u64;
        let body = Bytes::from(json::request(batch).to_string());
        let mut backoff = Backoff::new(PAUSES, self.chance.clone());
        loop {
            let last = closing.is_cancelled() || backoff.failures() + 1 >= TRIES_MAX;
            match self.post(body.clone()).await {
                Posted::Taken { refused } => {
                    let refused = refused.min(count);
                    self.intake.drop_some(refused);
                    self.intake
                        .sent
                        .fetch_add(count - refused, Ordering::Relaxed);
                    if std::mem::replace(&mut self.failing, false) {
                        tracing::info!("the collector takes spans again");
                    }
                    return;
                }
                Posted::Failed { reason, pause } if !last => {
                    self.complain(&reason);
                    let pause = backoff.failed().max(pause);
                    tokio::select! {
                        () = self.clock.sleep(pause) => {}
                        () = closing.cancelled() => {}
                    }
                }
                Posted::Failed { reason, .. } | Posted::Refused(reason) => {
                    self.complain(&reason);
                    self.intake.drop_some(count);
                    return;
                }
            }
        }
    }

    /// Once for each time that it begins to fail: the metric goes on counting.
    fn complain(&mut self, reason: &str) {
        if !std::mem::replace(&mut self.failing, true) {
            tracing::warn!(reason, "the collector does not take spans");
        }
    }

    async fn post(&self, body: Bytes) -> Posted {
        let failed = |reason: String| Posted::Failed {
            reason,
            pause: Duration::ZERO,
        };
        let answering = async {
            let request = Request::post("/v1/traces")
                .header(header::CONTENT_TYPE, "application/json")
                .body(body.to_vec())
                .expect("a method, a path and a header");
            let (head, body) = self.remote.open(request).await?.into_parts();
            let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
            // What was said in the head holds, whatever became of the body.
            let body = body.map(|body| body.to_bytes()).unwrap_or_default();
            anyhow::Ok((head.status, head.headers, body))
        };
        match self.clock.timeout(REQUEST_TIME_MAX, answering).await {
            Ok(Ok((status, headers, body))) => judge(status, &headers, &body),
            Ok(Err(error)) => failed(format!("{error:#}")),
            Err(late) => failed(format!("{} did not answer: {late}", self.remote.place())),
        }
    }
}

/// Waits for more; gives whether there may be more of it that goes into the batch.
async fn take(records: &mut mpsc::Receiver<Record>, batch: &mut Vec<Record>) -> bool {
    let room = BATCH_MAX - batch.len();
    room > 0 && records.recv_many(batch, room).await > 0
}

/// What an answer means, as the specification has it.
fn judge(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Posted {
    if status.is_success() {
        let answer: Value = serde_json::from_slice(body).unwrap_or_default();
        let refused = &answer["partialSuccess"]["rejectedSpans"];
        // In JSON, numbers of 64 bits are texts; some write them as numbers all the same.
        let text = refused.as_str().and_then(|text| text.parse().ok());
        let refused = text.or_else(|| refused.as_u64()).unwrap_or(0);
        return Posted::Taken { refused };
    }
    let reason = format!("the collector answered {status}");
    match status.as_u16() {
        429 | 502 | 503 | 504 => {
            let asked = headers.get(header::RETRY_AFTER);
            let asked = asked.and_then(|value| value.to_str().ok()?.parse().ok());
            let pause = asked.map(Duration::from_secs).unwrap_or_default();
            Posted::Failed {
                reason,
                pause: pause.min(RETRY_AFTER_MAX),
            }
        }
        _ => Posted::Refused(reason),
    }
}
