//! What the attributes of an event may be called and what they may hold, whatever form they came in.
//!
//! The rules are those of CloudEvents 1.0 and of the extensions it documents. An attribute whose type is known has that
//! type from here on, also when it came as text in a header: both forms of one event are one event. Other extensions
//! hold whatever was sent.

pub(super) mod media;
#[cfg(test)]
mod tests;
mod time;
mod uri;

use heddle_api::attributes::Value;

use super::http::{Refused, code, shown};
use super::{ATTRIBUTE_BYTES_MAX, NAME_BYTES_MAX, SPECVERSION};

/// What an attribute must hold.
enum Rule {
    /// Text that is not empty.
    Text,
    /// A URI, or a reference to one.
    Reference,
    /// A URI with a scheme.
    Uri,
    Time,
    MediaType,
    /// An integer, at least this.
    Integer(i32),
    /// Nothing but `true`.
    True,
    /// Anything that an attribute can hold.
    Free,
}

fn rule_of(name: &str) -> Rule {
    match name {
        "id" | "type" | "subject" => Rule::Text,
        "source" | "dataref" => Rule::Reference,
        "time" | "expirytime" | "recordedtime" | "deprecationfrom" | "deprecationsunset" => {
            Rule::Time
        }
        "datacontenttype" => Rule::MediaType,
        "dataschema" | "deprecationmigration" => Rule::Uri,
        "partitionkey" | "sequence" | "correlationid" | "causationid" | "traceparent"
        | "severitytext" => Rule::Text,
        "sampledrate" => Rule::Integer(1),
        "severitynumber" => Rule::Integer(0),
        "deprecated" => Rule::True,
        _ => Rule::Free,
    }
}

/// Refuses what cannot be the name of an attribute.
pub(super) fn name(name: &str) -> Result<(), Refused> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let named = !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.bytes().all(plain);
    if named && name != "data" {
        return Ok(());
    }
    Err(Refused::invalid(
        code::ATTRIBUTE_NAME,
        format!(
            "no attribute can be named \"{}\"; names are lower-case letters and digits, and not data",
            shown(name)
        ),
    )
    .about(name))
}

/// Refuses a version that is not spoken here.
pub(super) fn specversion(version: &str) -> Result<(), Refused> {
    if version == SPECVERSION {
        return Ok(());
    }
    Err(Refused::invalid(
        code::SPECVERSION_UNSUPPORTED,
        format!(
            "specversion \"{}\" is not spoken here; send {SPECVERSION}",
            shown(version)
        ),
    )
    .about("specversion"))
}

pub(super) fn missing(name: &str) -> Refused {
    Refused::invalid(
        code::ATTRIBUTE_MISSING,
        format!("the attribute {name} is missing; id, source, specversion and type are required"),
    )
    .about(name)
}

/// The value as it is kept: checked, and of the type that its attribute has.
pub(super) fn value<'a>(name: &str, value: Value<'a>) -> Result<Value<'a>, Refused> {
    if let Value::Text(text) = value {
        check_text(name, text)?;
    }
    let (rule, text) = match (rule_of(name), value) {
        (Rule::Free, value) => return Ok(value),
        (Rule::Integer(min), value) => return integer(name, value, min),
        (Rule::True, Value::Boolean(true) | Value::Text("true")) => {
            return Ok(Value::Boolean(true));
        }
        (Rule::True, _) => return Err(invalid(name, "true or not there at all")),
        (rule, Value::Text(text)) => (rule, text),
        (_, Value::Integer(_) | Value::Boolean(_)) => return Err(mistyped(name, "a string")),
    };
    let (good, expected) = match rule {
        Rule::Reference => (
            !text.is_empty() && uri::is_reference(text),
            "a URI or a relative reference, with other characters percent-encoded, and not empty",
        ),
        Rule::Uri => (
            uri::is_absolute(text),
            "a URI with a scheme, such as https://example.com/schema",
        ),
        Rule::Time => (
            time::is_rfc3339(text),
            "a time as RFC 3339 writes it, such as 2026-01-31T12:00:00Z",
        ),
        Rule::MediaType => (
            media::is_media_type(text),
            "a media type such as application/json",
        ),
        Rule::Text | Rule::Integer(_) | Rule::True | Rule::Free => (!text.is_empty(), "not empty"),
    };
    if good {
        Ok(value)
    } else {
        Err(invalid(name, expected))
    }
}

/// Whether this is a time as RFC 3339 writes it.
pub(super) fn is_time(text: &str) -> bool {
    time::is_rfc3339(text)
}

fn integer<'a>(name: &str, value: Value<'a>, min: i32) -> Result<Value<'a>, Refused> {
    let number = match value {
        Value::Integer(number) => Some(number),
        Value::Text(text) => parse_integer(text),
        Value::Boolean(_) => None,
    };
    match number {
        None => Err(mistyped(name, "an integer of 32 bits")),
        Some(number) if number < min => Err(invalid(name, &format!("{min} or more"))),
        Some(number) => Ok(Value::Integer(number)),
    }
}

/// A number as JSON writes an integer, within 32 bits: no sign but minus, no leading zeros.
pub(super) fn parse_integer(text: &str) -> Option<i32> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let canonical = digits.bytes().all(|byte| byte.is_ascii_digit())
        && (digits.len() == 1 || !digits.starts_with('0'));
    if canonical { text.parse().ok() } else { None }
}

/// Length and characters. The common case, printable ASCII, is settled without looking at characters.
fn check_text(name: &str, text: &str) -> Result<(), Refused> {
    if text.len() > ATTRIBUTE_BYTES_MAX {
        return Err(Refused::too_large(
            code::ATTRIBUTE_TOO_LONG,
            format!(
                "the attribute {} has more than {ATTRIBUTE_BYTES_MAX} bytes; put long values into the data",
                shown(name)
            ),
        )
        .about(name));
    }
    let plain = text
        .bytes()
        .fold(true, |plain, byte| plain & matches!(byte, b' '..=b'~'));
    match text.chars().find(|char| !plain && is_forbidden(*char)) {
        None => Ok(()),
        Some(char) => Err(invalid(
            name,
            &format!(
                "free of U+{:04X}, as of all control characters and noncharacters",
                u32::from(char)
            ),
        )),
    }
}

fn is_forbidden(char: char) -> bool {
    let point = u32::from(char);
    char.is_control() || (0xfdd0..=0xfdef).contains(&point) || point & 0xfffe == 0xfffe
}

fn invalid(name: &str, expected: &str) -> Refused {
    Refused::invalid(
        code::ATTRIBUTE_INVALID,
        format!("the attribute {name} must be {expected}"),
    )
    .about(name)
}

pub(super) fn mistyped(name: &str, expected: &str) -> Refused {
    Refused::invalid(
        code::ATTRIBUTE_TYPE,
        format!("the attribute {name} must be {expected}"),
    )
    .about(name)
}
