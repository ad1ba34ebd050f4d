//! Measuring side by side: every side in turn, several times over, and the median of each figure.
//!
//! Neighbours on the machine and its temperature change by the minute; sides that alternate see the same of both. What
//! others used meanwhile is written down with every run.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use heddle_rt::Clock;

use super::super::process;
use super::load::{self, Outcome};
use super::machine::Busy;
use super::processes;
use super::report::{Report, Row, Sample};
use super::server::STALL_MAX;
use super::sink::Counted;
use heddle::failure::Failure;
use heddle::terminal::Terminal;
use heddle::wire::World;

/// Before each measurement, as a share of it: connections, caches and the allocator settle.
const WARM_UP_SHARE: f64 = 0.25;
const POLL: Duration = Duration::from_millis(20);

/// Where everything is measured and written down.
#[derive(Debug)]
pub(super) struct Lab<'a> {
    pub(super) world: &'a World,
    pub(super) terminal: &'a mut Terminal,
    /// Where servers keep their files.
    pub(super) dir: PathBuf,
    /// How long each run takes.
    pub(super) seconds: f64,
    /// How often each side has its turn.
    pub(super) repeats: usize,
    pub(super) quick: bool,
    /// How many events wait for a subscriber that is down.
    pub(super) queued: u64,
    pub(super) nats: Option<PathBuf>,
    pub(super) report: Report,
}

/// One side of a comparison.
#[derive(Clone, Debug)]
pub(super) struct Side {
    pub(super) name: String,
    /// The process whose CPU time counts.
    pub(super) pid: u32,
    /// The command line of the generator.
    pub(super) command: Vec<String>,
    pub(super) sink: Option<Sink>,
}

/// Where the events of a side must arrive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sink {
    pub(super) address: SocketAddr,
    /// How often each event must.
    pub(super) deliveries: u64,
}

impl Side {
    /// A side that only takes events in.
    pub(super) fn ingest(name: impl Into<String>, pid: u32, load: &load::Args) -> Self {
        Self {
            name: name.into(),
            pid,
            command: load.command_line(),
            sink: None,
        }
    }

    /// The same, and every event arrives so many times.
    pub(super) fn delivering(self, address: SocketAddr, deliveries: u64) -> Self {
        Self {
            sink: Some(Sink {
                address,
                deliveries,
            }),
            ..self
        }
    }
}

impl Lab<'_> {
    /// A closed loop on 64 connections for as long as a run takes.
    pub(super) fn load(&self, address: SocketAddr, path: &str) -> load::Args {
        load::Args {
            seconds: self.seconds,
            warm_up: self.warm_up(),
            ..load::Args::to(address, path)
        }
    }

    pub(super) fn warm_up(&self) -> f64 {
        self.seconds * WARM_UP_SHARE
    }

    /// Measures all sides in turn, and again; writes the medians down and answers them in the same order.
    pub(super) async fn compare<const N: usize>(
        &mut self,
        sides: [&Side; N],
    ) -> anyhow::Result<[Sample; N]> {
        let mut runs = sides.map(|_| Vec::new());
        for turn in 1..=self.repeats {
            for (side, runs) in sides.iter().zip(&mut runs) {
                runs.push(self.once(side, turn).await?);
            }
        }
        Ok(runs.map(|runs| self.median(&runs)))
    }

    /// One turn of one side, for those who need a server of its own for each.
    pub(super) async fn once(&mut self, side: &Side, turn: usize) -> anyhow::Result<Sample> {
        let sample = measure(side, &self.world.clock).await?;
        self.terminal.note(&format!(
            "{} ({turn} of {}): {:.0} events/s, {:.1} µs CPU each, others {:.2}",
            side.name, self.repeats, sample.rate, sample.cpu_micros, sample.foreign_cores
        ));
        Ok(sample)
    }

    /// The medians of several turns, which are written down.
    pub(super) fn median(&mut self, runs: &[Sample]) -> Sample {
        let median = median(runs);
        self.report.samples.push(median.clone());
        median
    }

    pub(super) fn row(&mut self, row: Row) {
        self.report.rows.push(row);
    }
}

/// One run. Events that are to arrive somewhere are waited for, and what that costs counts.
async fn measure(side: &Side, clock: &Clock) -> anyhow::Result<Sample> {
    if let Some(sink) = side.sink {
        Counted::forget(sink.address).await?;
    }
    let (started, busy) = (clock.monotonic(), Busy::now()?);
    let before = process::usage(Some(side.pid))?;
    let outcome = Outcome::parse(&processes::run_to_end(&side.command)?)?;
    ensure!(outcome.accepted > 0, "{}: no event was accepted", side.name);
    let arrival = match side.sink {
        Some(sink) => Some(arrived(side, sink, &outcome, clock).await?),
        None => None,
    };
    let cpu = process::usage(Some(side.pid))?
        .cpu
        .saturating_sub(before.cpu);
    let elapsed = clock.monotonic().saturating_sub(started);
    let cpu_micros = cpu.as_secs_f64() * 1e6 / outcome.accepted as f64;
    Ok(Sample {
        side: side.name.clone(),
        rate: outcome.rate,
        p50: outcome.p50,
        p99: outcome.p99,
        cpu_micros,
        arrival,
        refused: outcome.refused,
        foreign_cores: Busy::now()?.foreign_cores_since(&busy, elapsed),
    })
}

/// Waits until every accepted event arrived as often as it must.
async fn arrived(
    side: &Side,
    sink: Sink,
    outcome: &Outcome,
    clock: &Clock,
) -> anyhow::Result<(Duration, Duration)> {
    let wanted = outcome.accepted * sink.deliveries;
    let (mut last, mut changed) = (0, clock.monotonic());
    loop {
        let counted = Counted::of(sink.address).await?;
        if counted.received >= wanted {
            return Ok((counted.p50, counted.p99));
        }
        let now = clock.monotonic();
        if counted.received != last {
            (last, changed) = (counted.received, now);
        }
        if now.saturating_sub(changed) > STALL_MAX {
            let text = format!("{}: only {last} of {wanted} events arrived", side.name);
            return Err(Failure::TimedOut(text).into());
        }
        clock.sleep(POLL).await;
    }
}

/// Each figure's own median; refusals and foreign load are worth knowing at their worst.
fn median(runs: &[Sample]) -> Sample {
    let duration = |figure: fn(&Sample) -> Duration| {
        Duration::from_secs_f64(middle(runs.iter().map(|run| figure(run).as_secs_f64())))
    };
    let arrival = |figure: fn((Duration, Duration)) -> Duration| {
        let figures = runs.iter().filter_map(|run| run.arrival);
        Duration::from_secs_f64(middle(figures.map(|both| figure(both).as_secs_f64())))
    };
    Sample {
        side: runs.first().map(|run| run.side.clone()).unwrap_or_default(),
        rate: middle(runs.iter().map(|run| run.rate)),
        p50: duration(|run| run.p50),
        p99: duration(|run| run.p99),
        cpu_micros: middle(runs.iter().map(|run| run.cpu_micros)),
        arrival: runs
            .iter()
            .any(|run| run.arrival.is_some())
            .then(|| (arrival(|both| both.0), arrival(|both| both.1))),
        refused: runs.iter().map(|run| run.refused).max().unwrap_or_default(),
        foreign_cores: runs.iter().map(|run| run.foreign_cores).fold(0.0, f64::max),
    }
}

/// The median; of an even number the upper one, of none zero.
pub(super) fn middle(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_disturbed_run_of_three_changes_nothing_but_the_warning() {
        let run = |rate, millis, foreign_cores| Sample {
            side: "a".to_owned(),
            rate,
            p50: Duration::from_millis(millis),
            arrival: Some((
                Duration::from_millis(millis),
                Duration::from_millis(2 * millis),
            )),
            foreign_cores,
            ..Sample::default()
        };
        let median = median(&[run(90.0, 2, 0.1), run(10.0, 50, 1.5), run(100.0, 1, 0.0)]);
        assert_eq!(
            median,
            Sample {
                foreign_cores: 1.5,
                ..run(90.0, 2, 0.0)
            }
        );
    }

    #[test]
    fn the_median_of_nothing_is_nothing() {
        assert!(middle(std::iter::empty()).abs() < f64::EPSILON);
        assert!((middle([3.0, 1.0].into_iter()) - 3.0).abs() < f64::EPSILON);
    }
}
