//! Any bytes, taken for the filters of a Trigger, are understood or are refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heddle_mesh::fuzzing::filters(bytes));
