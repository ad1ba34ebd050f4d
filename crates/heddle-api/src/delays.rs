//! How long events took from their acceptance until they were delivered, over time: one row for each trigger, Application or
//! type, one cell for each piece of time in which events came in.

#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{counted, span};

/// What has a row.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum DelayRows {
    /// A trigger, or a subscription with a subscriber of its own.
    #[default]
    Trigger,
    /// The Application that an event comes from, or the Broker that it was published to.
    Application,
    /// The type of an event.
    Type,
}

impl DelayRows {
    pub const ALL: [Self; 3] = [Self::Trigger, Self::Application, Self::Type];

    /// As questions and answers have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Trigger => "trigger",
            Self::Application => "application",
            Self::Type => "type",
        }
    }

    #[must_use]
    pub fn read(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rows| rows.name() == name)
    }
}

/// Which of its delays stands for a cell.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum DelayMeasure {
    /// Half of the deliveries took no longer.
    P50,
    /// 95 of 100 took no longer.
    #[default]
    P95,
    Max,
}

impl DelayMeasure {
    pub const ALL: [Self; 3] = [Self::P50, Self::P95, Self::Max];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::P50 => "p50",
            Self::P95 => "p95",
            Self::Max => "max",
        }
    }

    #[must_use]
    pub fn read(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|measure| measure.name() == name)
    }
}

/// `GET /heddle/v1/delays`.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DelayMap {
    pub by: DelayRows,
    pub since: Timestamp,
    pub until: Timestamp,
    /// Pieces of that time, equally long, the oldest first. An event belongs to the one in which it was accepted.
    pub columns: Vec<DelayColumn>,
    /// The slowest first.
    pub rows: Vec<DelayRow>,
    /// The same of heartbeats, by the consumers that hear them; only for those who see everything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heartbeats: Vec<DelayRow>,
    /// Events that were looked at, without heartbeats.
    pub examined: u64,
    /// Rows that are left out, since there are so many; at least so many.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
    /// Deliveries that ended before their event was accepted, since a clock was set back in between. They are counted and have
    /// no delay.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub clock_set_back: u64,
}

/// A piece of time.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DelayColumn {
    /// When it begins; it ends with the next one.
    pub since: Timestamp,
    /// Events that were looked at.
    pub examined: u64,
    /// Only the newest of its events were looked at, or none, since all would have been too many.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
}

/// What has its delays shown together.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DelayRow {
    /// `trigger/team-a/orders`, `application/shop`, `broker/team-a/default`, `order.created`.
    pub name: String,
    #[serde(flatten)]
    pub delays: Delays,
    /// Those in which something is known.
    pub cells: Vec<DelayCell>,
}

/// The delays of one row in one piece of time.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct DelayCell {
    /// The number of its column, from 0.
    pub column: u32,
    #[serde(flatten)]
    pub delays: Delays,
}

/// Deliveries put together. An event that two consumers want counts twice.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Delays {
    pub delivered: u64,
    /// Not ended yet. Each counts with the time that it has waited so far, so the figures are the least that it can become.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waiting: u64,
    /// Ended without a delivery: dead letters, expired, removed. They have no delay.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub undelivered: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_ms: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95_ms: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ms: Option<f64>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Delays {
    /// From delays in microseconds, in their order.
    #[must_use]
    pub fn of_sorted(delays_us: &[u64]) -> Self {
        let at = |share: f64| {
            // The nearest rank: with few deliveries a high share is the slowest of them.
            let rank = (share * delays_us.len() as f64).ceil() as usize;
            let delay = delays_us.get(rank.saturating_sub(1))?;
            Some(*delay as f64 / 1000.0)
        };
        Self {
            p50_ms: at(0.5),
            p95_ms: at(0.95),
            max_ms: at(1.0),
            ..Self::default()
        }
    }

    /// In milliseconds; `None` where nothing was delivered and nothing waits.
    #[must_use]
    pub fn measured(&self, measure: DelayMeasure) -> Option<f64> {
        match measure {
            DelayMeasure::P50 => self.p50_ms,
            DelayMeasure::P95 => self.p95_ms,
            DelayMeasure::Max => self.max_ms,
        }
    }

    /// `12 ms`; at least that, while something waits.
    #[must_use]
    pub fn in_words(&self, measure: DelayMeasure) -> String {
        match self.measured(measure) {
            None => "–".to_owned(),
            Some(ms) if self.waiting > 0 => format!("≥ {}", milliseconds(ms)),
            Some(ms) => milliseconds(ms),
        }
    }
}

/// Where one level of delay ends and the next begins, in milliseconds. What was 200 ms faster before is in another level,
/// unless it was slow already.
pub const LEVELS_MS: [f64; 7] = [3.0, 10.0, 30.0, 100.0, 300.0, 1_000.0, 10_000.0];

/// The level that a delay is in, from 0 for the shortest to 7.
#[must_use]
pub fn level(ms: f64) -> usize {
    LEVELS_MS.iter().filter(|end| ms >= **end).count()
}

/// What a level stands for.
#[must_use]
pub fn level_in_words(level: usize) -> String {
    let end = |level: usize| milliseconds_short(LEVELS_MS[level]);
    match level {
        0 => format!("below {}", end(0)),
        level if level >= LEVELS_MS.len() => format!("{} and more", end(LEVELS_MS.len() - 1)),
        level => format!("{} to {}", end(level - 1), end(level)),
    }
}

fn milliseconds_short(ms: f64) -> String {
    match ms {
        ms if ms < 1_000.0 => format!("{ms:.0} ms"),
        ms => format!("{:.0} s", ms / 1000.0),
    }
}

impl DelayMap {
    /// What is to be known beside the table.
    #[must_use]
    pub fn in_words(&self) -> Vec<String> {
        let mut told = Vec::new();
        let partial = self.columns.iter().filter(|column| column.partial).count();
        let examined = counted(self.examined, "event");
        told.push(match partial {
            0 => format!("all {examined} of that time were looked at"),
            partial => format!(
                "{examined} were looked at; in {partial} of {} pieces of that time the newest ones only, or none",
                self.columns.len()
            ),
        });
        if self.left_out > 0 {
            told.push(format!(
                "{} or more left out",
                counted(self.left_out, "row")
            ));
        }
        if self.clock_set_back > 0 {
            told.push(format!(
                "{} seem to have ended before they began, since a clock was set back; they have no delay",
                counted(self.clock_set_back, "delivery")
            ));
        }
        told
    }
}

/// A delay as people read it: with three digits at most where it is short.
#[must_use]
pub fn milliseconds(ms: f64) -> String {
    match ms {
        ms if ms < 9.95 => format!("{ms:.1} ms"),
        ms if ms < 999.5 => format!("{ms:.0} ms"),
        ms if ms < 9_950.0 => format!("{:.1} s", ms / 1000.0),
        ms => span(Duration::try_from_secs_f64(ms / 1000.0).unwrap_or_default()),
    }
}
