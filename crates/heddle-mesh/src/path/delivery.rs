//! Hop 6: attempt, back off, time out, respect the window.

pub mod breaker;
pub mod policy;
pub mod retry_after;
