//! `heddle-bench nats`: publishes to JetStream and waits for each acknowledgement, a process of its own.
//!
//! One connection with a window of messages in flight, which is how JetStream is meant to be used. Only the handful of
//! protocol lines that takes is spoken; whatever is ready is read, answered and written in one go, as good clients do.

use std::io::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use bytes::{Buf as _, BytesMut};
use heddle_rt::Clock;
use heddle_rt::metrics::Latencies;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::load::Outcome;
use heddle::terminal::Terminal;
use heddle::wire::World;

/// The stream that is published to; made anew with every data directory.
const STREAM: &str = "BENCH";
const SUBJECT: &str = "bench.events";
/// Acknowledgements come back here, with the number of the place in the window behind it.
const INBOX: &str = "_INBOX.bench.";
/// Keeps a long run from filling the disk; the oldest messages go first.
const STREAM_BYTES_MAX: u64 = 4 << 30;

/// Publishes to JetStream with acknowledgements
#[derive(Clone, Debug, clap::Args)]
pub(in super::super) struct Args {
    /// Where nats-server listens
    pub(super) address: SocketAddr,

    /// Messages sent and not yet acknowledged
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) in_flight: u16,

    /// How long to measure
    #[arg(long, default_value_t = 1.0)]
    pub(super) seconds: f64,

    /// How long to publish before measuring
    #[arg(long, default_value_t = 0.0)]
    pub(super) warm_up: f64,

    #[arg(long, default_value_t = 1024)]
    pub(super) data_bytes: usize,
}

impl Args {
    /// The command line that parses to this.
    pub(super) fn command_line(&self) -> Vec<String> {
        [
            "nats",
            &self.address.to_string(),
            "--in-flight",
            &self.in_flight.to_string(),
            "--seconds",
            &self.seconds.to_string(),
            "--warm-up",
            &self.warm_up.to_string(),
            "--data-bytes",
            &self.data_bytes.to_string(),
        ]
        .map(str::to_owned)
        .into()
    }
}

pub(in super::super) fn run(
    args: Args,
    world: &World,
    terminal: &mut Terminal,
) -> anyhow::Result<()> {
    let outcome = super::on_one_thread(publish(args, world.clock.clone()))?;
    writeln!(terminal.out, "{}", outcome.to_json())?;
    Ok(terminal.out.flush()?)
}

/// Publishes until the time is up and everything sent is acknowledged.
pub(super) async fn publish(args: Args, clock: Clock) -> anyhow::Result<Outcome> {
    let mut connection = Connection::open(args.address).await?;
    connection.create_stream().await?;
    let payload = vec![b'x'; args.data_bytes];
    let warm = clock.monotonic() + Duration::from_secs_f64(args.warm_up);
    let end = warm + Duration::from_secs_f64(args.seconds);
    let mut window = vec![Duration::ZERO; args.in_flight.into()];
    for (place, sent) in window.iter_mut().enumerate() {
        *sent = clock.monotonic();
        connection.queue(SUBJECT, place, &payload);
    }
    let (mut open, mut accepted, mut measured) = (window.len(), 0, 0_u32);
    let mut latencies = Latencies::default();
    while open > 0 {
        connection.flush().await?;
        connection.fill().await?;
        while let Some(message) = connection.next()? {
            let now = clock.monotonic();
            ensure!(
                !message.is_error,
                "JetStream refused a message: {}",
                message.text
            );
            accepted += 1;
            if now >= warm && now <= end {
                measured += 1;
                latencies.record(now.saturating_sub(window[message.place]));
            }
            if now < end {
                window[message.place] = now;
                connection.queue(SUBJECT, message.place, &payload);
            } else {
                open -= 1;
            }
        }
    }
    Ok(Outcome {
        accepted,
        refused: 0,
        rate: f64::from(measured) / args.seconds,
        p50: latencies.percentile(0.5),
        p99: latencies.percentile(0.99),
    })
}

/// What came back for one place in the window.
struct Message {
    place: usize,
    is_error: bool,
    /// The answer, kept only when it is an error.
    text: String,
}

struct Connection {
    stream: TcpStream,
    received: BytesMut,
    to_send: Vec<u8>,
}

impl Connection {
    async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = heddle_rt::net::connect(address)
            .await
            .with_context(|| format!("cannot connect to nats-server on {address}"))?;
        stream.set_nodelay(true)?;
        let mut connection = Self {
            stream,
            received: BytesMut::with_capacity(64 * 1024),
            to_send: Vec::new(),
        };
        while line_end(&connection.received).is_none() {
            connection.fill().await?;
        }
        ensure!(
            connection.received.starts_with(b"INFO "),
            "{address} does not speak NATS"
        );
        let options = r#"{"verbose":false,"pedantic":false,"tls_required":false,"lang":"rust","version":"1","protocol":1}"#;
        write!(
            connection.to_send,
            "CONNECT {options}\r\nSUB {INBOX}* 1\r\n"
        )?;
        Ok(connection)
    }

    /// Makes a stream on disk and waits until it is there.
    async fn create_stream(&mut self) -> anyhow::Result<()> {
        let config = serde_json::json!({
            "name": STREAM, "subjects": ["bench.>"], "storage": "file", "retention": "limits",
            "discard": "old", "num_replicas": 1, "max_bytes": STREAM_BYTES_MAX,
        });
        let subject = format!("$JS.API.STREAM.CREATE.{STREAM}");
        self.queue(&subject, 0, config.to_string().as_bytes());
        self.flush().await?;
        loop {
            if let Some(answer) = self.next()? {
                ensure!(
                    !answer.is_error,
                    "cannot create the stream: {}",
                    answer.text
                );
                return Ok(());
            }
            self.fill().await?;
        }
    }

    /// Puts a message behind those that wait to be written.
    fn queue(&mut self, subject: &str, place: usize, payload: &[u8]) {
        write!(
            self.to_send,
            "PUB {subject} {INBOX}{place} {}\r\n",
            payload.len()
        )
        .expect("writing to a vector cannot fail");
        self.to_send.extend_from_slice(payload);
        self.to_send.extend_from_slice(b"\r\n");
    }

    async fn flush(&mut self) -> anyhow::Result<()> {
        self.stream.write_all(&self.to_send).await?;
        self.to_send.clear();
        Ok(())
    }

    async fn fill(&mut self) -> anyhow::Result<()> {
        self.received.reserve(16 * 1024);
        let read = self.stream.read_buf(&mut self.received).await?;
        ensure!(read > 0, "nats-server closed the connection");
        Ok(())
    }

    /// The next message that has arrived whole. Lines of the protocol before it are dealt with.
    fn next(&mut self) -> anyhow::Result<Option<Message>> {
        while let Some(end) = line_end(&self.received) {
            let line = std::str::from_utf8(&self.received[..end])
                .context("nats-server sent a line that is not text")?;
            let mut words = line.split(' ');
            match words.next() {
                Some("MSG") => {
                    let place = words
                        .next()
                        .and_then(|subject| subject.strip_prefix(INBOX)?.parse().ok());
                    let size = words.next_back().and_then(|size| size.parse().ok());
                    let (Some(place), Some(size)) = (place, size) else {
                        bail!("nats-server sent a message that nobody asked for: {line}");
                    };
                    return Ok(self.take_message(end + 2, place, size));
                }
                Some("PING") => self.to_send.extend_from_slice(b"PONG\r\n"),
                Some("-ERR") => bail!("nats-server says {line}"),
                _ => {}
            }
            self.received.advance(end + 2);
        }
        Ok(None)
    }

    fn take_message(&mut self, start: usize, place: usize, size: usize) -> Option<Message> {
        let payload = self.received.get(start..start + size + 2)?;
        let payload = &payload[..size];
        let is_error = payload.windows(8).any(|window| window == b"\"error\":");
        let text = if is_error {
            String::from_utf8_lossy(payload).into_owned()
        } else {
            String::new()
        };
        self.received.advance(start + size + 2);
        Some(Message {
            place,
            is_error,
            text,
        })
    }
}

fn line_end(bytes: &[u8]) -> Option<usize> {
    bytes.windows(2).position(|two| two == b"\r\n")
}
