//! The hops, one file each, in the order in which an event passes them.
//!
//! The subscription between a channel and a broker is a line in the table, not a step an event waits at: it shows in
//! traces, and costs nothing.

pub mod source;

pub(crate) mod channel;

pub(crate) mod broker;

pub mod trigger;

pub mod delivery;

pub(crate) mod dead_letter;
