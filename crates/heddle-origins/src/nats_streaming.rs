//! NATS Streaming: what is behind Kyma's event bus and Knative's NatssChannel.
//!
//! ```text
//!   monitoring (HTTP)  <── counters of channels and subscriptions
//!   NATS               <── sessions: one per client id, kept alive by heartbeats both ways
//!                             └── readers: one per durable, with a window of events that are not acknowledged
//! ```
//! A durable belongs to a client id, and its place is taken by whoever connects under that id once its owner does not answer
//! any more; the server sees to that. A subscription is closed and never unsubscribed, which would remove it. The server
//! cannot be told to refuse publishers, but takes each client id once: a fence holds the ids of the publishers that are
//! named, and everybody else moves a counter.

mod messages;
mod monitor;
mod reader;
mod session;

pub(crate) mod fuzzing;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Weak};

use heddle_rt::net::dial::Place;
use parking_lot::Mutex;
use serde_json::Value;

use self::monitor::Monitor;
use self::reader::StreamingReader;
use self::session::StreamingSession;
use crate::counters::{Channel, Fence, FenceHold, Subscription, SubscriptionId};
use crate::nats::{NatsClient, NatsDeps, NatsServer};
use crate::origin::{Answer, Error, Origin, OriginObjects, Reader};
use crate::rest::at_rest;

/// Which old mesh.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where NATS is spoken.
    pub server: NatsServer,
    /// Where the counters are, which are asked for without credentials.
    pub monitor: Place,
    /// The name of the cluster.
    pub cluster: String,
    /// Client ids under which events are published. A fence keeps them.
    pub publishers: Vec<String>,
    pub objects: Arc<dyn OriginObjects>,
}

/// A NATS Streaming server.
#[derive(Debug)]
pub struct NatsStreaming {
    settings: Settings,
    deps: NatsDeps,
    monitor: Arc<Monitor>,
    client: tokio::sync::Mutex<Option<NatsClient>>,
    sessions: tokio::sync::Mutex<HashMap<String, Weak<StreamingSession>>>,
    fenced: Mutex<Fenced>,
}

/// What fences keep.
#[derive(Debug, Default)]
struct Fenced {
    channels: BTreeSet<String>,
    publishers: Vec<Arc<StreamingSession>>,
}

impl NatsStreaming {
    /// Nothing is asked before something has to be known.
    #[must_use]
    pub fn new(deps: NatsDeps, settings: Settings) -> Self {
        let monitor = Monitor::new(&deps, &settings.monitor, &settings.cluster);
        Self {
            settings,
            deps,
            monitor: Arc::new(monitor),
            client: tokio::sync::Mutex::default(),
            sessions: tokio::sync::Mutex::default(),
            fenced: Mutex::default(),
        }
    }

    async fn client(&self) -> Result<NatsClient, Error> {
        let mut known = self.client.lock().await;
        if let Some(client) = &*known {
            return Ok(client.clone());
        }
        let client = NatsClient::connect(&self.deps, &self.settings.server).await?;
        Ok(known.insert(client).clone())
    }

    /// The session of a client id, which several readers share.
    async fn session(&self, client_id: &str) -> Result<Arc<StreamingSession>, Error> {
        let client = self.client().await?;
        let mut sessions = self.sessions.lock().await;
        sessions.retain(|_, session| session.strong_count() > 0);
        let known = sessions.get(client_id).and_then(Weak::upgrade);
        if let Some(session) = known.filter(|session| !session.is_lost()) {
            return Ok(session);
        }
        let session =
            Arc::new(StreamingSession::open(&client, &self.settings.cluster, client_id).await?);
        sessions.insert(client_id.to_owned(), Arc::downgrade(&session));
        Ok(session)
    }

    async fn hold(&self, channel: &str) -> Result<Fence, Error> {
        self.monitor.channel(channel).await?;
        let mut publishers = Vec::new();
        for publisher in &self.settings.publishers {
            match self.session(publisher).await {
                Ok(session) => publishers.push(session),
                Err(error) => {
                    // Half a fence keeps nobody out for long, and those that it does for nothing.
                    for session in publishers {
                        StreamingSession::close(session).await.ok();
                    }
                    return Err(error);
                }
            }
        }
        let hold = if publishers.is_empty() {
            FenceHold::Watched
        } else {
            FenceHold::Named
        };
        {
            let mut fenced = self.fenced.lock();
            fenced.channels.insert(channel.to_owned());
            fenced.publishers = publishers;
        }
        let look = async || Ok(self.monitor.channel(channel).await?.0.high_water);
        let (clock, patience) = (&self.deps.clock, self.deps.patience.answer);
        let high_water = at_rest(clock, patience, channel, look).await?;
        Ok(Fence {
            channel: channel.to_owned(),
            high_water,
            hold,
        })
    }

    async fn lift(&self, channel: &str) -> Result<(), Error> {
        let released = {
            let mut fenced = self.fenced.lock();
            fenced.channels.remove(channel);
            match fenced.channels.is_empty() {
                true => std::mem::take(&mut fenced.publishers),
                false => Vec::new(),
            }
        };
        for session in released {
            StreamingSession::close(session).await?;
        }
        Ok(())
    }

    async fn begin(&self, id: &SubscriptionId) -> Result<StreamingReader, Error> {
        let found = self.monitor.subscription(id).await?;
        if !found.is_durable {
            return Err(Error::Invalid(format!(
                "{id} does not outlive its connection"
            )));
        }
        // A group is no client's own, and is joined by us.
        let name = match &id.client {
            Some(client) => client.clone(),
            None => format!("heddle-{}", self.deps.chance.token(8)),
        };
        let session = self.session(&name).await?;
        StreamingReader::begin(session, Arc::clone(&self.monitor), id.clone()).await
    }
}

impl Origin for NatsStreaming {
    fn objects(&self) -> Answer<'_, Vec<Value>> {
        self.settings.objects.objects()
    }

    fn channels(&self) -> Answer<'_, Vec<Channel>> {
        Box::pin(self.monitor.channels())
    }

    fn subscriptions(&self, channel: &str) -> Answer<'_, Vec<Subscription>> {
        let channel = channel.to_owned();
        Box::pin(async move { Ok(self.monitor.channel(&channel).await?.1) })
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

/// Members of one group are one subscription.
fn united(members: Vec<Subscription>) -> Vec<Subscription> {
    let mut all = BTreeMap::<SubscriptionId, Subscription>::new();
    for member in members {
        match all.get_mut(&member.id) {
            None => {
                all.insert(member.id.clone(), member);
            }
            Some(known) => known.join(member),
        }
    }
    all.into_values().collect()
}
