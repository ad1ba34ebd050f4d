//! For the fuzzer: everything here that reads what registries and images hold.

pub use crate::images::fuzzing::{layer, manifest as image_manifest};
pub use crate::registries::fuzzing::{
    answer as registry_answer, chart_index, label as bundle_label,
};
pub use crate::sandbox::shim::proxy_fuzzing::head as proxy_head;

#[cfg(test)]
mod tests;
