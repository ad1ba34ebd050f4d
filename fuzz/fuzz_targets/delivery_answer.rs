//! Any bytes, taken for what a destination answers over HTTP/1, are understood or are refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heddle_mesh::fuzzing::answer(bytes));
