//! What watchers read: the changes of each resource, newest kept, bounded in bytes over all.
//!
//! A watcher is a position, not a queue, so a slow one costs nothing and may find that the changes
//! it has not read are gone. The bound is shared: whichever change is oldest goes first, whatever
//! resource it belongs to.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tokio::sync::watch;

use crate::{Change, ResourceVersion};

/// What a change costs beside the objects it keeps alive.
const CHANGE_BYTES: usize = 256;

/// The changes that are kept.
#[derive(Debug)]
pub(crate) struct History {
    bytes_max: usize,
    bytes: usize,
    /// Nothing before this was witnessed by this process.
    start: ResourceVersion,
    rings: HashMap<Arc<str>, Ring>,
    /// The resources of all kept changes, oldest first.
    order: VecDeque<Arc<str>>,
}

/// The kept changes of one resource.
#[derive(Debug)]
struct Ring {
    changes: VecDeque<Change>,
    /// The last change that is not kept any more.
    floor: ResourceVersion,
    wake: watch::Sender<()>,
}

impl History {
    pub(crate) fn new(bytes_max: usize, start: ResourceVersion) -> Self {
        Self {
            bytes_max,
            bytes: 0,
            start,
            rings: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    /// Every change after the returned version is kept.
    pub(crate) fn floor(&self, resource: &str) -> ResourceVersion {
        self.rings
            .get(resource)
            .map_or(self.start, |ring| ring.floor)
    }

    /// The first change of `resource` after `position`.
    pub(crate) fn after(&self, resource: &str, position: ResourceVersion) -> Option<&Change> {
        let changes = &self.rings.get(resource)?.changes;
        changes.get(changes.partition_point(|change| change.version <= position))
    }

    pub(crate) fn has_ring(&self, resource: &str) -> bool {
        self.rings.contains_key(resource)
    }

    /// Makes room for the changes of a resource. Rings stay, so this is needed once.
    pub(crate) fn add_ring(&mut self, resource: &str) {
        self.ring(&resource.into());
    }

    /// Tells when `resource` changes.
    ///
    /// # Panics
    /// When there is no ring for it.
    pub(crate) fn listen(&self, resource: &str) -> watch::Receiver<()> {
        let ring = self.rings.get(resource);
        ring.expect("rings are made before they are listened to")
            .wake
            .subscribe()
    }

    /// Invariant: versions only grow, so each ring is sorted.
    pub(crate) fn push(&mut self, change: Change) {
        let resource = change.object.key.resource.clone();
        self.bytes += cost(&change);
        let ring = self.ring(&resource);
        assert!(
            ring.changes
                .back()
                .is_none_or(|last| last.version < change.version),
            "versions only grow"
        );
        ring.changes.push_back(change);
        self.order.push_back(resource);
        while self.bytes > self.bytes_max && self.drop_oldest() {}
    }

    fn drop_oldest(&mut self) -> bool {
        let Some(resource) = self.order.pop_front() else {
            return false;
        };
        let ring = self.ring(&resource);
        let oldest = ring
            .changes
            .pop_front()
            .expect("each kept change is in the order once");
        ring.floor = oldest.version;
        self.bytes -= cost(&oldest);
        true
    }

    fn ring(&mut self, resource: &Arc<str>) -> &mut Ring {
        let start = self.start;
        self.rings.entry(resource.clone()).or_insert_with(|| Ring {
            changes: VecDeque::new(),
            floor: start,
            wake: watch::Sender::new(()),
        })
    }

    /// Wakes the watchers of one resource.
    pub(crate) fn wake(&self, resource: &str) {
        if let Some(ring) = self.rings.get(resource) {
            ring.wake.send_replace(());
        }
    }

    pub(crate) fn wake_all(&self) {
        self.rings.values().for_each(|ring| {
            ring.wake.send_replace(());
        });
    }

    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn watchers(&self) -> usize {
        self.rings
            .values()
            .map(|ring| ring.wake.receiver_count())
            .sum()
    }
}

fn cost(change: &Change) -> usize {
    let previous = change
        .previous
        .as_ref()
        .map_or(0, |object| object.kept_bytes());
    change.object.kept_bytes() + previous + CHANGE_BYTES
}
