//! The real binary, a real directory, a real socket: one module per story.
//!
//! Every server runs on a free port of the loopback interface in a directory of its own, and is
//! gone when its test ends.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod access;
mod audit;
mod bad_input;
mod bombs;
mod broker;
mod cli;
mod clients;
mod crash;
mod documents;
mod doors;
mod edge;
mod events;
mod flood;
mod harness;
mod health;
mod kept;
mod remote;
mod serve;
mod signer;
mod smoke;
mod stream;
mod subscriber_probe;
mod tls;
mod upgrade;
mod writers;
