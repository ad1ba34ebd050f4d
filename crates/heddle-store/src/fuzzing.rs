//! For the fuzzer: everything here that reads what lies on a disk.

pub use crate::events::fuzzing::{
    damage as log_damage, manifest as log_manifest, segment as log_segment,
};
pub use crate::format::fuzzing::record as resource_record;

#[cfg(test)]
mod tests;
