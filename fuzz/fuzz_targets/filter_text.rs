//! Any text, taken for the filters of a trigger, is understood or is refused at one of its characters.

#![no_main]

#[expect(dead_code, reason = "each target takes one of the promises")]
#[path = "../../crates/heddle-api/tests/soup/typed.rs"]
mod soup;

libfuzzer_sys::fuzz_target!(|text: &str| {
    soup::filter_text(text);
});
