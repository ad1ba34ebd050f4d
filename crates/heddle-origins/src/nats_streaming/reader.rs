//! Reads one durable of NATS Streaming in the place of its subscriber.
//!
//! What the subscriber had received and not acknowledged comes first and in order, then everything newer. When something of
//! it may have got lost on the way, the subscription is closed and opened again, and the server begins anew with what is
//! unacknowledged: what was handed out already is recognised by its number. The end is told by the server's counters and not
//! by silence.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;

use super::messages::StreamedEvent;
use super::monitor::Monitor;
use super::session::StreamingSession;
use crate::counters::{Sequence, SubscriptionId};
use crate::nats::{Inbox, NatsMessage};
use crate::origin::{Answer, Error, OriginEvent, OriginRead, Reader};

/// How many events may be unacknowledged; halved when there is no room for as many.
const WINDOW: u64 = 256;
/// What may be received and not looked at: servers send again what was outstanding, whatever the window.
const RECEIVED_MAX: usize = 4096;
/// For how long nothing comes before the counters are looked at.
const STEP: Duration = Duration::from_millis(100);
/// Acknowledged events that are recognised when they come again. Older ones are forgotten.
const REMEMBERED_MAX: usize = 64 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HandedState {
    Out,
    Acknowledged,
}

#[derive(Debug)]
pub(super) struct StreamingReader {
    session: Arc<StreamingSession>,
    monitor: Arc<Monitor>,
    id: SubscriptionId,
    window: u64,
    open: Option<Open>,
    handed: BTreeMap<Sequence, HandedState>,
    /// How many of these are out.
    out: u64,
    /// Of these, what was not answered yet: whoever stops waiting for an answer finds it in the next.
    ready: VecDeque<OriginEvent>,
}

/// An open subscription. Leaves it when dropped, and the durable with it where it is.
#[derive(Debug)]
struct Open {
    session: Arc<StreamingSession>,
    channel: String,
    inbox: Inbox,
    acks: String,
    /// On which connection.
    connection: u64,
    is_closed: bool,
}

impl Drop for Open {
    fn drop(&mut self) {
        if !self.is_closed {
            self.session.leave_subscription(&self.channel, &self.acks);
        }
    }
}

impl StreamingReader {
    pub(super) async fn begin(
        session: Arc<StreamingSession>,
        monitor: Arc<Monitor>,
        id: SubscriptionId,
    ) -> Result<Self, Error> {
        let mut reader = Self {
            session,
            monitor,
            id,
            window: WINDOW,
            open: None,
            handed: BTreeMap::new(),
            out: 0,
            ready: VecDeque::new(),
        };
        reader.open().await?;
        Ok(reader)
    }

    /// The subscription as it is, or anew. What was acknowledged is said again: it may be what got lost.
    async fn open(&mut self) -> Result<&mut Open, Error> {
        if self.session.is_lost() {
            let text = format!("the session of {} is lost: take it over again", self.id);
            return Err(Error::Unavailable(text));
        }
        let connection = self.session.client().connections();
        let is_current = |open: &Open| open.connection == connection;
        if !self.open.as_ref().is_some_and(is_current) {
            if let Some(old) = &mut self.open {
                // What the server thinks of it does not matter: it is of an earlier connection.
                let closing = self.session.close_subscription(&old.channel, &old.acks);
                closing.await?;
                old.is_closed = true;
            }
            self.open = None;
            let subscribing = self.session.subscribe(&self.id, self.window, RECEIVED_MAX);
            let (inbox, acks) = subscribing.await?;
            for (sequence, _) in self
                .handed
                .iter()
                .filter(|(_, h)| **h == HandedState::Acknowledged)
            {
                let acknowledging = self.session.acknowledge(&acks, &self.id.channel, *sequence);
                acknowledging.await?;
            }
            self.open = Some(Open {
                session: Arc::clone(&self.session),
                channel: self.id.channel.clone(),
                inbox,
                acks,
                connection,
                is_closed: false,
            });
        }
        Ok(self.open.as_mut().expect("it was opened just now"))
    }

    async fn read_some(&mut self, events_max: usize) -> Result<OriginRead, Error> {
        let deps = self.session.client().deps().clone();
        let began = deps.clock.monotonic();
        while self.ready.is_empty() {
            let open = self.open().await?;
            match deps.clock.timeout(STEP, open.inbox.next()).await {
                Ok(Some(message)) => self.take(&message).await?,
                Ok(None) => self.begin_anew().await?,
                Err(_) => {
                    if self.is_end().await? {
                        return Ok(OriginRead::End);
                    }
                }
            }
            if deps.clock.monotonic().saturating_sub(began) > deps.patience.quiet {
                let text = format!("what is unacknowledged of {} does not come", self.id);
                return Err(Error::Unavailable(text));
            }
        }
        while self.ready.len() < events_max
            && let Some(open) = &mut self.open
            && let Some(message) = open.inbox.next_now()
        {
            self.take(&message).await?;
        }
        let count = self.ready.len().min(events_max);
        Ok(OriginRead::Events(self.ready.drain(..count).collect()))
    }

    /// Something may have got lost: because the connection broke, or because there was no room for it.
    async fn begin_anew(&mut self) -> Result<(), Error> {
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        if open.connection == self.session.client().connections() {
            self.window = (self.window / 2).max(1);
        }
        let closing = self.session.close_subscription(&open.channel, &open.acks);
        closing.await?;
        open.is_closed = true;
        self.open = None;
        Ok(())
    }

    /// Makes the event in a message ready, unless it was handed out already.
    async fn take(&mut self, message: &NatsMessage) -> Result<(), Error> {
        let event = event(&message.payload)?;
        match self.handed.get(&event.sequence) {
            Some(HandedState::Out) => {}
            Some(HandedState::Acknowledged) => {
                if let Some(open) = &self.open {
                    let (acks, channel) = (&open.acks, &self.id.channel);
                    let acknowledging = self.session.acknowledge(acks, channel, event.sequence);
                    acknowledging.await?;
                }
            }
            None => {
                self.handed.insert(event.sequence, HandedState::Out);
                self.out += 1;
                self.ready.push_back(event);
            }
        }
        Ok(())
    }

    /// Whether nothing is unacknowledged but what was handed out.
    async fn is_end(&self) -> Result<bool, Error> {
        let counters = self.monitor.subscription(&self.id).await?;
        if counters.unsent == 0 && counters.outstanding <= self.out {
            return Ok(true);
        }
        if counters.unsent > 0 && self.out >= self.window {
            let text = format!("{} events of {} wait to be acknowledged", self.out, self.id);
            return Err(Error::Invalid(text));
        }
        Ok(false)
    }

    async fn told(&mut self, sequences: &[Sequence]) -> Result<(), Error> {
        for sequence in sequences {
            if !self.handed.contains_key(sequence) {
                let text = format!("event {sequence} of {} was not handed out", self.id);
                return Err(Error::Invalid(text));
            }
        }
        for sequence in sequences {
            let was = self.handed.insert(*sequence, HandedState::Acknowledged);
            self.out -= u64::from(was == Some(HandedState::Out));
        }
        self.forget();
        let channel = self.id.channel.clone();
        let session = Arc::clone(&self.session);
        let acks = self.open().await?.acks.clone();
        for sequence in sequences {
            session.acknowledge(&acks, &channel, *sequence).await?;
        }
        Ok(())
    }

    fn forget(&mut self) {
        while self.handed.len() > REMEMBERED_MAX + usize::try_from(self.out).unwrap_or(usize::MAX) {
            let mut acknowledged = self
                .handed
                .iter()
                .filter(|(_, handed)| **handed == HandedState::Acknowledged);
            let Some(oldest) = acknowledged.next().map(|(sequence, _)| *sequence) else {
                return;
            };
            self.handed.remove(&oldest);
        }
    }

    async fn give_back(mut self) -> Result<(), Error> {
        let session = Arc::clone(&self.session);
        let open = self.open().await?;
        session.client().flush().await?;
        let said = session
            .close_subscription(&open.channel, &open.acks)
            .await?;
        open.is_closed = true;
        if !said.is_empty() {
            return Err(Error::Unavailable(format!(
                "cannot release {}: {said}",
                self.id
            )));
        }
        drop(self);
        StreamingSession::close(session).await
    }
}

impl Reader for StreamingReader {
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

/// The event in what the server sent.
pub(super) fn event(payload: &[u8]) -> Result<OriginEvent, Error> {
    let corrupt =
        |why: &dyn std::fmt::Display| Error::Corrupt(format!("an event cannot be read: {why}"));
    let delivery = StreamedEvent::decode(payload).map_err(|malformed| corrupt(&malformed))?;
    let at =
        Timestamp::from_nanosecond(i128::from(delivery.at)).map_err(|error| corrupt(&error))?;
    Ok(OriginEvent {
        sequence: delivery.sequence,
        at,
        data: Bytes::copy_from_slice(delivery.data),
        subject: delivery.subject,
        headers: Vec::new(),
        redelivered: delivery.redelivered,
    })
}
