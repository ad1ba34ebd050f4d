//! Bundles from outside: read out of registries, kept as images, run as actions.
//!
//! ```text
//!   registry (OCI, directory, charts, pushed) ──read──> evidence        what each answer proves, and no more
//!        └──────────── fetch ──> images (by digest, verified) ──unpack──> root file system
//!                                                                             └── sandbox: one run of one action
//! ```
//! Everything here deals with strangers: a registry may lie, stall or vanish, an image may be built to break out, a program
//! may run amok. Each is bounded in bytes, time and reach, and trouble with one harms no other. What follows from evidence and
//! outcomes is decided by controllers, which know this crate only through a port.

#[doc(hidden)]
pub mod fuzzing;
pub mod images;
pub mod pack;
pub mod registries;
mod removal;
pub mod sandbox;
pub mod workshop;
