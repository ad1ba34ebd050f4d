//! What if this were applied, or that were deleted? The newest events are matched by the table in force and by the one that the
//! change would give, and each consumer that would get others is told.
//!
//! Nothing is changed by it: tables are compiled by a pure function, and a table that is not installed does nothing. What
//! deliveries, replies and positions would come to is not told, only who wants what. Events that whoever asks may not see are
//! neither counted nor named: what they may not look for, they do not learn by way of a change either.

mod change;

use std::ops::ControlFlow;
use std::sync::Arc;

use heddle_api::ledger::ExplainedEvent;
use heddle_api::what_if::{ChangedConsumer, WhatIf, WhatIfRequest};
use jiff::Timestamp;

pub(crate) use self::change::objects;
use super::Error;
use super::look_back::{LOOK_BYTES_MAX, Look, LookBack};
use super::visible::Visible;
use crate::envelope;
use crate::event::Event;
use crate::heartbeat;
use crate::log::{Offset, Record};
use crate::mesh::Mesh;
use crate::routes::{Rejected, Table, recompile_with};

/// Events named one by one, of those that a consumer would gain and of those that it would lose.
const SHOWN_MAX: usize = 5;
/// Events that are held until it is known whether they count, with everybody who wants them.
const CHUNK_RECORDS: u64 = 1024;
/// Consumers that are told; the table may have a hundred thousand.
const CONSUMERS_MAX: usize = 500;

impl Mesh {
    /// What a change would have done with the newest events that whoever asks may see, for the consumers that they see.
    pub async fn what_if(
        &self,
        request: WhatIfRequest,
        visible: &Visible,
    ) -> Result<WhatIf, Error> {
        if request.last > WhatIfRequest::LAST_MAX {
            let max = WhatIfRequest::LAST_MAX;
            let text = format!("at most {max} events are looked at; ask for fewer");
            return Err(Error::Invalid(text));
        }
        let (before, last) = (self.table(), request.last);
        let resources = self.shared.resources.load_full();
        let known = Arc::clone(&before);
        let after = self.aside(move |mesh| {
            let changed = change::changed(&resources, &request)?;
            let canary = mesh.shared.heartbeats.has_sink();
            Ok(Arc::new(recompile_with(&changed, &known, canary)))
        });
        let after = after.await?;
        let mut comparison = Comparison::new(before, after, visible.clone(), last);
        if last > 0 {
            let looking = LookBack::new(
                Arc::clone(&self.shared.log),
                Arc::clone(&self.shared.hints),
                0..Offset::MAX,
                Vec::new(),
                comparison,
            )
            .in_chunks_of(CHUNK_RECORDS);
            (comparison, _) = self.look(looking, LOOK_BYTES_MAX).await?;
        }
        Ok(comparison.told())
    }
}

/// A table, and where each of its consumers stands among those of both.
struct Side {
    table: Arc<Table>,
    /// By the table's number, in ascending order: both are sorted by key.
    places: Vec<u32>,
    matched: Vec<u32>,
}

impl Side {
    fn new(table: Arc<Table>, keys: &[Arc<str>]) -> Self {
        let mut places = Vec::with_capacity(table.consumers().len());
        let mut at = 0;
        for consumer in table.consumers() {
            while keys[at] != consumer.key {
                at += 1;
            }
            places.push(u32::try_from(at).expect("consumers are counted in 32 bits"));
        }
        Self {
            table,
            places,
            matched: Vec::new(),
        }
    }

    /// Who wants an event, in ascending order.
    fn wanting(&mut self, entry: &str, event: &Event) -> Box<[u32]> {
        self.table.matches(entry, event, &mut self.matched);
        let numbers = self.matched.iter();
        numbers
            .map(|number| self.places[*number as usize])
            .collect()
    }
}

/// Two tables, and what each makes of the same events.
struct Comparison {
    before: Side,
    after: Side,
    visible: Visible,
    /// How many events are still to be looked at.
    left: u64,
    /// Of the chunk, oldest first.
    chunk: Vec<Compared>,
    /// Of both tables, in the order of their keys.
    consumers: Vec<ChangedConsumer>,
    answer: WhatIf,
}

/// One event, and who wants it as things are and as they would be.
struct Compared {
    event: ExplainedEvent,
    at: Timestamp,
    before: Box<[u32]>,
    after: Box<[u32]>,
}

impl Comparison {
    fn new(before: Arc<Table>, after: Arc<Table>, visible: Visible, left: u64) -> Self {
        let all = before.consumers().iter().chain(after.consumers());
        let mut keys: Vec<Arc<str>> = all.map(|one| Arc::clone(&one.key)).collect();
        keys.sort();
        keys.dedup();
        let consumers = keys.iter().map(|key| ChangedConsumer {
            consumer: key.to_string(),
            created: before.consumer(key).is_none(),
            deleted: after.consumer(key).is_none(),
            ..ChangedConsumer::default()
        });
        Self {
            consumers: consumers.collect(),
            before: Side::new(before, &keys),
            after: Side::new(after, &keys),
            visible,
            left,
            chunk: Vec::new(),
            answer: WhatIf::default(),
        }
    }

    fn count(&mut self, compared: &Compared) {
        self.answer.examined += 1;
        self.answer.to.get_or_insert(compared.at);
        self.answer.from = Some(compared.at);
        for place in &compared.before {
            let counted = &mut self.consumers[*place as usize];
            counted.before += 1;
            if compared.after.binary_search(place).is_err() {
                counted.lost += 1;
                show(&mut counted.lost_events, &compared.event);
            }
        }
        for place in &compared.after {
            let counted = &mut self.consumers[*place as usize];
            counted.after += 1;
            if compared.before.binary_search(place).is_err() {
                counted.gained += 1;
                show(&mut counted.gained_events, &compared.event);
            }
        }
    }

    /// Those that change, and those that come and go although no event tells.
    fn told(self) -> WhatIf {
        let sees = |consumer: &str| self.visible.shows_consumer(consumer);
        let changes = |one: &ChangedConsumer| one.gained + one.lost;
        let mut consumers: Vec<ChangedConsumer> = self
            .consumers
            .into_iter()
            .filter(|one| one.created || one.deleted || changes(one) > 0)
            .filter(|one| sees(&one.consumer) && !heartbeat::is_consumer(&one.consumer))
            .collect();
        consumers.sort_by_key(|one| std::cmp::Reverse(changes(one)));
        consumers.truncate(CONSUMERS_MAX);
        let (before, after) = (&self.before.table, &self.after.table);
        let known = |found: &&Rejected| {
            before.rejected().contains(found) || before.faults().contains(found)
        };
        let problems = after.rejected().iter().chain(after.faults());
        let problems = problems.filter(|found| sees(&found.key) && !known(found));
        WhatIf {
            consumers,
            problems: problems
                .map(|found| format!("{}: {}", found.key, found.reason))
                .collect(),
            ..self.answer
        }
    }
}

fn show(shown: &mut Vec<ExplainedEvent>, event: &ExplainedEvent) {
    if shown.len() < SHOWN_MAX {
        shown.push(event.clone());
    }
}

impl Look for Comparison {
    fn record(&mut self, record: Record) {
        let Ok((entry, event)) = envelope::entry_and_event(&record.payload) else {
            return;
        };
        let is_shown = self.visible.shows(entry, record.offset);
        if !is_shown || heartbeat::is_reserved(event.type_()) {
            return;
        }
        self.chunk.push(Compared {
            before: self.before.wanting(entry, &event),
            after: self.after.wanting(entry, &event),
            event: ExplainedEvent {
                offset: record.offset,
                source: event.source().to_owned(),
                id: event.id().to_owned(),
                type_: event.type_().to_owned(),
                reason: String::new(),
            },
            at: record.at,
        });
    }

    /// Newest first, as far as they count.
    fn chunk(&mut self) -> Result<ControlFlow<()>, Error> {
        let chunk = std::mem::take(&mut self.chunk);
        for compared in chunk.iter().rev() {
            if self.left == 0 {
                break;
            }
            self.left -= 1;
            self.count(compared);
        }
        Ok(match self.left {
            0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        })
    }
}
