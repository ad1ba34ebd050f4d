//! The value of an attribute as the value of an HTTP header, and back.
//!
//! Outwards everything but printable ASCII is percent-encoded, and so are space, `"` and `%`. Inwards a value in double
//! quotes is unquoted first, then one round of percent-decoding is done. That is what the binding asks for, and not what
//! most senders do: several official SDKs put attributes into headers as they are. A value that cannot have been encoded
//! (bytes beyond ASCII, quotes in the midst, a `%` that encodes nothing) is therefore taken as it was sent, in UTF-8 or
//! else in Latin-1, and the reader is told, so that it can be counted.

use std::borrow::Cow;

use ::http::HeaderValue;
use bytes::Bytes;

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Takes the optional white space away that HTTP allows around a value.
pub(super) fn trim(raw: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = raw.iter().position(|byte| !blank(byte));
    let end = raw.iter().rposition(|byte| !blank(byte));
    match (start, end) {
        (Some(start), Some(end)) => &raw[start..=end],
        _ => &[],
    }
}

/// The text that a header stands for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Decoded<'a> {
    /// Borrowed when nothing is encoded in it.
    pub(super) text: Cow<'a, str>,
    /// Whether it was encoded as it should be; otherwise this is what was sent.
    pub(super) encoded: bool,
}

pub(super) fn decode(raw: &[u8]) -> Decoded<'_> {
    let raw = trim(raw);
    if all(raw, |byte| is_plain(byte) || byte == b' ') {
        let text = std::str::from_utf8(raw).expect("printable ASCII is text");
        return Decoded {
            text: Cow::Borrowed(text),
            encoded: true,
        };
    }
    match strictly(raw) {
        Some(text) => Decoded {
            text: Cow::Owned(text),
            encoded: true,
        },
        None => Decoded {
            text: as_sent(raw),
            encoded: false,
        },
    }
}

/// What the binding says that a value means, if it was written as the binding asks.
fn strictly(raw: &[u8]) -> Option<String> {
    if !all(raw, is_printable) {
        return None;
    }
    percent_decode(&unquote(raw)?)
}

/// What somebody meant who did not encode it. Stray quotes do not take the meaning from what is encoded beside them.
fn as_sent(raw: &[u8]) -> Cow<'_, str> {
    if all(raw, is_printable)
        && let Some(text) = percent_decode(raw)
    {
        return Cow::Owned(text);
    }
    match std::str::from_utf8(raw) {
        Ok(text) => Cow::Borrowed(text),
        // Each byte of Latin-1 is the character of its number.
        Err(_) => Cow::Owned(raw.iter().copied().map(char::from).collect()),
    }
}

fn unquote(raw: &[u8]) -> Option<Cow<'_, [u8]>> {
    let Some(quoted) = raw.strip_prefix(b"\"") else {
        return (!raw.contains(&b'"')).then_some(Cow::Borrowed(raw));
    };
    let mut text = Vec::with_capacity(quoted.len());
    let mut rest = quoted.iter();
    while let Some(byte) = rest.next() {
        match byte {
            b'"' => return rest.as_slice().is_empty().then_some(Cow::Owned(text)),
            b'\\' => text.extend(rest.next()),
            _ => text.push(*byte),
        }
    }
    None
}

/// The text, if every `%` encodes a byte and all of them are UTF-8.
fn percent_decode(raw: &[u8]) -> Option<String> {
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.iter();
    while let Some(byte) = rest.next() {
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let digit = |byte: Option<&u8>| char::from(*byte?).to_digit(16);
        let (high, low) = (digit(rest.next())?, digit(rest.next())?);
        bytes.push(u8::try_from(high * 16 + low).expect("two hexadecimal digits are one byte"));
    }
    String::from_utf8(bytes).ok()
}

/// The header for a text. It shares the bytes when nothing has to be encoded, which is the common case.
pub(super) fn encode(text: Bytes) -> HeaderValue {
    if all(&text, is_plain) {
        return shared(text);
    }
    let mut encoded = Vec::with_capacity(text.len() * 3);
    write_encoded(&text, &mut encoded);
    shared(Bytes::from(encoded))
}

/// The same, written where it is to be.
pub(super) fn write(text: &str, out: &mut Vec<u8>) {
    if all(text.as_bytes(), is_plain) {
        out.extend_from_slice(text.as_bytes());
    } else {
        write_encoded(text.as_bytes(), out);
    }
}

/// The header for a content type, which is ASCII with spaces and quotes of its own and travels as it is.
pub(super) fn content_type(text: Bytes) -> HeaderValue {
    if all(&text, is_printable) {
        shared(text)
    } else {
        encode(text)
    }
}

/// The same, written where it is to be.
pub(super) fn write_content_type(text: &str, out: &mut Vec<u8>) {
    if all(text.as_bytes(), is_printable) {
        out.extend_from_slice(text.as_bytes());
    } else {
        write_encoded(text.as_bytes(), out);
    }
}

/// Looks at every byte rather than stopping at the first: that is what the compiler can do sixteen at a time.
fn all(bytes: &[u8], is: impl Fn(u8) -> bool) -> bool {
    bytes.iter().fold(true, |all, byte| all & is(*byte))
}

fn is_plain(byte: u8) -> bool {
    matches!(byte, b'!'..=b'~') && byte != b'"' && byte != b'%'
}

fn is_printable(byte: u8) -> bool {
    matches!(byte, b' '..=b'~')
}

fn write_encoded(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        if is_plain(*byte) {
            out.push(*byte);
        } else {
            let digit = |digit: u8| HEX[usize::from(digit)];
            out.extend([b'%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
}

fn shared(text: Bytes) -> HeaderValue {
    HeaderValue::from_maybe_shared(text).expect("printable ASCII may be in a header")
}
