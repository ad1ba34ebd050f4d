//! What people type, and everything one slip of the finger away from it.

#[path = "../../../fuzz/seeds.rs"]
mod seeds;
#[path = "soup/typed.rs"]
mod soup;

/// Gives a promise a text, where the bytes are one.
fn typed(promise: fn(&str) -> bool) -> impl Fn(&[u8]) {
    move |bytes| {
        if let Ok(text) = std::str::from_utf8(bytes) {
            promise(text);
        }
    }
}

#[test]
fn a_question_for_events_and_whatever_is_close_to_one_is_read_or_refused() {
    assert!(soup::find_query("type:order.* -state:dead since:1h"));
    seeds::check("find_query", typed(soup::find_query));
}

#[test]
fn filters_and_whatever_is_close_to_some_are_read_or_refused() {
    assert!(soup::filter_text("exact type = order.created"));
    seeds::check("filter_text", typed(soup::filter_text));
}
