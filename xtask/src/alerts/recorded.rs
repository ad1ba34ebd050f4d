//! Series as if they had been recorded, and what heddle itself makes of them minute by minute: promtool says whether Prometheus makes
//! the same of them. Rules that heddle evaluates without a Prometheus fire when they fire there.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Result;
use heddle_api::health::alerts::watch::AlertWatch;

use super::{
    AGE, DEAD, DELIVERED, FAILED, FAILURES, IN_TIME, MESH, OLDEST, PAIR_CONTROL, PAIR_DATA,
    PAIR_USER, STALLED, TAKEN, UNACCOUNTED,
};

/// Sets of series that are made, each with a seed of its own.
const RECORDINGS: u64 = 40;
const MINUTES: usize = 80;
/// How often Prometheus is asked, in minutes.
const ASKED_EVERY: usize = 3;

/// How a number moves.
enum Movement {
    /// One of these for some minutes, then another.
    Among(&'static [f64]),
    /// Up by one of these each minute; begins anew now and then.
    Counts(&'static [f64]),
}

/// Numbers around which rules turn.
const MOVEMENTS: [(&str, Movement); 20] = [
    (
        "heddle_api_store_serving",
        Movement::Among(&[1.0, 1.0, 1.0, 0.0]),
    ),
    ("heddle_log_serving", Movement::Among(&[1.0, 1.0, 0.0])),
    (MESH, Movement::Among(&[0.0, 1.0, 2.0, 3.0])),
    (PAIR_DATA, Movement::Among(&[0.0, 1.0, 3.0])),
    (PAIR_CONTROL, Movement::Among(&[0.0, 2.0, 3.0])),
    (PAIR_USER, Movement::Among(&[0.0, 3.0])),
    (UNACCOUNTED, Movement::Among(&[0.0, 0.0, 3.0])),
    (
        "heddle_quota_used_ratio",
        Movement::Among(&[0.5, 0.79, 0.81, 0.94, 0.96, 1.0]),
    ),
    (TAKEN, Movement::Counts(&[0.0, 100.0, 950.0, 20_000.0])),
    (FAILED, Movement::Counts(&[0.0, 0.0, 1.0, 7.0, 40.0])),
    (IN_TIME, Movement::Counts(&[80.0, 93.0, 99.0])),
    (DELIVERED, Movement::Counts(&[100.0])),
    (AGE, Movement::Among(&[1.0, 14.0, 16.0, 60.0])),
    (STALLED, Movement::Among(&[0.0, 0.0, 17.0])),
    (FAILURES, Movement::Counts(&[0.0, 1.0, 30.0])),
    (
        "heddle_smoke_failed_in_a_row",
        Movement::Among(&[0.0, 1.0, 2.0, 5.0]),
    ),
    (DEAD, Movement::Among(&[0.0, 4.0, 9.0, 30.0])),
    (OLDEST, Movement::Among(&[0.0, 12.0, 299.0, 301.0, 4_000.0])),
    ("heddle_log_damaged", Movement::Among(&[0.0, 0.0, 1.0])),
    (
        "heddle_journal_lost_records",
        Movement::Among(&[0.0, 0.0, 2.0]),
    ),
];

/// Numbers that are the same each time.
struct Seed(u64);

impl Seed {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % bound.max(1)
    }
}

/// A series and its numbers, minute by minute; none where it was not there.
type Recorded = (String, Vec<Option<f64>>);

fn record(seed: u64) -> Vec<Recorded> {
    let mut seed = Seed((seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let mut all = Vec::new();
    for (name, movement) in &MOVEMENTS {
        // Not everything is there always.
        if seed.below(6) == 0 {
            continue;
        }
        let mut values = Vec::new();
        let mut counted = 0.0;
        while values.len() <= MINUTES {
            let length = 1 + seed.below(25);
            let choices = match movement {
                Movement::Among(choices) | Movement::Counts(choices) => *choices,
            };
            let chosen = choices[seed.below(choices.len())];
            if matches!(movement, Movement::Counts(_)) && seed.below(8) == 0 {
                counted = 0.0;
            }
            for _ in 0..length {
                counted += chosen;
                values.push(Some(match movement {
                    Movement::Among(_) => chosen,
                    Movement::Counts(_) => counted,
                }));
            }
        }
        values.truncate(MINUTES + 1);
        all.push(((*name).to_owned(), values));
    }
    all
}

/// How many alerts of each name fire at each minute, as heddle sees it.
fn fires(series: &[Recorded]) -> Result<Vec<BTreeMap<&'static str, usize>>> {
    let mut watch = AlertWatch::new()?;
    let mut all = Vec::new();
    for minute in 0..=MINUTES {
        let mut text = String::new();
        for (name, values) in series {
            if let Some(Some(value)) = values.get(minute) {
                writeln!(text, "{name} {value}")?;
            }
        }
        watch.look(Duration::from_secs(60 * minute as u64), &text);
        let mut firing = BTreeMap::new();
        for held in watch.held().filter(|held| held.fires) {
            *firing.entry(held.alert.name).or_default() += 1;
        }
        all.push(firing);
    }
    Ok(all)
}

/// What promtool is to find out about each of them.
pub(super) fn tests(text: &mut String) -> Result<()> {
    for seed in 0..RECORDINGS {
        let series = record(seed);
        writeln!(text, "- interval: 1m\n  input_series:")?;
        for (name, values) in &series {
            let words: Vec<String> = values
                .iter()
                .map(|value| value.map_or_else(|| "stale".to_owned(), |value| value.to_string()))
                .collect();
            writeln!(
                text,
                "  - series: '{name}'\n    values: '{}'",
                words.join(" ")
            )?;
        }
        writeln!(text, "  promql_expr_test:")?;
        for (minute, firing) in fires(&series)?.iter().enumerate().step_by(ASKED_EVERY) {
            writeln!(
                text,
                "  - expr: 'count by (alertname) (ALERTS{{alertstate=\"firing\"}})'\n    eval_time: {minute}m"
            )?;
            if !firing.is_empty() {
                writeln!(text, "    exp_samples:")?;
            }
            for (alert, count) in firing {
                writeln!(
                    text,
                    "    - {{labels: '{{alertname=\"{alert}\"}}', value: {count}}}"
                )?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::super::{ALERTS, SAMPLES, Series};
    use super::*;

    /// The numbers of a series in promtool's notation: `0+2x80`, `3x5`, `7`, `_`.
    fn expanded((name, notation): &Series) -> Result<Recorded> {
        let mut values = Vec::new();
        for word in notation.split_whitespace() {
            let (value, count) = match word.split_once('x') {
                Some((value, count)) => (value, count.parse::<usize>()?),
                None => (word, 0),
            };
            let (first, step) = match value.split_once('+') {
                Some((first, step)) => (first, step.parse::<f64>()?),
                None => (value, 0.0),
            };
            let first: f64 = first.parse().with_context(|| format!("{name}: {word}"))?;
            values.extend((0..=count).map(|number| Some(first + step * number as f64)));
        }
        Ok(((*name).to_owned(), values))
    }

    #[test]
    fn each_rule_fires_where_it_should_and_is_silent_where_it_should_be() {
        for alert in ALERTS {
            let (_, firing, silent) = SAMPLES
                .iter()
                .find(|(name, ..)| *name == alert.name)
                .unwrap();
            for (series, expected) in [(firing, 1), (silent, 0)] {
                let series: Vec<Recorded> =
                    series.iter().map(|one| expanded(one).unwrap()).collect();
                let found = &fires(&series).unwrap()[70];
                let found = found.get(alert.name).copied().unwrap_or_default();
                assert_eq!(found, expected, "{}: {series:?}", alert.name);
            }
        }
    }

    #[test]
    fn every_alert_fires_in_some_recording_and_is_silent_in_another() {
        let mut seen: BTreeMap<&str, [bool; 2]> = BTreeMap::new();
        for seed in 0..RECORDINGS {
            for firing in fires(&record(seed)).unwrap() {
                for alert in ALERTS {
                    let fires = firing.contains_key(alert.name);
                    seen.entry(alert.name).or_default()[usize::from(fires)] = true;
                }
            }
        }
        assert!(seen.values().all(|both| *both == [true, true]), "{seen:?}");
    }
}
