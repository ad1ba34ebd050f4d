//! The questions of JetStream, and what is of interest of their answers.

use heddle_api::counted;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::counters::{AckFloor, Channel, Subscription, SubscriptionId};
use crate::nats::{NatsClient, NatsDeps, NatsServer};
use crate::origin::Error;

/// How many streams, and how many consumers of one, an old mesh may have.
const LISTED_MAX: usize = 100_000;
/// How the server says that there is no such thing: stream, consumer.
const NOT_FOUND: u64 = 404;

#[derive(Debug)]
pub(super) struct Api {
    deps: NatsDeps,
    server: NatsServer,
    client: tokio::sync::Mutex<Option<NatsClient>>,
}

/// A stream.
#[derive(Debug, Deserialize)]
pub(crate) struct Stream {
    /// Whole, since it is written back.
    pub(super) config: Value,
    state: StreamState,
}

#[derive(Debug, Deserialize)]
struct StreamState {
    messages: u64,
    bytes: u64,
    first_seq: u64,
    last_seq: u64,
}

/// A consumer.
#[derive(Debug, Deserialize)]
pub(crate) struct ConsumerInfo {
    stream_name: String,
    name: String,
    pub(super) config: ConsumerConfig,
    delivered: Place,
    ack_floor: Place,
    num_ack_pending: u64,
    num_pending: u64,
    #[serde(default)]
    num_waiting: u64,
    #[serde(default)]
    push_bound: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct ConsumerConfig {
    #[serde(default)]
    pub(super) durable_name: String,
    #[serde(default)]
    pub(super) deliver_subject: Option<String>,
    #[serde(default)]
    pub(super) deliver_group: Option<String>,
    #[serde(default)]
    pub(super) ack_policy: String,
    /// In nanoseconds.
    #[serde(default)]
    pub(super) ack_wait: u64,
}

#[derive(Debug, Deserialize)]
struct Place {
    stream_seq: u64,
}

#[derive(Debug, Deserialize)]
struct ApiRefusal {
    error: Option<RefusalError>,
}

#[derive(Debug, Deserialize)]
struct RefusalError {
    #[serde(default)]
    code: u64,
    #[serde(default)]
    description: String,
}

#[derive(Debug, Deserialize)]
struct StreamPage {
    total: usize,
    #[serde(default)]
    streams: Option<Vec<Stream>>,
}

#[derive(Debug, Deserialize)]
struct ConsumerPage {
    total: usize,
    #[serde(default)]
    consumers: Option<Vec<ConsumerInfo>>,
}

impl Api {
    pub(super) fn new(deps: NatsDeps, server: NatsServer) -> Self {
        Self {
            deps,
            server,
            client: tokio::sync::Mutex::default(),
        }
    }

    pub(super) fn deps(&self) -> &NatsDeps {
        &self.deps
    }

    pub(super) async fn client(&self) -> Result<NatsClient, Error> {
        let mut known = self.client.lock().await;
        if let Some(client) = &*known {
            return Ok(client.clone());
        }
        let client = NatsClient::connect(&self.deps, &self.server).await?;
        Ok(known.insert(client).clone())
    }

    pub(super) async fn streams(&self) -> Result<Vec<Stream>, Error> {
        let mut all = Vec::new();
        loop {
            let offset = json!({"offset": all.len()});
            let page: StreamPage = self.ask("STREAM.LIST", "the streams", &offset).await?;
            let streams = page.streams.unwrap_or_default();
            let is_last = streams.is_empty();
            all.extend(streams);
            if is_last || all.len() >= page.total {
                return Ok(all);
            }
            bounded(all.len())?;
        }
    }

    pub(super) async fn stream(&self, name: &str) -> Result<Stream, Error> {
        let name = plain(name, "channel")?;
        let what = format!("channel {name}");
        let stream: Stream = self
            .ask(&format!("STREAM.INFO.{name}"), &what, &Value::Null)
            .await?;
        if stream.name()? != name {
            return Err(Error::Corrupt(format!(
                "the server answers for another than {what}"
            )));
        }
        Ok(stream)
    }

    pub(super) async fn update_stream(&self, name: &str, config: &Value) -> Result<(), Error> {
        let (verb, what) = (format!("STREAM.UPDATE.{name}"), format!("channel {name}"));
        let _: Value = self.ask(&verb, &what, config).await?;
        Ok(())
    }

    pub(super) async fn consumers(&self, stream: &str) -> Result<Vec<ConsumerInfo>, Error> {
        let stream = plain(stream, "channel")?;
        let (verb, what) = (
            format!("CONSUMER.LIST.{stream}"),
            format!("channel {stream}"),
        );
        let mut all = Vec::new();
        loop {
            let offset = json!({"offset": all.len()});
            let page: ConsumerPage = self.ask(&verb, &what, &offset).await?;
            let consumers = page.consumers.unwrap_or_default();
            let is_last = consumers.is_empty();
            all.extend(consumers);
            if is_last || all.len() >= page.total {
                return Ok(all);
            }
            bounded(all.len())?;
        }
    }

    pub(super) async fn consumer(&self, stream: &str, name: &str) -> Result<ConsumerInfo, Error> {
        let (stream, name) = (plain(stream, "channel")?, plain(name, "subscription")?);
        let what = format!("subscription {name} on channel {stream}");
        let verb = format!("CONSUMER.INFO.{stream}.{name}");
        self.ask(&verb, &what, &Value::Null).await
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        verb: &str,
        what: &str,
        body: &Value,
    ) -> Result<T, Error> {
        let payload = match body {
            Value::Null => Vec::new(),
            body => body.to_string().into_bytes(),
        };
        let client = self.client().await?;
        let answer = client.ask(&format!("$JS.API.{verb}"), payload).await?;
        answered(&answer.payload, what)
    }
}

/// What an answer says, or why there is none.
fn answered<T: DeserializeOwned>(payload: &[u8], what: &str) -> Result<T, Error> {
    let corrupt = |error: serde_json::Error| {
        Error::Corrupt(format!(
            "what the server says of {what} cannot be read: {error}"
        ))
    };
    let refusal: ApiRefusal = serde_json::from_slice(payload).map_err(corrupt)?;
    if let Some(error) = refusal.error {
        if error.code == NOT_FOUND {
            return Err(Error::NotFound(format!("there is no {what}")));
        }
        let text = format!("the old mesh refuses {what}: {}", error.description);
        return Err(Error::Unavailable(text));
    }
    serde_json::from_slice(payload).map_err(corrupt)
}

fn bounded(listed: usize) -> Result<(), Error> {
    if listed <= LISTED_MAX {
        return Ok(());
    }
    let text = format!(
        "the old mesh has more than {}",
        counted(LISTED_MAX, "channel or subscription")
    );
    Err(Error::Invalid(text))
}

/// A name that is one token of a subject. Others name nothing that exists.
fn plain<'n>(name: &'n str, what: &str) -> Result<&'n str, Error> {
    let is_plain =
        |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'.' | b'*' | b'>' | b'/' | b'\\');
    if !name.is_empty() && name.len() <= 255 && name.bytes().all(is_plain) {
        return Ok(name);
    }
    Err(Error::NotFound(format!("there is no {what} {name:?}")))
}

impl Stream {
    pub(super) fn name(&self) -> Result<String, Error> {
        let name = self.config["name"].as_str();
        let name = name.ok_or_else(|| Error::Corrupt("a stream has no name".to_owned()))?;
        plain(name, "channel").map(str::to_owned)
    }

    pub(super) fn subjects(&self) -> Vec<String> {
        let subjects = self.config["subjects"].as_array().into_iter().flatten();
        subjects
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    }

    /// Its numbers, if they can be true.
    pub(super) fn channel(&self) -> Result<Channel, Error> {
        let state = &self.state;
        let channel = Channel {
            name: self.name()?,
            first: match state.messages {
                0 => state.last_seq.saturating_add(1),
                _ => state.first_seq,
            },
            high_water: state.last_seq,
            events: state.messages,
            bytes: state.bytes,
        };
        let checked = channel.check();
        checked.map_err(|contradiction| Error::Corrupt(contradiction.to_string()))?;
        Ok(channel)
    }

    /// Whether only its limits remove events. Others remove what nobody needs any more.
    fn is_limited(&self) -> bool {
        self.config["retention"]
            .as_str()
            .is_none_or(|retention| retention == "limits")
    }
}

impl ConsumerInfo {
    pub(super) fn is_attached(&self) -> bool {
        self.push_bound || self.num_waiting > 0
    }

    pub(super) fn outstanding(&self) -> u64 {
        self.num_ack_pending
    }

    pub(super) fn unsent(&self) -> u64 {
        self.num_pending
    }

    /// Its numbers, if they can be true.
    pub(super) fn subscription(&self, stream: &Stream) -> Result<Subscription, Error> {
        let channel = stream.channel()?;
        let last_sent = self.delivered.stream_seq;
        let gone = channel.first.saturating_sub(1).saturating_sub(last_sent);
        let subscription = Subscription {
            id: SubscriptionId {
                channel: self.stream_name.clone(),
                client: None,
                durable: self.name.clone(),
                group: None,
            },
            is_durable: !self.config.durable_name.is_empty(),
            is_attached: self.is_attached(),
            ack_floor: AckFloor::Exactly(self.ack_floor.stream_seq),
            last_sent,
            outstanding: self.num_ack_pending,
            unsent: self.num_pending,
            expired: if stream.is_limited() { gone } else { 0 },
        };
        let checked = subscription.check(&channel);
        checked.map_err(|contradiction| Error::Corrupt(contradiction.to_string()))?;
        Ok(subscription)
    }
}

pub(crate) mod fuzzing {
    //! For the fuzzer: any bytes, taken for what JetStream answers.

    use super::{ConsumerInfo, Stream, answered};

    /// A line with a stream, and behind it a consumer: their numbers agree, or are refused.
    ///
    /// # Panics
    /// When the promise does not hold.
    pub fn answer(soup: &[u8]) {
        let end = soup
            .iter()
            .position(|byte| *byte == b'\n')
            .unwrap_or(soup.len());
        let (stream, consumer) = soup.split_at(end);
        let Ok(stream) = answered::<Stream>(stream, "a stream") else {
            return;
        };
        if let Ok(channel) = stream.channel() {
            assert_eq!(channel.check(), Ok(()));
        }
        if let Ok(consumer) = answered::<ConsumerInfo>(consumer, "a consumer")
            && let Ok(subscription) = consumer.subscription(&stream)
        {
            assert!(
                stream
                    .channel()
                    .is_ok_and(|channel| subscription.check(&channel).is_ok())
            );
        }
    }
}
