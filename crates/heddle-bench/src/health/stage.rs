//! A heddle with so many Applications, all of them judged, and questions to it.

use std::time::Duration;

use anyhow::{Context as _, bail};
use heddle_api::Trigger;
use heddle_api::health::MeshHealth;
use http::Request;
use kube::Api;
use serde::de::DeserializeOwned;

use super::super::applications::{self, NAMESPACE};
use super::super::mesh::server::{STALL_MAX, Server};
use super::HealthBench;
use heddle::files;

const POLL: Duration = Duration::from_millis(50);

/// The options of a heddle that sends no heartbeats.
pub(super) const WITHOUT: &[&str] = &["--no-heartbeats"];

/// A heddle, and whoever asks it.
pub(super) struct Stage<'a> {
    pub(super) server: Server<'a>,
    pub(super) client: kube::Client,
    world: &'a heddle::wire::World,
    metrics_token: String,
}

impl<'a> Stage<'a> {
    /// Starts one with so many Applications, and waits until each is what it will be.
    pub(super) async fn start(
        health: &HealthBench<'a>,
        name: &str,
        options: &'static [&'static str],
        count: u32,
    ) -> anyhow::Result<Self> {
        let dir = health.dir.join(format!("{name}-{count}"));
        let server = Server::start_with(health.world, dir.clone(), options).await?;
        let client = server.client().await?;
        applications::declare(&client, count).await?;
        let token = files::read_text(&dir.join("metrics-token"))?;
        let stage = Self {
            server,
            client,
            world: health.world,
            metrics_token: token.trim().to_owned(),
        };
        let measured = options.is_empty();
        stage
            .until("all applications are judged", async |stage| {
                let mesh: MeshHealth = stage.ask("/heddle/v1/health").await?;
                let counts = mesh.applications;
                // Without heartbeats nobody knows, and that is all there is to know.
                let known = if measured {
                    counts.healthy
                } else {
                    counts.unknown
                };
                Ok((known == count).then_some(()))
            })
            .await?;
        stage.server.rest().await?;
        Ok(stage)
    }

    /// Waits until a Trigger is in force.
    pub(super) async fn until_trigger_ready(&self, name: &str) -> anyhow::Result<()> {
        let triggers: Api<Trigger> = Api::namespaced(self.client.clone(), NAMESPACE);
        self.until("the trigger is ready", async |_| {
            let status = triggers.get(name).await?.status.unwrap_or_default();
            Ok(status.conditions.is_ready().then_some(()))
        })
        .await?;
        Ok(())
    }

    /// What is answered to the administrator.
    pub(super) async fn ask<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        let request = Request::get(path).body(Vec::new())?;
        let text = self.client.request_text(request).await;
        let text = text.with_context(|| format!("GET {path} is refused"))?;
        Ok(serde_json::from_str(&text)?)
    }

    /// A number that Prometheus would read; the sum of all with that name.
    pub(super) async fn metric(&self, name: &str) -> anyhow::Result<f64> {
        let bearer = format!("Bearer {}", self.metrics_token);
        let request = Request::get("/metrics")
            .header("authorization", bearer)
            .body(Vec::new())?;
        let url = format!("http://{}", self.server.control);
        let remote = heddle::client::Remote::anonymous(url.parse()?, url)?;
        let text = remote.send(request).await?.text();
        let lines = text.lines().filter_map(|line| line.strip_prefix(name));
        let values = lines.filter(|rest| rest.starts_with([' ', '{']));
        let numbers: Vec<f64> = values
            .filter_map(|rest| rest.rsplit_once(' ')?.1.parse().ok())
            .collect();
        if numbers.is_empty() {
            bail!("there is no metric {name}");
        }
        Ok(numbers.iter().sum())
    }

    /// Asks until there is an answer; gives how long that took.
    pub(super) async fn until<T>(
        &self,
        what: &str,
        ask: impl AsyncFn(&Self) -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<Duration> {
        let clock = &self.world.clock;
        let started = clock.monotonic();
        loop {
            let found = ask(self).await?;
            let waited = clock.monotonic().saturating_sub(started);
            if found.is_some() {
                return Ok(waited);
            }
            if waited > STALL_MAX {
                bail!("{what}: not within {STALL_MAX:?}");
            }
            clock.sleep(POLL).await;
        }
    }
}
