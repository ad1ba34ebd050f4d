//! How controllers watch: what they ask for, and how long they pause after a broken watch.

use std::time::Duration;

use heddle_rt::Chance;
use heddle_rt::backoff::{Backoff, Limits};
use kube::runtime::utils::Backoff as WatchBackoff;
use kube::runtime::watcher;

pub(crate) fn config() -> watcher::Config {
    // Pages keep the first list of a large kind from being one large body.
    watcher::Config::default().page_size(500)
}

/// Pauses between attempts to watch. kube's default grows to half a minute and is shared by all watches of a
/// controller, so that two broken watches leave it deaf for long; a server that is back is back within a second.
pub(super) struct Pauses(Backoff);

impl Pauses {
    pub(super) fn new(chance: Chance) -> Self {
        let limits = Limits {
            min: Duration::from_millis(50),
            max: Duration::from_secs(2),
        };
        Self(Backoff::new(limits, chance))
    }
}

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(self.0.failed())
    }
}

impl WatchBackoff for Pauses {
    fn reset(&mut self) {
        self.0.reset();
    }
}
