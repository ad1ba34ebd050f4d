//! How long does an action take that does nothing, and how long the same program without a sandbox?
//!
//! Both take turns. The end of the plain one is waited for; that of an action is looked for every millisecond, as it tells
//! nobody, so that its figures are up to one millisecond too high.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use heddle_api::action::{Action, Limits, Outcome, Run, RunState};
use heddle_bundles::sandbox::{Options, Program, Runner, SandboxError};
use heddle_rt::metrics::Latencies;
use serde_json::Map;

use super::super::programs;
use super::super::report::{Goal, Row, Unit};
use super::{Bench, Neighbours, millis};
use heddle::bundles::SHIM;
use heddle::wire::World;

/// Where the program is in its root.
const TRUE: &str = "bin/true";
const POLL: Duration = Duration::from_millis(1);
/// Before the first that is measured: files are in memory then.
const WARM_UP: u32 = 3;
const GOAL_MILLIS: f64 = 20.0;
/// What actions have that nobody said anything else about.
const LIMITS: Limits = Limits {
    memory_bytes: 512 << 20,
    processes: 256,
    seconds: 600,
    network: false,
    disk_bytes: 1 << 30,
    disk_files: 100_000,
};

pub(super) async fn run(bench: &mut Bench<'_>, busybox: &Path) -> anyhow::Result<()> {
    let (world, dir) = (bench.world, bench.dir.join("sandbox"));
    let stage = Stage::set(world, &dir, busybox)?;
    match tokio::task::block_in_place(|| stage.runner.check()) {
        Err(refusal @ SandboxError::Unable { .. }) => {
            return bench.left_out(&format!("no launch of a sandbox is measured: {refusal}"));
        }
        checked => checked?,
    };
    let neighbours = Neighbours::watch(world)?;
    let mut figures = Figures::default();
    for number in 0..WARM_UP + bench.launches {
        let plain = stage.plain()?;
        let (answered, over) = stage.launch(number).await?;
        if number >= WARM_UP {
            let figures = [
                (&mut figures.plain, plain),
                (&mut figures.answered, answered),
                (&mut figures.over, over),
            ];
            for (latencies, took) in figures {
                latencies.record(took);
            }
        }
    }
    let foreign_cores = neighbours.cores(world)?;
    bench.rows(figures.rows(), foreign_cores);
    Ok(())
}

#[derive(Debug, Default)]
struct Figures {
    plain: Latencies,
    answered: Latencies,
    over: Latencies,
}

impl Figures {
    fn rows(&self) -> [Row; 6] {
        let row = |what: &str, latencies: &Latencies, share: f64| {
            Row::figure(what, millis(latencies.percentile(share)), Unit::Millis)
        };
        let goal = Goal::AtMost(GOAL_MILLIS);
        let ratio =
            |share| millis(self.over.percentile(share)) / millis(self.plain.percentile(share));
        [
            row("an action that does nothing, p50", &self.over, 0.5).goal(goal),
            row("an action that does nothing, p99", &self.over, 0.99).goal(goal),
            row(
                "an action that does nothing, until it is under way, p50",
                &self.answered,
                0.5,
            ),
            row("the same program without a sandbox, p50", &self.plain, 0.5),
            row("the same program without a sandbox, p99", &self.plain, 0.99),
            Row::figure("an action ÷ the same program, p50", ratio(0.5), Unit::Ratio),
        ]
    }
}

/// A root file system with one program, and a runner.
struct Stage<'a> {
    world: &'a World,
    root: PathBuf,
    runner: Runner,
}

impl<'a> Stage<'a> {
    fn set(world: &'a World, dir: &Path, busybox: &Path) -> anyhow::Result<Self> {
        let root = dir.join("root");
        let (bin, program) = (root.join("bin"), root.join("bin/busybox"));
        world.vfs.create_dir_all(&bin)?;
        std::fs::copy(busybox, &program)
            .with_context(|| format!("cannot copy {}", busybox.display()))?;
        // The program's user is not the one that made them.
        for path in [&root, &bin, &program] {
            std::fs::set_permissions(path, Permissions::from_mode(0o755))
                .with_context(|| format!("cannot open {} to all", path.display()))?;
        }
        std::os::unix::fs::symlink("busybox", root.join(TRUE))
            .context("cannot link the program")?;
        let shim = programs::heddle()?.get_program().to_owned();
        let options = Options::new(dir.join("runs"), vec![shim, SHIM.into()]);
        let runner = Runner::open(options, world.clock.clone(), world.chance.clone())?;
        Ok(Self {
            world,
            root,
            runner,
        })
    }

    /// The program as it is.
    fn plain(&self) -> anyhow::Result<Duration> {
        let mut command = Command::new(self.root.join(TRUE));
        command.args(["provision", "--extra-vars", "{}"]);
        command
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let started = self.world.clock.monotonic();
        let status = tokio::task::block_in_place(|| command.status())
            .context("cannot start busybox; is it a program of this machine?")?;
        let took = self.world.clock.monotonic().saturating_sub(started);
        ensure!(status.success(), "busybox true ended with {status}");
        Ok(took)
    }

    /// The program as an action: until it is under way, and until it is over.
    async fn launch(&self, number: u32) -> anyhow::Result<(Duration, Duration)> {
        let clock = &self.world.clock;
        let run = Run {
            id: format!("bench-{number}"),
            action: Action::Provision,
            manifest_digest: String::new(),
            instance: "bench".to_owned(),
            variables: Map::new(),
            bundle_version: None,
            limits: LIMITS,
        };
        let program = Program {
            entrypoint: vec![format!("/{TRUE}")],
            ..Program::default()
        };
        let started = clock.monotonic();
        tokio::task::block_in_place(|| self.runner.start(&run, &self.root, &program))?;
        let answered = clock.monotonic().saturating_sub(started);
        let end = loop {
            if let RunState::Ended(end) = self.runner.look(&run.id)? {
                break end;
            }
            clock.sleep(POLL).await;
        };
        let over = clock.monotonic().saturating_sub(started);
        if end.outcome != Outcome::Succeeded {
            bail!(
                "busybox true did not succeed as an action, {:?}: {}; it has to be one that is linked statically",
                end.outcome,
                end.log_tail.trim()
            );
        }
        tokio::task::block_in_place(|| self.runner.forget(&run.id))?;
        Ok((answered, over))
    }
}
