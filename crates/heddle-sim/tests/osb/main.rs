//! The OSB front on a real API server in the same process, asked as platforms ask.
//!
//! No controller runs here: what one would write into a status is written by hand, so that a story decides when an
//! operation goes on. Time is simulated.

#![expect(clippy::unwrap_used, reason = "a test says what failed by failing")]

mod bindings;
mod bundles;
mod door;
mod identity;
mod instances;
mod patience;
mod races;
mod world;
