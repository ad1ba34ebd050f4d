//! Any bytes, taken for the headers with which a destination asks to wait or consents, are understood or are refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heddle_mesh::fuzzing::answer_headers(bytes));
