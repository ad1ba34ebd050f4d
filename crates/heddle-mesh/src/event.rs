//! One CloudEvent, in the form in which it is kept, matched and sent.
//!
//! An event is encoded once, when it is accepted, and from then on only looked at: the log keeps these bytes, a filter
//! reads attributes out of them, a delivery takes header values and body as slices of them. Clones share the bytes.
//!
//! ```text
//!   0  u8   layout            1  u8   flags (has data, came structured, opaque)
//!   2  u16  attributes        4  u32  where data begins
//!   8  attributes: kind u8, name length u8, value length u16, name, value; first type, source, id
//!   …  data, byte for byte
//! ```
//! `specversion` is always 1.0 and not kept. Numbers are little-endian. How events travel over HTTP is left to
//! [`http`] and [`json`].

#[doc(hidden)]
pub mod fuzzing;
pub mod http;
pub mod json;
mod rules;
#[cfg(test)]
mod tests;

use std::ops::Range;

use bytes::{BufMut as _, Bytes, BytesMut};
use heddle_api::attributes::{Attributes, Value};

/// The layout this program writes. It reads this one and none before it, for there is none.
const LAYOUT: u8 = 1;
const HEAD_BYTES: usize = 8;
const ATTRIBUTE_HEAD_BYTES: usize = 4;

const HAS_DATA: u8 = 1;
const CAME_STRUCTURED: u8 = 2;
const OPAQUE: u8 = 4;

const KIND_TEXT: u8 = 0;
const KIND_INTEGER: u8 = 1;
const KIND_BOOLEAN: u8 = 2;

/// The longest value of one attribute. A length fits into sixteen bits, and header limits of common servers are lower.
pub const ATTRIBUTE_BYTES_MAX: usize = 32 * 1024;
/// More attributes than any sensible event has.
pub const ATTRIBUTES_MAX: usize = 256;
/// The longest name of an attribute.
pub const NAME_BYTES_MAX: usize = 255;

/// The version of CloudEvents spoken here.
pub const SPECVERSION: &str = "1.0";

/// The form in which an event came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Attributes as headers, data as the body.
    Binary,
    /// One JSON document, alone or in a batch.
    Structured,
}

/// One CloudEvent. Cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub struct Event {
    bytes: Bytes,
    type_: Range<u32>,
    source: Range<u32>,
    id: Range<u32>,
}

/// Bytes that are no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the bytes of an event are damaged: {0}")]
pub struct Damaged(&'static str);

impl Event {
    /// The event that [`Event::bytes`] gave.
    pub fn decode(bytes: Bytes) -> Result<Self, Damaged> {
        if bytes.len() < HEAD_BYTES || bytes[0] != LAYOUT {
            return Err(Damaged("not a layout this version knows"));
        }
        let mut event = Self {
            bytes,
            type_: 0..0,
            source: 0..0,
            id: 0..0,
        };
        event.check()?;
        Ok(event)
    }

    /// Whether only a newer version can have given these bytes.
    pub(crate) fn is_of_newer_layout(bytes: &[u8]) -> bool {
        bytes.first().is_some_and(|layout| *layout > LAYOUT)
    }

    /// Looks at everything once, so that readers need not: lengths, text, and the three required attributes.
    fn check(&mut self) -> Result<(), Damaged> {
        let end = self.data_at();
        if end > self.bytes.len() || end < HEAD_BYTES {
            return Err(Damaged("data begins outside"));
        }
        let mut at = HEAD_BYTES;
        for index in 0..self.count() {
            let head = self
                .bytes
                .get(at..at + ATTRIBUTE_HEAD_BYTES)
                .ok_or(Damaged("an attribute is cut off"))?;
            let name_end = at + ATTRIBUTE_HEAD_BYTES + usize::from(head[1]);
            let value_end = name_end + usize::from(u16::from_le_bytes([head[2], head[3]]));
            if value_end > end {
                return Err(Damaged("an attribute is longer than all"));
            }
            let name = &self.bytes[at + ATTRIBUTE_HEAD_BYTES..name_end];
            if !name.is_ascii() || std::str::from_utf8(&self.bytes[name_end..value_end]).is_err() {
                return Err(Damaged("an attribute is not text"));
            }
            let value = u32_of(name_end)..u32_of(value_end);
            match (index, name) {
                (0, b"type") => self.type_ = value,
                (1, b"source") => self.source = value,
                (2, b"id") => self.id = value,
                (0..=2, _) => return Err(Damaged("type, source and id do not come first")),
                _ => {}
            }
            at = value_end;
        }
        if at != end || self.count() < 3 {
            return Err(Damaged("attributes and data do not meet"));
        }
        Ok(())
    }

    /// The encoded form.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    #[must_use]
    pub fn type_(&self) -> &str {
        self.str_at(&self.type_)
    }

    #[must_use]
    pub fn source(&self) -> &str {
        self.str_at(&self.source)
    }

    #[must_use]
    pub fn id(&self) -> &str {
        self.str_at(&self.id)
    }

    #[must_use]
    pub fn form(&self) -> Form {
        if self.bytes[1] & CAME_STRUCTURED != 0 {
            Form::Structured
        } else {
            Form::Binary
        }
    }

    /// The data, byte for byte; `None` when there is none, which is not the same as empty data.
    #[must_use]
    pub fn data(&self) -> Option<Bytes> {
        (self.bytes[1] & HAS_DATA != 0).then(|| self.bytes.slice(self.data_at()..))
    }

    /// Whether the data came as bytes in a document, so that without a content type nothing may be assumed of it.
    #[must_use]
    pub fn is_opaque(&self) -> bool {
        self.bytes[1] & OPAQUE != 0
    }

    /// All attributes but `specversion`: type, source and id first, then in the order in which they came.
    pub fn attributes(&self) -> impl Iterator<Item = (&str, Value<'_>)> {
        self.fields()
            .map(|field| (field.name, value_of(field.kind, field.text)))
    }

    /// Name and canonical text of all attributes but `specversion`, as slices that share the event's bytes.
    pub fn texts(&self) -> impl Iterator<Item = (&str, Bytes)> {
        self.fields()
            .map(|field| (field.name, self.bytes.slice_ref(field.text.as_bytes())))
    }

    /// Attributes as text, where they lie.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields().map(|field| (field.name, field.text))
    }

    /// What tells this event from others: a hash of source and id. Never zero.
    #[must_use]
    pub fn key(&self) -> u64 {
        key_of(self.source(), self.id())
    }

    /// The same event with some attributes set (`Some`) or taken away (`None`).
    #[must_use]
    pub fn with(&self, changes: &[(&str, Option<Value<'_>>)]) -> Self {
        let changed = |name: &str| changes.iter().find(|(changed, _)| *changed == name);
        let mut builder = Builder::with_capacity(self.form(), self.bytes.len() + 128);
        if self.is_opaque() {
            builder.opaque();
        }
        for (name, value) in self.attributes() {
            if changed(name).is_none() {
                builder.push(name, value);
            }
        }
        for (name, value) in changes {
            if let Some(value) = value {
                builder.push(name, *value);
            }
        }
        builder.build(self.data().as_deref())
    }

    fn fields(&self) -> AttributeFields<'_> {
        AttributeFields {
            rest: &self.bytes[HEAD_BYTES..self.data_at()],
        }
    }

    fn count(&self) -> usize {
        usize::from(u16::from_le_bytes([self.bytes[2], self.bytes[3]]))
    }

    fn data_at(&self) -> usize {
        u32::from_le_bytes([self.bytes[4], self.bytes[5], self.bytes[6], self.bytes[7]]) as usize
    }

    fn str_at(&self, range: &Range<u32>) -> &str {
        std::str::from_utf8(&self.bytes[range.start as usize..range.end as usize])
            .expect("checked when the event was decoded")
    }
}

impl Attributes for Event {
    fn attribute(&self, name: &str) -> Option<Value<'_>> {
        if name == "specversion" {
            return Some(Value::Text(SPECVERSION));
        }
        let field = self.fields().find(|field| field.name == name)?;
        Some(value_of(field.kind, field.text))
    }

    fn text(&self, name: &str) -> Option<&str> {
        match name {
            "type" => Some(self.type_()),
            "source" => Some(self.source()),
            "id" => Some(self.id()),
            "specversion" => Some(SPECVERSION),
            _ => Some(self.fields().find(|field| field.name == name)?.text),
        }
    }
}

impl std::fmt::Debug for Event {
    /// Which event, not what is in it: data may be private.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Event({} {} {})", self.type_(), self.source(), self.id())
    }
}

/// A hash of source and id that will never change, for it is kept on disk (FNV-1a, 64 bits).
#[must_use]
pub fn key_of(source: &str, id: &str) -> u64 {
    let parts = [source.as_bytes(), &[0], id.as_bytes()];
    let bytes = parts.iter().flat_map(|part| part.iter());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash.max(1)
}

/// Whether a content type says that the data is JSON.
pub(crate) fn is_json(content_type: &str) -> bool {
    rules::media::is_json(content_type)
}

/// Whether a text is a time as RFC 3339 writes it.
pub(crate) fn is_time(text: &str) -> bool {
    rules::is_time(text)
}

struct AttributeField<'a> {
    kind: u8,
    name: &'a str,
    text: &'a str,
}

struct AttributeFields<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for AttributeFields<'a> {
    type Item = AttributeField<'a>;

    fn next(&mut self) -> Option<AttributeField<'a>> {
        let (head, rest) = self.rest.split_at_checked(ATTRIBUTE_HEAD_BYTES)?;
        let (name, rest) = rest.split_at(usize::from(head[1]));
        let (text, rest) = rest.split_at(usize::from(u16::from_le_bytes([head[2], head[3]])));
        self.rest = rest;
        let utf8 = |bytes: &'a [u8]| {
            std::str::from_utf8(bytes).expect("checked when the event was decoded")
        };
        Some(AttributeField {
            kind: head[0],
            name: utf8(name),
            text: utf8(text),
        })
    }
}

fn value_of(kind: u8, text: &str) -> Value<'_> {
    match kind {
        KIND_INTEGER => text.parse().map_or(Value::Text(text), Value::Integer),
        KIND_BOOLEAN => Value::Boolean(text == "true"),
        _ => Value::Text(text),
    }
}

fn u32_of(position: usize) -> u32 {
    u32::try_from(position).expect("events are far smaller than four gigabytes")
}

/// Puts an event together. Whoever calls it has checked names, values and sizes.
#[derive(Debug)]
pub struct Builder {
    bytes: BytesMut,
    count: u16,
    flags: u8,
    /// Attributes that came before type, source and id were all there.
    required: [Option<(u32, u32)>; 3],
}

impl Builder {
    /// What an attribute takes besides its name and its value.
    pub const ATTRIBUTE_HEAD_BYTES: usize = ATTRIBUTE_HEAD_BYTES;

    #[must_use]
    pub fn new(form: Form) -> Self {
        Self::with_capacity(form, 512)
    }

    /// Room for `bytes` of attributes and data.
    #[must_use]
    pub fn with_capacity(form: Form, bytes: usize) -> Self {
        let mut buffer = BytesMut::with_capacity(HEAD_BYTES + bytes);
        buffer.put_bytes(0, HEAD_BYTES);
        Self {
            bytes: buffer,
            count: 0,
            flags: if form == Form::Structured {
                CAME_STRUCTURED
            } else {
                0
            },
            required: [None; 3],
        }
    }

    /// Adds an attribute. Each name once; `specversion` is understood and left out.
    ///
    /// # Panics
    /// When a name or value is longer than [`NAME_BYTES_MAX`] or [`ATTRIBUTE_BYTES_MAX`] allow.
    pub fn push(&mut self, name: &str, value: Value<'_>) {
        match value {
            Value::Text(text) => self.push_raw(KIND_TEXT, name, text),
            Value::Integer(number) => self.push_raw(KIND_INTEGER, name, &number.to_string()),
            Value::Boolean(flag) => {
                self.push_raw(KIND_BOOLEAN, name, if flag { "true" } else { "false" });
            }
        }
    }

    fn push_raw(&mut self, kind: u8, name: &str, text: &str) {
        if name == "specversion" {
            return;
        }
        assert!(text.len() <= ATTRIBUTE_BYTES_MAX, "the caller has checked");
        let start = u32_of(self.bytes.len());
        self.bytes.put_u8(kind);
        self.bytes
            .put_u8(u8::try_from(name.len()).expect("the caller has checked"));
        self.bytes
            .put_u16_le(u16::try_from(text.len()).expect("below the limit checked above"));
        self.bytes.put_slice(name.as_bytes());
        self.bytes.put_slice(text.as_bytes());
        self.count += 1;
        let place = match name {
            "type" => 0,
            "source" => 1,
            "id" => 2,
            _ => return,
        };
        self.required[place] = Some((start, u32_of(self.bytes.len())));
    }

    /// Says of the data that it came as bytes in a document: see [`Event::is_opaque`].
    pub fn opaque(&mut self) {
        self.flags |= OPAQUE;
    }

    /// How many bytes the event will have with so much data.
    #[must_use]
    pub fn bytes_with(&self, data_bytes: usize) -> usize {
        self.bytes.len() + data_bytes
    }

    /// Whether an attribute of this name was added.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        let fields = AttributeFields {
            rest: &self.bytes[HEAD_BYTES..],
        };
        let mut fields = fields;
        fields.any(|field| field.name == name)
    }

    /// The event.
    ///
    /// # Panics
    /// When type, source or id was not added: whoever calls this has checked.
    #[must_use]
    pub fn build(mut self, data: Option<&[u8]>) -> Event {
        self.put_required_first();
        if data.is_some() {
            self.flags |= HAS_DATA;
        }
        let data_at = u32_of(self.bytes.len());
        self.bytes[0] = LAYOUT;
        self.bytes[1] = self.flags;
        self.bytes[2..4].copy_from_slice(&self.count.to_le_bytes());
        self.bytes[4..8].copy_from_slice(&data_at.to_le_bytes());
        self.bytes.put_slice(data.unwrap_or_default());
        Event::decode(self.bytes.freeze()).expect("built as it is read")
    }

    /// Readers rely on type, source and id being the first three. Most senders do not send them so.
    fn put_required_first(&mut self) {
        let required = self
            .required
            .map(|place| place.expect("type, source and id are required"));
        let mut expected = u32_of(HEAD_BYTES);
        if required
            .iter()
            .all(|(start, end)| std::mem::replace(&mut expected, *end) == *start)
        {
            return;
        }
        let mut sorted = BytesMut::with_capacity(self.bytes.capacity());
        sorted.put_bytes(0, HEAD_BYTES);
        for (start, end) in required {
            sorted.put_slice(&self.bytes[start as usize..end as usize]);
        }
        let mut at = HEAD_BYTES;
        while at < self.bytes.len() {
            let name_end = at + ATTRIBUTE_HEAD_BYTES + usize::from(self.bytes[at + 1]);
            let length = u16::from_le_bytes([self.bytes[at + 2], self.bytes[at + 3]]);
            let end = name_end + usize::from(length);
            if !required.iter().any(|(start, _)| *start as usize == at) {
                sorted.put_slice(&self.bytes[at..end]);
            }
            at = end;
        }
        self.bytes = sorted;
    }
}
