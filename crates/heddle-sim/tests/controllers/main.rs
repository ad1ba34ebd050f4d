//! What the controllers promise, on simulated time and the real API server.

#![expect(clippy::unwrap_used, reason = "a test says what failed by failing")]

mod actions;
mod catalog;
mod flows;
mod instances;
mod promises;
mod registries;
mod wakes;
mod world;
