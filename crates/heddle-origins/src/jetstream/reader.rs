//! Reads a durable consumer of JetStream in the place of its subscriber.
//!
//! What was sent to the old subscriber and not acknowledged comes again when the consumer's wait for it is over, and newer
//! events may come before. So nothing is handed out until everything outstanding is here, as the server counts it; then it is
//! handed out in order, and after it whatever comes. Acknowledgements are confirmed by the server one by one.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join_all;
use jiff::Timestamp;
use serde_json::json;

use super::api::{Api, ConsumerInfo};
use crate::counters::{Sequence, SubscriptionId};
use crate::nats::{Inbox, NatsClient, NatsMessage};
use crate::origin::{Answer, Error, OriginEvent, OriginRead, Reader};

/// What may be received and not looked at.
const RECEIVED_MAX: usize = 4096;
/// How many events are asked for at once, and for how long the server keeps the question.
const BATCH_MAX: usize = 256;
const PULL: Duration = Duration::from_secs(1);
/// For how long nothing comes before the counters are looked at.
const STEP: Duration = Duration::from_millis(100);
/// Acknowledgements on their way.
const ACKS_MAX: usize = 256;
/// Acknowledged events that are recognised when they come again. Older ones are forgotten.
const REMEMBERED_MAX: usize = 64 << 10;
/// The longest wait of a consumer for an acknowledgement that is waited for.
const ACK_WAIT_MAX: Duration = Duration::from_secs(3600);

/// How events come.
#[derive(Clone, Debug)]
enum DeliveryMode {
    /// When asked for.
    Pull,
    /// By themselves, to a subject and perhaps to one of a group.
    Push {
        subject: String,
        group: Option<String>,
    },
}

#[derive(Debug)]
enum HandedMessage {
    /// With where to acknowledge it.
    Out(String),
    Acknowledged,
}

/// Here, and not to be handed out yet.
#[derive(Debug)]
struct Held {
    message: NatsMessage,
    delivered: Delivered,
    /// Where to acknowledge it.
    place: String,
}

#[derive(Debug)]
pub(super) struct JetStreamReader {
    api: Arc<Api>,
    client: NatsClient,
    id: SubscriptionId,
    delivery: DeliveryMode,
    ack_wait: Duration,
    inbox: Option<Inbox>,
    /// Until when the server keeps our question.
    asked_until: Option<Duration>,
    /// What came before everything outstanding was here, and whether that is still waited for.
    held: BTreeMap<Sequence, Held>,
    is_gathering: bool,
    handed: BTreeMap<Sequence, HandedMessage>,
    out: u64,
    ready: VecDeque<OriginEvent>,
}

impl JetStreamReader {
    pub(super) async fn begin(
        api: Arc<Api>,
        id: SubscriptionId,
        consumer: &ConsumerInfo,
    ) -> Result<Self, Error> {
        let delivery = match &consumer.config.deliver_subject {
            None => DeliveryMode::Pull,
            Some(subject) => DeliveryMode::Push {
                subject: subject.clone(),
                group: consumer.config.deliver_group.clone(),
            },
        };
        let ack_wait = Duration::from_nanos(consumer.config.ack_wait).min(ACK_WAIT_MAX);
        let mut reader = Self {
            client: api.client().await?,
            api,
            id,
            delivery,
            ack_wait,
            inbox: None,
            asked_until: None,
            held: BTreeMap::new(),
            is_gathering: true,
            handed: BTreeMap::new(),
            out: 0,
            ready: VecDeque::new(),
        };
        reader.open().await?;
        Ok(reader)
    }

    /// Receives, anew if something may have got lost; then what is outstanding is waited for again.
    async fn open(&mut self) -> Result<(), Error> {
        if self.inbox.is_some() {
            return Ok(());
        }
        let (subject, group) = match &self.delivery {
            DeliveryMode::Pull => (self.client.own_subject(), None),
            DeliveryMode::Push { subject, group } => (subject.clone(), group.as_deref()),
        };
        let inbox = self
            .client
            .subscribe(&subject, group, RECEIVED_MAX, true)
            .await?;
        self.inbox = Some(inbox);
        self.asked_until = None;
        self.is_gathering = true;
        Ok(())
    }

    /// Asks for more, if that is how events come and the last question is used up.
    async fn pull(&mut self) -> Result<(), Error> {
        let Some(inbox) = &self.inbox else {
            return Ok(());
        };
        let now = self.api.deps().clock.monotonic();
        let is_asked = self.asked_until.is_some_and(|until| now < until);
        if is_asked || !matches!(self.delivery, DeliveryMode::Pull) {
            return Ok(());
        }
        let (stream, consumer) = (&self.id.channel, &self.id.durable);
        let verb = format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}");
        let expires = u64::try_from(PULL.as_nanos()).unwrap_or(u64::MAX);
        let body = json!({"batch": BATCH_MAX, "expires": expires}).to_string();
        let reply = Some(inbox.subject.clone());
        self.client.publish(&verb, reply, body.into_bytes()).await?;
        self.asked_until = Some(now + PULL);
        Ok(())
    }

    async fn read_some(&mut self, events_max: usize) -> Result<OriginRead, Error> {
        let clock = self.api.deps().clock.clone();
        let patience = self.api.deps().patience.quiet.saturating_add(self.ack_wait);
        let began = clock.monotonic();
        while self.ready.is_empty() {
            self.open().await?;
            self.pull().await?;
            let Some(inbox) = &mut self.inbox else {
                continue;
            };
            match clock.timeout(STEP, inbox.next()).await {
                Ok(Some(message)) => self.take(message).await?,
                Ok(None) => self.inbox = None,
                Err(_) => {
                    if self.look().await? {
                        return Ok(OriginRead::End);
                    }
                }
            }
            if clock.monotonic().saturating_sub(began) > patience {
                let text = format!("what is unacknowledged of {} does not come", self.id);
                return Err(Error::Unavailable(text));
            }
        }
        while self.ready.len() < events_max
            && let Some(message) = self.inbox.as_mut().and_then(Inbox::next_now)
        {
            self.take(message).await?;
        }
        let count = self.ready.len().min(events_max);
        Ok(OriginRead::Events(self.ready.drain(..count).collect()))
    }

    /// Looks at the counters: whether everything outstanding is here, and whether that is all there is.
    async fn look(&mut self) -> Result<bool, Error> {
        let counters = self
            .api
            .consumer(&self.id.channel, &self.id.durable)
            .await?;
        let here = self.out + self.held.len() as u64;
        if counters.outstanding() > here {
            return Ok(false);
        }
        // One that cannot be read comes again; the others wait for the next look.
        while let Some((_, held)) = self.held.pop_first() {
            self.hand_out(&held.message, held.delivered, held.place)?;
        }
        self.is_gathering = false;
        Ok(self.ready.is_empty() && counters.unsent() == 0)
    }

    async fn take(&mut self, message: NatsMessage) -> Result<(), Error> {
        if let Some(status) = message.headers.status {
            // 100 asks whether we follow; everything else ends a question of ours.
            if status != 100 {
                self.asked_until = None;
            } else if let Some(reply) = message.reply {
                self.client.publish(&reply, None, Vec::new()).await?;
            }
            return Ok(());
        }
        let reply = message.reply.clone().unwrap_or_default();
        let Some(delivered) = delivered(&reply) else {
            let text = format!(
                "an event of {} does not say which it is: {reply:?}",
                self.id
            );
            return Err(Error::Corrupt(text));
        };
        match self.handed.get_mut(&delivered.sequence) {
            Some(HandedMessage::Out(place)) => *place = reply,
            Some(HandedMessage::Acknowledged) => {
                self.client.publish(&reply, None, &b"+ACK"[..]).await?;
            }
            None if self.is_gathering => {
                // What was said first of it counts: it may only have come again because we waited for others.
                let place = reply.clone();
                let known = self.held.entry(delivered.sequence).or_insert(Held {
                    message,
                    delivered,
                    place,
                });
                known.place = reply;
            }
            None => self.hand_out(&message, delivered, reply)?,
        }
        Ok(())
    }

    fn hand_out(
        &mut self,
        message: &NatsMessage,
        delivered: Delivered,
        place: String,
    ) -> Result<(), Error> {
        let event = event(message, delivered)?;
        self.handed
            .insert(event.sequence, HandedMessage::Out(place));
        self.out += 1;
        self.ready.push_back(event);
        Ok(())
    }

    async fn told(&mut self, sequences: &[Sequence]) -> Result<(), Error> {
        let mut places = Vec::new();
        for sequence in sequences {
            match self.handed.get(sequence) {
                Some(HandedMessage::Out(place)) => places.push((*sequence, place.clone())),
                Some(HandedMessage::Acknowledged) => {}
                None => {
                    let text = format!("event {sequence} of {} was not handed out", self.id);
                    return Err(Error::Invalid(text));
                }
            }
        }
        for some in places.chunks(ACKS_MAX) {
            let asking = some
                .iter()
                .map(|(_, place)| self.client.ask(place, b"+ACK".to_vec()));
            try_join_all(asking).await?;
            for (sequence, _) in some {
                self.handed.insert(*sequence, HandedMessage::Acknowledged);
                self.out -= 1;
            }
        }
        self.forget();
        Ok(())
    }

    fn forget(&mut self) {
        while self.handed.len() > REMEMBERED_MAX + usize::try_from(self.out).unwrap_or(usize::MAX) {
            let mut handed = self.handed.iter();
            let oldest = handed.find(|(_, handed)| matches!(handed, HandedMessage::Acknowledged));
            let Some(oldest) = oldest.map(|(sequence, _)| *sequence) else {
                return;
            };
            self.handed.remove(&oldest);
        }
    }

    /// What was not acknowledged comes again at once, and not when the wait for it is over.
    async fn give_back(mut self) -> Result<(), Error> {
        self.inbox = None;
        let held = self.held.values().map(|held| &held.place);
        let out = self.handed.values().filter_map(|handed| match handed {
            HandedMessage::Out(place) => Some(place),
            HandedMessage::Acknowledged => None,
        });
        for place in held.chain(out) {
            self.client.publish(place, None, &b"-NAK"[..]).await?;
        }
        self.client.flush().await
    }
}

impl Reader for JetStreamReader {
    fn read(&mut self, events_max: usize) -> Answer<'_, OriginRead> {
        Box::pin(self.read_some(events_max.max(1)))
    }

    fn acknowledge<'a>(&'a mut self, sequences: &'a [Sequence]) -> Answer<'a, ()> {
        Box::pin(self.told(sequences))
    }

    fn release(self: Box<Self>) -> Answer<'static, ()> {
        Box::pin(self.give_back())
    }
}

/// What the subject says to which an event is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Delivered {
    times: u64,
    sequence: Sequence,
    /// Nanoseconds since 1970.
    at: i128,
}

/// `$JS.ACK.stream.consumer.times.sequence.number.at.pending`; newer servers have a domain and an account in front of the
/// stream, and more behind.
fn delivered(reply: &str) -> Option<Delivered> {
    let tokens: Vec<&str> = reply.strip_prefix("$JS.ACK.")?.split('.').collect();
    let tokens = match tokens.len() {
        7 => &tokens[2..],
        9.. => &tokens[4..],
        _ => return None,
    };
    let sequence = tokens
        .get(1)?
        .parse()
        .ok()
        .filter(|sequence| *sequence > 0)?;
    Some(Delivered {
        times: tokens.first()?.parse().ok()?,
        sequence,
        at: tokens.get(3)?.parse().ok()?,
    })
}

fn event(message: &NatsMessage, delivered: Delivered) -> Result<OriginEvent, Error> {
    let at = Timestamp::from_nanosecond(delivered.at);
    let at = at.map_err(|error| Error::Corrupt(format!("an event cannot be read: {error}")))?;
    Ok(OriginEvent {
        sequence: delivered.sequence,
        at,
        subject: message.subject.clone(),
        headers: message.headers.lines.clone(),
        data: message.payload.clone(),
        redelivered: delivered.times > 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_an_acknowledgement_says_which_event_it_is_of() {
        let expected = Some(Delivered {
            times: 2,
            sequence: 40,
            at: 1_700_000_000,
        });
        assert_eq!(
            delivered("$JS.ACK.orders.audit.2.40.7.1700000000.3"),
            expected
        );
        assert_eq!(
            delivered("$JS.ACK.hub.ACC.orders.audit.2.40.7.1700000000.3.token"),
            expected
        );
        for bad in [
            "",
            "$JS.ACK.a.b.1.2.3",
            "$JS.ACK.a.b.x.2.3.4.5",
            "$JS.ACK.a.b.1.0.3.4.5",
            "_INBOX.a",
        ] {
            assert_eq!(delivered(bad), None, "{bad}");
        }
    }
}
