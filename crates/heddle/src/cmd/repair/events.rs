//! `heddle repair events`: log and journal that do not fit together, made to fit with what is left.

use heddle_mesh::log::Reserve;
use heddle_mesh::log::embedded::{self, Options};
use heddle_rt::Tasks;

use super::RepairArgs;
use crate::terminal::Terminal;
use crate::wire::World;

/// Accept that a part of the log or the journal is gone, and go on with the rest
#[derive(Debug, clap::Args)]
pub(in crate::cmd) struct Args {
    #[command(flatten)]
    repair: RepairArgs,
}

pub(super) fn run(args: &Args, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
    let _lock = args.repair.take(world)?;
    let options = Options {
        vfs: world.vfs.clone(),
        dir: args.repair.data_dir.join("events"),
        clock: world.clock.clone(),
        tasks: Tasks::new("repair"),
        mode: heddle_store::Mode::Inline,
        segment_bytes: None,
        reserve: Reserve::Bytes(0),
    };
    let found = embedded::repair(&options, args.repair.dry_run)?;
    let Some(problem) = found.problem else {
        terminal.say("nothing to repair: log and journal belong together")?;
        return Ok(());
    };
    terminal.say(&problem)?;
    for consequence in &found.consequences {
        terminal.say(&format!("  {consequence}"))?;
    }
    terminal.say(if args.repair.dry_run {
        "nothing was changed; without --dry-run this is accepted"
    } else {
        "accepted; the server can be started"
    })?;
    Ok(())
}
