//! Any bytes, taken for what a NATS Streaming server sends, are understood or are refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heddle_origins::fuzzing::stan_message(bytes));
