//! A report as the stream tells it: a verdict for each scope, and the numbers of whoever is busy. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use heddle_api::access::namespace_of;
use heddle_api::dataplane::{ConsumerReading, DoorReading, MeshReading};
use heddle_api::health::stream::{ConsumerNumbers, SourceNumbers, VerdictEvent};
use heddle_controllers::Report;

/// Consumers, and applications, whose numbers are told; with more, the busiest.
const BUSY_MAX: usize = 1000;

/// The numbers of a moment, without whoever is idle.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PulseNumbers {
    pub(super) consumers: BTreeMap<String, ConsumerNumbers>,
    pub(super) sources: BTreeMap<String, SourceNumbers>,
    pub(super) left_out: u32,
    /// How many consumers of each namespace are among those.
    pub(super) left_out_of: BTreeMap<String, u32>,
}

/// The verdict on every scope.
pub(super) fn verdicts(report: &Report) -> BTreeMap<String, VerdictEvent> {
    let mesh = ("mesh".to_owned(), &report.mesh.verdict);
    let applications = report.applications.iter().map(|(name, application)| {
        let scope = format!("application/{name}");
        (scope, &application.eventing.verdict)
    });
    let pairs = report.pairs.iter().map(|((application, namespace), pair)| {
        let scope = format!("application/{application}/{namespace}");
        (scope, &pair.verdict)
    });
    std::iter::once(mesh)
        .chain(applications)
        .chain(pairs)
        .map(|(scope, verdict)| (scope.clone(), VerdictEvent::of(scope, verdict)))
        .collect()
}

/// What happens now: rates are those since the report before.
pub(super) fn numbers(report: &Report) -> PulseNumbers {
    let nothing = MeshReading::default();
    let (seconds, before) = match &report.earlier {
        Some((judged, reading)) => (report.judged.saturating_sub(*judged), &**reading),
        None => (Duration::ZERO, &nothing),
    };
    let rates = Rates {
        seconds: seconds.as_secs_f64(),
    };
    let known: BTreeMap<&str, &ConsumerReading> = before
        .consumers
        .iter()
        .map(|reading| (reading.key.as_str(), reading))
        .collect();
    let (consumers, consumers_left_out) = busiest(report.reading.consumers.iter().map(|now| {
        let before = known.get(now.key.as_str()).copied();
        (now.key.clone(), rates.consumer(before, now))
    }));
    let known: BTreeMap<&str, &DoorReading> = before
        .doors
        .iter()
        .map(|reading| (reading.application.as_str(), reading))
        .collect();
    let (sources, sources_left_out) = busiest(report.reading.doors.iter().map(|now| {
        let before = known.get(now.application.as_str()).copied();
        let name = format!("application/{}", now.application);
        (name, rates.source(before, now))
    }));
    let left_out = consumers_left_out.len() + sources_left_out.len();
    let mut left_out_of = BTreeMap::new();
    for namespace in consumers_left_out
        .iter()
        .filter_map(|key| namespace_of(key))
    {
        *left_out_of.entry(namespace.to_owned()).or_default() += 1;
    }
    PulseNumbers {
        consumers,
        sources,
        left_out: u32::try_from(left_out).unwrap_or(u32::MAX),
        left_out_of,
    }
}

/// What is between two counts.
struct Rates {
    /// 0 when there is only one of them.
    seconds: f64,
}

impl Rates {
    fn consumer(&self, before: Option<&ConsumerReading>, now: &ConsumerReading) -> ConsumerNumbers {
        let rate =
            |count: fn(&ConsumerReading) -> u64| self.per_second(before.map(count), count(now));
        [
            rate(|reading| reading.matched),
            rate(|reading| reading.delivered),
            rate(|reading| reading.failures),
            now.pending as f64,
            now.oldest_pending.unwrap_or_default().as_secs() as f64,
            now.in_flight as f64,
        ]
    }

    fn source(&self, before: Option<&DoorReading>, now: &DoorReading) -> SourceNumbers {
        let rate = |count: fn(&DoorReading) -> u64| self.per_second(before.map(count), count(now));
        [
            rate(|reading| reading.accepted),
            rate(|reading| reading.refused),
            rate(|reading| reading.failed),
            rate(|reading| reading.unmatched),
        ]
    }

    /// To a tenth. Whoever was not there before began at nothing.
    fn per_second(&self, before: Option<u64>, now: u64) -> f64 {
        if self.seconds <= 0.0 {
            return 0.0;
        }
        let more = now.saturating_sub(before.unwrap_or_default());
        (more as f64 / self.seconds * 10.0).round() / 10.0
    }
}

/// Those of whom there is something to tell, and who else is busy.
fn busiest<const N: usize>(
    all: impl Iterator<Item = (String, [f64; N])>,
) -> (BTreeMap<String, [f64; N]>, Vec<String>) {
    let is_busy = |numbers: &[f64; N]| numbers.iter().any(|number| *number > 0.0);
    let mut busy: Vec<(String, [f64; N])> = all.filter(|(_, numbers)| is_busy(numbers)).collect();
    let mut left_out = Vec::new();
    if busy.len() > BUSY_MAX {
        let sum = |numbers: &[f64; N]| numbers.iter().sum::<f64>();
        busy.sort_by(|(_, one), (_, other)| sum(other).total_cmp(&sum(one)));
        left_out = busy.split_off(BUSY_MAX);
    }
    let left_out = left_out.into_iter().map(|(name, _)| name);
    (busy.into_iter().collect(), left_out.collect())
}
