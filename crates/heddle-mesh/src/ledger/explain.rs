//! A proposed filter, tried on stored events before anybody relies on it.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;

use heddle_api::filter::FilterSource;
use heddle_api::ledger::{ExplainRequest, ExplainedEvent, Explanation};

use super::Error;
use super::look_back::{LOOK_BYTES_MAX, Look};
use crate::envelope;
use crate::event::Event;
use crate::heartbeat;
use crate::log::{Offset, Record};
use crate::mesh::Mesh;
use crate::path::trigger::Predicate;

/// Events named one by one, of those that match and of those that do not.
const SHOWN_MAX: usize = 10;

impl Mesh {
    /// How many of the newest events that reach an entry would match, and why the newest others would not. Events that do
    /// not reach it are not counted, however many came in between.
    pub async fn explain(&self, request: &ExplainRequest) -> Result<Explanation, Error> {
        let source = FilterSource::Filters(request.filters.clone());
        let predicate =
            Predicate::compile(&source).map_err(|error| Error::Invalid(error.to_string()))?;
        let entries = self.table().reaching(&request.entry);
        if entries.is_empty() {
            return Err(Error::NotFound(format!("{} does not exist", request.entry)));
        }
        let mut trial = Trial {
            predicate,
            entries,
            left: request.last,
            chunk: ExplainedChunk::default(),
            explanation: Explanation::default(),
        };
        if request.last > 0 {
            let everything = 0..Offset::MAX;
            let stopped = self.look_back(everything, LOOK_BYTES_MAX, &mut trial);
            let stopped = stopped.await?;
            trial.explanation.looked_back_to = stopped.filter(|_| trial.left > 0);
        }
        Ok(trial.explanation)
    }
}

/// A filter that is being tried.
struct Trial {
    predicate: Predicate,
    entries: Vec<Arc<str>>,
    /// How many events are still to be examined.
    left: u64,
    chunk: ExplainedChunk,
    explanation: Explanation,
}

/// What was found in a chunk, oldest first. Only the newest of it may count.
#[derive(Default)]
struct ExplainedChunk {
    examined: VecDeque<(Offset, bool)>,
    matches: VecDeque<ExplainedEvent>,
    misses: VecDeque<ExplainedEvent>,
}

impl Look for Trial {
    fn record(&mut self, record: Record) {
        let Ok((entry, event)) = envelope::entry_and_event(&record.payload) else {
            return;
        };
        if !self.entries.iter().any(|reaching| **reaching == *entry)
            || heartbeat::is_reserved(event.type_())
        {
            return;
        }
        let verdict = self.predicate.explain(&event);
        let chunk = &mut self.chunk;
        chunk.examined.push_back((record.offset, verdict.is_ok()));
        if chunk.examined.len() as u64 > self.left {
            chunk.examined.pop_front();
        }
        let kept = if verdict.is_ok() {
            &mut chunk.matches
        } else {
            &mut chunk.misses
        };
        kept.push_back(explained(record.offset, &event, verdict));
        if kept.len() > SHOWN_MAX {
            kept.pop_front();
        }
    }

    fn chunk(&mut self) -> ControlFlow<()> {
        let chunk = std::mem::take(&mut self.chunk);
        let Some((oldest, _)) = chunk.examined.front().copied() else {
            return ControlFlow::Continue(());
        };
        let counted = chunk.examined.len() as u64;
        let explanation = &mut self.explanation;
        explanation.examined += counted;
        explanation.matched += chunk.examined.iter().filter(|(_, is)| *is).count() as u64;
        self.left -= counted;
        for (shown, found) in [
            (&mut explanation.matches, chunk.matches),
            (&mut explanation.misses, chunk.misses),
        ] {
            let counted = found.into_iter().rev().filter(|one| one.offset >= oldest);
            shown.extend(counted.take(SHOWN_MAX - shown.len()));
        }
        match self.left {
            0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

fn explained(offset: Offset, event: &Event, verdict: Result<(), String>) -> ExplainedEvent {
    ExplainedEvent {
        offset,
        source: event.source().to_owned(),
        id: event.id().to_owned(),
        type_: event.type_().to_owned(),
        reason: verdict
            .err()
            .unwrap_or_else(|| "every term holds".to_owned()),
    }
}
