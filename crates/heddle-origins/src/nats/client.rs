//! One connection to a NATS server, made again when it breaks.
//!
//! Whatever was asked when it broke has failed, and whoever asked asks again. An inbox in which order counts
//! ([`Inbox::ordered`]) ends when a message of it may have been lost: at a break, and when there is no room for one.
//! Others go on. Payloads that nobody has looked at yet are leased from one room of bytes for the whole connection.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use heddle_rt::net::dial::Stream;
use heddle_rt::{Backoff, OnError, Tasks, backoff};
use parking_lot::Mutex;
use tokio::io::{AsyncWriteExt as _, WriteHalf};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::conversation::{Conversation, hear, unavailable};
use super::headers::Headers;
use super::protocol::{ClientOp, ServerOp, is_subject};
use super::{NatsDeps, NatsServer};
use crate::origin::Error;

/// What waits to be written. Whoever has more to say waits.
const OPS_MAX: usize = 1024;
/// Questions without an answer, and flushes likewise.
const ASKED_MAX: usize = 1024;
/// Received and not looked at, in [`ROOM_UNIT_BYTES`]: 64 MiB.
const ROOM_UNITS: usize = 64 << 10;
const ROOM_UNIT_BYTES: usize = 1 << 10;
/// How often the server is asked whether it is there, and how long it may say nothing at all.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const SILENCE_MAX: Duration = Duration::from_secs(60);
const RECONNECT: backoff::Limits = backoff::Limits {
    min: Duration::from_millis(100),
    max: Duration::from_secs(10),
};
/// The subscription that takes the answers to questions.
const ANSWERS: u64 = 1;
/// "No Responders": the server says that nobody listens there.
const NOBODY: u16 = 503;

/// A message for somebody here.
#[derive(Debug)]
pub(crate) struct NatsMessage {
    pub(crate) subject: String,
    pub(crate) reply: Option<String>,
    pub(crate) headers: Headers,
    pub(crate) payload: Bytes,
    _room: OwnedSemaphorePermit,
}

/// A connection. It ends with its last clone.
#[derive(Clone, Debug)]
pub(crate) struct NatsClient {
    shared: Arc<Shared>,
    _ending: Arc<Ending>,
}

/// Ends the connection when nobody has it any more.
#[derive(Debug)]
struct Ending(Tasks);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

#[derive(Debug)]
struct Shared {
    deps: NatsDeps,
    server: NatsServer,
    ops: mpsc::Sender<ClientOp>,
    /// The server asked whether we are there.
    pinged: Notify,
    answers: String,
    room: Arc<Semaphore>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    is_connected: bool,
    /// How often it was connected.
    connections: u64,
    next: u64,
    inboxes: HashMap<u64, Entry>,
    asked: HashMap<u64, WaitingReply>,
    pinged: VecDeque<Option<oneshot::Sender<()>>>,
    trouble: Option<String>,
}

#[derive(Debug)]
struct Entry {
    subject: String,
    group: Option<String>,
    messages: mpsc::Sender<NatsMessage>,
    is_ordered: bool,
}

#[derive(Debug)]
struct WaitingReply {
    subject: String,
    answer: oneshot::Sender<Result<NatsMessage, Error>>,
}

impl NatsClient {
    /// Connects. An error when that does not work now; later breaks are repaired.
    pub(crate) async fn connect(deps: &NatsDeps, server: &NatsServer) -> Result<Self, Error> {
        let mut deps = deps.clone();
        deps.tasks = deps.tasks.child("nats");
        let (ops, waiting) = mpsc::channel(OPS_MAX);
        let answers = format!("_INBOX.{}", deps.chance.token(16));
        let shared = Arc::new(Shared {
            ops,
            pinged: Notify::new(),
            answers,
            room: Arc::new(Semaphore::new(ROOM_UNITS)),
            state: Mutex::new(State {
                next: ANSWERS + 1,
                ..State::default()
            }),
            server: server.clone(),
            deps,
        });
        let stream = shared.open().await?;
        shared.state.lock().is_connected = true;
        let (tasks, name) = (&shared.deps.tasks, "connection to an old mesh");
        let ending = Arc::new(Ending(tasks.clone()));
        tasks.spawn(
            name,
            OnError::Report,
            Arc::clone(&shared).keep_up(stream, waiting),
        );
        Ok(Self {
            shared,
            _ending: ending,
        })
    }

    /// How often the connection was made. What was said on an earlier one may be lost.
    pub(crate) fn connections(&self) -> u64 {
        self.shared.state.lock().connections
    }

    /// Asks, and waits for one answer.
    pub(crate) async fn ask(&self, subject: &str, payload: Vec<u8>) -> Result<NatsMessage, Error> {
        let (answer, answered) = oneshot::channel();
        let number = {
            let mut state = self.shared.state.lock();
            if state.asked.len() >= ASKED_MAX {
                return Err(unavailable("too many questions have no answer yet"));
            }
            state.next += 1;
            let number = state.next;
            let subject = subject.to_owned();
            state.asked.insert(number, WaitingReply { subject, answer });
            number
        };
        let _forget = Forget {
            shared: &self.shared,
            number,
        };
        let reply = format!("{}.{number}", self.shared.answers);
        self.publish(subject, Some(reply), payload).await?;
        let patience = self.shared.deps.patience.answer;
        match self.shared.deps.clock.timeout(patience, answered).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(self.lost()),
            Err(late) => Err(unavailable(format_args!(
                "no answer from {subject}: {late}"
            ))),
        }
    }

    /// Says something that nobody answers. That it was said is known after [`NatsClient::flush`].
    pub(crate) async fn publish(
        &self,
        subject: &str,
        reply: Option<String>,
        payload: impl Into<Bytes>,
    ) -> Result<(), Error> {
        if !is_subject(subject) {
            return Err(Error::Corrupt(format!("{subject:?} is no subject")));
        }
        self.say(ClientOp::Publish {
            subject: subject.to_owned(),
            reply,
            payload: payload.into(),
        })
        .await
    }

    /// The same if there is room for it; for those that cannot wait.
    pub(crate) fn publish_now(&self, subject: &str, payload: Vec<u8>) {
        if is_subject(subject) && self.shared.state.lock().is_connected {
            let publish = ClientOp::Publish {
                subject: subject.to_owned(),
                reply: None,
                payload: payload.into(),
            };
            self.shared.ops.try_send(publish).ok();
        }
    }

    /// Answers when the server has everything that was said.
    pub(crate) async fn flush(&self) -> Result<(), Error> {
        let (done, waiting) = oneshot::channel();
        // In the order in which the pings are written, which the queue of both has.
        let sent = self.shared.ops.reserve().await;
        let sent = sent.map_err(|_| self.lost())?;
        {
            let mut state = self.shared.state.lock();
            if !state.is_connected || state.pinged.len() >= ASKED_MAX {
                drop(state);
                return Err(self.lost());
            }
            state.pinged.push_back(Some(done));
            sent.send(ClientOp::Ping);
        }
        let patience = self.shared.deps.patience.answer;
        match self.shared.deps.clock.timeout(patience, waiting).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(self.lost()),
            Err(late) => Err(unavailable(format_args!(
                "the server does not answer: {late}"
            ))),
        }
    }

    /// Receives what is published to `subject`, at most `messages_max` that nobody has looked at.
    pub(crate) async fn subscribe(
        &self,
        subject: &str,
        group: Option<&str>,
        messages_max: usize,
        is_ordered: bool,
    ) -> Result<Inbox, Error> {
        let (messages, receiver) = mpsc::channel(messages_max.max(1));
        let subscription = {
            let mut state = self.shared.state.lock();
            state.next += 1;
            let number = state.next;
            let entry = Entry {
                subject: subject.to_owned(),
                group: group.map(str::to_owned),
                messages,
                is_ordered,
            };
            state.inboxes.insert(number, entry);
            number
        };
        let inbox = Inbox {
            subject: subject.to_owned(),
            subscription,
            receiver,
            shared: Arc::clone(&self.shared),
        };
        self.say(ClientOp::Subscribe {
            subscription,
            subject: subject.to_owned(),
            group: group.map(str::to_owned),
        })
        .await?;
        Ok(inbox)
    }

    /// A subject that only this client knows.
    pub(crate) fn own_subject(&self) -> String {
        format!("_INBOX.{}", self.shared.deps.chance.token(16))
    }

    pub(crate) fn deps(&self) -> &NatsDeps {
        &self.shared.deps
    }

    async fn say(&self, op: ClientOp) -> Result<(), Error> {
        if !self.shared.state.lock().is_connected {
            return Err(self.lost());
        }
        self.shared.ops.send(op).await.map_err(|_| self.lost())
    }

    fn lost(&self) -> Error {
        let state = self.shared.state.lock();
        let why = state.trouble.as_deref().unwrap_or("it broke");
        unavailable(format_args!(
            "the connection to the old mesh is gone: {why}"
        ))
    }
}

/// Takes a question out whose answer nobody waits for any more.
struct Forget<'s> {
    shared: &'s Shared,
    number: u64,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.shared.state.lock().asked.remove(&self.number);
    }
}

/// What is received of one subject.
#[derive(Debug)]
pub(crate) struct Inbox {
    pub(crate) subject: String,
    subscription: u64,
    receiver: mpsc::Receiver<NatsMessage>,
    shared: Arc<Shared>,
}

impl Inbox {
    /// The next message; nothing when a message may have been lost and order counts.
    pub(crate) async fn next(&mut self) -> Option<NatsMessage> {
        self.receiver.recv().await
    }

    /// The same without waiting.
    pub(crate) fn next_now(&mut self) -> Option<NatsMessage> {
        self.receiver.try_recv().ok()
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        let known = self.shared.state.lock().inboxes.remove(&self.subscription);
        if known.is_some() {
            // Without room for it the server goes on, and what it sends belongs to nobody here.
            self.shared
                .ops
                .try_send(ClientOp::Unsubscribe(self.subscription))
                .ok();
        }
    }
}

impl Shared {
    /// Drives one connection after the other.
    async fn keep_up(self: Arc<Self>, first: Conversation, mut ops: mpsc::Receiver<ClientOp>) {
        let mut backoff = Backoff::new(RECONNECT, self.deps.chance.clone());
        let mut open = Some(first);
        loop {
            if let Some(conversation) = open.take() {
                backoff.reset();
                let Err(trouble) = self.drive(conversation, &mut ops).await;
                self.broke(&trouble, &mut ops);
            }
            self.deps.clock.sleep(backoff.failed()).await;
            match self.open().await {
                Ok(conversation) => open = Some(conversation),
                Err(error) => {
                    tracing::debug!(%error, "cannot connect to the old mesh");
                    self.state.lock().trouble = Some(error.to_string());
                }
            }
        }
    }

    /// Whatever was under way has failed.
    fn broke(&self, trouble: &Error, ops: &mut mpsc::Receiver<ClientOp>) {
        tracing::warn!(error = %trouble, "the connection to the old mesh broke");
        let mut state = self.state.lock();
        state.is_connected = false;
        state.trouble = Some(trouble.to_string());
        state.asked.clear();
        state.pinged.clear();
        state.inboxes.retain(|_, entry| !entry.is_ordered);
        while ops.try_recv().is_ok() {}
    }

    async fn open(&self) -> Result<Conversation, Error> {
        let patience = self.deps.patience.connect;
        let opened = self.deps.clock.timeout(patience, self.greet()).await;
        opened.unwrap_or_else(|late| Err(unavailable(format_args!("not greeted: {late}"))))
    }

    /// Connects, and says who we are.
    async fn greet(&self) -> Result<Conversation, Error> {
        let begun = Conversation::begin(&*self.deps.connect, &self.server).await;
        let (mut conversation, greeting) = begun?;
        let mut said = Vec::new();
        ClientOp::Connect(greeting.introduction(&self.server)).encode(&mut said);
        let answers = format!("{}.*", self.answers);
        let subscribe = |subscription, subject, group| ClientOp::Subscribe {
            subscription,
            subject,
            group,
        };
        subscribe(ANSWERS, answers, None).encode(&mut said);
        for (number, entry) in &self.state.lock().inboxes {
            subscribe(*number, entry.subject.clone(), entry.group.clone()).encode(&mut said);
        }
        ClientOp::Ping.encode(&mut said);
        let write = conversation.writer.write_all(&said).await;
        write.map_err(unavailable)?;
        loop {
            match conversation.hear().await? {
                ServerOp::Pong => break,
                ServerOp::Error(why) => return Err(Error::Forbidden(why)),
                ServerOp::Info(_) | ServerOp::Ok => {}
                ServerOp::Ping => {
                    let write = conversation.writer.write_all(b"PONG\r\n").await;
                    write.map_err(unavailable)?;
                }
                op @ ServerOp::NatsMessage { .. } => self.deliver(op),
            }
        }
        let mut state = self.state.lock();
        state.is_connected = true;
        state.connections += 1;
        Ok(conversation)
    }

    async fn drive(
        &self,
        conversation: Conversation,
        ops: &mut mpsc::Receiver<ClientOp>,
    ) -> Result<std::convert::Infallible, Error> {
        let Conversation {
            mut reader,
            writer,
            mut received,
        } = conversation;
        let reading = async {
            loop {
                let op = self
                    .deps
                    .clock
                    .timeout(SILENCE_MAX, hear(&mut reader, &mut received));
                self.heard(op.await.map_err(unavailable)??)?;
            }
        };
        tokio::select! {
            ended = reading => ended,
            ended = self.write(writer, ops) => ended,
        }
    }

    fn heard(&self, op: ServerOp) -> Result<(), Error> {
        match op {
            ServerOp::Info(_) | ServerOp::Ok => {}
            ServerOp::Ping => self.pinged.notify_one(),
            ServerOp::Pong => {
                let pinged = self.state.lock().pinged.pop_front();
                if let Some(Some(waiting)) = pinged {
                    // Nobody waits any more when this fails.
                    waiting.send(()).ok();
                }
            }
            ServerOp::Error(why) => self.refused(&why)?,
            op @ ServerOp::NatsMessage { .. } => self.deliver(op),
        }
        Ok(())
    }

    /// A permission that is missing fails what needed it; everything else fails the connection.
    fn refused(&self, why: &str) -> Result<(), Error> {
        if !why
            .to_ascii_lowercase()
            .starts_with("permissions violation")
        {
            return Err(Error::Forbidden(why.to_owned()));
        }
        let mut state = self.state.lock();
        let concerned = state.asked.extract_if(|_, asked| {
            let quoted = format!("\"{}\"", asked.subject);
            why.contains(&quoted)
        });
        for (_, asked) in concerned {
            asked
                .answer
                .send(Err(Error::Forbidden(why.to_owned())))
                .ok();
        }
        drop(state);
        tracing::warn!(why, "the old mesh refuses something");
        Ok(())
    }

    /// Hands a message to whom it is for. Without room it is not kept; an ordered inbox ends with it.
    fn deliver(&self, op: ServerOp) {
        let ServerOp::NatsMessage {
            subscription,
            subject,
            reply,
            headers,
            payload,
        } = op
        else {
            return;
        };
        let header_bytes: usize = headers.lines.iter().map(|(a, b)| a.len() + b.len()).sum();
        let units = (payload.len() + header_bytes).div_ceil(ROOM_UNIT_BYTES) + 1;
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        let leased = Arc::clone(&self.room).try_acquire_many_owned(units);
        let mut state = self.state.lock();
        let Ok(room) = leased else {
            state
                .inboxes
                .retain(|number, entry| *number != subscription || !entry.is_ordered);
            return;
        };
        let message = NatsMessage {
            subject,
            reply,
            headers,
            payload,
            _room: room,
        };
        if subscription == ANSWERS {
            let number = message
                .subject
                .rsplit('.')
                .next()
                .and_then(|n| n.parse().ok());
            let asked = number.and_then(|number: u64| state.asked.remove(&number));
            if let Some(asked) = asked {
                let is_nobody = message.headers.status == Some(NOBODY);
                let answer = if is_nobody {
                    Err(unavailable(format_args!(
                        "nobody answers at {}",
                        asked.subject
                    )))
                } else {
                    Ok(message)
                };
                asked.answer.send(answer).ok();
            }
            return;
        }
        let overrun = state.inboxes.get(&subscription).is_some_and(|entry| {
            let kept = entry.messages.try_send(message);
            kept.is_err() && entry.is_ordered
        });
        if overrun {
            state.inboxes.remove(&subscription);
            self.ops.try_send(ClientOp::Unsubscribe(subscription)).ok();
        }
    }

    async fn write(
        &self,
        mut writer: WriteHalf<Box<dyn Stream>>,
        ops: &mut mpsc::Receiver<ClientOp>,
    ) -> Result<std::convert::Infallible, Error> {
        let mut said = Vec::new();
        loop {
            said.clear();
            tokio::select! {
                () = self.pinged.notified() => ClientOp::Pong.encode(&mut said),
                op = ops.recv() => {
                    op.ok_or_else(|| unavailable("nobody has anything to say any more"))?.encode(&mut said);
                    // Everything that waits, up to a packet.
                    while said.len() < (64 << 10) && let Ok(op) = ops.try_recv() {
                        op.encode(&mut said);
                    }
                }
                () = self.deps.clock.sleep(PING_INTERVAL) => {
                    // One that is there already asks the same.
                    let mut state = self.state.lock();
                    if !state.pinged.is_empty() {
                        continue;
                    }
                    state.pinged.push_back(None);
                    ClientOp::Ping.encode(&mut said);
                }
            }
            let writing = async {
                writer.write_all(&said).await?;
                writer.flush().await
            };
            let written = self.deps.clock.timeout(SILENCE_MAX, writing).await;
            written.map_err(unavailable)?.map_err(unavailable)?;
        }
    }
}

#[cfg(test)]
mod tests;
