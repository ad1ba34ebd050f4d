//! Events through the real binary, from a publisher's socket to a subscriber's.
//!
//! `wire.rs` speaks HTTP byte by byte, so that a test can send what no client library would;
//! `subscriber.rs` answers as badly as it is told to; `stage.rs` knows the resources.

mod backup;
mod bad_neighbours;
mod bad_replies;
mod commands;
mod crashes;
mod damage;
mod dead_letters;
mod descriptors;
mod identity;
mod legacy;
pub(crate) mod load;
mod metrics;
mod own_door;
mod publishing;
mod resend;
mod room;
mod routing;
mod security;
mod signing;
pub(crate) mod stage;
pub(crate) mod subscriber;
pub(crate) mod wire;
