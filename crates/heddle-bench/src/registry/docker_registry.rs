//! Debian's docker-registry on loopback, and what its log says it was asked for.
//!
//! It is configured as its package does it: files, and a cache in memory. Its log has a line for every answer, in the
//! format that web servers share, written once the answer is sent.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::super::mesh::server::STALL_MAX;
use super::super::programs::{self, Running};
use super::super::wire;
use heddle::wire::World;

const POLL: Duration = Duration::from_millis(20);
/// The line of an answer may come a little after the answer.
const LOG_WAIT_MAX: Duration = Duration::from_secs(5);

/// A registry that answers.
#[derive(Debug)]
pub(super) struct DockerRegistry {
    running: Running,
    address: SocketAddr,
    log: PathBuf,
}

/// A moment in the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark(usize);

/// What a registry was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) requests: u64,
    /// Manifests that were sent, not only spoken of.
    pub(super) manifests: u64,
    /// Likewise.
    pub(super) blobs: u64,
}

impl DockerRegistry {
    pub(super) async fn start(world: &World, program: &Path, dir: &Path) -> anyhow::Result<Self> {
        let address = programs::unused_address().await?;
        world.vfs.create_dir_all(dir)?;
        let config = dir.join("config.yml");
        let text = config_text(address, &dir.join("storage"));
        world.vfs.write_atomic(&config, text.as_bytes(), 0o600)?;
        let output = |name: &str| {
            let path = dir.join(name);
            let mut options = std::fs::OpenOptions::new();
            let file = options.create(true).append(true).open(&path);
            file.with_context(|| format!("cannot write {}", path.display()))
        };
        let mut command = Command::new(program);
        command.arg("serve").arg(&config);
        command
            .stdin(Stdio::null())
            .stdout(output("access.log")?)
            .stderr(output("error.log")?);
        let child = command.spawn();
        let child = child.with_context(|| format!("cannot start {}", program.display()))?;
        let mut registry = Self {
            running: Running(child),
            address,
            log: dir.join("access.log"),
        };
        registry
            .listening(world, &dir.join("error.log"))
            .await
            .with_context(|| format!("cannot use {}", program.display()))?;
        Ok(registry)
    }

    async fn listening(&mut self, world: &World, errors: &Path) -> anyhow::Result<()> {
        let started = world.clock.monotonic();
        while !matches!(wire::ask(self.address, "GET", "/v2/").await, Ok((200, _))) {
            if let Some(status) = self.running.0.try_wait()? {
                let said = world.vfs.read(errors).unwrap_or_default();
                let said = String::from_utf8_lossy(&said).trim().to_owned();
                bail!("it ended early with {status}: {said}");
            }
            if world.clock.monotonic().saturating_sub(started) > STALL_MAX {
                bail!("it does not answer on {}", self.address);
            }
            world.clock.sleep(POLL).await;
        }
        Ok(())
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Now.
    pub(super) fn mark(&self, world: &World) -> anyhow::Result<Mark> {
        Ok(Mark(self.said(world)?.len()))
    }

    /// What it was asked for since then, at least so many requests.
    pub(super) async fn since(
        &self,
        mark: Mark,
        requests: u64,
        world: &World,
    ) -> anyhow::Result<Tally> {
        let started = world.clock.monotonic();
        loop {
            let tally = Tally::of(self.said(world)?.get(mark.0..).unwrap_or_default());
            let waited = world.clock.monotonic().saturating_sub(started);
            if tally.requests >= requests || waited > LOG_WAIT_MAX {
                return Ok(tally);
            }
            world.clock.sleep(POLL).await;
        }
    }

    fn said(&self, world: &World) -> anyhow::Result<String> {
        let bytes = world.vfs.read(&self.log);
        let bytes = bytes.with_context(|| format!("cannot read {}", self.log.display()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl Tally {
    /// Counts the lines of a log; one that is not whole yet does not count.
    pub(super) fn of(log: &str) -> Self {
        let mut tally = Self::default();
        for line in log
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
        {
            let Some((method, path, status)) = request(line) else {
                continue;
            };
            tally.requests += 1;
            if method != "GET" || status == 304 {
                continue;
            }
            tally.manifests += u64::from(path.contains("/manifests/"));
            tally.blobs += u64::from(path.contains("/blobs/"));
        }
        tally
    }
}

/// Method, path and status out of `1.2.3.4 - - [time] "GET /path HTTP/1.1" 200 17 "" "agent"`.
fn request(line: &str) -> Option<(&str, &str, u16)> {
    let (_, rest) = line.split_once("] \"")?;
    let (request, rest) = rest.split_once("\" ")?;
    let (method, rest_of_request) = request.split_once(' ')?;
    let (path, _) = rest_of_request.rsplit_once(' ')?;
    Some((method, path, rest.split(' ').next()?.parse().ok()?))
}

pub(super) fn config_text(address: SocketAddr, storage: &Path) -> String {
    format!(
        "version: 0.1\nlog: {{level: error}}\nhttp: {{addr: {:?}}}\n\
         storage:\n  cache: {{blobdescriptor: inmemory}}\n  filesystem: {{rootdirectory: {:?}}}\n",
        address.to_string(),
        storage.display().to_string()
    )
}
