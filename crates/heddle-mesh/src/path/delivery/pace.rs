//! No more than so many in a span of time: each has a turn of its own, and they are evenly apart.
//!
//! Even spacing keeps within the rate in every minute, wherever it begins; a bucket that fills up would allow twice as many
//! in a bad one. A turn is given to whoever asks first, so several consumers of one destination take turns.
//!
//! Whoever waits for a turn is woken a little late. That makes this one late, and none after it, as far as `late_max` goes:
//! otherwise a rate of many a second would never be reached. Zero is for those who must never have one too many.

use std::time::Duration;

/// The turns at which something may be sent.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// `None` when everything may go at once.
    apart: Option<Duration>,
    /// The turn that was given out last.
    last: Option<Duration>,
    /// How far behind its time a turn may be and still count as the one after the last.
    late_max: Duration,
}

impl Pace {
    /// Of which turns may be so late without delaying those that follow.
    pub(crate) fn late_by(late_max: Duration) -> Self {
        Self {
            late_max,
            ..Self::default()
        }
    }

    pub(crate) fn is_set(&self) -> bool {
        self.apart.is_some()
    }

    /// So far apart from now on, or at once. What was given out stays given out. Gives whether that is different from before.
    pub(crate) fn set(&mut self, apart: Option<Duration>) -> bool {
        std::mem::replace(&mut self.apart, apart) != apart
    }

    /// When the next turn is, or was if nobody took it; now, if everything may go at once.
    pub(crate) fn due(&self, now: Duration) -> Duration {
        let next = self.apart.zip(self.last);
        let Some((apart, last)) = next else {
            return now;
        };
        last.saturating_add(apart)
            .max(now.saturating_sub(self.late_max))
    }

    /// The next turn, which is nobody else's from now on.
    pub(crate) fn next(&mut self, now: Duration) -> Duration {
        let at = self.due(now);
        if self.is_set() {
            self.last = Some(at);
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn no_minute_has_more_than_the_rate_wherever_it_begins() {
        let mut pace = Pace::default();
        let now = Duration::from_secs(5);
        assert_eq!((pace.next(now), pace.next(now)), (now, now), "no rate yet");
        pace.set(Some(MINUTE / 7 + Duration::from_nanos(1)));
        let mut times: Vec<Duration> = (0..50).map(|_| pace.next(now)).collect();
        let later = Duration::from_secs(10_000);
        times.extend((0..50).map(|_| pace.next(later)));
        assert_eq!(
            (times[0], times[50]),
            (now, later),
            "the first may go at once"
        );
        for (index, begin) in times.iter().enumerate() {
            let end = *begin + MINUTE;
            let within = times[index..].iter().take_while(|time| **time < end);
            assert!(within.count() <= 7, "from {begin:?} on");
        }
    }

    #[test]
    fn a_turn_that_is_taken_late_delays_none_after_it() {
        let (apart, late) = (Duration::from_millis(10), Duration::from_millis(3));
        let mut pace = Pace::late_by(Duration::from_millis(5));
        pace.set(Some(apart));
        let begin = Duration::from_secs(1);
        assert_eq!(pace.next(begin), begin, "the first may go at once");
        for turn in 1..100 {
            let at = begin + apart * turn;
            assert_eq!(pace.due(at - late), at, "not before its time");
            assert_eq!(pace.next(at + late), at);
        }
        let rested = begin + MINUTE;
        assert_eq!(pace.next(rested), rested - Duration::from_millis(5));
        assert!(pace.due(rested) > rested, "a rest saves nothing up");
    }

    #[test]
    fn another_rate_counts_from_the_last_turn() {
        let mut pace = Pace::default();
        assert!(pace.set(Some(MINUTE)) && !pace.set(Some(MINUTE)));
        pace.next(MINUTE);
        assert_eq!(pace.due(MINUTE), MINUTE * 2);
        assert!(pace.set(Some(Duration::from_secs(1))));
        assert_eq!(pace.due(MINUTE), MINUTE + Duration::from_secs(1));
        assert!(pace.set(None));
        assert_eq!(pace.due(MINUTE), MINUTE);
    }
}
