//! JetStream: Kyma's later NATS mesh, and Knative's JetStream channels.
//!
//! A channel is a stream and a subscription is a durable consumer of it. A stream is fenced by giving its subjects a prefix,
//! so that the server refuses what is published to the old ones, and whoever finds the prefix knows how to take it away again,
//! also after a crash. Everything is asked for in JSON over the protocol of `nats`.

mod api;
mod reader;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use self::api::{Api, ConsumerInfo, Stream};
use self::reader::JetStreamReader;
use crate::counters::{Channel, Fence, FenceHold, Subscription, SubscriptionId};
use crate::nats::{NatsDeps, NatsServer};
use crate::origin::{Answer, Error, Origin, OriginObjects, Reader};
use crate::rest::at_rest;

pub(crate) use self::api::fuzzing;

/// In front of the subjects of a stream that is fenced.
pub const FENCE_PREFIX: &str = "heddle-fenced.";

/// The server takes a moment to notice that a subscriber has left: how often it is asked whether it has, with which pause.
const LEFT_ATTEMPTS: usize = 20;
const LEFT_PAUSE: Duration = Duration::from_millis(100);

/// Which old mesh.
#[derive(Clone, Debug)]
pub struct Settings {
    pub server: NatsServer,
    pub objects: Arc<dyn OriginObjects>,
}

/// The streams of a NATS server.
#[derive(Debug)]
pub struct JetStream {
    api: Arc<Api>,
    objects: Arc<dyn OriginObjects>,
}

impl JetStream {
    /// Nothing is asked before something has to be known.
    #[must_use]
    pub fn new(deps: NatsDeps, settings: Settings) -> Self {
        Self {
            api: Arc::new(Api::new(deps, settings.server)),
            objects: settings.objects,
        }
    }

    async fn hold(&self, channel: &str) -> Result<Fence, Error> {
        let stream = self.api.stream(channel).await?;
        let hold = self.rename(&stream, |subject| match subject.starts_with(FENCE_PREFIX) {
            true => subject.to_owned(),
            false => format!("{FENCE_PREFIX}{subject}"),
        });
        // One without subjects takes its events from other streams.
        let hold = match hold.await? {
            true => FenceHold::Everybody,
            false => FenceHold::Watched,
        };
        let deps = self.api.deps();
        let look = async || Ok(self.api.stream(channel).await?.channel()?.high_water);
        let high_water = at_rest(&deps.clock, deps.patience.answer, channel, look).await?;
        Ok(Fence {
            channel: channel.to_owned(),
            high_water,
            hold,
        })
    }

    async fn lift(&self, channel: &str) -> Result<(), Error> {
        let stream = self.api.stream(channel).await?;
        let plain = |subject: &str| {
            subject
                .strip_prefix(FENCE_PREFIX)
                .unwrap_or(subject)
                .to_owned()
        };
        self.rename(&stream, plain).await?;
        Ok(())
    }

    /// Gives the subjects of a stream other names, and answers whether it has any.
    async fn rename(&self, stream: &Stream, name: impl Fn(&str) -> String) -> Result<bool, Error> {
        let before = stream.subjects();
        let after: Vec<String> = before.iter().map(|subject| name(subject)).collect();
        if before != after {
            let mut config = stream.config.clone();
            config["subjects"] = json!(after);
            self.api.update_stream(&stream.name()?, &config).await?;
        }
        Ok(!after.is_empty())
    }

    async fn begin(&self, id: &SubscriptionId) -> Result<JetStreamReader, Error> {
        if id.client.is_some() || id.group.is_some() {
            return Err(Error::NotFound(format!("there is no {id}")));
        }
        let mut attempt = 1;
        let consumer = loop {
            let consumer = self.api.consumer(&id.channel, &id.durable).await?;
            if let Some(why) = consumer.why_not() {
                return Err(Error::Invalid(format!("{id} {why}")));
            }
            if !consumer.is_attached() {
                break consumer;
            }
            if attempt == LEFT_ATTEMPTS {
                return Err(Error::Conflict(format!("{id} has a subscriber")));
            }
            attempt += 1;
            self.api.deps().clock.sleep(LEFT_PAUSE).await;
        };
        JetStreamReader::begin(Arc::clone(&self.api), id.clone(), &consumer).await
    }
}

impl Origin for JetStream {
    fn objects(&self) -> Answer<'_, Vec<Value>> {
        self.objects.objects()
    }

    fn channels(&self) -> Answer<'_, Vec<Channel>> {
        Box::pin(async {
            let streams = self.api.streams().await?;
            let channels: Result<Vec<Channel>, Error> =
                streams.iter().map(Stream::channel).collect();
            let mut channels = channels?;
            channels.sort_by(|a, b| a.name.cmp(&b.name));
            Ok(channels)
        })
    }

    fn subscriptions(&self, channel: &str) -> Answer<'_, Vec<Subscription>> {
        let channel = channel.to_owned();
        Box::pin(async move {
            // First the consumers: the stream must be at least as new.
            let consumers = self.api.consumers(&channel).await?;
            let stream = self.api.stream(&channel).await?;
            let counted = consumers
                .iter()
                .map(|consumer| consumer.subscription(&stream));
            counted.collect::<Result<Vec<Subscription>, Error>>()
        })
    }

    fn fence(&self, channel: &str) -> Answer<'_, Fence> {
        let channel = channel.to_owned();
        Box::pin(async move { self.hold(&channel).await })
    }

    fn lift_fence(&self, channel: &str) -> Answer<'_, ()> {
        let channel = channel.to_owned();
        Box::pin(async move { self.lift(&channel).await })
    }

    fn take_over(&self, subscription: &SubscriptionId) -> Answer<'_, Box<dyn Reader>> {
        let id = subscription.clone();
        Box::pin(async move {
            let reader = self.begin(&id).await?;
            Ok(Box::new(reader) as Box<dyn Reader>)
        })
    }
}

impl ConsumerInfo {
    /// Why it cannot be read by us, if so.
    fn why_not(&self) -> Option<&'static str> {
        if self.config.durable_name.is_empty() {
            Some("does not outlive its connection")
        } else if self.config.ack_policy != "explicit" {
            Some("does not acknowledge its events one by one")
        } else {
            None
        }
    }
}
