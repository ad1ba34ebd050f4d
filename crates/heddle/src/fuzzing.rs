//! For the fuzzer: what reads here what lies on the disk, or was sent by a server.

pub use crate::audit::journal::fuzzing::line as audit_line;
pub use crate::backup::frames::fuzzing::frames as backup_frames;

#[cfg(test)]
mod tests;
