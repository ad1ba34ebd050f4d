//! The processes of a run: this binary, started again as each of them in turn.
//!
//! [`main`] is called before anything else is: a process with threads can enter no user namespace. Which of the processes it
//! becomes is told by its environment. The standard input of each is its line to the one above, on which it reports and is
//! told to go on. So each can be started, and get ready, while the one above is still busy. None of them prints: what is
//! printed is the program's.

mod init;
mod loopback;
mod mounts;
mod namespaces;
mod outputs;
mod probe;
mod program;
mod proxy;
mod report;
mod supervise;
mod syscalls;
mod user;
mod verdict;
mod weigh;

pub(crate) use proxy::head_fuzzing as proxy_fuzzing;

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

pub(super) use probe::{Probed, read_answer};
pub(super) use supervise::{KNOWN, MINE};

/// Says which process this one is to become.
const STAGE: &str = "HEDDLE_SANDBOX_STAGE";

/// Present when the program runs as a user of its own, which only root can arrange.
const DEDICATED: &str = "HEDDLE_SANDBOX_DEDICATED";

/// Asks for a sandbox with nothing in it, to find out whether one can be made.
pub(super) const PROBE: &str = "HEDDLE_SANDBOX_PROBE";

/// Becomes the shim of the run in `directory`, or one of its children. Call it before any thread is started.
pub fn main(directory: &Path) -> ExitCode {
    let stage = std::env::var_os(STAGE);
    match stage.as_deref().and_then(OsStr::to_str) {
        None if std::env::var_os(PROBE).is_some() => probe::run(directory),
        None => supervise::run(directory),
        Some("init") => init::run(directory),
        Some("program") => program::run(directory),
        Some(_) => ExitCode::FAILURE,
    }
}

/// This binary again, as another process of the same run, at the other end of a line. It inherits nothing but its standard
/// streams.
fn again(shim: &[impl AsRef<OsStr>], directory: &Path, stage: &str, line: UnixStream) -> Command {
    let (program, arguments) = shim.split_first().expect("a shim is a command");
    let mut command = Command::new(program);
    command
        .args(arguments)
        .arg(directory)
        .env_clear()
        .env(STAGE, stage)
        .stdin(Stdio::from(OwnedFd::from(line)));
    for kept in [DEDICATED, PROBE] {
        if let Some(value) = std::env::var_os(kept) {
            command.env(kept, value);
        }
    }
    command
}

fn is_dedicated() -> bool {
    std::env::var_os(DEDICATED).is_some()
}
