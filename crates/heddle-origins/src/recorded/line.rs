//! One line of a recording: a record, and the checksum of its bytes. Pure.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::ranges::Ranges;
use crate::counters::{Sequence, SubscriptionId};
use crate::origin::OriginEvent;

#[derive(Deserialize)]
struct RecordedLine<'l> {
    crc32c: String,
    #[serde(borrow)]
    record: &'l RawValue,
}

/// The record in a line, if it is what was written.
pub(crate) fn decode<'l, T: Deserialize<'l>>(line: &'l [u8]) -> Result<T, String> {
    let line: RecordedLine<'l> = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let text = line.record.get();
    let found = checksum(text);
    if found != line.crc32c.to_ascii_lowercase() {
        return Err(format!(
            "its checksum is {found}, and {} was written",
            line.crc32c
        ));
    }
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// A record as a line, with its end.
pub(super) fn encode(record: &Value) -> Vec<u8> {
    let text = record.to_string();
    let crc = checksum(&text);
    format!("{{\"crc32c\":\"{crc}\",\"record\":{text}}}\n").into_bytes()
}

fn checksum(text: &str) -> String {
    format!("{:08x}", crc32c::crc32c(text.as_bytes()))
}

/// How far a subscription was.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SubscriptionRecord {
    pub(super) durable: String,
    #[serde(default)]
    pub(super) client: Option<String>,
    #[serde(default)]
    pub(super) group: Option<String>,
    /// First and last of what is acknowledged.
    #[serde(default)]
    pub(super) acknowledged: Vec<(Sequence, Sequence)>,
    #[serde(default)]
    pub(super) last_sent: Sequence,
}

impl SubscriptionRecord {
    pub(super) fn id(&self, channel: &str) -> SubscriptionId {
        SubscriptionId {
            channel: channel.to_owned(),
            client: self.client.clone(),
            durable: self.durable.clone(),
            group: self.group.clone(),
        }
    }

    pub(super) fn write(id: &SubscriptionId, acknowledged: &Ranges, last_sent: Sequence) -> Value {
        let acknowledged: Vec<_> = acknowledged.iter().collect();
        json!({"durable": id.durable, "client": id.client, "group": id.group,
               "acknowledged": acknowledged, "lastSent": last_sent})
    }
}

/// A channel, with its subscriptions.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChannelRecord {
    pub(super) channel: String,
    pub(super) first: Sequence,
    pub(super) high_water: Sequence,
    #[serde(default)]
    pub(super) subscriptions: Vec<SubscriptionRecord>,
}

/// An event, or what of it is needed to find it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct EventRecord {
    pub(super) channel: String,
    pub(super) sequence: Sequence,
    at: Timestamp,
    #[serde(default)]
    subject: Option<String>,
    #[serde(default)]
    headers: Vec<(String, String)>,
    /// In base 64.
    data: String,
}

impl EventRecord {
    pub(super) fn write(channel: &str, event: &OriginEvent) -> Value {
        json!({"channel": channel, "sequence": event.sequence, "at": event.at, "subject": event.subject,
               "headers": event.headers, "data": STANDARD.encode(&event.data)})
    }

    pub(super) fn data(&self) -> Result<Vec<u8>, String> {
        let decoded = STANDARD.decode(&self.data);
        decoded.map_err(|error| format!("its data is not in base 64: {error}"))
    }

    pub(super) fn event(self, redelivered: bool) -> Result<OriginEvent, String> {
        let data = Bytes::from(self.data()?);
        Ok(OriginEvent {
            sequence: self.sequence,
            at: self.at,
            subject: self.subject.unwrap_or(self.channel),
            headers: self.headers,
            data,
            redelivered,
        })
    }
}
