//! Pace: how soon a namespace is looked at again.
//!
//! A round reads everything that its namespace has, and every flow that comes asks for a round. With two hundred flows on
//! their way those rounds would take all the time there is, and most of it from the flows they are for. A namespace
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

/// When a look began.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn(Duration);

impl Pace {
    /// Waits for the namespace's turn, and says whether it had to. Whoever asks meanwhile is answered by the same look, as
    /// long as everything is read after this.
    pub(super) async fn turn(&self, clock: &Clock, namespace: &str) -> (Turn, bool) {
        let rested = self.0.lock().get(namespace).copied();
        let pause = rested.and_then(|rested| rested.checked_sub(clock.monotonic()));
        if let Some(pause) = pause {
            clock.sleep(pause).await;
        }
        (Turn(clock.monotonic()), pause.is_some())
    }

    /// Takes note of what a look took.
    pub(super) fn took(&self, turn: Turn, clock: &Clock, namespace: String, flows: usize) {
        let now = clock.monotonic();
        let mut rests = self.0.lock();
        if flows < FLOWS_MIN {
            rests.remove(&namespace);
            return;
        }
        let rest = now.saturating_sub(turn.0).saturating_mul(REST_FACTOR);
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
        let (turn, has_waited) = pace.turn(&clock, "team").await;
        assert!(!has_waited, "the first look waits for nothing");
        clock.sleep(look).await;
        pace.took(turn, &clock, "team".to_owned(), flows);
        let before = clock.monotonic();
        let (_, has_waited) = pace.turn(&clock, "team").await;
        let rest = clock.monotonic() - before;
        assert_eq!(has_waited, !rest.is_zero());
        let (_, has_waited) = pace.turn(&clock, "other").await;
        assert!(!has_waited, "nobody waits for another namespace");
        rest
    }

    #[tokio::test(start_paused = true)]
    async fn a_namespace_with_many_flows_rests_in_proportion_and_one_with_few_does_not() {
        assert_eq!(rest_after(FLOWS_MIN - 1, LOOK).await, Duration::ZERO);
        assert_eq!(rest_after(FLOWS_MIN, LOOK).await, LOOK * REST_FACTOR);
        assert_eq!(rest_after(200, Duration::from_secs(9)).await, REST_MAX);
    }
}
