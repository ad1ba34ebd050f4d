//! Any bytes, taken for the body of a publish in the API of old Kyma, are refused in its words or kept byte for byte.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| heddle_mesh::fuzzing::legacy_publish(bytes));
