//! What was seen of the log at the last readings, so that ages and trends can be told without reading it.
//!
//! ```text
//!   looked ──────────────── looked          every event between the two ends was accepted between the two looks
//!     end 41                  end 57
//! ```

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use heddle_api::forecast::{self, Forecast, Trend};

use crate::journal::record::ConsumerId;
use crate::log::Offset;

/// Looks that are remembered: about an hour's worth.
const LOOKS_MAX: usize = 3600;
/// Looks that are farther apart say too little about when an event was accepted.
const APART_MAX: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(crate) struct LogSamples {
    looks: VecDeque<Appended>,
    /// The last look, and where the log ended then.
    last: Option<(Duration, Offset)>,
    /// Bytes that are free on the disk.
    free: Trend,
    /// How much waits for each consumer for which something does.
    backlogs: HashMap<ConsumerId, Trend>,
}

/// Events that were accepted between two looks.
#[derive(Clone, Copy, Debug)]
struct Appended {
    from: Offset,
    end: Offset,
    after: Duration,
    before: Duration,
}

impl LogSamples {
    /// The log ends here now.
    pub(super) fn look(&mut self, now: Duration, end: Offset) {
        if let Some((after, from)) = self.last.replace((now, end))
            && from < end
        {
            if self.looks.len() >= LOOKS_MAX {
                self.looks.pop_front();
            }
            self.looks.push_back(Appended {
                from,
                end,
                after,
                before: now,
            });
        }
    }

    /// How old an event is at least, to within a few seconds.
    pub(super) fn age(&self, offset: Offset, now: Duration) -> Option<Duration> {
        if let Some((at, end)) = self.last
            && offset >= end
        {
            return Some(Duration::ZERO).filter(|_| now.saturating_sub(at) <= APART_MAX);
        }
        let index = self.looks.partition_point(|look| look.end <= offset);
        let look = self.looks.get(index).filter(|look| look.from <= offset)?;
        let apart = look.before.saturating_sub(look.after);
        (apart <= APART_MAX).then(|| now.saturating_sub(look.before))
    }

    /// So many bytes are free now.
    pub(super) fn room(&mut self, now: Duration, free: u64) {
        self.free.look(now, free as f64);
    }

    /// When the disk is full, of which so many bytes are free and so many can be used.
    pub(super) fn disk_full(&self, now: Duration, free: u64, usable: u64) -> Option<Forecast> {
        forecast::disk_full(&self.free, now, free, usable)
    }

    /// So much waits for these consumers, and nothing for all others.
    pub(super) fn backlogs(&mut self, now: Duration, pending: &[(ConsumerId, u64)]) {
        let mut before = std::mem::take(&mut self.backlogs);
        let waiting = pending.iter().filter(|(_, pending)| *pending > 0);
        self.backlogs = waiting
            .map(|(consumer, pending)| {
                let mut trend = before.remove(consumer).unwrap_or_default();
                trend.look(now, *pending as f64);
                (*consumer, trend)
            })
            .collect();
    }

    /// When nothing waits for a consumer any more.
    pub(super) fn backlog_done(
        &self,
        consumer: ConsumerId,
        now: Duration,
        pending: u64,
    ) -> Option<Forecast> {
        forecast::backlog_done(self.backlogs.get(&consumer)?, now, pending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn an_event_is_as_old_as_the_look_that_first_saw_it() {
        let mut samples = LogSamples::default();
        for (now, end) in [(10, 5), (11, 5), (12, 8), (13, 20), (33, 30)] {
            samples.look(seconds(now), end);
        }
        let table = [
            (4, None),
            (5, Some(28)),
            (7, Some(28)),
            (8, Some(27)),
            (19, Some(27)),
            // Nobody looked for too long.
            (20, None),
            (30, None),
        ];
        for (offset, age) in table {
            let found = samples.age(offset, seconds(40));
            assert_eq!(found, age.map(seconds), "{offset}");
        }
        assert_eq!(samples.age(30, seconds(34)), Some(Duration::ZERO));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut samples = LogSamples::default();
        for number in 0..10_000 {
            samples.look(seconds(number), number + 1);
            samples.room(seconds(number), 1 << 40);
        }
        assert_eq!(samples.looks.len(), LOOKS_MAX);
        assert_eq!(samples.age(1, seconds(10_000)), None);
        assert_eq!(samples.age(9_000, seconds(10_000)), Some(seconds(1000)));
    }

    #[test]
    fn only_what_waits_has_a_trend() {
        let mut samples = LogSamples::default();
        for second in 0..=100 {
            let pending = [(1, 1_000 - 5 * second), (2, 7), (3, 0)];
            samples.backlogs(seconds(second), &pending);
        }
        assert_eq!(samples.backlogs.len(), 2);
        let done = samples.backlog_done(1, seconds(100), 500).unwrap();
        assert!((done.in_s - 100.0).abs() < 1.0, "{done:?}");
        for (consumer, pending) in [(2, 7), (3, 0), (4, 9)] {
            assert_eq!(samples.backlog_done(consumer, seconds(100), pending), None);
        }
        samples.backlogs(seconds(101), &[(1, 0)]);
        assert_eq!(
            samples.backlog_done(1, seconds(101), 500),
            None,
            "it began anew"
        );
    }
}
