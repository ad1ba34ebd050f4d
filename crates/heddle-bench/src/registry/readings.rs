//! A Registry of the heddle under test: declared, read, read again, each time until what came of it is known.

use std::time::Duration;

use anyhow::{Context as _, bail};
use heddle_api::sync_run::SyncRunStatus;
use heddle_api::well_known::SYNC_ANNOTATION;
use heddle_api::{Registry, SyncRun};
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::super::mesh::server::Server;
use heddle::failure::Failure;
use heddle::wire::World;

/// Often enough for what takes fractions of a second, and too seldom to be felt.
const POLL: Duration = Duration::from_millis(10);
/// A failsafe only: a reading that takes longer has given up by itself.
const WAIT_MAX: Duration = Duration::from_secs(25 * 60);

/// The readings of one Registry.
#[derive(Debug)]
pub(super) struct Readings<'a> {
    world: &'a World,
    registries: Api<Registry>,
    runs: Api<SyncRun>,
    name: String,
}

impl<'a> Readings<'a> {
    /// Declares a Registry of everything at `url` and waits for its first reading.
    pub(super) async fn declare(
        world: &'a World,
        server: &Server<'_>,
        name: &str,
        kind: &str,
        url: &str,
    ) -> anyhow::Result<(Self, SyncRunStatus)> {
        let client = server.client().await?;
        let readings = Self {
            world,
            registries: Api::all(client.clone()),
            runs: Api::all(client),
            name: name.to_owned(),
        };
        let request = readings.request();
        let object: Value = json!({
            "metadata": {"name": name, "annotations": {SYNC_ANNOTATION: request}},
            // No reading but those that are asked for.
            "spec": {"type": kind, "url": url, "whiteList": [".*"], "refreshIntervalSeconds": 86_400},
        });
        let object = serde_json::from_value(object)?;
        let params = PostParams::default();
        let created = readings.registries.create(&params, &object).await;
        created.with_context(|| format!("cannot create registry {name}"))?;
        let first = readings.answered(&request).await?;
        Ok((readings, first))
    }

    /// Asks for a reading and waits for it.
    pub(super) async fn again(&self) -> anyhow::Result<SyncRunStatus> {
        let request = self.request();
        let patch = json!({"metadata": {"annotations": {SYNC_ANNOTATION: request}}});
        let (params, patch) = (PatchParams::default(), Patch::Merge(&patch));
        self.registries.patch(&self.name, &params, &patch).await?;
        self.answered(&request).await
    }

    /// Waits until so many bundles of the registry can be had.
    pub(super) async fn live(&self, count: u32) -> anyhow::Result<()> {
        let started = self.world.clock.monotonic();
        loop {
            let status = self.registries.get(&self.name).await?.status;
            let live = status.and_then(|status| status.live_bundle_count);
            let live = live.unwrap_or_default();
            if i64::from(live) >= i64::from(count) {
                return Ok(());
            }
            self.wait(started, &format!("{live} of {count} bundles are offered"))
                .await?;
        }
    }

    fn request(&self) -> String {
        format!("bench-{}", self.world.chance.suffix(8))
    }

    async fn answered(&self, request: &str) -> anyhow::Result<SyncRunStatus> {
        let started = self.world.clock.monotonic();
        loop {
            let registry = self.registries.get(&self.name).await?;
            let status = registry.status.unwrap_or_default();
            if status.answered_request.as_deref() == Some(request)
                && let Some(run) = &status.last_sync_run
            {
                let run = self.runs.get(run).await?.status.unwrap_or_default();
                if run.finished_at.is_some() {
                    return complete(run);
                }
            }
            self.wait(started, &format!("registry {} is not read", self.name))
                .await?;
        }
    }

    async fn wait(&self, started: Duration, what: &str) -> anyhow::Result<()> {
        if self.world.clock.monotonic().saturating_sub(started) > WAIT_MAX {
            return Err(Failure::TimedOut(format!("{what} after {WAIT_MAX:?}")).into());
        }
        self.world.clock.sleep(POLL).await;
        Ok(())
    }
}

/// A reading that failed measures nothing.
fn complete(run: SyncRunStatus) -> anyhow::Result<SyncRunStatus> {
    if let Some(error) = run.errors.first() {
        bail!("{} could not be read: {}", error.image, error.message);
    }
    anyhow::ensure!(run.conditions.is_ready(), "the registry could not be read");
    Ok(run)
}
