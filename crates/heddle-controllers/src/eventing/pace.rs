//! Pace: how soon a namespace is looked at again.
//!
//! A reconcile reads everything that its namespace has, and every flow that comes asks for a reconcile. With two hundred flows on
//! their way those reconciles would take all the time there is, and most of it from the flows they are for. A namespace
//! therefore rests for a multiple of what its last look took. With a few flows nobody can measure that.

use std::collections::HashMap;
use std::time::Duration;

use heddle_rt::Clock;
use parking_lot::Mutex;

/// A look takes at most one part in so many of the time.
const REST_FACTOR: u32 = 25;
/// However long a look took, this is how late a flow may be noticed.
const REST_MAX: Duration = Duration::from_secs(2);
/// Fewer flows than this are looked at whenever somebody asks.
const FLOWS_MIN: usize = 8;

/// When each busy namespace may be looked at again.
#[derive(Debug, Default)]
pub(super) struct Pace(Mutex<HashMap<String, Duration>>);

impl Pace {
    /// How long the namespace still rests, if it does. Whoever asks meanwhile is answered by the look after that.
    pub(super) fn rest(&self, clock: &Clock, namespace: &str) -> Option<Duration> {
        let rested = self.0.lock().get(namespace).copied()?;
        let left = rested.saturating_sub(clock.monotonic());
        (!left.is_zero()).then_some(left)
    }

    /// Takes note of what a look took that began at a time.
    pub(super) fn took(&self, begun: Duration, clock: &Clock, namespace: String, flows: usize) {
        let now = clock.monotonic();
        let mut rests = self.0.lock();
        if flows < FLOWS_MIN {
            rests.remove(&namespace);
            return;
        }
        let rest = now.saturating_sub(begun).saturating_mul(REST_FACTOR);
        rests.insert(namespace, now + rest.min(REST_MAX));
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    const LOOK: Duration = Duration::from_millis(10);

    /// Looks at a namespace with so many flows, and says how long the next look has to wait.
    async fn rest_after(flows: usize, look: Duration) -> Duration {
        let clock = Clock::simulated(Timestamp::UNIX_EPOCH);
        let pace = Pace::default();
        assert_eq!(
            pace.rest(&clock, "team"),
            None,
            "the first look waits for nothing"
        );
        let begun = clock.monotonic();
        clock.sleep(look).await;
        pace.took(begun, &clock, "team".to_owned(), flows);
        assert_eq!(
            pace.rest(&clock, "other"),
            None,
            "nobody waits for another namespace"
        );
        let Some(rest) = pace.rest(&clock, "team") else {
            return Duration::ZERO;
        };
        clock.sleep(rest).await;
        assert_eq!(pace.rest(&clock, "team"), None, "a rest has an end");
        rest
    }

    #[tokio::test(start_paused = true)]
    async fn a_namespace_with_many_flows_rests_in_proportion_and_one_with_few_does_not() {
        assert_eq!(rest_after(FLOWS_MIN - 1, LOOK).await, Duration::ZERO);
        assert_eq!(rest_after(FLOWS_MIN, LOOK).await, LOOK * REST_FACTOR);
        assert_eq!(rest_after(200, Duration::from_secs(9)).await, REST_MAX);
    }
}
