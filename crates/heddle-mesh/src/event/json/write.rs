//! An event as a document of the JSON format.

use std::io::Write as _;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use bytes::Bytes;
use heddle_api::attributes::{Attributes as _, Value};

use super::scan;
use crate::event::rules::media;
use crate::event::{Event, SPECVERSION};

/// JSON data nested deeper than this is sent as bytes, for common readers would refuse the whole document.
const DEPTH_MAX: usize = 64;
const JSON_SPACE: [char; 4] = [' ', '\t', '\n', '\r'];

/// Appends the document of an event.
///
/// Data is written as JSON where it is JSON and may be taken for it, as a string where it is text, otherwise as base64.
/// Whoever reads the document has the same bytes in each case, but for white space around JSON, which is no part of it.
pub fn write(event: &Event, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"specversion\":\"");
    out.extend_from_slice(SPECVERSION.as_bytes());
    out.push(b'"');
    for (name, value) in event.attributes() {
        out.push(b',');
        write_string(name, out);
        out.push(b':');
        match value {
            Value::Text(text) => write_string(text, out),
            Value::Boolean(flag) => write_number(flag, out),
            Value::Integer(number) => write_number(number, out),
        }
    }
    if let Some(data) = event.data() {
        write_data(event, &data, out);
    }
    out.push(b'}');
}

fn write_data(event: &Event, data: &Bytes, out: &mut Vec<u8>) {
    let text = std::str::from_utf8(data).ok();
    let content_type = event.text("datacontenttype");
    let json = match content_type {
        Some(content_type) => media::is_json(content_type),
        None => !event.is_opaque(),
    };
    match (text, content_type) {
        (Some(text), _) if json && scan::is_value(text, DEPTH_MAX) => {
            out.extend_from_slice(b",\"data\":");
            out.extend_from_slice(text.trim_matches(JSON_SPACE).as_bytes());
        }
        (Some(text), Some(content_type)) if !json && is_unicode(content_type) => {
            out.extend_from_slice(b",\"data\":");
            write_string(text, out);
        }
        _ => {
            out.extend_from_slice(b",\"data_base64\":\"");
            let start = out.len();
            out.resize(start + data.len().div_ceil(3) * 4, 0);
            BASE64_STANDARD
                .encode_slice(data, &mut out[start..])
                .expect("there is room for four characters for each three bytes");
            out.push(b'"');
        }
    }
}

/// Whether a string of this type stands for its UTF-8 bytes. In another charset it would stand for others.
fn is_unicode(content_type: &str) -> bool {
    media::charset(content_type).is_none_or(media::is_utf8)
}

fn write_number(number: impl std::fmt::Display, out: &mut Vec<u8>) {
    write!(out, "{number}").expect("a vector takes what it is given");
}

fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text;
    let special = |char: char| matches!(char, '"' | '\\' | '\0'..='\x1f');
    while let Some(at) = rest.find(special) {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        match rest.as_bytes()[at] {
            byte @ (b'"' | b'\\') => out.extend([b'\\', byte]),
            control => {
                write!(out, "\\u{control:04x}").expect("a vector takes what it is given");
            }
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest.as_bytes());
    out.push(b'"');
}
