//! Observe: the Registry, what opens it, and, when it is to be read, everything that is known of what it holds.

use std::collections::BTreeSet;

use heddle_api::bundle::BundlePhase;
use heddle_api::evidence::{Credentials, Known, Reading, Trouble};
use heddle_api::sync_run::SyncCause;
use heddle_api::well_known::REGISTRY_LABEL;
use heddle_api::{Bundle, BundleRevision, Registry, SyncRun, names};
use jiff::Timestamp;
use kube::api::{DynamicObject, ListParams};
use kube::runtime::reflector::Store;
use kube::{Api, ResourceExt as _};

use super::due::{self, Memory};
use super::judge::{self, Case, Judged};
use super::{HOLD, RELEASE, opening};
use crate::reconcile::{Ctx, Error, StepName};

#[derive(Debug)]
pub(crate) struct World {
    pub registry: Registry,
    /// Whether there is somebody who can read registries.
    pub is_served: bool,
    pub credentials: Result<Credentials, Trouble>,
    pub secret_version: Option<String>,
    /// Set when the registry is to be read in this reconcile.
    pub run: Option<Run>,
    /// All its bundles; empty unless it is to be read or to go.
    pub bundles: Vec<Bundle>,
    /// Names of their revisions; empty unless it is to be read.
    pub revisions: BTreeSet<String>,
    /// Earlier runs; empty unless it is to be read.
    pub runs: Vec<SyncRun>,
    pub counts: PhaseCounts,
    /// What came of the reading.
    pub outcome: Option<Outcome>,
    /// Whether everything that came of the reading is written.
    pub is_concluded: bool,
    /// Whether this reconcile has let it go.
    pub is_released: bool,
}

/// The reading of this reconcile.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub name: String,
    pub cause: SyncCause,
    pub began: Timestamp,
}

/// What came of a reading.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    pub ended: Timestamp,
    pub trouble: Option<Trouble>,
    pub requests: u64,
    pub judged: Judged,
}

impl Outcome {
    pub(super) fn is_success(&self) -> bool {
        self.trouble.is_none()
    }
}

/// How many bundles a registry has, by what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PhaseCounts {
    pub live: i32,
    pub withdrawn: i32,
}

/// From a cache, which is good enough to count.
pub(super) fn counts(bundles: &Store<Bundle>, registry: &str) -> PhaseCounts {
    let mut counts = PhaseCounts::default();
    for bundle in bundles.state() {
        if bundle.spec.registry != registry {
            continue;
        }
        let phase = bundle.status.as_ref().map(|status| status.phase);
        match phase.unwrap_or_default() {
            BundlePhase::Live => counts.live += 1,
            BundlePhase::Marked | BundlePhase::Sweeping => counts.withdrawn += 1,
        }
    }
    counts
}

pub(super) async fn observe(
    ctx: &Ctx,
    registry: Registry,
    memory: Option<Memory>,
    counts: PhaseCounts,
) -> Result<World, Error> {
    let secret = opening::secret(ctx, &registry.spec).await?;
    let secret_version = secret.as_ref().and_then(|secret| secret.resource_version());
    let is_served = ctx.bundles().is_some();
    let now = ctx.options.clock.now();
    let cause = due::cause(&registry, secret_version.as_deref(), memory.as_ref(), now);
    let name = registry.name_any();
    let run = cause.filter(|_| is_served).map(|cause| Run {
        name: names::sync_run(&name, now.as_nanosecond()),
        cause,
        began: now,
    });
    let mut world = World {
        credentials: opening::credentials(&registry.spec, secret.as_ref()),
        registry,
        is_served,
        secret_version,
        run,
        bundles: Vec::new(),
        revisions: BTreeSet::new(),
        runs: Vec::new(),
        counts,
        outcome: None,
        is_concluded: false,
        is_released: false,
    };
    let is_leaving = world.registry.metadata.deletion_timestamp.is_some();
    if is_leaving || world.run.is_some() {
        let of_registry = ListParams::default().fields(&format!("spec.registry={name}"));
        world.bundles = ctx.list_all(&of_registry).await?;
    }
    if world.run.is_some() {
        let label = format!("{REGISTRY_LABEL}={}", names::registry_label(&name));
        let of_registry = ListParams::default().labels(&label);
        let revisions: Api<BundleRevision> = Api::all(ctx.client.clone());
        // Descriptions are large, and only names are asked for.
        let revisions = revisions.list_metadata(&of_registry).await?;
        world.revisions = revisions.iter().map(|found| found.name_any()).collect();
        world.runs = ctx.list_all(&of_registry).await?;
        world.runs.retain(|run| run.spec.registry == name);
    }
    Ok(world)
}

impl World {
    pub(super) fn known(&self) -> Vec<Known> {
        let cause = self.run.as_ref().map(|run| run.cause);
        let afresh = cause == Some(SyncCause::Startup);
        judge::known(&self.bundles, &self.revisions, afresh)
    }

    pub(super) fn case<'a>(&'a self, run: &'a str, reading: &'a Reading) -> Case<'a> {
        let status = self.registry.status.as_ref();
        Case {
            registry: self.registry.metadata.name.as_deref().unwrap_or_default(),
            spec: &self.registry.spec,
            suspicion: status.and_then(|status| status.suspicion.as_ref()),
            approved: due::approval(&self.registry),
            run,
            bundles: &self.bundles,
            revisions: &self.revisions,
            reading,
        }
    }

    pub(super) fn absorb(&mut self, step_name: StepName, answer: Option<DynamicObject>) {
        let registry = answer.and_then(|object| object.try_parse::<Registry>().ok());
        match step_name {
            HOLD => self.registry = registry.unwrap_or_else(|| self.registry.clone()),
            RELEASE => self.is_released = true,
            _ => {}
        }
    }
}
