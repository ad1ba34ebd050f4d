//! The open connections of a door, and which of them has to go when there are too many.
//!
//! ```text
//!   all                   4,096   more wait in the kernel's queue
//!   one address           3,072   more are closed at once, so that the others find room; of IPv6 its whole network (/64)
//!   nothing under way       512   beyond it the one that has waited longest for its next request is closed
//! ```
//! A connection that carries no request is worth least: first those that never carried one, then those that rest, each
//! oldest first. One that carries a request, or whose answer is still being sent, is never closed for another's sake.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::Limits;
use super::progress::Unsent;
use crate::Clock;
use crate::budget::whole_network;

/// Who connects has that long before its place is given to somebody else, unless they are far too many.
const GRACE: Duration = Duration::from_secs(1);
/// So many times the connections that may rest are far too many.
const FAR_TOO_MANY: usize = 4;

/// The connections of one door.
#[derive(Debug)]
pub(super) struct Connections {
    clock: Clock,
    limits: Limits,
    closing: CancellationToken,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    all: BTreeMap<u64, Arc<Connection>>,
    by_address: HashMap<IpAddr, usize>,
}

/// One connection, as those see it who count them.
#[derive(Debug)]
pub(super) struct Connection {
    /// Whom it counts for: with IPv6 everybody in the same network.
    address: IpAddr,
    /// Requests that are not answered, and answers that are not sent.
    under_way: AtomicUsize,
    /// Whether it ever carried a request.
    asked: AtomicBool,
    /// Since when nothing is under way, in milliseconds.
    resting_since: AtomicU64,
    pub(super) unsent: Unsent,
    evicted: AtomicBool,
    /// Cancelled when it has to go, or when the door closes.
    ending: CancellationToken,
    clock: Clock,
}

/// A place among the open connections, given back when dropped.
#[derive(Debug)]
pub(super) struct Place {
    connections: Arc<Connections>,
    number: u64,
    pub(super) connection: Arc<Connection>,
}

impl Connections {
    /// None yet. When `closing` is cancelled, all are asked to end.
    pub(super) fn new(clock: Clock, limits: Limits, closing: CancellationToken) -> Arc<Self> {
        Arc::new(Self {
            clock,
            limits,
            closing,
            open: Mutex::default(),
        })
    }

    /// Whether there is a place at all, or one that can be freed.
    pub(super) fn has_room(&self) -> bool {
        let open = self.open.lock();
        if open.all.len() < self.limits.connections_max {
            return true;
        }
        if let Some(victim) = open.victim(None, self.now_ms(), GRACE) {
            victim.evict();
        }
        false
    }

    /// A place for a connection from this address. Somebody who rests may have to go for it.
    pub(super) fn enter(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let address = whole_network(address);
        let now = self.now_ms();
        let mut open = self.open.lock();
        let same = open.by_address.get(&address).copied().unwrap_or_default();
        if same >= self.limits.address_connections_max {
            let victim = open.victim(Some(address), now, GRACE)?;
            victim.evict();
        }
        self.keep_few_resting(&open, now);
        let connection = Arc::new(Connection {
            address,
            under_way: AtomicUsize::new(0),
            asked: AtomicBool::new(false),
            resting_since: AtomicU64::new(now),
            unsent: Unsent::default(),
            evicted: AtomicBool::new(false),
            ending: self.closing.child_token(),
            clock: self.clock.clone(),
        });
        let number = open.next;
        open.next += 1;
        open.all.insert(number, Arc::clone(&connection));
        *open.by_address.entry(address).or_default() += 1;
        drop(open);
        Some(Place {
            connections: Arc::clone(self),
            number,
            connection,
        })
    }

    fn keep_few_resting(&self, open: &Open, now: u64) {
        let resting_max = self.limits.resting_max;
        if open.all.len() < resting_max {
            return;
        }
        let resting = open.all.values().filter(|one| one.is_resting()).count();
        if resting < resting_max {
            return;
        }
        let grace = if resting < FAR_TOO_MANY * resting_max {
            GRACE
        } else {
            Duration::ZERO
        };
        if let Some(victim) = open.victim(None, now, grace) {
            victim.evict();
        }
    }

    fn now_ms(&self) -> u64 {
        millis(&self.clock)
    }
}

fn millis(clock: &Clock) -> u64 {
    u64::try_from(clock.monotonic().as_millis()).unwrap_or(u64::MAX)
}

impl Open {
    /// Who goes first, if somebody has rested long enough.
    fn victim(&self, address: Option<IpAddr>, now: u64, grace: Duration) -> Option<&Connection> {
        let grace = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        let since = |one: &Connection| one.resting_since.load(Ordering::Relaxed);
        let mut candidates: Vec<&Arc<Connection>> = Vec::new();
        candidates.extend(self.all.values().filter(|one| {
            one.is_resting()
                && address.is_none_or(|address| one.address == address)
                && now.saturating_sub(since(one)) >= grace
        }));
        let first = candidates
            .into_iter()
            .min_by_key(|one| (one.asked.load(Ordering::Relaxed), since(one)));
        first.map(|one| &**one)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.connections.open.lock();
        open.all.remove(&self.number);
        let address = self.connection.address;
        if let Some(count) = open.by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                open.by_address.remove(&address);
            }
        }
    }
}

impl Connection {
    fn is_resting(&self) -> bool {
        self.under_way.load(Ordering::Relaxed) == 0
            && !self.is_evicted()
            && !self.unsent.is_blocked()
    }

    fn evict(&self) {
        self.evicted.store(true, Ordering::Release);
        self.ending.cancel();
    }

    /// Whether its place was given to another.
    pub(super) fn is_evicted(&self) -> bool {
        self.evicted.load(Ordering::Acquire)
    }

    /// Cancelled when it has to go or the door closes.
    pub(super) fn ending(&self) -> &CancellationToken {
        &self.ending
    }

    /// Whether a whole request was ever heard on it.
    pub(super) fn has_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// For how long nothing has been under way.
    pub(super) fn rested(&self) -> Duration {
        if !self.is_resting() {
            return Duration::ZERO;
        }
        let since = self.resting_since.load(Ordering::Relaxed);
        Duration::from_millis(millis(&self.clock).saturating_sub(since))
    }

    /// What o'clock it is for those who count here; never zero.
    pub(super) fn now_ms(&self) -> u64 {
        millis(&self.clock).max(1)
    }

    /// Its guest took some of what it was sent. That is no rest.
    pub(super) fn moved(&self) {
        self.resting_since.store(self.now_ms(), Ordering::Relaxed);
    }

    /// Whether its guest has taken nothing of what it is sent for longer than it may.
    pub(super) fn is_stalled(&self, limit: Duration) -> bool {
        self.unsent.is_stalled(self.now_ms(), limit)
    }

    /// A request came.
    pub(super) fn begin(self: &Arc<Self>) -> UnderWay {
        self.asked.store(true, Ordering::Relaxed);
        self.under_way.fetch_add(1, Ordering::Relaxed);
        UnderWay(Arc::clone(self))
    }
}

/// A request from its head to the end of its answer.
#[derive(Debug)]
pub(super) struct UnderWay(Arc<Connection>);

impl UnderWay {
    /// A part of the same that may end later.
    pub(super) fn another(&self) -> Self {
        self.0.under_way.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(&self.0))
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.0
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let now = millis(&self.0.clock);
        self.0.resting_since.store(now, Ordering::Relaxed);
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}
