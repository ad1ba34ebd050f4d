//! Small words for the tests: objects, writes, stores on a file system in memory.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use heddle_rt::{Clock, MemoryVfs};
use heddle_store::{
    Change, CommitError, Draft, Expect, Facts, Key, Mode, Object, Op, OpenError, Options,
    ResourceVersion, Store, Write,
};

pub(crate) const DIR: &str = "/data/resources";

pub(crate) fn database() -> &'static Path {
    Path::new("/data/resources/resources.redb")
}

/// Inline, and a full disk is tried again at once.
pub(crate) fn options(vfs: &MemoryVfs) -> Options {
    let mut options = Options::new(vfs.shared(), DIR, Clock::system());
    options.mode = Mode::Inline;
    options.limits.full_pause = Duration::ZERO;
    options
}

pub(crate) fn try_open(vfs: &MemoryVfs) -> Result<Store, OpenError> {
    Store::open(options(vfs))
}

pub(crate) fn open(vfs: &MemoryVfs) -> Store {
    try_open(vfs).expect("the store opens")
}

/// With the writer on its own thread, as in production.
pub(crate) fn open_threaded(vfs: &MemoryVfs) -> Store {
    Store::open(Options {
        mode: Mode::Thread,
        ..options(vfs)
    })
    .expect("the store opens")
}

/// `things/default/NAME`, or any other `resource/namespace/name`.
pub(crate) fn key(name: &str) -> Key {
    match name.split('/').collect::<Vec<_>>()[..] {
        [name] => Key::new("things", "default", name),
        [resource, name] => Key::new(resource, "", name),
        [resource, namespace, name] => Key::new(resource, namespace, name),
        _ => panic!("{name} is no key"),
    }
}

pub(crate) fn facts(uid: &str) -> Facts {
    Facts {
        uid: uid.into(),
        ..Facts::default()
    }
}

pub(crate) fn draft_of(facts: Facts, data: &str) -> Draft {
    let head = r#"{"metadata":{"resourceVersion":""#;
    let json = format!(r#"{head}"}},"data":"{data}"}}"#);
    Draft {
        facts,
        json: json.into_bytes(),
        version_at: head.len(),
    }
}

pub(crate) fn draft(data: &str) -> Draft {
    draft_of(facts(""), data)
}

/// What `draft` becomes once it has a version.
pub(crate) fn json_of(version: ResourceVersion, data: &str) -> String {
    format!(r#"{{"metadata":{{"resourceVersion":"{version}"}},"data":"{data}"}}"#)
}

/// The data inside a stored object.
pub(crate) fn data(object: &Object) -> String {
    let json = String::from_utf8(object.json().into()).expect("objects are text");
    let data = json.split_once(r#""data":""#).expect("it has data").1;
    data.trim_end_matches(r#""}"#).to_owned()
}

pub(crate) fn put(name: &str, expect: Expect, data: &str) -> Write {
    Write {
        key: key(name),
        expect,
        op: Op::Put(draft(data)),
    }
}

pub(crate) fn create(name: &str, data: &str) -> Write {
    put(name, Expect::Absent, data)
}

pub(crate) fn update(object: &Object, data: &str) -> Write {
    let op = Op::Put(draft_of(Facts::clone(&object.facts), data));
    Write {
        key: object.key.clone(),
        expect: Expect::Version(object.version),
        op,
    }
}

pub(crate) fn remove(object: &Object) -> Write {
    let op = Op::Remove(draft_of(Facts::clone(&object.facts), &data(object)));
    Write {
        key: object.key.clone(),
        expect: Expect::Version(object.version),
        op,
    }
}

/// Commits one write and returns its object.
pub(crate) async fn one(store: &Store, write: Write) -> Result<Arc<Object>, CommitError> {
    let mut written = store.commit(vec![write]).await?;
    assert_eq!(written.len(), 1);
    Ok(written.remove(0))
}

/// Everything a watch has to say now.
pub(crate) fn drain(watch: &mut heddle_store::Watch) -> Vec<Change> {
    std::iter::from_fn(|| watch.try_next().expect("the watch goes on")).collect()
}

/// `Added a@1=x`, for comparing.
pub(crate) fn told(changes: &[Change]) -> Vec<String> {
    let tell = |change: &Change| {
        let recovered = if change.recovered { " recovered" } else { "" };
        format!(
            "{:?} {}@{}{recovered}",
            change.kind, change.object.key.name, change.version
        )
    };
    changes.iter().map(tell).collect()
}

pub(crate) fn version(number: u64) -> ResourceVersion {
    ResourceVersion::new(number)
}
