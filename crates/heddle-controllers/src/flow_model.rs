//! Flows in a world that fits in a hand: a server that compares and swaps, and the reconciles of three controllers on it, cut
//! where other reconciles can come between.
//!
//! The controllers are the real ones; only reading and writing are replaced, by a server that keeps objects as values. What
//! the real API server does with them is asked elsewhere.

mod orders;
mod server;
mod storms;

pub(crate) use server::{Planted, Server};
