//! Any bytes, taken for a line of a recording, are read or are refused with a reason.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heddle_origins::fuzzing::recorded_line(bytes));
