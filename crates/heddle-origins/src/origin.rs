//! The contract of an old mesh: what it holds, how far its subscribers are, a fence, and a reader for what they lack.
//!
//! - **counters** come from the old mesh itself, at the moment of the question, and are refused when they contradict
//!   themselves.
//! - **fence**: what is published afterwards is refused by the old mesh, or found out by [`Fence::check`].
//! - **take over**: a subscription is read in the place of its old subscriber, which must have stopped. Nothing else of it
//!   changes; above all it is never removed.
//! - **read**: everything unacknowledged, in order, each event once per reader, byte for byte.
//! - **release**: what was acknowledged counts as that in the old mesh; everything else is again as it was.
//!
//! Every adapter passes the same suite, [`conformance`](crate::conformance).

use std::fmt::Debug;

use bytes::Bytes;
use futures::future::BoxFuture;
use jiff::Timestamp;
use serde_json::Value;

use crate::counters::{Channel, Fence, Sequence, Subscription, SubscriptionId};

/// Why an old mesh could not do what was asked of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It never will: ask for something else.
    #[error("{0}")]
    Invalid(String),
    #[error("{0}")]
    NotFound(String),
    /// Somebody else is at work there. Stop that one first.
    #[error("{0}")]
    Conflict(String),
    /// The old mesh does not believe who is asking, or does not allow it.
    #[error("{0}")]
    Forbidden(String),
    /// Later.
    #[error("{0}")]
    Unavailable(String),
    /// What it says or holds cannot be true. Somebody has to look.
    #[error("{0}")]
    Corrupt(String),
}

/// An answer that is being waited for.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, Error>>;

/// An event as the old mesh keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginEvent {
    pub sequence: Sequence,
    /// When the old mesh accepted it.
    pub at: Timestamp,
    /// What it was published to; the channel's own name where there is nothing finer.
    pub subject: String,
    pub headers: Vec<(String, String)>,
    pub data: Bytes,
    /// Whether the old subscriber may have seen it already.
    pub redelivered: bool,
}

/// What a reader found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OriginRead {
    /// At least one, in order, none of which this reader handed out before.
    Events(Vec<OriginEvent>),
    /// Everything unacknowledged has been handed out.
    End,
}

/// Where the objects are read that an old mesh was declared with: servers of events do not know them.
pub trait OriginObjects: Debug + Send + Sync {
    fn objects(&self) -> Answer<'_, Vec<Value>>;
}

/// Objects that are there already.
impl OriginObjects for Vec<Value> {
    fn objects(&self) -> Answer<'_, Vec<Value>> {
        Box::pin(async { Ok(self.clone()) })
    }
}

/// An old mesh.
pub trait Origin: Debug + Send + Sync {
    /// The objects it was declared with.
    fn objects(&self) -> Answer<'_, Vec<Value>>;

    /// All channels, by name.
    fn channels(&self) -> Answer<'_, Vec<Channel>>;

    /// Of one channel.
    fn subscriptions(&self, channel: &str) -> Answer<'_, Vec<Subscription>>;

    /// Holds publishers of a channel off, and says how far they came. Doing it twice is as good as once.
    fn fence(&self, channel: &str) -> Answer<'_, Fence>;

    /// Lets publishers go on. A channel that has no fence is left as it is.
    fn lift_fence(&self, channel: &str) -> Answer<'_, ()>;

    /// Begins to read a subscription in the place of its subscriber.
    fn take_over(&self, subscription: &SubscriptionId) -> Answer<'_, Box<dyn Reader>>;
}

/// Reads what a subscription has not acknowledged. Dropping it without a release loses nothing: what was handed out and not
/// acknowledged is handed out to the next one.
pub trait Reader: Debug + Send {
    /// At most `events_max` events. An error ends nothing: the next call goes on.
    fn read(&mut self, events_max: usize) -> Answer<'_, OriginRead>;

    /// Of events that this reader handed out. An acknowledgement that gets lost on the way means that the event is read
    /// again by a later reader; after [`Reader::release`] none is lost.
    fn acknowledge<'a>(&'a mut self, sequences: &'a [Sequence]) -> Answer<'a, ()>;

    /// Gives the subscription back. When it answers, the counters have every acknowledgement.
    fn release(self: Box<Self>) -> Answer<'static, ()>;
}
