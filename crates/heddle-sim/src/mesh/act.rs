//! What happens, drawn by chance.

use std::time::Duration;

use bytes::Bytes;
use heddle_api::ledger::DeadLetterSelection;
use heddle_mesh::who::Who;
use heddle_rt::vfs::Fault;

use super::book::PublishResult;
use super::opening;
use super::subscriber::Manner;
use super::wish::{TYPES, Wish};
use super::world::{End, Start, World};

const KEYS: u64 = 3;
/// What a write may fail with that passes and breaks nothing.
const PASSING: [Fault; 5] = [
    Fault::Edquot,
    Fault::Emfile,
    Fault::Enfile,
    Fault::Enomem,
    Fault::Eintr,
];

impl World {
    /// Lets one thing happen.
    pub(super) async fn act(&mut self) -> Result<(), String> {
        if self.stuck || (self.mesh.is_broken() && self.chance.below(3) == 0) {
            let end = self.some_end();
            return self.next_life(end, Start::Disturbed).await;
        }
        let number = usize::try_from(self.chance.below(4)).expect("one of four");
        match self.chance.below(44) {
            0..14 => {
                for _ in 0..=self.chance.below(8) {
                    self.publish().await;
                }
            }
            14..20 => self.wait().await,
            20..24 => self.change_manner(number),
            24..30 => {
                self.change_wish(number);
                self.route().await;
            }
            30..32 => {
                self.recreate_or_delete(number);
                self.route().await;
            }
            32 => {
                self.note_the_dead();
                let all = DeadLetterSelection {
                    all: true,
                    ..DeadLetterSelection::default()
                };
                let redriving = self.mesh.redrive(&all, "a person");
                self.clock
                    .timeout(Duration::from_secs(1), redriving)
                    .await
                    .ok();
            }
            33 => {
                let tidying = self.mesh.tidy();
                self.clock
                    .timeout(Duration::from_secs(1), tidying)
                    .await
                    .ok();
            }
            34 => self.hurt_the_disk(),
            35..39 => self.blind_the_disk(12),
            _ => {
                let end = self.some_end();
                self.next_life(end, Start::Disturbed).await?;
            }
        }
        self.book.lock().verdict()
    }

    fn some_end(&self) -> End {
        match self.chance.below(5) {
            0 => End::Close,
            1 => End::Kill,
            _ => End::PowerLoss,
        }
    }

    async fn wait(&self) {
        // Mostly less than it takes to make outcomes safe, sometimes long enough for all retries.
        let millis = match self.chance.below(6) {
            0..3 => self.chance.below(60),
            3 | 4 => self.chance.below(3_000),
            _ => 40_000,
        };
        self.clock.sleep(Duration::from_millis(millis)).await;
    }

    fn change_manner(&self, number: usize) {
        let manner = Manner::some(&self.chance, 1_900);
        let name = self.wishes[number].name.clone();
        self.manners.lock().insert(name, manner);
    }

    fn change_wish(&mut self, number: usize) {
        let (what, draw) = (self.chance.below(5), self.chance.u64());
        self.edit(number, |wish| match what {
            0 => wish.type_ = None,
            1 => wish.type_ = Some(TYPES[(draw % 3) as usize]),
            2 => wish.paused = !wish.paused,
            3 => wish.retry = [0, 2, 30][(draw % 3) as usize],
            // The first stays ordered, so that its order can be judged.
            _ => wish.ordered = number == 0 || !wish.ordered,
        });
    }

    fn recreate_or_delete(&mut self, number: usize) {
        if self.wishes[number].exists {
            self.wishes[number].exists = false;
        } else {
            self.edit(number, |_| {});
        }
    }

    /// Edits a trigger, and makes it first if it is not there. What came meanwhile is its own by what it wants then.
    pub(super) fn edit(&mut self, number: usize, edit: impl FnOnce(&mut Wish)) {
        let wish = &mut self.wishes[number];
        wish.generation += 1;
        edit(wish);
        if wish.exists {
            return;
        }
        wish.exists = true;
        wish.uid += 1;
        let missed = std::mem::take(&mut wish.gap);
        if !std::mem::replace(&mut wish.known, true) {
            return;
        }
        let mut book = self.book.lock();
        let wanted: Vec<usize> = missed
            .into_iter()
            .filter(|event| wish.wants(book.published[*event].type_))
            .collect();
        book.owed
            .entry(wish.name.clone())
            .or_default()
            .extend(wanted);
    }

    /// A single operation of the disk will fail, or from one on all of them.
    fn hurt_the_disk(&self) {
        let soon = self.disk.operations() + 1 + self.chance.below(30);
        match self.chance.below(5) {
            0 => self.disk.fail_at(soon, Fault::Eio),
            1 => self.disk.fail_at(soon, Fault::Enospc),
            2 => {
                let fault = PASSING[self.chance.below(PASSING.len() as u64) as usize];
                self.disk.fail_at(soon, fault);
            }
            _ => self.disk.crash_at(soon),
        }
        self.book.lock().figures.faults += 1;
    }

    async fn publish(&mut self) {
        let type_ = TYPES[self.chance.below(3) as usize];
        let key = self.chance.below(KEYS);
        let mut data = vec![0; self.chance.below(400) as usize];
        self.chance.fill(&mut data);
        let data = Bytes::from(data);
        let (number, request) = {
            let mut book = self.book.lock();
            let id = book.published.len().to_string();
            let number = book.draft(id, type_, key, data);
            book.send(number);
            let request = opening::request(&book.published[number], "default");
            (number, request)
        };
        let status = self
            .mesh
            .source()
            .handle(&Who::Anonymous, request)
            .await
            .status()
            .as_u16();
        let answer = match status {
            202 => PublishResult::Accepted,
            429 | 507 => PublishResult::Refused,
            _ => PublishResult::Unknown,
        };
        self.publish_answered(number, answer);
    }

    fn publish_answered(&mut self, number: usize, answer: PublishResult) {
        let mut book = self.book.lock();
        if !book.answered(number, answer) {
            return;
        }
        let type_ = book.published[number].type_;
        for wish in &mut self.wishes {
            if wish.exists && wish.wants(type_) {
                book.owe(&wish.name, number);
            } else if !wish.exists && wish.known {
                wish.gap.push(number);
            }
        }
    }
}
