//! The body of a publish in the old API: what its members are, and what is checked of them, in which order.
//!
//! Two generations of servers spoke this API and disagreed about what they took. What both refused is refused here; what
//! either took is taken and counted as lenient, unless strictness was asked for. As they did, this reads names whatever the
//! case of their letters, takes the last of several, and passes over members that it does not know.
//!
//! The data is a slice of the body, byte for byte. Behind the object nothing may follow.

use std::borrow::Cow;

use super::error::LegacyError;
use crate::event::json::object::{MemberValue, read_object};

/// The longest type and version that the older servers took.
const TYPE_BYTES_MAX: usize = 253;
const VERSION_BYTES_MAX: usize = 4;

/// The version of CloudEvents that bodies of the second form are in.
const SPECVERSION: &str = "0.3";

/// Which form a body has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::path::source) enum BodyForm {
    /// `event-type`, `event-type-version`, `event-id`, `event-time`, `data`.
    V1,
    /// A CloudEvent, nearly, with `eventtypeversion`.
    V2,
}

/// What the members that are checked are called.
struct FieldNames {
    type_: &'static str,
    version: &'static str,
    id: &'static str,
    time: &'static str,
}

impl BodyForm {
    const fn names(self) -> FieldNames {
        match self {
            Self::V1 => FieldNames {
                type_: "event-type",
                version: "event-type-version",
                id: "event-id",
                time: "event-time",
            },
            Self::V2 => FieldNames {
                type_: "type",
                version: "eventtypeversion",
                id: "id",
                time: "time",
            },
        }
    }
}

/// The members of a body, before anything was checked. What is not there is empty, as it was to those servers.
#[derive(Debug, Default)]
pub(super) struct LegacyBody<'a> {
    /// Of a publish that has no Application in its path.
    pub(super) source: Cow<'a, str>,
    pub(super) type_: Cow<'a, str>,
    pub(super) version: Cow<'a, str>,
    pub(super) id: Cow<'a, str>,
    pub(super) time: Cow<'a, str>,
    specversion: Cow<'a, str>,
    pub(super) content_type: Cow<'a, str>,
    pub(super) encoding: Cow<'a, str>,
    pub(super) data: Option<LegacyData<'a>>,
    /// Further members of the second form.
    pub(super) extensions: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// Something was left out that is no attribute.
    pub(super) curtailed: bool,
}

/// The data as it stands in the body.
#[derive(Debug)]
pub(super) struct LegacyData<'a> {
    pub(super) raw: &'a str,
    /// What a string means.
    pub(super) text: Option<Cow<'a, str>>,
}

impl<'a> LegacyBody<'a> {
    /// The members of a body.
    pub(super) fn read(text: &'a [u8], form: BodyForm) -> Result<Self, LegacyError> {
        let text = std::str::from_utf8(text).map_err(|error| {
            let at = error.valid_up_to();
            LegacyError::bad_payload(&format!("invalid UTF-8 at byte {at}"))
        })?;
        let mut body = Self::default();
        let mut mistyped = None;
        let read = read_object(text, |name, value, raw| {
            if let Err(wrong) = body.take(form, name, value, raw) {
                mistyped.get_or_insert(wrong);
            }
        });
        read.map_err(|error| LegacyError::bad_payload(&error))?;
        match mistyped {
            Some(name) => Err(LegacyError::bad_payload(&format!("{name} is no string"))),
            None => Ok(body),
        }
    }

    /// Takes a member; the error is the name of one that should be a string and is not.
    fn take(
        &mut self,
        form: BodyForm,
        name: Cow<'a, str>,
        value: MemberValue<'a>,
        raw: &'a str,
    ) -> Result<(), &'static str> {
        let names = form.names();
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        let v2 = form == BodyForm::V2;
        if is("data") {
            self.data = match value {
                MemberValue::Null => None,
                MemberValue::Text(text) => Some(LegacyData {
                    raw,
                    text: Some(text),
                }),
                MemberValue::Scalar | MemberValue::Nested => Some(LegacyData { raw, text: None }),
            };
            return Ok(());
        }
        let (field, known) = if is(names.type_) {
            (&mut self.type_, names.type_)
        } else if is(names.version) {
            (&mut self.version, names.version)
        } else if is(names.id) {
            (&mut self.id, names.id)
        } else if is(names.time) {
            (&mut self.time, names.time)
        } else if is("source-id") {
            (&mut self.source, "source-id")
        } else if v2 && is("source") {
            (&mut self.source, "source")
        } else if v2 && is("specversion") {
            (&mut self.specversion, "specversion")
        } else if v2 && is("datacontenttype") {
            (&mut self.content_type, "datacontenttype")
        } else if v2 && is("datacontentencoding") {
            (&mut self.encoding, "datacontentencoding")
        } else {
            if v2 {
                self.extend(name, value, raw);
            }
            return Ok(());
        };
        match value {
            MemberValue::Text(text) => *field = text,
            // Nothing is put over what was there before.
            MemberValue::Null => {}
            MemberValue::Scalar | MemberValue::Nested => return Err(known),
        }
        Ok(())
    }

    fn extend(&mut self, name: Cow<'a, str>, value: MemberValue<'a>, raw: &'a str) {
        match value {
            MemberValue::Text(text) => self.extensions.push((name, text)),
            MemberValue::Scalar => self.extensions.push((name, Cow::Borrowed(raw))),
            MemberValue::Null => {}
            MemberValue::Nested => self.curtailed = true,
        }
    }

    /// Checks everything, one after the other; the first that is wrong is what is said. Tells whether one of the two
    /// generations would have refused it.
    pub(super) fn check(&self, form: BodyForm, strict: bool) -> Result<bool, LegacyError> {
        let names = form.names();
        let mut lenient = false;
        let mut deviates = |error: LegacyError| {
            lenient = true;
            if strict { Err(error) } else { Ok(()) }
        };
        let present = |field: &str, name| match field {
            "" => Err(LegacyError::missing(name)),
            _ => Ok(()),
        };
        if form == BodyForm::V2 {
            present(&self.id, names.id)?;
        }
        present(&self.type_, names.type_)?;
        if self.type_.len() > TYPE_BYTES_MAX {
            deviates(LegacyError::too_long(names.type_, TYPE_BYTES_MAX))?;
        }
        if !is_dotted_name(&self.type_) {
            deviates(LegacyError::invalid(names.type_))?;
        }
        present(&self.version, names.version)?;
        if self.version.len() > VERSION_BYTES_MAX {
            deviates(LegacyError::too_long(names.version, VERSION_BYTES_MAX))?;
        }
        let plain = |char: char| char.is_ascii_alphanumeric();
        if !self.version.contains(plain) {
            return Err(LegacyError::invalid(names.version));
        }
        if !self.version.chars().all(plain) {
            deviates(LegacyError::invalid(names.version))?;
        }
        present(&self.time, names.time)?;
        if !is_time(&self.time) {
            return Err(LegacyError::invalid(names.time));
        }
        if !self.id.is_empty() && !is_uuid(&self.id) {
            return Err(LegacyError::invalid(names.id));
        }
        if form == BodyForm::V2 && self.specversion != SPECVERSION {
            return Err(LegacyError::invalid("specversion"));
        }
        let is_empty = |data: &LegacyData<'_>| data.text.as_deref() == Some("");
        if self.data.as_ref().is_none_or(is_empty) {
            return Err(LegacyError::missing("data"));
        }
        if self.curtailed {
            deviates(LegacyError::bad_payload(
                "an extension is an array or an object, which no attribute can hold",
            ))?;
        }
        Ok(lenient)
    }
}

/// Labels of letters, digits and inner hyphens, with dots between them.
fn is_dotted_name(text: &str) -> bool {
    text.split('.').all(|label| {
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !label.is_empty()
            && label.bytes().all(inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    })
}

/// 8, 4, 4, 4 and 12 hexadecimal digits, in either case.
fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// A time as those servers read it: RFC 3339 without small letters and leap seconds.
fn is_time(text: &str) -> bool {
    let plain = |byte: u8| !byte.is_ascii_lowercase();
    text.bytes().all(plain)
        && text.as_bytes().get(17..19) != Some(b"60")
        && crate::event::is_time(text)
}
