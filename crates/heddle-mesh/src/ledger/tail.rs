//! What is accepted right now, as it comes: few enough to read, with how many there are.
//!
//! Publishers notice nothing of it: what is safe in the log is read from there a few times a second, mostly from memory. A
//! tail that cannot keep up steps over what it has not read.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use heddle_api::search::{EventQuery, FoundEvent, TailRate};

use super::Error;
use super::found::SoughtRecord;
use super::visible::Visible;
use crate::aside::{AsideError, AsidePlace};
use crate::envelope::Envelope;
use crate::heartbeat;
use crate::log::{Log, Offset};
use crate::mesh::Mesh;
use crate::shared::InForce;

/// Rows in a second: as many as somebody can see go by.
const ROWS_MAX: u64 = 50;
const TICK: Duration = Duration::from_millis(200);
const TICKS_PER_SECOND: u32 = 5;
const READ_BYTES: usize = 1 << 20;
/// What one tick reads; the rest of it is only counted.
const TICK_BYTES_MAX: usize = 16 << 20;

/// Somebody who watches events come in. It ends when it is dropped.
#[derive(Debug)]
pub struct Tail {
    mesh: Mesh,
    place: AsidePlace,
    query: Arc<EventQuery>,
    visible: Visible,
    /// The table in force when that was worked out.
    in_force: Arc<InForce>,
    next: Offset,
    rate: TailRate,
    ticks: u32,
}

/// What came within a moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TailStep {
    /// Oldest first.
    pub items: Vec<FoundEvent>,
    /// About once a second, when something came.
    pub rate: Option<TailRate>,
}

impl Mesh {
    /// Begins to watch on somebody's behalf, from now on.
    pub fn tail(
        &self,
        query: EventQuery,
        visible: Visible,
        asker: &str,
        name: Option<&str>,
    ) -> Result<Tail, Error> {
        if query.asks_consumers() {
            let text = "what comes in has no state yet: leave consumer: and state: out, or search without watching";
            return Err(Error::Invalid(text.to_owned()));
        }
        if query.asks_for_data() && !visible.may_ask_for_data() {
            let text = "data may be searched by those who may read it; leave data. and text: out, or ask for the right to payloads";
            return Err(Error::Forbidden(text.to_owned()));
        }
        let place = self.shared.aside.enter(asker, name)?;
        let in_force = self.shared.in_force.load_full();
        Ok(Tail {
            place,
            mesh: self.clone(),
            query: Arc::new(query),
            in_force,
            // No older than the table that it is compared with.
            visible: visible.renewed(self),
            next: self.shared.log.bounds().end,
            rate: TailRate::default(),
            ticks: 0,
        })
    }
}

impl Tail {
    /// What came since the last step, after a moment.
    pub async fn step(&mut self) -> Result<TailStep, Error> {
        let clock = self.mesh.shared.clock.clone();
        tokio::select! {
            () = clock.sleep(TICK) => {}
            () = self.place.superseded() => return Err(AsideError::Superseded.into()),
        }
        self.follow_table();
        let mut step = TailStep::default();
        let end = self.mesh.shared.log.bounds().end;
        let mut bytes = 0;
        while self.next < end && bytes < TICK_BYTES_MAX {
            let log = Arc::clone(&self.mesh.shared.log);
            let (query, visible) = (Arc::clone(&self.query), self.visible.clone());
            let (range, rows) = (self.next..end, ROWS_MAX.saturating_sub(self.rate.shown));
            let slice = move || look(&*log, range, &query, &visible, rows);
            let seen = self.place.slice(slice).await??;
            bytes += seen.bytes;
            self.rate.matched += seen.matched;
            self.rate.accepted += seen.accepted;
            self.rate.shown += seen.items.len() as u64;
            self.next = seen.next;
            step.items.extend(seen.items);
        }
        if self.next < end {
            // Whose events those are nobody has looked at.
            if self.visible.is_everything() {
                self.rate.accepted += end - self.next;
            }
            self.next = end;
        }
        self.ticks += 1;
        if self.ticks == TICKS_PER_SECOND {
            self.ticks = 0;
            step.rate = Some(std::mem::take(&mut self.rate));
        }
        Ok(step)
    }

    /// Links come and go while somebody watches, and with them what may be seen.
    fn follow_table(&mut self) {
        let in_force = self.mesh.shared.in_force.load_full();
        if !Arc::ptr_eq(&self.in_force, &in_force) {
            self.visible = self.visible.renewed(&self.mesh);
            self.in_force = in_force;
        }
    }
}

#[derive(Debug, Default)]
struct TailSlice {
    items: Vec<FoundEvent>,
    matched: u64,
    accepted: u64,
    bytes: usize,
    next: Offset,
}

fn look(
    log: &dyn Log,
    range: Range<Offset>,
    query: &EventQuery,
    visible: &Visible,
    rows: u64,
) -> Result<TailSlice, Error> {
    let batch = log.read(range.start, READ_BYTES)?;
    let mut seen = TailSlice {
        // A read that makes no way must not be asked for again and again.
        next: batch.next.max(range.start + 1).min(range.end),
        ..TailSlice::default()
    };
    let records = batch.records.iter();
    for record in records.filter(|record| record.offset < range.end) {
        seen.bytes += record.payload.len();
        let Ok(envelope) = Envelope::decode(&record.payload) else {
            continue;
        };
        if heartbeat::is_reserved(envelope.event.type_())
            || !visible.shows(&envelope.entry, record.offset)
        {
            continue;
        }
        seen.accepted += 1;
        let data = visible.data(&envelope.entry, record.offset, &envelope.event);
        let candidate = SoughtRecord {
            record,
            envelope: &envelope,
            data: data.bytes(),
        };
        if query.matches(&candidate) {
            seen.matched += 1;
            if (seen.items.len() as u64) < rows {
                seen.items.push(candidate.shown());
            }
        }
    }
    Ok(seen)
}
