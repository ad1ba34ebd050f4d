//! The whole mesh on turmoil's network: real HTTP on every line, links that break, hosts that crash.
//!
//! ```text
//!   p0 p1 p2 ──HTTP──> heddle: door, mesh, disk ──HTTP──> t0 t1 t2
//!      publishers          the seed strikes here            subscribers
//! ```
//! What the simulation over pipes cannot show is here: answers that are lost, requests that arrive after their sender
//! gave up, connections of which only one side knows that they ended, publishers that do not know and publish again.
//! What is owed is judged by the same book. Wishes about filters do not change, because an event on its way would be
//! anybody's; what edits do to events is left to the other simulation.
//!
//! A process runs one seed only. Then whatever differs from process to process, such as the order of a hash map, would
//! give the same seed another history, and be found by the hash of it.

mod house;
mod nemesis;
mod publisher;
mod wire;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use heddle_mesh::Mesh;
use heddle_rt::vfs::{MemoryVfs, PowerLoss};
use heddle_rt::{Chance, Clock, OnError, Tasks};
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use turmoil::Sim;
use turmoil::net::TcpListener;

use super::book::Book;
use super::figures::Figures;
use super::opening::{check_accounts, resting, sums};
use super::planted::Planted;
use super::subscriber::{Manners, Subscribers};
use super::wish::{TYPES, Wish};
use super::world::End;
use house::{House, Order};
use publisher::Publisher;
use wire::Lines;

const SUBSCRIBERS: usize = 3;
const PUBLISHERS: u64 = 3;
/// How many events each publisher has.
const EVENTS: u64 = 20;
/// How many things happen before everything heals.
const ACTS: u64 = 45;
/// How far time goes in one step. A message takes at least one, so that this is also how fine the network is.
const TICK: Duration = Duration::from_millis(10);
/// How long messages take when nobody makes them slower.
const LATENCY: Duration = Duration::from_millis(20);
/// Longer than all retries of an event, and all tries of a publisher, one after the other.
const PATIENCE: Duration = Duration::from_secs(900);
/// Connections that wait at a door. A network that is let go at once brings many.
const BACKLOG: usize = 4096;

/// Runs one seed. The error is what was promised and did not hold.
pub fn run(seed: u64, planted: Planted) -> Result<Figures, String> {
    let mut storm = Storm::new(seed, planted);
    for _ in 0..ACTS {
        storm.act()?;
    }
    storm.heal()?;
    storm.judge()
}

struct Storm<'a> {
    sim: Sim<'a>,
    chance: Chance,
    house: Arc<House>,
    book: Arc<Mutex<Book>>,
    manners: Manners,
    /// Everybody but heddle.
    guests: Vec<String>,
    /// Subscribers that are not there.
    down: BTreeSet<String>,
    /// Dead letters that were seen, so that order is not asked of them.
    died: BTreeSet<(String, usize)>,
    /// The network keeps what it is given, so that no answer is lost and nothing may be sent twice without a reason.
    calm: bool,
    published: bool,
}

impl Storm<'_> {
    fn new(seed: u64, planted: Planted) -> Self {
        let chance = Chance::seeded(seed);
        let mut sim = turmoil::Builder::new()
            .rng_seed(chance.u64())
            .epoch(SystemTime::UNIX_EPOCH)
            .tick_duration(TICK)
            .simulation_duration(Duration::MAX)
            .max_message_latency(LATENCY)
            .repair_rate(0.2)
            .tcp_capacity(BACKLOG)
            .enable_random_order()
            .build();
        let calm = chance.below(4) == 0;
        let book: Arc<Mutex<Book>> = Arc::default();
        book.lock().answers_get_lost = !calm;
        let house = Arc::new(House {
            chance: Chance::seeded(chance.u64()),
            planted,
            book: Arc::clone(&book),
            lines: Lines::default(),
            disk: Mutex::new(MemoryVfs::new()),
            wishes: Mutex::new((0..SUBSCRIBERS).map(wish).collect()),
            life: Mutex::new(None),
        });
        let living = Arc::clone(&house);
        sim.host(house::NAME, move || Arc::clone(&living).live());
        let subscribers = Subscribers {
            clock: Clock::simulated(Timestamp::UNIX_EPOCH),
            chance: Chance::seeded(chance.u64()),
            book: Arc::clone(&book),
            manners: Manners::default(),
        };
        let mut guests = Vec::new();
        for wish in house.wishes.lock().iter() {
            let (subscribers, lines) = (subscribers.clone(), Arc::clone(&house.lines));
            let name = wish.name.clone();
            sim.host(wish.name.as_str(), move || {
                attend(subscribers.clone(), name.clone(), Arc::clone(&lines))
            });
            guests.push(wish.name.clone());
        }
        for number in 0..PUBLISHERS {
            let publisher = Publisher {
                number,
                events: EVENTS,
                clock: Clock::simulated(Timestamp::UNIX_EPOCH),
                chance: Chance::seeded(chance.u64()),
                book: Arc::clone(&book),
                wishes: house.wishes.lock().clone(),
            };
            let name = format!("p{number}");
            sim.client(name.as_str(), publisher.run());
            guests.push(name);
        }
        Self {
            sim,
            chance,
            house,
            book,
            manners: subscribers.manners,
            guests,
            down: BTreeSet::new(),
            died: BTreeSet::new(),
            calm,
            published: false,
        }
    }

    /// Lets time pass.
    fn wait(&mut self, duration: Duration) -> Result<(), String> {
        let until = self.sim.elapsed() + duration;
        while self.sim.elapsed() < until {
            self.published = self.sim.step().map_err(|error| error.to_string())?;
        }
        self.book.lock().verdict()
    }

    /// The mesh, while its process runs.
    fn mesh(&self) -> Option<Mesh> {
        let life = self.house.life.lock();
        life.as_ref().map(|life| life.mesh.clone())
    }

    /// Tells the process something, if it runs.
    fn order(&self, order: Order) {
        if let Some(life) = self.house.life.lock().as_ref() {
            // It may have ended since.
            life.orders.send(order).ok();
        }
    }

    fn note_the_dead(&mut self) -> BTreeSet<(String, usize)> {
        let Some(mesh) = self.mesh() else {
            return BTreeSet::new();
        };
        let resting = resting(&mesh, &mut self.book.lock());
        self.died.extend(resting.iter().cloned());
        resting
    }

    /// The process ends somehow. What its disk still knows is decided before it can do anything about it.
    fn end(&mut self, end: End) -> Result<(), String> {
        self.note_the_dead();
        let life = self.house.life.lock().clone();
        let tasks = life.map(|life| life.tasks);
        if end == End::Close {
            self.order(Order::Close);
            self.wait(Duration::from_secs(1))?;
        }
        let failures = tasks.map(|tasks| tasks.failures()).unwrap_or_default();
        if !failures.is_empty() {
            return Err(format!("tasks failed: {failures:?}"));
        }
        let disk = self.house.disk.lock().clone();
        let disk = match end {
            End::Close | End::Kill => disk.kill(),
            End::PowerLoss => disk.power_loss(PowerLoss::Arbitrary {
                seed: self.chance.u64(),
            }),
        };
        if end == End::PowerLoss {
            // Nobody is left to say goodbye: its connections are open for ever as far as others know.
            for guest in &self.guests {
                self.sim.partition(house::NAME, guest.as_str());
            }
        }
        drop(self.house.life.lock().take());
        self.sim.crash(house::NAME);
        *self.house.disk.lock() = disk;
        let mut book = self.book.lock();
        book.life += 1;
        book.figures.crashes += u64::from(end != End::Close);
        Ok(())
    }

    /// The process starts again.
    fn begin(&mut self) {
        for guest in self.guests.clone() {
            self.soothe(&guest);
        }
        self.sim.bounce(house::NAME);
    }

    /// Everything is well from now on; what was promised must come true.
    fn heal(&mut self) -> Result<(), String> {
        self.manners.lock().clear();
        for number in 0..SUBSCRIBERS {
            self.edit(number, |wish| wish.paused = false);
        }
        for name in std::mem::take(&mut self.down) {
            self.sim.bounce(name.as_str());
        }
        self.end(End::PowerLoss)?;
        self.begin();
        let until = self.sim.elapsed() + PATIENCE;
        while self.sim.elapsed() < until {
            // Long enough for what was under way when its sender gave up.
            self.wait(Duration::from_secs(2))?;
            let Some(mesh) = self.mesh().filter(Mesh::is_routing) else {
                continue;
            };
            check_accounts(&mesh)?;
            let accounts = mesh.accounts(true);
            let matched = accounts.matched_up_to >= accounts.log.next;
            let done = accounts.consumers.iter().all(|one| one.pending == 0);
            if self.published && matched && done {
                return Ok(());
            }
        }
        let accounts = self.mesh().map(|mesh| sums(&mesh));
        Err(format!("it never ends: {accounts:?}"))
    }

    /// Nothing is owed any more, and another loss of power changes nothing of that.
    fn judge(&mut self) -> Result<Figures, String> {
        let (settled, mut settling) = oneshot::channel();
        self.order(Order::Settle(settled));
        self.wait(Duration::from_secs(1))?;
        settling
            .try_recv()
            .map_err(|_| "nothing is left to do, and it does not become safe".to_owned())?;
        let accounts = self.mesh().map(|mesh| sums(&mesh));
        let resting = self.note_the_dead();
        self.end(End::PowerLoss)?;
        self.begin();
        self.wait(Duration::from_secs(1))?;
        let again = self.mesh().map(|mesh| sums(&mesh));
        if accounts != again || resting != self.note_the_dead() {
            return Err(format!(
                "a restart changed the accounts: {accounts:?} became {again:?}"
            ));
        }
        let mut book = self.book.lock();
        book.settle(&resting);
        book.check_types(&self.house.wishes.lock());
        // What its publisher gave up may have come at any later time.
        let died = self.died.iter().filter(|(trigger, _)| trigger == "t0");
        let exempt = died.map(|(_, event)| *event).chain(book.unknown());
        let exempt = exempt.collect();
        book.check_order("t0", &exempt);
        book.verdict()?;
        let end = format!("{:?} {accounts:?}", self.sim.elapsed());
        book.note(&end);
        Ok(book.figures)
    }
}

/// The first wants everything in order, the next some, the last everything.
fn wish(number: usize) -> Wish {
    Wish {
        ordered: number == 0,
        type_: (number == 1).then_some(TYPES[0]),
        retry: 9,
        ..Wish::new(number)
    }
}

/// A subscriber from its start to its end.
async fn attend(subscribers: Subscribers, name: String, lines: Lines) -> turmoil::Result {
    let tasks = Tasks::new(&name);
    let listener = TcpListener::bind("0.0.0.0:80").await?;
    loop {
        let (stream, peer) = listener.accept().await?;
        let elapsed = turmoil::sim_elapsed().unwrap_or_default();
        let arrival = format!("{name} {peer} {elapsed:?}");
        subscribers.book.lock().note(&arrival);
        let (subscribers, name, lines) = (subscribers.clone(), name.clone(), Arc::clone(&lines));
        tasks.spawn("guest", OnError::Report, async move {
            // Nobody but heddle connects, and it says so before it sends anything.
            let life = || lines.lock().get(&peer).copied().unwrap_or(u64::MAX);
            subscribers.serve(&name, stream, life).await;
        });
    }
}
