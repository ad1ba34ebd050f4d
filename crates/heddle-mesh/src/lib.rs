//! The path of an event, from source to subscriber.
//!
//! ```text
//!                  what users declare, and what traces name
//!   publisher ─> source ─> channel ─> subscription ─> broker ─> trigger ─> delivery ─> subscriber
//!                  │          │                                   │           │
//!               202 after   one append                      one look per    retry … dead letter
//!               the sync    in the log                      event, indexed
//!
//!                  what happens, and the files it happens in
//!   path/source ─> path/channel ─> log ─> path/broker ──offers──> consumer ──attempts──> path/delivery
//!                                            │                     │    └────rests────> path/dead_letter
//!                                     asks routes, which           │                         ^
//!                                     asks path/trigger            │          (a redriven one is read from here)
//!                                                           journal: one line for every outcome
//! ```
//! Source, channel, subscription, broker and trigger are what users declare and what traces name. Physically an event is
//! appended once; everything behind the log is a position in it, which its `consumer` keeps. What each consumer did with an
//! event is a line in the journal, and the journal is all that a restart needs (`recovery`).
//!
//! Arrows go one way: a consumer knows how to attempt (hop 6) and where dead letters rest (hop 7), delivery reads dead letters,
//! and neither knows of consumers. `draining` and `quota` end events that nobody waits for any longer, `bulk` takes many dead letters one by one, `marks` has what was said of groups of them, `ledger` and
//! `questions` tell about all of them, `housekeeping` removes what nobody needs.
//!
//! The mesh never asks the API server while an event waits: it reads an immutable table that was compiled beforehand.

mod aside;
mod bulk;
mod codec;
mod consumer;
mod draining;
pub mod envelope;
pub mod event;
mod faults;
#[doc(hidden)]
pub mod fuzzing;
pub mod heartbeat;
pub mod hop;
mod housekeeping;
pub mod journal;
pub mod ledger;
pub mod log;
mod marks;
mod mesh;
mod metrics;
pub mod observer;
pub mod path;
pub mod questions;
mod quota;
mod recovery;
pub mod routes;
mod shared;
mod span;
pub mod who;

pub use aside::{Aside, AsideError, AsidePlace};
pub use codec::Unreadable;
pub use draining::GiveUpError;
#[cfg(feature = "fault-injection")]
pub use faults::{Fault, FaultPair};
pub use heartbeat::HeartbeatSink;
pub use housekeeping::Retention;
pub use mesh::{Mesh, Options};
pub use observer::Observer;
pub use quota::Quota;
pub use recovery::Error as OpenError;
pub use span::Span;
