//! Time: what o'clock it is, how long something took, and waiting.
//!
//! A [`Clock`] is handed to whoever needs time. The simulated one follows tokio's clock, so a test
//! with paused time decides when an hour has passed. Waiting always goes through tokio's timer.
//! The wall clock may jump; durations are measured with [`Clock::monotonic`] only.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::runtime::Handle;

/// A cheap handle on time.
#[derive(Clone, Debug)]
pub struct Clock {
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    System {
        origin: std::time::Instant,
    },
    Simulated {
        start: Timestamp,
        origin: tokio::time::Instant,
        /// Threads outside the runtime have to read the runtime's paused clock, not their own.
        runtime: Option<Handle>,
        /// What the wall clock was set by, in milliseconds.
        set_by: Arc<AtomicI64>,
    },
}

/// The time allowed for something ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not finished within {0:?}")]
pub struct Elapsed(pub Duration);

impl Clock {
    /// The machine's clock.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the clock"
    )]
    pub fn system() -> Self {
        let origin = std::time::Instant::now();
        Self {
            source: Source::System { origin },
        }
    }

    /// A clock that shows `start` now and then follows tokio's clock, paused or not.
    ///
    /// Made inside a runtime it stays bound to that runtime, also when read from other threads.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the clock"
    )]
    pub fn simulated(start: Timestamp) -> Self {
        let runtime = Handle::try_current().ok();
        let origin = tokio::time::Instant::now();
        Self {
            source: Source::Simulated {
                start,
                origin,
                runtime,
                set_by: Arc::default(),
            },
        }
    }

    /// Whether time is the runtime's, which may be paused: it would run past what a thread outside the runtime does.
    #[must_use]
    pub const fn is_simulated(&self) -> bool {
        matches!(self.source, Source::Simulated { .. })
    }

    /// Somebody sets the wall clock, for all clones, forwards or back. That of the machine is left alone.
    pub fn set_by(&self, by: SignedDuration) {
        if let Source::Simulated { set_by, .. } = &self.source {
            let millis = i64::try_from(by.as_millis()).unwrap_or_default();
            set_by.fetch_add(millis, Ordering::Relaxed);
        }
    }

    /// The wall clock: for timestamps people read, never for measuring.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the clock"
    )]
    pub fn now(&self) -> Timestamp {
        match &self.source {
            Source::System { .. } => Timestamp::now(),
            Source::Simulated { start, set_by, .. } => {
                let set_by = SignedDuration::from_millis(set_by.load(Ordering::Relaxed));
                let started = start.saturating_add(set_by).unwrap_or(*start);
                started
                    .saturating_add(self.monotonic())
                    .unwrap_or(Timestamp::MAX)
            }
        }
    }

    /// Time since this clock was made. Never goes back.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the clock"
    )]
    pub fn monotonic(&self) -> Duration {
        match &self.source {
            Source::System { origin } => origin.elapsed(),
            Source::Simulated {
                origin, runtime, ..
            } => {
                let _inside = runtime.as_ref().map(Handle::enter);
                tokio::time::Instant::now().saturating_duration_since(*origin)
            }
        }
    }

    /// Waits. Dropping the future ends the wait.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that waits"
    )]
    pub async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    /// Gives `future` that long; it is dropped when the time is up.
    pub async fn timeout<F: Future>(
        &self,
        duration: Duration,
        future: F,
    ) -> Result<F::Output, Elapsed> {
        tokio::time::timeout(duration, future)
            .await
            .map_err(|_| Elapsed(duration))
    }

    /// Ticks every `period`, first after one period. Missed ticks are skipped, not made up for.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that waits"
    )]
    pub fn interval(&self, period: Duration) -> tokio::time::Interval {
        let mut interval = tokio::time::interval_at(tokio::time::Instant::now() + period, period);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        interval
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn simulated_time_follows_the_paused_clock_also_from_another_thread() {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let clock = Clock::simulated(start);
        clock.sleep(Duration::from_secs(3600)).await;
        let seen = std::thread::scope(|scope| scope.spawn(|| clock.now()).join().unwrap());
        assert_eq!(seen.to_string(), "2026-01-01T01:00:00Z");
        assert_eq!(clock.monotonic(), Duration::from_secs(3600));
    }

    #[tokio::test(start_paused = true)]
    async fn a_timeout_names_the_time_it_allowed() {
        let clock = Clock::simulated(Timestamp::UNIX_EPOCH);
        let limit = Duration::from_secs(5);
        assert_eq!(
            clock.timeout(limit, std::future::pending::<()>()).await,
            Err(Elapsed(limit))
        );
        assert_eq!(clock.timeout(limit, async { 7 }).await, Ok(7));
    }
}
