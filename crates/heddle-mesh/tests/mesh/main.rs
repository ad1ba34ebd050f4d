//! The mesh from its door to its subscribers, with restarts and crashes in between.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod delivery;
mod world;
