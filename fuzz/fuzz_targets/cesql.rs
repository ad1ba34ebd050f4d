//! Any text, taken for an expression of CloudEvents SQL, is one or is refused.

#![no_main]

#[path = "../../crates/heddle-api/tests/soup/mod.rs"]
mod soup;

libfuzzer_sys::fuzz_target!(|text: &str| {
    soup::cesql(text);
});
