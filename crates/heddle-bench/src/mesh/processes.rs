//! The processes of a benchmark: this program again, each time in another role.
//!
//! Load generator, sink and no-op server are separate processes, so that the kernel tells apart what each of them costs. A
//! helper ends when its standard input closes: when the benchmark drops it, and also when the benchmark itself is killed.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::process::Stdio;

use anyhow::{Context as _, ensure};
use heddle_rt::{OnError, Tasks};
use tokio_util::sync::CancellationToken;

use super::load::{self, Outcome};
use super::programs::{Running, bench};

/// A sink or a no-op server.
#[derive(Debug)]
pub(super) struct Helper {
    running: Running,
    pub(super) address: SocketAddr,
}

impl Helper {
    /// Starts `heddle-bench` in a role and waits until it says where it listens.
    pub(super) fn start(role: &str) -> anyhow::Result<Self> {
        Self::start_with(role, &[])
    }

    /// The same, with more arguments.
    pub(super) fn start_with(role: &str, args: &[&str]) -> anyhow::Result<Self> {
        let mut child = bench()?
            .arg(role)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start the {role}"))?;
        let stdout = child.stdout.take().expect("asked for with piped()");
        let running = Running(child);
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let address = line
            .trim()
            .parse()
            .with_context(|| format!("the {role} did not say where it listens, but {line:?}"))?;
        Ok(Self { running, address })
    }

    pub(super) fn pid(&self) -> u32 {
        self.running.pid()
    }
}

/// Runs the load generator as a process, to its end.
pub(super) fn load(args: &load::Args) -> anyhow::Result<Outcome> {
    Outcome::parse(&run_to_end(&args.command_line())?)
}

/// Runs this program to its end and takes what it printed. Blocks: a benchmark has nothing else to do meanwhile, and
/// should not.
pub(super) fn run_to_end(args: &[String]) -> anyhow::Result<String> {
    let mut command = bench()?;
    command
        .args(args)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    let output = tokio::task::block_in_place(|| command.output());
    let output = output.with_context(|| format!("cannot run heddle-bench {}", args.join(" ")))?;
    ensure!(
        output.status.success(),
        "heddle-bench {} ended with {}",
        args.join(" "),
        output.status
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Cancelled when whoever started this process lets go of its standard input.
pub(super) fn standard_input_closed(tasks: &Tasks) -> anyhow::Result<CancellationToken> {
    let closed = CancellationToken::new();
    let cancel = closed.clone();
    tasks.spawn_thread("standard-input", OnError::Report, move || {
        let mut ignored = Vec::new();
        let read = std::io::stdin()
            .lock()
            .read_to_end(&mut ignored)
            .map(|_| ());
        cancel.cancel();
        read
    })?;
    Ok(closed)
}
