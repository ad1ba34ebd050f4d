//! `heddle repair`: what to do about a data directory that a server refuses.
//!
//! Each subcommand looks after one part of the directory, works on a stopped one only, keeps what it replaces beside it, and
//! with `--dry-run` says what it would do and changes nothing.

mod events;
mod resources;

use std::path::PathBuf;

use heddle_rt::vfs::Lock;

use crate::config::DATA_DIR_DEFAULT;
use crate::terminal::Terminal;
use crate::wire::{self, World};

const EXAMPLES: &str = "\
Examples:
  heddle repair resources --dry-run          what is damaged, and what could be kept
  heddle repair resources --data-dir /var/lib/heddle
  heddle repair events --dry-run             what is lost if a part of the log or journal stays away";

/// Keep what is intact of a damaged data directory, and say what is not
#[derive(Debug, clap::Subcommand)]
#[command(after_help = EXAMPLES)]
pub(super) enum Command {
    /// Repair the store of resources
    Resources(resources::Args),
    /// Make the log of events and its journal fit together again
    Events(events::Args),
}

/// What every repair is told.
#[derive(Clone, Debug, clap::Args)]
struct RepairArgs {
    /// The data directory of a server that is not running
    #[arg(long, env = "HEDDLE_DATA_DIR", value_name = "DIR", default_value = DATA_DIR_DEFAULT)]
    data_dir: PathBuf,

    /// Say what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
}

impl Command {
    pub(super) fn run(self, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
        match self {
            Self::Resources(args) => resources::run(&args, world, terminal),
            Self::Events(args) => events::run(&args, world, terminal),
        }
    }
}

impl RepairArgs {
    /// Takes the directory away from any server while it is repaired.
    fn take(&self, world: &World) -> anyhow::Result<Lock> {
        wire::take_existing(&self.data_dir, world)
    }
}
