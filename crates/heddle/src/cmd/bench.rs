//! `heddle bench`: whole paths, measured on the machine at hand.
//!
//! Numbers are for comparison side by side in one run, never for a test to depend on.

mod api;
mod front;
mod histogram;
mod machine;
mod mesh;
mod osb;
mod process;
mod programs;
mod registry;
mod report;
mod session;
mod wire;

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
    Mesh(mesh::Args),
    Osb(osb::Args),
    Registry(registry::Args),
    // The processes that `mesh` starts; by hand they help to look into a figure.
    #[command(hide = true)]
    Load(mesh::load::Args),
    #[command(hide = true)]
    Sink(mesh::sink::Args),
    #[command(hide = true)]
    Noop(mesh::noop::Args),
    #[command(hide = true)]
    Nats(mesh::nats::Args),
}

pub(super) async fn run(args: Args, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
    match args.what {
        What::Api(args) => api::run(args, world, terminal).await,
        What::Mesh(args) => Box::pin(mesh::run(args, world, terminal)).await,
        What::Osb(args) => Box::pin(osb::run(args, world, terminal)).await,
        What::Registry(args) => Box::pin(registry::run(args, world, terminal)).await,
        What::Load(args) => mesh::load::run(args, world, terminal),
        What::Sink(args) => mesh::sink::run(args, world, terminal),
        What::Noop(args) => mesh::noop::run(args, world, terminal).await,
        What::Nats(args) => mesh::nats::run(args, world, terminal),
    }
}
