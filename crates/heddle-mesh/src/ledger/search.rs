//! Events by what they are, what is in them and what became of them: newest first, in steps, for as long as somebody waits.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::time::Duration;

use heddle_api::ledger::EventState;
use heddle_api::search::{EventQuery, FoundEvent, IndexedWord, LookedAt};

use super::Error;
use super::found::SoughtRecord;
use super::hints::HintWord;
use super::look_back::{CHUNK_RECORDS_MAX, Look, LookBack, LookState};
use super::reach::{self, ReachedConsumer};
use super::visible::{ShownData, Visible, shown_event};
use crate::aside::AsidePlace;
use crate::envelope::{self, Envelope};
use crate::heartbeat;
use crate::log::{Log, Offset, Record};
use crate::mesh::Mesh;

/// Events whose lines of the journal are looked up together, in one slice, and for how many consumers in all.
const TOGETHER: usize = 64;
const STATES_MAX: usize = 4096;
/// Records of a chunk when each has to be looked up in the journal.
const TRACED_CHUNK_RECORDS: u64 = 1024;
/// Bytes of events that one slice holds, and what the longest of them has.
const HELD_BYTES_MAX: usize = 1 << 20;
/// Events that a bare word may name.
const DIRECT_MAX: usize = 20;
/// What looking for them may read.
const DIRECT_BYTES_MAX: usize = 256 << 20;

/// What is looked for, and where.
#[derive(Clone, Debug)]
pub struct SearchRequest {
    pub query: EventQuery,
    /// The part of the log.
    pub range: Range<Offset>,
    /// After so many the search ends.
    pub limit: usize,
    pub visible: Visible,
    /// Whether the events themselves are wanted too.
    pub whole: bool,
}

/// A search that is under way. It ends when it is dropped.
pub struct EventSearch {
    mesh: Mesh,
    place: AsidePlace,
    looking: Option<Box<LookBack<Finder>>>,
    of: u64,
}

/// What one step of a search brought.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchStep {
    /// Newest first, and older than those of the step before.
    pub items: Vec<FoundEvent>,
    /// The same in the JSON format of CloudEvents, if that was asked for.
    pub documents: Vec<Vec<u8>>,
    pub looked_at: LookedAt,
    /// Whether there is another step.
    pub going: bool,
    /// Where another search goes on; `None` when everything was looked at.
    pub next: Option<Offset>,
}

impl Mesh {
    /// Begins a search on somebody's behalf. Of those with the same name only their newest goes on.
    pub async fn search(
        &self,
        request: SearchRequest,
        asker: &str,
        name: Option<&str>,
    ) -> Result<EventSearch, Error> {
        if request.query.asks_for_data() && !request.visible.may_ask_for_data() {
            let text = "data may be searched by those who may read it; leave data. and text: out, or ask for the right to payloads";
            return Err(Error::Forbidden(text.to_owned()));
        }
        let mut place = self.shared.aside.enter(asker, name)?;
        // What just happened is on its way to the journal; the answer should have it.
        self.settled().await;
        let mesh = self.clone();
        let begun = place.slice(move || Finder::begin(mesh, request)).await?;
        let held = self.shared.log.segments();
        Ok(EventSearch {
            mesh: self.clone(),
            place,
            looking: Some(Box::new(begun)),
            of: held
                .iter()
                .map(|segment| segment.next - segment.first)
                .sum(),
        })
    }
}

impl fmt::Debug for EventSearch {
    /// What is looked for is somebody's own affair.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventSearch")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

impl EventSearch {
    /// The newest events that whoever searches may see and of which a word is the place, the id, the request id or the trace
    /// id; those that were found when the time is over.
    pub async fn named(
        &mut self,
        word: &str,
        visible: &Visible,
        time_max: Duration,
    ) -> Result<Vec<Offset>, Error> {
        let shared = Arc::clone(&self.mesh.shared);
        let begun = shared.clock.monotonic();
        let mut search = NameSearch {
            name: word.into(),
            visible: visible.clone(),
            found: Vec::new(),
        };
        if let Ok(offset) = word.parse() {
            let log = Arc::clone(&shared.log);
            let slice = self.place.slice(move || {
                let there = search.look_at(&*log, offset);
                (search, there)
            });
            let (back, there) = slice.await?;
            search = back;
            there?;
        }
        let kinds = [IndexedWord::Id, IndexedWord::Request, IndexedWord::Trace];
        let mut looking = LookBack::new(
            Arc::clone(&shared.log),
            Arc::clone(&shared.hints),
            0..Offset::MAX,
            kinds.map(|kind| HintWord::of(kind, word)).to_vec(),
            search,
        )
        .for_any_word();
        loop {
            let slice = self.place.slice(move || {
                let state = looking.slice();
                (looking, state)
            });
            let (back, state) = slice.await?;
            looking = back;
            let took = shared.clock.monotonic().saturating_sub(begun);
            let is_over = took >= time_max || looking.bytes() >= DIRECT_BYTES_MAX;
            if state? != LookState::Going || is_over {
                break;
            }
        }
        let found: BTreeSet<Offset> = looking.look.found.into_iter().collect();
        Ok(found.into_iter().rev().take(DIRECT_MAX).collect())
    }

    /// The next step. Whoever drops this instead of waiting ends the search.
    pub async fn step(&mut self) -> Result<SearchStep, Error> {
        let Some(mut looking) = self.looking.take() else {
            return Ok(SearchStep::default());
        };
        let slice = self.place.slice(move || {
            let state = looking.slice();
            (looking, state)
        });
        let (mut looking, state) = slice.await?;
        let state = state?;
        let range = looking.looked_at();
        let going = state == LookState::Going;
        let finder = &mut looking.look;
        let cut = finder.cut;
        let step = SearchStep {
            items: std::mem::take(&mut finder.out),
            documents: std::mem::take(&mut finder.documents),
            looked_at: match finder.request.visible.is_everything() {
                true => LookedAt {
                    from: cut.unwrap_or(range.start),
                    to: range.end,
                    of: self.of,
                },
                false => LookedAt::default(),
            },
            going: going && cut.is_none(),
            next: cut.or_else(|| (state != LookState::Through).then_some(range.start)),
        };
        if step.going {
            self.looking = Some(looking);
        }
        Ok(step)
    }

    /// How many bytes were read so far.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.looking.as_ref().map_or(0, |looking| looking.bytes())
    }
}

/// Somebody who looks for events.
struct Finder {
    mesh: Mesh,
    request: SearchRequest,
    /// Who may have a say about events that came in at an entry.
    reach: HashMap<String, Vec<ReachedConsumer>>,
    /// Hits that are taken in one slice.
    together: usize,
    /// What was found in the chunk, oldest first. No event is held: each may be as long as an event may be.
    hits: VecDeque<Offset>,
    left: usize,
    out: Vec<FoundEvent>,
    documents: Vec<Vec<u8>>,
    /// The last one that was found, when no more are wanted.
    cut: Option<Offset>,
}

impl Finder {
    /// Blocks.
    fn begin(mesh: Mesh, request: SearchRequest) -> LookBack<Self> {
        let log = Arc::clone(&mesh.shared.log);
        let hints = Arc::clone(&mesh.shared.hints);
        let query = &request.query;
        let mut range = request.range.clone();
        if let Some(since) = query.since() {
            range.start = range.start.max(log.at_time(since));
        }
        if let Some(until) = query.until() {
            range.end = range.end.min(log.at_time(until));
        }
        if let Some(place) = query.place() {
            range.start = range.start.max(place);
            range.end = range.end.min(place.saturating_add(1));
        }
        let words = query.required_words().into_iter();
        let words = words.map(|(kind, text)| HintWord::of(kind, text)).collect();
        let records_max = match query.asks_consumers() {
            true => TRACED_CHUNK_RECORDS,
            false => CHUNK_RECORDS_MAX,
        };
        let consumers = mesh.shared.user_consumers().into_iter();
        let reach = reach::by_entry(
            consumers.filter(|consumer| request.visible.shows_consumer(&consumer.key)),
        );
        let most = reach.values().map(Vec::len).max().unwrap_or_default();
        let finder = Self {
            mesh,
            reach,
            together: (STATES_MAX / most.max(1)).clamp(1, TOGETHER),
            hits: VecDeque::new(),
            left: request.limit.max(1),
            out: Vec::new(),
            documents: Vec::new(),
            cut: None,
            request,
        };
        LookBack::new(log, hints, range, words, finder).in_chunks_of(records_max)
    }

    /// How many consumers an event is in which state for, if it is one of those that are looked for.
    fn states(
        &self,
        record: &Record,
        envelope: &Envelope,
        histories: &super::trace::Histories,
    ) -> Option<BTreeMap<String, u64>> {
        let query = &self.request.query;
        let mut asked_for = !query.asks_consumers();
        let mut states = BTreeMap::new();
        for reached in self.reach.get(&*envelope.entry).into_iter().flatten() {
            let consumer = &reached.consumer;
            let wants = reached.decides(record.offset);
            let wants = wants.map(|predicate| predicate.matches(&envelope.event));
            let state = match wants {
                Some(true) => self.mesh.state_at(consumer, record.offset, histories),
                _ if Mesh::was_resent(consumer, record.offset, histories) => {
                    self.mesh.state_at(consumer, record.offset, histories)
                }
                Some(false) => EventState::Filtered,
                None => continue,
            };
            asked_for |= query.matches_consumer(&consumer.key, state);
            *states.entry(state.name().to_owned()).or_default() += 1;
        }
        asked_for.then_some(states)
    }

    /// Some of what was found, the newest first, as long as it is not too much to hold.
    fn read_newest(&mut self) -> Result<Vec<(Record, Envelope)>, Error> {
        let (mut read, mut bytes) = (Vec::new(), 0);
        while read.len() < self.together && bytes < HELD_BYTES_MAX {
            let Some(offset) = self.hits.pop_back() else {
                break;
            };
            let Some(record) = self.mesh.shared.log.get(offset)?.found() else {
                continue;
            };
            if let Ok(envelope) = Envelope::decode(&record.payload) {
                bytes += record.payload.len();
                read.push((record, envelope));
            }
        }
        Ok(read)
    }

    /// Takes events that were found, the newest first.
    fn take(&mut self, hits: &[(Record, Envelope)]) -> Result<(), Error> {
        let needs_states = !self.request.whole || self.request.query.asks_consumers();
        let histories = match needs_states {
            true => {
                let offsets = hits.iter().map(|(record, _)| record.offset).collect();
                self.mesh.histories(&offsets)?
            }
            false => BTreeMap::new(),
        };
        for (record, envelope) in hits {
            let states = match needs_states {
                true => self.states(record, envelope, &histories),
                false => Some(BTreeMap::new()),
            };
            let Some(states) = states else { continue };
            let candidate = SoughtRecord {
                record,
                envelope,
                data: None,
            };
            self.out.push(FoundEvent {
                states,
                ..candidate.shown()
            });
            if self.request.whole {
                let mut document = Vec::new();
                // That it may be read was asked when it was found.
                let shown = shown_event(
                    &envelope.event,
                    self.request.visible.unhidden(&envelope.event),
                );
                crate::event::json::write(&shown, &mut document);
                self.documents.push(document);
            }
            self.left -= 1;
            if self.left == 0 {
                self.cut = Some(record.offset);
                return Ok(());
            }
        }
        Ok(())
    }
}

impl Look for Finder {
    fn record(&mut self, record: Record) {
        let Ok(envelope) = Envelope::decode(&record.payload) else {
            return;
        };
        let visible = &self.request.visible;
        if heartbeat::is_reserved(envelope.event.type_())
            || !visible.shows(&envelope.entry, record.offset)
        {
            return;
        }
        // What is hidden is not found either.
        let data = visible.data(&envelope.entry, record.offset, &envelope.event);
        if self.request.whole && data == ShownData::Withheld {
            return;
        }
        let candidate = SoughtRecord {
            record: &record,
            envelope: &envelope,
            data: data.bytes(),
        };
        if self.request.query.matches(&candidate) {
            self.hits.push_back(record.offset);
        }
        // Each of those that are left counts, unless what became of it has a say.
        if !self.request.query.asks_consumers() && self.hits.len() > self.left {
            self.hits.pop_front();
        }
    }

    fn chunk(&mut self) -> Result<ControlFlow<()>, Error> {
        let newest = self.read_newest()?;
        self.take(&newest)?;
        Ok(match self.cut {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        })
    }

    fn unfinished(&self) -> Option<Offset> {
        let newest = self.hits.back()?;
        Some(newest + 1)
    }
}

/// Looks for events by any of their names.
struct NameSearch {
    name: Box<str>,
    visible: Visible,
    found: Vec<Offset>,
}

impl NameSearch {
    /// The event at one place.
    fn look_at(&mut self, log: &dyn Log, offset: Offset) -> Result<(), Error> {
        let Some(record) = log.get(offset)?.found() else {
            return Ok(());
        };
        let entry = envelope::entry(&record.payload);
        if entry.is_ok_and(|entry| self.visible.shows(entry, offset)) {
            self.found.push(offset);
        }
        Ok(())
    }
}

impl Look for NameSearch {
    fn record(&mut self, record: Record) {
        let Ok(envelope) = Envelope::decode(&record.payload) else {
            return;
        };
        let names = [
            Some(envelope.event.id()),
            envelope.request_id.as_deref(),
            envelope.trace_id(),
        ];
        let is_it = names.contains(&Some(&*self.name))
            && self.visible.shows(&envelope.entry, record.offset);
        if is_it && !heartbeat::is_reserved(envelope.event.type_()) {
            self.found.push(record.offset);
        }
    }

    fn chunk(&mut self) -> Result<ControlFlow<()>, Error> {
        Ok(match self.found.len() < DIRECT_MAX {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        })
    }
}
