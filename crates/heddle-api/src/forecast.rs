//! What will be if it goes on as in the last minutes: in words, and with what that rests on.
//!
//! ```text
//!   pending   ·  ·                      looks at a number, by a clock that nobody can set
//!               ·  · ·                  a straight line through them, if they lie close enough to one
//!                      · ·  ─ ─ ─ ─ 0   where it ends is when
//! ```
//! Nothing is said where nothing is known: after too short a time, of numbers that go up and down, of what does not move, and
//! of what is too far away. Everything here is pure: callers bring the times.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{counted, span};

/// How often a number is looked at, and how many looks are remembered: ten minutes' worth.
const LOOK_EVERY: Duration = Duration::from_secs(15);
const LOOKS_MAX: usize = 41;
/// A trend takes at least this long to see.
const TREND_MIN: Duration = Duration::from_secs(60);
/// What lies before such a gap says nothing about now: the machine slept, or nobody looked.
const GAP_MAX: Duration = Duration::from_secs(120);
/// How clearly the looks must lie on a line: its share of what moves them, against the rest, for each look beyond two. With
/// numbers that only scatter this is passed less than once in a hundred times.
const CLEARNESS_MIN: f64 = 20.0;
/// Nothing is said about what is farther away: minutes tell little about months.
const HORIZON: Duration = Duration::from_secs(30 * 86_400);
/// Attempts that are added up one by one. Whoever has more of them left waits longer than the horizon, or is asked again.
const ATTEMPTS_MAX: u32 = 10_000;

/// What is expected.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum ForecastEvent {
    /// Events are refused for want of room on the disk.
    #[default]
    DiskFull,
    /// Retries of an event run out, and it becomes a dead letter.
    DeadLettersBegin,
    /// Nothing waits any more.
    BacklogDone,
}

/// When something is expected.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Forecast {
    pub event: ForecastEvent,
    /// In so many seconds, of which there are no parts.
    pub in_s: f64,
    /// What it rests on: `at 120 events/s over the last 10 min`.
    pub basis: String,
}

/// How fast a number moves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slope {
    pub per_second: f64,
    /// The time in which that was seen.
    pub over: Duration,
}

/// A number that is looked at again and again.
#[derive(Clone, Debug, Default)]
pub struct Trend {
    looks: VecDeque<(Duration, f64)>,
}

impl ForecastEvent {
    const fn in_words(self) -> &'static str {
        match self {
            Self::DiskFull => "the disk is full",
            Self::DeadLettersBegin => "dead letters begin",
            Self::BacklogDone => "the backlog is done",
        }
    }
}

impl Forecast {
    fn new(event: ForecastEvent, after: Duration, basis: String) -> Option<Self> {
        (after <= HORIZON).then_some(Self {
            event,
            // Nobody knows it better than that.
            in_s: after.as_secs_f64().round(),
            basis,
        })
    }

    /// In how long.
    #[must_use]
    pub fn after(&self) -> Duration {
        Duration::try_from_secs_f64(self.in_s).unwrap_or_default()
    }

    /// `the disk is full in about 9 d, at 1.2 MB/s over the last 10 min`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let when = match self.in_s {
            seconds if seconds < 1.0 => "any moment".to_owned(),
            _ => format!("in about {}", rounded(self.after())),
        };
        format!("{} {when}, {}", self.event.in_words(), self.basis)
    }
}

impl Trend {
    /// Remembers the number as it is now, if it is time to. A clock that goes back, or was not read for long, begins anew.
    pub fn look(&mut self, now: Duration, value: f64) {
        if let Some((last, _)) = self.looks.back() {
            if now < *last || now - *last > GAP_MAX {
                self.looks.clear();
            } else if now - *last < LOOK_EVERY {
                return;
            }
        }
        if self.looks.len() >= LOOKS_MAX {
            self.looks.pop_front();
        }
        self.looks.push_back((now, value));
    }

    /// How fast it moves, with how it is now; `None` when nobody can tell.
    #[must_use]
    pub fn slope(&self, now: Duration, value: f64) -> Option<Slope> {
        let (first, _) = *self.looks.front()?;
        let (last, _) = *self.looks.back()?;
        let over = now.checked_sub(first)?;
        if over < TREND_MIN || now < last || now - last > GAP_MAX {
            return None;
        }
        let known = self.looks.iter().filter(|(at, _)| *at < now);
        let points: Vec<(f64, f64)> = known
            .map(|(at, value)| (at.saturating_sub(first).as_secs_f64(), *value))
            .chain([(over.as_secs_f64(), value)])
            .collect();
        let per_second = line_through(&points)?;
        Some(Slope { per_second, over })
    }
}

/// The slope of the straight line that is nearest to some points, if they lie close enough to one.
fn line_through(points: &[(f64, f64)]) -> Option<f64> {
    let count = points.len() as f64;
    if points.len() < 3 {
        return None;
    }
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x_mean, y_mean) = (mean(|point| point.0), mean(|point| point.1));
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for (x, y) in points {
        let (x, y) = (x - x_mean, y - y_mean);
        xx += x * x;
        xy += x * y;
        yy += y * y;
    }
    let slope = xy / xx;
    if !slope.is_finite() || yy <= 0.0 {
        return None;
    }
    // What the line explains of how far the points are apart, and what it does not.
    let explained = xy * xy / xx;
    let rest = (yy - explained).max(0.0);
    (explained * (count - 2.0) >= CLEARNESS_MIN * rest).then_some(slope)
}

/// When the disk is full: so many bytes are free, and so many of them can be used.
#[must_use]
pub fn disk_full(free: &Trend, now: Duration, free_bytes: u64, usable: u64) -> Option<Forecast> {
    let slope = free.slope(now, free_bytes as f64)?;
    let taken = Some(-slope.per_second).filter(|taken| *taken > 0.0)?;
    let after = Duration::try_from_secs_f64(usable as f64 / taken).ok()?;
    let basis = format!(
        "at {}/s over the last {}",
        bytes(taken),
        rounded(slope.over)
    );
    Forecast::new(ForecastEvent::DiskFull, after, basis)
}

/// When nothing waits any more, of what shrinks.
#[must_use]
pub fn backlog_done(waiting: &Trend, now: Duration, pending: u64) -> Option<Forecast> {
    let slope = waiting.slope(now, pending as f64)?;
    let done = Some(-slope.per_second).filter(|done| *done > 0.0)?;
    let after = Duration::try_from_secs_f64(pending as f64 / done).ok()?;
    let basis = format!(
        "{} more leave it than come, over the last {}",
        rate(done),
        rounded(slope.over)
    );
    Forecast::new(ForecastEvent::BacklogDone, after, basis)
}

/// An event whose attempts fail.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FailingEvent {
    /// Its place in the log.
    pub place: u64,
    /// Attempts that failed and count.
    pub failed: u32,
    /// Attempts that it has in all.
    pub attempts: u32,
    /// Until the next attempt; nothing when it is due.
    pub next_in: Duration,
    /// How long an attempt takes, as the last ones did.
    pub attempt: Duration,
}

/// When an event becomes a dead letter if its attempts go on failing. `pause` is what is waited after so many failures.
#[must_use]
pub fn dead_letters_begin(
    event: &FailingEvent,
    pause: impl Fn(u32) -> Duration,
) -> Option<Forecast> {
    let left = event.attempts.checked_sub(event.failed)?;
    if event.failed == 0 || left == 0 || left > ATTEMPTS_MAX {
        return None;
    }
    let mut after = event.next_in.saturating_add(event.attempt);
    for failed in event.failed + 1..event.attempts {
        after = after
            .saturating_add(pause(failed))
            .saturating_add(event.attempt);
        if after > HORIZON {
            return None;
        }
    }
    let mut basis = format!(
        "if it goes on failing: the event at place {} failed {} of {} and has {} left",
        event.place,
        event.failed,
        counted(event.attempts, "attempt"),
        left,
    );
    if !event.attempt.is_zero() {
        basis.push_str(&format!(", {} each", span(event.attempt)));
    }
    Forecast::new(ForecastEvent::DeadLettersBegin, after, basis)
}

/// A span that is not known better than to a few parts of a hundred.
fn rounded(duration: Duration) -> String {
    // A minute and more is told without what is below a second.
    span(Duration::from_secs(duration.as_secs_f64().round() as u64).max(Duration::from_secs(1)))
}

fn rate(per_second: f64) -> String {
    match per_second {
        rate if rate >= 9.95 => format!("{rate:.0}/s"),
        rate if rate >= 0.995 => format!("{rate:.1}/s"),
        rate => format!("{:.1}/min", rate * 60.0),
    }
}

fn bytes(count: f64) -> String {
    let (unit, size) = match count {
        count if count < 1e3 => ("B", 1.0),
        count if count < 1e6 => ("kB", 1e3),
        count if count < 1e9 => ("MB", 1e6),
        _ => ("GB", 1e9),
    };
    let number = count / size;
    let decimals = usize::from(number < 9.95);
    format!("{number:.decimals$} {unit}")
}
