//! Where things were seen last.
//!
//! A platform that is asked to name a namespace once does not name it again. So the front of all namespaces remembers where
//! it found or put an instance, and looks everywhere when it has forgotten. Nothing hangs on this memory: whatever it says
//! is looked up before it is believed.

use std::collections::HashMap;

use parking_lot::Mutex;

/// How many are remembered: a few megabytes' worth.
const PLACES_MAX: usize = 50_000;

/// Namespaces by a kind's noun and an object's name.
#[derive(Debug, Default)]
pub(crate) struct ObjectPlaces {
    known: Mutex<HashMap<(&'static str, String), String>>,
}

impl ObjectPlaces {
    pub(crate) fn remember(&self, noun: &'static str, name: &str, namespace: &str) {
        let mut known = self.known.lock();
        // Forgetting costs one look everywhere, so it need not be clever.
        if known.len() >= PLACES_MAX {
            known.clear();
        }
        known.insert((noun, name.to_owned()), namespace.to_owned());
    }

    pub(crate) fn recall(&self, noun: &'static str, name: &str) -> Option<String> {
        self.known.lock().get(&(noun, name.to_owned())).cloned()
    }
}
