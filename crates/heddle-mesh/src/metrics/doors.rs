//! How publishers were answered, by door, by the place behind it and by class of answer.
//!
//! Counting is a look into a map that hardly ever changes and one addition. A place is counted only if it exists, so that
//! strangers cannot fill the map, and no more of them than [`PLACES_MAX`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use heddle_api::dataplane::DoorReading;
use heddle_rt::metrics::{LabelMap, sample};

use super::answers::{OVERFLOW, application};
use super::by_application::ByApplication;

/// Places counted one by one, for each kind of door. Those of a deleted place stay until the process ends.
const PLACES_MAX: usize = 1000;

/// The doors, in the order of their counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DoorKind {
    Application = 0,
    Broker = 1,
    Channel = 2,
}

const DOORS: [&str; 3] = ["application", "broker", "channel"];
const ANSWERS: [&str; 4] = ["2xx", "4xx", "429", "5xx"];

type Counts = [AtomicU64; ANSWERS.len()];

/// The counters of all doors.
#[derive(Debug, Default)]
pub(super) struct Doors {
    places: [LabelMap<Arc<str>, Counts>; DOORS.len()],
    /// Of those who knocked at a place that is not there.
    nowhere: [Counts; DOORS.len()],
}

impl Doors {
    pub(super) fn count(&self, door: DoorKind, place: Option<&Arc<str>>, status: u16, events: u64) {
        let answer = match status {
            200..=299 => 0,
            429 => 2,
            500.. => 3,
            _ => 1,
        };
        let add = |counts: &Counts| {
            counts[answer].fetch_add(events, Ordering::Relaxed);
        };
        let Some(place) = place else {
            return add(&self.nowhere[door as usize]);
        };
        let name = |known| match known {
            PLACES_MAX.. => OVERFLOW.into(),
            _ => Arc::clone(place),
        };
        self.places[door as usize].update(place, name, add);
    }

    /// What publishing to each Application came to, whichever door it was published at.
    pub(super) fn readings(&self, unmatched: &ByApplication) -> Vec<DoorReading> {
        let mut readings: BTreeMap<Box<str>, DoorReading> = BTreeMap::new();
        for (place, counts) in self.places.iter().flat_map(LabelMap::sorted) {
            let reading = readings.entry(application(&place).into()).or_default();
            let [accepted, refused, busy, failed] =
                counts.each_ref().map(|count| count.load(Ordering::Relaxed));
            reading.accepted += accepted;
            reading.refused += refused;
            reading.failed += busy + failed;
        }
        for (application, count) in unmatched.counts() {
            readings.entry(application).or_default().unmatched = count;
        }
        let named = |(application, reading): (Box<str>, DoorReading)| DoorReading {
            application: application.into(),
            ..reading
        };
        let of_applications =
            |(name, _): &(Box<str>, DoorReading)| !name.is_empty() && **name != *OVERFLOW;
        let readings = readings.into_iter().filter(of_applications);
        readings.map(named).collect()
    }

    /// The samples of `heddle_published_total`.
    pub(super) fn write(&self, out: &mut String) {
        let doors = DOORS.iter().zip(&self.places).zip(&self.nowhere);
        for ((door, places), nowhere) in doors {
            samples(out, door, "", "", nowhere);
            for (place, counts) in places.sorted() {
                let namespace = place.split('/').nth(1).unwrap_or(OVERFLOW);
                samples(out, door, application(&place), namespace, &counts);
            }
        }
    }
}

fn samples(out: &mut String, door: &str, application: &str, namespace: &str, counts: &Counts) {
    for (answer, count) in ANSWERS.iter().zip(counts) {
        let count = count.load(Ordering::Relaxed);
        let labels =
            format!("api=\"{door}\",app=\"{application}\",ns=\"{namespace}\",code=\"{answer}\"");
        sample(out, "heddle_published_total", &labels, count);
    }
}
