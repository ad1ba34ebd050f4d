//! What is kept beside an event: where it came in, on whose behalf, and how much further it may go.
//!
//! ```text
//!   u8 layout │ u8 hops left │ u8 flags │ entry │ [cause] │ [trace context] │ [request id] │ the event, to the end
//! ```
//! The head is small and written anew for every event; the event's own bytes follow as they are, so that an append copies
//! each byte once.

use bytes::Bytes;

use crate::codec::{Put, Take, Unreadable};
use crate::event::Event;
use crate::log::Offset;

const LAYOUT: u8 = 1;
const HAS_CAUSE: u8 = 1;
const HAS_TRACE: u8 = 2;
const HAS_REQUEST: u8 = 4;
const KNOWN: u8 = HAS_CAUSE | HAS_TRACE | HAS_REQUEST;

/// How many times an event and the replies it causes may pass a broker. The number is Knative's.
pub const HOPS_MAX: u8 = 255;

/// An event with what is known about its coming.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// `channel/NAMESPACE/NAME` or `broker/NAMESPACE/NAME`.
    pub entry: Box<str>,
    pub hops_left: u8,
    /// The event this one is a reply to.
    pub cause: Option<Cause>,
    /// The trace context of the request it came with.
    pub trace: Option<TraceContext>,
    /// The `X-Request-Id` of that request. It is no part of the event and is handed on beside it.
    pub request_id: Option<Box<str>>,
    pub event: Event,
}

/// Where a reply came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    pub offset: Offset,
    /// The consumer whose subscriber replied.
    pub consumer: Box<str>,
}

/// W3C trace context, as it stood in the headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    pub parent: Box<str>,
    pub state: Box<str>,
}

impl Envelope {
    /// Everything before the event's own bytes.
    pub fn head(&self) -> Vec<u8> {
        let mut head = Vec::with_capacity(16 + self.entry.len());
        head.u8(LAYOUT);
        head.u8(self.hops_left);
        let cause = if self.cause.is_some() { HAS_CAUSE } else { 0 };
        let trace = if self.trace.is_some() { HAS_TRACE } else { 0 };
        let request = if self.request_id.is_some() {
            HAS_REQUEST
        } else {
            0
        };
        head.u8(cause | trace | request);
        head.str(&self.entry);
        if let Some(cause) = &self.cause {
            head.u64(cause.offset);
            head.str(&cause.consumer);
        }
        if let Some(trace) = &self.trace {
            head.str(&trace.parent);
            head.str(&trace.state);
        }
        if let Some(request_id) = &self.request_id {
            head.str(request_id);
        }
        head
    }

    /// The trace it belongs to, without the span within it.
    #[must_use]
    pub fn trace_id(&self) -> Option<&str> {
        let parent = &self.trace.as_ref()?.parent;
        parent.split('-').nth(1).filter(|id| !id.is_empty())
    }

    /// The envelope in the payload of a record.
    pub fn decode(payload: &Bytes) -> Result<Self, Unreadable> {
        let mut take = Take(payload);
        known_layout(take.u8()?)?;
        let hops_left = take.u8()?;
        let flags = known(take.u8()?)?;
        let entry = take.str()?.into();
        let cause = if flags & HAS_CAUSE != 0 {
            Some(Cause {
                offset: take.u64()?,
                consumer: take.str()?.into(),
            })
        } else {
            None
        };
        let trace = if flags & HAS_TRACE != 0 {
            Some(TraceContext {
                parent: take.str()?.into(),
                state: take.str()?.into(),
            })
        } else {
            None
        };
        let request_id = if flags & HAS_REQUEST != 0 {
            Some(take.str()?.into())
        } else {
            None
        };
        let event = payload.slice(payload.len() - take.0.len()..);
        let event = decode_event(event)?;
        Ok(Self {
            entry,
            hops_left,
            cause,
            trace,
            request_id,
            event,
        })
    }
}

/// The entry an event came in at, and nothing else.
pub(crate) fn entry(payload: &[u8]) -> Result<&str, Unreadable> {
    let mut take = Take(payload);
    known_layout(take.u8()?)?;
    // Hops and flags.
    take.u16()?;
    take.str()
}

/// The entry an event came in at, and the event, without the rest: what matching needs.
pub fn entry_and_event(payload: &Bytes) -> Result<(&str, Event), Unreadable> {
    let mut take = Take(payload);
    known_layout(take.u8()?)?;
    take.u8()?;
    let flags = known(take.u8()?)?;
    let entry = take.str()?;
    if flags & HAS_CAUSE != 0 {
        take.u64()?;
        take.str()?;
    }
    if flags & HAS_TRACE != 0 {
        take.str()?;
        take.str()?;
    }
    if flags & HAS_REQUEST != 0 {
        take.str()?;
    }
    let event = payload.slice(payload.len() - take.0.len()..);
    let event = decode_event(event)?;
    Ok((entry, event))
}

/// What is not known cannot be stepped over.
fn known_layout(layout: u8) -> Result<(), Unreadable> {
    match layout {
        LAYOUT => Ok(()),
        0 => Err(Unreadable::Damaged("an envelope without a layout")),
        _ => Err(Unreadable::Newer("the layout of an envelope")),
    }
}

fn decode_event(bytes: Bytes) -> Result<Event, Unreadable> {
    if Event::is_of_newer_layout(&bytes) {
        return Err(Unreadable::Newer("the layout of an event"));
    }
    Event::decode(bytes).map_err(|_| Unreadable::Damaged("an envelope without an event"))
}

fn known(flags: u8) -> Result<u8, Unreadable> {
    if flags & !KNOWN == 0 {
        Ok(flags)
    } else {
        Err(Unreadable::Newer("a part of an envelope"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Builder, Form};
    use heddle_api::attributes::Value;

    #[test]
    fn every_combination_of_parts_survives_its_bytes() {
        let mut builder = Builder::new(Form::Binary);
        for (name, value) in [("type", "t"), ("source", "/s"), ("id", "1")] {
            builder.push(name, Value::Text(value));
        }
        let event = builder.build(None);
        for parts in 0..=KNOWN {
            let envelope = Envelope {
                entry: "broker/ns/default".into(),
                hops_left: 9,
                cause: (parts & HAS_CAUSE != 0).then(|| Cause {
                    offset: 7,
                    consumer: "trigger/ns/t".into(),
                }),
                trace: (parts & HAS_TRACE != 0).then(|| TraceContext {
                    parent: "parent".into(),
                    state: "".into(),
                }),
                request_id: (parts & HAS_REQUEST != 0).then(|| "request-1".into()),
                event: event.clone(),
            };
            let bytes = Bytes::from([&envelope.head()[..], event.bytes()].concat());
            assert_eq!(entry(&bytes), Ok("broker/ns/default"));
            let (entry, found) = entry_and_event(&bytes).unwrap();
            assert_eq!((entry, &found), ("broker/ns/default", &event));
            assert_eq!(Envelope::decode(&bytes), Ok(envelope));
            let mut unknown = bytes.to_vec();
            unknown[2] |= KNOWN + 1;
            assert!(Envelope::decode(&unknown.clone().into()).is_err());
            assert!(entry_and_event(&unknown.into()).is_err());
        }
    }
}
