//! One mesh with everything around it: opened, struck down, opened again, healed and judged.
//!
//! Between two lives somebody may set the wall clock, back or forward, and while one begins the disk may not be readable.
//! Neither says anything about an event, so neither may end one or hold it up for longer than its policy asks.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use heddle_mesh::Mesh;
use heddle_rt::vfs::{Fault, MemoryVfs, PowerLoss};
use heddle_rt::{Chance, Clock, Tasks};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use super::book::Book;
use super::figures::Figures;
use super::network::Wires;
use super::opening::{self, OpenDeps, check_accounts, sums};
use super::planted::Planted;
use super::subscriber::{Manners, Subscribers};
use super::wish::{Wish, resources};

/// Long enough for every retry of every event.
const PATIENCE: Duration = Duration::from_secs(4 * 3600);
/// How far a wall clock may be from the truth. Set back by twice this, whatever waits for a time waits longer than
/// [`PATIENCE`]; set forward by it, the place of a deleted trigger is not given up yet.
const CLOCK_ERROR_MAX: SignedDuration = SignedDuration::from_hours(10);
/// How many looks in a row fail when they do for a while.
const BLIND_LOOKS_MAX: u64 = 25;

pub(super) struct World {
    pub(super) chance: Chance,
    /// What the process takes for the time.
    pub(super) clock: Clock,
    /// What it is.
    truth: Clock,
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
            truth: clock.clone(),
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
    pub(super) async fn next_life(&mut self, end: End, start: Start) -> Result<(), String> {
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
        self.mesh = match start {
            Start::Calm => self.open()?,
            Start::SetBack => {
                self.set_clock(-CLOCK_ERROR_MAX);
                self.open()?
            }
            Start::Disturbed => self.open_disturbed().await?,
        };
        self.route().await;
        check_accounts(&self.mesh)
    }

    /// Opens it with a clock that somebody may have set, and a disk that may not be readable for a moment. A start that
    /// cannot read is refused, and has changed nothing: the next one finds everything.
    async fn open_disturbed(&mut self) -> Result<Mesh, String> {
        if self.chance.below(3) == 0 {
            let seconds = CLOCK_ERROR_MAX.as_secs().unsigned_abs();
            let error = self.chance.below(2 * seconds).cast_signed();
            self.set_clock(SignedDuration::from_secs(error) - CLOCK_ERROR_MAX);
        }
        if self.chance.below(5) > 0 {
            return self.open();
        }
        self.blind_the_disk(10);
        if let Ok(mesh) = self.open() {
            return Ok(mesh);
        }
        self.tasks.cancel();
        self.tasks.join().await;
        self.disk = self.disk.kill();
        self.tasks = Tasks::new("sim");
        self.open()
    }

    /// Sets the wall clock that the next life will see.
    fn set_clock(&mut self, error: SignedDuration) {
        let now = self.truth.now().saturating_add(error);
        self.clock = Clock::simulated(now.expect("a few hours from a time in range"));
        self.book.lock().figures.faults += 1;
    }

    /// Looks at the disk will fail, after a few more, once or for a while.
    pub(super) fn blind_the_disk(&self, looks_max: u64) {
        let first = self.disk.looks() + 1 + self.chance.below(looks_max);
        let width = match self.chance.below(2) {
            0 => 1,
            _ => 1 + self.chance.below(BLIND_LOOKS_MAX),
        };
        let fault = Fault::OF_READS[self.chance.below(Fault::OF_READS.len() as u64) as usize];
        self.disk.fail_looks(first..first + width, fault);
        self.book.lock().figures.faults += 1;
    }

    fn open(&self) -> Result<Mesh, String> {
        let subscribers = Subscribers {
            clock: self.clock.clone(),
            chance: self.chance.clone(),
            book: Arc::clone(&self.book),
            manners: Arc::clone(&self.manners),
        };
        open(&subscribers, &self.disk, &self.tasks, self.planted)
    }

    pub(super) fn note_the_dead(&mut self) {
        self.died.extend(self.resting());
    }

    /// Whoever judges sees everything.
    fn resting(&self) -> BTreeSet<(String, usize)> {
        self.disk.fail_looks(0..0, Fault::Eio);
        opening::resting(&self.mesh, &mut self.book.lock())
    }

    /// Everything is well from now on; what was promised must come true.
    pub(super) async fn heal(&mut self) -> Result<Figures, String> {
        self.manners.lock().clear();
        for number in 0..self.wishes.len() {
            self.edit(number, |wish| wish.paused = false);
        }
        self.next_life(End::PowerLoss, Start::SetBack).await?;
        self.until_done().await?;
        check_accounts(&self.mesh)?;
        self.note_the_dead();
        self.mesh.settled().await;
        let accounts = sums(&self.mesh);
        let resting = self.resting();
        self.next_life(End::PowerLoss, Start::Calm).await?;
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

/// How the next one begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    Calm,
    /// With a clock that is as far behind as clocks get.
    SetBack,
    /// With any clock, and a disk that may not be readable.
    Disturbed,
}

fn open(
    subscribers: &Subscribers,
    disk: &MemoryVfs,
    tasks: &Tasks,
    planted: Planted,
) -> Result<Mesh, String> {
    opening::open(OpenDeps {
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
