//! A count for each Application that events came from. The empty one stands for whatever came in elsewhere.

use std::sync::atomic::{AtomicU64, Ordering};

use heddle_rt::metrics::{LabelMap, sample};

use super::answers::{OVERFLOW, application};

/// Applications counted one by one.
const APPLICATIONS_MAX: usize = 1000;

#[derive(Debug, Default)]
pub(super) struct ByApplication(LabelMap<Box<str>, AtomicU64>);

impl ByApplication {
    /// Counts something about an event that came in at an entry, which exists or did.
    pub(super) fn add(&self, entry: &str, count: u64) {
        let application = application(entry);
        let name = |known| match known {
            APPLICATIONS_MAX.. => OVERFLOW.into(),
            _ => application.into(),
        };
        self.0.update(application, name, |counted| {
            counted.fetch_add(count, Ordering::Relaxed);
        });
    }

    /// Application and count, in the order of their names. There is always one of those that have no Application.
    pub(super) fn counts(&self) -> Vec<(Box<str>, u64)> {
        let counted = self.0.sorted().into_iter();
        let mut counts: Vec<(Box<str>, u64)> = counted
            .map(|(application, count)| (application, count.load(Ordering::Relaxed)))
            .collect();
        if counts.first().is_none_or(|(first, _)| !first.is_empty()) {
            counts.insert(0, ("".into(), 0));
        }
        counts
    }

    /// The samples of the counter of this name.
    pub(super) fn write(&self, out: &mut String, name: &str) {
        for (application, count) in self.counts() {
            let labels = format!("app=\"{application}\"");
            sample(out, name, &labels, count);
        }
    }
}
