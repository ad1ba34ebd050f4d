//! Any bytes, said by a NATS server, are understood the same whole and in pieces, or end the connection.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heddle_origins::fuzzing::nats_line(bytes));
