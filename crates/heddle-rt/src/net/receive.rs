//! Receiving a body: bounded in bytes, on somebody's account, and in time.
//!
//! A body that is small and there at once costs nothing but itself. Any other is leased from the [`Budget`] as its bytes
//! arrive, whatever length it announces, and must make progress: half-sent bodies are the cheapest way to make a server
//! hold memory. While others wait for the room it takes, it must be quick. What the bytes mean is left to the caller, who
//! keeps the [`Received`] until they are no longer needed.

#[cfg(test)]
mod tests;

use std::fmt::Display;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::Extensions;
use hyper::body::{Body, Frame};

use super::Peer;
use crate::Clock;
use crate::budget::{Budget, Class, FREE_BYTES_MAX, Holder, Lease, NoRoom};

/// What a request that waits for its body holds besides it: its head, and the buffers of its connection.
const HEAD_BYTES: usize = 16 << 10;
/// The time that any body has.
const TIME_MIN: Duration = Duration::from_secs(10);
/// What a body must bring for each second more.
const RATE_BYTES_MIN: u32 = 8 << 10;
/// The same while others wait for the room it takes.
const PRESSED_TIME_MIN: Duration = Duration::from_secs(2);
const PRESSED_RATE_BYTES_MIN: u32 = 256 << 10;
/// How often a body that does not move is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long a body waits for room.
pub const ROOM_TIME_MAX: Duration = Duration::from_secs(5);

/// The body of a request, whatever carries it.
pub trait RequestBody: Body<Data = Bytes, Error: Display> + Send {}

impl<B: Body<Data = Bytes, Error: Display> + Send> RequestBody for B {}

/// The same where code that is long should be compiled once, and where it belongs, instead of once for each kind of body.
pub type AnyBody<'a> = Pin<&'a mut (dyn Body<Data = Bytes, Error = String> + Send + 'a)>;

/// What the bodies of one connection are received with; part of its [`Peer`].
#[derive(Debug)]
pub struct Intake {
    budget: Budget,
    /// Whose they are as long as nobody says who they are.
    holder: Holder,
    clock: Clock,
}

impl Intake {
    #[must_use]
    pub fn new(budget: Budget, holder: Holder, clock: Clock) -> Self {
        Self {
            budget,
            holder,
            clock,
        }
    }

    /// Of a request that came in through a door; nothing for one that this process sent itself.
    #[must_use]
    pub fn of(extensions: &Extensions) -> Option<&Self> {
        extensions.get::<Peer>().map(|peer| &*peer.intake)
    }

    /// The account of everybody at the other end's address.
    #[must_use]
    pub fn account(&self) -> Account<'_> {
        Account {
            intake: self,
            identity: None,
        }
    }

    /// The account of somebody who proved who they are, wherever they come from.
    #[must_use]
    pub fn account_of<'a>(&'a self, identity: &'a str) -> Account<'a> {
        Account {
            intake: self,
            identity: Some(identity),
        }
    }
}

/// On whose account a body is received.
#[derive(Clone, Copy, Debug)]
pub struct Account<'a> {
    intake: &'a Intake,
    identity: Option<&'a str>,
}

impl Account<'_> {
    fn lease(&self) -> Lease {
        let holder = match self.identity {
            Some(identity) => Holder::Identity(identity.into()),
            None => self.intake.holder.clone(),
        };
        self.intake.budget.lease(Class::Request, holder)
    }
}

/// A body, and the right to hold it.
#[derive(Debug)]
pub struct Received {
    pub bytes: Bytes,
    _lease: Option<Lease>,
}

/// Why a body was not received. Whoever is told the last two may try again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotReceived {
    #[error("the body is larger than {0} bytes")]
    TooLarge(usize),
    #[error("the body did not arrive whole: {0}")]
    Broken(String),
    #[error("the body arrived too slowly")]
    TooSlow,
    #[error("too many requests are being received at once")]
    NoRoom,
}

impl From<NoRoom> for NotReceived {
    fn from(_: NoRoom) -> Self {
        Self::NoRoom
    }
}

/// The whole body. Without an `account`, which is how this process calls itself, only its size is bounded.
pub async fn receive<B>(
    body: B,
    bytes_max: usize,
    account: Option<Account<'_>>,
) -> Result<Received, NotReceived>
where
    B: Body<Data = Bytes>,
    B::Error: Display,
{
    let announced = body.size_hint();
    if announced.lower() > bytes_max as u64 {
        return Err(NotReceived::TooLarge(bytes_max));
    }
    let announced = announced.exact().and_then(|bytes| bytes.try_into().ok());
    let mut body = std::pin::pin!(body);
    let mut pieces = Pieces {
        first: Bytes::new(),
        rest: BytesMut::new(),
        bytes_max,
        announced: announced.unwrap_or(bytes_max),
    };
    let mut held = None;
    loop {
        let now = frame_now(body.as_mut()).await;
        if now.is_none() && held.is_none() {
            held = Some(Held::new(account).await?);
        }
        let frame = match (now, &mut held) {
            (Some(frame), _) => frame,
            (None, Some(held)) => match held.frame(body.as_mut(), pieces.len()).await? {
                Some(frame) => frame,
                None => continue,
            },
            (None, None) => continue,
        };
        let Some(frame) = frame else { break };
        let Ok(data) = frame.map_err(NotReceived::Broken)?.into_data() else {
            continue;
        };
        let grows = pieces.growth(data.len())?;
        if held.is_none() && pieces.len() + data.len() > FREE_BYTES_MAX {
            held = Some(Held::new(account).await?);
        }
        if let Some(held) = &mut held {
            held.grow(grows, pieces.len()).await?;
        }
        pieces.push(data, grows);
    }
    Ok(Received {
        bytes: pieces.join(),
        _lease: held.and_then(|held| held.pace.map(|pace| pace.lease)),
    })
}

/// A frame, or what went wrong in words; nothing behind the last one.
type Next = Option<Result<Frame<Bytes>, String>>;

fn poll<B>(body: Pin<&mut B>, cx: &mut Context<'_>) -> Poll<Next>
where
    B: Body<Data = Bytes>,
    B::Error: Display,
{
    let frame = body.poll_frame(cx);
    frame.map(|frame| frame.map(|frame| frame.map_err(|error| error.to_string())))
}

/// The next frame, if it is there already.
async fn frame_now<B>(mut body: Pin<&mut B>) -> Option<Next>
where
    B: Body<Data = Bytes>,
    B::Error: Display,
{
    poll_fn(|cx| {
        Poll::Ready(match poll(body.as_mut(), cx) {
            Poll::Ready(frame) => Some(frame),
            Poll::Pending => None,
        })
    })
    .await
}

/// What has arrived. One piece is not copied; several are, for each would hold on to a buffer of its connection.
struct Pieces {
    first: Bytes,
    rest: BytesMut,
    bytes_max: usize,
    announced: usize,
}

impl Pieces {
    fn len(&self) -> usize {
        self.first.len() + self.rest.len()
    }

    /// How much more must be allocated for so many bytes. It doubles, and never goes beyond what was announced.
    fn growth(&self, bytes: usize) -> Result<usize, NotReceived> {
        let length = self.len() + bytes;
        if length > self.bytes_max {
            return Err(NotReceived::TooLarge(self.bytes_max));
        }
        let capacity = self.rest.capacity();
        if self.len() == 0 || length <= capacity {
            return Ok(0);
        }
        let doubled = (2 * capacity).min(self.announced).max(length);
        Ok(doubled - capacity)
    }

    fn push(&mut self, data: Bytes, grows: usize) {
        if self.len() == 0 {
            self.first = data;
            return;
        }
        let capacity = self.rest.capacity() + grows;
        self.rest.reserve(capacity - self.rest.len());
        self.rest
            .extend_from_slice(&std::mem::take(&mut self.first));
        self.rest.extend_from_slice(&data);
    }

    fn join(self) -> Bytes {
        if self.rest.is_empty() {
            return self.first;
        }
        self.rest.freeze()
    }
}

/// A body that takes its time.
struct Held {
    /// Nothing where only the size counts.
    pace: Option<Pace>,
}

struct Pace {
    clock: Clock,
    lease: Lease,
    begun: Duration,
}

impl Held {
    /// Opens an account for a body that is not there at once.
    async fn new(account: Option<Account<'_>>) -> Result<Self, NotReceived> {
        let Some(account) = account else {
            return Ok(Self { pace: None });
        };
        let clock = account.intake.clock.clone();
        let mut lease = account.lease();
        lease.grow_within(HEAD_BYTES, &clock, ROOM_TIME_MAX).await?;
        let begun = clock.monotonic();
        let pace = Some(Pace {
            clock,
            lease,
            begun,
        });
        Ok(Self { pace })
    }

    /// The next frame, or nothing after a while.
    async fn frame<B>(
        &mut self,
        mut body: Pin<&mut B>,
        received: usize,
    ) -> Result<Option<Next>, NotReceived>
    where
        B: Body<Data = Bytes>,
        B::Error: Display,
    {
        let frame = poll_fn(|cx| poll(body.as_mut(), cx));
        let Some(pace) = &mut self.pace else {
            return Ok(Some(frame.await));
        };
        let Ok(frame) = pace.clock.timeout(LOOK_EVERY, frame).await else {
            pace.check(received)?;
            return Ok(None);
        };
        Ok(Some(frame))
    }

    async fn grow(&mut self, bytes: usize, received: usize) -> Result<(), NotReceived> {
        let Some(pace) = &mut self.pace else {
            return Ok(());
        };
        pace.check(received)?;
        if bytes == 0 {
            return Ok(());
        }
        let waits = pace.clock.monotonic();
        let room = pace.lease.grow_within(bytes, &pace.clock, ROOM_TIME_MAX);
        room.await?;
        // The time for which there was no room is not its sender's.
        pace.begun += pace.clock.monotonic().saturating_sub(waits);
        Ok(())
    }
}

impl Pace {
    /// Whether a body has brought enough for the time it took.
    fn check(&self, received: usize) -> Result<(), NotReceived> {
        let took = self.clock.monotonic().saturating_sub(self.begun);
        let allowed = |min: Duration, rate: u32| {
            let bytes = u32::try_from(received).unwrap_or(u32::MAX);
            min + Duration::from_secs_f64(f64::from(bytes) / f64::from(rate))
        };
        if took > allowed(TIME_MIN, RATE_BYTES_MIN) {
            return Err(NotReceived::TooSlow);
        }
        let is_slow = took > allowed(PRESSED_TIME_MIN, PRESSED_RATE_BYTES_MIN);
        if is_slow && self.lease.is_wanted() {
            return Err(NotReceived::TooSlow);
        }
        Ok(())
    }
}
