//! Any bytes, taken for an HTTP message, are an event or are refused.

#![no_main]

#[expect(dead_code, reason = "each target takes one of the promises")]
#[path = "../../crates/heddle-mesh/tests/soup/mod.rs"]
mod soup;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| soup::http(bytes));
