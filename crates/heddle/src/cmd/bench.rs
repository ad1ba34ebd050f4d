//! `heddle bench`: whole paths, measured on the machine at hand.
//!
//! Numbers are for comparison side by side in one run, never for a test to depend on.

mod api;
mod process;

use crate::terminal::Terminal;
use crate::wire::World;

/// Measure whole paths on this machine
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    Api(api::Args),
}

pub(super) async fn run(args: Args, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
    match args.what {
        What::Api(args) => api::run(args, world, terminal).await,
    }
}
