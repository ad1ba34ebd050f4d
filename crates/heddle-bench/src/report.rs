//! What was measured, as a table for people and as JSON for machines.
//!
//! Goals are ratios and bounds that hold wherever sides are measured together; the figures behind them are of this machine
//! and are printed below, so that a surprising ratio can be looked into.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use super::machine::FOREIGN_CORES_MAX;
use heddle::output::Table;

/// Everything a run found out.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) rows: Vec<Row>,
    pub(super) samples: Vec<Sample>,
}

/// The figures of one run, or the medians of several.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sample {
    pub(super) side: String,
    /// Accepted events per second.
    pub(super) rate: f64,
    /// From sending a request to its answer.
    pub(super) p50: Duration,
    pub(super) p99: Duration,
    /// CPU time of the measured process per accepted event, in microseconds.
    pub(super) cpu_micros: f64,
    /// From sending an event to its arrival, when there is a sink.
    pub(super) arrival: Option<(Duration, Duration)>,
    pub(super) refused: u64,
    /// Cores used by others; of several runs the most.
    pub(super) foreign_cores: f64,
}

/// One figure that matters, and how good it should be.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    measure: String,
    value: f64,
    unit: Unit,
    goal: Option<Goal>,
    foreign_cores: f64,
}

/// What a value counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Ratio,
    Count,
    Micros,
    Millis,
    Seconds,
    Kilobytes,
    Megabytes,
    /// Of a core.
    Percent,
}

/// Which values are good enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Goal {
    AtLeast(f64),
    AtMost(f64),
}

impl Row {
    /// One figure divided by another, of two sides that were measured together.
    pub(super) fn ratio(
        measure: impl Into<String>,
        of: fn(&Sample) -> f64,
        ours: &Sample,
        base: &Sample,
    ) -> Self {
        Self {
            foreign_cores: ours.foreign_cores.max(base.foreign_cores),
            ..Self::figure(measure, of(ours) / of(base), Unit::Ratio)
        }
    }

    /// A figure that stands alone.
    pub(super) fn figure(measure: impl Into<String>, value: f64, unit: Unit) -> Self {
        Self {
            measure: measure.into(),
            value,
            unit,
            goal: None,
            foreign_cores: 0.0,
        }
    }

    pub(super) fn goal(self, goal: Goal) -> Self {
        Self {
            goal: Some(goal),
            ..self
        }
    }

    /// The most that others used while this was measured.
    pub(super) fn disturbed_by(self, foreign_cores: f64) -> Self {
        Self {
            foreign_cores,
            ..self
        }
    }

    /// In one line, for those who watch.
    pub(super) fn shown(&self) -> String {
        format!("{}: {}", self.measure, self.unit.show(self.value))
    }

    fn met(&self) -> Option<bool> {
        Some(match self.goal? {
            Goal::AtLeast(least) => self.value >= least,
            Goal::AtMost(most) => self.value <= most,
        })
    }

    fn disturbed(&self) -> bool {
        self.foreign_cores > FOREIGN_CORES_MAX
    }
}

impl Unit {
    fn show(self, value: f64) -> String {
        match self {
            Self::Ratio => format!("{value:.2}"),
            Self::Count => format!("{value:.0}"),
            Self::Micros => format!("{value:.1} µs"),
            Self::Millis => format!("{value:.2} ms"),
            Self::Seconds => format!("{value:.2} s"),
            Self::Megabytes if value < 10.0 => format!("{value:.1} MB"),
            Self::Megabytes => format!("{value:.0} MB"),
            Self::Kilobytes => format!("{value:.1} kB"),
            Self::Percent => format!("{value:.1} %"),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Ratio => "ratio",
            Self::Count => "count",
            Self::Micros => "us",
            Self::Millis => "ms",
            Self::Seconds => "s",
            Self::Megabytes => "MB",
            Self::Kilobytes => "kB",
            Self::Percent => "%",
        }
    }
}

impl Report {
    pub(super) fn to_json(&self) -> Value {
        let rows: Vec<Value> = self.rows.iter().map(row_json).collect();
        let samples: Vec<Value> = self.samples.iter().map(sample_json).collect();
        json!({"measures": rows, "runs": samples})
    }

    pub(super) fn to_text(&self, colour: bool) -> String {
        let mut text = String::new();
        for table in [self.goals(), self.figures()] {
            if !table.rows.is_empty() {
                text.push_str(&table.render(&table.widths(&[]), true, colour));
                text.push('\n');
            }
        }
        if self.rows.iter().any(Row::disturbed) {
            writeln!(
                text,
                "* others used more than {FOREIGN_CORES_MAX} of a core; measure again on a quiet machine"
            )
            .expect("writing to a string cannot fail");
        }
        text
    }

    fn goals(&self) -> Table {
        let rows = self.rows.iter().map(|row| {
            let goal = match row.goal {
                Some(Goal::AtLeast(least)) => format!("≥ {}", row.unit.show(least)),
                Some(Goal::AtMost(most)) => format!("≤ {}", row.unit.show(most)),
                None => String::new(),
            };
            let met = match row.met() {
                Some(true) => "yes",
                Some(false) => "no",
                None => "",
            };
            let mark = if row.disturbed() { "*" } else { "" };
            vec![
                row.measure.clone(),
                row.unit.show(row.value),
                goal,
                format!("{met}{mark}"),
            ]
        });
        table(&["MEASURE", "VALUE", "GOAL", "MET"], rows)
    }

    fn figures(&self) -> Table {
        let rows = self.samples.iter().map(|sample| {
            let arrival = |pick: fn((Duration, Duration)) -> Duration| {
                let arrival = sample.arrival.map(pick);
                arrival.map(millis).unwrap_or_default()
            };
            vec![
                sample.side.clone(),
                format!("{:.0}", sample.rate),
                millis(sample.p50),
                millis(sample.p99),
                arrival(|both| both.0),
                arrival(|both| both.1),
                format!("{:.1} µs", sample.cpu_micros),
                sample.refused.to_string(),
                format!("{:.2}", sample.foreign_cores),
            ]
        });
        let headers = [
            "RUN",
            "EVENTS/S",
            "P50",
            "P99",
            "ARRIVAL P50",
            "ARRIVAL P99",
            "CPU/EVENT",
            "REFUSED",
            "OTHERS",
        ];
        table(&headers, rows)
    }
}

fn table(headers: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Table {
    Table {
        headers: headers.iter().map(|header| (*header).to_owned()).collect(),
        rows: rows.collect(),
    }
}

fn millis(duration: Duration) -> String {
    Unit::Millis.show(duration.as_secs_f64() * 1e3)
}

fn row_json(row: &Row) -> Value {
    let (bound, goal) = match row.goal {
        Some(Goal::AtLeast(least)) => (Some("atLeast"), Some(least)),
        Some(Goal::AtMost(most)) => (Some("atMost"), Some(most)),
        None => (None, None),
    };
    json!({
        "measure": row.measure, "value": row.value, "unit": row.unit.name(), "bound": bound,
        "goal": goal, "met": row.met(), "foreignCores": row.foreign_cores, "disturbed": row.disturbed(),
    })
}

fn sample_json(sample: &Sample) -> Value {
    let arrival = sample.arrival.map(
        |(p50, p99)| json!({"p50Seconds": p50.as_secs_f64(), "p99Seconds": p99.as_secs_f64()}),
    );
    json!({
        "run": sample.side, "eventsPerSecond": sample.rate, "p50Seconds": sample.p50.as_secs_f64(),
        "p99Seconds": sample.p99.as_secs_f64(), "arrival": arrival, "cpuMicrosPerEvent": sample.cpu_micros,
        "refused": sample.refused, "foreignCores": sample.foreign_cores,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(side: &str, rate: f64, foreign_cores: f64) -> Sample {
        Sample {
            side: side.to_owned(),
            rate,
            cpu_micros: 8.54,
            foreign_cores,
            ..Sample::default()
        }
    }

    fn report() -> Report {
        let (ours, base) = (sample("ours", 77.0, 0.3), sample("floor", 121.7, 0.0));
        let ratio = |name| Row::ratio(name, |sample| sample.rate, &ours, &base);
        Report {
            rows: vec![
                ratio("good").goal(Goal::AtLeast(0.6)),
                ratio("bad").goal(Goal::AtLeast(0.65)),
                ratio("open"),
                Row::figure("small", 30.0, Unit::Megabytes).goal(Goal::AtMost(30.0)),
            ],
            samples: vec![Sample {
                arrival: Some((Duration::from_micros(820), Duration::from_millis(3))),
                ..ours
            }],
        }
    }

    #[test]
    fn the_table_says_what_was_met_and_what_is_doubtful() {
        insta::assert_snapshot!(report().to_text(false), @r"
        MEASURE   VALUE   GOAL      MET
        good      0.63    ≥ 0.60    yes*
        bad       0.63    ≥ 0.65    no*
        open      0.63              *
        small     30 MB   ≤ 30 MB   yes

        RUN    EVENTS/S   P50       P99       ARRIVAL P50   ARRIVAL P99   CPU/EVENT   REFUSED   OTHERS
        ours   77         0.00 ms   0.00 ms   0.82 ms       3.00 ms       8.5 µs      0         0.30

        * others used more than 0.25 of a core; measure again on a quiet machine
        ");
    }

    #[test]
    fn machines_read_the_same() {
        let value = report().to_json();
        assert_eq!(value["measures"][0]["met"], true);
        assert_eq!(value["measures"][1]["met"], false);
        assert_eq!(value["measures"][1]["disturbed"], true);
        assert_eq!(value["measures"][2]["goal"], Value::Null);
        assert_eq!(value["runs"][0]["arrival"]["p99Seconds"], 0.003);
    }
}
