//! Which bundle stands behind an offering, for instances that were accepted before the catalog knew it, or that somebody
//! wrote by hand. Such an instance waits while a registry has not been read that may hold its service.

use heddle_api::bundle::BundlePhase;
use heddle_api::operation::{MaintenanceInfo, RevisionReference};
use heddle_api::service_instance::ServiceInstanceSpec;
use heddle_api::{Bundle, BundleRevision, Registry};
use jiff::SignedDuration;
use kube::api::ListParams;
use kube::{Api, Resource, ResourceExt as _};

use super::offer::OFFER;
use crate::actions::plan_of;
use crate::reconcile::{Ctx, Error};
use crate::references::Target;
use crate::watch::Change;

/// How long an operation waits for registries to be read, if it has that long.
pub(super) const PATIENCE: SignedDuration = SignedDuration::from_mins(10);

/// What the catalog knows about an offering and plan.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Offered {
    /// An instance gets this revision.
    Live(Box<Pin>),
    /// It may be offered yet.
    Awaiting(String),
    /// Nobody offers it.
    Unknown(String),
    /// It was offered once.
    Withdrawn(String),
    /// The plan is not part of it.
    PlanWithdrawn(String),
}

/// What an instance is to be pinned to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pin {
    pub revision: RevisionReference,
    pub maintenance_info: Option<MaintenanceInfo>,
}

/// What a change of a Bundle concerns: whoever asks for its service.
pub(super) fn offers(change: &Change<'_, Bundle>) -> Vec<Target> {
    vec![Target::new(OFFER, "", &change.object().spec.service_id)]
}

/// What a change of a Registry concerns: whoever waits for any.
pub(super) fn registries(change: &Change<'_, Registry>) -> Vec<Target> {
    let before = match change {
        Change::Applied { old: Some(old), .. } => Some(is_converged(old)),
        _ => None,
    };
    let moved = change.is_written() || before != Some(is_converged(change.object()));
    moved.then(any_registry).into_iter().collect()
}

/// What somebody refers to who waits for registries to be read.
pub(super) fn any_registry() -> Target {
    Target::of::<Registry>("", "any")
}

/// What the catalog knows; `None` where there are no registries at all.
pub(super) async fn observe(
    ctx: &Ctx,
    spec: &ServiceInstanceSpec,
) -> Result<Option<Offered>, Error> {
    let bundles = bundles(ctx, &spec.service_id).await?;
    let registries = Api::<Registry>::all(ctx.client.clone());
    let registries = registries.list(&ListParams::default()).await?.items;
    if bundles.is_empty() && registries.is_empty() {
        return Ok(None);
    }
    let bundle = choose(&bundles);
    let name = bundle.and_then(|bundle| bundle.status.as_ref()?.current_revision.as_ref());
    let revision = match name {
        Some(name) => {
            let revisions = Api::<BundleRevision>::all(ctx.client.clone());
            revisions.get_opt(name).await?
        }
        None => None,
    };
    Ok(Some(judge(spec, bundle, revision.as_ref(), &registries)))
}

async fn bundles(ctx: &Ctx, service_id: &str) -> Result<Vec<Bundle>, Error> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let params = match service_id.chars().all(plain) {
        true => ListParams::default().fields(&format!("spec.serviceID={service_id}")),
        // Platforms choose ids freely; a selector could not carry this one.
        false => ListParams::default(),
    };
    let found = Api::<Bundle>::all(ctx.client.clone()).list(&params).await?;
    let mut bundles = found.items;
    bundles.retain(|bundle| bundle.spec.service_id == service_id);
    Ok(bundles)
}

fn choose(bundles: &[Bundle]) -> Option<&Bundle> {
    bundles
        .iter()
        .find(|bundle| is_live(bundle))
        .or_else(|| bundles.first())
}

fn is_live(bundle: &Bundle) -> bool {
    let phase = bundle.status.as_ref().map(|status| status.phase);
    bundle.meta().deletion_timestamp.is_none() && phase.unwrap_or_default() == BundlePhase::Live
}

fn is_converged(registry: &Registry) -> bool {
    let status = registry.status.as_ref();
    let read = status.and_then(|status| status.converged_generation);
    read.is_some() && read == registry.metadata.generation
}

/// The verdict on an offering. Pure.
pub(super) fn judge(
    spec: &ServiceInstanceSpec,
    bundle: Option<&Bundle>,
    revision: Option<&BundleRevision>,
    registries: &[Registry],
) -> Offered {
    let Some(bundle) = bundle else {
        return unheard_of(spec, registries);
    };
    let (name, registry) = (bundle.name_any(), &bundle.spec.registry);
    if !is_live(bundle) {
        let mark = bundle
            .status
            .as_ref()
            .and_then(|status| status.mark.as_ref());
        let why = mark.map_or_else(String::new, |mark| {
            format!(" ({:?} since {})", mark.reason, mark.since.0)
        });
        return Offered::Withdrawn(format!(
            "service {} was withdrawn: Bundle {name} of Registry {registry} is no longer offered{why}; refresh the catalog",
            spec.service_id
        ));
    }
    let Some(revision) = revision else {
        return Offered::Awaiting(format!(
            "Bundle {name} of Registry {registry} has no revision that could be used yet"
        ));
    };
    if plan_of(revision, &spec.service_id, &spec.plan_id).is_none() {
        return Offered::PlanWithdrawn(format!(
            "Bundle {name} of Registry {registry} has no plan {}; refresh the catalog",
            spec.plan_id
        ));
    }
    let version = revision.spec.bundle_version.clone();
    let semantic = version.clone().filter(|version| is_semantic(version));
    Offered::Live(Box::new(Pin {
        maintenance_info: semantic.map(|version| MaintenanceInfo { version }),
        revision: RevisionReference {
            name: revision.name_any(),
            digest: revision.spec.manifest_digest.clone(),
            bundle_version: version,
        },
    }))
}

fn unheard_of(spec: &ServiceInstanceSpec, registries: &[Registry]) -> Offered {
    let there = registries
        .iter()
        .filter(|registry| registry.metadata.deletion_timestamp.is_none());
    let (read, unread): (Vec<&Registry>, Vec<&Registry>) =
        there.partition(|registry| is_converged(registry));
    let names = |registries: &[&Registry]| {
        let names: Vec<String> = registries.iter().map(|found| found.name_any()).collect();
        names.join(", ")
    };
    if !unread.is_empty() {
        return Offered::Awaiting(format!(
            "service {} is not known yet; waiting for Registry {} to be read for the first time",
            spec.service_id,
            names(&unread)
        ));
    }
    let searched = match read.is_empty() {
        true => String::new(),
        false => format!(" nor Registry {}", names(&read)),
    };
    Offered::Unknown(format!(
        "no Application{searched} offers service {} with plan {}; refresh the catalog, or remove the instance",
        spec.service_id, spec.plan_id
    ))
}

/// Whether a version is one that OSB knows how to speak of.
fn is_semantic(version: &str) -> bool {
    let (core, build) = version.split_once('+').unwrap_or((version, "0"));
    let (core, pre) = core.split_once('-').unwrap_or((core, "x"));
    let number = |part: &str| {
        let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        digits && (part == "0" || !part.starts_with('0'))
    };
    let identifier = |part: &str| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !part.is_empty() && part.bytes().all(fits)
    };
    // A number before the release must not begin with a zero; a number of a build may.
    let before = |part: &str| {
        let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
        identifier(part) && (!is_number || number(part))
    };
    let parts: Vec<&str> = core.split('.').collect();
    parts.len() == 3
        && parts.into_iter().all(number)
        && pre.split('.').all(before)
        && build.split('.').all(identifier)
}

#[cfg(test)]
mod tests;
