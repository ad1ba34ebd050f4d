//! Waiting longer after each failure: exponential, with full jitter.
//!
//! The bound doubles from `min` to `max`; the wait is drawn from nothing up to the bound, so that
//! a crowd that failed together does not come back together. [`KeyedBackoff`] keeps one per key
//! and is bounded: when full it forgets the key that was used longest ago.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::time::Duration;

use crate::Chance;

/// From where to where the bound grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The bound after the first failure.
    pub min: Duration,
    /// The bound after many.
    pub max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            min: Duration::from_millis(100),
            max: Duration::from_secs(30),
        }
    }
}

/// How long one thing has to wait after its next failure.
#[derive(Clone, Debug)]
pub struct Backoff {
    limits: Limits,
    chance: Chance,
    failures: u32,
}

impl Backoff {
    #[must_use]
    pub fn new(limits: Limits, chance: Chance) -> Self {
        Self {
            limits,
            chance,
            failures: 0,
        }
    }

    /// Counts a failure and draws the wait that follows it.
    pub fn failed(&mut self) -> Duration {
        let bound = bound(self.limits, self.failures);
        self.failures = self.failures.saturating_add(1);
        self.chance.jitter(bound)
    }

    /// It worked: the next failure waits briefly again.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// Failures since the last reset.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.failures
    }
}

/// The longest wait after that many earlier failures.
fn bound(limits: Limits, failures: u32) -> Duration {
    let factor = 1_u32.checked_shl(failures).unwrap_or(u32::MAX);
    limits.min.saturating_mul(factor).min(limits.max)
}

/// A [`Backoff`] for each key.
#[derive(Clone, Debug)]
pub struct KeyedBackoff<K> {
    limits: Limits,
    chance: Chance,
    keys_max: usize,
    /// Failures of a key, and when it was last touched.
    keys: HashMap<K, (u32, u64)>,
    by_touch: BTreeMap<u64, K>,
    touches: u64,
}

impl<K: Clone + Eq + Hash> KeyedBackoff<K> {
    #[must_use]
    pub fn new(limits: Limits, chance: Chance, keys_max: usize) -> Self {
        Self {
            limits,
            chance,
            keys_max: keys_max.max(1),
            keys: HashMap::new(),
            by_touch: BTreeMap::new(),
            touches: 0,
        }
    }

    /// Counts a failure of `key` and draws the wait that follows it.
    pub fn failed(&mut self, key: &K) -> Duration {
        let failures = match self.keys.get(key) {
            Some((failures, touch)) => {
                self.by_touch.remove(touch);
                *failures
            }
            None => 0,
        };
        self.touches += 1;
        self.keys
            .insert(key.clone(), (failures.saturating_add(1), self.touches));
        self.by_touch.insert(self.touches, key.clone());
        if self.keys.len() > self.keys_max
            && let Some((_, oldest)) = self.by_touch.pop_first()
        {
            self.keys.remove(&oldest);
        }
        self.chance.jitter(bound(self.limits, failures))
    }

    /// `key` worked, or is gone.
    pub fn reset(&mut self, key: &K) {
        if let Some((_, touch)) = self.keys.remove(key) {
            self.by_touch.remove(&touch);
        }
    }

    /// Failures of `key` since it last worked.
    #[must_use]
    pub fn failures(&self, key: &K) -> u32 {
        self.keys.get(key).map_or(0, |(failures, _)| *failures)
    }

    /// How many keys are failing.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether nothing is failing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        min: Duration::from_millis(10),
        max: Duration::from_secs(1),
    };

    #[test]
    fn the_bound_doubles_until_the_maximum_and_never_overflows() {
        let millis: Vec<u128> = (0..9).map(|n| bound(LIMITS, n).as_millis()).collect();
        assert_eq!(millis, [10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
        assert_eq!(bound(LIMITS, u32::MAX), LIMITS.max);
    }

    #[test]
    fn waits_stay_within_the_bound_and_a_reset_starts_over() {
        let mut backoff = Backoff::new(LIMITS, Chance::seeded(4));
        for failures in 0..20 {
            assert!(backoff.failed() <= bound(LIMITS, failures));
        }
        backoff.reset();
        assert!(backoff.failed() <= LIMITS.min);
        assert_eq!(backoff.failures(), 1);
    }

    #[test]
    fn a_crowd_that_failed_together_comes_back_apart() {
        let alone = (0..100).map(|seed| Backoff::new(LIMITS, Chance::seeded(seed)).failed());
        let mut keyed = KeyedBackoff::new(LIMITS, Chance::seeded(4), 100);
        let together = (0..100).map(|key| keyed.failed(&key));
        for waits in [alone.collect::<Vec<_>>(), together.collect()] {
            let early = waits.iter().filter(|wait| **wait < LIMITS.min / 2).count();
            assert!(
                (20..80).contains(&early),
                "{early} of 100 in the first half"
            );
        }
    }

    #[test]
    fn keys_wait_for_themselves_and_the_map_stays_bounded() {
        let mut backoff = KeyedBackoff::new(LIMITS, Chance::seeded(4), 2);
        for _ in 0..30 {
            backoff.failed(&"a");
        }
        assert!(backoff.failed(&"b") <= LIMITS.min);
        backoff.failed(&"a");
        backoff.failed(&"c");
        assert_eq!(
            backoff.len(),
            2,
            "b was touched longest ago and is forgotten"
        );
        assert!(!backoff.keys.contains_key("b"));
        assert_eq!((backoff.failures(&"a"), backoff.failures(&"b")), (31, 0));
        backoff.reset(&"a");
        backoff.reset(&"c");
        assert!(backoff.is_empty() && backoff.by_touch.is_empty());
    }
}
