//! The conformance suite against heddle's own API server, in process: no socket between client and server.
//!
//! The server comes with its janitor, so every check applies. What the same checks say of a real kube-apiserver is in
//! `tests/kubernetes.rs`.

use std::sync::Arc;

use anyhow::Result;
use heddle_apiserver::{ADMINS, ApiServer, Identity, Limits, Options, Registry, Tokens};
use heddle_rt::{Chance, Clock, MemoryVfs};
use heddle_sim::conformance::{self, Janitor};
use heddle_store::Store;
use kube::Client;

async fn server() -> Result<ApiServer> {
    let clock = Clock::system();
    let disk = MemoryVfs::new().shared();
    let store = Store::open(heddle_store::Options::new(disk, "store", clock.clone()))?;
    Ok(ApiServer::open(Options {
        store,
        clock,
        chance: Chance::system(),
        registry: Arc::new(Registry::heddle()?),
        namespaces: vec!["default"],
        tokens: Tokens::default(),
        limits: Limits::default(),
    })
    .await?)
}

/// Runs one group against a server of its own, with its janitor at work.
async fn run(group: &str) -> Result<()> {
    let server = server().await?;
    let identity = Identity::new("admin", &[ADMINS]);
    let client = Client::new(server.in_process(identity), "default");
    tokio::select! {
        outcome = conformance::run(&client, group, Janitor::Present) => outcome,
        () = server.run_janitor() => anyhow::bail!("the janitor ended"),
    }
}

heddle_sim::conformance_tests!(run);
