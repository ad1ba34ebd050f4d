//! `heddle registry`: where bundles come from, and how well they can be read.
//!
//! Everything here writes or reads Registries and SyncRuns; the controllers do what they say.

mod add;
mod approve;
mod list;
mod sync;

use heddle_api::Registry;

use crate::client::target::check_name;
use crate::client::{Remote, objects};
use crate::cmd::CommandContext;
use crate::failure::Failure;
use crate::terminal::Terminal;
use crate::wire::World;

const EXAMPLES: &str = "\
Examples:
  heddle registry ls                         each registry, and whether it can be read
  heddle registry add dh --type dockerhub --org ansibleplaybookbundle --allow '.*-apb$'
  heddle registry add -f broker-config.yaml  as the Automation Service Broker had them
  heddle registry sync dh --wait             read it now
  heddle registry approve dh                 believe that many bundles are gone
  heddle delete registry dh                  withdraw its bundles, and let it go when nothing uses them";

/// Look after the registries that bundles come from
#[derive(Debug, clap::Subcommand)]
#[command(after_help = EXAMPLES)]
pub(super) enum Command {
    /// List registries, and whether they can be read
    #[command(visible_alias = "list")]
    Ls(list::Args),
    /// Add a registry, or those of an Automation Service Broker
    Add(Box<add::Args>),
    /// Read a registry now
    Sync(sync::Args),
    /// Believe a registry from which many bundles disappeared at once
    Approve(approve::Args),
}

impl Command {
    pub(super) async fn run(self, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
        match self {
            Self::Ls(args) => {
                let remote = Remote::connect(&args.client).await?;
                list::list(&args, CommandContext::new(&remote, world, terminal)).await
            }
            Self::Add(args) => {
                // A wrong command line is said before anybody is asked.
                let wanted = args.wanted(crate::files::read_bytes)?;
                let remote = Remote::connect(&args.client).await?;
                add::add(&args, wanted, &remote, terminal).await
            }
            Self::Sync(args) => {
                let remote = Remote::connect(&args.client).await?;
                sync::sync(&args, CommandContext::new(&remote, world, terminal)).await
            }
            Self::Approve(args) => {
                let remote = Remote::connect(&args.client).await?;
                approve::approve(&args, &remote, terminal).await
            }
        }
    }
}

/// The Registry of a name.
async fn named(name: &str, remote: &Remote) -> anyhow::Result<Registry> {
    check_name(name)?;
    let found = objects::one(remote, None, name).await?;
    Ok(found.ok_or_else(|| {
        let text = format!("there is no registry `{name}`; `heddle registry ls` lists them");
        Failure::NotFound(text)
    })?)
}

#[cfg(test)]
mod tests;
