//! `heddle bundle`: making bundles, what registries hold of them, and taking one out of the catalog by hand.
//!
//! A bundle goes in two steps: it is withdrawn, and swept when nothing uses it any more. Only `delete --force` goes faster,
//! and says what it costs.

mod delete;
mod list;
pub(super) mod listing;
mod make;
mod push;
mod withdraw;

use crate::client::Remote;
use crate::cmd::CommandContext;
use crate::terminal::Terminal;
use crate::wire::World;

const EXAMPLES: &str = "\
Examples:
  heddle bundle init my-db                   a bundle to start from
  heddle bundle push my-db                   and into the catalog of this server
  heddle bundle push my-db --to http://127.0.0.1:5000/acme/my-db:v1
  heddle bundle ls                           every bundle, and whether it is offered
  heddle bundle ls --registry dh --marked    what was withdrawn, and why
  heddle bundle withdraw hello-apb           no new instances; existing ones go on
  heddle bundle offer hello-apb              and back again
  heddle bundle delete hello-apb --force     away with it, if nothing uses it

A bundle is named by its offering, the offering's id or its first characters, its image (org/hello-apb:v1.0), or the
name of its object. `heddle catalog explain` tells all about one.";

/// Make bundles, look at them, and take them out of the catalog
#[derive(Debug, clap::Subcommand)]
#[command(after_help = EXAMPLES)]
pub(super) enum Command {
    /// List bundles, and whether they are offered
    #[command(visible_alias = "list")]
    Ls(list::Args),
    /// Write a bundle that works, to start from
    Init(make::InitArgs),
    /// Say what is wrong with a bundle before somebody else does
    Lint(make::LintArgs),
    /// Pack a directory and push it, to this server or to a registry
    Push(push::Args),
    /// Take a bundle out of the catalog, whatever its registry says; its instances go on
    Withdraw(withdraw::Args),
    /// Put a bundle back into the catalog that was withdrawn by hand
    Offer(withdraw::Args),
    /// Delete a bundle without waiting until it is swept
    Delete(delete::Args),
}

impl Command {
    pub(super) async fn run(self, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
        match self {
            Self::Init(args) => make::init(&args, terminal),
            Self::Lint(args) => make::lint(&args, terminal),
            Self::Push(args) => push::push(&args, world, terminal).await,
            Self::Ls(args) => {
                let remote = Remote::connect(&args.client).await?;
                list::list(&args, CommandContext::new(&remote, world, terminal)).await
            }
            Self::Withdraw(args) => {
                let remote = Remote::connect(&args.client).await?;
                withdraw::withdraw(&args, CommandContext::new(&remote, world, terminal)).await
            }
            Self::Offer(args) => {
                let remote = Remote::connect(&args.client).await?;
                withdraw::offer(&args, CommandContext::new(&remote, world, terminal)).await
            }
            Self::Delete(args) => {
                args.check()?;
                let remote = Remote::connect(&args.client).await?;
                delete::delete(&args, &remote, terminal).await
            }
        }
    }
}

#[cfg(test)]
mod tests;
