//! Any bytes, taken for an object in JSON or YAML, are understood or are refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heddle_apiserver::fuzzing::document(bytes));
