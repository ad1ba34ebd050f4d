//! Reading an answer: what its status means, and as much of its body as is of use.
//!
//! ```text
//!   2xx                         delivered; 200 and 201 may carry an event
//!   404 408 409 429, 500 and up try again
//!   410                         nobody wants events here any more
//!   everything else             final; redirects are not followed
//! ```
//! An answer is a reply when it says so: by `ce-specversion`, or by a content type of CloudEvents. One that says so and cannot
//! go on is a bad reply; the event it answers is delivered all the same.
//!
//! A body is never trusted with more memory or time than it is worth: of a refusal the beginning is kept for people, a
//! reply may be as long as an event, and everything else is read only so that the connection can be used again.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use heddle_rt::budget::Lease;

use super::pool::{Body, Broken};

/// How much of a refusal is kept.
pub const ANSWER_BYTES_MAX: usize = 1024;
/// How much is read for the sake of the connection alone. Beyond it a new connection is cheaper.
const DRAIN_BYTES_MAX: usize = 64 * 1024;
/// How much of a reply is kept without a lease. How many of those there are is bounded by the attempts.
const REPLY_BYTES_FREE: usize = 16 * 1024;
/// How long an answer whose status is known and whose body does not matter may keep us.
pub(super) const DRAIN_TIME_MAX: Duration = Duration::from_secs(1);

/// What a status means for a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryOutcome {
    Delivered { may_reply: bool },
    Refused { retry: bool },
    Gone,
}

/// What this status means.
#[must_use]
pub fn verdict(status: u16) -> DeliveryOutcome {
    match status {
        200 | 201 => DeliveryOutcome::Delivered { may_reply: true },
        202..=299 => DeliveryOutcome::Delivered { may_reply: false },
        410 => DeliveryOutcome::Gone,
        404 | 408 | 409 | 429 | 500.. => DeliveryOutcome::Refused { retry: true },
        _ => DeliveryOutcome::Refused { retry: false },
    }
}

/// How the reading of a body ended.
#[derive(Debug)]
pub(super) enum End {
    Whole,
    /// There is more than was to be read.
    TooLong,
    Broken(Broken),
}

/// What is read of a body, and what of it is kept.
#[derive(Debug)]
pub(super) struct Reader {
    body: Body,
    keep_max: usize,
    read_max: usize,
    read: usize,
    first: Bytes,
    /// Only when the body came in several pieces.
    all: BytesMut,
    /// The right to keep more than a little, of a body that may be long.
    lease: Option<Lease>,
}

impl Reader {
    /// For a body of which all is wanted, or nothing.
    pub(super) fn whole(body: Body, bytes_max: usize, lease: Lease) -> Self {
        Self {
            lease: Some(lease),
            ..Self::new(body, bytes_max, bytes_max)
        }
    }

    /// For a body of which the beginning is of interest to people, up to so many bytes.
    pub(super) fn beginning(body: Body, bytes_max: usize) -> Self {
        Self::new(body, bytes_max, DRAIN_BYTES_MAX)
    }

    /// For a body that nobody reads.
    pub(super) fn drain(body: Body) -> Self {
        Self::new(body, 0, DRAIN_BYTES_MAX)
    }

    fn new(body: Body, keep_max: usize, read_max: usize) -> Self {
        Self {
            body,
            keep_max,
            read_max,
            read: 0,
            first: Bytes::new(),
            all: BytesMut::new(),
            lease: None,
        }
    }

    /// Whether there is nothing to read.
    pub(super) fn is_at_end(&self) -> bool {
        self.body.is_at_end()
    }

    /// Reads to the end, or to where reading on is not worth it. Dropping the future keeps what was read.
    pub(super) async fn read(&mut self) -> End {
        // A length that is announced need not be tried, unless a part will do.
        let announced = self.body.announced();
        let part_will_do = (1..self.read_max).contains(&self.keep_max);
        if announced > self.read_max as u64 && !part_will_do {
            return End::TooLong;
        }
        while let Some(piece) = self.body.piece().await {
            let data = match piece {
                Ok(data) => data,
                Err(error) => return End::Broken(error),
            };
            self.make_room(data.len()).await;
            self.read += data.len();
            self.keep(data);
            if self.read > self.read_max {
                return End::TooLong;
            }
        }
        End::Whole
    }

    /// Waits until as much may be kept, which counts against the time of the attempt. A short answer needs no leave.
    async fn make_room(&mut self, bytes: usize) {
        let kept = self.first.len() + self.all.len();
        let Some(lease) = &mut self.lease else { return };
        if kept + bytes <= REPLY_BYTES_FREE || self.read + bytes > self.read_max {
            return;
        }
        // What was free so far is counted with the first piece that is not, and a vector that grows is twice as large.
        let wanted = 2 * (kept + bytes);
        lease.grow_to(wanted).await;
    }

    fn keep(&mut self, data: Bytes) {
        let kept = self.first.len() + self.all.len();
        let data = data.slice(..data.len().min(self.keep_max.saturating_sub(kept)));
        if kept == 0 {
            self.first = data;
        } else if !data.is_empty() {
            self.all.extend_from_slice(&std::mem::take(&mut self.first));
            self.all.extend_from_slice(&data);
        }
    }

    /// The right to keep it, for as long as it is kept.
    pub(super) fn take_lease(&mut self) -> Option<Lease> {
        self.lease.take()
    }

    /// What was kept, and what it was read from.
    pub(super) fn into_parts(self) -> (Bytes, Body) {
        let kept = if self.all.is_empty() {
            self.first
        } else {
            self.all.freeze()
        };
        (kept, self.body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_its_meaning() {
        let delivered = |may_reply| DeliveryOutcome::Delivered { may_reply };
        let refused = |retry| DeliveryOutcome::Refused { retry };
        let table = [
            (200, delivered(true)),
            (201, delivered(true)),
            (202, delivered(false)),
            (204, delivered(false)),
            (299, delivered(false)),
            (100, refused(false)),
            (101, refused(false)),
            (301, refused(false)),
            (302, refused(false)),
            (307, refused(false)),
            (308, refused(false)),
            (400, refused(false)),
            (401, refused(false)),
            (403, refused(false)),
            (404, refused(true)),
            (408, refused(true)),
            (409, refused(true)),
            (410, DeliveryOutcome::Gone),
            (413, refused(false)),
            (415, refused(false)),
            (422, refused(false)),
            (429, refused(true)),
            (500, refused(true)),
            (503, refused(true)),
            (599, refused(true)),
            (999, refused(true)),
        ];
        for (status, expected) in table {
            assert_eq!(verdict(status), expected, "{status}");
        }
    }
}
