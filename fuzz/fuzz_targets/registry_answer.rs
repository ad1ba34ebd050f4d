//! Any bytes, taken for a challenge, an address or the name of an image, are understood or are refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heddle_bundles::fuzzing::registry_answer(bytes));
