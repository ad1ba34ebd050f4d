//! From the command line to the bytes of a request, in binary, structured or batched mode.
//!
//! Data is sent byte for byte as it was given. A file with events is sent as it is, unless many are
//! asked for: then each gets an id of its own and the JSON is written anew.

use anyhow::Context as _;
use base64::Engine as _;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::files;
use crate::output::{count, harmless};
use crate::wire::World;

const STRUCTURED: HeaderValue =
    HeaderValue::from_static("application/cloudevents+json; charset=utf-8");
const BATCHED: HeaderValue =
    HeaderValue::from_static("application/cloudevents-batch+json; charset=utf-8");
const SPECVERSION: &str = "1.0";
const SOURCE_DEFAULT: &str = "/heddle/publish";

#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Event")]
pub(super) struct EventArgs {
    /// What happened, for example `order.created`
    #[arg(long = "type", value_name = "TYPE", required_unless_present = "event")]
    type_: Option<String>,

    /// Where it happened [default: /heddle/publish]
    #[arg(long, value_name = "URI")]
    source: Option<String>,

    /// Tells the event from others of its source; made up when absent
    #[arg(long, value_name = "ID")]
    id: Option<String>,

    /// What it is about, within the source
    #[arg(long, value_name = "TEXT")]
    subject: Option<String>,

    /// When it happened: RFC 3339, or `now`
    #[arg(long, value_name = "TIME")]
    time: Option<String>,

    /// Type of the data [default: guessed: JSON, text or bytes]
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,

    /// Another attribute; may be repeated
    #[arg(long = "extension", value_name = "NAME=VALUE", value_parser = pair)]
    extensions: Vec<(String, String)>,

    /// The data
    #[arg(
        long,
        value_name = "TEXT",
        conflicts_with = "data_file",
        allow_hyphen_values = true
    )]
    data: Option<String>,

    /// The data is what this file holds, `-` being standard input
    #[arg(long, value_name = "FILE")]
    data_file: Option<String>,

    /// A whole CloudEvent in JSON, or an array of them, from this file; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["type_", "source", "id", "subject", "time", "content_type", "extensions", "data", "data_file", "structured"])]
    event: Option<String>,

    /// Send attributes and data as one JSON document rather than as headers and body
    #[arg(long)]
    structured: bool,
}

/// `name=value`.
pub(in crate::cmd) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

impl EventArgs {
    /// Reads the files and settles the defaults.
    pub(super) fn content(&self, world: &World) -> anyhow::Result<Content> {
        if let Some(file) = &self.event {
            let text = files::read_bytes(file)?;
            return Ok(Content::Document(Document::read(file, text)?));
        }
        let data = match (&self.data, &self.data_file) {
            (Some(text), _) => Some(Bytes::from(text.clone())),
            (None, Some(file)) => Some(Bytes::from(files::read_bytes(file)?)),
            (None, None) => None,
        };
        let time = self.time.as_ref().map(|time| match time.as_str() {
            "now" => world.clock.now().to_string(),
            given => given.to_owned(),
        });
        let source = self.source.clone();
        let mut draft = Draft {
            id: self.id.clone().unwrap_or_else(|| world.chance.uuid()),
            source: source.unwrap_or_else(|| SOURCE_DEFAULT.to_owned()),
            type_: self.type_.clone().unwrap_or_default(),
            optional: Vec::new(),
            content_type: self.content_type.clone(),
            data,
            structured: self.structured,
        };
        let given = [("subject", self.subject.clone()), ("time", time)];
        let given = given
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)));
        draft.optional = given.chain(self.extensions.iter().cloned()).collect();
        Ok(Content::Draft(draft))
    }
}

/// What to publish, once or often.
#[derive(Clone, Debug)]
pub(super) enum Content {
    Draft(Draft),
    Document(Document),
}

impl Content {
    /// The request; a `number` makes the ids its own.
    pub(super) fn message(&self, number: Option<u64>) -> Result<Message, Failure> {
        match self {
            Self::Draft(draft) => draft.message(number),
            Self::Document(document) => Ok(document.message(number)),
        }
    }
}

/// One request.
#[derive(Clone, Debug)]
pub(in crate::cmd) struct Message {
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) identities: Vec<Identity>,
}

impl Message {
    /// What it is, for messages.
    pub(super) fn shown(&self) -> String {
        match self.identities.as_slice() {
            [event] => format!("event {}", harmless(&event.id)),
            events => format!("batch of {}", count(events.len() as u64, "event")),
        }
    }
}

/// What tells an event from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) id: String,
    source: String,
    type_: String,
}

impl Identity {
    pub(super) fn to_json(&self) -> Value {
        json!({"id": self.id, "source": self.source, "type": self.type_})
    }

    fn of(event: &Value) -> Self {
        let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        Self {
            id: text("id"),
            source: text("source"),
            type_: text("type"),
        }
    }
}

/// An event made of its parts.
#[derive(Clone, Debug)]
pub(in crate::cmd) struct Draft {
    pub(in crate::cmd) id: String,
    pub(in crate::cmd) source: String,
    pub(in crate::cmd) type_: String,
    /// Subject, time and extensions.
    pub(in crate::cmd) optional: Vec<(String, String)>,
    /// Absent: guessed from the data.
    pub(in crate::cmd) content_type: Option<String>,
    pub(in crate::cmd) data: Option<Bytes>,
    pub(in crate::cmd) structured: bool,
}

impl Draft {
    pub(in crate::cmd) fn message(&self, number: Option<u64>) -> Result<Message, Failure> {
        let id = numbered(&self.id, number);
        let identity = Identity {
            id: id.clone(),
            source: self.source.clone(),
            type_: self.type_.clone(),
        };
        let (headers, body) = if self.structured {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, STRUCTURED)]);
            (headers, Bytes::from(self.document(&id)))
        } else {
            (self.headers(&id)?, self.data.clone().unwrap_or_default())
        };
        Ok(Message {
            headers,
            body,
            identities: vec![identity],
        })
    }

    fn attributes<'a>(&'a self, id: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let required = [
            ("specversion", SPECVERSION),
            ("id", id),
            ("source", &self.source),
            ("type", &self.type_),
        ];
        let optional = self.optional.iter();
        let optional = optional.map(|(name, value)| (name.as_str(), value.as_str()));
        required.into_iter().chain(optional)
    }

    fn headers(&self, id: &str) -> Result<HeaderMap, Failure> {
        let mut headers = HeaderMap::new();
        for (name, value) in self.attributes(id) {
            let header = HeaderName::try_from(format!("ce-{name}")).map_err(|_| {
                Failure::Usage(format!(
                    "`{name}` cannot be the name of an attribute: use lower-case letters and digits"
                ))
            })?;
            headers.append(header, header_value(value));
        }
        if let Some(content_type) = self.content_type() {
            let value = HeaderValue::from_str(&content_type).map_err(|_| {
                Failure::Usage(format!("`{content_type}` cannot be a content type"))
            })?;
            headers.insert(CONTENT_TYPE, value);
        }
        Ok(headers)
    }

    /// The event in the JSON format. Data that is JSON goes in as it was written, digit for digit.
    fn document(&self, id: &str) -> String {
        let content_type = self.content_type();
        let attributes = self.attributes(id);
        let mut members: Vec<String> = attributes
            .chain(
                content_type
                    .as_deref()
                    .map(|value| ("datacontenttype", value)),
            )
            .map(|(name, value)| format!("{}:{}", json!(name), json!(value)))
            .collect();
        if let Some(data) = &self.data {
            let is_json = content_type.as_deref().is_none_or(is_json_type);
            members.push(match std::str::from_utf8(data) {
                Ok(text) if is_json && is_json_text(data) => format!("\"data\":{text}"),
                Ok(text) if !is_json => format!("\"data\":{}", json!(text)),
                _ => {
                    let text = base64::engine::general_purpose::STANDARD.encode(data);
                    format!("\"data_base64\":\"{text}\"")
                }
            });
        }
        format!("{{{}}}", members.join(","))
    }

    /// As given, or what the data looks like.
    fn content_type(&self) -> Option<String> {
        let guessed = || {
            let data = self.data.as_ref()?;
            Some(match std::str::from_utf8(data) {
                _ if is_json_text(data) => "application/json",
                Ok(_) => "text/plain; charset=utf-8",
                Err(_) => "application/octet-stream",
            })
        };
        self.content_type
            .clone()
            .or_else(|| guessed().map(str::to_owned))
    }
}

/// Events that somebody wrote down.
#[derive(Clone, Debug)]
pub(super) struct Document {
    text: Bytes,
    events: Vec<Value>,
    batch: bool,
}

impl Document {
    fn read(name: &str, text: Vec<u8>) -> anyhow::Result<Self> {
        let value: Value =
            serde_json::from_slice(&text).with_context(|| format!("{name} is not JSON"))?;
        let (events, batch) = match value {
            Value::Array(events) => (events, true),
            event @ Value::Object(_) => (vec![event], false),
            _ => {
                let text = format!("{name} holds neither an event nor an array of events");
                return Err(Failure::Usage(text).into());
            }
        };
        Ok(Self {
            text: text.into(),
            events,
            batch,
        })
    }

    fn message(&self, number: Option<u64>) -> Message {
        let content_type = if self.batch { BATCHED } else { STRUCTURED };
        let mut message = Message {
            headers: HeaderMap::from_iter([(CONTENT_TYPE, content_type)]),
            body: self.text.clone(),
            identities: self.events.iter().map(Identity::of).collect(),
        };
        if number.is_some() {
            let events: Vec<Value> = self
                .events
                .iter()
                .map(|event| with_number(event, number))
                .collect();
            message.identities = events.iter().map(Identity::of).collect();
            let text = match events.as_slice() {
                [event] if !self.batch => event.to_string(),
                _ => Value::Array(events).to_string(),
            };
            message.body = text.into();
        }
        message
    }
}

fn with_number(event: &Value, number: Option<u64>) -> Value {
    let mut event = event.clone();
    if let Some(Value::String(id)) = event
        .as_object_mut()
        .and_then(|map: &mut Map<_, _>| map.get_mut("id"))
    {
        *id = numbered(id, number);
    }
    event
}

fn numbered(id: &str, number: Option<u64>) -> String {
    number.map_or_else(|| id.to_owned(), |number| format!("{id}-{number}"))
}

fn is_json_text(data: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(data).is_ok()
}

/// `application/json`, `text/json`, `application/vnd.x+json`, with or without parameters.
fn is_json_type(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    let essence = essence.to_ascii_lowercase();
    essence.ends_with("/json") || essence.ends_with("+json")
}

/// An attribute as a header: space, quotes, percent and everything beyond ASCII are percent-encoded.
fn header_value(text: &str) -> HeaderValue {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'"' | b'%' => encoded.push_str(&format!("%{byte:02X}")),
            0x21..=0x7e => encoded.push(char::from(byte)),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    HeaderValue::try_from(encoded).expect("printable ASCII is a header value")
}
