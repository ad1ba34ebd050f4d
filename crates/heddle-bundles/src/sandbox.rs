//! Runs of actions, each shut in.
//!
//! ```text
//!   server ── Runner ──> shim ──> init (process 1) ──> program
//!               │          │        │                    └ no capabilities, no privileges to gain, limits
//!               │          │        └ namespaces, mounts; reaps; reads what the program wrote; kills what is left
//!               │          └ outlives the server: holds the lock, keeps time and log, writes the end
//!               └ looks at the directory of a run: nothing else connects it to the shim
//! ```
//! All of them are this binary, started again: nothing is forked, so nothing that a thread of the server holds is copied.
//! What a run is told and how it ended are files in its directory. Whoever comes after a crash finds out from them:
//!
//! | lock | `started` | `ended.json` | |
//! |---|---|---|---|
//! | free | no | no | it may be started |
//! | held | | no | it is under way |
//! | | | yes | it is over |
//! | free | yes | no | nobody knows how it ended |
//!
//! Nothing runs outside of a sandbox: where the kernel refuses one, [`Runner::check`] says what to do about it and a start
//! is refused. What a run is for, and whether it is tried again, is decided elsewhere.
//!
//! Every run has a network of its own with nothing in it. One that may use the network finds a proxy on its loopback, which is
//! a thread of the shim: it connects by the same rules as the server does, and not to the server.

mod cgroup;
mod disk;
mod files;
mod log;
mod mask;
mod network;
mod order;
mod runner;
pub mod shim;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

pub use cgroup::LimitedBy;
pub use network::NetworkRules;
pub use runner::Runner;

/// Nobody else should run as this user. It needs no entry in any list of users.
pub const USER: u32 = 64_199;

/// Where runs are kept and how they are started.
#[derive(Clone, Debug)]
pub struct Options {
    /// Keeps runs, what instances own, and logs. Made when missing, for its owner alone.
    pub directory: PathBuf,
    /// A command that calls [`shim::main`] with the argument that is put behind it, before it starts any thread.
    pub shim: Vec<OsString>,
    /// The user and group that programs run as when the server is root. Otherwise they run as the server's user.
    pub user: u32,
    /// Whether control groups may be used. Without them each process is limited on its own.
    pub cgroups: bool,
    /// Logs of forgotten runs that are kept.
    pub logs_count_max: usize,
    /// Bytes of all logs of forgotten runs.
    pub logs_bytes_max: u64,
    /// Archives of instances that are gone.
    pub archives_count_max: usize,
    /// Bytes of all of them, as files occupy them.
    pub archives_bytes_max: u64,
    /// Where runs that may use the network may connect to.
    pub network: NetworkRules,
}

impl Options {
    /// The usual ones.
    pub fn new(directory: PathBuf, shim: Vec<OsString>) -> Self {
        Self {
            directory,
            shim,
            user: USER,
            cgroups: true,
            logs_count_max: 500,
            logs_bytes_max: 64 << 20,
            archives_count_max: 200,
            archives_bytes_max: 16 << 30,
            network: NetworkRules::default(),
        }
    }
}

/// What an image says about its program.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
pub struct Program {
    /// The program and its first arguments.
    pub entrypoint: Vec<String>,
    /// Taken for the program when there is no entrypoint; else the action takes its place.
    pub cmd: Vec<String>,
    /// `NAME=value`.
    pub env: Vec<String>,
    /// Where the program starts; the root when empty.
    pub working_dir: String,
}

/// What this machine lets a sandbox do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The user that programs run as, as this machine sees it.
    pub user: u32,
    /// What holds memory and the number of processes within their limits.
    pub limited_by: LimitedBy,
}

/// Why the sandbox does not do what it is asked for.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The request makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// A run is under way, and what is asked for has to wait for its end.
    #[error("run {0} is under way")]
    Busy(String),
    /// This machine refuses what a sandbox is made of.
    #[error("no sandbox can be made here: {why}; {remedy}")]
    Unable {
        /// What was refused.
        why: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// The disk or the process table.
    #[error("cannot {what}")]
    Io {
        /// What was tried.
        what: String,
        #[source]
        source: io::Error,
    },
}

impl SandboxError {
    fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}
