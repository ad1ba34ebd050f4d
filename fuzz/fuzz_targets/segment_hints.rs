//! Any bytes, taken for the hints of a segment, say what their bits say or are damaged.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heddle_mesh::fuzzing::segment_hints(bytes));
