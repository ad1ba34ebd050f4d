//! One mesh with everything around it: opened, struck down, opened again, healed and judged.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use heddle_api::ledger::{Account, DeadLetterSelection};
use heddle_mesh::log::embedded::{self, EmbeddedLog};
use heddle_mesh::log::{Log, Reserve};
use heddle_mesh::path::delivery::ConnectionLimits;
use heddle_mesh::path::delivery::courier::{Courier, CourierOptions};
use heddle_mesh::routes::Resources;
use heddle_mesh::{Mesh, Options, Quota, Retention};
use heddle_rt::vfs::{MemoryVfs, PowerLoss};
use heddle_rt::{Chance, Clock, Tasks};
use heddle_store::Mode;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::json;

use super::book::{Book, Figures};
use super::network::{Manner, Network, Wires};
use super::planted::Planted;

/// Small, so that segments are sealed, summed up and removed during a run.
const SEGMENT_BYTES: u64 = 8 << 10;
/// Long enough for every retry of every event.
const PATIENCE: Duration = Duration::from_secs(4 * 3600);

/// What users want of one trigger. Its name is its subscriber's host, too.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    pub(super) name: String,
    pub(super) exists: bool,
    /// Its name has a place, so that it goes on where it was when it is made again.
    pub(super) known: bool,
    pub(super) uid: u64,
    pub(super) generation: u64,
    pub(super) type_: Option<&'static str>,
    pub(super) paused: bool,
    pub(super) ordered: bool,
    pub(super) retry: u64,
    /// Events that came while it did not exist.
    pub(super) gap: Vec<usize>,
}

impl Wish {
    pub(super) fn wants(&self, type_: &str) -> bool {
        self.type_.is_none_or(|wanted| wanted == type_)
    }
}

pub(super) struct World {
    pub(super) chance: Chance,
    pub(super) clock: Clock,
    pub(super) book: Arc<Mutex<Book>>,
    pub(super) manners: Arc<Mutex<BTreeMap<String, Manner>>>,
    pub(super) wishes: Vec<Wish>,
    pub(super) disk: MemoryVfs,
    pub(super) mesh: Mesh,
    /// Dead letters that were seen, so that order is not asked of them.
    pub(super) died: BTreeSet<(String, usize)>,
    /// A table could not be brought into force.
    pub(super) stuck: bool,
    planted: Planted,
    tasks: Tasks,
}

impl World {
    pub(super) fn new(seed: u64, planted: Planted) -> Result<Self, String> {
        let start = Timestamp::from_second(1_800_000_000).expect("a time in range");
        let (clock, chance) = (Clock::simulated(start), Chance::seeded(seed));
        let (book, manners) = (Arc::default(), Arc::default());
        let (disk, tasks) = (MemoryVfs::new(), Tasks::new("sim"));
        let mesh = open(&clock, &chance, &book, &manners, &disk, &tasks, planted)?;
        let wishes = (0..4)
            .map(|number| Wish {
                name: format!("t{number}"),
                // One comes later.
                exists: number < 3,
                known: number < 3,
                uid: 0,
                generation: 1,
                type_: None,
                paused: false,
                // One is ordered from first to last.
                ordered: number == 0,
                retry: 30,
                gap: Vec::new(),
            })
            .collect();
        Ok(Self {
            chance,
            clock,
            book,
            manners,
            wishes,
            disk,
            mesh,
            died: BTreeSet::new(),
            stuck: false,
            planted,
            tasks,
        })
    }

    /// Brings what users want into force. On a broken disk that never ends; whether it is in force is then known only to
    /// the next life, and nothing may be asked of this one any more.
    pub(super) async fn route(&mut self) {
        let resources = resources(&self.wishes);
        let routing = self.mesh.route(&resources);
        let routed = self.clock.timeout(Duration::from_secs(5), routing).await;
        self.stuck = routed.is_err();
    }

    /// The process ends somehow, and another one takes over.
    pub(super) async fn next_life(&mut self, end: End) -> Result<(), String> {
        self.note_the_dead();
        if end == End::Close {
            self.mesh.close(Duration::from_millis(200)).await;
        }
        self.tasks.cancel();
        self.tasks.join().await;
        self.disk = match end {
            End::Close | End::Kill => self.disk.kill(),
            End::PowerLoss => self.disk.power_loss(PowerLoss::Arbitrary {
                seed: self.chance.u64(),
            }),
        };
        self.book.lock().life += 1;
        self.book.lock().figures.crashes += u64::from(end != End::Close);
        self.tasks = Tasks::new("sim");
        self.mesh = open(
            &self.clock,
            &self.chance,
            &self.book,
            &self.manners,
            &self.disk,
            &self.tasks,
            self.planted,
        )?;
        self.route().await;
        self.check_accounts()
    }

    /// What the mesh says about itself adds up.
    pub(super) fn check_accounts(&self) -> Result<(), String> {
        for account in self.mesh.accounts(true).consumers {
            if account.difference() != 0 || account.dead_lettered != account.dead_letters {
                return Err(format!("an account does not balance: {account:?}"));
            }
        }
        Ok(())
    }

    pub(super) fn note_the_dead(&mut self) {
        self.died.extend(self.resting());
    }

    fn resting(&self) -> BTreeSet<(String, usize)> {
        let page = self
            .mesh
            .dead_letters(&DeadLetterSelection::default(), 0, 500);
        assert!(page.next.is_none(), "a run has few dead letters");
        let letters = page.items.into_iter();
        letters
            .filter_map(|letter| {
                let trigger = letter.consumer.strip_prefix("trigger/ns/")?;
                Some((trigger.to_owned(), letter.id.parse().ok()?))
            })
            .collect()
    }

    /// Everything is well from now on; what was promised must come true.
    pub(super) async fn heal(&mut self) -> Result<Figures, String> {
        self.manners.lock().clear();
        for number in 0..self.wishes.len() {
            self.edit(number, |wish| wish.paused = false);
        }
        self.next_life(End::PowerLoss).await?;
        self.until_done().await?;
        self.check_accounts()?;
        self.note_the_dead();
        self.mesh.settled().await;
        let accounts = self.sums();
        let resting = self.resting();
        self.next_life(End::PowerLoss).await?;
        if self.sums() != accounts || self.resting() != resting {
            return Err(format!(
                "a restart changed the accounts: {accounts:?} became {:?}",
                self.sums()
            ));
        }
        let died = self.died.iter().filter(|(trigger, _)| trigger == "t0");
        let died = died.map(|(_, event)| *event).collect();
        let mut book = self.book.lock();
        book.settle(&resting);
        book.check_order("t0", &died);
        book.verdict()?;
        Ok(book.figures)
    }

    async fn until_done(&self) -> Result<(), String> {
        let until = self.clock.monotonic() + PATIENCE;
        while self.clock.monotonic() < until {
            if self.sums().iter().all(|sums| sums.pending == 0) {
                return self.book.lock().verdict();
            }
            self.clock.sleep(Duration::from_millis(500)).await;
        }
        Err(format!("it never ends: {:?}", self.sums()))
    }

    /// What counts of the accounts, without what merely describes the moment.
    fn sums(&self) -> Vec<Account> {
        let accounts = self.mesh.accounts(true).consumers.into_iter();
        accounts
            .map(|account| Account {
                schedule: String::new(),
                ..account
            })
            .collect()
    }
}

/// How a process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Close,
    Kill,
    PowerLoss,
}

fn open(
    clock: &Clock,
    chance: &Chance,
    book: &Arc<Mutex<Book>>,
    manners: &Arc<Mutex<BTreeMap<String, Manner>>>,
    disk: &MemoryVfs,
    tasks: &Tasks,
    planted: Planted,
) -> Result<Mesh, String> {
    let log = EmbeddedLog::open(embedded::Options {
        vfs: planted.disk(disk.shared()),
        dir: "/mesh".into(),
        clock: clock.clone(),
        tasks: tasks.child("log"),
        mode: Mode::Inline,
        segment_bytes: Some(SEGMENT_BYTES),
        reserve: Reserve::default(),
    });
    let log: Arc<dyn Log> = Arc::new(log.map_err(|error| format!("no log: {error}"))?);
    let network = Network {
        clock: clock.clone(),
        chance: chance.clone(),
        tasks: tasks.child("subscribers"),
        book: Arc::clone(book),
        manners: Arc::clone(manners),
    };
    let limits = heddle_mesh::event::http::Limits::default();
    let courier = Courier::new(CourierOptions {
        tasks: tasks.child("connections"),
        clock: clock.clone(),
        connect: Arc::new(Wires(Arc::new(network))),
        limits: ConnectionLimits::default(),
        replies: limits,
    });
    let options = Options {
        clock: clock.clone(),
        chance: chance.clone(),
        tasks: tasks.clone(),
        log: planted.log(log),
        courier,
        retention: Retention {
            age_max: Duration::from_secs(20),
            bytes_max: 4 * SEGMENT_BYTES,
        },
        quota: Quota::default(),
        limits,
        observer: None,
    };
    Mesh::open(options).map_err(|error| format!("no mesh: {error}"))
}

fn resources(wishes: &[Wish]) -> Resources {
    let broker = json!({
        "apiVersion": "eventing.knative.dev/v1", "kind": "Broker",
        "metadata": {"namespace": "ns", "name": "default", "uid": "b", "generation": 1}, "spec": {},
    });
    let broker = serde_json::from_value(broker).expect("a broker");
    let triggers = wishes.iter().filter(|wish| wish.exists).map(|wish| {
        let url = format!("http://{}/", wish.name);
        let order = if wish.ordered { "ordered" } else { "unordered" };
        let filter = wish
            .type_
            .map(|type_| json!({"attributes": {"type": type_}}));
        let trigger = json!({
            "apiVersion": "eventing.knative.dev/v1", "kind": "Trigger",
            "metadata": {
                "namespace": "ns", "name": wish.name,
                "uid": format!("{}-{}", wish.name, wish.uid), "generation": wish.generation,
                "annotations": {
                    "heddle.dev/paused": wish.paused.to_string(),
                    "heddle.dev/delivery-order": order,
                    "heddle.dev/max-in-flight": "8",
                },
            },
            "spec": {
                "broker": "default", "subscriber": {"uri": url}, "filter": filter,
                "delivery": {"timeout": "PT2S", "retry": wish.retry, "backoffDelay": "PT0.05S"},
            },
            "status": {"subscriberUri": url},
        });
        Arc::new(serde_json::from_value(trigger).expect("a trigger"))
    });
    Resources {
        brokers: vec![Arc::new(broker)],
        triggers: triggers.collect(),
        ..Resources::default()
    }
}
