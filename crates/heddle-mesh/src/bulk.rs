//! Something that is done with many dead letters, sent on their way again, or thrown away, or with many events of the log, which
//! are sent again (`resend`): some at a time.
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

mod letters;
mod resend;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use heddle_api::dead_letters::{BulkAct, BulkOperation, BulkOperations, BulkState};
use heddle_api::ledger::DeadLetterSelection;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use crate::consumer::BULK_TICK;
use crate::journal::JournalRecord;
use crate::journal::bulk::{BulkEntries, BulkEntry};
use crate::ledger::Error;
use crate::log::Offset;
use crate::mesh::Mesh;
use crate::path::dead_letter::picker::{Picker, namespace_of};
use crate::path::dead_letter::walk::LetterWalk;
use crate::shared::Shared;
pub(crate) use letters::time_for_discarding;
use letters::{LetterWork, take_letters};
use resend::ResendWork;
pub(crate) use resend::{ResendOrder, ResendPicker, ResendVerdict, RestingOffsets, consumer_of};

/// Of those that may be under way at once.
const RUNNING_MAX: usize = 64;
/// And of one who began them, so that nobody needs all places.
const RUNNING_EACH_MAX: usize = 8;
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
    work: BulkWork,
    /// Whether its line is safe.
    safe: bool,
    taken: u64,
    left: u64,
    /// When this process began with it, and how many had been taken until then.
    since: Duration,
    taken_before: u64,
    waits: Option<String>,
}

#[derive(Debug)]
enum BulkWork {
    Letters(LetterWork),
    Events(ResendWork),
}

impl BulkWork {
    fn letters(picker: Picker) -> Self {
        Self::Letters(LetterWork {
            picker: Arc::new(picker),
            places: None,
        })
    }

    fn of(entry: &BulkEntry) -> Self {
        let recorded = RecordedSelection::of(entry);
        match recorded.resend {
            Some(order) => Self::Events(ResendWork::new(order, entry.place)),
            None => Self::letters(Picker::new(&recorded.selection, recorded.within.as_ref())),
        }
    }
}

/// Which letters or events are meant, as the journal has it.
#[derive(Serialize, Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase")]
struct RecordedSelection {
    selection: DeadLetterSelection,
    /// The namespaces that whoever began it may act in, unless in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    within: Option<BTreeSet<String>>,
    /// The namespaces of the letters that were there, or of whoever gets the events.
    namespaces: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resend: Option<ResendOrder>,
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
            let mut running = RunningBulk::new(BulkWork::of(entry), now);
            running.safe = true;
            // Of letters it is what no longer rests, which is found out later.
            (running.taken, running.taken_before) = (entry.taken, entry.taken);
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
    fn new(work: BulkWork, now: Duration) -> Self {
        Self {
            work,
            safe: false,
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
                "{own} operations of yours with many events are under way; wait for one to end, or stop one"
            )));
        }
        if self.running.len() >= RUNNING_MAX {
            return Err(Error::Conflict(format!(
                "{RUNNING_MAX} operations with many events are under way; wait for one to end"
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
        if matches!(
            (&running.work, state),
            (BulkWork::Events(_), BulkState::Done)
        ) {
            // What was left before a restart is known by nobody, and everything that was meant was looked at.
            entry.left = entry.total.saturating_sub(entry.taken);
        }
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
        let resend = RecordedSelection::of(entry).resend;
        BulkOperation {
            id: entry.id.to_string(),
            act: entry.act,
            state: entry.state,
            consumer: resend.as_ref().map(|order| order.consumer.clone()),
            query: resend
                .map(|order| order.query)
                .filter(|query| !query.is_empty()),
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
            resend: None,
        };
        let asked = AskedBulk {
            act,
            by,
            total,
            up_to: last,
            place: 0,
        };
        self.begin(&asked, &recorded).await
    }

    /// Begins to send events again on somebody's behalf; answers when that is safe.
    pub(crate) async fn begin_resend(
        &self,
        order: ResendOrder,
        total: u64,
        by: &str,
    ) -> Result<BulkOperation, Error> {
        let asked = AskedBulk {
            act: BulkAct::Resend,
            by,
            total,
            up_to: order.before,
            place: order.from,
        };
        let recorded = RecordedSelection {
            namespaces: BTreeSet::from([namespace_of(&order.consumer).to_owned()]),
            resend: Some(order),
            ..RecordedSelection::default()
        };
        self.begin(&asked, &recorded).await
    }

    async fn begin(
        &self,
        asked: &AskedBulk<'_>,
        recorded: &RecordedSelection,
    ) -> Result<BulkOperation, Error> {
        let shared = &self.shared;
        let shown = {
            let mut table = shared.bulks.table.lock();
            table.check_room(asked.by)?;
            let now = shared.clock.now();
            let entry = BulkEntry {
                id: table.entries.last + 1,
                act: asked.act,
                state: BulkState::Running,
                begun_at: now,
                by: asked.by.to_owned(),
                at: now,
                stopped_by: String::new(),
                total: asked.total,
                taken: 0,
                left: 0,
                up_to: asked.up_to,
                selection: serde_json::to_string(recorded).unwrap_or_default(),
                place: asked.place,
            };
            let monotonic = shared.clock.monotonic();
            table.entries.apply(&entry);
            let running = RunningBulk::new(BulkWork::of(&entry), monotonic);
            table.running.insert(entry.id, running);
            let shown = table.shown(&entry, monotonic);
            shared.note(JournalRecord::Bulk(Box::new(entry)));
            shown
        };
        shared.bulks.begun.notify_one();
        shared.settled().await;
        Ok(shown)
    }

    /// All of a kind that are remembered, the newest first, if whoever asks may see all the namespaces they act in.
    pub(crate) fn bulk_operations(
        &self,
        kind: BulkKind,
        may_see: impl Fn(&str) -> bool,
    ) -> BulkOperations {
        let table = self.shared.bulks.table.lock();
        let now = self.shared.clock.monotonic();
        let seen = table.entries.all.values().rev();
        let seen = seen.filter(|entry| kind.has(entry.act) && all_seen(entry, &may_see));
        BulkOperations {
            operations: seen.map(|entry| table.shown(entry, now)).collect(),
        }
    }

    /// One of them.
    pub(crate) fn bulk_operation(
        &self,
        kind: BulkKind,
        id: &str,
        may_see: impl Fn(&str) -> bool,
    ) -> Result<BulkOperation, Error> {
        let table = self.shared.bulks.table.lock();
        let entry = id
            .parse()
            .ok()
            .and_then(|id: u64| table.entries.all.get(&id));
        let entry = entry.filter(|entry| kind.has(entry.act) && all_seen(entry, &may_see));
        let entry = entry.ok_or_else(|| {
            let of = kind.in_words();
            Error::NotFound(format!("there is no operation {id} with {of}"))
        })?;
        Ok(table.shown(entry, self.shared.clock.monotonic()))
    }

    /// Stops one on somebody's behalf; answers when that is safe, and what it had done. One that has ended stays as it is.
    pub(crate) async fn stop_bulk(
        &self,
        kind: BulkKind,
        id: &str,
        by: &str,
        may_see: impl Fn(&str) -> bool,
    ) -> Result<BulkOperation, Error> {
        let found = self.bulk_operation(kind, id, &may_see)?;
        if found.state == BulkState::Running {
            let _taking = self.shared.bulks.taking.lock().await;
            let mut table = self.shared.bulks.table.lock();
            let id = id.parse().unwrap_or_default();
            table.end(&self.shared, id, BulkState::Stopped, by);
        }
        self.shared.settled().await;
        self.bulk_operation(kind, id, may_see)
    }
}

/// Something that begins.
struct AskedBulk<'a> {
    act: BulkAct,
    by: &'a str,
    total: u64,
    up_to: u64,
    place: Offset,
}

/// What operations are about. Each kind is told of where it belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BulkKind {
    Letters,
    Events,
}

impl BulkKind {
    fn has(self, act: BulkAct) -> bool {
        (act == BulkAct::Resend) == (self == Self::Events)
    }

    fn in_words(self) -> &'static str {
        match self {
            Self::Letters => "dead letters",
            Self::Events => "events that are sent again",
        }
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
        read_ahead(&shared).await;
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

/// Who ended one that nobody can go on with.
const NOBODY_THERE: &str = "heddle: its consumer is gone";

/// For each that sends events again and has few left, a piece of the log is read, aside.
async fn read_ahead(shared: &Arc<Shared>) {
    let wanted: Vec<_> = {
        let table = shared.bulks.table.lock();
        let running = table.running.iter().filter(|(_, one)| one.safe);
        let events = running.filter_map(|(id, one)| match &one.work {
            BulkWork::Events(work) => {
                let by = table.entries.all.get(id)?.by.clone();
                Some((*id, Arc::clone(&work.order), by, work.reads_from()?))
            }
            BulkWork::Letters(_) => None,
        });
        events.collect()
    };
    for (id, order, by, from) in wanted {
        let reader = Arc::clone(shared);
        let slice = shared
            .aside
            .slice(move || resend::read_ahead(&reader, &order, &by, from));
        let read = slice.await.map_err(Error::from).and_then(|read| read);
        let mut table = shared.bulks.table.lock();
        let Some(one) = table.running.get_mut(&id) else {
            continue;
        };
        match (read, &mut one.work) {
            (Ok(Some(read)), BulkWork::Events(work)) => work.take_in(read),
            (Ok(_), _) => {}
            (Err(error), _) => one.waits = Some(error.to_string()),
        }
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

/// A few letters of each consumer, or a few events, for each that runs. Gives how many left.
fn take_some(shared: &Arc<Shared>) -> u64 {
    let running: Vec<BulkEntry> = {
        let table = shared.bulks.table.lock();
        let running = table.running.iter().filter(|(_, one)| one.safe);
        let entries = &table.entries.all;
        running
            .filter_map(|(id, _)| entries.get(id).cloned())
            .collect()
    };
    running.iter().map(|entry| take_for(shared, entry)).sum()
}

/// A few for one of them, which is taken from the table meanwhile: nobody else works on it.
fn take_for(shared: &Arc<Shared>, entry: &BulkEntry) -> u64 {
    let idle = BulkWork::letters(Picker::new(&DeadLetterSelection::default(), None));
    let work = {
        let mut table = shared.bulks.table.lock();
        let running = table.running.get_mut(&entry.id);
        running.map(|one| std::mem::replace(&mut one.work, idle))
    };
    let Some(mut work) = work else { return 0 };
    let step = match &mut work {
        BulkWork::Letters(letters) => Some(take_letters(shared, entry, letters)),
        BulkWork::Events(events) => consumer_of(shared, &events.order.consumer)
            .map(|consumer| resend::take_of(shared, &consumer, entry, events)),
    };
    let mut table = shared.bulks.table.lock();
    let gone = step.is_none();
    let step = step.unwrap_or_default();
    if let Some(one) = table.running.get_mut(&entry.id) {
        one.taken += step.taken;
        one.left += step.left;
        one.waits = step.waits.filter(|_| step.taken == 0);
        one.work = work;
    }
    if gone {
        table.end(shared, entry.id, BulkState::Stopped, NOBODY_THERE);
    } else if step.ended {
        table.end(shared, entry.id, BulkState::Done, "");
    }
    step.taken
}

/// What became of a few letters or events.
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
