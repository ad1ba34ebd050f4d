//! Something that is done with many dead letters: sent on their way again, or thrown away, some at a time.
//!
//! ```text
//!   begin ──line──> running ──(a few of each consumer, every moment)──> done ──line
//!                      └──────────── stop ──line──> stopped
//! ```
//! A line of the journal says that it began, and is safe before anybody is told so; then each letter leaves with a line of its
//! own. After a restart it goes on with what is picked and still rests, so a letter leaves once, whenever the process ends. One
//! that comes to rest meanwhile has a name beyond the last that is meant, and is left alone.
//!
//! In memory there is a place in each consumer's letters, and no list of them. How fast it goes is up to the consumers
//! (`consumer/bulk`): fresh events go on beside it, and one whose subscriber is slow keeps no other waiting.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use heddle_api::dead_letters::{BulkAct, BulkOperation, BulkOperations, BulkState};
use heddle_api::ledger::DeadLetterSelection;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use crate::consumer::{BULK_TICK, Consumer};
use crate::journal::JournalRecord;
use crate::journal::bulk::{BulkEntries, BulkEntry};
use crate::journal::record::ConsumerId;
use crate::ledger::{Error, held};
use crate::mesh::Mesh;
use crate::path::dead_letter::picker::{Picker, namespace_of};
use crate::path::dead_letter::walk::LetterWalk;
use crate::shared::Shared;

/// Of those that may be under way at once.
const RUNNING_MAX: usize = 64;
/// And of one who began them, so that nobody needs all places.
const RUNNING_EACH_MAX: usize = 8;
/// Letters of one consumer that are thrown away in one go, and that are looked at.
const DISCARD_MAX: usize = 200;
const LOOK_MAX: usize = 2_000;
/// Between two looks while nothing can be sent.
const IDLE_TICK: Duration = Duration::from_millis(200);

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Bulks {
    table: Mutex<BulkTable>,
    /// Something began.
    begun: Notify,
    /// Held while letters are taken: whoever stops one waits for it, so that nothing is taken behind their back.
    taking: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct BulkTable {
    entries: BulkEntries,
    running: BTreeMap<u64, RunningBulk>,
}

/// What is known of one while it runs.
#[derive(Debug)]
struct RunningBulk {
    picker: Arc<Picker>,
    /// Whether its line is safe.
    safe: bool,
    /// The last letter of each consumer that was looked at; `None` before the first look.
    places: Option<BTreeMap<ConsumerId, u64>>,
    taken: u64,
    left: u64,
    /// When this process began with it, and how many had been taken until then.
    since: Duration,
    taken_before: u64,
    waits: Option<String>,
}

/// Which letters are meant, as the journal has it.
#[derive(Serialize, Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase")]
struct RecordedSelection {
    selection: DeadLetterSelection,
    /// The namespaces that whoever began it may act in, unless in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    within: Option<BTreeSet<String>>,
    /// The namespaces of the letters that were there.
    namespaces: BTreeSet<String>,
}

impl RecordedSelection {
    fn of(entry: &BulkEntry) -> Self {
        serde_json::from_str(&entry.selection).unwrap_or_default()
    }
}

impl Bulks {
    /// As the last process left them.
    pub(crate) fn restored(entries: &BulkEntries, now: Duration) -> Self {
        let bulks = Self::default();
        let running = entries.all.values();
        let running = running.filter(|entry| entry.state == BulkState::Running);
        let running = running.map(|entry| {
            let recorded = RecordedSelection::of(entry);
            let picker = Picker::new(&recorded.selection, recorded.within.as_ref());
            let mut running = RunningBulk::new(picker, now);
            running.safe = true;
            (entry.id, running)
        });
        *bulks.table.lock() = BulkTable {
            running: running.collect(),
            entries: entries.clone(),
        };
        bulks
    }
}

impl RunningBulk {
    fn new(picker: Picker, now: Duration) -> Self {
        Self {
            picker: Arc::new(picker),
            safe: false,
            places: None,
            taken: 0,
            left: 0,
            since: now,
            taken_before: 0,
            waits: None,
        }
    }
}

impl BulkTable {
    /// Whether somebody may begin one more.
    fn check_room(&self, by: &str) -> Result<(), Error> {
        let entries = self
            .running
            .keys()
            .filter_map(|id| self.entries.all.get(id));
        let own = entries.filter(|entry| entry.by == by).count();
        if own >= RUNNING_EACH_MAX {
            return Err(Error::Conflict(format!(
                "{own} operations of yours with dead letters are under way; wait for one to end, or stop one"
            )));
        }
        if self.running.len() >= RUNNING_MAX {
            return Err(Error::Conflict(format!(
                "{RUNNING_MAX} operations with dead letters are under way; wait for one to end"
            )));
        }
        Ok(())
    }

    fn end(&mut self, shared: &Shared, id: u64, state: BulkState, by: &str) {
        let (Some(entry), Some(running)) = (self.entries.all.get(&id), self.running.remove(&id))
        else {
            return;
        };
        let mut entry = entry.clone();
        entry.state = state;
        by.clone_into(&mut entry.stopped_by);
        entry.at = shared.clock.now();
        (entry.taken, entry.left) = (running.taken, running.left);
        self.entries.apply(&entry);
        shared.note(JournalRecord::Bulk(Box::new(entry)));
    }

    fn shown(&self, entry: &BulkEntry, now: Duration) -> BulkOperation {
        let running = self.running.get(&entry.id);
        let (count, left) = running.map_or((entry.taken, entry.left), |one| (one.taken, one.left));
        let rate = running.map(|running| {
            let seconds = now.saturating_sub(running.since).as_secs_f64();
            let taken = running.taken.saturating_sub(running.taken_before);
            if seconds > 0.0 {
                taken as f64 / seconds
            } else {
                0.0
            }
        });
        let still = entry.total.saturating_sub(count + left);
        let eta = rate.filter(|rate| *rate > 0.0);
        let eta = eta.map(|rate| Duration::try_from_secs_f64(still as f64 / rate));
        let ended = entry.state != BulkState::Running;
        BulkOperation {
            id: entry.id.to_string(),
            act: entry.act,
            state: entry.state,
            by: entry.by.clone(),
            started_at: entry.begun_at,
            ended_at: ended.then_some(entry.at),
            stopped_by: (!entry.stopped_by.is_empty()).then(|| entry.stopped_by.clone()),
            total: entry.total,
            count,
            left,
            rate_per_s: rate,
            eta_s: eta.and_then(Result::ok).map(|eta| eta.as_secs() + 1),
            waits: running.and_then(|running| running.waits.clone()),
        }
    }
}

impl Mesh {
    /// Begins to do something with the picked ones on somebody's behalf, within some namespaces; answers when that is safe.
    pub(crate) async fn begin_bulk(
        &self,
        selection: &DeadLetterSelection,
        within: Option<&BTreeSet<String>>,
        act: BulkAct,
        by: &str,
    ) -> Result<BulkOperation, Error> {
        let shared = &self.shared;
        let picker = Picker::new(selection, within);
        let (mut total, mut last, mut namespaces) = (0, 0, BTreeSet::new());
        let walk = LetterWalk::new(shared, &picker);
        walk.all(|met| {
            if act == BulkAct::Redrive && met.rest.reply.is_some() {
                return;
            }
            (total, last) = (total + 1, met.name.max(last));
            if !namespaces.contains(namespace_of(met.key)) {
                namespaces.insert(namespace_of(met.key).to_owned());
            }
        })
        .await;
        // Whoever may see one knows by its namespaces; one that found nothing is its owner's all the same.
        if let Some(within) = within.filter(|_| namespaces.is_empty()) {
            namespaces.clone_from(within);
        }
        let mut selection = selection.clone();
        selection.up_to = Some(last.to_string());
        (selection.dry_run, selection.detach) = (false, false);
        let recorded = RecordedSelection {
            selection,
            within: within.cloned(),
            namespaces,
        };
        let picker = Picker::new(&recorded.selection, within);
        let shown = {
            let mut table = shared.bulks.table.lock();
            table.check_room(by)?;
            let now = shared.clock.now();
            let entry = BulkEntry {
                id: table.entries.last + 1,
                act,
                state: BulkState::Running,
                begun_at: now,
                by: by.to_owned(),
                at: now,
                stopped_by: String::new(),
                total,
                taken: 0,
                left: 0,
                up_to: last,
                selection: serde_json::to_string(&recorded).unwrap_or_default(),
            };
            let monotonic = shared.clock.monotonic();
            table.entries.apply(&entry);
            let running = RunningBulk::new(picker, monotonic);
            table.running.insert(entry.id, running);
            let shown = table.shown(&entry, monotonic);
            shared.note(JournalRecord::Bulk(Box::new(entry)));
            shown
        };
        shared.bulks.begun.notify_one();
        shared.settled().await;
        Ok(shown)
    }

    /// All that are remembered, the newest first, if whoever asks may see all the namespaces of its letters.
    pub(crate) fn bulk_operations(&self, may_see: impl Fn(&str) -> bool) -> BulkOperations {
        let table = self.shared.bulks.table.lock();
        let now = self.shared.clock.monotonic();
        let seen = table.entries.all.values().rev();
        let seen = seen.filter(|entry| all_seen(entry, &may_see));
        BulkOperations {
            operations: seen.map(|entry| table.shown(entry, now)).collect(),
        }
    }

    /// One of them.
    pub(crate) fn bulk_operation(
        &self,
        id: &str,
        may_see: impl Fn(&str) -> bool,
    ) -> Result<BulkOperation, Error> {
        let table = self.shared.bulks.table.lock();
        let entry = id
            .parse()
            .ok()
            .and_then(|id: u64| table.entries.all.get(&id));
        let entry = entry.filter(|entry| all_seen(entry, &may_see));
        let entry = entry.ok_or_else(|| {
            Error::NotFound(format!("there is no operation {id} with dead letters"))
        })?;
        Ok(table.shown(entry, self.shared.clock.monotonic()))
    }

    /// Stops one on somebody's behalf; answers when that is safe, and what it had done. One that has ended stays as it is.
    pub(crate) async fn stop_bulk(
        &self,
        id: &str,
        by: &str,
        may_see: impl Fn(&str) -> bool,
    ) -> Result<BulkOperation, Error> {
        let found = self.bulk_operation(id, &may_see)?;
        if found.state == BulkState::Running {
            let _taking = self.shared.bulks.taking.lock().await;
            let mut table = self.shared.bulks.table.lock();
            let id = id.parse().unwrap_or_default();
            table.end(&self.shared, id, BulkState::Stopped, by);
        }
        self.shared.settled().await;
        self.bulk_operation(id, may_see)
    }
}

fn all_seen(entry: &BulkEntry, may_see: &impl Fn(&str) -> bool) -> bool {
    let namespaces = RecordedSelection::of(entry).namespaces;
    // One that says nothing about where it acts is for those who see everything.
    match namespaces.is_empty() {
        true => may_see(""),
        false => namespaces.iter().all(|namespace| may_see(namespace)),
    }
}

/// Takes letters for as long as there is something to take.
pub(crate) async fn run(shared: Arc<Shared>) {
    loop {
        let running = !shared.bulks.table.lock().running.is_empty();
        if !running {
            shared.bulks.begun.notified().await;
            continue;
        }
        // Before the first table nobody knows who is gone.
        if !shared.in_force.load().ready || !shared.sends() {
            shared.clock.sleep(IDLE_TICK).await;
            continue;
        }
        make_safe(&shared).await;
        let taken = {
            let _taking = shared.bulks.taking.lock().await;
            take_some(&shared)
        };
        if taken > 0 {
            shared.look_for_dead_letter_room();
        }
        shared.clock.sleep(BULK_TICK).await;
    }
}

/// Nothing is taken for one before its line is safe.
async fn make_safe(shared: &Shared) {
    let unsafe_ids: Vec<u64> = {
        let table = shared.bulks.table.lock();
        let running = table.running.iter().filter(|(_, one)| !one.safe);
        running.map(|(id, _)| *id).collect()
    };
    if unsafe_ids.is_empty() {
        return;
    }
    shared.settled().await;
    let mut table = shared.bulks.table.lock();
    for id in unsafe_ids {
        if let Some(running) = table.running.get_mut(&id) {
            running.safe = true;
        }
    }
}

/// A few letters of each consumer, for each that runs. Gives how many left.
fn take_some(shared: &Arc<Shared>) -> u64 {
    let running: Vec<(u64, Arc<Picker>, BulkEntry)> = {
        let table = shared.bulks.table.lock();
        let running = table.running.iter().filter(|(_, one)| one.safe);
        let entries = &table.entries.all;
        running
            .filter_map(|(id, one)| Some((*id, Arc::clone(&one.picker), entries.get(id)?.clone())))
            .collect()
    };
    let mut all = 0;
    for (id, picker, entry) in running {
        let places = shared
            .bulks
            .table
            .lock()
            .running
            .get(&id)
            .and_then(|one| one.places.clone());
        let mut places = places.unwrap_or_else(|| first_look(shared, id, &picker, &entry));
        let (mut taken, mut left, mut waits) = (0, 0, None);
        places.retain(|consumer, place| {
            let consumer = shared.consumers.read().by_id.get(consumer).cloned();
            let Some(consumer) = consumer else {
                return false;
            };
            let step = take_of(shared, &consumer, &picker, &entry, *place);
            *place = step.place;
            taken += step.taken;
            left += step.left;
            waits = step.waits.or_else(|| waits.take());
            !step.ended
        });
        all += taken;
        let mut table = shared.bulks.table.lock();
        let ended = places.is_empty();
        if let Some(one) = table.running.get_mut(&id) {
            one.taken += taken;
            one.left += left;
            one.waits = waits.filter(|_| taken == 0);
            one.places = Some(places);
        }
        if ended {
            table.end(shared, id, BulkState::Done, "");
        }
    }
    all
}

/// Whose letters there are; and what was taken before this process began is what no longer rests.
fn first_look(
    shared: &Shared,
    id: u64,
    picker: &Picker,
    entry: &BulkEntry,
) -> BTreeMap<ConsumerId, u64> {
    let (mut still, mut places) = (0, BTreeMap::new());
    LetterWalk::new(shared, picker).all_at_once(|met| {
        if entry.act == BulkAct::Discard || met.rest.reply.is_none() {
            still += 1;
            // Nobody else has anything to do with it.
            places.insert(met.rest.consumer, 0);
        }
    });
    if let Some(one) = shared.bulks.table.lock().running.get_mut(&id) {
        one.taken = entry.total.saturating_sub(still);
        one.taken_before = one.taken;
        one.since = shared.clock.monotonic();
    }
    places
}

/// What became of a few letters of one consumer.
#[derive(Default)]
struct BulkStep {
    taken: u64,
    left: u64,
    /// The last letter that was looked at.
    place: u64,
    /// There are no more.
    ended: bool,
    waits: Option<String>,
}

fn take_of(
    shared: &Arc<Shared>,
    consumer: &Arc<Consumer>,
    picker: &Picker,
    entry: &BulkEntry,
    place: u64,
) -> BulkStep {
    let mut state = consumer.lock();
    let gone = entry.act == BulkAct::Redrive && state.routing.spec.is_none();
    let room = match entry.act {
        BulkAct::Discard => DISCARD_MAX,
        BulkAct::Redrive if gone => LOOK_MAX,
        BulkAct::Redrive => state.redrive_room(),
    };
    let mut step = BulkStep {
        place,
        ..BulkStep::default()
    };
    let mut names = Vec::new();
    {
        let letters = shared.dead.lock();
        let mut own = letters.of_consumer(consumer.id, place).take(LOOK_MAX);
        step.ended = loop {
            let Some((name, rest)) = own.next() else {
                // None was left, or so many were looked at.
                break letters
                    .of_consumer(consumer.id, step.place)
                    .next()
                    .is_none();
            };
            if name > picker.up_to() {
                break true;
            }
            let sent = entry.act == BulkAct::Discard || rest.reply.is_none();
            if sent && picker.picks(name, rest, &consumer.key) {
                if names.len() >= room {
                    break false;
                }
                names.push(name);
            }
            step.place = name;
        };
    }
    if room == 0 && !step.ended {
        let why = held(&state).unwrap_or_else(|| "as many as may are on their way".to_owned());
        step.waits = Some(format!("{}: {why}", consumer.key));
    }
    for name in names {
        let taken = match entry.act {
            BulkAct::Redrive if gone => false,
            BulkAct::Redrive => consumer.redrive(shared, &mut state, name, &entry.by),
            BulkAct::Discard => consumer.discard(shared, &mut state, name, &entry.by),
        };
        step.taken += u64::from(taken);
        step.left += u64::from(!taken);
    }
    step
}

/// How long it takes to throw so many of one consumer away.
pub(crate) fn time_for_discarding(count: u64) -> Duration {
    let turns = count.div_ceil(DISCARD_MAX as u64);
    BULK_TICK.saturating_mul(u32::try_from(turns).unwrap_or(u32::MAX))
}
