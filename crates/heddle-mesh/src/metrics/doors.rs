//! How publishers were answered, by door, by the place behind it and by class of answer.
//!
//! Counting is a look into a map that hardly ever changes and one addition: places are added by copying the map. A place
//! is counted only if it exists, so that strangers cannot fill the map, and no more of them than [`PLACES_MAX`].

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;

use super::answers::{OVERFLOW, application};

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
    places: [ArcSwap<HashMap<Arc<str>, Arc<Counts>>>; DOORS.len()],
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
        let add = |counts: &Counts| counts[answer].fetch_add(events, Ordering::Relaxed);
        let places = &self.places[door as usize];
        match place {
            None => add(&self.nowhere[door as usize]),
            Some(place) => match places.load().get(place) {
                Some(counts) => add(counts),
                None => add(&added(places, place)),
            },
        };
    }

    /// The samples of `heddle_published_total`.
    pub(super) fn write(&self, out: &mut String) {
        let doors = DOORS.iter().zip(&self.places).zip(&self.nowhere);
        for ((door, places), nowhere) in doors {
            sample(out, door, "", "", nowhere);
            let places = places.load();
            let mut sorted: Vec<_> = places.iter().collect();
            sorted.sort_unstable_by_key(|(place, _)| *place);
            for (place, counts) in sorted {
                let namespace = place.split('/').nth(1).unwrap_or(OVERFLOW);
                sample(out, door, application(place), namespace, counts);
            }
        }
    }
}

/// The counters of a place that had none, or of all those beyond the bound.
#[cold]
fn added(places: &ArcSwap<HashMap<Arc<str>, Arc<Counts>>>, place: &Arc<str>) -> Arc<Counts> {
    let fresh = Arc::new(Counts::default());
    let before = places.rcu(|places| {
        let mut places = HashMap::clone(places);
        let full = places.len() >= PLACES_MAX && !places.contains_key(place);
        let name = if full {
            OVERFLOW.into()
        } else {
            Arc::clone(place)
        };
        places.entry(name).or_insert_with(|| Arc::clone(&fresh));
        places
    });
    drop(before);
    let places = places.load();
    let counts = places.get(place).or_else(|| places.get(OVERFLOW));
    Arc::clone(counts.expect("it, or what stands for all beyond the bound, was put in"))
}

fn sample(out: &mut String, door: &str, application: &str, namespace: &str, counts: &Counts) {
    for (answer, count) in ANSWERS.iter().zip(counts) {
        let count = count.load(Ordering::Relaxed);
        writeln!(
            out,
            "heddle_published_total{{api=\"{door}\",app=\"{application}\",ns=\"{namespace}\",code=\"{answer}\"}} {count}"
        )
        .ok();
    }
}
