//! `heddle repair resources`: the store of resources, read record by record.

use heddle_store::OpenError;

use super::RepairArgs;
use crate::terminal::Terminal;
use crate::wire::World;

/// Keep every intact object of a damaged store
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    repair: RepairArgs,
}

pub(super) fn run(args: &Args, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
    let _lock = args.repair.take(world)?;
    let dir = args.repair.data_dir.join("store");
    match heddle_store::check(&world.vfs, &dir) {
        Ok(objects_count) => {
            terminal.say(&format!(
                "nothing to repair: all {objects_count} objects are intact"
            ))?;
            Ok(())
        }
        Err(error @ OpenError::Corrupt { .. }) => {
            Err(anyhow::Error::new(error).context("cannot be repaired; restore a backup"))
        }
        Err(error) => Err(error.into()),
    }
}
