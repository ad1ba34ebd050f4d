//! One number, or group of numbers, for each set of labels.
//!
//! Looking one up is a load and a look into a map, and nobody waits for anybody. A set of labels comes once and stays, so
//! it may be added by copying the map. How many sets there can be is decided by whoever names them.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use arc_swap::ArcSwap;

/// Numbers by label.
#[derive(Debug)]
pub struct LabelMap<K, V>(ArcSwap<HashMap<K, Arc<V>>>);

impl<K, V> Default for LabelMap<K, V> {
    fn default() -> Self {
        Self(ArcSwap::default())
    }
}

impl<K: Clone + Eq + Hash + Ord, V: Default> LabelMap<K, V> {
    /// Updates the numbers of `key`. If there are none yet, `name` says under which key they are kept, given how many keys
    /// there are: where there would be too many, one key may stand for the rest.
    pub fn update<Q>(&self, key: &Q, name: impl Fn(usize) -> K, update: impl FnOnce(&V))
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        match self.0.load().get(key) {
            Some(numbers) => update(numbers),
            None => update(&self.numbers_of(key, name)),
        }
    }

    #[cold]
    fn numbers_of<Q>(&self, key: &Q, name: impl Fn(usize) -> K) -> Arc<V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let known = |map: &HashMap<K, Arc<V>>| {
            let numbers = map
                .get(key)
                .or_else(|| map.get::<Q>(name(map.len()).borrow()));
            numbers.cloned()
        };
        if let Some(numbers) = known(&self.0.load()) {
            return numbers;
        }
        let added: Arc<V> = Arc::default();
        self.0.rcu(|map| {
            let mut map = HashMap::clone(map);
            if known(&map).is_none() {
                map.insert(name(map.len()), Arc::clone(&added));
            }
            map
        });
        // Whoever was first has put it in, and nothing is ever taken out.
        known(&self.0.load()).unwrap_or(added)
    }

    /// All of them, in the order of their keys.
    #[must_use]
    pub fn sorted(&self) -> Vec<(K, Arc<V>)> {
        let map = self.0.load();
        let entries = map.iter();
        let mut sorted: Vec<_> = entries
            .map(|(key, numbers)| (key.clone(), Arc::clone(numbers)))
            .collect();
        sorted.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        sorted
    }
}
