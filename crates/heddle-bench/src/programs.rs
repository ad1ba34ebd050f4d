//! The programs that a benchmark starts: where they are, where they can listen, and that they end with it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, Command};

use anyhow::{Context as _, ensure};

/// This program, with other arguments.
pub(super) fn bench() -> anyhow::Result<Command> {
    Ok(Command::new(own_file()?))
}

/// The product: the file that `HEDDLE` names, or else the one beside this program.
pub(super) fn heddle() -> anyhow::Result<Command> {
    let file = match std::env::var_os("HEDDLE") {
        Some(file) => PathBuf::from(file),
        None => own_file()?.with_file_name("heddle"),
    };
    ensure!(
        file.is_file(),
        "there is no heddle to measure at {}; build it beside this program (cargo build --release), or name one with HEDDLE",
        file.display()
    );
    Ok(Command::new(file))
}

fn own_file() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("cannot find this program's own file")
}

/// A process that ends when this is dropped.
#[derive(Debug)]
pub(super) struct Running(pub(super) Child);

impl Running {
    pub(super) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Ends the process without warning and waits until it has.
    pub(super) fn kill(&mut self) {
        // Either it runs and can be killed, or it has ended already; both are fine.
        self.0.kill().unwrap_or_default();
        self.0.wait().unwrap_or_default();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// An address on which nobody listens, at least just now.
pub(super) async fn unused_address() -> anyhow::Result<SocketAddr> {
    let listener = heddle_rt::net::bind((Ipv4Addr::LOCALHOST, 0).into()).await?;
    Ok(listener.address())
}

/// The program of that name that a shell would find.
pub(super) fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}
