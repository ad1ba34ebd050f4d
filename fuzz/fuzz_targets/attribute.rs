//! Any bytes, taken for the name and the value of an attribute, are understood or are refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heddle_mesh::fuzzing::attribute(bytes));
