//! What every promise needs: a root file system made of busybox, a script in it, a runner, and patience.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use heddle_api::action::{Action, Limits, Outcome, Run, RunEnd, RunState};
use heddle_bundles::sandbox::{Options, Program, Runner};
use heddle_rt::{Chance, Clock};
use serde_json::{Map, Value, json};

/// Far more than anything here takes. A run that hangs fails the suite instead of stopping it.
const PATIENCE: Duration = Duration::from_secs(60);

const APPLETS: &[&str] = &[
    "sh",
    "cat",
    "ls",
    "echo",
    "mkdir",
    "rm",
    "ln",
    "mkfifo",
    "sleep",
    "id",
    "ps",
    "wc",
    "head",
    "dd",
    "yes",
    "nc",
    "wget",
    "hostname",
    "kill",
    "touch",
    "mount",
    "unshare",
    "env",
    "tr",
    "chmod",
    "seq",
    "mv",
    "grep",
    "sha256sum",
    "od",
    "date",
    "printf",
    "test",
    "sed",
    "cut",
    "find",
    "tail",
    "awk",
];

/// A directory of runs, an image, and the runner over both.
pub(crate) struct Stage {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) runner: Runner,
    pub(crate) root: PathBuf,
}

impl Stage {
    /// With an image whose program is this script.
    pub(crate) fn with(script: &str) -> Self {
        Self::with_options(script, |_| {})
    }

    pub(crate) fn with_options(script: &str, change: impl FnOnce(&mut Options)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("image");
        make_root(&root, script);
        let mut options = options(&directory.path().join("sandbox"));
        change(&mut options);
        let runner = open(options);
        Self {
            directory,
            runner,
            root,
        }
    }

    pub(crate) fn start(&self, run: &Run) {
        self.runner.start(run, &self.root, &program()).unwrap();
    }

    pub(crate) fn end(&self, id: &str) -> RunEnd {
        end_of(&self.runner, id)
    }

    pub(crate) fn run(&self, run: &Run) -> RunEnd {
        self.start(run);
        self.end(&run.id)
    }

    /// What the run's own files say, and what is only for them.
    pub(crate) fn run_file(&self, id: &str, name: &str) -> PathBuf {
        self.directory
            .path()
            .join("sandbox/runs")
            .join(id)
            .join(name)
    }

    pub(crate) fn data(&self, name: &str) -> PathBuf {
        self.directory
            .path()
            .join("sandbox/data/instance")
            .join(name)
    }
}

pub(crate) fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0)
}

pub(crate) fn open(options: Options) -> Runner {
    Runner::open(options, Clock::system(), Chance::system()).unwrap()
}

pub(crate) fn options(directory: &Path) -> Options {
    let this = std::env::current_exe().unwrap();
    Options::new(
        directory.to_owned(),
        vec![this.into(), "sandbox-run".into()],
    )
}

pub(crate) fn program() -> Program {
    Program {
        entrypoint: vec!["/bin/entrypoint".to_owned()],
        env: vec!["PATH=/bin".to_owned(), "FROM_IMAGE=yes".to_owned()],
        ..Program::default()
    }
}

/// A run with a name of its own that may use little.
pub(crate) fn run() -> Run {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    Run {
        id: format!(
            "run-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        ),
        action: Action::Provision,
        manifest_digest: "sha256:0".to_owned(),
        instance: "instance".to_owned(),
        variables: Map::new(),
        bundle_version: Some("1.2.3".to_owned()),
        limits: Limits {
            memory_bytes: 64 << 20,
            processes: 32,
            seconds: 30,
            network: false,
            disk_bytes: 1 << 30,
            disk_files: 100_000,
        },
    }
}

pub(crate) fn run_with(variables: Value) -> Run {
    let Value::Object(variables) = variables else {
        panic!("variables are an object")
    };
    Run { variables, ..run() }
}

/// Waits for a run to end, by the runner's own word that something changed.
pub(crate) fn end_of(runner: &Runner, id: &str) -> RunEnd {
    let state = wait_for(runner, id, |state| matches!(state, RunState::Ended(_)));
    match state {
        RunState::Ended(end) => *end,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn wait_for(runner: &Runner, id: &str, wanted: impl Fn(&RunState) -> bool) -> RunState {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let waiting = async {
        let mut seen = 0;
        loop {
            let state = runner.look(id).unwrap();
            if wanted(&state) {
                return state;
            }
            seen = runner.changed(seen).await;
        }
    };
    let waited = runtime.block_on(async { Clock::system().timeout(PATIENCE, waiting).await });
    waited.unwrap_or_else(|_| {
        panic!(
            "run {id} stays {:?}: {}",
            runner.look(id),
            runner.log(id).unwrap()
        )
    })
}

/// Waits for something that no runner tells of.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let clock = Clock::system();
    while !holds() {
        assert!(clock.monotonic() < PATIENCE, "{what} did not come about");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub(crate) fn busybox() -> PathBuf {
    let path = std::env::var_os("BUSYBOX")
        .expect("BUSYBOX names a static busybox (Debian: busybox-static)");
    let path = PathBuf::from(path);
    assert!(
        path.is_file(),
        "BUSYBOX names {}, which is no file",
        path.display()
    );
    path
}

pub(crate) fn readable_copy(from: &Path, directory: &Path, name: &str) -> PathBuf {
    let to = directory.join(name);
    std::fs::copy(from, &to).unwrap();
    std::fs::set_permissions(&to, Permissions::from_mode(0o755)).unwrap();
    to
}

pub(crate) fn make_root(root: &Path, script: &str) {
    let bin = root.join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    readable_copy(&busybox(), &bin, "busybox");
    for applet in APPLETS {
        symlink("busybox", bin.join(applet)).unwrap();
    }
    let entrypoint = bin.join("entrypoint");
    std::fs::write(&entrypoint, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&entrypoint, Permissions::from_mode(0o755)).unwrap();
}

pub(crate) fn failed_with(end: &RunEnd) -> (i32, String) {
    match &end.outcome {
        Outcome::Failed { code, message } => (*code, message.clone().unwrap_or_default()),
        other => panic!("it did not fail: {other:?}\n{}", end.log_tail),
    }
}

pub(crate) fn succeeded(end: &RunEnd) {
    assert_eq!(end.outcome, Outcome::Succeeded, "{}", end.log_tail);
}

/// The processes of this machine whose command line contains a text.
pub(crate) fn processes_with(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let is_self = entry.file_name() == *std::process::id().to_string();
        if line.contains(text) && !is_self {
            found.push(line);
        }
    }
    found
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    serde_json::from_value(value).unwrap_or_else(|_| panic!("{} is an object", json!(null)))
}
