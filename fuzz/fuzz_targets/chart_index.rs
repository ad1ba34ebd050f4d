//! Any bytes, taken for the index of a repository of charts, are understood or are refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heddle_bundles::fuzzing::chart_index(bytes));
