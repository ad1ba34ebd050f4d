//! Observe: the Bundle, its registry, its revisions, its rivals for the same offering, and, when it may go, its users.

use heddle_api::bundle::{BundlePhase, BundleStatus};
use heddle_api::tombstone::Tombstone;
use heddle_api::well_known::{SYSTEM_NAMESPACE, WITHDRAWN_ANNOTATION};
use heddle_api::{Bundle, BundleRevision, Registry};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::DynamicObject;

use super::phase::{self, PhaseInputs};
use super::{HOLD, RELEASE, SWEEP};
use crate::bundle_index::BundleIndex;
use crate::reconcile::{Ctx, Error, StepName};
use crate::usage::{Known, Usage, offering};

#[derive(Debug, Clone)]
pub(crate) struct World {
    pub bundle: Bundle,
    pub registry: Option<Registry>,
    /// All revisions of the bundle.
    pub revisions: Vec<BundleRevision>,
    /// Name of an older bundle that has the same offering, if there is one.
    pub rival: Option<String>,
    /// Who uses the bundle; `None` if nobody had to look.
    pub users: Option<Vec<String>>,
    /// What is remembered of the bundle already.
    pub tombstone: Option<Tombstone>,
    /// Whether this reconcile has let it go.
    pub is_released: bool,
    pub now: Timestamp,
}

pub(super) async fn observe(
    ctx: &Ctx,
    known: &Known,
    bundle_index: &BundleIndex,
    bundle: Bundle,
) -> Result<World, Error> {
    let name = bundle.name_any();
    let mut world = World {
        registry: ctx.find_global(&bundle.spec.registry).await?,
        revisions: bundle_index.revisions(ctx, &name).await?,
        rival: rival(ctx, bundle_index, &bundle).await?,
        bundle,
        users: None,
        tombstone: None,
        is_released: false,
        now: ctx.options.clock.now(),
    };
    renew(ctx, &mut world).await?;
    let is_sweeping = world.status().phase == BundlePhase::Sweeping;
    if phase::is_to_look(&world.inputs(), world.now) {
        world.users = Some(users(ctx, known, &world.bundle, is_sweeping).await?);
    }
    if is_sweeping {
        let name = Tombstone::object_name(&world.bundle.spec.service_id);
        let found: Option<ConfigMap> = ctx.find(SYSTEM_NAMESPACE, &name).await?;
        world.tombstone = found.as_ref().and_then(Tombstone::from_config_map);
    }
    Ok(world)
}

/// Before another revision becomes the current one it is looked at live: the one before it is forgotten then.
async fn renew(ctx: &Ctx, world: &mut World) -> Result<(), Error> {
    let status = world.status();
    let newest = status.seen.and_then(|seen| seen.revision);
    let Some(newest) = newest.filter(|newest| Some(newest) != status.current_revision.as_ref())
    else {
        return Ok(());
    };
    let live: Option<BundleRevision> = ctx.find_global(&newest).await?;
    world.revisions.retain(|known| known.name_any() != newest);
    world.revisions.extend(live);
    Ok(())
}

/// Who uses the bundle. A cache may know somebody; that nobody does, and all that a sweep relies on, is read live.
async fn users(
    ctx: &Ctx,
    known: &Known,
    bundle: &Bundle,
    is_sweeping: bool,
) -> Result<Vec<String>, Error> {
    let service = &bundle.spec.service_id;
    let users = known.of(&offering(service));
    if !users.is_empty() && !is_sweeping {
        return Ok(users);
    }
    let usage = Usage::read(ctx).await?;
    let users = usage.of_service(service);
    Ok(users.into_iter().map(str::to_owned).collect())
}

/// Ids that come from names can meet; who came first keeps its place.
async fn rival(
    ctx: &Ctx,
    bundle_index: &BundleIndex,
    bundle: &Bundle,
) -> Result<Option<String>, Error> {
    let same = bundle_index.bundles(ctx, &bundle.spec.service_id).await?;
    let age = |bundle: &Bundle| (bundle.creation_timestamp(), bundle.name_any());
    let is_live = |other: &&Bundle| {
        let status = other.status.as_ref();
        status.is_none_or(|status| status.phase == BundlePhase::Live)
    };
    let older = same.iter().filter(|other| age(other) < age(bundle));
    let older = older.filter(is_live);
    Ok(older.map(ResourceExt::name_any).next())
}

impl World {
    pub(super) fn status(&self) -> BundleStatus {
        self.bundle.status.clone().unwrap_or_default()
    }

    pub(super) fn inputs(&self) -> PhaseInputs {
        let annotations = self.bundle.annotations();
        let withdrawn = annotations.get(WITHDRAWN_ANNOTATION);
        PhaseInputs {
            before: self.status(),
            is_withdrawn: withdrawn.is_some_and(|value| value == "true"),
            is_deleted: self.bundle.metadata.deletion_timestamp.is_some(),
            registry: self.registry.as_ref().map(phase::view),
            is_used: self.users.as_ref().map(|users| !users.is_empty()),
        }
    }

    /// The revision that new instances get: the newest usable one, and until that is there, the one before.
    pub(super) fn current(&self) -> Option<&BundleRevision> {
        let status = self.bundle.status.as_ref()?;
        let newest = status.seen.as_ref().and_then(|seen| seen.revision.as_ref());
        let stays = |name: &String| {
            let mut revisions = self.revisions.iter();
            revisions.find(|revision| {
                revision.name_any() == *name && revision.metadata.deletion_timestamp.is_none()
            })
        };
        let before = status.current_revision.as_ref();
        (newest.and_then(stays)).or_else(|| before.and_then(stays))
    }

    pub(super) fn absorb(&mut self, step_name: StepName, answer: Option<DynamicObject>) {
        let bundle = answer.and_then(|object| object.try_parse::<Bundle>().ok());
        match step_name {
            HOLD | SWEEP => self.bundle = bundle.unwrap_or_else(|| self.bundle.clone()),
            RELEASE => self.is_released = true,
            _ => {}
        }
    }
}
