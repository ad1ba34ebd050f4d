//! The processes of a run: this binary, started again as each of them in turn.
//!
//! [`main`] is called before anything else is: a process with threads can enter no user namespace. Which of the processes it
//! becomes is told by its environment. Each inherits its standard input from the one above: the write end of the pipe on which
//! all of them report to the shim. None of them prints: what is printed is the program's.

mod enter;
mod init;
mod mounts;
mod outputs;
mod probe;
mod program;
mod report;
mod supervise;
mod user;
mod verdict;

use std::ffi::OsStr;
use std::os::unix::process::parent_id;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;

pub(super) use probe::{Probed, read_answer};
pub(super) use supervise::{KNOWN, MINE};

/// Says which process this one is to become.
const STAGE: &str = "HEDDLE_SANDBOX_STAGE";

/// Present when the program runs as a user of its own, which only root can arrange.
const DEDICATED: &str = "HEDDLE_SANDBOX_DEDICATED";

/// The process that started this one; when it is gone already, nobody is there to end this one.
const PARENT: &str = "HEDDLE_SANDBOX_PARENT";

/// Asks for a sandbox with nothing in it, to find out whether one can be made.
pub(super) const PROBE: &str = "HEDDLE_SANDBOX_PROBE";

/// Becomes the shim of the run in `directory`, or one of its children. Call it before any thread is started.
pub fn main(directory: &Path) -> ExitCode {
    let stage = std::env::var_os(STAGE);
    match stage.as_deref().and_then(OsStr::to_str) {
        None if std::env::var_os(PROBE).is_some() => probe::run(directory),
        None => supervise::run(directory),
        Some("enter") => enter::run(directory),
        Some("init") => init::run(directory),
        Some("program") => program::run(directory),
        Some(_) => ExitCode::FAILURE,
    }
}

/// This binary again, as another process of the same run. It inherits nothing but its standard streams.
fn again(shim: &[impl AsRef<OsStr>], directory: &Path, stage: &str) -> Command {
    let (program, arguments) = shim.split_first().expect("a shim is a command");
    let mut command = Command::new(program);
    command
        .args(arguments)
        .arg(directory)
        .env_clear()
        .env(STAGE, stage)
        .env(PARENT, std::process::id().to_string())
        .stdin(Stdio::inherit());
    for kept in [DEDICATED, PROBE] {
        if let Some(value) = std::env::var_os(kept) {
            command.env(kept, value);
        }
    }
    command
}

/// This process dies with the one that started it.
fn die_with_parent() -> Result<(), String> {
    set_pdeathsig(Signal::SIGKILL)
        .map_err(|error| format!("cannot ask to die with the shim: {error}"))?;
    let expected = std::env::var_os(PARENT);
    let is_there = expected.is_some_and(|pid| *pid == *parent_id().to_string());
    is_there
        .then_some(())
        .ok_or_else(|| "whoever started this is gone".to_owned())
}

fn is_dedicated() -> bool {
    std::env::var_os(DEDICATED).is_some()
}
