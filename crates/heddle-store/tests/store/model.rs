//! The store beside a simple map, step by step, with restarts and power losses in between.

use std::collections::BTreeMap;

use heddle_rt::MemoryVfs;
use heddle_rt::vfs::PowerLoss;
use heddle_store::{
    Change, ChangeKind, CommitError, Expect, Expired, Limits, Op, Options, ResourceVersion, Store,
    Write,
};
use proptest::prelude::*;

use crate::support::*;

const NAMES: [&str; 5] = ["a", "b", "c", "nodes/n", "nodes/m"];

#[derive(Clone, Debug)]
enum Step {
    Commit(Vec<Wish>),
    Restart,
    PowerLoss(u64),
}

/// One write of a batch: what for, and with the right expectation or a wrong one.
#[derive(Clone, Debug)]
struct Wish {
    name: &'static str,
    action: Action,
    right: bool,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Put(u16),
    Remove,
    Check,
}

fn wish() -> impl Strategy<Value = Wish> {
    let action = prop_oneof![
        4 => (0..2000_u16).prop_map(Action::Put),
        2 => Just(Action::Remove),
        1 => Just(Action::Check),
    ];
    (
        prop::sample::select(&NAMES),
        action,
        prop::bool::weighted(0.9),
    )
        .prop_map(|(name, action, right)| Wish {
            name,
            action,
            right,
        })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => prop::collection::vec(wish(), 0..4).prop_map(Step::Commit),
        1 => Just(Step::Restart),
        1 => any::<u64>().prop_map(Step::PowerLoss),
    ]
}

/// What should be there: version, creation and data by name; and all that ever happened.
#[derive(Clone, Debug, Default)]
struct Model {
    version: u64,
    objects: BTreeMap<&'static str, (u64, u64, String)>,
    told: Vec<(u64, &'static str, ChangeKind, String)>,
}

impl Model {
    /// Turns wishes into writes and does the same to itself; `None` when a wish must be refused.
    fn batch(&self, wishes: &[Wish]) -> (Vec<Write>, Option<Self>) {
        let mut after = Some(self.clone());
        let mut writes = Vec::new();
        for Wish {
            name,
            action,
            right,
        } in wishes
        {
            let seen = after.as_ref().unwrap_or(self).objects.get(name).cloned();
            let truth = match &seen {
                Some((version, ..)) => Expect::Version(ResourceVersion::new(*version)),
                None => Expect::Absent,
            };
            let lie = Expect::Version(ResourceVersion::new(u64::MAX));
            let size = match action {
                Action::Put(size) => usize::from(*size),
                _ => 1,
            };
            let data = "x".repeat(size);
            let op = match action {
                Action::Put(_) => Op::Put(draft(&data)),
                Action::Remove => Op::Remove(draft("last")),
                Action::Check => Op::Check,
            };
            writes.push(Write {
                key: key(name),
                expect: if *right { truth } else { lie },
                op,
            });
            let impossible = !right || (matches!(action, Action::Remove) && seen.is_none());
            after = after
                .filter(|_| !impossible)
                .map(|model| model.done(name, *action, data, seen.map(|(_, created, _)| created)));
        }
        (writes, after)
    }

    fn done(
        mut self,
        name: &'static str,
        action: Action,
        data: String,
        created: Option<u64>,
    ) -> Self {
        if let Action::Check = action {
            return self;
        }
        self.version += 1;
        let kind = match (action, created) {
            (Action::Remove, _) => ChangeKind::Deleted,
            (_, Some(_)) => ChangeKind::Modified,
            (_, None) => ChangeKind::Added,
        };
        let shown = if kind == ChangeKind::Deleted {
            "last".to_owned()
        } else {
            data.clone()
        };
        self.told.push((self.version, name, kind, shown));
        match kind {
            ChangeKind::Deleted => self.objects.remove(name),
            _ => self
                .objects
                .insert(name, (self.version, created.unwrap_or(self.version), data)),
        };
        self
    }

    fn check(&self, store: &Store) {
        assert_eq!(store.version().get(), self.version);
        for name in NAMES {
            let found = store
                .get(&key(name))
                .map(|object| (object.version.get(), object.created.get(), data(&object)));
            assert_eq!(found.as_ref(), self.objects.get(name), "{name}");
        }
        for resource in ["things", "nodes"] {
            let listed: Vec<u64> = store
                .list(resource, None)
                .items
                .iter()
                .map(|object| object.version.get())
                .collect();
            let mut names: Vec<_> = NAMES
                .iter()
                .filter(|name| &*key(name).resource == resource)
                .collect();
            names.sort();
            let expected: Vec<u64> = names
                .iter()
                .filter_map(|name| Some(self.objects.get(**name)?.0))
                .collect();
            assert_eq!(listed, expected, "{resource}");
        }
    }

    /// Whether there was such an object at that version.
    fn knew(&self, name: &str, at: u64) -> bool {
        let before = self
            .told
            .iter()
            .rev()
            .find(|(version, other, ..)| *version <= at && *other == name);
        before.is_some_and(|(_, _, kind, _)| *kind != ChangeKind::Deleted)
    }

    /// The name under which the model knows an object.
    fn name_of(change: &Change) -> &'static str {
        NAMES
            .into_iter()
            .find(|name| key(name) == change.object.key)
            .expect("it is one of ours")
    }

    /// From every version, a watch tells what the model was told; before `exact_from`, what it amounts to.
    fn check_watches(&self, store: &Store, exact_from: u64) {
        for from in 0..=self.version {
            for resource in ["things", "nodes"] {
                let mut watch = match store.watch(resource, ResourceVersion::new(from)) {
                    Ok(watch) => watch,
                    Err(Expired::TooOld { oldest }) => {
                        assert!(from < oldest.get() && oldest.get() <= self.version);
                        continue;
                    }
                    Err(other) => panic!("watch from {from}: {other}"),
                };
                let changes = drain(&mut watch);
                let ours = self.told.iter().filter(|(version, name, ..)| {
                    *version > from && &*key(name).resource == resource
                });
                if from >= exact_from {
                    let told: Vec<_> = changes
                        .iter()
                        .map(|change| {
                            (
                                change.version.get(),
                                Self::name_of(change),
                                change.kind,
                                data(&change.object),
                            )
                        })
                        .collect();
                    assert_eq!(told, ours.cloned().collect::<Vec<_>>());
                } else {
                    // The last word about each name is the same: its version, or that it is gone.
                    let word = |version, kind| (kind != ChangeKind::Deleted).then_some(version);
                    let last: BTreeMap<_, _> = changes
                        .iter()
                        .map(|change| {
                            (
                                Self::name_of(change),
                                word(change.version.get(), change.kind),
                            )
                        })
                        .collect();
                    let all = ours.map(|(version, name, kind, _)| (*name, word(*version, *kind)));
                    let mut expected: BTreeMap<_, _> = all.collect();
                    // What came and went since need not be mentioned.
                    expected.retain(|name, word| {
                        word.is_some() || last.contains_key(name) || self.knew(name, from)
                    });
                    assert_eq!(last, expected, "{resource} from {from}");
                }
                assert_eq!(watch.position().get(), self.version);
            }
        }
    }
}

fn open_with(vfs: &MemoryVfs, limits: Limits) -> Store {
    Store::open(Options {
        limits,
        ..options(vfs)
    })
    .expect("the store opens")
}

async fn compare(steps: Vec<Step>, limits: Limits) {
    let mut vfs = MemoryVfs::new();
    let mut store = open_with(&vfs, limits);
    let mut model = Model::default();
    let mut witnessed_from = 0;
    for step in steps {
        match step {
            Step::Commit(wishes) => {
                let (writes, after) = model.batch(&wishes);
                match (store.commit(writes).await, after) {
                    (Ok(written), Some(after)) => {
                        let told = &after.told[model.told.len()..];
                        assert_eq!(written.len(), told.len());
                        for (object, (version, _, _, data_told)) in written.iter().zip(told) {
                            assert_eq!(
                                object.json(),
                                json_of(ResourceVersion::new(*version), data_told)
                            );
                        }
                        model = after;
                    }
                    (Err(CommitError::Conflict { .. } | CommitError::Invalid { .. }), None) => {}
                    (found, expected) => panic!("{found:?} instead of {expected:?}"),
                }
            }
            Step::Restart => {
                store.close().await;
                store = open_with(&vfs, limits);
                witnessed_from = model.version;
            }
            Step::PowerLoss(seed) => {
                vfs = vfs.power_loss(PowerLoss::Arbitrary { seed });
                store = open_with(&vfs, limits);
                witnessed_from = model.version;
            }
        }
        model.check(&store);
    }
    // A history that forgets may have to put together what was witnessed.
    let forgetful = limits.history_bytes_max < Limits::default().history_bytes_max;
    model.check_watches(&store, if forgetful { u64::MAX } else { witnessed_from });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_store_does_what_a_map_would_do(steps in prop::collection::vec(step(), 1..30), tight in any::<bool>()) {
        let limits = if tight {
            Limits { history_bytes_max: 3000, tombstones_max: 2, ..Limits::default() }
        } else {
            Limits::default()
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(compare(steps, limits));
    }
}
