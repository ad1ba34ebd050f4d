//! Any bytes, taken for a line of the audit log, are understood or are passed over.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heddle::fuzzing::audit_line(bytes));
