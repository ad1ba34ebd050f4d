//! A client of NATS Streaming: a name that the server gives to one at a time, kept while both sides say that they are there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use heddle_api::protobuf::Malformed;
use heddle_rt::{Clock, OnError, Tasks};

use super::messages::{
    ConnectRequest, ConnectResponse, SubscriptionRequest, SubscriptionResponse, ack, close_request,
    error_of, ping, unsubscribe_request,
};
use crate::counters::{Sequence, SubscriptionId};
use crate::nats::protocol::is_subject;
use crate::nats::{Inbox, NatsClient};
use crate::origin::Error;

/// How often we say that we are there, and how often in vain before the session counts as lost. The server may choose
/// another pause, within reason.
const PING: Duration = Duration::from_secs(5);
const PINGS_MAX: u32 = 6;
const PING_SECONDS: std::ops::RangeInclusive<u64> = 1..=60;
/// Heartbeats that were not answered yet.
const HEARTBEATS_MAX: usize = 16;
/// Until an event counts as not delivered.
const ACK_WAIT_SECONDS: u64 = 30;
/// A subscription that was left without a word may take that long to end, in attempts with this pause.
const LEFT_ATTEMPTS: usize = 20;
const LEFT_PAUSE: Duration = Duration::from_millis(100);

/// What the server says when a name is taken.
const TAKEN: [&str; 2] = ["clientID already registered", "client has been registered"];
const DUPLICATE: &str = "duplicate durable";

#[derive(Debug)]
pub(super) struct StreamingSession {
    client: NatsClient,
    id: String,
    places: ConnectResponse,
    tasks: Tasks,
    is_lost: Arc<AtomicBool>,
}

impl Drop for StreamingSession {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

impl StreamingSession {
    /// Connects under a name.
    ///
    /// # Errors
    /// `Conflict` when somebody answers to the name already.
    pub(super) async fn open(client: &NatsClient, cluster: &str, id: &str) -> Result<Self, Error> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if id.is_empty() || !id.bytes().all(plain) {
            return Err(Error::Invalid(format!("{id:?} is no client id")));
        }
        let deps = client.deps().clone();
        let heartbeats = client.own_subject();
        let inbox = client
            .subscribe(&heartbeats, None, HEARTBEATS_MAX, false)
            .await?;
        let connection = deps.chance.token(16);
        let request = ConnectRequest {
            client: id,
            heartbeats: &heartbeats,
            connection: &connection,
            ping_seconds: PING.as_secs(),
            pings_max: u64::from(PINGS_MAX),
        };
        let discover = format!("_STAN.discover.{cluster}");
        let answer = client.ask(&discover, request.encode()).await?;
        let places = ConnectResponse::decode(&answer.payload).map_err(malformed)?;
        if !places.error.is_empty() {
            return Err(refused(id, &places.error));
        }
        for place in [&places.subscribe, &places.close, &places.close_subscription] {
            if !is_subject(place) {
                return Err(Error::Invalid(
                    "the server is too old: it cannot close a subscription without removing it"
                        .to_owned(),
                ));
            }
        }
        let session = Self {
            client: client.clone(),
            id: id.to_owned(),
            tasks: deps.tasks.child("session"),
            is_lost: Arc::default(),
            places,
        };
        let beats = answer_heartbeats(client.clone(), inbox);
        session.tasks.spawn("heartbeats", OnError::Report, beats);
        if is_subject(&session.places.ping) && session.places.ping_seconds > 0 {
            let seconds = session.places.ping_seconds;
            let pause = seconds.clamp(*PING_SECONDS.start(), *PING_SECONDS.end());
            let pings = Pings {
                client: client.clone(),
                clock: deps.clock,
                pause: Duration::from_secs(pause),
                subject: session.places.ping.clone(),
                ping: ping(&connection),
                id: session.id.clone(),
                is_lost: Arc::clone(&session.is_lost),
            };
            session.tasks.spawn("pings", OnError::Report, pings.run());
        }
        Ok(session)
    }

    /// Whether the server has given the name to somebody else, or forgotten it.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    pub(super) fn client(&self) -> &NatsClient {
        &self.client
    }

    /// Begins to receive; answers with where, and to where acknowledgements go.
    pub(super) async fn subscribe(
        &self,
        id: &SubscriptionId,
        in_flight_max: u64,
        messages_max: usize,
    ) -> Result<(Inbox, String), Error> {
        let subject = self.client.own_subject();
        let inbox = self
            .client
            .subscribe(&subject, None, messages_max, true)
            .await?;
        let request = SubscriptionRequest {
            client: &self.id,
            channel: &id.channel,
            group: id.group.as_deref().unwrap_or_default(),
            inbox: &inbox.subject,
            in_flight_max,
            ack_wait_seconds: ACK_WAIT_SECONDS,
            durable: &id.durable,
        };
        let request = request.encode();
        let mut attempt = 1;
        loop {
            let answer = self
                .client
                .ask(&self.places.subscribe, request.clone())
                .await?;
            let response = SubscriptionResponse::decode(&answer.payload).map_err(malformed)?;
            if response.error.is_empty() && is_subject(&response.acks) {
                return Ok((inbox, response.acks));
            }
            if !response.error.contains(DUPLICATE) {
                return Err(refused(&id.to_string(), &response.error));
            }
            if attempt == LEFT_ATTEMPTS {
                return Err(Error::Conflict(format!("{id} has a subscriber")));
            }
            attempt += 1;
            self.client.deps().clock.sleep(LEFT_PAUSE).await;
        }
    }

    /// That it was received is known once the subscription is closed.
    pub(super) async fn acknowledge(
        &self,
        acks: &str,
        channel: &str,
        sequence: Sequence,
    ) -> Result<(), Error> {
        self.client
            .publish(acks, None, ack(channel, sequence))
            .await
    }

    /// Stops to receive, and leaves the durable where it is. The server has taken in every acknowledgement before it answers;
    /// what it has against it is answered too.
    pub(super) async fn close_subscription(
        &self,
        channel: &str,
        acks: &str,
    ) -> Result<String, Error> {
        let request = unsubscribe_request(&self.id, channel, acks);
        let answer = self
            .client
            .ask(&self.places.close_subscription, request)
            .await?;
        let response = SubscriptionResponse::decode(&answer.payload).map_err(malformed)?;
        Ok(response.error)
    }

    /// The same in passing, for a reader that was dropped.
    pub(super) fn leave_subscription(&self, channel: &str, acks: &str) {
        let request = unsubscribe_request(&self.id, channel, acks);
        self.client
            .publish_now(&self.places.close_subscription, request);
    }

    /// Gives the name back, if nobody else has the session.
    pub(super) async fn close(session: Arc<Self>) -> Result<(), Error> {
        let Some(session) = Arc::into_inner(session) else {
            return Ok(());
        };
        let request = close_request(&session.id);
        let answer = session.client.ask(&session.places.close, request).await?;
        match error_of(&answer.payload).map_err(malformed)? {
            error if error.is_empty() || error.contains("unknown clientID") => Ok(()),
            error => Err(refused(&session.id, &error)),
        }
    }
}

fn malformed(malformed: Malformed) -> Error {
    Error::Corrupt(format!(
        "the server does not speak NATS Streaming: {malformed}"
    ))
}

fn refused(what: &str, why: &str) -> Error {
    let text = format!("the old mesh refuses {what}: {why}");
    if TAKEN.iter().any(|taken| why.contains(taken)) {
        return Error::Conflict(text);
    }
    Error::Unavailable(text)
}

async fn answer_heartbeats(client: NatsClient, mut inbox: Inbox) {
    while let Some(heartbeat) = inbox.next().await {
        if let Some(reply) = heartbeat.reply {
            // While the connection is broken nobody hears it, and the server asks again.
            client.publish(&reply, None, Vec::new()).await.ok();
        }
    }
}

/// Says again and again that we are there.
struct Pings {
    client: NatsClient,
    clock: Clock,
    pause: Duration,
    subject: String,
    ping: Vec<u8>,
    id: String,
    is_lost: Arc<AtomicBool>,
}

impl Pings {
    async fn run(self) {
        let mut unanswered = 0;
        while unanswered < PINGS_MAX {
            self.clock.sleep(self.pause).await;
            match self.client.ask(&self.subject, self.ping.clone()).await {
                Err(_) => unanswered += 1,
                Ok(answer) => match error_of(&answer.payload) {
                    Ok(error) if error.is_empty() => unanswered = 0,
                    Ok(error) => {
                        tracing::warn!(client = self.id, error, "the old mesh has ended a session");
                        break;
                    }
                    Err(_) => unanswered += 1,
                },
            }
        }
        self.is_lost.store(true, Ordering::Release);
    }
}
