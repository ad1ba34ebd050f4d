//! The mesh as the rest of the program sees it: opened, given tables, asked, closed.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use heddle_api::dataplane::{Held, Resources, RoutedConsumer};
use heddle_api::mask::Mask;
use heddle_rt::{Chance, Clock, OnError, Tasks};
use heddle_store::Health;
use tokio::sync::{broadcast, mpsc, oneshot};

use crate::bulk::{self, Bulks};
use crate::consumer::timer::{self, TimerEntry, TimerTask};
use crate::heartbeat::{self, HeartbeatArrival, HeartbeatSink, ProberDeps};
use crate::housekeeping::{self, Keeper, Retention};
use crate::journal::JournalRecord;
use crate::ledger::hints;
use crate::log::Log;
use crate::marks::MarkedGroups;
use crate::observer::Observer;
use crate::path::broker::{Request, Scanner};
use crate::path::delivery::courier::Courier;
use crate::path::source::Source;
use crate::quota::Quota;
use crate::recovery;
use crate::routes::{Table, recompile_with};
use crate::shared::{Consumers, Parts, Shared};

/// Tables that wait to come into force; only the newest matters, so few are enough.
const REQUESTS_MAX: usize = 4;

/// How long whoever closes the mesh waits for a slice of a question, which reads a megabyte or less.
const ASKING_MAX: Duration = Duration::from_secs(5);

/// What a consumer is told while the journal takes nothing.
const JOURNAL_STALLED: &str = "deliveries wait because what becomes of them cannot be written down; they go on by themselves once there is room on the disk of the events";

/// How to open a mesh.
#[derive(Debug)]
pub struct Options {
    pub clock: Clock,
    pub chance: Chance,
    pub tasks: Tasks,
    pub log: Arc<dyn Log>,
    pub courier: Courier,
    pub retention: Retention,
    /// What one consumer's backlog may keep, unless it says otherwise.
    pub quota: Quota,
    pub limits: crate::event::http::Limits,
    /// What of the data of events is hidden from everybody below administrator.
    pub mask: Arc<Mask>,
    /// Told what happens on the path.
    pub observer: Option<Arc<dyn Observer>>,
    /// Where [`Mesh::heartbeat_sink`] can be reached, such as `http://host:port`; without it there are no heartbeats.
    pub heartbeat_sink: Option<String>,
}

/// A running mesh. Clones are the same mesh.
#[derive(Clone, Debug)]
pub struct Mesh {
    pub(crate) shared: Arc<Shared>,
    keeper: Arc<tokio::sync::Mutex<Keeper>>,
    requests: mpsc::Sender<Request>,
    tasks: Tasks,
    limits: crate::event::http::Limits,
}

impl Mesh {
    /// Takes up what the last process left. Nothing is matched or sent before the first table.
    pub fn open(options: Options) -> Result<Self, recovery::Error> {
        recovery::check_newest_event(&*options.log)?;
        let snapshot = recovery::positions(options.log.journal())?;
        let positions = &snapshot.positions;
        // The log may begin later than where the last process was: nothing older is left to match.
        let bounds = options.log.bounds();
        if positions.scanned > bounds.end {
            return Err(recovery::Error::LogBehind {
                end: bounds.end,
                scanned: positions.scanned,
            });
        }
        let scanned = positions.scanned.max(bounds.start).max(1);
        let mut consumers = Consumers {
            last: positions.consumer_last,
            unknown_from: positions.unknown_from,
            lost_records: positions.lost_records,
            losses: positions.losses.clone(),
            log_lost_below: positions.log_lost_below,
            ..Consumers::default()
        };
        let (of_heartbeats, of_users): (Vec<_>, Vec<_>) = positions
            .consumers
            .iter()
            .partition(|(_, position)| heartbeat::is_consumer(&position.key));
        for (id, position) in of_users {
            let consumer = recovery::consumer(*id, position, scanned, bounds.end);
            consumers
                .by_key
                .insert(Arc::clone(&consumer.key), Arc::clone(&consumer));
            consumers.by_id.insert(*id, consumer);
        }
        let (requests, requested) = mpsc::channel(REQUESTS_MAX);
        let bulks = Bulks::restored(&positions.bulks, options.clock.monotonic());
        let shared = Arc::new(Shared::new(Parts {
            bulks,
            marks: MarkedGroups::restored(&positions.marks),
            mask: options.mask,
            clock: options.clock,
            chance: options.chance,
            log: options.log,
            courier: options.courier,
            lanes: options.tasks.child("deliveries"),
            asking: options.tasks.child("consents"),
            consumers,
            dead: recovery::dead(positions),
            scanned,
            observer: options.observer,
            heartbeat_sink: options.heartbeat_sink,
        }));
        // The heartbeats of the last process are nobody's any more.
        for (id, _) in of_heartbeats {
            shared.note(JournalRecord::Forgotten {
                consumer: *id,
                when: shared.clock.now(),
            });
        }
        schedule(&shared);
        shared.look_for_dead_letter_room();
        let tasks = options.tasks.child("mesh");
        let scanner = Scanner::new(Arc::clone(&shared), requested);
        tasks.spawn("scanner", OnError::EndProcess, scanner.run());
        let weak = Arc::downgrade(&shared);
        tasks.spawn(
            "retries",
            OnError::EndProcess,
            timer::run(weak, Arc::clone(&shared.retries)),
        );
        let keeper = Keeper::new(
            Arc::clone(&shared),
            options.retention,
            options.quota,
            snapshot,
        );
        let keeper = Arc::new(tokio::sync::Mutex::new(keeper));
        let keeping = housekeeping::run(Arc::clone(&shared), Arc::clone(&keeper));
        tasks.spawn("housekeeping", OnError::Report, keeping);
        tasks.spawn("hints", OnError::Report, hints::run(Arc::clone(&shared)));
        let taking = bulk::run(Arc::clone(&shared));
        tasks.spawn("dead-letters", OnError::Report, taking);
        if shared.heartbeats.has_sink() {
            let prober = heartbeat::run(ProberDeps {
                shared: Arc::clone(&shared),
                source: Source::new(Arc::clone(&shared), options.limits),
                tasks: tasks.child("heartbeats"),
            });
            tasks.spawn("prober", OnError::EndProcess, prober);
        }
        Ok(Self {
            keeper,
            shared,
            requests,
            tasks,
            limits: options.limits,
        })
    }

    /// Compiles a table and brings it into force; answers when it is.
    pub async fn route(&self, resources: &Resources) {
        let canary = self.shared.heartbeats.has_sink();
        let table = recompile_with(resources, &self.table(), canary);
        self.shared.resources.store(Arc::new(resources.clone()));
        self.install(Arc::new(table)).await;
    }

    /// Brings a table into force; answers when it is.
    pub async fn install(&self, table: Arc<Table>) {
        let (answer, answered) = oneshot::channel();
        if self
            .requests
            .send(Request::Route(table, answer))
            .await
            .is_ok()
        {
            // An error means that the mesh closed meanwhile.
            drop(answered.await);
        }
    }

    /// The door for publishers.
    #[must_use]
    pub fn source(&self) -> Source {
        Source::new(Arc::clone(&self.shared), self.limits)
    }

    /// What is to answer where heartbeats are sent to.
    #[must_use]
    pub fn heartbeat_sink(&self) -> HeartbeatSink {
        HeartbeatSink::new(Arc::clone(&self.shared))
    }

    /// Told of every heartbeat that arrives from now on and that this mesh did not send by itself.
    #[must_use]
    pub fn heartbeat_arrivals(&self) -> broadcast::Receiver<HeartbeatArrival> {
        self.shared.heartbeats.arrivals()
    }

    /// Whether heartbeats are sent, and arrive somewhere.
    #[must_use]
    pub fn has_heartbeats(&self) -> bool {
        self.shared.heartbeats.has_sink()
    }

    /// The table in force.
    #[must_use]
    pub fn table(&self) -> Arc<Table> {
        Arc::clone(&self.shared.in_force.load().table)
    }

    /// Whether a table is in force, so that events can be taken.
    #[must_use]
    pub fn is_routing(&self) -> bool {
        self.shared.in_force.load().ready
    }

    /// What the table in force says about a consumer, `trigger/NAMESPACE/NAME` or `subscription/NAMESPACE/NAME`.
    #[must_use]
    pub fn consumer(&self, key: &str) -> Option<RoutedConsumer> {
        let in_force = self.shared.in_force.load();
        if let Some((uid, generation)) = in_force.table.link(key) {
            return Some(RoutedConsumer {
                uid: uid.to_owned(),
                generation,
                ..RoutedConsumer::default()
            });
        }
        let (index, spec) = in_force.table.consumer(key)?;
        let consumer = in_force.consumers.get(index as usize)?;
        let state = consumer.lock();
        let gone = state.window.held.clone().map(Held::Gone);
        let unsigned = state.routing.plan.unsigned.clone().map(Held::Unsigned);
        let unconsented = state.routing.plan.unconsented().map(Held::Unconsented);
        let backpressure = state
            .unreadable()
            .or_else(|| state.window.dead_full.clone());
        let backpressure = backpressure.or_else(|| state.retries.backpressure.reason());
        let over_quota = state.over_quota();
        drop(state);
        let bad_replies = self.shared.dead.lock().has_replies(consumer.id);
        let held = gone.or(unsigned).or(unconsented);
        let held = held.or_else(|| self.journal_stalled().or(backpressure).map(Held::Waiting));
        let faults = in_force.table.faults().iter();
        Some(RoutedConsumer {
            uid: spec.uid.clone(),
            generation: spec.generation,
            held,
            over_quota,
            bad_replies: bad_replies.then(|| bad_replies_in_words(key)),
            faults: faults
                .filter(|fault| fault.key == key)
                .map(|fault| fault.reason.clone())
                .collect(),
        })
    }

    /// Why nothing is sent to anybody, if what becomes of it could not be written down.
    pub(crate) fn journal_stalled(&self) -> Option<String> {
        let stalled = self.shared.journal_stalled.load(Ordering::Acquire);
        stalled.then(|| JOURNAL_STALLED.to_owned())
    }

    /// Why events cannot be taken, if so.
    pub fn health(&self) -> Result<(), String> {
        match self.shared.log.health() {
            Health::Serving => {
                let room = self.shared.log.room().borrow().clone();
                if room.low {
                    return Err(format!("there is too little room for events: {room}"));
                }
                Ok(())
            }
            Health::Full => Err("there is no room left for events".to_owned()),
            Health::Exhausted(reason) => Err(format!("events cannot be written for now: {reason}")),
            Health::Poisoned(reason) => Err(format!("the disk failed: {reason}")),
        }
    }

    /// Whether only a restart can help.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        matches!(self.shared.log.health(), Health::Poisoned(_))
    }

    /// Completes when something changed since `seen`; gives the new revision.
    pub fn changed(&self, seen: u64) -> BoxFuture<'static, u64> {
        let mut changes = self.shared.changes.subscribe();
        async move {
            let revision = changes
                .wait_for(|revision| *revision > seen)
                .await
                .map(|revision| *revision);
            match revision {
                Ok(revision) => revision,
                // The mesh is gone: nothing changes any more.
                Err(_) => std::future::pending().await,
            }
        }
        .boxed()
    }

    /// Tells whoever waits for a change that something outside the mesh changed.
    pub fn announce(&self) {
        self.shared.notify_changed();
    }

    /// Where the source can be reached by those who are asked for their consent, from now on.
    pub fn serve_at(&self, base_url: Option<String>) {
        self.shared.consents.serve_at(base_url);
    }

    /// Completes once everything that happened so far is safe in the journal.
    pub async fn settled(&self) {
        self.shared.settled().await;
    }

    /// Notes what full segments of the log do not contain, now instead of within seconds.
    pub async fn note_hints(&self) {
        if let Err(error) = hints::tend(&self.shared).await {
            tracing::warn!(%error, "hints about segments could not be kept");
        }
    }

    /// Sums up the journal and forgets what nobody needs, now instead of within half a minute.
    pub async fn tidy(&self) {
        self.settled().await;
        self.keeper.lock().await.tidy(1).await;
    }

    /// Lets attempts under way finish for a while, makes everything safe, and closes the log.
    ///
    /// What did not finish is still to be delivered; nobody takes it for a failed attempt.
    pub async fn close(&self, grace: Duration) {
        self.shared.closing.store(true, Ordering::Release);
        for consumer in self.shared.all_consumers() {
            consumer.stop_idle_lanes();
        }
        self.shared.asking.cancel();
        self.shared.aside.close();
        let asking = self.shared.asking.join();
        if self.shared.clock.timeout(ASKING_MAX, asking).await.is_err() {
            tracing::warn!("a question about events is left behind: the log does not answer it");
        }
        let lanes = self.shared.lanes.clone();
        let idle = async {
            while lanes.running() > 0 {
                self.shared.clock.sleep(Duration::from_millis(5)).await;
            }
        };
        self.shared.clock.timeout(grace, idle).await.ok();
        lanes.cancel();
        lanes.join().await;
        let (answer, answered) = oneshot::channel();
        if self.requests.send(Request::Close(answer)).await.is_ok() {
            drop(answered.await);
        }
        self.tasks.cancel();
        self.tasks.join().await;
        self.keeper.lock().await.sum_up(1);
        self.shared.log.close().await;
    }
}

/// The same as long as any rest, however many: whoever shows it need not write again for each.
fn bad_replies_in_words(key: &str) -> String {
    let (kind, name) = key.split_once('/').unwrap_or(("trigger", key));
    let list = format!("heddle dead-letters list --{kind} {name}");
    format!("its subscriber replied what could not go on; `{list}` shows the replies and why")
}

/// Everything on record waits for its time again.
fn schedule(shared: &Arc<Shared>) {
    let now = shared.clock.now();
    for consumer in shared.all_consumers() {
        let retries: Vec<_> = {
            let state = consumer.lock();
            let waits = state.retries.on_record.iter();
            waits
                .map(|(offset, retry)| (*offset, retry.wait(now)))
                .collect()
        };
        for (offset, wait) in retries {
            consumer.schedule(shared, TimerTask::Event(offset), wait);
        }
    }
    let now = shared.clock.monotonic();
    for (consumer, name) in shared.dead.lock().all_sinks_waiting() {
        let due = TimerEntry {
            at: now,
            consumer,
            what: TimerTask::Sink(name, 0),
        };
        shared.retries.add(due);
    }
}
