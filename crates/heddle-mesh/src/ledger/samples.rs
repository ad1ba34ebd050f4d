//! What was seen of the log at the last readings, so that ages and trends can be told without reading it.
//!
//! ```text
//!   looked ──────────────── looked          every event between the two ends was accepted between the two looks
//!     end 41                  end 57
//! ```

use std::collections::VecDeque;
use std::time::Duration;

use crate::log::Offset;

/// Looks that are remembered: about an hour's worth.
const LOOKS_MAX: usize = 3600;
/// Looks that are farther apart say too little about when an event was accepted.
const APART_MAX: Duration = Duration::from_secs(5);
/// How often free room is remembered, and how often at most.
const ROOM_EVERY: Duration = Duration::from_secs(10);
const ROOMS_MAX: usize = 30;
/// A trend takes at least this long to see.
const TREND_MIN: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(crate) struct LogSamples {
    looks: VecDeque<Appended>,
    /// The last look, and where the log ended then.
    last: Option<(Duration, Offset)>,
    rooms: VecDeque<(Duration, u64)>,
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

    /// So many bytes are free now. Gives in how long so many will be gone if it goes on as in the last minutes.
    pub(super) fn room(&mut self, now: Duration, free: u64, usable: u64) -> Option<Duration> {
        let newest = self.rooms.back();
        if newest.is_none_or(|(at, _)| now.saturating_sub(*at) >= ROOM_EVERY) {
            if self.rooms.len() >= ROOMS_MAX {
                self.rooms.pop_front();
            }
            self.rooms.push_back((now, free));
        }
        let (at, was_free) = *self.rooms.front()?;
        let span = now.saturating_sub(at);
        let taken = was_free.checked_sub(free).filter(|taken| *taken > 0)?;
        (span >= TREND_MIN).then(|| {
            let seconds = span.as_secs_f64() * usable as f64 / taken as f64;
            Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
        })
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
            samples.room(seconds(number), 1 << 40, 0);
        }
        assert_eq!(samples.looks.len(), LOOKS_MAX);
        assert_eq!(samples.rooms.len(), ROOMS_MAX);
        assert_eq!(samples.age(1, seconds(10_000)), None);
        assert_eq!(samples.age(9_000, seconds(10_000)), Some(seconds(1000)));
    }

    #[test]
    fn a_disk_that_fills_is_forecast_and_one_that_does_not_is_not() {
        let mut samples = LogSamples::default();
        let mebibytes = |number: u64| number << 20;
        assert_eq!(
            samples.room(seconds(0), mebibytes(1000), mebibytes(900)),
            None
        );
        let early = samples.room(seconds(30), mebibytes(970), mebibytes(870));
        assert_eq!(early, None, "half a minute is no trend");
        let full_in = samples.room(seconds(100), mebibytes(900), mebibytes(800));
        assert_eq!(full_in, Some(seconds(800)));
        let freed = samples.room(seconds(110), mebibytes(2000), mebibytes(1900));
        assert_eq!(freed, None);
    }
}
