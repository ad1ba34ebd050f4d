//! Room for events while they are sent: what destinations that do not read can make this process hold.
//!
//! ```text
//!   up to 16 KiB      24 MiB in all, counted and never waited for, as long as that lasts
//!   larger, or more   24 MiB of the process' budget, in turn; of one destination 8 MiB
//! ```
//! An event that goes to several destinations at once is held, and counted, once; each destination has it on its own
//! account nevertheless. What is written anew for one of them (a structured message, a dead letter for its sink) is counted
//! with it. Whoever has to wait does so without the event's bytes, first among those of its destination, so that one that
//! stalls keeps its own waiting and nobody else's. Room is given back when the attempt has ended, which its timeout sees to.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use heddle_rt::Budget;
use heddle_rt::budget::{Delivering, NoRoom, units};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::log::Offset;

/// An event of up to so many bytes costs a counter and no more.
const SMALL_BYTES_MAX: usize = 16 << 10;
/// What such events may take in all. Each counts twice: as it is kept, and as it is written.
const SMALL_ALL_BYTES_MAX: usize = 24 << 20;
/// What larger ones to one destination may take.
const DESTINATION_BYTES_MAX: usize = 8 << 20;

/// The events being sent.
#[derive(Debug)]
pub(crate) struct Sending {
    budget: Budget,
    small_bytes: AtomicUsize,
    bodies: Bodies,
}

type Bodies = Arc<Mutex<HashMap<Key, Weak<Body>>>>;

/// Where the bytes of an event come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Log(Offset),
    DeadLetter(u64),
}

/// The bytes of a large event, and the right to hold them, for all that send it at present.
#[derive(Debug)]
pub(crate) struct Body {
    payload: Bytes,
    key: Key,
    bodies: Bodies,
    _lease: Delivering,
}

/// What an event takes while it is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendingNeed<'a> {
    pub(crate) key: Key,
    pub(crate) bytes: usize,
    /// How often it is written anew for this destination alone.
    pub(crate) copies: usize,
    pub(crate) account: &'a Account,
}

/// What one destination may take.
#[derive(Debug)]
pub(crate) struct Account(Semaphore);

/// The right to hold an event until it is sent.
#[derive(Debug)]
pub(crate) enum SendingRoom<'a> {
    /// It leaves this process not at all, or takes nothing.
    Unneeded,
    Small {
        _counted: CountedBytes<'a>,
    },
    Large(Large<'a>),
}

#[derive(Debug)]
pub(crate) struct CountedBytes<'a> {
    counter: &'a AtomicUsize,
    bytes: usize,
}

#[derive(Debug)]
pub(crate) struct Large<'a> {
    _share: SemaphorePermit<'a>,
    _copies: Delivering,
    body: Arc<Body>,
}

/// Room that was waited for, for bytes that are still to be read.
#[derive(Debug)]
pub(crate) struct Reserved<'a> {
    share: SemaphorePermit<'a>,
    lease: Delivering,
}

impl Default for Account {
    fn default() -> Self {
        Self(Semaphore::new(units(DESTINATION_BYTES_MAX) as usize))
    }
}

impl SendingNeed<'_> {
    fn all_bytes(&self) -> usize {
        self.bytes * (1 + self.copies)
    }

    /// Never more than there is, for that would be waited for in vain.
    fn share(&self) -> u32 {
        units(self.all_bytes().min(DESTINATION_BYTES_MAX))
    }
}

impl Sending {
    pub(crate) fn new(budget: Budget) -> Self {
        Self {
            budget,
            small_bytes: AtomicUsize::new(0),
            bodies: Bodies::default(),
        }
    }

    /// Room for a small event, as long as there are not too many of them.
    pub(crate) fn small(&self, bytes: usize) -> Option<SendingRoom<'_>> {
        if bytes > SMALL_BYTES_MAX {
            return None;
        }
        let bytes = 2 * bytes;
        let counted = CountedBytes {
            counter: &self.small_bytes,
            bytes,
        };
        let before = self.small_bytes.fetch_add(bytes, Ordering::Relaxed);
        (before + bytes <= SMALL_ALL_BYTES_MAX).then_some(SendingRoom::Small { _counted: counted })
    }

    /// Room for a large event, if there is some right now.
    pub(crate) fn large_now<'a>(
        &self,
        need: &SendingNeed<'a>,
        payload: &Bytes,
    ) -> Result<SendingRoom<'a>, NoRoom> {
        let share = need.account.0.try_acquire_many(need.share());
        let share = share.map_err(|_| NoRoom)?;
        let known = self.bodies.lock().get(&need.key).and_then(Weak::upgrade);
        if let Some(body) = known {
            let copies = self.budget.deliver_now(need.bytes * need.copies)?;
            return Ok(SendingRoom::Large(Large {
                _share: share,
                _copies: copies,
                body,
            }));
        }
        let lease = self.budget.deliver_now(need.all_bytes())?;
        Ok(self.fill(need, Reserved { share, lease }, payload))
    }

    /// Waits for room. Whoever does holds nothing of the event: its bytes are let go first.
    pub(crate) async fn reserve<'a>(&self, need: &SendingNeed<'a>, read: Bytes) -> Reserved<'a> {
        drop(read);
        let share = need.account.0.acquire_many(need.share()).await;
        let share = share.expect("the semaphore is never closed");
        let lease = self.budget.deliver(need.all_bytes()).await;
        Reserved { share, lease }
    }

    /// Uses room that was reserved. If somebody else sends the same event by now, their bytes do.
    pub(crate) fn fill<'a>(
        &self,
        need: &SendingNeed<'a>,
        reserved: Reserved<'a>,
        payload: &Bytes,
    ) -> SendingRoom<'a> {
        let Reserved { share, mut lease } = reserved;
        let copies = lease.split(need.bytes * need.copies);
        let mut bodies = self.bodies.lock();
        let known = bodies.get(&need.key).and_then(Weak::upgrade);
        let body = known.unwrap_or_else(|| {
            let body = Arc::new(Body {
                payload: payload.clone(),
                key: need.key,
                bodies: Arc::clone(&self.bodies),
                _lease: lease,
            });
            bodies.insert(need.key, Arc::downgrade(&body));
            body
        });
        drop(bodies);
        SendingRoom::Large(Large {
            _share: share,
            _copies: copies,
            body,
        })
    }
}

impl SendingRoom<'_> {
    /// The bytes to send: those that are shared, if these are a copy of them.
    pub(crate) fn payload(&self, read: Bytes) -> Bytes {
        match self {
            Self::Unneeded | Self::Small { .. } => read,
            Self::Large(large) => large.body.payload.clone(),
        }
    }
}

impl Drop for CountedBytes<'_> {
    fn drop(&mut self) {
        self.counter.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        let mut bodies = self.bodies.lock();
        // Another may have been put in its place since nobody held this one.
        if bodies
            .get(&self.key)
            .is_some_and(|body| body.strong_count() == 0)
        {
            bodies.remove(&self.key);
        }
    }
}
