//! The pools of all origins, and how many connections they have open together.
//!
//! A connection takes a place before it is made and gives it back when it ends. When there is none, the connection that has
//! rested longest, wherever to, is closed for it; if all are at work, whoever wants one waits in turn, within its attempt,
//! and no connection is kept to rest meanwhile.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use heddle_rt::net::dial::Place;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::OriginPool;

/// What the pools of a courier have in common.
#[derive(Debug)]
pub(in super::super) struct Outgoing {
    places: Arc<Semaphore>,
    /// How many wait for a place.
    waiting: AtomicUsize,
    /// One for each origin that somebody has an address of.
    pools: Mutex<HashMap<Place, Weak<OriginPool>>>,
}

impl Outgoing {
    pub(in super::super) fn new(connections_max: usize) -> Self {
        Self {
            places: Arc::new(Semaphore::new(connections_max)),
            waiting: AtomicUsize::new(0),
            pools: Mutex::default(),
        }
    }

    /// The pool of an origin.
    pub(in super::super) fn pool(
        &self,
        place: &Place,
        make: impl FnOnce() -> OriginPool,
    ) -> Arc<OriginPool> {
        let mut pools = self.pools.lock();
        if let Some(pool) = pools.get(place).and_then(Weak::upgrade) {
            return pool;
        }
        let pool = Arc::new(make());
        pools.insert(place.clone(), Arc::downgrade(&pool));
        pool
    }

    /// A place for one more connection.
    pub(super) async fn place(&self) -> OwnedSemaphorePermit {
        let places = Arc::clone(&self.places);
        if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
            return place;
        }
        // Before looking: whoever lets a connection rest after that sees it.
        let _waiting = Waiting::new(&self.waiting);
        self.evict();
        let place = places.acquire_owned().await;
        place.expect("the semaphore is never closed")
    }

    /// Whether somebody waits for a place.
    pub(super) fn is_wanted(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }

    /// Closes the connection that has rested longest, if one does.
    fn evict(&self) {
        let mut resting = self.all();
        resting.retain(|pool| pool.rests_since().is_some());
        let oldest = resting
            .iter()
            .min_by_key(|pool| (pool.rests_since(), pool.name()));
        if let Some(pool) = oldest {
            pool.evict();
        }
    }

    /// Closes what has rested for too long.
    pub(in super::super) fn sweep(&self) {
        for pool in self.all() {
            pool.sweep();
        }
    }

    /// All pools. The map has another order in each process, and a simulation must close connections in the same one every
    /// time.
    fn all(&self) -> Vec<Arc<OriginPool>> {
        let mut all = Vec::new();
        self.pools.lock().retain(|_, pool| {
            all.extend(pool.upgrade());
            pool.strong_count() > 0
        });
        all.sort_by(|one, other| one.name().cmp(&other.name()));
        all
    }
}

/// Somebody waits for a place.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
