//! No more than so many in a minute: each has a time of its own, and they are evenly apart.
//!
//! Even spacing keeps within the rate in every minute, wherever it begins; a bucket that fills up would allow twice as many
//! in a bad one. A time is given to whoever asks first, so several consumers of one destination take turns.

use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

/// The times at which one destination may be sent something.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// `None` when everything may go at once.
    apart: Option<Duration>,
    next: Duration,
}

impl Pace {
    pub(super) fn is_set(&self) -> bool {
        self.apart.is_some()
    }

    /// So many in a minute from now on, or as many as there are. What was given out stays given out.
    pub(super) fn set(&mut self, per_minute: Option<u32>) {
        // Rounded up, since a little too late is within the rate and a little too early is not.
        self.apart = per_minute.map(|rate| MINUTE / rate.max(1) + Duration::from_nanos(1));
    }

    /// The next time that is free, and nobody else's from now on.
    pub(super) fn next(&mut self, now: Duration) -> Duration {
        let Some(apart) = self.apart else {
            return now;
        };
        let at = self.next.max(now);
        self.next = at + apart;
        at
    }
}
