//! Following the changes of one resource.
//!
//! A watch is a position in the shared history: it buffers nothing, and whoever reads too slowly
//! falls off its end and is told so. What was missed over a restart comes first, put together
//! from what is stored.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::watch;

use crate::state::State;
use crate::{Change, Expired, ResourceVersion, recovery};

/// The changes of one resource after some version, each once, in order.
#[derive(Debug)]
pub struct Watch {
    state: Arc<RwLock<State>>,
    resource: Arc<str>,
    /// Everything up to here has been handed out.
    position: ResourceVersion,
    /// What was missed, and where the history takes over.
    missed: VecDeque<Change>,
    resume: ResourceVersion,
    wake: watch::Receiver<()>,
}

impl Watch {
    /// Starts after `from`.
    pub(crate) fn start(
        shared: &Arc<RwLock<State>>,
        resource: &str,
        from: ResourceVersion,
    ) -> Result<Self, Expired> {
        let state = State::read_with_ring(shared, resource);
        if state.closed {
            return Err(Expired::Closed);
        }
        if from > state.version {
            return Err(Expired::Future {
                latest: state.version,
            });
        }
        let mut missed = VecDeque::new();
        let mut resume = from;
        if from < state.history.floor(resource) {
            let oldest = state.tombstone_set.horizon;
            if from < oldest {
                return Err(Expired::TooOld { oldest });
            }
            missed = recovery::missed(&state, resource, from).into();
            resume = state.version;
        }
        let mut watch = Self::at_end(shared, &state, resource);
        watch.position = if missed.is_empty() { resume } else { from };
        (watch.missed, watch.resume) = (missed, resume);
        Ok(watch)
    }

    /// Starts after the last version of `state`, which has a ring for the resource.
    pub(crate) fn at_end(shared: &Arc<RwLock<State>>, state: &State, resource: &str) -> Self {
        Self {
            state: shared.clone(),
            resource: resource.into(),
            position: state.version,
            missed: VecDeque::new(),
            resume: state.version,
            wake: state.history.listen(resource),
        }
    }

    /// Waits for the next change. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Change, Expired> {
        loop {
            self.wake.mark_unchanged();
            if let Some(change) = self.try_next()? {
                return Ok(change);
            }
            if self.wake.changed().await.is_err() {
                return Err(Expired::Closed);
            }
        }
    }

    /// The next change, if there is one.
    pub fn try_next(&mut self) -> Result<Option<Change>, Expired> {
        if let Some(change) = self.missed.pop_front() {
            self.position = if self.missed.is_empty() {
                self.resume
            } else {
                change.version
            };
            return Ok(Some(change));
        }
        let state = self.state.read();
        let oldest = state.history.floor(&self.resource);
        if self.position < oldest {
            return Err(Expired::TooOld { oldest });
        }
        match state.history.after(&self.resource, self.position) {
            Some(change) => {
                self.position = change.version;
                Ok(Some(change.clone()))
            }
            None if state.closed => Err(Expired::Closed),
            None => {
                // Nothing of this resource is left up to the last version of all.
                self.position = state.version;
                Ok(None)
            }
        }
    }

    /// A safe place to go on from: every change of this resource up to it has been handed out.
    #[must_use]
    pub fn position(&self) -> ResourceVersion {
        self.position
    }

    /// The resource it follows.
    #[must_use]
    pub fn resource(&self) -> &str {
        &self.resource
    }
}
