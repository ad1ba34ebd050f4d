//! Hop 6: attempt, back off, time out, respect the window.

mod address;
pub mod answer;
pub mod breaker;
pub mod courier;
pub mod policy;
mod pool;
pub mod retry_after;

pub use pool::Limits as ConnectionLimits;
