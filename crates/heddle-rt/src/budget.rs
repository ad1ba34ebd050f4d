//! A budget of bytes for what strangers make this process hold: bodies being received, replies being read, and events
//! being sent.
//!
//! ```text
//!   requests      48 MiB   one address or identity 24 MiB
//!   replies       24 MiB   one destination 12 MiB
//!   deliveries    24 MiB   in the order in which they ask; what one destination may take of it is the sender's to bound
//!   all           96 MiB
//! ```
//! Each class has its own share, so none starves another, and an attempt that holds its event while it waits for room for
//! the reply waits for nobody who waits for it. Whoever needs more waits until somebody gives back, and gives up when that
//! takes too long; nothing is allocated before it is leased. A [`Lease`] gives back when it is dropped. A holder that makes
//! no progress can ask whether others wait for what it holds ([`Lease::is_wanted`]) and let go. Small things that are there
//! at once are not worth a lease: how many of those there are is bounded by the connections.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::Clock;

/// What bytes of deliveries are counted in.
pub const UNIT_BYTES: usize = 1 << 10;

/// Below this, what has arrived at once needs no lease.
pub const FREE_BYTES_MAX: usize = 64 << 10;

/// How much may be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub requests: Share,
    pub replies: Share,
    pub delivery_bytes_max: usize,
}

/// How much may be held of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    pub bytes_max: usize,
    /// Of this, on one account: so that none starves its neighbours.
    pub holder_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            requests: Share {
                bytes_max: 48 << 20,
                holder_bytes_max: 24 << 20,
            },
            replies: Share {
                bytes_max: 24 << 20,
                holder_bytes_max: 12 << 20,
            },
            delivery_bytes_max: 24 << 20,
        }
    }
}

impl Limits {
    fn of(&self, class: Class) -> Share {
        match class {
            Class::Request => self.requests,
            Class::Reply => self.replies,
        }
    }
}

/// What bytes are held for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// A request being received.
    Request,
    /// A reply being read.
    Reply,
}

/// On whose account bytes are held.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Holder {
    /// Somebody who has not said who they are. Of IPv6 only the network counts, for one machine has all of its addresses.
    Address(IpAddr),
    Identity(Arc<str>),
    Destination(Arc<str>),
}

impl Holder {
    /// The account of everybody at this address.
    #[must_use]
    pub fn at(address: IpAddr) -> Self {
        Self::Address(whole_network(address))
    }
}

/// What one machine can call its own: an address of IPv4, however it is spelled, or a whole network of IPv6.
pub(crate) fn whole_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) >> 64 << 64;
            Ipv6Addr::from(network).into()
        }
        address => address,
    }
}

/// The budget of a process. Clones are the same budget.
#[derive(Clone, Debug, Default)]
pub struct Budget {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    limits: Limits,
    state: Mutex<State>,
    given_back: Notify,
    deliveries: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct State {
    classes: [Account; 2],
    /// Only those who hold something or wait for it.
    holders: HashMap<(Class, Holder), Account>,
}

/// What is held, and how many wait because of it.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    bytes: usize,
    waiting: usize,
}

/// There was no room in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too much is under way at once")]
pub struct NoRoom;

/// Bytes that somebody may hold, until this is dropped.
#[derive(Debug)]
pub struct Lease {
    inner: Arc<Inner>,
    class: Class,
    holder: Holder,
    bytes: usize,
}

/// Bytes of events being sent, until this is dropped.
#[derive(Debug)]
pub struct Delivering(OwnedSemaphorePermit);

impl Default for Inner {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Inner {
    fn new(limits: Limits) -> Self {
        Self {
            limits,
            state: Mutex::default(),
            given_back: Notify::new(),
            deliveries: Arc::new(Semaphore::new(limits.delivery_bytes_max / UNIT_BYTES)),
        }
    }
}

impl Budget {
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            inner: Arc::new(Inner::new(limits)),
        }
    }

    /// A lease of nothing yet.
    #[must_use]
    pub fn lease(&self, class: Class, holder: Holder) -> Lease {
        Lease {
            inner: Arc::clone(&self.inner),
            class,
            holder,
            bytes: 0,
        }
    }

    /// What is held at present of requests and replies.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let state = self.inner.state.lock();
        state.classes.iter().map(|account| account.bytes).sum()
    }

    /// Room for an event that is sent, if there is some right now and nobody has waited for it before.
    pub fn deliver_now(&self, bytes: usize) -> Result<Delivering, NoRoom> {
        let deliveries = Arc::clone(&self.inner.deliveries);
        let permit = deliveries.try_acquire_many_owned(self.delivery_units(bytes));
        permit.map(Delivering).map_err(|_| NoRoom)
    }

    /// Room for an event that is sent, in turn. Dropping the future takes nothing.
    pub async fn deliver(&self, bytes: usize) -> Delivering {
        let deliveries = Arc::clone(&self.inner.deliveries);
        let permit = deliveries.acquire_many_owned(self.delivery_units(bytes));
        Delivering(permit.await.expect("the semaphore is never closed"))
    }

    /// What is larger than all there is takes all there is, so that nothing is too large for ever.
    fn delivery_units(&self, bytes: usize) -> u32 {
        let all = self.inner.limits.delivery_bytes_max / UNIT_BYTES;
        units(bytes).min(u32::try_from(all).unwrap_or(u32::MAX))
    }
}

impl Delivering {
    /// Sets so many of the bytes apart, which are then given back on their own.
    #[must_use]
    pub fn split(&mut self, bytes: usize) -> Self {
        let units = (units(bytes) as usize).min(self.0.num_permits());
        Self(self.0.split(units).expect("no more than there are"))
    }
}

/// How many units so many bytes are, for whoever counts them with a semaphore: its permits are too few for single bytes.
#[must_use]
pub fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX)
}

impl Lease {
    /// Takes more, if there is room right now. Whoever holds nothing may always take as much as one holder may have, so
    /// that nothing is too large for ever.
    pub fn grow(&mut self, bytes: usize) -> Result<(), NoRoom> {
        let mut state = self.inner.state.lock();
        if self.full(&state, bytes).is_some() {
            return Err(NoRoom);
        }
        let key = (self.class, self.holder.clone());
        state.classes[self.class as usize].bytes += bytes;
        state.holders.entry(key).or_default().bytes += bytes;
        self.bytes += bytes;
        Ok(())
    }

    /// Takes more, and waits for it no longer than `patience`. Dropping the future takes nothing.
    pub async fn grow_within(
        &mut self,
        bytes: usize,
        clock: &Clock,
        patience: Duration,
    ) -> Result<(), NoRoom> {
        if self.grow(bytes).is_ok() {
            return Ok(());
        }
        let waiting = self.grow_when_possible(bytes);
        clock.timeout(patience, waiting).await.map_err(|_| NoRoom)
    }

    async fn grow_when_possible(&mut self, bytes: usize) {
        let inner = Arc::clone(&self.inner);
        loop {
            let mut given_back = std::pin::pin!(inner.given_back.notified());
            given_back.as_mut().enable();
            if self.grow(bytes).is_ok() {
                return;
            }
            let _wish = Wish::new(self, bytes);
            given_back.await;
        }
    }

    /// Waits until it is a lease of so many bytes, for as long as it takes. Dropping the future takes nothing.
    pub async fn grow_to(&mut self, bytes: usize) {
        let Some(more) = bytes.checked_sub(self.bytes).filter(|more| *more > 0) else {
            return;
        };
        self.grow_when_possible(more).await;
    }

    /// Whether somebody waits for room that this lease takes.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        let state = self.inner.state.lock();
        let holder = state.holders.get(&(self.class, self.holder.clone()));
        let accounts = [Some(&state.classes[self.class as usize]), holder];
        accounts.iter().flatten().any(|account| account.waiting > 0)
    }

    /// What is full, seen from the narrowest.
    fn full(&self, state: &State, bytes: usize) -> Option<Full> {
        let share = self.inner.limits.of(self.class);
        let holder = state.holders.get(&(self.class, self.holder.clone()));
        let held = holder.map_or(0, |account| account.bytes);
        let class = state.classes[self.class as usize].bytes;
        if held + bytes > share.holder_bytes_max && held > 0 {
            Some(Full::Holder)
        } else if class + bytes > share.bytes_max && class > 0 {
            Some(Full::Class)
        } else {
            None
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let mut state = self.inner.state.lock();
        state.classes[self.class as usize].bytes -= self.bytes;
        state.change(self, |account| account.bytes -= self.bytes);
        drop(state);
        self.inner.given_back.notify_waiters();
    }
}

#[derive(Clone, Copy, Debug)]
enum Full {
    Holder,
    Class,
}

/// Somebody waits. Counted where the room is missing, so that those are asked to let go who have it.
struct Wish<'a> {
    lease: &'a Lease,
    full: Option<Full>,
}

impl<'a> Wish<'a> {
    fn new(lease: &'a Lease, bytes: usize) -> Self {
        let mut state = lease.inner.state.lock();
        let full = lease.full(&state, bytes);
        Self::count(&mut state, lease, full, |account| account.waiting += 1);
        drop(state);
        Self { lease, full }
    }

    fn count(state: &mut State, lease: &Lease, full: Option<Full>, change: fn(&mut Account)) {
        match full {
            Some(Full::Class) => change(&mut state.classes[lease.class as usize]),
            Some(Full::Holder) => state.change(lease, change),
            None => {}
        }
    }
}

impl Drop for Wish<'_> {
    fn drop(&mut self) {
        let mut state = self.lease.inner.state.lock();
        Self::count(&mut state, self.lease, self.full, |account| {
            account.waiting -= 1;
        });
    }
}

impl State {
    /// Changes a holder's account, which is forgotten when it is empty.
    fn change(&mut self, lease: &Lease, change: impl FnOnce(&mut Account)) {
        let key = (lease.class, lease.holder.clone());
        let account = self.holders.entry(key.clone()).or_default();
        change(account);
        if account.bytes == 0 && account.waiting == 0 {
            self.holders.remove(&key);
        }
    }
}
