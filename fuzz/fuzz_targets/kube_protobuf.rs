//! Any bytes, taken for an object in protobuf, are understood or are refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heddle_apiserver::fuzzing::protobuf(bytes));
