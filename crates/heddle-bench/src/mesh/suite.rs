//! What is measured, one file per question.

pub(super) mod heartbeats;
pub(super) mod ingest;
pub(super) mod jetstream;
pub(super) mod latency;
pub(super) mod memory;
pub(super) mod neighbours;
pub(super) mod path;
pub(super) mod recovery;
pub(super) mod triggers;
