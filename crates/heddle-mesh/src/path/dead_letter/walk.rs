//! Going through the dead letters that somebody means, a piece at a time.
//!
//! Whoever settles an attempt needs the dead letters while it has a consumer locked, so nobody holds them for as long as it takes to
//! look at all. Letters come and leave between two pieces; each that was there all along is met once. Consumers that cannot be
//! meant are passed over.

use std::sync::Arc;

use super::picker::Picker;
use crate::journal::positions::DeadLetterEntry;
use crate::journal::record::ConsumerId;
use crate::shared::Shared;

/// Letters, and consumers, that are looked at while nobody else can.
const PIECE: usize = 1000;

/// A walk under way.
pub(crate) struct LetterWalk<'a> {
    shared: &'a Shared,
    picker: &'a Picker,
    left: std::vec::IntoIter<(ConsumerId, Arc<str>)>,
    /// Whose letters it goes through, and behind which one it goes on.
    at: Option<(ConsumerId, Arc<str>, u64)>,
}

/// A letter that is met.
pub(crate) struct MetLetter<'a> {
    pub(crate) name: u64,
    pub(crate) rest: &'a DeadLetterEntry,
    /// Of its consumer.
    pub(crate) key: &'a Arc<str>,
}

impl<'a> LetterWalk<'a> {
    pub(crate) fn new(shared: &'a Shared, picker: &'a Picker) -> Self {
        let consumers = shared.consumers.read();
        let ids = shared.dead.lock().consumers();
        let nobody: Arc<str> = "".into();
        let keyed = ids.into_iter().map(|id| {
            let known = consumers.by_id.get(&id);
            (
                id,
                known.map_or_else(|| Arc::clone(&nobody), |one| Arc::clone(&one.key)),
            )
        });
        let meant: Vec<_> = keyed.filter(|(_, key)| picker.may_mean(key)).collect();
        Self {
            shared,
            picker,
            left: meant.into_iter(),
            at: None,
        }
    }

    /// Meets the letters of one piece; whether there is more.
    pub(crate) fn piece(&mut self, mut meet: impl FnMut(MetLetter<'_>)) -> bool {
        let letters = self.shared.dead.lock();
        let mut room = PIECE;
        while room > 0 {
            let Some((id, key, after)) = self.at.take().or_else(|| {
                let (id, key) = self.left.next()?;
                Some((id, key, 0))
            }) else {
                return false;
            };
            let (mut looked, mut last) = (0, after);
            for (name, rest) in letters.of_consumer(id, after).take(room) {
                (looked, last) = (looked + 1, name);
                if self.picker.picks(name, rest, &key) {
                    let key = &key;
                    meet(MetLetter { name, rest, key });
                }
            }
            if looked == room {
                self.at = Some((id, key, last));
            }
            room -= looked.max(1);
        }
        true
    }

    /// Meets all of them, and gives way to others between two pieces.
    pub(crate) async fn all(mut self, mut meet: impl FnMut(MetLetter<'_>) + Send) {
        while self.piece(&mut meet) {
            tokio::task::yield_now().await;
        }
    }

    /// Meets all of them while whoever asks waits.
    pub(crate) fn all_at_once(mut self, mut meet: impl FnMut(MetLetter<'_>)) {
        while self.piece(&mut meet) {}
    }
}
