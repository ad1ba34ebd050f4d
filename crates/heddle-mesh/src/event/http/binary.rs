//! Binary mode: attributes as `ce-` headers, `datacontenttype` as `Content-Type`, data as the body.
//!
//! Reading makes one buffer of the right size and puts everything into it once; writing makes none, for header values
//! and body are slices of the event.

use ::http::header::{CONTENT_TYPE, HeaderName};
use ::http::{HeaderMap, HeaderValue};
use bytes::Bytes;
use heddle_api::attributes::{Attributes as _, Value};

use super::refused::{code, shown};
use super::{Limits, Refused, header};
use crate::event::{Builder, Event, Form, NAME_BYTES_MAX, SPECVERSION, rules};

const PREFIX: &str = "ce-";

pub(super) static CE_SPECVERSION: HeaderName = HeaderName::from_static("ce-specversion");
static CE_TYPE: HeaderName = HeaderName::from_static("ce-type");
static CE_SOURCE: HeaderName = HeaderName::from_static("ce-source");
static CE_ID: HeaderName = HeaderName::from_static("ce-id");
static CE_TIME: HeaderName = HeaderName::from_static("ce-time");
static CE_SUBJECT: HeaderName = HeaderName::from_static("ce-subject");
static CE_DATASCHEMA: HeaderName = HeaderName::from_static("ce-dataschema");
static CE_PARTITIONKEY: HeaderName = HeaderName::from_static("ce-partitionkey");
static CE_TRACEPARENT: HeaderName = HeaderName::from_static("ce-traceparent");
static CE_KNATIVEBROKERTTL: HeaderName = HeaderName::from_static("ce-knativebrokerttl");

/// The content type of JSON, for data that was JSON without saying so.
static JSON: HeaderValue = HeaderValue::from_static("application/json");
static VERSION: HeaderValue = HeaderValue::from_static(SPECVERSION);

/// The event, and how many of its attributes were not encoded as they should be.
pub(super) fn read(
    headers: &HeaderMap,
    body: &Bytes,
    limits: &Limits,
) -> Result<(Event, u64), Refused> {
    limits.check_event(body.len())?;
    let version = headers.get(&CE_SPECVERSION).ok_or_else(no_specversion)?;
    rules::specversion(&header::decode(version.as_bytes()).text)?;

    let bytes = measure(headers, limits)? + body.len();
    let mut builder = Builder::with_capacity(Form::Binary, bytes);
    let mut unencoded = 0;
    for (name, header) in [("type", &CE_TYPE), ("source", &CE_SOURCE), ("id", &CE_ID)] {
        let value = headers.get(header).ok_or_else(|| rules::missing(name))?;
        unencoded += push(&mut builder, name, value)?;
    }
    if let Some(value) = headers.get(CONTENT_TYPE) {
        push_content_type(&mut builder, value)?;
    }
    for (header, value) in headers {
        match header.as_str().strip_prefix(PREFIX) {
            None | Some("specversion" | "type" | "source" | "id") => {}
            Some(name) => unencoded += push(&mut builder, name, value)?,
        }
    }
    limits.check_event(builder.bytes_with(body.len()))?;
    let event = builder.build((!body.is_empty()).then_some(body));
    Ok((event, unencoded))
}

/// How many bytes the attributes take, at most if they are encoded as they should be. Refuses names that are none, names that come twice, and too many.
fn measure(headers: &HeaderMap, limits: &Limits) -> Result<usize, Refused> {
    let mut count = 0;
    let mut bytes = 0;
    let mut previous = None;
    for (header, value) in headers {
        let attribute = header.as_str().strip_prefix(PREFIX);
        if attribute.is_none() && header != CONTENT_TYPE {
            continue;
        }
        // The values of one header follow each other.
        if previous.replace(header) == Some(header) {
            return Err(duplicate(header));
        }
        let name = attribute.unwrap_or("datacontenttype");
        if attribute == Some("datacontenttype") {
            return Err(Refused::invalid(
                code::ATTRIBUTE_NAME,
                "the header ce-datacontenttype must not be sent; in binary mode the Content-Type header carries it",
            )
            .about(name));
        }
        rules::name(name)?;
        count += 1;
        bytes += Builder::ATTRIBUTE_HEAD_BYTES + name.len() + value.len();
    }
    limits.check_attributes(count)?;
    Ok(bytes)
}

/// Gives 1 for an attribute that was not encoded as it should be.
pub(super) fn push(builder: &mut Builder, name: &str, value: &HeaderValue) -> Result<u64, Refused> {
    let header::Decoded { text, encoded } = header::decode(value.as_bytes());
    builder.push(name, rules::value(name, Value::Text(&text))?);
    Ok(u64::from(!encoded))
}

/// A content type is never percent-encoded, and quotes in it are its own.
fn push_content_type(builder: &mut Builder, value: &HeaderValue) -> Result<(), Refused> {
    let raw = header::trim(value.as_bytes());
    let text = std::str::from_utf8(raw).map_err(|_| {
        Refused::invalid(
            code::ATTRIBUTE_ENCODING,
            "the Content-Type header is not ASCII",
        )
        .about("datacontenttype")
    })?;
    builder.push(
        "datacontenttype",
        rules::value("datacontenttype", Value::Text(text))?,
    );
    Ok(())
}

fn no_specversion() -> Refused {
    Refused::invalid(
        code::ATTRIBUTE_MISSING,
        "this is no CloudEvent: send the headers ce-specversion: 1.0, ce-type, ce-source and ce-id with the data as \
         the body, or one JSON document with Content-Type: application/cloudevents+json",
    )
    .about("specversion")
}

pub(super) fn duplicate(header: &HeaderName) -> Refused {
    let name = header.as_str();
    let attribute = name.strip_prefix(PREFIX).unwrap_or("datacontenttype");
    Refused::invalid(
        code::ATTRIBUTE_DUPLICATE,
        format!("the header {} is there more than once", shown(name)),
    )
    .about(attribute)
}

/// Puts the event's attributes into `headers` and gives the body. Nothing is copied unless it has to be encoded.
///
/// Data that came in a JSON document without a content type is JSON; outside of that document this has to be said.
pub fn write_binary(event: &Event, headers: &mut HeaderMap) -> Bytes {
    headers.insert(CE_SPECVERSION.clone(), VERSION.clone());
    for (name, text) in event.texts() {
        if name == "datacontenttype" {
            headers.insert(CONTENT_TYPE, header::content_type(text));
        } else if let Some(header) = header_of(name) {
            headers.insert(header, header::encode(text));
        }
    }
    if is_tacit_json(event) {
        headers.insert(CONTENT_TYPE, JSON.clone());
    }
    event.data().unwrap_or_default()
}

/// The same for the head of an HTTP/1 message, as it is written to a socket.
pub fn write_binary_head(event: &Event, head: &mut Vec<u8>) -> Bytes {
    head.extend_from_slice(b"ce-specversion: 1.0\r\n");
    for (name, text) in event.pairs() {
        if name == "datacontenttype" {
            head.extend_from_slice(b"content-type: ");
            header::write_content_type(text, head);
        } else {
            for part in [PREFIX, name, ": "] {
                head.extend_from_slice(part.as_bytes());
            }
            header::write(text, head);
        }
        head.extend_from_slice(b"\r\n");
    }
    if is_tacit_json(event) {
        head.extend_from_slice(b"content-type: application/json\r\n");
    }
    event.data().unwrap_or_default()
}

/// Whether the data is JSON without saying so.
fn is_tacit_json(event: &Event) -> bool {
    event.form() == Form::Structured
        && !event.is_opaque()
        && event.data().is_some()
        && event.text("datacontenttype").is_none()
}

/// The header of an attribute; `None` for what is no name, which no event that was read has.
fn header_of(name: &str) -> Option<HeaderName> {
    let known = match name {
        "type" => &CE_TYPE,
        "source" => &CE_SOURCE,
        "id" => &CE_ID,
        "time" => &CE_TIME,
        "subject" => &CE_SUBJECT,
        "dataschema" => &CE_DATASCHEMA,
        "partitionkey" => &CE_PARTITIONKEY,
        "traceparent" => &CE_TRACEPARENT,
        "knativebrokerttl" => &CE_KNATIVEBROKERTTL,
        _ => {
            let mut header = [0; PREFIX.len() + NAME_BYTES_MAX];
            header[..PREFIX.len()].copy_from_slice(PREFIX.as_bytes());
            let end = PREFIX.len() + name.len();
            header[PREFIX.len()..end].copy_from_slice(name.as_bytes());
            return HeaderName::from_bytes(&header[..end]).ok();
        }
    };
    Some(known.clone())
}
