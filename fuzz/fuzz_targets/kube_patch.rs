//! Any bytes, taken for an object and a patch of any kind, are understood or are refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heddle_apiserver::fuzzing::patch(bytes));
