//! A publish of the old API as a CloudEvent, and the place in a trace that its headers name.
//!
//! ```text
//!   event-type          type                Application   source, and extension sourceid
//!   event-type-version  eventtypeversion    ce-* headers  extensions of that name
//!   event-id or new     id                  b3 headers    traceparent, where there is none
//!   event-time          time                data          data, byte for byte
//! ```

use base64::prelude::{BASE64_STANDARD, Engine as _};
use heddle_api::attributes::Value;
use http::HeaderMap;
use std::borrow::Cow;

use super::super::{PublishError, carried};
use super::body::{BodyForm, LegacyBody};
use super::error::LegacyError;
use crate::envelope::TraceContext;
use crate::event::http::{Limits, push_header, push_text};
use crate::event::{Builder, Event, Form, is_json};

/// The content type of data that does not say its own.
const JSON: &str = "application/json";

/// What members of the second form are called since.
const RENAMED: [(&str, &str); 1] = [("schemaurl", "dataschema")];

/// Members and headers that say what is said elsewhere, and never become extensions.
const RESERVED: [&str; 8] = [
    "id",
    "source",
    "type",
    "time",
    "specversion",
    "datacontenttype",
    "eventtypeversion",
    "sourceid",
];

/// What becomes an event.
pub(super) struct Translation<'a> {
    pub(super) form: BodyForm,
    pub(super) application: &'a str,
    /// The id, given or drawn.
    pub(super) id: &'a str,
    pub(super) headers: &'a HeaderMap,
    pub(super) limits: &'a Limits,
}

impl Translation<'_> {
    /// The event, and whether an extension was left out because no attribute can be like that.
    pub(super) fn event(&self, body: &LegacyBody<'_>) -> Result<(Event, bool), LegacyError> {
        let data = body.data.as_ref().expect("checked before");
        let mut builder = Builder::with_capacity(Form::Binary, data.raw.len() + 1024);
        let (type_, version, time) = match self.form {
            BodyForm::V1 => ("event-type", "event-type-version", "event-time"),
            BodyForm::V2 => ("type", "eventtypeversion", "time"),
        };
        for (name, text, field) in [
            ("type", &*body.type_, type_),
            ("source", self.application, "source-id"),
            ("id", self.id, "id"),
            ("time", &*body.time, time),
            ("eventtypeversion", &*body.version, version),
        ] {
            push_text(&mut builder, name, text).map_err(|_| LegacyError::invalid(field))?;
        }
        builder.push("sourceid", Value::Text(self.application));
        let content_type = Some(&*body.content_type).filter(|given| !given.is_empty());
        let content_type = content_type.unwrap_or(JSON);
        push_text(&mut builder, "datacontenttype", content_type)
            .map_err(|_| LegacyError::invalid("datacontenttype"))?;
        let left_out = self.extend(&mut builder, body);
        let data = data_of(body, content_type)?;
        self.limits
            .check_event(builder.bytes_with(data.len()))
            .map_err(PublishError::from)?;
        let event = builder.build(Some(&data));
        self.limits
            .check_attributes(event.attributes().count() + 1)
            .map_err(PublishError::from)?;
        Ok((event, left_out))
    }

    /// Adds what else was said; gives whether something could not be.
    fn extend(&self, builder: &mut Builder, body: &LegacyBody<'_>) -> bool {
        let mut left_out = false;
        let free = |builder: &Builder, name: &str| {
            !RESERVED.contains(&name) && !builder.has(name) && !is_full(builder)
        };
        for (name, text) in &body.extensions {
            let renamed = RENAMED.iter().find(|(old, _)| name == old);
            let name = renamed.map_or(&**name, |(_, new)| new);
            if RESERVED.contains(&name) {
                continue;
            }
            left_out |= !free(builder, name) || push_text(builder, name, text).is_err();
        }
        for (header, value) in self.headers {
            let Some(name) = header.as_str().strip_prefix("ce-") else {
                continue;
            };
            if RESERVED.contains(&name) {
                continue;
            }
            left_out |= !free(builder, name) || push_header(builder, name, value).is_err();
        }
        left_out
    }
}

/// More attributes than this are not looked at: each costs a look at all others.
const EXTENSION_BYTES_MAX: usize = 128 * 1024;

fn is_full(builder: &Builder) -> bool {
    builder.bytes_with(0) > EXTENSION_BYTES_MAX
}

/// JSON as it stands, other text without its quotes and escapes, bytes without their base64.
fn data_of<'a>(body: &'a LegacyBody<'_>, content_type: &str) -> Result<Cow<'a, [u8]>, LegacyError> {
    let data = body.data.as_ref().expect("checked before");
    let Some(text) = &data.text else {
        return Ok(Cow::Borrowed(data.raw.as_bytes()));
    };
    if body.encoding.eq_ignore_ascii_case("base64") {
        let decoded = BASE64_STANDARD.decode(text.as_bytes());
        return decoded
            .map(Cow::Owned)
            .map_err(|_| LegacyError::invalid("data"));
    }
    match is_json(content_type) {
        true => Ok(Cow::Borrowed(data.raw.as_bytes())),
        false => Ok(Cow::Borrowed(text.as_bytes())),
    }
}

/// The trace context of b3 headers, in one header or in several, for requests without a `traceparent`.
pub(super) fn b3_context(headers: &HeaderMap) -> Option<TraceContext> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let one: Vec<&str> = text("b3")
        .map(|b3| b3.split('-').collect())
        .unwrap_or_default();
    let (trace, span, sampled) = match one.as_slice() {
        [trace, span, rest @ ..] => (*trace, *span, rest.first().copied()),
        _ => {
            let debug = text("x-b3-flags").filter(|flags| *flags == "1");
            let sampled = debug.or_else(|| text("x-b3-sampled"));
            (text("x-b3-traceid")?, text("x-b3-spanid")?, sampled)
        }
    };
    // Who leaves the decision open is not taken to have decided against it.
    let flags = match sampled {
        Some("0" | "false") => "00",
        _ => "01",
    };
    let (trace, span) = (trace.to_ascii_lowercase(), span.to_ascii_lowercase());
    let parent = format!("00-{trace:0>32}-{span}-{flags}");
    carried(Some(&parent), None)
}
