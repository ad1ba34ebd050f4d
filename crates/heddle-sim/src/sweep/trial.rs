//! One run of a story: a fresh world, the controllers in it, at most one fault, and how it all ended.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use heddle_apiserver::{ADMINS, ApiServer, CONTROLLERS, Identity, Registry};
use heddle_rt::{Chance, Clock};
use heddle_store::ChangeKind;
use kube::Client;
use parking_lot::Mutex;

use super::chaos::{Chaos, EVENT_FAULTS, Fault, Layer, write_faults};
use super::oracle::{Ending, snapshot};
use super::story::{Act, Story};
use crate::bundles::TestBundles;
use crate::stage;

/// How the controllers under test are started: on this client, in this time, by this chance, beside what outlives them.
pub type Controllers = fn(Client, Clock, Chance, Outside) -> BoxFuture<'static, ()>;

/// What is neither the API server nor the controllers, and survives them: one per run of a story.
#[derive(Debug, Clone)]
pub struct Outside {
    pub bundles: TestBundles,
}

/// How often controllers under test are to look at everything again. Shorter than in production, so that a run is mostly
/// about what happens in it and less about waiting.
pub const RESYNC: Duration = Duration::from_secs(60);

/// Longer than any pause of a controller: a reconcile of resync, jitter included, and the longest back-off after it.
const LONG: Duration = Duration::from_secs(100);

/// A run without faults, and what it passed through.
#[derive(Debug)]
pub struct Reference {
    pub ending: Ending,
    writes: usize,
    events: usize,
    revisions: usize,
}

impl Reference {
    /// Every single fault that can strike this story.
    pub fn faults(&self) -> Vec<Fault> {
        let writes = (0..self.writes)
            .flat_map(|number| write_faults(number).map(|fault| Fault::Write { number, fault }));
        let events = (0..self.events)
            .flat_map(|number| EVENT_FAULTS.map(|fault| Fault::Event { number, fault }));
        let stale = (0..self.revisions).map(|revision| Fault::StaleRestart { revision });
        writes.chain(events).chain(stale).collect()
    }
}

pub(super) fn reference(
    registry: &Arc<Registry>,
    story: &Story,
    controllers: Controllers,
) -> Reference {
    let (ending, (writes, events, revisions)) = run(registry, story, controllers, None);
    Reference {
        ending,
        writes,
        events,
        revisions,
    }
}

pub fn run_trial(
    registry: &Arc<Registry>,
    story: &Story,
    controllers: Controllers,
    fault: Option<Fault>,
) -> Ending {
    run(registry, story, controllers, fault).0
}

fn run(
    registry: &Arc<Registry>,
    story: &Story,
    controllers: Controllers,
    fault: Option<Fault>,
) -> (Ending, (usize, usize, usize)) {
    stage::simulated(play(Arc::clone(registry), story, controllers, fault))
}

async fn play(
    registry: Arc<Registry>,
    story: &Story,
    controllers: Controllers,
    fault: Option<Fault>,
) -> (Ending, (usize, usize, usize)) {
    let clock = stage::clock();
    let server = stage::open(registry, &clock, &stage::NAMESPACES).await;
    let users = Client::new(
        server.in_process(Identity::new("user", &[ADMINS])),
        "default",
    );
    let chaos = Chaos::new(server.clone(), clock.clone(), fault);
    let outside = Outside {
        bundles: TestBundles::new(clock.clone()),
    };
    let changes = Changes::default();
    let stale = matches!(chaos.fault(), Some(Fault::StaleRestart { .. }));
    let world = async {
        for act in &story.acts {
            match act {
                Act::Rest => clock.sleep(LONG).await,
                Act::Elsewhere { registry, event } => {
                    outside.bundles.registries.happen(registry, event.clone());
                }
                act => {
                    act.perform(&users).await.expect("users are not disturbed");
                    chaos.remember();
                }
            }
        }
        clock.sleep(LONG).await;
        if stale {
            chaos.freeze();
            chaos.crash.notify_one();
            chaos.thaw().await;
            clock.sleep(LONG).await;
        }
        let before = changes.total();
        clock.sleep(LONG).await;
        changes.total() - before
    };
    let noise = tokio::select! {
        noise = world => noise,
        () = lives(&server, &chaos, &clock, controllers, &outside) => unreachable!("controllers run for ever"),
        () = server.run_janitor() => unreachable!("the janitor runs for ever"),
        () = changes.count(&server) => unreachable!("watching runs for ever"),
    };
    let ending = Ending {
        objects: snapshot(&server),
        removals: changes.removals(),
        runs: outside.bundles.runs.count(),
        repeated: outside.bundles.runs.repeated().len(),
        noise,
    };
    (ending, chaos.counts())
}

/// Runs the controllers; each crash ends one life and begins the next, with empty caches.
async fn lives(
    server: &ApiServer,
    chaos: &Arc<Chaos>,
    clock: &Clock,
    controllers: Controllers,
    outside: &Outside,
) {
    for life in 0.. {
        let inner = server
            .in_process(Identity::new("controllers", &[CONTROLLERS]))
            .lean();
        let client = Client::new(
            Layer {
                inner,
                chaos: Arc::clone(chaos),
            },
            "default",
        );
        tokio::select! {
            () = controllers(client, clock.clone(), Chance::seeded(life), outside.clone()) => {}
            () = chaos.crash.notified() => {}
        }
    }
}

/// Counts what happens to objects, bookkeeping (Events, Leases) aside.
#[derive(Default)]
struct Changes(Mutex<(usize, BTreeMap<String, usize>)>);

impl Changes {
    async fn count(&self, server: &ApiServer) {
        let mut changes = futures::stream::SelectAll::new();
        for resource in server
            .registry()
            .stored()
            .filter(|r| !matches!(r.kind.as_str(), "Event" | "Lease"))
        {
            let (_, watch) = server.store().list_and_watch(&resource.storage);
            let stream = futures::stream::unfold(watch, |mut watch| async {
                Some((watch.next().await, watch))
            });
            changes.push(stream.boxed());
        }
        while let Some(change) = changes.next().await {
            let change = change.expect("a short run stays within the history");
            let mut seen = self.0.lock();
            seen.0 += 1;
            // Runs are bookkeeping under names of their own, and there are more of them after a crash.
            let is_run = change.object.key.to_string().contains("syncruns");
            if change.kind == ChangeKind::Deleted && !is_run {
                *seen.1.entry(change.object.key.to_string()).or_default() += 1;
            }
        }
        std::future::pending().await
    }

    fn total(&self) -> usize {
        self.0.lock().0
    }

    fn removals(&self) -> BTreeMap<String, usize> {
        std::mem::take(&mut self.0.lock().1)
    }
}
