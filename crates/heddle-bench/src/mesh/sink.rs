//! `heddle-bench sink`: a subscriber that does nothing but count, a process of its own.
//!
//! Every POST is a delivery and is answered 202 at once. `GET` tells what was counted, `DELETE` forgets it. How long an
//! event was on its way is taken from the time of sending that the load generator put into it. With `--manner` it answers
//! like subscribers that are not well, each in its own way.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use heddle_rt::metrics::Latencies;
use heddle_rt::{Clock, OnError, Tasks};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::load::Stamps;
use super::template::SENT_HEADER;
use super::wire::{self, Wire};
use heddle::terminal::Terminal;
use heddle::wire::World;

const ACCEPTED: &[u8] = b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n";

/// How long a slow subscriber takes.
const SLOW: Duration = Duration::from_millis(200);
/// How long a busy one asks to be left alone.
const BUSY_SECONDS: u32 = 1;
/// What a wordy one has to say about an event it does not want.
const WORDY_BYTES: usize = 2048;

/// Accepts every event and counts
#[derive(Clone, Debug, clap::Args)]
pub(in super::super) struct Args {
    /// How events are answered
    #[arg(long, value_enum, default_value_t)]
    manner: Manner,
}

/// How a sink answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Manner {
    #[default]
    Accepting,
    /// Takes the request and never answers.
    Hung,
    /// Accepts after a while.
    Slow,
    /// 429, and asks for time.
    Busy,
    /// 500, for ever.
    Failing,
    /// 400, with a long answer.
    Wordy,
    /// Closes the connection instead of answering.
    Closing,
}

impl Manner {
    /// All that are not well.
    pub(super) const BAD: [Self; 6] = [
        Self::Hung,
        Self::Slow,
        Self::Busy,
        Self::Failing,
        Self::Wordy,
        Self::Closing,
    ];

    /// As the command line says it.
    pub(super) fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

pub(in super::super) fn run(
    args: Args,
    world: &World,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    let clock = world.clock.clone();
    super::on_one_thread(async move {
        let listener = Bound::new().await?;
        terminal.say(&listener.address.to_string())?;
        let closed = super::processes::standard_input_closed(&Tasks::new("sink"))?;
        tokio::select! {
            ended = listener.serve(clock, args.manner) => ended,
            () = closed.cancelled() => Ok(()),
        }
    })
}

/// What a sink counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Counted {
    pub(super) received: u64,
    pub(super) p50: Duration,
    pub(super) p99: Duration,
}

impl Counted {
    /// Asks a sink.
    pub(super) async fn of(address: SocketAddr) -> anyhow::Result<Self> {
        let (_, body) = wire::ask(address, "GET", "/").await?;
        let value: Value =
            serde_json::from_str(&body).with_context(|| format!("the sink answered {body:?}"))?;
        let seconds =
            |name: &str| Duration::from_secs_f64(value[name].as_f64().unwrap_or_default());
        Ok(Self {
            received: value["received"]
                .as_u64()
                .context("the sink did not say what it received")?,
            p50: seconds("p50Seconds"),
            p99: seconds("p99Seconds"),
        })
    }

    /// Makes a sink begin at zero.
    pub(super) async fn forget(address: SocketAddr) -> anyhow::Result<()> {
        wire::ask(address, "DELETE", "/").await.map(|_| ())
    }
}

/// A sink that is reachable but does not answer yet.
#[derive(Debug)]
pub(super) struct Bound {
    inner: TcpListener,
    pub(super) address: SocketAddr,
}

#[derive(Debug, Default)]
struct Counters {
    received: u64,
    latencies: Latencies,
}

impl Bound {
    #[expect(
        clippy::disallowed_methods,
        reason = "a bare socket on loopback: what the doors of heddle cost must not be in the sink"
    )]
    pub(super) async fn new() -> anyhow::Result<Self> {
        let inner = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = inner.local_addr()?;
        Ok(Self { inner, address })
    }

    pub(super) async fn serve(self, clock: Clock, manner: Manner) -> anyhow::Result<()> {
        let tasks = Tasks::new("sink");
        let counters = Arc::<Mutex<Counters>>::default();
        let stamps = Stamps::new(&clock);
        loop {
            let (stream, peer) = self.inner.accept().await?;
            let conversation = Conversation {
                wire: Wire::over(stream)?,
                counters: counters.clone(),
                clock: clock.clone(),
                stamps,
                manner,
            };
            // A server under test may be killed at any time, and its connections with it.
            tasks.spawn(&format!("from-{peer}"), OnError::Report, conversation.run());
        }
    }
}

struct Conversation {
    wire: Wire,
    counters: Arc<Mutex<Counters>>,
    clock: Clock,
    stamps: Stamps,
    manner: Manner,
}

impl Conversation {
    async fn run(mut self) -> io::Result<()> {
        while let Some(frame) = self.wire.message().await? {
            let head = self.wire.head(frame);
            if head.starts_with(b"POST ") {
                let sent = wire::header(head, SENT_HEADER)
                    .and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
                self.count(sent);
                if self.manner == Manner::Closing {
                    return Ok(());
                }
                self.answer().await?;
            } else {
                let forget = head.starts_with(b"DELETE ");
                let report = self.report(forget);
                self.wire.write(report.as_bytes()).await?;
            }
            self.wire.consume(frame);
        }
        Ok(())
    }

    async fn answer(&mut self) -> io::Result<()> {
        let refusal = |status: &str, header: &str, body: &str| {
            let bytes = body.len();
            format!("HTTP/1.1 {status}\r\n{header}content-length: {bytes}\r\n\r\n{body}")
        };
        let answer = match self.manner {
            Manner::Accepting => return self.wire.write(ACCEPTED).await,
            Manner::Slow => {
                self.clock.sleep(SLOW).await;
                return self.wire.write(ACCEPTED).await;
            }
            // The other side gives up and hangs up, which ends the conversation.
            Manner::Hung | Manner::Closing => return Ok(()),
            Manner::Busy => {
                let header = format!("retry-after: {BUSY_SECONDS}\r\n");
                refusal("429 Too Many Requests", &header, "")
            }
            Manner::Failing => refusal("500 Internal Server Error", "", "no"),
            Manner::Wordy => refusal("400 Bad Request", "", &"x".repeat(WORDY_BYTES)),
        };
        self.wire.write(answer.as_bytes()).await
    }

    fn count(&self, sent: Option<u64>) {
        let now = self.stamps.at(self.clock.monotonic());
        let mut counters = self.counters.lock();
        counters.received += 1;
        if let Some(sent) = sent {
            let took = Duration::from_nanos(now.saturating_sub(sent));
            counters.latencies.record(took);
        }
    }

    fn report(&self, forget: bool) -> String {
        let mut counters = self.counters.lock();
        if forget {
            counters.received = 0;
            counters.latencies.clear();
        }
        let seconds = |share| counters.latencies.percentile(share).as_secs_f64();
        let body = json!({
            "received": counters.received, "p50Seconds": seconds(0.5), "p99Seconds": seconds(0.99),
        })
        .to_string();
        format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
    }
}
