//! Any bytes, taken for a selector of labels or fields, are understood or are refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heddle_apiserver::fuzzing::selector(bytes));
