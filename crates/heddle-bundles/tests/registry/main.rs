//! Readings of a real registry, with a proxy in between that makes trouble.
//!
//! `DOCKER_REGISTRY` is the path of Debian's `docker-registry`, and `openssl` has to be there; without them every test
//! fails. Asked for with `--features registry-tests`. `machine.rs` runs registries and proxies, `made.rs` makes images, the
//! others are the stories.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]
#![expect(
    clippy::disallowed_methods,
    reason = "a test has its own files, and no configuration but its environment"
)]

mod charts;
mod contract;
mod doors;
mod evidence;
mod keeping;
mod listings;
mod machine;
mod made;
mod trouble;
