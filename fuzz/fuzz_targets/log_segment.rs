//! Any bytes, taken for the only segment of a log, are understood or are refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heddle_store::fuzzing::log_segment(bytes));
