//! `heddle repair resources`: a store that a server refuses, made usable from what is intact.

use heddle_store::repair::{self, Finding, Plan};

use super::RepairArgs;
use crate::terminal::Terminal;
use crate::wire::{STORE, World};

const DETAILS: &str = "\
Every object whose record is intact is kept as it is. Where one cannot be read, an
earlier form of it is looked for, in the damaged file and in the verified copies that
a running server keeps beside its store. What comes back in an earlier form and what
is lost is listed. The damaged file stays, under another name.";

/// Keep every intact object of a damaged store
#[derive(Debug, clap::Args)]
#[command(after_help = DETAILS)]
pub(in crate::cmd) struct Args {
    #[command(flatten)]
    repair: RepairArgs,
}

pub(super) fn run(args: &Args, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
    let _lock = args.repair.take(world)?;
    let plan = match repair::examine(&world.vfs, &args.repair.data_dir.join(STORE))? {
        Finding::Sound { objects_count } => {
            let sound = format!("nothing to repair: {} intact", objects(objects_count));
            return Ok(terminal.say(&sound)?);
        }
        Finding::Damaged(plan) => plan,
    };
    tell(&plan, terminal)?;
    if args.repair.dry_run {
        return Ok(terminal.say("nothing was changed; leave --dry-run away to repair")?);
    }
    let kept = plan.carry_out()?;
    terminal.say(&format!(
        "repaired; the damaged file is {}. Start the server, and restart whatever watches it",
        kept.display()
    ))?;
    Ok(())
}

fn tell(plan: &Plan, terminal: &mut Terminal) -> std::io::Result<()> {
    terminal.say(&format!("the store is damaged: {}", plan.reason))?;
    terminal.say(&format!("{} intact", objects(plan.intact_count)))?;
    match &plan.copy {
        Some(copy) => terminal.say(&format!("verified copy: {}", copy.display()))?,
        None => terminal.say("there is no verified copy")?,
    }
    if !plan.older.is_empty() {
        terminal.say(&format!(
            "{} may be out of date, or have been deleted since:",
            objects(plan.older.len() as u64)
        ))?;
    }
    for (key, version) in &plan.older {
        terminal.say(&format!("  {key}  as of version {version}"))?;
    }
    if !plan.lost.is_empty() {
        terminal.say(&format!("{} lost:", objects(plan.lost.len() as u64)))?;
    }
    for key in &plan.lost {
        terminal.say(&format!("  {key}"))?;
    }
    match plan.unnamed_count {
        Some(0) => {}
        Some(count) => {
            let more = objects(count);
            terminal.say(&format!("{more} lost whose names could not be read"))?;
        }
        None => {
            terminal.say("more may be lost: neither their names nor their number can be read")?
        }
    }
    Ok(())
}

fn objects(count: u64) -> String {
    heddle_api::counted_that(count, "object", "is", "are")
}
