//! Why did nothing arrive between two moments? What came in that time, by which terms it missed, and the smallest change of
//! the filter that would have let some of it pass (`nearest`).
//!
//! Each event is judged by the filter that decided about it when it came, as its trace is. What whoever asks may not see is
//! not counted. The log has no record of pauses and policies of the past: what holds a consumer now is told as that.

mod nearest;

use std::collections::HashMap;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use heddle_api::access::namespace_of;
use heddle_api::attributes::Attributes;
use heddle_api::ledger::ExplainedEvent;
use heddle_api::silence::{FilterRevision, MissGroup, Silence};
use jiff::Timestamp;

use self::nearest::NearMisses;
use super::Error;
use super::look_back::{LOOK_BYTES_MAX, Look, LookBack};
use super::trace::held;
use super::visible::Visible;
use crate::consumer::{CompiledRevision, decided_ranges};
use crate::envelope;
use crate::event::Event;
use crate::heartbeat;
use crate::log::{Offset, Record};
use crate::mesh::Mesh;
use crate::path::trigger::Predicate;

/// Ways to miss that are told apart, and told.
const GROUPS_MAX: usize = 1_000;
const GROUPS_TOLD_MAX: usize = 20;
/// Changes that are proposed.
const EDITS_MAX: usize = 5;
/// Filters of that time, and what is not in force, that are told.
const TOLD_MAX: usize = 20;

/// What is asked.
#[derive(Clone, Debug)]
pub struct SilenceRequest {
    /// Its key: `trigger/team-a/orders`.
    pub consumer: String,
    pub since: Timestamp,
    /// Now, unless somebody says when.
    pub until: Option<Timestamp>,
}

impl Mesh {
    /// Why a consumer got nothing in a time, as far as whoever asks may know.
    pub async fn silence(
        &self,
        request: &SilenceRequest,
        visible: &Visible,
    ) -> Result<Silence, Error> {
        let SilenceRequest {
            consumer,
            since,
            until,
        } = request;
        if until.is_some_and(|until| *since >= until) {
            let text = "the time ends before it begins; since is before until".to_owned();
            return Err(Error::Invalid(text));
        }
        let found = self
            .shared
            .consumers
            .read()
            .by_key
            .get(&**consumer)
            .cloned();
        // Of others not even that they are there is told.
        let found = found.filter(|found| visible.shows_consumer(&found.key));
        let Some(found) = found else {
            let text = format!("{consumer} is not part of the routes");
            return Err(Error::NotFound(text));
        };
        let (since, until) = (*since, *until);
        let range = self.aside(move |mesh| {
            let log = &mesh.shared.log;
            // What comes in this very moment has come.
            let end = until.map_or_else(|| log.bounds().end, |until| log.at_time(until));
            Ok(log.at_time(since)..end)
        });
        let range = range.await?;
        let (revisions, held) = {
            let state = found.lock();
            (state.routing.revisions.clone(), held(&state))
        };
        let mut time = SilentTime::new(&revisions, visible.clone());
        time.silence = Silence {
            consumer: consumer.clone(),
            since,
            until: until.unwrap_or_else(|| self.shared.clock.now()),
            from: range.start,
            before: range.end,
            revisions: revisions_within(&revisions, &range),
            held,
            faults: self.faults_around(consumer),
            ..Silence::default()
        };
        let looking = LookBack::new(
            Arc::clone(&self.shared.log),
            Arc::clone(&self.shared.hints),
            range,
            Vec::new(),
            time,
        );
        let (looked, stopped) = self.look(looking, LOOK_BYTES_MAX).await?;
        Ok(looked.told(stopped))
    }

    /// What is not in force of a consumer and its namespace, and links that no policy lets into it.
    fn faults_around(&self, consumer: &str) -> Vec<String> {
        let table = self.table();
        let namespace = namespace_of(consumer).unwrap_or_default();
        let is_near = |key: &str| namespace_of(key) == Some(namespace);
        let all = table.rejected().iter().chain(table.faults());
        let near = all.filter(|fault| is_near(&fault.key));
        let near = near.map(|fault| (&*fault.key, &*fault.reason));
        let denied = table.denied_into(namespace);
        let denied = denied.filter(|(key, _)| !is_near(key));
        let told = near.chain(denied);
        told.map(|(key, why)| format!("{key}: {why}"))
            .take(TOLD_MAX)
            .collect()
    }
}

/// Filters that came into force in a part of the log.
fn revisions_within(revisions: &[CompiledRevision], range: &Range<Offset>) -> Vec<FilterRevision> {
    let within = revisions.iter().filter(|one| range.contains(&one.from));
    let told = within.map(|one| FilterRevision {
        from: one.from,
        generation: one.generation,
        terms: one
            .predicate
            .asked()
            .into_iter()
            .map(|(term, _)| term)
            .collect(),
    });
    told.rev().take(TOLD_MAX).collect()
}

/// A filter, and the places of the log about which it decided.
struct DecidingFilter {
    range: Range<Offset>,
    feeds: Vec<String>,
    predicate: Arc<Predicate>,
    /// The number of each of its terms among all of them.
    terms: Vec<u32>,
}

/// A term of any of the filters.
struct KnownTerm {
    text: String,
    near: Option<NearMisses>,
}

/// Events that missed by the same terms.
#[derive(Default)]
struct MissCount {
    count: u64,
    sample: Option<ExplainedEvent>,
}

/// What came in that time.
struct SilentTime {
    filters: Vec<DecidingFilter>,
    terms: Vec<KnownTerm>,
    visible: Visible,
    /// By the numbers of the failing terms; those of no number are too many to tell apart.
    groups: HashMap<Box<[u32]>, MissCount>,
    silence: Silence,
}

impl SilentTime {
    fn new(revisions: &[CompiledRevision], visible: Visible) -> Self {
        let mut terms: Vec<KnownTerm> = Vec::new();
        let mut filters = Vec::new();
        for (revision, range) in decided_ranges(revisions) {
            let mut numbers = Vec::new();
            for (text, asked) in revision.predicate.asked() {
                let known = terms.iter().position(|term| term.text == text);
                let number = known.unwrap_or(terms.len());
                if known.is_none() {
                    let near = asked.map(NearMisses::new);
                    terms.push(KnownTerm { text, near });
                }
                numbers.push(u32::try_from(number).expect("terms are counted in 32 bits"));
            }
            filters.push(DecidingFilter {
                range,
                feeds: revision
                    .feeds
                    .iter()
                    .map(|(feed, _)| feed.clone())
                    .collect(),
                predicate: Arc::clone(&revision.predicate),
                terms: numbers,
            });
        }
        Self {
            filters,
            terms,
            visible,
            groups: HashMap::new(),
            silence: Silence::default(),
        }
    }

    fn count_miss(&mut self, failing: Box<[u32]>, offset: Offset, event: &Event) {
        if let [only] = *failing
            && let Some(near) = &mut self.terms[only as usize].near
        {
            let attributes: &dyn Attributes = event;
            if let Some(found) = attributes.text(near.attribute()) {
                near.count(found);
            }
        }
        let is_known = self.groups.contains_key(&failing) || self.groups.len() < GROUPS_MAX;
        let failing = if is_known { failing } else { Box::default() };
        let group = self.groups.entry(failing).or_default();
        group.count += 1;
        let is_newer = (group.sample.as_ref()).is_none_or(|sample| sample.offset < offset);
        if is_newer {
            group.sample = Some(ExplainedEvent {
                offset,
                source: event.source().to_owned(),
                id: event.id().to_owned(),
                type_: event.type_().to_owned(),
                reason: String::new(),
            });
        }
    }

    fn told(self, stopped: Option<Offset>) -> Silence {
        let mut silence = self.silence;
        silence.looked_back_to = stopped.filter(|stopped| *stopped > silence.from);
        let near = self.terms.iter().filter_map(|term| term.near.as_ref());
        let mut edits: Vec<_> = near.filter_map(NearMisses::edit).collect();
        edits.sort_by(|one, other| other.weight.total_cmp(&one.weight));
        edits.truncate(EDITS_MAX);
        silence.edits = edits.into_iter().map(|weighed| weighed.edit).collect();
        let mut groups: Vec<(Box<[u32]>, MissCount)> = self.groups.into_iter().collect();
        groups.sort_by(|(one, first), (other, second)| {
            // What was too much to tell apart comes last.
            let terms = (one.is_empty(), one.len()).cmp(&(other.is_empty(), other.len()));
            (terms.then(second.count.cmp(&first.count))).then_with(|| one.cmp(other))
        });
        groups.truncate(GROUPS_TOLD_MAX);
        let text = |number: &u32| self.terms[*number as usize].text.clone();
        let told = groups.into_iter().map(|(failing, group)| MissGroup {
            terms: failing.iter().map(text).collect(),
            count: group.count,
            sample: group.sample,
        });
        silence.misses = told.collect();
        silence
    }
}

impl Look for SilentTime {
    fn record(&mut self, record: Record) {
        let Ok((entry, event)) = envelope::entry_and_event(&record.payload) else {
            return;
        };
        let offset = record.offset;
        if heartbeat::is_reserved(event.type_()) || !self.visible.shows(entry, offset) {
            return;
        }
        let decides = |filter: &&DecidingFilter| {
            filter.range.contains(&offset) && filter.feeds.iter().any(|feed| feed == entry)
        };
        let Some(filter) = self.filters.iter().find(decides) else {
            self.silence.elsewhere += 1;
            return;
        };
        self.silence.came += 1;
        let failing = filter.predicate.failing(&event).into_iter();
        let failing: Box<[u32]> = failing.map(|term| filter.terms[term]).collect();
        match failing.is_empty() {
            true => self.silence.matched += 1,
            false => self.count_miss(failing, offset, &event),
        }
    }

    fn chunk(&mut self) -> Result<ControlFlow<()>, Error> {
        Ok(ControlFlow::Continue(()))
    }
}
