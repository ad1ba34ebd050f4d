//! Media types, as far as events need them: are they one, do they say JSON, which charset do they name.

/// Whether this is a type, a subtype and perhaps parameters, in printable ASCII.
pub(in crate::event) fn is_media_type(text: &str) -> bool {
    let essence = without_parameters(text);
    let token = |token: &str| !token.is_empty() && token.bytes().all(is_token);
    let named = essence
        .split_once('/')
        .is_some_and(|(type_, subtype)| token(type_) && token(subtype));
    named && !text.ends_with(' ') && text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Whether data of this type is JSON: the subtype is `json` or ends in `+json`, whatever the case.
pub(in crate::event) fn is_json(text: &str) -> bool {
    let Some((_, subtype)) = without_parameters(text).split_once('/') else {
        return false;
    };
    let start = subtype.len().saturating_sub("+json".len());
    subtype.eq_ignore_ascii_case("json")
        || subtype
            .get(start..)
            .is_some_and(|end| end.eq_ignore_ascii_case("+json"))
}

pub(in crate::event) fn without_parameters(text: &str) -> &str {
    let end = text.find(';').unwrap_or(text.len());
    text[..end].trim_end_matches(' ')
}

/// The charset that is named, without its quotes.
pub(in crate::event) fn charset(text: &str) -> Option<&str> {
    let mut rest = text;
    while let Some(start) = next_parameter(rest) {
        rest = &rest[start..];
        let end = next_parameter(rest).map_or(rest.len(), |next| next - 1);
        if let Some((name, value)) = rest[..end].split_once('=')
            && name.trim().eq_ignore_ascii_case("charset")
        {
            return Some(value.trim().trim_matches('"'));
        }
    }
    None
}

/// Where the next parameter begins: behind the next semicolon that is not in quotes.
fn next_parameter(text: &str) -> Option<usize> {
    let mut quoted = false;
    let mut bytes = text.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'\\' if quoted => {
                bytes.next();
            }
            b'"' => quoted = !quoted,
            b';' if !quoted => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Whether text in this charset can be taken for UTF-8.
pub(in crate::event) fn is_utf8(charset: &str) -> bool {
    ["utf-8", "utf8", "us-ascii"]
        .iter()
        .any(|known| charset.eq_ignore_ascii_case(known))
}
