//! Hop 4: match every event once and hand it to whoever wants it.
//!
//! One task reads the tail of the log, asks the table in force, and offers each event to the consumers it names. The same
//! task reads for consumers that fell behind, swaps tables, and has the journal flushed; because nobody else moves
//! `scanned`, none of that needs a lock against the others.
//!
//! A table comes into force at one offset: everything that was safe when it arrived is matched by the old one, the change
//! is made safe in the journal, and from the next event on the new one decides.

mod flush;
pub(crate) mod refills;
mod swap;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::future::{BoxFuture, OptionFuture};
use tokio::sync::{mpsc, oneshot};

use crate::envelope;
use crate::heartbeat;
use crate::journal::record::ConsumerId;
use crate::log::{Batch, Offset, Unavailable};
use crate::routes::Table;
use crate::shared::Shared;

/// Bytes of the log looked at in one go.
const SCAN_BYTES: usize = 1 << 20;
/// Bytes read for one consumer that fell behind before others get their turn.
const REFILL_BYTES: usize = 256 << 10;
/// How long outcomes wait for company before they are made safe. What is lost of it in a crash is delivered again.
const FLUSH_EVERY: Duration = Duration::from_millis(50);
/// After a flush failed.
const FLUSH_AGAIN: Duration = Duration::from_millis(500);
/// After the log could not be read.
const READ_AGAIN: Duration = Duration::from_millis(500);

/// What the scanner is asked to do.
pub(crate) enum Request {
    /// A new table; answered when it is in force.
    Route(Arc<Table>, oneshot::Sender<()>),
    /// Everything noted so far is to be made safe, and nothing more will be.
    Close(oneshot::Sender<()>),
}

pub(crate) struct Scanner {
    shared: Arc<Shared>,
    requests: mpsc::Receiver<Request>,
    /// The flush under way: gives whether it succeeded.
    flushing: Option<BoxFuture<'static, bool>>,
    matches: Vec<u32>,
}

impl Scanner {
    pub(crate) fn new(shared: Arc<Shared>, requests: mpsc::Receiver<Request>) -> Self {
        Self {
            shared,
            requests,
            flushing: None,
            matches: Vec::new(),
        }
    }

    pub(crate) async fn run(mut self) {
        let clock = self.shared.clock.clone();
        let mut ticks = clock.interval(FLUSH_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut places = clock.interval(swap::PLACES_EVERY);
        loop {
            let ready = self.shared.in_force.load().ready;
            let scanned = self.shared.scanned();
            let shared = Arc::clone(&self.shared);
            let idle = self.flushing.is_none();
            let flushing = OptionFuture::from(self.flushing.as_mut());
            tokio::select! {
                biased;
                Some(done) = flushing, if !idle => {
                    self.flushing = None;
                    if !done {
                        clock.sleep(FLUSH_AGAIN).await;
                    }
                }
                request = self.requests.recv() => match request {
                    Some(Request::Route(table, answer)) => {
                        self.swap(table).await;
                        // Whoever asked may have stopped waiting.
                        answer.send(()).ok();
                    }
                    Some(Request::Close(answer)) => {
                        self.flush_all().await;
                        answer.send(()).ok();
                        return;
                    }
                    None => return,
                },
                // Before the work that may never run out: outcomes become safe however busy the log is.
                () = shared.flush.notified(), if idle => self.begin_flush(),
                _ = ticks.tick(), if idle => {
                    if self.shared.has_news() {
                        self.begin_flush();
                    }
                }
                _ = places.tick() => self.give_up_places(),
                id = shared.refills.next() => {
                    let read = self.refill(id);
                    // Those who are behind and those who are not take turns.
                    let scanned = !ready || shared.log.bounds().end <= scanned || self.scan();
                    if !read || !scanned {
                        clock.sleep(READ_AGAIN).await;
                    }
                }
                _ = shared.log.beyond(scanned), if ready => {
                    if !self.scan() {
                        clock.sleep(READ_AGAIN).await;
                    }
                }
            }
        }
    }

    /// Matches what is safe and not yet matched, up to a bound. Gives whether it could be read.
    fn scan(&mut self) -> bool {
        let scanned = self.try_scan();
        if let Err(error) = &scanned {
            tracing::error!(%error, "events cannot be matched");
        }
        scanned.is_ok()
    }

    fn try_scan(&mut self) -> Result<(), Unavailable> {
        if self.shared.faults.stalls_scanner() {
            return Err(Unavailable("by fault injection".to_owned()));
        }
        let scanned = self.shared.scanned();
        let batch = match self.shared.log.recent(scanned, SCAN_BYTES) {
            Some(batch) if batch.next > scanned => batch,
            // After a restart, or far behind: from the disk.
            _ => self.shared.log.read(scanned, SCAN_BYTES)?,
        };
        self.offer_all(&batch);
        self.shared.scanned.store(batch.next, Ordering::Release);
        Ok(())
    }

    fn offer_all(&mut self, batch: &Batch) {
        let in_force = self.shared.in_force.load_full();
        let (metrics, now) = (&self.shared.metrics, self.shared.clock.now());
        for record in &batch.records {
            let Ok((entry, event)) = envelope::entry_and_event(&record.payload) else {
                // Its checksum holds, so this is what was written: a bug of ours, and nobody's event.
                tracing::error!(offset = record.offset, "a record is no event");
                continue;
            };
            self.matches.clear();
            in_force.table.matches(entry, &event, &mut self.matches);
            if cfg!(feature = "fault-injection") {
                let key = |index: &u32| &*in_force.consumers[*index as usize].key;
                let faults = &self.shared.faults;
                self.matches
                    .retain(|index| !faults.drops(entry, key(index)));
            }
            if heartbeat::is_reserved(event.type_()) {
                let matched = self.matches.iter();
                let keys = matched.map(|index| &*in_force.consumers[*index as usize].key);
                self.shared.heartbeats.scanned(&event, keys);
            } else {
                let audience = in_force.table.audience(entry);
                metrics.matched(entry, audience.into(), self.matches.len() as u64);
                metrics.matched_after(record.at, now);
            }
            for index in &self.matches {
                in_force.consumers[*index as usize].offer(&self.shared, record);
            }
        }
    }

    /// Matches everything that is safe at this moment.
    fn catch_up(&mut self) -> Result<(), Unavailable> {
        let target = self.shared.log.bounds().end;
        if !self.shared.in_force.load().ready {
            // There is no table yet. What the last process left unmatched is read by the consumers it had, each by itself.
            let scanned = self.shared.scanned().max(target);
            self.shared.scanned.store(scanned, Ordering::Release);
            return Ok(());
        }
        while self.shared.scanned() < target {
            let before = self.shared.scanned();
            self.try_scan()?;
            if self.shared.scanned() == before {
                break;
            }
        }
        Ok(())
    }

    /// Reads on for a consumer that fell behind. Gives whether the log could be read.
    fn refill(&mut self, id: ConsumerId) -> bool {
        let consumer = self.shared.consumers.read().by_id.get(&id).cloned();
        let Some(consumer) = consumer else {
            return true;
        };
        let Some(next) = consumer.lock().cursor.unread_from() else {
            return true;
        };
        let scanned = self.shared.scanned();
        if next >= scanned {
            let nothing = Batch {
                next: scanned,
                ..Batch::default()
            };
            consumer.refill(&self.shared, &nothing, scanned);
            return true;
        }
        let batch = self.shared.log.recent(next, REFILL_BYTES);
        let batch = match batch.filter(|batch| batch.next > next) {
            Some(batch) => Ok(batch),
            None => self.shared.log.read(next, REFILL_BYTES),
        };
        let error = match batch {
            Ok(batch) if batch.next > next => {
                consumer.refill(&self.shared, &batch, scanned);
                return true;
            }
            // What was matched is on record and the log ends before it: the disk lost what it had said was safe. Asking
            // again at once would be all that this task does from then on.
            Ok(batch) => format!("the log ends at {}, before {scanned}", batch.next),
            Err(error) => error.to_string(),
        };
        tracing::error!(error, consumer = %consumer.key, "cannot read the backlog");
        // It still wants to read, and may have nothing else to do that would let it ask again.
        self.shared.refills.ask(id);
        false
    }

    fn scanned(&self) -> Offset {
        self.shared.scanned()
    }
}
