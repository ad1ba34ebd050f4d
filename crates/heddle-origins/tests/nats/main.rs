//! Old meshes that are real: NATS Streaming and JetStream, asked for what every adapter promises, and for more when they break.
//!
//! `NATS_STREAMING_SERVER`, `NATSS_CLIENT`, `NATS_SERVER` and `JETSTREAM_CLIENT` name the programs (`.ci/tools.sh origins` brings
//! them), and `openssl` has to be there; without them every test fails. Asked for with `--features nats-tests`. `machine.rs`
//! runs servers, `clients.rs` their publishers and subscribers, the others are the stories.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]
#![expect(
    clippy::disallowed_methods,
    reason = "a test has its own files, and no configuration but its environment"
)]

mod clients;
mod jetstream;
mod machine;
mod streaming;
