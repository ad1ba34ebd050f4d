//! What a shim is told, on its standard input; it keeps that in a file for its children until the run is over.
//!
//! It carries secrets, so only the shim that has the run writes it down, for its owner alone. The control groups are the
//! shim's own to make and are told to its children beside it.

use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use heddle_api::action::Run;
use serde::Deserialize;
use serde_json::json;

use super::Program;
use super::files::{RunFiles, read_bounded, write_lightly};

/// Parameters and credentials together, as JSON.
pub(super) const VARIABLES_BYTES_MAX: usize = 1 << 20;

/// With what is around the variables.
const ORDER_BYTES_MAX: u64 = 4 << 20;

/// One run, with everything that is needed to start it.
#[derive(Clone, Deserialize)]
pub(super) struct Order {
    pub(super) run: Run,
    /// The image's root file system. Nothing is written to it but missing mount points.
    pub(super) root: PathBuf,
    /// What the instance owns.
    pub(super) data: PathBuf,
    pub(super) program: Program,
    pub(super) shim: Vec<PathBuf>,
    pub(super) user: u32,
    pub(super) cgroups: bool,
    /// The file with the rules of the network, which are read anew for each connection.
    #[serde(default)]
    pub(super) network_rules: PathBuf,
}

impl fmt::Debug for Order {
    /// Variables stay out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Order")
            .field("run", &self.run)
            .finish_non_exhaustive()
    }
}

impl Order {
    pub(super) fn to_text(&self) -> String {
        let Program {
            entrypoint,
            cmd,
            env,
            working_dir,
        } = &self.program;
        json!({
            "run": self.run,
            "root": self.root,
            "data": self.data,
            "program": {"entrypoint": entrypoint, "cmd": cmd, "env": env, "working_dir": working_dir},
            "shim": self.shim,
            "user": self.user,
            "cgroups": self.cgroups,
            "network_rules": self.network_rules,
        })
        .to_string()
    }

    /// Takes an order from whoever gives one, and keeps it for [`Order::read`].
    pub(super) fn take(files: &RunFiles, input: impl Read) -> io::Result<Self> {
        let mut bytes = Vec::new();
        input.take(ORDER_BYTES_MAX).read_to_end(&mut bytes)?;
        let order = serde_json::from_slice(&bytes).map_err(io::Error::other)?;
        write_lightly(&files.order(), &bytes)?;
        Ok(order)
    }

    pub(super) fn read(directory: &Path) -> io::Result<Self> {
        let files = RunFiles {
            directory: directory.to_owned(),
        };
        let bytes = read_bounded(&files.order(), ORDER_BYTES_MAX)?;
        serde_json::from_slice(&bytes).map_err(io::Error::other)
    }
}
