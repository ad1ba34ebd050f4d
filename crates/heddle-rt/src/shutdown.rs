//! Ending in order: the first signal drains, the second ends at once.
//!
//! ```text
//!   doors close ─> appends finish ─> deliveries drain ─> controllers stop ─> store syncs
//! ```
//! The steps of a phase run together, the phases one after the other, all within one grace period.
//! When it runs out, what is left is skipped, except that the store always gets [`SYNC_FLOOR`].
//! Being killed without warning is a tested path as well, so all of this is only a kindness.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::Clock;

/// What the last phase gets even when nothing is left of the grace period.
pub const SYNC_FLOOR: Duration = Duration::from_secs(1);

/// The phases, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    DoorsClose,
    AppendsFinish,
    DeliveriesDrain,
    ControllersStop,
    StoreSyncs,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DoorsClose => "doors close",
            Self::AppendsFinish => "appends finish",
            Self::DeliveriesDrain => "deliveries drain",
            Self::ControllersStop => "controllers stop",
            Self::StoreSyncs => "store syncs",
        })
    }
}

/// How the process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Every phase finished.
    Clean,
    /// These did not finish within the grace period.
    Overdue(Vec<Phase>),
    /// A second signal came.
    Forced,
}

impl End {
    /// What the process should exit with: as a shell reports a process that was interrupted when forced.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Clean => 0,
            Self::Overdue(_) => 1,
            Self::Forced => 130,
        }
    }
}

type Step = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What has to happen before the process ends.
pub struct Shutdown {
    clock: Clock,
    grace: Duration,
    phases: BTreeMap<Phase, Vec<Step>>,
}

impl fmt::Debug for Shutdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shutdown")
            .field("grace", &self.grace)
            .field("phases", &self.phases.keys())
            .finish_non_exhaustive()
    }
}

impl Shutdown {
    #[must_use]
    pub fn new(clock: Clock, grace: Duration) -> Self {
        Self {
            clock,
            grace,
            phases: BTreeMap::new(),
        }
    }

    /// Adds a step to a phase.
    pub fn on(&mut self, phase: Phase, step: impl Future<Output = ()> + Send + 'static) {
        self.phases.entry(phase).or_default().push(Box::pin(step));
    }

    /// Runs the phases; to be called after the first interrupt. Another one ends it at once.
    pub async fn run(self, interrupts: &mut Interrupts) -> End {
        tokio::select! {
            end = self.drain() => end,
            () = interrupts.next() => {
                tracing::warn!("second signal: ending at once");
                End::Forced
            }
        }
    }

    async fn drain(self) -> End {
        let started = self.clock.monotonic();
        let mut overdue = Vec::new();
        for (phase, steps) in self.phases {
            let spent = self.clock.monotonic().saturating_sub(started);
            let mut left = self.grace.saturating_sub(spent);
            if phase == Phase::StoreSyncs {
                left = left.max(SYNC_FLOOR);
            }
            tracing::info!(%phase, "shutting down");
            let mut running: JoinSet<()> = steps.into_iter().collect();
            let all = async { while running.join_next().await.is_some() {} };
            if self.clock.timeout(left, all).await.is_err() {
                tracing::warn!(%phase, "not finished within the grace period");
                overdue.push(phase);
            }
        }
        if overdue.is_empty() {
            End::Clean
        } else {
            End::Overdue(overdue)
        }
    }
}

/// Where the wishes to end come from.
#[derive(Debug)]
pub struct Interrupts {
    rx: mpsc::Receiver<()>,
    /// Listens for signals as long as somebody waits for them.
    _listener: Option<JoinSet<()>>,
}

impl Interrupts {
    /// SIGINT and SIGTERM.
    pub fn from_signals() -> io::Result<Self> {
        let (tx, rx) = mpsc::channel(2);
        let mut int = signal(SignalKind::interrupt())?;
        let mut term = signal(SignalKind::terminate())?;
        let mut listener = JoinSet::new();
        listener.spawn(async move {
            loop {
                tokio::select! {
                    _ = int.recv() => {}
                    _ = term.recv() => {}
                }
                if tx.send(()).await.is_err() {
                    return;
                }
            }
        });
        Ok(Self {
            rx,
            _listener: Some(listener),
        })
    }

    /// By hand, for tests and for ending from within.
    #[must_use]
    pub fn manual() -> (mpsc::Sender<()>, Self) {
        let (tx, rx) = mpsc::channel(2);
        (
            tx,
            Self {
                rx,
                _listener: None,
            },
        )
    }

    /// Waits for the next wish to end. Never returns when nobody can wish any more.
    pub async fn next(&mut self) {
        if self.rx.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    fn shutdown() -> (Shutdown, Clock) {
        let clock = Clock::simulated(jiff::Timestamp::UNIX_EPOCH);
        (Shutdown::new(clock.clone(), Duration::from_secs(10)), clock)
    }

    #[tokio::test(start_paused = true)]
    async fn phases_run_in_order_whatever_order_they_were_added_in() {
        let (mut shutdown, clock) = shutdown();
        let order = Arc::new(Mutex::new(Vec::new()));
        for (phase, seconds) in [
            (Phase::StoreSyncs, 0),
            (Phase::ControllersStop, 1),
            (Phase::DoorsClose, 3),
        ] {
            let (order, clock) = (order.clone(), clock.clone());
            shutdown.on(phase, async move {
                clock.sleep(Duration::from_secs(seconds)).await;
                order.lock().push(phase);
            });
        }
        let (_tx, mut interrupts) = Interrupts::manual();
        assert_eq!(shutdown.run(&mut interrupts).await, End::Clean);
        assert_eq!(
            *order.lock(),
            [Phase::DoorsClose, Phase::ControllersStop, Phase::StoreSyncs]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_overdue_phase_is_skipped_and_the_store_still_syncs() {
        let (mut shutdown, clock) = shutdown();
        let synced = Arc::new(Mutex::new(false));
        shutdown.on(Phase::DeliveriesDrain, std::future::pending());
        shutdown.on(Phase::ControllersStop, std::future::pending());
        let (done, wait) = (synced.clone(), clock.clone());
        shutdown.on(Phase::StoreSyncs, async move {
            wait.sleep(SYNC_FLOOR / 2).await;
            *done.lock() = true;
        });
        let (_tx, mut interrupts) = Interrupts::manual();
        let end = shutdown.run(&mut interrupts).await;
        assert_eq!(
            end,
            End::Overdue(vec![Phase::DeliveriesDrain, Phase::ControllersStop])
        );
        assert_eq!(end.exit_code(), 1);
        assert!(*synced.lock());
        assert_eq!(clock.monotonic(), Duration::from_secs(10) + SYNC_FLOOR / 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_interrupt_ends_at_once() {
        let (mut shutdown, clock) = shutdown();
        shutdown.on(Phase::DoorsClose, std::future::pending());
        let (tx, mut interrupts) = Interrupts::manual();
        tx.send(()).await.unwrap();
        interrupts.next().await;
        tx.send(()).await.unwrap();
        let end = shutdown.run(&mut interrupts).await;
        assert_eq!((end.exit_code(), end), (130, End::Forced));
        assert_eq!(clock.monotonic(), Duration::ZERO);
    }

    #[tokio::test]
    async fn a_real_signal_is_heard() {
        let mut interrupts = Interrupts::from_signals().unwrap();
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM)
            .unwrap();
        interrupts.next().await;
    }
}
