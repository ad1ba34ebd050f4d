//! How an event travels over HTTP, in binary, structured and batched mode.
//!
//! The mode is read off the content type. In binary mode the attributes are headers and the body is the data
//! ([`write_binary`] is the other way); in structured mode the body is one JSON document, and headers say nothing; in
//! batched mode it is an array of such documents, of which all are taken or none. Reading is strict: what two receivers
//! could understand differently is refused, with the reason, rather than guessed at. The one exception is how the values
//! of headers are encoded, which most senders do not do as the binding asks ([`read_counting`]).
//!
//! How large a body may be before it is here, who may send one, and what an answer looks like is left to the doors.

mod binary;
mod header;
mod refused;
#[cfg(test)]
mod tests;

use ::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use ::http::{HeaderMap, HeaderValue};
use bytes::Bytes;

pub use self::binary::{write_binary, write_binary_head};
pub(super) use self::refused::shown;
pub use self::refused::{Refused, code};
use super::rules::{self, media};
use super::{ATTRIBUTES_MAX, Builder, Event, json};
use heddle_api::attributes::Value;

/// The content type of one event as a JSON document, in the very letters that the JavaScript SDK compares it with.
pub const STRUCTURED: &str = "application/cloudevents+json; charset=utf-8";

/// What is taken at once. Every bound exists so that no sender can make others wait or memory run out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Attributes and data of one event, in the form in which it is kept. Intermediaries must take 64 KiB.
    pub event_bytes_max: usize,
    /// Events in one batch.
    pub batch_events_max: usize,
    /// The body of a batch, and of one JSON document, which base64 and escapes make longer than the event in it.
    pub batch_bytes_max: usize,
    /// Attributes of one event, `specversion` among them.
    pub attributes_max: usize,
    /// How deep the data in a JSON document may be nested. No more than 256 are read, whatever is said here.
    pub json_depth_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            event_bytes_max: 1024 * 1024,
            batch_events_max: 1000,
            batch_bytes_max: 8 * 1024 * 1024,
            attributes_max: ATTRIBUTES_MAX,
            json_depth_max: 64,
        }
    }
}

impl Limits {
    /// How long a body may be in this mode; more need not be read.
    #[must_use]
    pub fn body_bytes_max(&self, mode: Mode) -> usize {
        match mode {
            Mode::Binary => self.event_bytes_max,
            Mode::Structured | Mode::Batched => self.batch_bytes_max.max(self.event_bytes_max),
        }
    }

    pub(crate) fn check_event(&self, bytes: usize) -> Result<(), Refused> {
        if bytes <= self.event_bytes_max {
            return Ok(());
        }
        Err(Refused::too_large(
            code::EVENT_TOO_LARGE,
            format!(
                "the event has more than {} bytes; keep the data elsewhere and send where it is in dataref",
                self.event_bytes_max
            ),
        ))
    }

    pub(crate) fn check_attributes(&self, count: usize) -> Result<(), Refused> {
        if count <= self.attributes_max {
            return Ok(());
        }
        Err(Refused::too_large(
            code::ATTRIBUTES_TOO_MANY,
            format!(
                "the event has more than {} attributes; put what filters do not need into the data",
                self.attributes_max
            ),
        ))
    }
}

/// The form of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Attributes as headers, data as the body.
    Binary,
    /// One JSON document.
    Structured,
    /// An array of JSON documents.
    Batched,
}

/// What came in one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    One(Event),
    /// May be empty.
    Batch(Vec<Event>),
}

impl Received {
    #[must_use]
    pub fn as_slice(&self) -> &[Event] {
        match self {
            Self::One(event) => std::slice::from_ref(event),
            Self::Batch(events) => events,
        }
    }
}

impl IntoIterator for Received {
    type Item = Event;
    type IntoIter = std::iter::Chain<std::option::IntoIter<Event>, std::vec::IntoIter<Event>>;

    fn into_iter(self) -> Self::IntoIter {
        let (one, batch) = match self {
            Self::One(event) => (Some(event), Vec::new()),
            Self::Batch(events) => (None, events),
        };
        one.into_iter().chain(batch)
    }
}

/// The mode of a message with these headers. A message that says nothing of CloudEvents in its content type is binary.
pub fn mode(headers: &HeaderMap) -> Result<Mode, Refused> {
    let mut content_types = headers.get_all(CONTENT_TYPE).iter();
    let Some(content_type) = content_types.next() else {
        return Ok(Mode::Binary);
    };
    if content_types.next().is_some() {
        return Err(binary::duplicate(&CONTENT_TYPE));
    }
    // The longer one first, for the shorter is a part of it.
    let content_type = header::trim(content_type.as_bytes());
    let (mode, format) = if let Some(format) = after(content_type, b"application/cloudevents-batch")
    {
        (Mode::Batched, format)
    } else if let Some(format) = after(content_type, b"application/cloudevents") {
        (Mode::Structured, format)
    } else {
        return Ok(Mode::Binary);
    };
    check_format(format)?;
    Ok(mode)
}

fn after<'a>(text: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// Whether what follows the media type asks for JSON in UTF-8. No format at all means JSON.
fn check_format(rest: &[u8]) -> Result<(), Refused> {
    let rest = String::from_utf8_lossy(rest);
    let format = media::without_parameters(&rest);
    if !format.is_empty() && !format.eq_ignore_ascii_case("+json") {
        return Err(Refused::unsupported(
            code::FORMAT_UNSUPPORTED,
            format!(
                "the event format {} is not read here; send application/cloudevents+json, \
                 application/cloudevents-batch+json, or binary mode",
                shown(format)
            ),
        ));
    }
    match media::charset(&rest) {
        Some(charset) if !media::is_utf8(charset) => Err(Refused::unsupported(
            code::CHARSET_UNSUPPORTED,
            format!(
                "the charset {} is not read here; send UTF-8",
                shown(charset)
            ),
        )),
        _ => Ok(()),
    }
}

/// The events of a request.
pub fn read(headers: &HeaderMap, body: &Bytes, limits: &Limits) -> Result<Received, Refused> {
    read_counting(headers, body, limits).map(|(received, _)| received)
}

/// The events of a request, and how many attributes came in headers that were not encoded as the binding asks.
pub fn read_counting(
    headers: &HeaderMap,
    body: &Bytes,
    limits: &Limits,
) -> Result<(Received, u64), Refused> {
    check_encoding(headers)?;
    let received = match mode(headers)? {
        Mode::Binary => {
            let (event, unencoded) = binary::read(headers, body, limits)?;
            return Ok((Received::One(event), unencoded));
        }
        Mode::Structured => Received::One(json::read_one(body, limits)?),
        Mode::Batched => Received::Batch(json::read_batch(body, limits)?),
    };
    Ok((received, 0))
}

/// The event a subscriber answered with; `None` when the answer is no event and does not claim to be one.
///
/// Nobody asked for a batch, so a batch is refused.
pub fn reply(headers: &HeaderMap, body: &Bytes, limits: &Limits) -> Result<Option<Event>, Refused> {
    let claims = |content_type: &HeaderValue| {
        after(
            header::trim(content_type.as_bytes()),
            b"application/cloudevents",
        )
        .is_some()
    };
    if !headers.contains_key(&binary::CE_SPECVERSION)
        && !headers.get_all(CONTENT_TYPE).iter().any(claims)
    {
        return Ok(None);
    }
    check_encoding(headers)?;
    match mode(headers)? {
        Mode::Binary => binary::read(headers, body, limits).map(|(event, _)| Some(event)),
        Mode::Structured => json::read_one(body, limits).map(Some),
        Mode::Batched => Err(Refused::unsupported(
            code::BATCH_UNEXPECTED,
            "a batch was answered and not asked for; answer with one event",
        )),
    }
}

/// Adds an attribute as a header has it; gives 1 if it was not encoded as the binding asks.
pub(crate) fn push_header(
    builder: &mut Builder,
    name: &str,
    value: &HeaderValue,
) -> Result<u64, Refused> {
    rules::name(name)?;
    binary::push(builder, name, value)
}

/// Adds an attribute, if it may be called that and have this value.
pub(crate) fn push_text(builder: &mut Builder, name: &str, text: &str) -> Result<(), Refused> {
    rules::name(name)?;
    builder.push(name, rules::value(name, Value::Text(text))?);
    Ok(())
}

/// A body that was compressed could be a thousand times larger than it looks.
fn check_encoding(headers: &HeaderMap) -> Result<(), Refused> {
    let encoding = headers
        .get_all(CONTENT_ENCODING)
        .iter()
        .map(|encoding| header::trim(encoding.as_bytes()))
        .find(|encoding| !encoding.is_empty() && !encoding.eq_ignore_ascii_case(b"identity"));
    encoding.map_or(Ok(()), |encoding| {
        Err(Refused::unsupported(
            code::ENCODING_UNSUPPORTED,
            format!(
                "the content encoding {} is not read here; send the body as it is",
                shown(&String::from_utf8_lossy(encoding))
            ),
        ))
    })
}

/// Puts the content type of one JSON document into `headers` and gives that document.
pub fn write_structured(event: &Event, headers: &mut HeaderMap) -> Bytes {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(STRUCTURED));
    document(event)
}

/// The same for the head of an HTTP/1 message, as it is written to a socket.
pub fn write_structured_head(event: &Event, head: &mut Vec<u8>) -> Bytes {
    for part in ["content-type: ", STRUCTURED, "\r\n"] {
        head.extend_from_slice(part.as_bytes());
    }
    document(event)
}

fn document(event: &Event) -> Bytes {
    // Quotes, colons and commas around the attributes, which stand in for the heads they are kept with.
    let mut out = Vec::with_capacity(event.bytes().len() * 5 / 4 + 64);
    json::write(event, &mut out);
    Bytes::from(out)
}
