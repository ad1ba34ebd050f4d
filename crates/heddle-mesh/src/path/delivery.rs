//! Hop 6: attempt, back off, time out, respect the window.
//!
//! `attempt` is one attempt at one event (`job`), [`courier`] what goes over the wire. Whether a destination wants anything at
//! all is `consent`'s to find out, and whether it is there between events `subscriber_probe`'s. With which
//! keys it is signed is [`signing`]'s. When to try again is [`retry_policy`]'s to say, and how many attempts at once [`breaker`]'s. Who
//! attempts what, and what becomes of it, is left to the consumer: nothing in here knows of consumers.

mod address;
pub mod answer;
pub(crate) mod attempt;
pub mod breaker;
pub(crate) mod consent;
pub mod courier;
pub(crate) mod job;
pub(crate) mod pace;
pub(crate) mod plan;
mod pool;
pub mod retry_after;
pub mod retry_policy;
pub(crate) mod sending;
pub mod signing;
pub(crate) mod subscriber_probe;
pub(crate) mod subscriber_trial;

pub(crate) use consent::fuzzing as consent_fuzzing;
pub use pool::Limits as ConnectionLimits;
pub(crate) use pool::fuzzing as pool_fuzzing;
