//! The value of an attribute as the value of an HTTP header, and back.
//!
//! Outwards everything but printable ASCII is percent-encoded, and so are space, `"` and `%`. Inwards a value in double
//! quotes is unquoted first, then one round of percent-decoding is done. Where receivers could read a value in more
//! than one way (bytes beyond ASCII, quotes in the midst, a `%` that encodes nothing) it is refused, with the way to
//! write it: whoever matches, keeps or delivers the event must see what the sender meant.

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

/// The text that a header stands for, borrowed when nothing is encoded in it; otherwise what is wrong with it.
pub(super) fn decode(raw: &[u8]) -> Result<Cow<'_, str>, &'static str> {
    let raw = trim(raw);
    if all(raw, |byte| is_plain(byte) || byte == b' ') {
        return Ok(Cow::Borrowed(
            std::str::from_utf8(raw).expect("printable ASCII is text"),
        ));
    }
    if !all(raw, is_printable) {
        return Err(
            "has bytes outside printable ASCII; write each as % and two hexadecimal digits of its UTF-8 form",
        );
    }
    let bytes = percent_decode(&unquote(raw)?)?;
    String::from_utf8(bytes)
        .map(Cow::Owned)
        .map_err(|_| "is not UTF-8 after percent-decoding")
}

fn unquote(raw: &[u8]) -> Result<Cow<'_, [u8]>, &'static str> {
    let Some(quoted) = raw.strip_prefix(b"\"") else {
        return if raw.contains(&b'"') {
            Err("has a double quote that quotes nothing; write it as %22")
        } else {
            Ok(Cow::Borrowed(raw))
        };
    };
    let mut text = Vec::with_capacity(quoted.len());
    let mut rest = quoted.iter();
    while let Some(byte) = rest.next() {
        match byte {
            b'"' if rest.as_slice().is_empty() => return Ok(Cow::Owned(text)),
            b'"' => break,
            b'\\' => text.extend(rest.next()),
            _ => text.push(*byte),
        }
    }
    Err(
        "begins with a double quote and does not end with the one that belongs to it; write it as %22",
    )
}

fn percent_decode(raw: &[u8]) -> Result<Vec<u8>, &'static str> {
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.iter();
    while let Some(byte) = rest.next() {
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let digit = |byte: Option<&u8>| char::from(*byte?).to_digit(16);
        let (Some(high), Some(low)) = (digit(rest.next()), digit(rest.next())) else {
            return Err("has a % without two hexadecimal digits behind it; write it as %25");
        };
        bytes.push(u8::try_from(high * 16 + low).expect("two hexadecimal digits are one byte"));
    }
    Ok(bytes)
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
