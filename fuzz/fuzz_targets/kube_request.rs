//! Any bytes, taken for the path and the query of a request, are understood or are refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heddle_apiserver::fuzzing::request(bytes));
