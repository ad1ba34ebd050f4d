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
    // Looks at every byte rather than stopping at the first: that is what the compiler can do sixteen at a time.
    let odd = raw.iter().fold(false, |odd, byte| {
        odd | !matches!(byte, b' '..=b'~') | (*byte == b'%') | (*byte == b'"')
    });
    if !odd {
        return Ok(Cow::Borrowed(
            std::str::from_utf8(raw).expect("printable ASCII is text"),
        ));
    }
    if raw.iter().any(|byte| !matches!(byte, b' '..=b'~')) {
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
    let plain = |byte: u8| matches!(byte, b'!'..=b'~') && byte != b'"' && byte != b'%';
    if text.iter().fold(true, |all, byte| all & plain(*byte)) {
        return shared(text);
    }
    let mut encoded = Vec::with_capacity(text.len() * 3);
    for byte in text {
        if plain(byte) {
            encoded.push(byte);
        } else {
            encoded.extend([
                b'%',
                HEX[usize::from(byte >> 4)],
                HEX[usize::from(byte & 15)],
            ]);
        }
    }
    shared(Bytes::from(encoded))
}

/// The header for a content type, which is ASCII with spaces and quotes of its own and travels as it is.
pub(super) fn content_type(text: Bytes) -> HeaderValue {
    if text
        .iter()
        .fold(true, |all, byte| all & matches!(byte, b' '..=b'~'))
    {
        shared(text)
    } else {
        encode(text)
    }
}

fn shared(text: Bytes) -> HeaderValue {
    HeaderValue::from_maybe_shared(text).expect("printable ASCII may be in a header")
}
