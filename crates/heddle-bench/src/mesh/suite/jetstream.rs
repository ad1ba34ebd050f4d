//! How does it compare with JetStream, which keeps messages too? Publishing with acknowledgement, 64 in flight.
//!
//! Twice: as JetStream comes, where an acknowledged message may be lost to a power failure for up to two minutes, and with
//! a sync before every acknowledgement, which is what heddle promises.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

use super::super::lab::{Lab, Side};
use super::super::nats;
use super::super::programs::{self, Running};
use super::super::report::{Goal, Row};
use super::super::server::{STALL_MAX, Server};
use heddle::wire::World;

const IN_FLIGHT: u16 = 64;

pub(in super::super) async fn run(lab: &mut Lab<'_>) -> anyhow::Result<()> {
    let Some(binary) = lab.nats.clone() else {
        lab.terminal
            .note("no nats-server: skipping the comparison with JetStream (see --nats)");
        return Ok(());
    };
    let server = Server::start(lab.world, lab.dir.join("jetstream-heddle")).await?;
    let path = server.broker("jetstream").await?;
    server.rest().await?;
    let relaxed = JetStream::start(lab, &binary, Sync::Default).await?;
    let strict = JetStream::start(lab, &binary, Sync::Always).await?;
    let load = lab.load(server.events, &path);
    let ours = Side::ingest("durable ingest, beside JetStream", server.pid(), &load);
    let relaxed = relaxed.side(lab, "JetStream, default sync");
    let strict = strict.side(lab, "JetStream, sync_interval: always");
    let [ours, relaxed, strict] = lab.compare([&ours, &relaxed.1, &strict.1]).await?;
    for (name, peer, least) in [
        (
            "durable ingest ÷ JetStream, default (not durable)",
            &relaxed,
            0.9,
        ),
        (
            "durable ingest ÷ JetStream, sync_interval: always",
            &strict,
            15.0,
        ),
    ] {
        let row = Row::ratio(name, |sample| sample.rate, &ours, peer);
        lab.row(row.goal(Goal::AtLeast(least)));
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sync {
    Default,
    Always,
}

/// A nats-server with JetStream on a directory of the benchmark.
#[derive(Debug)]
struct JetStream {
    running: Running,
    address: SocketAddr,
}

impl JetStream {
    async fn start(lab: &Lab<'_>, binary: &Path, sync: Sync) -> anyhow::Result<Self> {
        let address = programs::unused_address().await?;
        let dir = lab.dir.join(format!("jetstream-{sync:?}").to_lowercase());
        lab.world.vfs.create_dir_all(&dir)?;
        let config = dir.join("nats.conf");
        let text = config_text(address, &dir, sync);
        lab.world
            .vfs
            .write_atomic(&config, text.as_bytes(), 0o600)?;
        let mut command = Command::new(binary);
        command
            .arg("-c")
            .arg(&config)
            .arg("-l")
            .arg(dir.join("nats.log"));
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn();
        let child = child.with_context(|| format!("cannot start {}", binary.display()))?;
        let mut server = Self {
            running: Running(child),
            address,
        };
        server.listening(lab.world).await?;
        Ok(server)
    }

    async fn listening(&mut self, world: &World) -> anyhow::Result<()> {
        let started = world.clock.monotonic();
        while heddle_rt::net::connect(self.address).await.is_err() {
            if let Some(status) = self.running.0.try_wait()? {
                bail!("nats-server ended early with {status}");
            }
            if world.clock.monotonic().saturating_sub(started) > STALL_MAX {
                bail!("nats-server does not listen on {}", self.address);
            }
            world
                .clock
                .sleep(std::time::Duration::from_millis(20))
                .await;
        }
        Ok(())
    }

    /// The side of a comparison; the server stays alive with it.
    fn side(self, lab: &Lab<'_>, name: &str) -> (Self, Side) {
        let args = nats::Args {
            address: self.address,
            in_flight: IN_FLIGHT,
            seconds: lab.seconds,
            warm_up: lab.warm_up(),
            data_bytes: 1024,
        };
        let side = Side {
            name: name.to_owned(),
            pid: self.running.pid(),
            command: args.command_line(),
            sink: None,
        };
        (self, side)
    }
}

fn config_text(address: SocketAddr, dir: &Path, sync: Sync) -> String {
    let sync = match sync {
        Sync::Default => "",
        Sync::Always => "  sync_interval: always\n",
    };
    format!(
        "listen: \"{address}\"\njetstream {{\n  store_dir: {:?}\n{sync}}}\n",
        dir.display().to_string()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_strict_server_syncs_every_message() {
        let text = |sync| config_text(([127, 0, 0, 1], 4222).into(), Path::new("a dir"), sync);
        assert_eq!(
            text(Sync::Always),
            "listen: \"127.0.0.1:4222\"\njetstream {\n  store_dir: \"a dir\"\n  sync_interval: always\n}\n"
        );
        assert!(!text(Sync::Default).contains("sync_interval"));
    }
}
