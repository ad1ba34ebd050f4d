//! Any bytes, taken for the path and the query of a request to the service broker, are understood or are refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heddle_front::fuzzing::request_line(bytes));
