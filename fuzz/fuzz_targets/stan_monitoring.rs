//! Any counters of a NATS Streaming server agree with each other or are refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heddle_origins::fuzzing::stan_monitoring(bytes));
