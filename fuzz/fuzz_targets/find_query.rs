//! Any text, taken for a question for events, is understood or is refused at one of its characters.

#![no_main]

#[expect(dead_code, reason = "each target takes one of the promises")]
#[path = "../../crates/heddle-api/tests/soup/typed.rs"]
mod soup;

libfuzzer_sys::fuzz_target!(|text: &str| {
    soup::find_query(text);
});
