//! Places for streams that are open at once: so many for all, and so many for each who opens them.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// Streams that are open at once. A page needs one for all of its tabs; beyond that, polling with a tag is cheaper for everybody.
pub(super) const STREAMS_MAX: usize = 128;
/// And of one user, so that it takes many to keep others out.
pub(super) const STREAMS_EACH_MAX: usize = 32;

/// Who has how many.
#[derive(Clone, Debug, Default)]
pub(super) struct StreamPlaces(Arc<Mutex<HashMap<String, usize>>>);

/// One place, until it is dropped.
#[derive(Debug)]
pub(super) struct StreamPlace {
    places: StreamPlaces,
    user: String,
}

impl StreamPlaces {
    /// A place, or how many are open already.
    pub(super) fn enter(&self, user: &str) -> Result<StreamPlace, usize> {
        let mut taken = self.0.lock();
        let own = taken.get(user).copied().unwrap_or_default();
        let all: usize = taken.values().sum();
        if own >= STREAMS_EACH_MAX {
            return Err(own);
        }
        if all >= STREAMS_MAX {
            return Err(all);
        }
        taken.insert(user.to_owned(), own + 1);
        Ok(StreamPlace {
            places: self.clone(),
            user: user.to_owned(),
        })
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        let mut taken = self.places.0.lock();
        if let Some(own) = taken.get_mut(&self.user) {
            *own -= 1;
            if *own == 0 {
                taken.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_leaves_room_for_others_and_places_come_back() {
        let places = StreamPlaces::default();
        let bobs: Vec<_> = std::iter::from_fn(|| places.enter("bob").ok()).collect();
        assert_eq!(bobs.len(), STREAMS_EACH_MAX);
        assert!(places.enter("ada").is_ok());
        let others: Vec<_> = (0..STREAMS_MAX)
            .filter_map(|user| places.enter(&user.to_string()).ok())
            .collect();
        assert_eq!(others.len(), STREAMS_MAX - STREAMS_EACH_MAX);
        assert!(places.enter("ada").is_err());
        drop((bobs, others));
        assert!(places.0.lock().is_empty());
    }
}
