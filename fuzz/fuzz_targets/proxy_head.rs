//! Any bytes, taken for a request to the proxy of a sandbox, are understood or are refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heddle_bundles::fuzzing::proxy_head(bytes));
