//! How long events took from their acceptance until they were delivered, over a time.
//!
//! ```text
//!   since ──────┬───────────┬──────────── until      pieces of the time, each looked at by itself from its newest event back,
//!         ▒▒▒▒▒▒│      ▒▒▒▒▒│          ▒▒             so that a busy hour is seen all along and not at its end only
//! ```
//! What ended is in the journal, whose lines about an event are kept as long as the event. What has not ended counts with the
//! time that it has waited so far. Nothing is kept for this but the delays of one question, and those are bounded.

mod tally;

use std::collections::{BTreeSet, HashMap};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use heddle_api::delays::{DelayColumn, DelayMap, DelayRows};
use heddle_api::ledger::EventState;
use heddle_api::search::EventQuery;
use jiff::Timestamp;

use self::tally::DelayTally;
use super::Error;
use super::found::SoughtRecord;
use super::hints::HintWord;
use super::look_back::{LOOK_BYTES_MAX, Look, LookBack};
use super::reach::{self, ReachedConsumer};
use super::trace::open_state;
use super::visible::Visible;
use crate::consumer::Consumer;
use crate::envelope::Envelope;
use crate::heartbeat;
use crate::journal::record::ConsumerId;
use crate::journal::{self, JournalRecord};
use crate::log::{Offset, Record};
use crate::mesh::Mesh;
use crate::metrics::application;

/// Events and consumers that want them, of one chunk.
const PAIRS_MAX: usize = 1 << 18;
/// A chunk has this many events at least, however many want each.
const CHUNK_RECORDS_MIN: u64 = 16;
/// Delays that are kept until the answer is made: 8 MiB.
const DELAYS_MAX: u64 = 1 << 20;

/// What is asked.
#[derive(Clone, Debug)]
pub struct DelaysRequest {
    pub by: DelayRows,
    /// Which events, and of what became of them at which consumers.
    pub query: EventQuery,
    pub since: Timestamp,
    /// Now, unless somebody says when.
    pub until: Option<Timestamp>,
    /// Pieces that the time is cut into.
    pub columns: u32,
    /// How many events to look at, about. Each piece has its share.
    pub events: u64,
    pub visible: Visible,
}

impl DelaysRequest {
    pub const COLUMNS_DEFAULT: u32 = 60;
    pub const COLUMNS_MAX: u32 = 240;
    pub const EVENTS_DEFAULT: u64 = 12_000;
    /// More than anybody waits for.
    pub const EVENTS_MAX: u64 = 240_000;

    fn check(&self, now: Timestamp) -> Result<(), Error> {
        let refused = if self.query.asks_for_data() && !self.visible.may_ask_for_data() {
            let text = "data may be searched by those who may read it; leave data. and text: out, or ask for the right to payloads";
            return Err(Error::Forbidden(text.to_owned()));
        } else if self.since >= self.until.unwrap_or(now) {
            "the time ends before it begins; since is before until".to_owned()
        } else if !(1..=Self::COLUMNS_MAX).contains(&self.columns) {
            format!("columns is a number from 1 to {}", Self::COLUMNS_MAX)
        } else if !(1..=Self::EVENTS_MAX).contains(&self.events) {
            format!("events is a number from 1 to {}", Self::EVENTS_MAX)
        } else {
            return Ok(());
        };
        Err(Error::Invalid(refused))
    }
}

/// A piece of the time, and what was accepted in it.
struct DelayPiece {
    since: Timestamp,
    range: Range<Offset>,
}

impl Mesh {
    /// How long events took that whoever asks may see, at consumers that they may see.
    pub async fn delays(&self, request: DelaysRequest) -> Result<DelayMap, Error> {
        let now = self.shared.clock.now();
        request.check(now)?;
        // What just happened is on its way to the journal; the answer should have it.
        self.settled().await;
        let until = request.until.unwrap_or(now);
        let words = request.query.required_words().into_iter();
        let words: Vec<HintWord> = words.map(|(kind, text)| HintWord::of(kind, text)).collect();
        let count = request.columns;
        let bytes_max = LOOK_BYTES_MAX / count as usize;
        let (pieces, mut search) = self
            .aside(move |mesh| {
                let pieces = mesh.pieces(&request, until);
                Ok((pieces, DelaySearch::begin(mesh, request, now)))
            })
            .await?;
        let mut columns: Vec<DelayColumn> = Vec::new();
        for (column, piece) in (0..count).rev().zip(pieces.iter().rev()) {
            search.begin_column(column);
            let mut partial = false;
            if search.tally.delays >= DELAYS_MAX {
                partial = !piece.range.is_empty();
            } else if !piece.range.is_empty() {
                let looking = LookBack::new(
                    Arc::clone(&self.shared.log),
                    Arc::clone(&self.shared.hints),
                    piece.range.clone(),
                    words.clone(),
                    search,
                );
                let records = looking.look.chunk_records();
                let looking = looking.in_chunks_of(records);
                let stopped;
                (search, stopped) = self.look(looking, bytes_max).await?;
                partial = stopped.is_some();
            }
            columns.push(DelayColumn {
                since: piece.since,
                examined: search.examined,
                partial,
            });
        }
        columns.reverse();
        let since = pieces.first().map_or(until, |piece| piece.since);
        self.aside(move |_| {
            let map = DelayMap {
                by: search.request.by,
                since,
                until,
                examined: columns.iter().map(|column| column.examined).sum(),
                columns,
                ..DelayMap::default()
            };
            Ok(search.tally.told(map))
        })
        .await
    }

    /// The time that is asked about, in pieces. Blocks.
    fn pieces(&self, request: &DelaysRequest, until: Timestamp) -> Vec<DelayPiece> {
        let log = &self.shared.log;
        let count = i32::try_from(request.columns).unwrap_or(i32::MAX).max(1);
        let length = until.duration_since(request.since) / count;
        let edge = |number: i32| {
            let after = length.checked_mul(number);
            let at = after.and_then(|after| request.since.checked_add(after).ok());
            at.unwrap_or(until)
        };
        // What comes in this very moment has come.
        let end = match request.until {
            Some(until) => log.at_time(until),
            None => log.bounds().end,
        };
        let edges: Vec<Timestamp> = (0..count).map(edge).collect();
        let mut starts: Vec<Offset> = edges.iter().map(|at| log.at_time(*at)).collect();
        starts.push(end);
        let ranges = starts.windows(2).map(|pair| pair[0]..pair[1]);
        let pieces = edges.iter().zip(ranges);
        pieces
            .map(|(since, range)| DelayPiece {
                since: *since,
                range,
            })
            .collect()
    }
}

/// How an event stands at a consumer that wants it.
#[derive(Clone, Copy, Debug)]
enum PairOutcome {
    Open { has_failed: bool },
    Delivered(Timestamp),
    Undelivered(EventState),
}

/// An event of the chunk and a consumer that wants it.
struct WantedPair {
    row: usize,
    accepted_at: Timestamp,
    outcome: PairOutcome,
}

/// Somebody who looks at how long events took.
struct DelaySearch {
    mesh: Mesh,
    request: DelaysRequest,
    now: Timestamp,
    /// Who may have a say about events that came in at an entry.
    reach: HashMap<String, Vec<ReachedConsumer>>,
    consumers: HashMap<ConsumerId, Arc<Consumer>>,
    pairs: HashMap<(Offset, ConsumerId), WantedPair>,
    tally: DelayTally,
    column: u32,
    /// Of this column: events, and heartbeats.
    examined: u64,
    heartbeats: u64,
    /// Events of one column.
    share: u64,
}

impl DelaySearch {
    fn begin(mesh: &Mesh, request: DelaysRequest, now: Timestamp) -> Self {
        let all = mesh.shared.all_consumers().into_iter();
        let shown = all.filter(|consumer| match consumer.hears_heartbeats() {
            true => request.visible.is_everything(),
            false => request.visible.shows_consumer(&consumer.key),
        });
        let asked = shown.filter(|consumer| request.query.may_be_consumer(&consumer.key));
        let consumers: HashMap<ConsumerId, Arc<Consumer>> =
            asked.map(|consumer| (consumer.id, consumer)).collect();
        Self {
            reach: reach::by_entry(consumers.values().cloned()),
            share: (request.events / u64::from(request.columns)).max(1),
            mesh: mesh.clone(),
            request,
            now,
            consumers,
            pairs: HashMap::new(),
            tally: DelayTally::default(),
            column: 0,
            examined: 0,
            heartbeats: 0,
        }
    }

    fn begin_column(&mut self, column: u32) {
        self.column = column;
        (self.examined, self.heartbeats) = (0, 0);
    }

    /// Records of a chunk, so that what is held of it is bounded whatever wants them.
    fn chunk_records(&self) -> u64 {
        let most = self.reach.values().map(Vec::len).max().unwrap_or_default();
        let fitting = (PAIRS_MAX / most.max(1)) as u64;
        self.share.min(fitting).max(CHUNK_RECORDS_MIN)
    }

    /// Whether this is an event that is asked about, and there is still a place for it.
    fn wants(&self, record: &Record, envelope: &Envelope, is_heartbeat: bool) -> bool {
        let (entry, offset) = (&*envelope.entry, record.offset);
        let visible = &self.request.visible;
        if is_heartbeat && (!visible.is_everything() || self.heartbeats >= self.share) {
            return false;
        }
        if !is_heartbeat && !visible.shows(entry, offset) {
            return false;
        }
        // What is hidden is not asked about either.
        let data = visible.data(entry, offset, &envelope.event);
        self.request.query.matches(&SoughtRecord {
            record,
            envelope,
            data: data.bytes(),
        })
    }

    /// What the row of an event at a consumer is called. Heartbeats are told apart by where they go.
    fn row_name<'a>(&self, envelope: &'a Envelope, consumer: &'a Consumer) -> String {
        let by = match consumer.hears_heartbeats() {
            true => DelayRows::Trigger,
            false => self.request.by,
        };
        match by {
            DelayRows::Trigger => consumer.key.to_string(),
            DelayRows::Type => envelope.event.type_().to_owned(),
            DelayRows::Application => match application(&envelope.entry) {
                "" => envelope.entry.to_string(),
                application => format!("application/{application}"),
            },
        }
    }

    /// Finds out what became of the pairs of the chunk.
    fn follow(&mut self) -> Result<(), Error> {
        let offsets = self.pairs.keys().map(|(offset, _)| *offset);
        let buckets: BTreeSet<u64> = offsets.map(journal::bucket_of).collect();
        let journal = self.mesh.shared.log.journal();
        for bucket in buckets {
            for at in journal.find(bucket, usize::MAX)? {
                let Some(record) = journal.get(at)?.found() else {
                    continue;
                };
                let Ok(lines) = journal::decode(&record.payload) else {
                    continue;
                };
                for line in &lines {
                    if let (Some(offset), Some(consumer)) = (line.offset(), line.consumer())
                        && let Some(pair) = self.pairs.get_mut(&(offset, consumer))
                    {
                        pair.outcome = pair.outcome.after(line);
                    }
                }
            }
        }
        Ok(())
    }

    /// Puts them where they belong.
    fn settle(&mut self) {
        for ((offset, consumer), pair) in std::mem::take(&mut self.pairs) {
            if self.request.query.asks_consumers() {
                let Some(consumer) = self.consumers.get(&consumer) else {
                    continue;
                };
                let state = match pair.outcome {
                    PairOutcome::Delivered(_) => EventState::Delivered,
                    PairOutcome::Undelivered(state) => state,
                    PairOutcome::Open { has_failed } => open_state(consumer, offset, has_failed),
                };
                if !self.request.query.matches_consumer(&consumer.key, state) {
                    continue;
                }
            }
            let cell = self.tally.cell(pair.row, self.column);
            match pair.outcome {
                PairOutcome::Undelivered(_) => cell.undelivered += 1,
                PairOutcome::Delivered(at) => {
                    cell.delivered += 1;
                    self.tally
                        .add(pair.row, self.column, at.duration_since(pair.accepted_at));
                }
                PairOutcome::Open { .. } => {
                    cell.waiting += 1;
                    let waited = self.now.duration_since(pair.accepted_at);
                    let waited = waited.max(jiff::SignedDuration::ZERO);
                    self.tally.add(pair.row, self.column, waited);
                }
            }
        }
    }
}

impl PairOutcome {
    /// How it stands after a line of the journal. An event that was delivered twice, since the first time was not safe yet when
    /// the power went, was there the first time.
    fn after(self, line: &JournalRecord) -> Self {
        match line {
            JournalRecord::Failed { .. } => Self::Open { has_failed: true },
            JournalRecord::Delivered(_) if matches!(self, Self::Delivered(_)) => self,
            JournalRecord::Delivered(attempted) => Self::Delivered(attempted.at),
            JournalRecord::Dead(dead) if dead.reply.is_none() => {
                Self::Undelivered(EventState::DeadLettered)
            }
            JournalRecord::Expired { .. } => Self::Undelivered(EventState::Expired),
            JournalRecord::Removed { .. } | JournalRecord::Discarded { reply: false, .. } => {
                Self::Undelivered(EventState::Removed)
            }
            JournalRecord::Redriven { .. } => Self::Open { has_failed: false },
            _ => self,
        }
    }
}

impl Look for DelaySearch {
    fn record(&mut self, record: Record) {
        let Ok(envelope) = Envelope::decode(&record.payload) else {
            return;
        };
        let is_heartbeat = heartbeat::is_reserved(envelope.event.type_());
        if !self.wants(&record, &envelope, is_heartbeat) {
            return;
        }
        match is_heartbeat {
            true => self.heartbeats += 1,
            false => self.examined += 1,
        }
        let reached = self.reach.get(&*envelope.entry).into_iter().flatten();
        for reached in reached {
            let predicate = reached.decides(record.offset);
            if !predicate.is_some_and(|predicate| predicate.matches(&envelope.event)) {
                continue;
            }
            let name = self.row_name(&envelope, &reached.consumer);
            let Some(row) = self.tally.row(name, is_heartbeat) else {
                continue;
            };
            let pair = WantedPair {
                row,
                accepted_at: record.at,
                outcome: PairOutcome::Open { has_failed: false },
            };
            self.pairs
                .insert((record.offset, reached.consumer.id), pair);
        }
    }

    fn chunk(&mut self) -> Result<ControlFlow<()>, Error> {
        self.follow()?;
        self.settle();
        let enough = self.examined >= self.share || self.tally.delays >= DELAYS_MAX;
        Ok(match enough {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        })
    }
}
