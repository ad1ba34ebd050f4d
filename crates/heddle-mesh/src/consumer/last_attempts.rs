//! How a consumer's attempts last ended, by the monotonic clock and since the process began.

use std::time::Duration;

use crate::journal::positions::short;

#[derive(Debug, Default)]
pub(crate) struct LastAttempts {
    pub(crate) succeeded: Option<Duration>,
    /// The last one that failed, if none has succeeded since.
    pub(crate) failed: Option<(Duration, String)>,
    /// How many failed since the process began.
    pub(crate) failures: u64,
    /// How long they take, the last of them most.
    pub(crate) latency: Option<Duration>,
}

impl LastAttempts {
    /// The subscriber answered after so long, or did not.
    pub(super) fn took(&mut self, latency: Duration) {
        let before = self.latency.unwrap_or(latency);
        self.latency = Some((before * 7 + latency) / 8);
    }

    pub(super) fn succeed(&mut self, at: Duration) {
        self.succeeded = Some(at);
        self.failed = None;
    }

    pub(super) fn fail(&mut self, at: Duration, why: &str) {
        self.failed = Some((at, short(why)));
        self.failures += 1;
    }
}
