//! Any bytes, taken for the description of a bundle, are understood or are refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heddle_bundles::fuzzing::bundle_label(bytes));
