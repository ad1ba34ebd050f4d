//! How long does a registry take to be read, and what is it asked for: the first time, and when nothing is new?

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use heddle_api::sync_run::SyncRunStatus;

use super::super::front::Front;
use super::super::mesh::server::Server;
use super::super::report::{Goal, Row, Unit};
use super::docker_registry::{DockerRegistry, Mark, Tally};
use super::images::Images;
use super::readings::Readings;
use super::{Bench, Neighbours};
use heddle::wire::World;

/// How often it is read when nothing is new; the median counts.
const REPEATS: usize = 3;
/// What the goal for time is about.
const GOAL_IMAGES: u32 = 500;
const GOAL_SECONDS: f64 = 2.0;

/// One reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pass {
    pub(super) took: Duration,
    /// Processor time of heddle.
    pub(super) cpu: Duration,
    /// What the registry says that it was asked for.
    pub(super) asked: Tally,
}

pub(super) async fn run(bench: &mut Bench<'_>, program: &Path) -> anyhow::Result<()> {
    for count in bench.images.clone() {
        let measured = Box::pin(measure(bench, program, count)).await;
        measured.with_context(|| format!("with {count} images"))?;
    }
    Ok(())
}

async fn measure(bench: &mut Bench<'_>, program: &Path, count: u32) -> anyhow::Result<()> {
    let world = bench.world;
    let dir = bench.dir.join(format!("sync-{count}"));
    let registry = DockerRegistry::start(world, program, &dir.join("registry")).await?;
    bench.terminal.note(&format!("pushing {count} images"));
    let images = Images::pack(world, &dir.join("bundle"))?;
    images.push(world, &registry.url(), count).await?;
    let home = dir.join("heddle");
    let server = Server::start(world, home.clone()).await?;
    server.rest().await?;

    bench.terminal.note(&format!("reading {count} images"));
    let neighbours = Neighbours::watch(world)?;
    let begun = Begun::now(world, &server, &registry)?;
    let (readings, read) =
        Readings::declare(world, &server, "bench", "apiv2", &registry.url()).await?;
    let first = begun.pass(&read).await?;
    readings.live(count).await?;
    Front::of(&server, world, &home)?
        .offered(usize::try_from(count)?)
        .await?;
    let offered = world.clock.monotonic().saturating_sub(begun.started);
    server.rest().await?;
    let settled = server.usage()?.cpu.saturating_sub(begun.cpu);
    let rows = first_rows(count, &first, offered, settled);
    bench.rows(rows, neighbours.cores(world)?);

    let neighbours = Neighbours::watch(world)?;
    let mut passes = Vec::new();
    for _ in 0..REPEATS {
        let begun = Begun::now(world, &server, &registry)?;
        let read = readings.again().await?;
        passes.push(begun.pass(&read).await?);
        server.rest().await?;
    }
    let rows = repeated_rows(count, &middle(passes));
    bench.rows(rows, neighbours.cores(world)?);
    Ok(())
}

/// Before a reading.
struct Begun<'a> {
    world: &'a World,
    server: &'a Server<'a>,
    registry: &'a DockerRegistry,
    started: Duration,
    cpu: Duration,
    mark: Mark,
}

impl<'a> Begun<'a> {
    fn now(
        world: &'a World,
        server: &'a Server<'a>,
        registry: &'a DockerRegistry,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            mark: registry.mark(world)?,
            cpu: server.usage()?.cpu,
            started: world.clock.monotonic(),
            world,
            server,
            registry,
        })
    }

    /// After it.
    async fn pass(&self, read: &SyncRunStatus) -> anyhow::Result<Pass> {
        let took = self.world.clock.monotonic().saturating_sub(self.started);
        let cpu = self.server.usage()?.cpu.saturating_sub(self.cpu);
        let said = u64::try_from(read.requests.unwrap_or_default())?;
        let asked = self.registry.since(self.mark, said, self.world).await?;
        // Fewer is possible: a connection may end before the registry has heard a request, which is then sent again.
        anyhow::ensure!(
            asked.requests <= said,
            "heddle says that it took {said} requests, and the registry had {}",
            asked.requests
        );
        Ok(Pass { took, cpu, asked })
    }
}

/// The median in time. What was downloaded is worth knowing at its worst.
pub(super) fn middle(mut passes: Vec<Pass>) -> Pass {
    passes.sort_by_key(|pass| pass.took);
    let mut middle = passes.get(passes.len() / 2).copied().unwrap_or_default();
    for Pass { asked, .. } in passes {
        middle.asked.manifests = middle.asked.manifests.max(asked.manifests);
        middle.asked.blobs = middle.asked.blobs.max(asked.blobs);
    }
    middle
}

fn first_rows(count: u32, pass: &Pass, offered: Duration, settled: Duration) -> Vec<Row> {
    let what = format!("first reading of {count} images");
    let mut rows = vec![
        Row::figure(what.clone(), pass.took.as_secs_f64(), Unit::Seconds),
        Row::figure(
            format!("{what}, until all are offered"),
            offered.as_secs_f64(),
            Unit::Seconds,
        ),
    ];
    rows.extend(asked_rows(&what, &pass.asked));
    rows.push(cpu_row(&what, settled));
    rows
}

pub(super) fn repeated_rows(count: u32, pass: &Pass) -> Vec<Row> {
    let what = format!("reading {count} images again, nothing new");
    let mut took = Row::figure(what.clone(), pass.took.as_secs_f64(), Unit::Seconds);
    if count <= GOAL_IMAGES {
        took = took.goal(Goal::AtMost(GOAL_SECONDS));
    }
    let [requests, manifests, blobs] = asked_rows(&what, &pass.asked);
    vec![
        took,
        requests,
        manifests.goal(Goal::AtMost(0.0)),
        blobs.goal(Goal::AtMost(0.0)),
        cpu_row(&what, pass.cpu),
    ]
}

fn asked_rows(what: &str, asked: &Tally) -> [Row; 3] {
    [
        ("requests", asked.requests),
        ("manifests downloaded", asked.manifests),
        ("blobs downloaded", asked.blobs),
    ]
    .map(|(name, count)| Row::figure(format!("{what}, {name}"), count as f64, Unit::Count))
}

fn cpu_row(what: &str, cpu: Duration) -> Row {
    Row::figure(
        format!("{what}, CPU of heddle"),
        cpu.as_secs_f64(),
        Unit::Seconds,
    )
}
