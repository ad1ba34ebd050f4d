//! The JSON format of CloudEvents, read strictly and without copying.
//!
//! A document is gone over once. What is found is kept as positions in it, so that JSON data is kept byte for byte as
//! it was sent: numbers are not rounded, members stay in their order and stay two when they were two. At the top, where
//! members are attributes, a name that comes twice is refused, for some would take the first and others the last.
//!
//! A batch is taken as a whole or refused as a whole, with the place of the event at fault.

pub(crate) mod object;
mod scan;
#[cfg(test)]
mod tests;
mod write;

use std::borrow::Cow;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use bytes::Bytes;
use heddle_api::attributes::Value;

use self::scan::{Fault, Found, Kind, Scanner};
pub use self::write::write;
use super::http::{Limits, Mode, Refused, code, shown};
use super::rules::{self, media};
use super::{Builder, Event, Form};

/// The members that are no attributes: the data, in one form or the other.
const DATA: [&str; 2] = ["data", "data_base64"];
/// Up to so many names are compared each with each; more are sorted first.
const FEW_NAMES: usize = 16;

/// The event in a document.
pub fn read_one(text: &Bytes, limits: &Limits) -> Result<Event, Refused> {
    let mut scanner = Scanner::new(
        utf8(text, limits, code::EVENT_TOO_LARGE)?,
        limits.json_depth_max,
    );
    let event = read_event(&mut scanner, &mut Vec::new(), limits)?;
    scanner.end().map_err(refuse)?;
    Ok(event)
}

/// The events in an array of documents, which may be empty.
pub fn read_batch(text: &Bytes, limits: &Limits) -> Result<Vec<Event>, Refused> {
    let mut scanner = Scanner::new(
        utf8(text, limits, code::BATCH_TOO_LARGE)?,
        limits.json_depth_max,
    );
    let mut events = Vec::new();
    let mut members = Vec::new();
    scanner.expect(b'[', "an array of events").map_err(refuse)?;
    if !scanner.eat(b']') {
        loop {
            let index = events.len();
            if index == limits.batch_events_max {
                return Err(Refused::too_large(
                    code::BATCH_TOO_LARGE,
                    format!("the batch has more than {index} events; send several batches"),
                ));
            }
            let event = read_event(&mut scanner, &mut members, limits);
            events.push(event.map_err(|refused| refused.at(index))?);
            if scanner.eat(b']') {
                break;
            }
            scanner
                .expect(b',', "a comma or the end of the array")
                .map_err(refuse)?;
        }
    }
    scanner.end().map_err(refuse)?;
    Ok(events)
}

fn utf8<'a>(
    text: &'a Bytes,
    limits: &Limits,
    code_if_longer: &'static str,
) -> Result<&'a str, Refused> {
    let bytes_max = limits.body_bytes_max(Mode::Batched);
    if text.len() > bytes_max {
        return Err(Refused::too_large(
            code_if_longer,
            format!("the body has more than {bytes_max} bytes; send several, or smaller ones"),
        ));
    }
    std::str::from_utf8(text).map_err(|error| {
        Refused::invalid(
            code::JSON_INVALID,
            format!(
                "the body is not UTF-8 at byte {}; send JSON in UTF-8",
                error.valid_up_to()
            ),
        )
    })
}

fn refuse(fault: Fault) -> Refused {
    match fault {
        Fault::Unexpected { at, expected } => Refused::invalid(
            code::JSON_INVALID,
            format!("the body is not the JSON of an event: expected {expected} at byte {at}"),
        ),
        Fault::TooDeep { at } => Refused::invalid(
            code::JSON_TOO_DEEP,
            format!("the JSON is nested too deep at byte {at}; send the data as data_base64"),
        ),
    }
}

/// A member of the document. Names are borrowed unless they were escaped.
struct JsonMember<'a> {
    name: Cow<'a, str>,
    value: Found,
}

/// Reads the object that comes next. `members` is room that a batch uses again for each of its events.
fn read_event<'a>(
    scanner: &mut Scanner<'a>,
    members: &mut Vec<JsonMember<'a>>,
    limits: &Limits,
) -> Result<Event, Refused> {
    read_members(scanner, members, limits)?;
    refuse_duplicates(members)?;
    let find = |name: &str| members.iter().find(|member| member.name == name);
    let version = find("specversion").ok_or_else(|| rules::missing("specversion"))?;
    match version.value.kind {
        Kind::Text { .. } => rules::specversion(&scanner.text(&version.value))?,
        Kind::Null => return Err(rules::missing("specversion")),
        _ => return Err(rules::mistyped("specversion", "the string \"1.0\"")),
    }
    let bytes = members
        .iter()
        .map(|member| Builder::ATTRIBUTE_HEAD_BYTES + member.name.len() + member.value.range.len());
    let mut builder = Builder::with_capacity(Form::Structured, bytes.sum());
    for name in ["type", "source", "id"] {
        let member = find(name).ok_or_else(|| rules::missing(name))?;
        if !push(&mut builder, scanner, member)? {
            return Err(rules::missing(name));
        }
    }
    for member in members.iter() {
        match &*member.name {
            "specversion" | "type" | "source" | "id" | "data" | "data_base64" => {}
            _ => {
                push(&mut builder, scanner, member)?;
            }
        }
    }
    let data = read_data(scanner, &mut builder, members)?;
    let data = data.as_deref();
    limits.check_event(builder.bytes_with(data.map_or(0, <[u8]>::len)))?;
    Ok(builder.build(data))
}

fn read_members<'a>(
    scanner: &mut Scanner<'a>,
    members: &mut Vec<JsonMember<'a>>,
    limits: &Limits,
) -> Result<(), Refused> {
    members.clear();
    scanner
        .expect(b'{', "an object, which an event is")
        .map_err(refuse)?;
    if scanner.eat(b'}') {
        return Ok(());
    }
    let mut attributes = 0;
    loop {
        let name = scanner.name().map_err(refuse)?;
        let name = scanner.text(&name);
        if !DATA.contains(&&*name) {
            rules::name(&name)?;
            attributes += 1;
        }
        let value = scanner.value().map_err(refuse)?;
        members.push(JsonMember { name, value });
        // Both, so that data given a million times is not collected either.
        limits.check_attributes(attributes.max(members.len().saturating_sub(DATA.len())))?;
        if scanner.eat(b'}') {
            return Ok(());
        }
        scanner
            .expect(b',', "a comma or the end of the object")
            .map_err(refuse)?;
    }
}

fn refuse_duplicates(members: &[JsonMember<'_>]) -> Result<(), Refused> {
    let twice = if members.len() <= FEW_NAMES {
        let mut rest = members.iter();
        std::iter::from_fn(|| rest.next().map(|member| (member, rest.as_slice())))
            .find(|(member, later)| later.iter().any(|other| other.name == member.name))
            .map(|(member, _)| &*member.name)
    } else {
        let mut names: Vec<&str> = members.iter().map(|member| &*member.name).collect();
        names.sort_unstable();
        let twice = names.windows(2).find(|pair| pair[0] == pair[1]);
        twice.map(|pair| pair[0])
    };
    twice.map_or(Ok(()), |name| {
        Err(Refused::invalid(
            code::ATTRIBUTE_DUPLICATE,
            format!("the member {} is there more than once", shown(name)),
        )
        .about(name))
    })
}

/// Adds an attribute, and tells whether it is there: one that is `null` is not.
fn push(
    builder: &mut Builder,
    scanner: &Scanner<'_>,
    member: &JsonMember<'_>,
) -> Result<bool, Refused> {
    let name = &*member.name;
    let text;
    let value = match member.value.kind {
        Kind::Null => return Ok(false),
        Kind::Boolean(flag) => Value::Boolean(flag),
        Kind::Integer => rules::parse_integer(scanner.raw(&member.value))
            .map(Value::Integer)
            .ok_or_else(|| rules::mistyped(name, "an integer of 32 bits, or a string"))?,
        Kind::Text { .. } => {
            text = scanner.text(&member.value);
            Value::Text(&text)
        }
        Kind::Fraction | Kind::Array | Kind::Object => {
            return Err(rules::mistyped(name, "a string, an integer or a boolean"));
        }
    };
    builder.push(name, rules::value(name, value)?);
    Ok(true)
}

/// The data: JSON as it stands, other text without its quotes and escapes, bytes without their base64.
fn read_data<'a>(
    scanner: &Scanner<'a>,
    builder: &mut Builder,
    members: &[JsonMember<'a>],
) -> Result<Option<Cow<'a, [u8]>>, Refused> {
    let find = |name: &str| {
        let member = members.iter().find(|member| member.name == name);
        member.map(|member| &member.value)
    };
    let present = |found: &&Found| found.kind != Kind::Null;
    match (find("data"), find("data_base64").filter(present)) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(Refused::invalid(
            code::DATA_INVALID,
            "data and data_base64 are both there; send one of them",
        )),
        (Some(data), None) => {
            let content_type = find("datacontenttype").filter(present);
            if content_type.is_none_or(|found| media::is_json(&scanner.text(found))) {
                return Ok(Some(Cow::Borrowed(scanner.raw(data).as_bytes())));
            }
            match data.kind {
                Kind::Text { .. } => Ok(Some(into_bytes(scanner.text(data)))),
                _ => Err(Refused::invalid(
                    code::DATA_INVALID,
                    "data is JSON and datacontenttype says otherwise; send a string, data_base64, or another \
                     datacontenttype",
                )),
            }
        }
        (None, Some(encoded)) => {
            builder.opaque();
            decode_base64(scanner, encoded).map(|bytes| Some(Cow::Owned(bytes)))
        }
    }
}

fn into_bytes(text: Cow<'_, str>) -> Cow<'_, [u8]> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

fn decode_base64(scanner: &Scanner<'_>, encoded: &Found) -> Result<Vec<u8>, Refused> {
    let refused = || {
        Refused::invalid(
            code::DATA_INVALID,
            "data_base64 must be a string of base64, with its padding",
        )
    };
    match encoded.kind {
        Kind::Text { .. } => BASE64_STANDARD
            .decode(&*scanner.text(encoded))
            .map_err(|_| refused()),
        _ => Err(refused()),
    }
}
