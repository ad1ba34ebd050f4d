//! Stored events as they are searched and shown.

use heddle_api::attributes::{Attributes, Value};
use heddle_api::search::{FoundEvent, Sought};
use jiff::Timestamp;

use crate::envelope::Envelope;
use crate::log::Record;

/// A record that is being looked at.
pub(crate) struct SoughtRecord<'a> {
    pub(crate) record: &'a Record,
    pub(crate) envelope: &'a Envelope,
    /// What whoever looks may see of it.
    pub(crate) data: Option<&'a [u8]>,
}

impl SoughtRecord<'_> {
    pub(super) fn shown(&self) -> FoundEvent {
        let event = &self.envelope.event;
        FoundEvent {
            offset: self.record.offset,
            accepted_at: self.record.at,
            entry: self.envelope.entry.to_string(),
            source: event.source().to_owned(),
            type_: event.type_().to_owned(),
            id: event.id().to_owned(),
            subject: event.text("subject").map(str::to_owned),
            data_bytes: event.data().map_or(0, |data| data.len() as u64),
            ..FoundEvent::default()
        }
    }
}

impl Attributes for SoughtRecord<'_> {
    fn attribute(&self, name: &str) -> Option<Value<'_>> {
        self.envelope.event.attribute(name)
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.envelope.event.text(name)
    }
}

impl Sought for SoughtRecord<'_> {
    fn offset(&self) -> u64 {
        self.record.offset
    }

    fn accepted_at(&self) -> Timestamp {
        self.record.at
    }

    fn entry(&self) -> &str {
        &self.envelope.entry
    }

    fn request_id(&self) -> Option<&str> {
        self.envelope.request_id.as_deref()
    }

    fn trace_id(&self) -> Option<&str> {
        self.envelope.trace_id()
    }

    fn cause(&self) -> Option<u64> {
        self.envelope.cause.as_ref().map(|cause| cause.offset)
    }

    fn data(&self) -> Option<&[u8]> {
        self.data
    }

    fn any_attribute(&self, is_it: &mut dyn FnMut(&str) -> bool) -> bool {
        self.envelope.event.pairs().any(|(_, text)| is_it(text))
    }
}
