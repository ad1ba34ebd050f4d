//! Those who sent one dead letter on its way again and wait for what its subscriber says.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::path::delivery::attempt::{ANSWER_BYTES_MAX, AttemptResult};

/// Who waits, by the name of the letter. As many as there are requests under way.
#[derive(Debug, Default)]
pub(crate) struct Tries(Mutex<HashMap<u64, oneshot::Sender<TriedAttempt>>>);

/// What came of the first attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TriedAttempt {
    pub(crate) delivered: bool,
    pub(crate) status: u16,
    pub(crate) latency: Duration,
    pub(crate) error: Option<String>,
    pub(crate) answer: Vec<u8>,
    /// The dead letter that it is now.
    pub(crate) rests_as: Option<u64>,
}

impl TriedAttempt {
    /// What is told of an attempt; nothing of one that says nothing about the subscriber.
    pub(crate) fn of(result: &AttemptResult, latency: Duration) -> Option<Self> {
        let tried = Self {
            latency,
            ..Self::default()
        };
        Some(match result {
            AttemptResult::Delivered { status, .. } => Self {
                delivered: true,
                status: *status,
                ..tried
            },
            AttemptResult::Failed(failed) => Self {
                status: failed.status,
                error: Some(failed.error.clone()),
                answer: failed.answer[..failed.answer.len().min(ANSWER_BYTES_MAX)].to_vec(),
                ..tried
            },
            AttemptResult::Gone => Self {
                status: 410,
                error: Some("the subscriber wants no more events".to_owned()),
                ..tried
            },
            AttemptResult::Expired(reason) => Self {
                error: Some(reason.clone()),
                ..tried
            },
            AttemptResult::Backpressured { .. } | AttemptResult::NotAttempted => return None,
        })
    }
}

impl Tries {
    /// Waits for a letter until the guard is dropped. `None` if somebody else does.
    pub(crate) fn watch(
        &self,
        name: u64,
    ) -> Option<(TryGuard<'_>, oneshot::Receiver<TriedAttempt>)> {
        let mut watched = self.0.lock();
        if watched.contains_key(&name) {
            return None;
        }
        let (tell, told) = oneshot::channel();
        watched.insert(name, tell);
        Some((TryGuard { tries: self, name }, told))
    }

    pub(crate) fn is_watched(&self, name: u64) -> bool {
        self.0.lock().contains_key(&name)
    }

    pub(crate) fn tell(&self, name: u64, tried: TriedAttempt) {
        if let Some(tell) = self.0.lock().remove(&name) {
            // Whoever asked may have left.
            drop(tell.send(tried));
        }
    }
}

/// Ends the waiting, also if whoever asked leaves.
pub(crate) struct TryGuard<'a> {
    tries: &'a Tries,
    name: u64,
}

impl Drop for TryGuard<'_> {
    fn drop(&mut self) {
        self.tries.0.lock().remove(&self.name);
    }
}
