//! One mesh with everything around it: opened, struck down, opened again, healed and judged.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use heddle_mesh::Mesh;
use heddle_rt::vfs::{MemoryVfs, PowerLoss};
use heddle_rt::{Chance, Clock, Tasks};
use jiff::Timestamp;
use parking_lot::Mutex;

use super::book::Book;
use super::figures::Figures;
use super::network::Wires;
use super::opening::{self, Means, check_accounts, sums};
use super::planted::Planted;
use super::subscriber::{Manners, Subscribers};
use super::wish::{Wish, resources};

/// Long enough for every retry of every event.
const PATIENCE: Duration = Duration::from_secs(4 * 3600);

pub(super) struct World {
    pub(super) chance: Chance,
    pub(super) clock: Clock,
    pub(super) book: Arc<Mutex<Book>>,
    pub(super) manners: Manners,
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
        let subscribers = Subscribers {
            clock: clock.clone(),
            chance: chance.clone(),
            book: Arc::default(),
            manners: Manners::default(),
        };
        let (disk, tasks) = (MemoryVfs::new(), Tasks::new("sim"));
        let mesh = open(&subscribers, &disk, &tasks, planted)?;
        let wishes = (0..4)
            .map(|number| Wish {
                // One comes later.
                exists: number < 3,
                known: number < 3,
                // One is ordered from first to last.
                ordered: number == 0,
                ..Wish::new(number)
            })
            .collect();
        let Subscribers { book, manners, .. } = subscribers;
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
        let subscribers = Subscribers {
            clock: self.clock.clone(),
            chance: self.chance.clone(),
            book: Arc::clone(&self.book),
            manners: Arc::clone(&self.manners),
        };
        self.mesh = open(&subscribers, &self.disk, &self.tasks, self.planted)?;
        self.route().await;
        check_accounts(&self.mesh)
    }

    pub(super) fn note_the_dead(&mut self) {
        self.died.extend(self.resting());
    }

    fn resting(&self) -> BTreeSet<(String, usize)> {
        opening::resting(&self.mesh, &mut self.book.lock())
    }

    /// Everything is well from now on; what was promised must come true.
    pub(super) async fn heal(&mut self) -> Result<Figures, String> {
        self.manners.lock().clear();
        for number in 0..self.wishes.len() {
            self.edit(number, |wish| wish.paused = false);
        }
        self.next_life(End::PowerLoss).await?;
        self.until_done().await?;
        check_accounts(&self.mesh)?;
        self.note_the_dead();
        self.mesh.settled().await;
        let accounts = sums(&self.mesh);
        let resting = self.resting();
        self.next_life(End::PowerLoss).await?;
        if sums(&self.mesh) != accounts || self.resting() != resting {
            return Err(format!(
                "a restart changed the accounts: {accounts:?} became {:?}",
                sums(&self.mesh)
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
            if sums(&self.mesh).iter().all(|sums| sums.pending == 0) {
                return self.book.lock().verdict();
            }
            self.clock.sleep(Duration::from_millis(500)).await;
        }
        Err(format!("it never ends: {:?}", sums(&self.mesh)))
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
    subscribers: &Subscribers,
    disk: &MemoryVfs,
    tasks: &Tasks,
    planted: Planted,
) -> Result<Mesh, String> {
    opening::open(Means {
        clock: subscribers.clock.clone(),
        chance: subscribers.chance.clone(),
        disk: disk.clone(),
        tasks: tasks.clone(),
        connect: Arc::new(Wires {
            subscribers: subscribers.clone(),
            tasks: tasks.child("subscribers"),
        }),
        planted,
    })
}
