//! For the fuzzer: any text, taken for the name and the value of an attribute.

use heddle_api::attributes::Value;

use super::rules::{self, media};

/// A line with a name, and behind it a value: they are accepted, and again as they are kept, or refused in few words.
///
/// # Panics
/// When the promise does not hold.
pub fn attribute(soup: &[u8]) {
    let Ok(text) = std::str::from_utf8(soup) else {
        return;
    };
    let (name, value) = text.split_once('\n').unwrap_or((text, ""));
    if let Err(refused) = rules::name(name) {
        assert!(refused.message.len() < 1024);
        return;
    }
    match rules::value(name, Value::Text(value)) {
        Ok(kept) => assert_eq!(rules::value(name, kept).ok(), Some(kept)),
        Err(refused) => {
            assert!(refused.status.is_client_error() && refused.message.len() < 2048);
        }
    }
    let named = media::charset(value);
    assert!(named.is_none_or(|charset| value.contains(charset)));
    assert!(value.starts_with(media::without_parameters(value)));
    media::is_json(value);
}
