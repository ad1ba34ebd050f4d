//! A proposed filter, tried on stored events before anybody relies on it.

use std::collections::VecDeque;

use heddle_api::filter::{self, FilterSource};
use heddle_api::ledger::{ExplainRequest, ExplainedEvent, Explanation};

use super::Error;
use crate::envelope;
use crate::mesh::Mesh;
use crate::path::trigger::Predicate;

/// Events named one by one, of those that match and of those that do not.
const SHOWN_MAX: usize = 10;
const READ_BYTES: usize = 1 << 20;

impl Mesh {
    /// How many of the newest events that reach an entry would match, and why the newest others would not.
    pub fn explain(&self, request: &ExplainRequest) -> Result<Explanation, Error> {
        let faults = filter::check(&request.filters);
        if let Some(fault) = faults.first() {
            return Err(Error::Invalid(format!(
                "filters{}: {}",
                fault.path, fault.message
            )));
        }
        let source = FilterSource::Filters(request.filters.clone());
        let predicate =
            Predicate::compile(&source).map_err(|error| Error::Invalid(error.to_string()))?;
        let table = self.table();
        let entries = table.reaching(&request.entry);
        if entries.is_empty() {
            return Err(Error::NotFound(format!("{} does not exist", request.entry)));
        }
        let bounds = self.shared.log.bounds();
        let mut next = bounds.start.max(bounds.end.saturating_sub(request.last));
        let mut explanation = Explanation::default();
        let (mut matches, mut misses) = (VecDeque::new(), VecDeque::new());
        while next < bounds.end {
            let batch = self.shared.log.read(next, READ_BYTES)?;
            for record in &batch.records {
                let Ok((entry, event)) = envelope::entry_and_event(&record.payload) else {
                    continue;
                };
                if !entries.iter().any(|reaching| **reaching == *entry) {
                    continue;
                }
                explanation.examined += 1;
                let verdict = predicate.explain(&event);
                explanation.matched += u64::from(verdict.is_ok());
                let kept = if verdict.is_ok() {
                    &mut matches
                } else {
                    &mut misses
                };
                kept.push_front(ExplainedEvent {
                    offset: record.offset,
                    source: event.source().to_owned(),
                    id: event.id().to_owned(),
                    type_: event.type_().to_owned(),
                    reason: verdict
                        .err()
                        .unwrap_or_else(|| "every term holds".to_owned()),
                });
                kept.truncate(SHOWN_MAX);
            }
            if batch.next <= next {
                break;
            }
            next = batch.next;
        }
        explanation.matches = matches.into();
        explanation.misses = misses.into();
        Ok(explanation)
    }
}
