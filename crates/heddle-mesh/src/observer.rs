//! A port for whoever wants to watch: told of every event that was accepted and of every attempt that was made.
//!
//! An observer is called on the path of the event. It must not wait, and nothing hangs on it: what it does with what it
//! is told is its own affair. With one, an event's coming is a span of its own, and each attempt a child of it whose id
//! the subscriber gets; events that bring no context begin a trace. Without one, context is carried as it came.
//!
//! Told is only what a trace records: an event whose publisher says that its trace is not sampled passes in silence.

use std::fmt::Debug;
use std::time::Duration;

use jiff::Timestamp;

use crate::event::Event;
use crate::log::Offset;
use crate::span::Span;

/// Watches the path.
pub trait Observer: Debug + Send + Sync {
    /// An event is safe in the log.
    fn accepted(&self, accepted: &Accepted<'_>);

    /// An attempt has ended.
    fn attempted(&self, attempted: &Attempted<'_>);
}

/// What every span has.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    pub span: Span,
    /// The id of the span this one is part of.
    pub parent: Option<u64>,
    /// The `tracestate` that goes with it; empty when there is none.
    pub state: &'a str,
    pub event: &'a Event,
    pub offset: Offset,
    pub ended: Timestamp,
    pub took: Duration,
}

/// An event that was accepted.
#[derive(Clone, Copy, Debug)]
pub struct Accepted<'a> {
    pub seen: Seen<'a>,
    /// Where it came in: `channel/NAMESPACE/NAME` or `broker/NAMESPACE/NAME`.
    pub entry: &'a str,
}

/// An attempt that was made.
#[derive(Clone, Copy, Debug)]
pub struct Attempted<'a> {
    pub seen: Seen<'a>,
    /// `trigger/NAMESPACE/NAME` or `subscription/NAMESPACE/NAME`.
    pub consumer: &'a str,
    /// Whether it went to the consumer's sink for dead letters, rather than to its subscriber.
    pub sink: bool,
    /// Counted from one.
    pub number: u32,
    /// The status of the answer; 0 when there was none.
    pub status: u16,
    /// Why it failed, if it did.
    pub error: Option<&'a str>,
}
