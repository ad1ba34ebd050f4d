//! Hop 6: attempt, back off, time out, respect the window.
//!
//! `lane` is the loop that attempts the events of a consumer (`consumer`) one after the other, [`courier`] what
//! goes over the wire. Whether a destination wants anything at all is `consent`'s to find out. When to try again is [`policy`]'s to say, and how many attempts at once [`breaker`]'s.

mod address;
pub mod answer;
pub mod breaker;
pub(crate) mod consent;
pub mod courier;
pub(crate) mod lane;
pub(crate) mod plan;
pub mod policy;
mod pool;
pub mod retry_after;
pub(crate) mod sending;
pub(crate) mod timer;

pub(crate) use consent::fuzzing as consent_fuzzing;
pub use pool::Limits as ConnectionLimits;
pub(crate) use pool::fuzzing as pool_fuzzing;
