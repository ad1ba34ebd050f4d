//! Groups: one sync for many batches, none of them in another's way, nothing shown too early.

use std::collections::VecDeque;

use super::*;
use crate::engine::{Batch, Image, LoadError};
use crate::sample::Samples;
use crate::{Draft, Expect, Expired, Facts, Key, Object, Op, ResourceVersion, Watch, Write};

/// Answers as it is told, and looks at what readers see while a commit is under way.
struct Scripted {
    shared: Shared,
    answers: Arc<Mutex<VecDeque<Result<(), EngineError>>>>,
    commits: Arc<Mutex<Vec<Commit>>>,
}

/// What an engine was given, and what readers saw meanwhile.
struct Commit {
    writes: usize,
    shown: ResourceVersion,
}

impl Engine for Scripted {
    fn load(&mut self) -> Result<Image, LoadError> {
        Ok(Image::default())
    }

    fn commit(&mut self, batch: &Batch) -> Result<(), EngineError> {
        let shown = self.shared.state.read().version;
        self.commits.lock().push(Commit {
            writes: batch.objects.len(),
            shown,
        });
        self.answers.lock().pop_front().unwrap_or(Ok(()))
    }
}

struct Bench {
    writer: Writer,
    commits: Arc<Mutex<Vec<Commit>>>,
}

fn bench(answers: impl IntoIterator<Item = Result<(), EngineError>>) -> Bench {
    let state = Arc::new(RwLock::new(State::new(ResourceVersion::ZERO, 1 << 20)));
    let shared = Shared {
        state,
        counters: Arc::default(),
    };
    let commits = Arc::<Mutex<Vec<Commit>>>::default();
    let answers = Arc::new(Mutex::new(answers.into_iter().collect()));
    let engine = Box::new(Scripted {
        shared: shared.clone(),
        answers,
        commits: commits.clone(),
    });
    let limits = Limits {
        full_pause: Duration::ZERO,
        ..Limits::default()
    };
    let writer = Writer {
        engine,
        shared,
        clock: Clock::system(),
        limits,
        full_at: None,
        _lock: None,
    };
    Bench { writer, commits }
}

impl Bench {
    /// Commits the batches as one group and returns their verdicts.
    fn group(&mut self, batches: impl IntoIterator<Item = Vec<Write>>) -> Vec<CommitResult> {
        let samples = Samples::default();
        let (requests, answers): (Vec<_>, Vec<_>) = batches
            .into_iter()
            .map(|batch| {
                let (reply, answer) = oneshot::channel();
                let batch = batch
                    .into_iter()
                    .map(|write| Prepared::new(write, &samples))
                    .collect();
                (Request { batch, reply }, answer)
            })
            .unzip();
        self.writer.commit(requests);
        answers
            .into_iter()
            .map(|mut answer| answer.try_recv().expect("everybody is answered"))
            .collect()
    }

    fn version(&self) -> u64 {
        self.writer.shared.state.read().version.get()
    }

    fn watch(&self) -> Watch {
        Watch::start(&self.writer.shared.state, "things", ResourceVersion::ZERO).unwrap()
    }
}

fn key(name: &str) -> Key {
    Key::new("things", "", name)
}

fn write(name: &str, expect: Expect, remove: bool) -> Write {
    let draft = Draft {
        facts: Facts::default(),
        json: b"\"\"".to_vec(),
        version_at: 1,
    };
    let op = if remove {
        Op::Remove(draft)
    } else {
        Op::Put(draft)
    };
    Write {
        key: key(name),
        expect,
        op,
    }
}

fn create(name: &str) -> Write {
    write(name, Expect::Absent, false)
}

fn at(version: u64) -> Expect {
    Expect::Version(ResourceVersion::new(version))
}

fn versions(verdict: &CommitResult) -> Vec<u64> {
    verdict
        .as_ref()
        .unwrap()
        .iter()
        .map(|object| object.version.get())
        .collect()
}

fn conflict(verdict: &CommitResult) -> Option<&Arc<Object>> {
    match verdict {
        Err(CommitError::Conflict { actual, .. }) => actual.as_ref(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn batches_of_a_group_see_each_other_and_share_one_sync() {
    let mut bench = bench([]);
    let verdicts = bench.group([
        vec![create("a"), create("b")],
        vec![create("a")],
        vec![write("a", at(1), false)],
        vec![write("b", at(2), true), create("c")],
        vec![create("b")],
    ]);
    assert_eq!(versions(&verdicts[0]), [1, 2]);
    assert_eq!(conflict(&verdicts[1]).unwrap().version.get(), 1);
    assert_eq!(versions(&verdicts[2]), [3]);
    assert_eq!(versions(&verdicts[3]), [4, 5]);
    assert_eq!(
        versions(&verdicts[4]),
        [6],
        "removed before, in the same group"
    );
    let commits = bench.commits.lock();
    assert_eq!(commits.len(), 1);
    assert_eq!(commits[0].writes, 6);
}

#[test]
fn a_refused_batch_takes_back_what_it_did_and_gives_back_its_versions() {
    let mut bench = bench([]);
    let verdicts = bench.group([
        vec![create("a")],
        vec![
            write("a", at(1), false),
            write("a", at(2), true),
            create("b"),
            create("a"),
            create("b"),
        ],
        vec![write("a", at(1), false), create("b")],
    ]);
    assert_eq!(conflict(&verdicts[1]).unwrap().key, key("b"));
    assert_eq!(versions(&verdicts[2]), [2, 3]);
    assert_eq!(bench.commits.lock()[0].writes, 3);
    assert_eq!(bench.version(), 3);
}

#[test]
fn readers_see_nothing_before_it_is_safe() {
    let mut bench = bench([]);
    bench.group([vec![create("a")]]);
    bench.group([vec![create("b")], vec![create("c")]]);
    let shown: Vec<u64> = bench
        .commits
        .lock()
        .iter()
        .map(|commit| commit.shown.get())
        .collect();
    assert_eq!(shown, [0, 1]);
    assert_eq!(bench.version(), 3);
}

#[test]
fn a_group_without_room_is_refused_whole_and_the_next_one_is_tried() {
    let mut bench = bench([Err(EngineError::Full)]);
    let mut watch = bench.watch();
    let verdicts = bench.group([vec![create("a")], vec![create("a")]]);
    assert_eq!(
        verdicts,
        [Err(CommitError::Full), Err(CommitError::Full)],
        "the conflict never came to be"
    );
    assert_eq!((bench.version(), watch.try_next()), (0, Ok(None)));
    let verdicts = bench.group([vec![create("a")]]);
    assert_eq!(
        versions(&verdicts[0]),
        [1],
        "nobody has seen this version before"
    );
    assert_eq!(watch.try_next().unwrap().unwrap().version.get(), 1);
}

#[test]
fn after_a_failure_the_engine_is_left_alone() {
    let mut bench = bench([Err(EngineError::Failed("the disk is gone".to_owned()))]);
    for _ in 0..3 {
        assert_eq!(
            bench.group([vec![create("a")]]),
            [Err(CommitError::Poisoned)]
        );
    }
    assert_eq!(bench.group([vec![]]), [Err(CommitError::Poisoned)]);
    assert_eq!(bench.commits.lock().len(), 1);
    let health = bench.writer.shared.state.read().health.clone();
    assert_eq!(health, Health::Poisoned("the disk is gone".to_owned()));
}

#[test]
fn a_group_that_writes_nothing_costs_no_sync() {
    let mut bench = bench([]);
    let check = Write {
        key: key("a"),
        expect: Expect::Absent,
        op: Op::Check,
    };
    let verdicts = bench.group([vec![check], vec![], vec![write("a", at(9), false)]]);
    assert_eq!(verdicts[..2], [Ok(vec![]), Ok(vec![])]);
    assert_eq!(conflict(&verdicts[2]), None);
    assert!(bench.commits.lock().is_empty());
}

#[test]
fn a_caller_that_is_gone_disturbs_nobody() {
    let mut bench = bench([]);
    let (reply, answer) = oneshot::channel();
    drop(answer);
    bench.writer.commit(vec![Request {
        batch: vec![Prepared::new(create("a"), &Samples::default())],
        reply,
    }]);
    assert_eq!(bench.version(), 1);
}

#[test]
fn a_closed_store_ends_its_watches_after_the_last_change() {
    let mut bench = bench([]);
    let mut watch = bench.watch();
    bench.group([vec![create("a")]]);
    bench.writer.shared.close();
    assert!(watch.try_next().unwrap().is_some());
    assert_eq!(watch.try_next(), Err(Expired::Closed));
}
