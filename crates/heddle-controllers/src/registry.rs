//! Registry: read when it is due, and what was read written down.
//!
//! ```text
//!   due? ──> SyncRun: running ──> the registry is read ──> judged ──> bundles, `seen`, revisions ──> SyncRun: ended ──> status
//!              (what never ended before is interrupted)     pure       what is gone comes last
//! ```
//! One reading at a time; whoever asks during one gets the next. A failure changes nothing but the Registry's own status. If
//! anything cannot be written, the run ends there and the registry is read again: everything written so far is true, and
//! absences, which are written last, are never written in part of a run.
//!
//! This controller says what was seen. What that means for a bundle (offered, withdrawn, gone) is decided by the
//! controller of Bundles, and nothing is ever deleted here but old SyncRuns.

mod due;
pub(crate) mod judge;
mod observe;
pub(crate) mod opening;
mod plan;
mod status;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use heddle_api::well_known::{SYSTEM_NAMESPACE, field_manager};
use heddle_api::{Bundle, Registry};
use heddle_rt::Chance;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use kube::runtime::reflector::{ObjectRef, Store};
use parking_lot::Mutex;
use serde_json::Value;

use crate::metrics::Metrics;
use crate::reconcile::{Controller, Ctx, Error, Reconciler, Step, StepName};
use crate::references::Target;
use crate::watch::Change;
use crate::{ControllerStart, Parts, Watches};
use due::Memory;
use heddle_api::bundle_source::ReadRequest;
use heddle_api::evidence::{Reading, Trouble};
use observe::{Outcome, World};

const HOLD: StepName = "hold";
const RELEASE: StepName = "release";
const RUN: StepName = "run";
const RUN_STATE: StepName = "run-state";
const RUN_REMOVAL: StepName = "run-removal";
const REVISION: StepName = "revision";
const BUNDLE: StepName = "bundle";
const SEEN: StepName = "seen";
const RUN_END: StepName = "run-end";

/// A tenth of the interval keeps registries that were read together from being read together for ever.
const JITTER_SHARE: u32 = 10;

pub(crate) fn start(start: &ControllerStart, watches: &mut Watches, parts: &mut Parts) {
    let numbers = start.options.numbers.clone();
    {
        let numbers = numbers.clone();
        (watches.registries).on_change(move |change| match change {
            Change::Deleted(registry) => numbers.forget_registry(&registry.name_any()),
            _ => numbers.registry(change.object()),
        });
    }
    let registries = RegistryController {
        bundles: watches.bundles.store(),
        memories: Mutex::default(),
        chance: start.options.chance.clone(),
        numbers,
    };
    let controller = Controller::new(registries, &mut watches.registries, targets)
        .requeue_referrers_on_change(&mut watches.system_secrets)
        .requeue_each_mapped(&mut watches.bundles, turned);
    start.add(controller, parts);
}

fn targets(registry: &Registry) -> Vec<Target> {
    let secret = registry.spec.auth_secret_name.iter();
    secret
        .map(|name| Target::of::<Secret>(SYSTEM_NAMESPACE, name))
        .collect()
}

/// The Registry of a bundle that came, went, or is in another phase.
fn turned(change: &Change<'_, Bundle>) -> Vec<ObjectRef<Registry>> {
    let phase = |bundle: &Bundle| bundle.status.as_ref().map(|status| status.phase);
    if let Change::Applied {
        old: Some(old),
        new,
        ..
    } = change
        && phase(old) == phase(new)
    {
        return Vec::new();
    }
    vec![ObjectRef::new(&change.object().spec.registry)]
}

/// The controller, with what it remembers of its last readings by name of their Registries.
#[derive(Debug)]
pub(crate) struct RegistryController {
    /// For counting only.
    bundles: Store<Bundle>,
    memories: Mutex<HashMap<String, Memory>>,
    chance: Chance,
    numbers: Metrics,
}

impl RegistryController {
    fn memory(&self, registry: &Registry) -> Option<Memory> {
        self.memories.lock().get(&registry.name_any()).cloned()
    }

    /// A reading has ended, and everything that came of it but the Registry's status is written.
    fn remember(&self, world: &World) {
        let (Some(outcome), Some(run)) = (&world.outcome, &world.run) else {
            return;
        };
        let registry = &world.registry;
        let seconds = u64::try_from(registry.spec.refresh_interval_seconds).unwrap_or(1);
        let interval = Duration::from_secs(seconds.max(1));
        let pause = interval + self.chance.jitter(interval / JITTER_SHARE);
        let pause = SignedDuration::try_from(pause).unwrap_or(SignedDuration::MAX);
        let memory = Memory {
            run: run.name.clone(),
            cause: run.cause,
            generation: registry.metadata.generation,
            secret: world.secret_version.clone(),
            approved: due::approval(registry).map(str::to_owned),
            next: (outcome.ended.checked_add(pause)).unwrap_or(Timestamp::MAX),
        };
        let name = registry.name_any();
        let took = outcome.ended.duration_since(run.began);
        let took = Duration::try_from(took).unwrap_or_default();
        self.numbers.synced(&name, outcome.is_success(), took);
        self.memories.lock().insert(name, memory);
    }
}

impl Reconciler for RegistryController {
    type Kind = Registry;
    type World = World;
    const NAME: &'static str = field_manager::REGISTRY;

    async fn observe(&self, ctx: &Ctx, object: Registry) -> Result<World, Error> {
        let memory = self.memory(&object);
        let counts = observe::counts(&self.bundles, &object.name_any());
        observe::observe(ctx, object, memory, counts).await
    }

    fn plan(&self, world: &World) -> Vec<Step> {
        plan::plan(world)
    }

    async fn call_out(&self, ctx: &Ctx, world: &mut World) -> Result<(), Error> {
        let (Some(run), Some(bundles)) = (world.run.clone(), ctx.bundles()) else {
            return Ok(());
        };
        let name = world.registry.name_any();
        let reading = match world.credentials.clone() {
            Ok(credentials) => {
                let request = ReadRequest {
                    registry: name.clone(),
                    spec: Arc::new(world.registry.spec.clone()),
                    credentials,
                    known: world.known(),
                    run: run.name.clone(),
                };
                bundles.read(request).await
            }
            Err(trouble) => Reading {
                trouble: Some(trouble),
                ..Reading::default()
            },
        };
        let trouble = reading.trouble.as_ref().map(Trouble::message);
        match trouble {
            None => {
                tracing::debug!(registry = name, run = run.name, "a registry was read");
            }
            // Whoever asked for it wants to be called.
            Some(why) if world.registry.spec.fail_on_error => {
                tracing::error!(
                    registry = name,
                    run = run.name,
                    why,
                    "a registry cannot be read"
                );
            }
            Some(why) => {
                tracing::warn!(
                    registry = name,
                    run = run.name,
                    why,
                    "a registry cannot be read"
                );
            }
        }
        let judged = judge::judge(&world.case(&run.name, &reading));
        for error in &judged.errors {
            tracing::debug!(
                registry = name,
                run = run.name,
                image = error.image,
                why = error.message,
                "an image could not be judged"
            );
        }
        world.outcome = Some(Outcome {
            ended: ctx.options.clock.now(),
            trouble: reading.trouble,
            requests: reading.requests,
            judged,
        });
        Ok(())
    }

    fn plan_after_call(&self, world: &World) -> Vec<Step> {
        plan::conclude(world)
    }

    fn on_applied(&self, world: &mut World, step_name: StepName, answer: Option<DynamicObject>) {
        if step_name == RUN_END {
            self.remember(world);
            world.is_concluded = true;
        }
        if step_name == RELEASE {
            self.memories.lock().remove(&world.registry.name_any());
        }
        world.absorb(step_name, answer);
    }

    fn status(&self, world: &World, now: Timestamp) -> Option<Value> {
        status::status(world, now)
    }

    fn requeue_after(&self, world: &World, now: Timestamp) -> Option<Duration> {
        let memory = self.memory(&world.registry);
        if world.registry.metadata.deletion_timestamp.is_some() || !world.is_served {
            return None;
        }
        due::requeue_after(memory.as_ref(), now)
    }
}
