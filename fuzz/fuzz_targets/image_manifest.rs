//! Any bytes, taken for the manifest, index or configuration of an image, are understood or are refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heddle_bundles::fuzzing::image_manifest(bytes));
