//! What was refused lately: who published what where, and why it was not taken; never what an event carried.
//!
//! ```text
//!   publisher ──> source ──refused──> answer
//!                            └──> by number ──── the oldest of all go when there are too many
//!                                 by holder ──── the oldest of one publisher go when it has its share
//! ```
//! It is kept in memory and gone with the process. Nothing here is touched by what is accepted. A flood of one publisher, or of
//! one network, forgets its own refusals and leaves those of all others.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, VecDeque};

use heddle_api::ledger::ErrorBody;
use heddle_api::refused_events::RefusedEvent;
use heddle_rt::budget::Holder;
use heddle_rt::net::Peer;
use http::request::Parts;
use http::{HeaderMap, Request, StatusCode, header};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::Value;

use super::Source;
use super::refusal::PublishError;
use crate::event::http::Mode;
use crate::heartbeat;
use crate::who::Who;

/// Refusals that are remembered.
const REFUSED_MAX: usize = 4_096;
/// Of one identity, or of one address or network of IPv6.
const REFUSED_OF_ONE_MAX: usize = 256;
/// The beginning of a text that is kept.
const TEXT_CHARS_MAX: usize = 256;
/// A body that is no longer is looked through for the names of the event that was refused.
const NAMED_BYTES_MAX: usize = 64 << 10;

/// Those that are remembered.
#[derive(Debug, Default)]
pub(crate) struct RefusedLog {
    kept: Mutex<RefusedRing>,
}

#[derive(Debug, Default)]
struct RefusedRing {
    /// Since the process began; the number of the next.
    total: u64,
    by_number: BTreeMap<u64, (Holder, RefusedEvent)>,
    by_holder: HashMap<Holder, VecDeque<u64>>,
}

impl RefusedLog {
    pub(crate) fn add(&self, holder: Holder, event: RefusedEvent) {
        self.kept.lock().add(holder, event);
    }

    /// The newest that are asked for.
    pub(crate) fn newest(
        &self,
        limit: usize,
        is_asked: impl Fn(&RefusedEvent) -> bool,
    ) -> Vec<RefusedEvent> {
        let kept = self.kept.lock();
        let newest = kept.by_number.values().rev().map(|(_, event)| event);
        let asked = newest.filter(|event| is_asked(event));
        asked.take(limit).cloned().collect()
    }

    /// How many there were since the process began.
    pub(crate) fn total(&self) -> u64 {
        self.kept.lock().total
    }
}

impl RefusedRing {
    fn add(&mut self, holder: Holder, event: RefusedEvent) {
        let number = self.total;
        self.total += 1;
        let own = self.by_holder.entry(holder.clone()).or_default();
        if own.len() >= REFUSED_OF_ONE_MAX
            && let Some(oldest) = own.pop_front()
        {
            self.by_number.remove(&oldest);
        }
        own.push_back(number);
        self.by_number.insert(number, (holder, event));
        if self.by_number.len() > REFUSED_MAX
            && let Some((_, (holder, _))) = self.by_number.pop_first()
            && let Some(own) = self.by_holder.get_mut(&holder)
        {
            // The oldest of all is the oldest of its publisher.
            own.pop_front();
            if own.is_empty() {
                self.by_holder.remove(&holder);
            }
        }
    }
}

/// What is known of an event that was refused.
#[derive(Debug, Default)]
pub(super) struct SeenEvent {
    bytes: Option<u64>,
    id: Option<String>,
    source: Option<String>,
    type_: Option<String>,
}

impl SeenEvent {
    /// What was read of one in the form of old Kyma.
    pub(super) fn of_legacy(bytes: usize, id: &str, source: &str, type_: &str) -> Self {
        let text = |text: &str| Some(cut(text)).filter(|text| !text.is_empty());
        Self {
            bytes: Some(bytes as u64),
            id: text(id),
            source: text(source),
            type_: text(type_),
        }
    }

    /// What headers say: in binary mode all of it.
    fn in_headers(headers: &HeaderMap) -> Self {
        let text = |name: &str| {
            let value = headers.get(name)?;
            Some(cut(&String::from_utf8_lossy(value.as_bytes())))
        };
        let length = headers.get(header::CONTENT_LENGTH);
        Self {
            bytes: length.and_then(|length| length.to_str().ok()?.parse().ok()),
            id: text("ce-id"),
            source: text("ce-source"),
            type_: text("ce-type"),
        }
    }

    /// What a body says: in the other modes the names, as far as it can be read at all.
    pub(super) fn in_body(mode: Mode, index: Option<u64>, body: &[u8]) -> Self {
        let bytes = Some(body.len() as u64);
        let read = || -> Option<Value> {
            let is_short = mode != Mode::Binary && body.len() <= NAMED_BYTES_MAX;
            let mut value: Value = serde_json::from_slice(is_short.then_some(body)?).ok()?;
            Some(match mode {
                // Of one that is refused as a whole, the first event tells which it was.
                Mode::Batched => {
                    let index = usize::try_from(index.unwrap_or(0)).ok()?;
                    value.get_mut(index)?.take()
                }
                Mode::Binary | Mode::Structured => value,
            })
        };
        let event = read().unwrap_or_default();
        let text = |name: &str| event.get(name)?.as_str().map(cut);
        Self {
            bytes,
            id: text("id"),
            source: text("source"),
            type_: text("type"),
        }
    }
}

/// On whose share it is remembered what somebody was refused, and what they are called.
fn publisher(who: &Who, peer: Option<&Peer>) -> (Holder, String) {
    let (who, is_proven) = match who {
        Who::Application(name) => (format!("application/{name}"), true),
        Who::Administrator => ("administrator".to_owned(), true),
        Who::Anonymous | Who::Prober | Who::EdgeProber => ("anonymous".to_owned(), false),
    };
    (holder_of(peer.filter(|_| !is_proven), &who), who)
}

/// An address where nobody proved who they are, and a name otherwise.
fn holder_of(peer: Option<&Peer>, who: &str) -> Holder {
    match peer {
        Some(peer) => Holder::at(peer.address.ip()),
        None => Holder::Identity(who.into()),
    }
}

/// What is remembered of a refusal.
fn remembered(
    parts: RefusedParts<'_>,
    told: (StatusCode, &ErrorBody),
    seen: Option<&SeenEvent>,
) -> RefusedEvent {
    let mut event = parts.remembered(told);
    if let Some(seen) = seen {
        event.bytes = seen.bytes.or(event.bytes);
        event.id = event.id.or_else(|| seen.id.clone());
        event.source = event.source.or_else(|| seen.source.clone());
        event.type_ = event.type_.or_else(|| seen.type_.clone());
    }
    event
}

/// What is known of a request whatever it is refused for.
#[derive(Clone, Copy)]
struct RefusedParts<'a> {
    at: Timestamp,
    door: &'a str,
    who: &'a str,
    headers: &'a HeaderMap,
    peer: Option<&'a Peer>,
}

impl RefusedParts<'_> {
    fn remembered(self, (status, body): (StatusCode, &ErrorBody)) -> RefusedEvent {
        let seen = SeenEvent::in_headers(self.headers);
        let address = self.peer.map(|peer| peer.address.ip().to_canonical());
        RefusedEvent {
            at: self.at,
            door: cut(self.door),
            who: cut(self.who),
            address: address.map(|address| address.to_string()),
            status: status.as_u16(),
            code: body.code.clone(),
            message: cut(&body.message),
            attribute: body.attribute.as_deref().map(cut),
            index: body.index,
            bytes: seen.bytes,
            id: seen.id,
            source: seen.source,
            type_: seen.type_,
        }
    }
}

impl Source {
    /// Remembers what this hop refused, and to whom. What the mesh sends itself is in no list of others'.
    pub(super) fn remember(&self, who: &Who, parts: &Parts, door: &str, refusal: &PublishError) {
        self.remember_told(who, parts, door, refusal.told(), refusal.seen());
    }

    /// The same, of what was told in another form.
    pub(super) fn remember_told(
        &self,
        who: &Who,
        parts: &Parts,
        door: &str,
        told: (StatusCode, &ErrorBody),
        seen: Option<&SeenEvent>,
    ) {
        if who.is_prober() {
            return;
        }
        let peer = parts.extensions.get::<Peer>();
        let (holder, who) = publisher(who, peer);
        let parts = RefusedParts {
            at: self.shared.clock.now(),
            door,
            who: &who,
            headers: &parts.headers,
            peer,
        };
        self.shared
            .refused
            .add(holder, remembered(parts, told, seen));
    }

    /// Remembers what was refused before this hop: nobody knows who it was.
    pub fn turned_away<B>(&self, request: &Request<B>, status: StatusCode, body: &ErrorBody) {
        let (path, who) = (request.uri().path(), "unknown");
        let found = super::path(path);
        let door = (found.as_ref()).map_or_else(|| path.into(), super::Path::entry);
        let peer = request.extensions().get::<Peer>();
        let parts = RefusedParts {
            at: self.shared.clock.now(),
            door: &door,
            who,
            headers: request.headers(),
            peer,
        };
        let event = parts.remembered((status, body));
        // A smoke test makes sure of it that strangers are refused.
        if !(event.type_.as_deref()).is_some_and(heartbeat::is_reserved) {
            self.shared.refused.add(holder_of(peer, who), event);
        }
    }
}

/// The beginning of a text.
pub(crate) fn cut(text: &str) -> String {
    text.chars().take(TEXT_CHARS_MAX).collect()
}
