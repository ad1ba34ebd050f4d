//! A budget of bytes for what strangers make this process hold: bodies being received and replies being read.
//!
//! ```text
//!   all           96 MiB   what the process holds at once
//!   one class     48 MiB   requests or replies: neither starves the other
//!   one holder    24 MiB   an address, an identity, a destination: none of them starves its neighbours
//! ```
//! Whoever needs more waits until somebody gives back, and gives up when that takes too long; nothing is allocated before
//! it is leased. A [`Lease`] gives back when it is dropped. A holder that makes no progress can ask whether others wait for
//! what it holds ([`Lease::is_wanted`]) and let go. Small things that are there at once are not worth a lease: how many of
//! those there are is bounded by the connections.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::Clock;

/// Below this, what has arrived at once needs no lease.
pub const FREE_BYTES_MAX: usize = 64 << 10;

/// How much may be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub bytes_max: usize,
    pub class_bytes_max: usize,
    pub holder_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes_max: 96 << 20,
            class_bytes_max: 48 << 20,
            holder_bytes_max: 24 << 20,
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
        Self::Address(match address.to_canonical() {
            IpAddr::V6(address) => {
                let network = u128::from(address) >> 64 << 64;
                Ipv6Addr::from(network).into()
            }
            address => address,
        })
    }
}

/// The budget of a process. Clones are the same budget.
#[derive(Clone, Debug, Default)]
pub struct Budget {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    limits: Limits,
    state: Mutex<State>,
    given_back: Notify,
}

#[derive(Debug, Default)]
struct State {
    all: Account,
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

impl Budget {
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            inner: Arc::new(Inner {
                limits,
                ..Inner::default()
            }),
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

    /// What is held at present.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.inner.state.lock().all.bytes
    }
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
        state.all.bytes += bytes;
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
        let accounts = [
            Some(&state.all),
            Some(&state.classes[self.class as usize]),
            holder,
        ];
        accounts.iter().flatten().any(|account| account.waiting > 0)
    }

    /// What is full, seen from the narrowest.
    fn full(&self, state: &State, bytes: usize) -> Option<Full> {
        let limits = self.inner.limits;
        let holder = state.holders.get(&(self.class, self.holder.clone()));
        let held = holder.map_or(0, |account| account.bytes);
        let class = state.classes[self.class as usize].bytes;
        if held + bytes > limits.holder_bytes_max && held > 0 {
            Some(Full::Holder)
        } else if class + bytes > limits.class_bytes_max && class > 0 {
            Some(Full::Class)
        } else if state.all.bytes + bytes > limits.bytes_max && state.all.bytes > 0 {
            Some(Full::All)
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
        state.all.bytes -= self.bytes;
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
    All,
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
            Some(Full::All) => change(&mut state.all),
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
