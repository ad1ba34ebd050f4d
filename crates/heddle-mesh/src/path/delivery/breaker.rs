//! How many attempts a destination gets while it fails.
//!
//! A destination that fails five times in a row is asked by one attempt at a time, with a moment between two, which is
//! enough to notice that it is back and too little to keep it down: one that refuses at once would otherwise be asked
//! thousands of times a second, and its neighbours would pay for it. Each success doubles what is allowed until the window
//! of the consumer is the only bound again. Attempts are never forbidden altogether: the schedule of each event already
//! spaces them.
//! Which outcomes are failures of the destination is [`Outcome::answered`](super::courier::Outcome::answered)'s to say.

use std::time::Duration;

/// Failures in a row after which a destination is taken to be down.
const FAILURES_MAX: u32 = 5;

/// From a failure of a destination that is down to the next attempt. Two hundred attempts a second remain, so that events
/// which nobody will ever take still reach the end of their schedule.
const PAUSE: Duration = Duration::from_millis(5);

/// One destination's record. Starts with a good name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Breaker {
    failures: u32,
    /// `None` when nothing but the window bounds.
    limit: Option<u32>,
    /// While it is down: it is left alone until then, on the monotonic clock.
    rests_until: Option<Duration>,
}

impl Breaker {
    /// How many attempts may be open at once, of the `window` that the consumer has. At least one.
    #[must_use]
    pub fn allowed(&self, window: u32) -> u32 {
        self.limit.map_or(window, |limit| limit.min(window)).max(1)
    }

    /// When the next attempt may begin, if not at once.
    #[must_use]
    pub fn rests_until(&self) -> Option<Duration> {
        self.rests_until
    }

    /// The destination answered.
    pub fn succeeded(&mut self) {
        self.failures = 0;
        self.rests_until = None;
        // Past u32 there is no window left to bound.
        self.limit = self.limit.and_then(|limit| limit.checked_mul(2));
    }

    /// The destination failed just now.
    pub fn failed(&mut self, now: Duration) {
        self.failures = self.failures.saturating_add(1);
        if self.failures >= FAILURES_MAX {
            self.limit = Some(1);
            self.rests_until = Some(now + PAUSE);
        }
    }

    /// Whether the destination is taken to be down, or is still on its way back.
    #[must_use]
    pub fn is_limiting(&self, window: u32) -> bool {
        self.allowed(window) < window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(60);

    #[test]
    fn one_that_is_down_is_left_alone_for_a_moment_after_each_failure() {
        let mut breaker = Breaker::default();
        for _ in 0..4 {
            breaker.failed(NOW);
            assert_eq!(breaker.rests_until(), None);
        }
        for later in [NOW, NOW * 2] {
            breaker.failed(later);
            assert_eq!(breaker.rests_until(), Some(later + PAUSE));
        }
        breaker.succeeded();
        assert_eq!(breaker.rests_until(), None, "it is back");
    }

    #[test]
    fn five_failures_in_a_row_leave_one_attempt_at_a_time() {
        let mut breaker = Breaker::default();
        for _ in 0..4 {
            breaker.failed(NOW);
            assert_eq!(breaker.allowed(64), 64);
        }
        breaker.failed(NOW);
        assert_eq!(breaker.allowed(64), 1);
        assert!(breaker.is_limiting(64));
        assert!(!breaker.is_limiting(1), "a window of one loses nothing");
    }

    #[test]
    fn failures_that_are_not_in_a_row_change_nothing() {
        let mut breaker = Breaker::default();
        for _ in 0..100 {
            for _ in 0..4 {
                breaker.failed(NOW);
            }
            breaker.succeeded();
        }
        assert_eq!(breaker, Breaker::default());
    }

    #[test]
    fn each_success_doubles_until_only_the_window_bounds() {
        let mut breaker = Breaker::default();
        for _ in 0..5 {
            breaker.failed(NOW);
        }
        let mut allowed = Vec::new();
        for _ in 0..5 {
            breaker.succeeded();
            allowed.push(breaker.allowed(20));
        }
        assert_eq!(allowed, [2, 4, 8, 16, 20]);
        for _ in 0..100 {
            breaker.succeeded();
        }
        assert_eq!(breaker, Breaker::default(), "nothing is held against it");
    }

    #[test]
    fn a_relapse_on_the_way_back_starts_over() {
        let mut breaker = Breaker::default();
        for _ in 0..5 {
            breaker.failed(NOW);
        }
        breaker.succeeded();
        for _ in 0..5 {
            breaker.failed(NOW);
        }
        assert_eq!(breaker.allowed(64), 1);
        assert_eq!(breaker.allowed(0), 1, "a destination is always asked");
    }
}
