//! Which events somebody may see, and of which they may see the data.
//!
//! An event belongs to the namespace it came into and to those of the consumers it can reach. What became of it elsewhere is
//! not told.

use std::collections::BTreeSet;
use std::sync::Arc;

use heddle_api::access::{Access, Right, Scope, namespace_of};

use crate::mesh::Mesh;

/// What somebody may see.
#[derive(Clone, Debug)]
pub struct Visible {
    access: Arc<Access>,
    /// Entries from which a consumer within their scope is reached; not needed by who may see everything.
    entries: Arc<BTreeSet<String>>,
}

impl Mesh {
    /// What somebody may see, as things are now.
    #[must_use]
    pub fn visible_to(&self, access: &Access) -> Visible {
        let mut entries = BTreeSet::new();
        if access.scope != Scope::All {
            for consumer in self.shared.user_consumers() {
                if access.may(Right::Look, namespace_of(&consumer.key)) {
                    let state = consumer.lock();
                    let feeds = state.routing.revisions.iter();
                    let feeds = feeds.flat_map(|revision| &revision.feeds);
                    entries.extend(feeds.map(|(entry, _)| entry.clone()));
                }
            }
        }
        Visible {
            access: Arc::new(access.clone()),
            entries: Arc::new(entries),
        }
    }
}

impl Visible {
    /// Whether nothing is left out for them.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.access.scope == Scope::All
    }

    /// Whether an event that came in here may be seen.
    #[must_use]
    pub fn shows(&self, entry: &str) -> bool {
        self.access.may(Right::Look, namespace_of(entry)) || self.entries.contains(entry)
    }

    /// Whether its data may be.
    #[must_use]
    pub fn shows_data(&self, entry: &str) -> bool {
        self.access.may(Right::Payloads, namespace_of(entry))
            || (self.may_ask_for_data() && self.entries.contains(entry))
    }

    /// Whether what became of an event at this consumer may be told.
    #[must_use]
    pub fn shows_consumer(&self, consumer: &str) -> bool {
        self.access.may(Right::Look, namespace_of(consumer))
    }

    /// Whether there may be data that they may see.
    #[must_use]
    pub fn may_ask_for_data(&self) -> bool {
        let everywhere = Access {
            scope: Scope::All,
            ..Access::clone(&self.access)
        };
        everywhere.may(Right::Payloads, None)
    }
}
