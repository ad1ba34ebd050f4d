//! For the fuzzer: everything here that reads what registries and images hold.

pub use crate::images::fuzzing::{layer, manifest as image_manifest};
pub use crate::registries::fuzzing::{
    answer as registry_answer, chart_index, label as bundle_label,
};

#[cfg(test)]
mod tests;
