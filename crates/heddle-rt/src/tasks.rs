//! The tree of tasks: every task has a name, an owner and an end.
//!
//! Two questions are answered when a task is started. What does cancel mean: [`Tasks::spawn`] drops
//! the future, [`Tasks::spawn_finishing`] lets it finish. What does an error mean: it is reported,
//! it ends the process ([`OnError`]), or the task is started again ([`Tasks::spawn_restarting`]).
//! A panic is an error like any other, told with the task's name. Nothing is detached:
//! [`Tasks::join`] returns when every task and thread below has ended.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt::Display;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tracing::Instrument as _;

use crate::{Backoff, Clock};

/// Reports kept for whoever asks; older ones are in the log only.
const FAILURES_MAX: usize = 64;
/// The least that a thread can want.
const IDLE_NICE: i32 = 19;

/// What the error of a task means for everybody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnError {
    /// It is logged and kept in [`Tasks::failures`].
    Report,
    /// Heddle cannot do without this task: [`Tasks::ended_by`] returns and the process ends.
    EndProcess,
}

/// A task that ended with an error or a panic.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("task {task} failed: {reason}")]
pub struct Failure {
    pub task: String,
    pub reason: String,
}

/// How a task may end: with nothing to say, or with a result.
pub trait Outcome {
    /// The error, as text for the report.
    fn error(self) -> Option<String>;
}

impl Outcome for () {
    fn error(self) -> Option<String> {
        None
    }
}

impl<E: Display> Outcome for Result<(), E> {
    fn error(self) -> Option<String> {
        self.err().map(|error| error.to_string())
    }
}

/// A group of tasks. Clones are the same group.
#[derive(Clone, Debug)]
pub struct Tasks {
    group: Arc<Group>,
}

#[derive(Debug)]
struct Group {
    name: String,
    parent: Option<Arc<Self>>,
    cancel: CancellationToken,
    tracker: TaskTracker,
    /// The same for the whole tree.
    reports: Arc<Reports>,
}

#[derive(Debug, Default)]
struct Reports {
    failures: Mutex<VecDeque<Failure>>,
    fatal: Mutex<Option<Failure>>,
    ended: CancellationToken,
}

impl Tasks {
    /// The root of a tree.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self::of(
            name.to_owned(),
            None,
            CancellationToken::new(),
            Arc::default(),
        )
    }

    /// A group that is cancelled with this one and can be cancelled alone.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        let name = format!("{}/{name}", self.group.name);
        let parent = self.group.clone();
        Self::of(
            name,
            Some(parent),
            self.group.cancel.child_token(),
            self.group.reports.clone(),
        )
    }

    fn of(
        name: String,
        parent: Option<Arc<Group>>,
        cancel: CancellationToken,
        reports: Arc<Reports>,
    ) -> Self {
        let tracker = TaskTracker::new();
        tracker.close(); // A closed tracker still takes tasks; it only makes waiting possible.
        Self {
            group: Arc::new(Group {
                name,
                parent,
                cancel,
                tracker,
                reports,
            }),
        }
    }

    /// Runs `future` until it ends or the group is cancelled, which drops it.
    pub fn spawn<F>(&self, name: &str, on_error: OnError, future: F)
    where
        F: Future<Output: Outcome> + Send + 'static,
    {
        let cancel = self.group.cancel.clone();
        self.start(name, on_error, async move {
            cancel
                .run_until_cancelled(future)
                .await
                .and_then(Outcome::error)
        });
    }

    /// Runs a future that is told about the cancellation and finishes by itself.
    pub fn spawn_finishing<F>(
        &self,
        name: &str,
        on_error: OnError,
        make: impl FnOnce(CancellationToken) -> F,
    ) where
        F: Future<Output: Outcome> + Send + 'static,
    {
        let future = make(self.group.cancel.clone());
        self.start(name, on_error, async move { future.await.error() });
    }

    /// Runs `make`'s future again whenever it fails, after a wait that grows; until it ends well or
    /// the group is cancelled. Each failure is reported.
    pub fn spawn_restarting<F>(
        &self,
        name: &str,
        clock: Clock,
        mut backoff: Backoff,
        mut make: impl FnMut() -> F + Send + 'static,
    ) where
        F: Future<Output: Outcome> + Send + 'static,
    {
        let task = self.task_name(name);
        let (cancel, reports) = (self.group.cancel.clone(), self.group.reports.clone());
        let forever = async move {
            while let Some(reason) = reason_of(caught(make()).await.map(Outcome::error)) {
                let wait = backoff.failed();
                reports.add(
                    Failure {
                        task: task.clone(),
                        reason,
                    },
                    OnError::Report,
                );
                clock.sleep(wait).await;
            }
        };
        self.start(name, OnError::Report, async move {
            cancel.run_until_cancelled(forever).await;
            None
        });
    }

    fn start(
        &self,
        name: &str,
        on_error: OnError,
        future: impl Future<Output = Option<String>> + Send + 'static,
    ) {
        let task = self.task_name(name);
        let span = tracing::info_span!("task", name = %task);
        let (reports, ancestors) = (self.group.reports.clone(), self.tokens());
        let whole = async move {
            if let Some(reason) = reason_of(caught(future).await) {
                reports.add(Failure { task, reason }, on_error);
            }
            drop(ancestors);
        };
        self.group.tracker.spawn(whole.instrument(span));
    }

    /// Runs `work` on a thread of its own. Cancelling cannot interrupt it: whoever starts a thread
    /// also gives it a way to notice, usually by closing what it reads from.
    pub fn spawn_thread<R: Outcome>(
        &self,
        name: &str,
        on_error: OnError,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> std::io::Result<()> {
        let task = self.task_name(name);
        let (reports, ancestors) = (self.group.reports.clone(), self.tokens());
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                let ended = catch_unwind(AssertUnwindSafe(work)).map(Outcome::error);
                if let Some(reason) = reason_of(ended) {
                    reports.add(Failure { task, reason }, on_error);
                }
                drop(ancestors);
            })?;
        Ok(())
    }

    /// Does `work`, which blocks, on a thread of its own and hands over what comes of it. Whoever stops waiting does not stop
    /// the work.
    pub async fn blocking<T: Send + 'static>(
        &self,
        name: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> std::io::Result<T> {
        let (done, waiting) = oneshot::channel();
        self.spawn_thread(name, OnError::Report, move || {
            // Nobody waits any more when this fails, which is theirs to decide.
            done.send(work()).ok();
        })?;
        let ended = waiting.await;
        ended.map_err(|_| std::io::Error::other(format!("{name} ended before its time")))
    }

    /// Runs `work` on a thread that gets processor time only where nothing else of this machine wants it.
    pub fn spawn_idle_thread<R: Outcome>(
        &self,
        name: &str,
        on_error: OnError,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> std::io::Result<()> {
        self.spawn_thread(name, on_error, move || {
            // On Linux this is of the thread and not of the process. A system that refuses it has no idle threads.
            rustix::process::nice(IDLE_NICE).ok();
            work()
        })
    }

    /// Told to everything in the group and below it.
    pub fn cancel(&self) {
        self.group.cancel.cancel();
    }

    /// For futures that choose how to end.
    #[must_use]
    pub fn cancellation(&self) -> CancellationToken {
        self.group.cancel.clone()
    }

    /// Returns when all tasks and threads of the group, and of the groups below, have ended.
    pub async fn join(&self) {
        self.group.tracker.wait().await;
    }

    /// How many tasks and threads are running in the group and below.
    #[must_use]
    pub fn running(&self) -> usize {
        self.group.tracker.len()
    }

    /// The failures of the whole tree, oldest first, as many as are kept.
    #[must_use]
    pub fn failures(&self) -> Vec<Failure> {
        self.group.reports.failures.lock().iter().cloned().collect()
    }

    /// Waits until a task fails that the process cannot do without.
    pub async fn ended_by(&self) -> Failure {
        self.group.reports.ended.cancelled().await;
        self.group
            .reports
            .fatal
            .lock()
            .clone()
            .expect("the reason is stored before the token is cancelled")
    }

    fn task_name(&self, name: &str) -> String {
        format!("{}/{name}", self.group.name)
    }

    /// Held by a task, these keep every group from here to the root waiting for it.
    fn tokens(&self) -> Vec<TaskTrackerToken> {
        std::iter::successors(Some(&self.group), |group| group.parent.as_ref())
            .map(|group| group.tracker.token())
            .collect()
    }
}

impl Reports {
    fn add(&self, failure: Failure, on_error: OnError) {
        tracing::error!(task = %failure.task, reason = %failure.reason, "task failed");
        let mut failures = self.failures.lock();
        if failures.len() == FAILURES_MAX {
            failures.pop_front();
        }
        failures.push_back(failure.clone());
        drop(failures);
        if on_error == OnError::EndProcess {
            self.fatal.lock().get_or_insert(failure);
            self.ended.cancel();
        }
    }
}

type Panic = Box<dyn Any + Send>;

/// Runs a future and turns its panic into a value.
async fn caught<F: Future>(future: F) -> Result<F::Output, Panic> {
    let mut future = pin!(future);
    std::future::poll_fn(move |cx| {
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    })
    .await
}

fn reason_of(ended: Result<Option<String>, Panic>) -> Option<String> {
    match ended {
        Ok(error) => error,
        Err(panic) => {
            let text = panic
                .downcast_ref::<&str>()
                .copied()
                .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
            Some(format!("panicked: {}", text.unwrap_or("without a message")))
        }
    }
}

#[cfg(test)]
mod tests;
