//! Who still uses the publish API of old Kyma, and how.
//!
//! An Application is counted by name only if it exists, and no more of them than [`APPLICATIONS_MAX`].

use std::sync::atomic::{AtomicU64, Ordering};

use heddle_rt::metrics::{LabelMap, sample};

use super::answers::{OVERFLOW, application};
use super::family;

/// Applications counted one by one.
const APPLICATIONS_MAX: usize = 1000;

/// The parts of that API, in the order of their counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LegacyApi {
    V1 = 0,
    V2 = 1,
    Subscribed = 2,
}

const APIS: [&str; 3] = ["v1", "v2", "subscribed"];
const ANSWERS: [&str; 4] = ["2xx", "4xx", "429", "5xx"];

#[derive(Debug, Default)]
struct LegacyCounts {
    requests: [[AtomicU64; ANSWERS.len()]; APIS.len()],
    lenient: AtomicU64,
    repeated: AtomicU64,
}

/// One of the counters.
type CountOf<'a> = &'a dyn Fn(&LegacyCounts) -> u64;

/// The counters by Application; the empty name is for those that do not exist.
#[derive(Debug, Default)]
pub(super) struct LegacyUse(LabelMap<Box<str>, LegacyCounts>);

impl LegacyUse {
    pub(super) fn count(&self, place: Option<&str>, api: LegacyApi, status: u16) {
        let answer = match status {
            200..=299 => 0,
            429 => 2,
            500.. => 3,
            _ => 1,
        };
        self.update(place, |counts| &counts.requests[api as usize][answer]);
    }

    pub(super) fn lenient(&self, place: Option<&str>) {
        self.update(place, |counts| &counts.lenient);
    }

    pub(super) fn repeated(&self, place: Option<&str>) {
        self.update(place, |counts| &counts.repeated);
    }

    fn update(&self, place: Option<&str>, counter: impl Fn(&LegacyCounts) -> &AtomicU64) {
        let application = place.map_or("", application);
        let name = |known| match known {
            APPLICATIONS_MAX.. => OVERFLOW.into(),
            _ => application.into(),
        };
        self.0.update(application, name, |counts| {
            counter(counts).fetch_add(1, Ordering::Relaxed);
        });
    }

    /// What never happened has no line.
    pub(super) fn write(&self, out: &mut String) {
        let all = self.0.sorted();
        let name = "heddle_legacy_requests";
        let help =
            "Requests to the publish API of old Kyma by Application, version and class of answer.";
        family(out, name, "counter", help);
        for (application, counts) in &all {
            for (api, counts) in APIS.iter().zip(&counts.requests) {
                for (answer, count) in ANSWERS.iter().zip(counts) {
                    let labels = format!("app=\"{application}\",api=\"{api}\",code=\"{answer}\"");
                    some(out, "heddle_legacy_requests_total", &labels, count);
                }
            }
        }
        let lenient = |counts: &LegacyCounts| counts.lenient.load(Ordering::Relaxed);
        let repeated = |counts: &LegacyCounts| counts.repeated.load(Ordering::Relaxed);
        let families: [(&str, &str, CountOf<'_>); 2] = [
            (
                "heddle_legacy_lenient",
                "Publishes taken that only one of the two generations of that API took.",
                &lenient,
            ),
            (
                "heddle_legacy_repeated",
                "Publishes of an event that was published already and is kept once.",
                &repeated,
            ),
        ];
        for (name, help, of) in families {
            family(out, name, "counter", help);
            for (application, counts) in &all {
                let count = AtomicU64::new(of(counts));
                let labels = format!("app=\"{application}\"");
                some(out, &format!("{name}_total"), &labels, &count);
            }
        }
    }
}

fn some(out: &mut String, name: &str, labels: &str, count: &AtomicU64) {
    let count = count.load(Ordering::Relaxed);
    if count > 0 {
        sample(out, name, labels, count);
    }
}
