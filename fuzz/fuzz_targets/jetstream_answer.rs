//! Any answers of JetStream are numbers that agree with each other, or are refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heddle_origins::fuzzing::jetstream_answer(bytes));
