//! Any bytes, taken for a record of the resource store, are understood or are refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heddle_store::fuzzing::resource_record(bytes));
