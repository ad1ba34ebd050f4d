//! A proposed filter, tried on stored events before anybody relies on it.

use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;

use heddle_api::cesql::Expression;
use heddle_api::filter::FilterSource;
use heddle_api::ledger::{
    ExplainRequest, ExplainedEvent, Explanation, FilterDifference, MissReason, TermTruth,
};

use super::Error;
use super::look_back::{LOOK_BYTES_MAX, Look, LookBack};
use super::visible::Visible;
use crate::envelope;
use crate::event::Event;
use crate::heartbeat;
use crate::log::{Offset, Record};
use crate::mesh::Mesh;
use crate::path::trigger::Predicate;

/// Events named one by one, of those that match and of those that do not.
const SHOWN_MAX: usize = 10;
/// Reasons that are told apart, and told.
const REASONS_MAX: usize = 1000;
const REASONS_TOLD_MAX: usize = 50;
const OTHER_REASONS: &str = "other reasons, too many to tell apart";
const HOLDS: &str = "every term holds";

impl Mesh {
    /// How many of the newest events that reach an entry would match, and why the newest others would not. Events that do
    /// not reach it are not counted, however many came in between, nor are those that whoever asks may not see.
    pub async fn explain(
        &self,
        request: &ExplainRequest,
        visible: &Visible,
    ) -> Result<Explanation, Error> {
        if request.last > ExplainRequest::LAST_MAX {
            let max = ExplainRequest::LAST_MAX;
            let text = format!("at most {max} events are looked at; ask for fewer");
            return Err(Error::Invalid(text));
        }
        let source = FilterSource::Filters(request.filters.clone());
        let predicate = Predicate::compile(&source).map_err(|error| Error::Filter {
            message: error.to_string(),
            position: misread(request),
        })?;
        let entries = self.table().reaching(&request.entry);
        if entries.is_empty() {
            return Err(Error::NotFound(format!("{} does not exist", request.entry)));
        }
        let in_force = match &request.against {
            Some(consumer) => Some(self.filter_in_force(consumer, visible)?),
            None => None,
        };
        let terms = match request.offset {
            Some(offset) => {
                let seen = ReachingEvents {
                    entries: entries.clone(),
                    visible: visible.clone(),
                };
                self.truths(offset, predicate.clone(), seen).await?
            }
            None => Vec::new(),
        };
        let mut trial = Trial {
            predicate,
            in_force,
            events: ReachingEvents {
                entries,
                visible: visible.clone(),
            },
            left: request.last,
            chunk: TrialChunk::default(),
            reasons: Reasons::default(),
            explanation: Explanation {
                terms,
                difference: request.against.as_ref().map(|consumer| FilterDifference {
                    consumer: consumer.clone(),
                    ..FilterDifference::default()
                }),
                ..Explanation::default()
            },
        };
        if request.last > 0 {
            let looking = LookBack::new(
                Arc::clone(&self.shared.log),
                Arc::clone(&self.shared.hints),
                0..request.before.unwrap_or(Offset::MAX),
                Vec::new(),
                trial,
            );
            let (looked, stopped) = self.look(looking, LOOK_BYTES_MAX).await?;
            trial = looked;
            trial.explanation.looked_back_to = stopped.filter(|_| trial.left > 0);
        }
        trial.explanation.reasons = trial.reasons.told();
        Ok(trial.explanation)
    }

    /// What decides about a consumer's events now.
    fn filter_in_force(&self, consumer: &str, visible: &Visible) -> Result<Arc<Predicate>, Error> {
        let found = self.shared.consumers.read().by_key.get(consumer).cloned();
        // Of others not even that they are there is told.
        let found = found.filter(|found| visible.shows_consumer(&found.key));
        let revision = found.and_then(|found| {
            let state = found.lock();
            let newest = state.routing.revisions.last();
            newest.map(|revision| Arc::clone(&revision.predicate))
        });
        revision.ok_or_else(|| Error::NotFound(format!("{consumer} is not part of the routes")))
    }

    /// What each term says about one event.
    async fn truths(
        &self,
        offset: Offset,
        predicate: Predicate,
        events: ReachingEvents,
    ) -> Result<Vec<TermTruth>, Error> {
        self.aside(move |mesh| {
            let record = mesh.shared.log.get(offset)?.found();
            let event = record.as_ref().and_then(|record| events.read_one(record));
            let missing = || Error::NotFound(format!("there is no event at place {offset}"));
            Ok(predicate.truths(&event.ok_or_else(missing)?))
        })
        .await
    }
}

/// The events that a filter is tried on: those that reach a place, as far as whoever asks may see them.
struct ReachingEvents {
    entries: Vec<Arc<str>>,
    visible: Visible,
}

impl ReachingEvents {
    /// The event of a record, if it is one of them.
    fn read(&self, record: &Record) -> Option<Event> {
        let (entry, event) = envelope::entry_and_event(&record.payload).ok()?;
        let reaches = self.entries.iter().any(|reaching| **reaching == *entry);
        let is_one = reaches && self.visible.shows(entry, record.offset);
        (is_one && !heartbeat::is_reserved(event.type_())).then_some(event)
    }

    /// The same of an event that somebody named. Whoever sees everything may ask about any.
    fn read_one(&self, record: &Record) -> Option<Event> {
        match self.visible.is_everything() {
            true => Some(envelope::entry_and_event(&record.payload).ok()?.1),
            false => self.read(record),
        }
    }
}

/// The character at which the first expression that cannot be read goes wrong.
fn misread(request: &ExplainRequest) -> Option<usize> {
    let texts = request.filters.iter();
    let mut texts = texts.filter_map(|filter| filter.cesql.as_deref());
    texts.find_map(|text| {
        let error = Expression::parse(text).err()?;
        let before = text.get(..error.position).unwrap_or(text);
        Some(before.chars().count())
    })
}

/// A filter that is being tried.
struct Trial {
    predicate: Predicate,
    /// The one that is to be replaced.
    in_force: Option<Arc<Predicate>>,
    events: ReachingEvents,
    /// How many events are still to be examined.
    left: u64,
    chunk: TrialChunk,
    reasons: Reasons,
    explanation: Explanation,
}

/// What was found in a chunk, oldest first. Only the newest of it may count.
#[derive(Default)]
struct TrialChunk {
    examined: VecDeque<Examined>,
    matches: VecDeque<ExplainedEvent>,
    misses: VecDeque<ExplainedEvent>,
    gained: VecDeque<ExplainedEvent>,
    lost: VecDeque<ExplainedEvent>,
}

#[derive(Clone, Copy)]
struct Examined {
    offset: Offset,
    /// `None` for one that matches.
    reason: Option<u32>,
    matched_before: Option<bool>,
}

/// Why events do not match, and how many of them.
#[derive(Default)]
struct Reasons {
    numbers: HashMap<String, u32>,
    counts: Vec<MissReason>,
}

impl Reasons {
    fn number(&mut self, reason: &str) -> u32 {
        if let Some(number) = self.numbers.get(reason) {
            return *number;
        }
        let reason = match self.numbers.len() < REASONS_MAX {
            true => reason,
            false => OTHER_REASONS,
        };
        let next = u32::try_from(self.counts.len()).expect("reasons are bounded");
        let number = *self.numbers.entry(reason.to_owned()).or_insert(next);
        if number == next {
            self.counts.push(MissReason {
                reason: reason.to_owned(),
                count: 0,
                sample: None,
            });
        }
        number
    }

    fn count(&mut self, number: u32, offset: Offset) {
        let reason = &mut self.counts[number as usize];
        reason.count += 1;
        if reason.reason != OTHER_REASONS {
            reason.sample = reason.sample.max(Some(offset));
        }
    }

    fn told(self) -> Vec<MissReason> {
        let mut told = self.counts;
        told.retain(|reason| reason.count > 0);
        told.sort_by(|one, other| {
            (other.count.cmp(&one.count)).then_with(|| one.reason.cmp(&other.reason))
        });
        if told.len() > REASONS_TOLD_MAX {
            let rest = told.split_off(REASONS_TOLD_MAX - 1);
            told.push(MissReason {
                reason: OTHER_REASONS.to_owned(),
                count: rest.iter().map(|reason| reason.count).sum(),
                sample: None,
            });
        }
        told
    }
}

impl Look for Trial {
    fn record(&mut self, record: Record) {
        let Some(event) = self.events.read(&record) else {
            return;
        };
        let why_not = self.predicate.explain(&event).err();
        let matched_before = (self.in_force.as_ref()).map(|in_force| in_force.matches(&event));
        let chunk = &mut self.chunk;
        chunk.examined.push_back(Examined {
            offset: record.offset,
            reason: why_not.as_deref().map(|reason| self.reasons.number(reason)),
            matched_before,
        });
        if chunk.examined.len() as u64 > self.left {
            chunk.examined.pop_front();
        }
        let changed = match (why_not.is_none(), matched_before) {
            (true, Some(false)) => Some(&mut chunk.gained),
            (false, Some(true)) => Some(&mut chunk.lost),
            _ => None,
        };
        let kept = if why_not.is_none() {
            &mut chunk.matches
        } else {
            &mut chunk.misses
        };
        let reason = why_not.as_deref().unwrap_or(HOLDS);
        for kept in [Some(kept), changed].into_iter().flatten() {
            kept.push_back(explained(record.offset, &event, reason));
            if kept.len() > SHOWN_MAX {
                kept.pop_front();
            }
        }
    }

    fn chunk(&mut self) -> Result<ControlFlow<()>, Error> {
        let chunk = std::mem::take(&mut self.chunk);
        let Some(oldest) = chunk.examined.front().map(|one| one.offset) else {
            return Ok(ControlFlow::Continue(()));
        };
        let counted = chunk.examined.len() as u64;
        let explanation = &mut self.explanation;
        explanation.examined += counted;
        self.left -= counted;
        let (mut gained, mut lost) = (0, 0);
        for one in &chunk.examined {
            match one.reason {
                None => explanation.matched += 1,
                Some(reason) => self.reasons.count(reason, one.offset),
            }
            match (one.reason, one.matched_before) {
                (None, Some(false)) => gained += 1,
                (Some(_), Some(true)) => lost += 1,
                _ => {}
            }
        }
        show(&mut explanation.matches, chunk.matches, oldest);
        show(&mut explanation.misses, chunk.misses, oldest);
        if let Some(difference) = &mut explanation.difference {
            difference.gained += gained;
            difference.lost += lost;
            show(&mut difference.gained_events, chunk.gained, oldest);
            show(&mut difference.lost_events, chunk.lost, oldest);
        }
        Ok(match self.left {
            0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        })
    }
}

/// Adds those that count, newest first, as far as there is room.
fn show(shown: &mut Vec<ExplainedEvent>, found: VecDeque<ExplainedEvent>, oldest: Offset) {
    let counted = found.into_iter().rev().filter(|one| one.offset >= oldest);
    shown.extend(counted.take(SHOWN_MAX - shown.len()));
}

fn explained(offset: Offset, event: &Event, reason: &str) -> ExplainedEvent {
    ExplainedEvent {
        offset,
        source: event.source().to_owned(),
        id: event.id().to_owned(),
        type_: event.type_().to_owned(),
        reason: reason.to_owned(),
    }
}
