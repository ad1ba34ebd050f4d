//! Observe: the BundleRevision, its bundle and siblings, its registry and what opens it, and who uses them.

use std::collections::BTreeSet;

use heddle_api::bundle_source::FetchError;
use heddle_api::evidence::{Credentials, Trouble};
use heddle_api::{Bundle, BundleRevision, Registry};
use kube::ResourceExt;
use kube::api::{DynamicObject, ListParams};

use super::{HOLD, RELEASE, plan};
use crate::bundle_index::BundleIndex;
use crate::reconcile::{Ctx, Error, StepName};
use crate::references::Target;
use crate::registry::opening;
use crate::usage::{Known, Usage};

#[derive(Debug, Clone)]
pub(crate) struct World {
    pub revision: BundleRevision,
    pub bundle: Option<Bundle>,
    /// All revisions of the bundle, this one included.
    pub siblings: Vec<BundleRevision>,
    pub registry: Option<Registry>,
    pub credentials: Result<Credentials, Trouble>,
    /// Names of revisions that are known to be used.
    pub used: BTreeSet<String>,
    /// Everybody there is; set before a removal is decided, and only then.
    pub usage: Option<Usage>,
    /// Whether all of the image is kept here; `None` where nothing is kept.
    pub is_kept: Option<bool>,
    /// Why it could not be fetched, if it was tried.
    pub trouble: Option<FetchError>,
    /// Whether this reconcile has let it go.
    pub is_released: bool,
}

pub(super) async fn observe(
    ctx: &Ctx,
    known: &Known,
    bundle_index: &BundleIndex,
    revision: BundleRevision,
) -> Result<World, Error> {
    let bundle = ctx.find_global(&revision.spec.bundle).await?;
    let registry: Option<Registry> = ctx.find_global(&revision.spec.registry).await?;
    let credentials = match &registry {
        Some(registry) => {
            let secret = opening::secret(ctx, &registry.spec).await?;
            opening::credentials(&registry.spec, secret.as_ref())
        }
        None => Ok(Credentials::None),
    };
    let digest = &revision.spec.manifest_digest;
    let name = revision.spec.bundle.clone();
    let siblings = bundle_index.revisions(ctx, &name).await?;
    let names = siblings
        .iter()
        .chain([&revision])
        .map(ResourceExt::name_any);
    let is_known = |name: &String| {
        let target = Target::of::<BundleRevision>("", name);
        !known.of(&target).is_empty()
    };
    let mut world = World {
        bundle,
        used: names.filter(is_known).collect(),
        usage: None,
        siblings,
        registry,
        credentials,
        is_kept: ctx.bundles().map(|bundles| bundles.is_kept(digest)),
        revision,
        trouble: None,
        is_released: false,
    };
    if world.revision.metadata.deletion_timestamp.is_some() || plan::is_surplus(&world) {
        let of_bundle = ListParams::default().fields(&format!("spec.bundle={name}"));
        world.siblings = ctx.list_all(&of_bundle).await?;
        // After the revision itself: whoever pins it later sees whether it is to go.
        world.usage = Some(Usage::read(ctx).await?);
    }
    Ok(world)
}

impl World {
    /// Whether something may refer to a revision of the bundle.
    pub(super) fn is_used(&self, revision: &BundleRevision) -> bool {
        let name = revision.name_any();
        match &self.usage {
            None => self.used.contains(&name),
            Some(usage) => {
                let service = self.bundle.as_ref().map(|bundle| &*bundle.spec.service_id);
                !usage.of_revision(&name, service).is_empty()
            }
        }
    }

    /// Whether new instances get this revision, or are about to.
    pub(super) fn is_current(&self, revision: &BundleRevision) -> bool {
        let status = self
            .bundle
            .as_ref()
            .and_then(|bundle| bundle.status.clone());
        let status = status.unwrap_or_default();
        let seen = status.seen.and_then(|seen| seen.revision);
        let name = revision.name_any();
        [status.current_revision, seen].contains(&Some(name))
    }

    pub(super) fn absorb(&mut self, step_name: StepName, answer: Option<DynamicObject>) {
        let revision = answer.and_then(|object| object.try_parse::<BundleRevision>().ok());
        match step_name {
            HOLD => self.revision = revision.unwrap_or_else(|| self.revision.clone()),
            RELEASE => self.is_released = true,
            _ => {}
        }
    }
}
