//! Any bytes found on the disk are read or are refused.

#![no_main]

#[path = "../../crates/heddle-mesh/tests/soup/disk.rs"]
mod soup;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| soup::disk(bytes));
