//! One fixed story, told again and again while the world ends at different places.
//!
//! The reference run knows the state after each commit and at each version, so that whatever a
//! crash leaves can be judged: it has to be the state after the last acknowledged commit, or after
//! the one that was under way, whole; and every watch has to arrive at it.

use std::collections::BTreeMap;

use heddle_rt::MemoryVfs;
use heddle_store::{Change, ChangeKind, CommitError, Expired, Key, ResourceVersion, Store, Write};

use crate::support::*;

pub(crate) const RESOURCES: [&str; 2] = ["things", "nodes"];

/// The objects by key: version and bytes.
pub(crate) type Snapshot = BTreeMap<Key, (ResourceVersion, Vec<u8>)>;

/// One step: what to write, given the store as it is.
type Step = fn(&Store) -> Vec<Write>;

fn live(store: &Store, name: &str) -> std::sync::Arc<heddle_store::Object> {
    store.get(&key(name)).expect("the story put it there")
}

/// Creates, updates, removals and recreations, alone and together, small and larger than a page.
pub(crate) const STORY: &[Step] = &[
    |_| vec![create("a", "1")],
    |_| {
        vec![
            create("b", "1"),
            create("c", &"c".repeat(6000)),
            create("nodes/n", "1"),
        ]
    },
    |store| vec![update(&live(store, "a"), "2")],
    |store| vec![remove(&live(store, "b"))],
    |store| vec![update(&live(store, "c"), "short"), create("b", "again")],
    |store| {
        vec![
            remove(&live(store, "a")),
            remove(&live(store, "nodes/n")),
            create("d", "1"),
        ]
    },
    |store| vec![update(&live(store, "b"), &"b".repeat(20_000))],
    |_| {
        (0..20)
            .map(|n| create(&format!("many{n}"), &"m".repeat(700)))
            .collect()
    },
    |store| {
        (0..20)
            .step_by(2)
            .map(|n| remove(&live(store, &format!("many{n}"))))
            .collect()
    },
    |store| vec![update(&live(store, "d"), "2"), create("nodes/n", "2")],
    |store| vec![remove(&live(store, "b")), create("a", "again")],
];

pub(crate) fn snapshot(store: &Store) -> Snapshot {
    let objects = RESOURCES
        .iter()
        .flat_map(|resource| store.list(resource, None).items);
    objects
        .map(|object| (object.key.clone(), (object.version, object.json().to_vec())))
        .collect()
}

/// What is true when nothing goes wrong.
pub(crate) struct Reference {
    /// After so many commits; the first is the empty store.
    states: Vec<(ResourceVersion, Snapshot)>,
    /// At each version, also inside a batch.
    at: BTreeMap<ResourceVersion, Snapshot>,
    /// Operations of the whole run, from opening to closing.
    pub(crate) operations: u64,
}

impl Reference {
    pub(crate) async fn run() -> Self {
        let vfs = MemoryVfs::new();
        let store = open(&vfs);
        let mut watches: Vec<_> = RESOURCES
            .iter()
            .map(|resource| {
                store
                    .watch(resource, store.version())
                    .expect("it starts here")
            })
            .collect();
        let mut states = vec![(store.version(), snapshot(&store))];
        for step in STORY {
            store
                .commit(step(&store))
                .await
                .expect("nothing goes wrong");
            states.push((store.version(), snapshot(&store)));
        }
        let mut changes: Vec<Change> = watches.iter_mut().flat_map(drain).collect();
        changes.sort_by_key(|change| change.version);
        let mut at = BTreeMap::from([(ResourceVersion::ZERO, Snapshot::new())]);
        let mut now = Snapshot::new();
        for change in &changes {
            apply(&mut now, change);
            at.insert(change.version, now.clone());
        }
        store.close().await;
        assert_eq!(now, states.last().expect("there is a last").1);
        Self {
            states,
            at,
            operations: vfs.operations(),
        }
    }

    /// The state after so many commits.
    pub(crate) fn after(&self, commits: usize) -> &(ResourceVersion, Snapshot) {
        &self.states[commits]
    }

    /// Judges a store that was opened after a crash, when `acknowledged` commits had been answered
    /// and perhaps one more was under way. Returns how many commits it holds.
    pub(crate) async fn judge(&self, store: &Store, acknowledged: usize) -> Result<usize, String> {
        let found = (store.version(), snapshot(store));
        let possible = acknowledged..=(acknowledged + 1).min(self.states.len() - 1);
        let Some(commits) = possible
            .into_iter()
            .find(|commits| self.states[*commits] == found)
        else {
            let (version, names) = (
                found.0,
                found.1.keys().map(ToString::to_string).collect::<Vec<_>>(),
            );
            return Err(format!(
                "acknowledged {acknowledged} commits, found version {version} with {names:?}"
            ));
        };
        for resource in RESOURCES {
            self.judge_watches(store, resource)?;
        }
        let next = one(store, create("afterwards", "x"))
            .await
            .map_err(|error| error.to_string())?;
        if next.version.get() != found.0.get() + 1 {
            return Err(format!("version {} follows {}", next.version, found.0));
        }
        Ok(commits)
    }

    /// From every version that ever was, a watch arrives at what is there, or says it cannot.
    fn judge_watches(&self, store: &Store, resource: &str) -> Result<(), String> {
        let here = store.version();
        let of_resource = |snapshot: &Snapshot| -> Snapshot {
            snapshot
                .iter()
                .filter(|(key, _)| &*key.resource == resource)
                .map(|(k, v)| (k.clone(), v.clone()))
                .collect()
        };
        let target = of_resource(&snapshot(store));
        for (from, start) in &self.at {
            let mut watch = match store.watch(resource, *from) {
                Ok(watch) => watch,
                Err(Expired::Future { latest }) if *from > here && latest == here => continue,
                Err(other) => return Err(format!("watch from {from} of {here}: {other}")),
            };
            let mut now = of_resource(start);
            let mut last = *from;
            for change in drain(&mut watch) {
                if change.version <= last {
                    return Err(format!(
                        "watch from {from}: {} after {last}",
                        change.version
                    ));
                }
                let known = now.contains_key(&change.object.key);
                if known != (change.kind != ChangeKind::Added) {
                    return Err(format!(
                        "watch from {from}: {:?} of {}",
                        change.kind, change.object.key
                    ));
                }
                last = change.version;
                apply(&mut now, &change);
            }
            if now != target {
                return Err(format!(
                    "watch of {resource} from {from} does not arrive at {here}"
                ));
            }
        }
        Ok(())
    }
}

pub(crate) fn apply(snapshot: &mut Snapshot, change: &Change) {
    let object = &change.object;
    match change.kind {
        ChangeKind::Deleted => snapshot.remove(&object.key),
        _ => snapshot.insert(object.key.clone(), (object.version, object.json().to_vec())),
    };
}

/// Tells the story from commit `from` until it ends or a commit is refused. Returns how many
/// commits of the story were acknowledged in all, and the refusal.
pub(crate) async fn tell(store: &Store, from: usize) -> (usize, Option<CommitError>) {
    for (index, step) in STORY.iter().enumerate().skip(from) {
        if let Err(error) = store.commit(step(store)).await {
            return (index, Some(error));
        }
    }
    (STORY.len(), None)
}
