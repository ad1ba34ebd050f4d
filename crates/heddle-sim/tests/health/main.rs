//! The health of a running mesh, under every fault that one machine can have: what is broken must be named, and nothing else.
//!
//! ```text
//!   users ─> API server ─(trouble)─> controllers ─> mesh ─(faults)─> network ─> subscribers
//!                                        └─> judge ─> verdict: plane, hop, object  ==  what was injected?
//! ```
//! Everything is the product but the disk, the clock and the network. Time is virtual.

#![expect(clippy::unwrap_used, reason = "a test says what failed by failing")]

mod comparison;
mod controllers;
mod faults;
mod network;
/// The very file with which the binary joins mesh and controllers.
#[path = "../../../heddle/src/plane.rs"]
mod plane;
mod scale;
mod sweep;
mod trouble;
#[path = "../controllers/world.rs"]
#[expect(dead_code, reason = "shared with another suite, which uses more of it")]
mod users;
mod world;
