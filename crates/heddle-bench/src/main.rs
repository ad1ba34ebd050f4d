//! `heddle-bench`: whole paths, measured on the machine at hand.
//!
//! Numbers are for comparison side by side in one run, never for a test to depend on.

mod api;
mod applications;
mod front;
mod health;
mod machine;
mod mesh;
mod osb;
mod process;
mod programs;
mod registry;
mod report;
mod session;
mod wire;

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser as _;
use heddle::terminal::Terminal;
use heddle::wire::World;

/// As in the product: what is measured in this process allocates as it would there.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measure whole paths of heddle on this machine
#[derive(Debug, clap::Parser)]
#[command(name = "heddle-bench", version, max_term_width = 110)]
#[command(subcommand_required = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    Api(api::Args),
    Health(health::Args),
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

fn main() -> ExitCode {
    heddle::take_small_pages();
    heddle::exit(run)
}

fn run(terminal: &mut Terminal) -> anyhow::Result<()> {
    let cli = Cli::parse();
    let world = World::real();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(Box::pin(measure(cli.what, &world, terminal)))
}

async fn measure(what: What, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
    match what {
        What::Api(args) => api::run(args, world, terminal).await,
        What::Health(args) => {
            let session = args.session.clone();
            session.run(args, health::measure, world, terminal).await
        }
        What::Mesh(args) => {
            let session = args.session.clone();
            session.run(args, mesh::measure, world, terminal).await
        }
        What::Osb(args) => {
            let session = args.session.clone();
            session.run(args, osb::measure, world, terminal).await
        }
        What::Registry(args) => {
            let session = args.session.clone();
            session.run(args, registry::measure, world, terminal).await
        }
        What::Load(args) => mesh::load::run(args, world, terminal),
        What::Sink(args) => mesh::sink::run(args, world, terminal),
        What::Noop(args) => mesh::noop::run(args, world, terminal).await,
        What::Nats(args) => mesh::nats::run(args, world, terminal),
    }
}
