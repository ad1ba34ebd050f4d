//! The hops, one file each, in the order in which an event passes them.

pub mod delivery;
pub mod trigger;
