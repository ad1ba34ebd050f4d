//! What strikes, drawn by chance: the network, the hosts, the disk, the moods of subscribers and the wishes of users.

use std::sync::atomic::Ordering;
use std::time::Duration;

use heddle_rt::vfs::Fault;

use super::super::opening::check_accounts;
use super::super::subscriber::Manner;
use super::super::wish::Wish;
use super::super::world::End;
use super::house::{NAME, Order};
use super::{LATENCY, SUBSCRIBERS, Storm};

/// The slowest subscriber that still answers in time, whatever an undisturbed network adds to it.
const SLOW_MS_MAX: u64 = 1_500;

impl Storm<'_> {
    /// Lets one thing happen, and some time pass.
    pub(super) fn act(&mut self) -> Result<(), String> {
        self.wait_a_little()?;
        if let Some(mesh) = self.mesh() {
            check_accounts(&mesh)?;
        }
        if self.is_hopeless() && self.chance.below(3) == 0 {
            return self.restart();
        }
        let number = self.chance.below(SUBSCRIBERS as u64) as usize;
        match self.chance.below(40) {
            0..10 => self.trouble_a_line(),
            10..15 => {
                let guest = self.some_guest();
                self.soothe(&guest);
            }
            15..20 => {
                let manner = Manner::some(&self.chance, SLOW_MS_MAX);
                self.manners.lock().insert(format!("t{number}"), manner);
            }
            20..24 => self.change_wish(number),
            24 => {
                self.note_the_dead();
                self.order(Order::Redrive);
            }
            25 => self.order(Order::Tidy),
            26 | 27 => self.hurt_the_disk(),
            28..32 => self.strike_a_subscriber(number),
            32..37 => self.restart()?,
            _ => self.wait(Duration::from_secs(3))?,
        }
        Ok(())
    }

    fn wait_a_little(&mut self) -> Result<(), String> {
        // Mostly less than it takes to make outcomes safe, sometimes long enough for some retries.
        let millis = match self.chance.below(6) {
            0..3 => self.chance.below(100),
            3 | 4 => self.chance.below(500),
            _ => self.chance.below(2_000),
        };
        self.wait(Duration::from_millis(millis))
    }

    /// Only a restart helps.
    fn is_hopeless(&self) -> bool {
        let life = self.house.life.lock();
        life.as_ref()
            .is_none_or(|life| life.mesh.is_broken() || life.stuck.load(Ordering::Relaxed))
    }

    /// The process ends somehow, is away for a while, and starts again.
    fn restart(&mut self) -> Result<(), String> {
        let end = match self.chance.below(5) {
            0 => End::Close,
            1 => End::Kill,
            _ => End::PowerLoss,
        };
        self.end(end)?;
        let millis = self.chance.below(800);
        self.wait(Duration::from_millis(millis))?;
        self.begin();
        Ok(())
    }

    fn some_guest(&self) -> String {
        let guests = self.guests.len() as u64;
        self.guests[self.chance.below(guests) as usize].clone()
    }

    /// Something happens to the line between heddle and somebody.
    fn trouble_a_line(&mut self) {
        let (guest, trouble) = (self.some_guest(), self.chance.below(6));
        if self.calm {
            return;
        }
        // One trouble at a time: turmoil does not know what two of them mean.
        self.soothe(&guest);
        let guest = guest.as_str();
        match trouble {
            0 => self.sim.partition(NAME, guest),
            1 => self.sim.partition_oneway(NAME, guest),
            2 => self.sim.partition_oneway(guest, NAME),
            3 => self.sim.hold(NAME, guest),
            4 => {
                let rate = [0.02, 0.1, 0.3][self.chance.below(3) as usize];
                self.sim.set_link_fail_rate(NAME, guest, rate);
            }
            _ => {
                // Some slower than anybody waits for.
                let millis = [100, 700, 3_000][self.chance.below(3) as usize];
                let latency = Duration::from_millis(millis);
                self.sim.set_link_max_message_latency(NAME, guest, latency);
            }
        }
        self.book.lock().figures.faults += 1;
    }

    /// The line between heddle and somebody is as good as new. What was held arrives, what was lost is lost.
    pub(super) fn soothe(&mut self, guest: &str) {
        self.sim.release(NAME, guest);
        self.sim.set_link_fail_rate(NAME, guest, 0.0);
        self.sim.set_link_max_message_latency(NAME, guest, LATENCY);
    }

    /// A subscriber goes, in silence or with a word on each line, or comes back.
    fn strike_a_subscriber(&mut self, number: usize) {
        let name = format!("t{number}");
        if self.down.remove(&name) {
            self.soothe(&name);
            self.sim.bounce(name.as_str());
            return;
        }
        if !self.calm && self.chance.below(2) == 0 {
            self.sim.partition(NAME, name.as_str());
        }
        self.sim.crash(name.as_str());
        self.down.insert(name);
        self.book.lock().figures.faults += 1;
    }

    fn change_wish(&mut self, number: usize) {
        let (what, draw) = (self.chance.below(4), self.chance.u64());
        self.edit(number, |wish| match what {
            0 | 1 => wish.paused = !wish.paused,
            2 => wish.retry = [0, 3, 9][(draw % 3) as usize],
            // The first stays ordered, so that its order can be judged.
            _ => wish.ordered = number == 0 || !wish.ordered,
        });
    }

    /// Edits a trigger; the table follows when the process gets to it.
    pub(super) fn edit(&mut self, number: usize, edit: impl FnOnce(&mut Wish)) {
        {
            let wish = &mut self.house.wishes.lock()[number];
            wish.generation += 1;
            edit(wish);
        }
        self.order(Order::Route);
    }

    /// A single operation of the disk will fail, or from one on all of them.
    fn hurt_the_disk(&mut self) {
        // A disk that fails while the process starts keeps it from starting, which is right and shows nothing.
        if !self.mesh().is_some_and(|mesh| mesh.is_routing()) {
            return;
        }
        let disk = self.house.disk.lock().clone();
        let soon = disk.operations() + 1 + self.chance.below(30);
        match self.chance.below(4) {
            0 => disk.fail_at(soon, Fault::Eio),
            1 => disk.fail_at(soon, Fault::Enospc),
            _ => disk.crash_at(soon),
        }
        self.book.lock().figures.faults += 1;
    }
}
