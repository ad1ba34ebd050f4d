//! The types of the newest events, with who wants them and what their data is like.
//!
//! Nothing is kept for this: the newest part of the log is looked through, within bounds, by one who waits for it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use heddle_api::access::namespace_of;
use heddle_api::attributes::Attributes as _;
use heddle_api::types::infer::DataShape;
use heddle_api::types::{SeenType, SeenTypes};
use jiff::Timestamp;
use serde_json::Value;

use super::Error;
use super::look_back::{LOOK_BYTES_MAX, Look, LookBack};
use super::visible::Visible;
use crate::envelope::{self, Envelope};
use crate::event::Event;
use crate::heartbeat;
use crate::log::{Offset, Record};
use crate::mesh::Mesh;

/// Types that are told apart; events of further ones are not counted.
const KNOWN_MAX: usize = 5_000;
/// Types in one answer.
const TOLD_MAX: usize = 500;
/// Consumers that are named for each.
const CONSUMERS_MAX: usize = 20;
/// Events of one type whose data is looked into.
const SAMPLES_MAX: u64 = 20;
/// Data that is larger is not looked into.
const SAMPLE_BYTES_MAX: usize = 64 << 10;

/// In a shorter time there is no rate.
const SPAN_S_MIN: f64 = 1.0;

/// What is asked.
#[derive(Clone, Debug)]
pub struct TypesRequest {
    /// How many of the newest events to look at, about.
    pub last: u64,
    /// Only this type.
    pub type_: Option<String>,
    /// Only events that come in at, or can reach, this namespace.
    pub namespace: Option<String>,
    pub visible: Visible,
}

impl TypesRequest {
    pub const LAST_DEFAULT: u64 = 10_000;
    /// More than anybody waits for.
    const LAST_MAX: u64 = 1_000_000;
}

/// What makes two events one type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TypeKey {
    type_: String,
    source: String,
    entry: String,
}

struct TypeSearch {
    request: TypesRequest,
    /// The entries from which the namespace is reached.
    entries: Option<Vec<Arc<str>>>,
    examined: u64,
    /// When the oldest of them was accepted.
    since: Option<Timestamp>,
    found: BTreeMap<TypeKey, FoundType>,
    left_out: u64,
}

struct FoundType {
    seen: SeenType,
    shape: DataShape,
}

impl Mesh {
    /// The types of the newest events, the most frequent first.
    pub async fn types(&self, request: TypesRequest) -> Result<SeenTypes, Error> {
        if request.last > TypesRequest::LAST_MAX {
            let max = TypesRequest::LAST_MAX;
            let text = format!("at most {max} events are looked at; ask for fewer");
            return Err(Error::Invalid(text));
        }
        let entries = request.namespace.as_deref();
        let search = TypeSearch {
            entries: entries.map(|namespace| self.entries_of(namespace)),
            request,
            examined: 0,
            since: None,
            found: BTreeMap::new(),
            left_out: 0,
        };
        let looking = LookBack::new(
            Arc::clone(&self.shared.log),
            Arc::clone(&self.shared.hints),
            0..Offset::MAX,
            Vec::new(),
            search,
        );
        let (search, stopped) = self.look(looking, LOOK_BYTES_MAX).await?;
        self.aside(move |mesh| Ok(mesh.told(search, stopped))).await
    }

    /// Where events come in that can reach a place of this namespace.
    fn entries_of(&self, namespace: &str) -> Vec<Arc<str>> {
        let table = self.table();
        let consumers = table.consumers().iter();
        let here = consumers.filter(|one| namespace_of(&one.key) == Some(namespace));
        let feeds = here.flat_map(|one| one.feeds.iter());
        let mut entries: Vec<Arc<str>> = feeds.map(|feed| Arc::clone(&feed.entry)).collect();
        entries.sort();
        entries.dedup();
        entries
    }

    fn told(&self, search: TypeSearch, stopped: Option<Offset>) -> SeenTypes {
        // How long the log is, is told to those who see all of it.
        let stopped = stopped.filter(|_| search.request.visible.is_everything());
        let mut found: Vec<FoundType> = search.found.into_values().collect();
        found.sort_by_key(|found| std::cmp::Reverse(found.seen.count));
        let left_out = found.len().saturating_sub(TOLD_MAX) as u64;
        found.truncate(TOLD_MAX);
        let now = self.shared.clock.now();
        let span = (search.since).map(|since| now.duration_since(since).as_secs_f64());
        let span = span.filter(|span| *span >= SPAN_S_MIN);
        for one in &mut found {
            one.seen.schema = one.shape.schema();
            one.seen.schema_of = one.shape.samples();
            one.seen.rate_per_s = span.map(|span| one.seen.count as f64 / span);
            self.name_consumers(&mut one.seen, &search.request.visible);
        }
        SeenTypes {
            items: found.into_iter().map(|found| found.seen).collect(),
            examined: search.examined,
            since: search.since,
            looked_back_to: stopped,
            left_out: left_out + search.left_out,
        }
    }

    /// Who would get the newest of them now.
    fn name_consumers(&self, seen: &mut SeenType, visible: &Visible) {
        let record = self.shared.log.get(seen.sample).ok();
        let Some(record) = record.and_then(crate::log::Lookup::found) else {
            return;
        };
        let Ok((entry, event)) = envelope::entry_and_event(&record.payload) else {
            return;
        };
        let table = self.table();
        let mut numbers = Vec::new();
        table.matches(entry, &event, &mut numbers);
        let consumers = table.consumers();
        let keys = numbers
            .iter()
            .map(|number| &consumers[*number as usize].key);
        let mut keys = keys.filter(|key| visible.shows_consumer(key));
        let named = keys.by_ref().take(CONSUMERS_MAX);
        seen.consumers = named.map(|key| key.to_string()).collect();
        seen.more_consumers = keys.count() as u64;
    }
}

impl TypeSearch {
    fn wants(&self, entry: &str, offset: Offset, event: &Event) -> bool {
        let entries = self.entries.as_ref();
        let type_ = self.request.type_.as_deref();
        !heartbeat::is_reserved(event.type_())
            && type_.is_none_or(|type_| type_ == event.type_())
            && self.request.visible.shows(entry, offset)
            && entries.is_none_or(|entries| entries.iter().any(|known| **known == *entry))
    }

    /// What its data is, if whoever asks may know.
    fn sample(&self, entry: &str, offset: Offset, event: &Event) -> Option<Value> {
        let kind = event.text("datacontenttype");
        let is_json = kind.is_none_or(|kind| kind.contains("json"));
        let data = event.data()?;
        if !is_json
            || data.len() > SAMPLE_BYTES_MAX
            || !self.request.visible.shows_data(entry, offset)
        {
            return None;
        }
        let mut sample = serde_json::from_slice(&data).ok()?;
        if let Some(mask) = self.request.visible.mask() {
            mask.remove(&mut sample);
        }
        Some(sample)
    }
}

impl Look for TypeSearch {
    fn record(&mut self, record: Record) {
        let Ok(Envelope { entry, event, .. }) = Envelope::decode(&record.payload) else {
            return;
        };
        if !self.wants(&entry, record.offset, &event) {
            return;
        }
        self.examined += 1;
        let since = self.since.unwrap_or(record.at).min(record.at);
        self.since = Some(since);
        let key = TypeKey {
            type_: event.type_().to_owned(),
            source: event.source().to_owned(),
            entry: entry.to_string(),
        };
        if self.found.len() >= KNOWN_MAX && !self.found.contains_key(&key) {
            self.left_out = self.left_out.max(1);
            return;
        }
        let looks_into = (self.found.get(&key)).is_none_or(|one| one.shape.samples() < SAMPLES_MAX);
        let sample = looks_into
            .then(|| self.sample(&entry, record.offset, &event))
            .flatten();
        let found = self.found.entry(key).or_insert_with_key(|key| FoundType {
            seen: SeenType {
                type_: key.type_.clone(),
                source: key.source.clone(),
                entry: key.entry.clone(),
                first_seen: record.at,
                last_seen: record.at,
                ..SeenType::default()
            },
            shape: DataShape::default(),
        });
        found.seen.count += 1;
        found.seen.first_seen = found.seen.first_seen.min(record.at);
        found.seen.last_seen = found.seen.last_seen.max(record.at);
        found.seen.sample = found.seen.sample.max(record.offset);
        if let Some(sample) = sample {
            found.shape.add(&sample);
        }
    }

    fn chunk(&mut self) -> Result<ControlFlow<()>, Error> {
        Ok(match self.examined >= self.request.last {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        })
    }
}
