//! Reading the log for people, aside: nothing of it runs where events are accepted, matched and sent.
//!
//! ```text
//!   question ──slice──> queue ──> one thread that gets only what others leave ──> its outcome, then the next slice
//! ```
//! A question is worked on in slices, each a megabyte of the log or less, and queues up again behind each: a short question
//! does not wait for a long one to end, and ten of them take one core together and not ten. Whoever stops waiting asks for no
//! further slice; one that waits in the queue is then passed over. How many questions there are at once is bounded, for all
//! and for each who asks. Somebody who names what they ask for gets the newest answer only: the question before is given up.
//!
//! In simulated time a slice runs where it was asked for, since paused time would run past a thread.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use heddle_rt::{Clock, OnError, Tasks};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot, watch};

/// Questions at once. One takes its place and what it holds of the log; the thread does the work of all.
const QUESTIONS_MAX: usize = 256;
/// Of one asker: an eighth, so that it takes many to keep others out.
const QUESTIONS_PER_ASKER_MAX: usize = 32;
/// Slices that wait for the thread; a question has one at a time.
const SLICES_MAX: usize = 2 * QUESTIONS_MAX;

type Slice = Box<dyn FnOnce() + Send>;

/// Where questions are worked on.
#[derive(Debug)]
pub struct Aside {
    tasks: Tasks,
    inline: bool,
    thread: Mutex<AsideThread>,
    asked: Arc<Mutex<AskedQuestions>>,
    /// What waits is passed over.
    closed: Arc<AtomicBool>,
}

#[derive(Debug)]
enum AsideThread {
    /// Nobody has asked yet.
    Idle,
    Running(mpsc::Sender<Slice>),
    Closed,
}

/// Who asks what at the moment.
#[derive(Debug, Default)]
struct AskedQuestions {
    last: u64,
    by_number: HashMap<u64, AskedQuestion>,
}

#[derive(Debug)]
struct AskedQuestion {
    asker: String,
    /// What it is to the asker; a newer one of the same name replaces it.
    name: Option<String>,
    superseded: watch::Sender<bool>,
}

/// Why a question is not worked on, or no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AsideError {
    #[error("too many questions are being answered; ask again when one of them is")]
    Busy,
    #[error("a newer question with the same name took the place of this one")]
    Superseded,
    #[error("the mesh is closing; ask again after its restart")]
    Closed,
}

/// A question's place among those that are answered. It is given back when this is dropped.
#[derive(Debug)]
pub struct AsidePlace {
    aside: Arc<Aside>,
    number: u64,
    superseded: watch::Receiver<bool>,
}

impl Aside {
    /// The thread is one of `tasks`.
    #[must_use]
    pub fn new(clock: &Clock, tasks: &Tasks) -> Arc<Self> {
        Arc::new(Self {
            tasks: tasks.child("questions"),
            inline: clock.is_simulated(),
            thread: Mutex::new(AsideThread::Idle),
            asked: Arc::default(),
            closed: Arc::default(),
        })
    }

    /// A place for a question. With a name it takes that of the asker's older question of this name.
    pub fn enter(
        self: &Arc<Self>,
        asker: &str,
        name: Option<&str>,
    ) -> Result<AsidePlace, AsideError> {
        let mut asked = self.asked.lock();
        let same = |question: &&AskedQuestion| {
            name.is_some() && question.asker == asker && question.name.as_deref() == name
        };
        for older in asked.by_number.values().filter(same) {
            older.superseded.send_replace(true);
        }
        let going = |question: &&AskedQuestion| !*question.superseded.borrow();
        let all = asked.by_number.values().filter(going);
        let own = all.clone().filter(|question| question.asker == asker);
        if all.count() >= QUESTIONS_MAX || own.count() >= QUESTIONS_PER_ASKER_MAX {
            return Err(AsideError::Busy);
        }
        asked.last += 1;
        let number = asked.last;
        let (superseded, is_superseded) = watch::channel(false);
        let question = AskedQuestion {
            asker: asker.to_owned(),
            name: name.map(str::to_owned),
            superseded,
        };
        asked.by_number.insert(number, question);
        Ok(AsidePlace {
            aside: Arc::clone(self),
            number,
            superseded: is_superseded,
        })
    }

    /// Does one slice of work aside. Who stops waiting before its turn came lets it be passed over.
    pub(crate) async fn slice<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, AsideError> {
        if self.inline {
            if matches!(*self.thread.lock(), AsideThread::Closed) {
                return Err(AsideError::Closed);
            }
            let outcome = work();
            // As others get their turn while a thread works.
            tokio::task::yield_now().await;
            return Ok(outcome);
        }
        let slices = self.slices()?;
        let (done, waiting) = oneshot::channel();
        let slice = Box::new(move || {
            if !done.is_closed() {
                // Nobody waits any more when this fails, which is theirs to decide.
                done.send(work()).ok();
            }
        });
        let queued = slices.send(slice).await;
        queued.map_err(|_| AsideError::Closed)?;
        waiting.await.map_err(|_| AsideError::Closed)
    }

    /// How many questions have a place.
    #[cfg(test)]
    pub(crate) fn questions(&self) -> usize {
        self.asked.lock().by_number.len()
    }

    /// Takes no further slices; the thread ends behind the one that it works on.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        *self.thread.lock() = AsideThread::Closed;
    }

    fn slices(&self) -> Result<mpsc::Sender<Slice>, AsideError> {
        let mut thread = self.thread.lock();
        match &*thread {
            AsideThread::Running(slices) => Ok(slices.clone()),
            AsideThread::Closed => Err(AsideError::Closed),
            AsideThread::Idle => {
                let (slices, queue) = mpsc::channel(SLICES_MAX);
                let closed = Arc::clone(&self.closed);
                let work = move || work_through(queue, &closed);
                self.tasks
                    .spawn_idle_thread("questions", OnError::Report, work)
                    .map_err(|_| AsideError::Busy)?;
                *thread = AsideThread::Running(slices.clone());
                Ok(slices)
            }
        }
    }
}

/// Until everybody who could ask is gone. A slice that panics is the end of its question only.
fn work_through(mut queue: mpsc::Receiver<Slice>, closed: &AtomicBool) {
    while let Some(slice) = queue.blocking_recv() {
        if closed.load(Ordering::Acquire) {
            continue;
        }
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(slice));
        if caught.is_err() {
            tracing::error!("a question about events ended in a panic");
        }
    }
}

impl AsidePlace {
    /// Does one slice of work aside, unless a newer question took this one's place.
    pub async fn slice<T: Send + 'static>(
        &mut self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, AsideError> {
        if *self.superseded.borrow() {
            return Err(AsideError::Superseded);
        }
        let aside = Arc::clone(&self.aside);
        tokio::select! {
            biased;
            done = aside.slice(work) => done,
            _ = self.superseded.wait_for(|superseded| *superseded) => Err(AsideError::Superseded),
        }
    }

    /// Completes when a newer question took this one's place.
    pub(crate) async fn superseded(&mut self) {
        // The sender lives as long as the place is held.
        drop(self.superseded.wait_for(|superseded| *superseded).await);
    }
}

impl Drop for AsidePlace {
    fn drop(&mut self) {
        self.aside.asked.lock().by_number.remove(&self.number);
    }
}
