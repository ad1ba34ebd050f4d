//! What an action depends on: the revision it is pinned to, the image it would run with, and how its run stands.

use std::collections::BTreeSet;
use std::fmt;

use heddle_api::action::{Action, Limits, Run, RunState};
use heddle_api::bundle_revision::{condition, reason};
use heddle_api::conditions::{Condition, Status};
use heddle_api::description::{Description, PlanDescription};
use heddle_api::operation::{RevisionReference, RunReport};
use heddle_api::registry::{ActionImage, ActionPolicy, WhenUnavailable};
use heddle_api::{Bundle, BundleRevision, Registry, offer};
use jiff::Timestamp;
use kube::{Api, ResourceExt as _};
use serde_json::{Map, Value};

use super::{ActionInputs, Next, Want, hands_out, variables};
use crate::reconcile::{Ctx, Error};

/// What an action depends on, as it was seen.
#[derive(Clone)]
pub(crate) struct ActionDeps {
    /// What the instance or binding is pinned to.
    pub reference: RevisionReference,
    /// That revision, while it is there.
    pub pinned: Option<BundleRevision>,
    /// The bundle's current revision; looked at only where the registry's settings may call for it.
    pub current: Option<BundleRevision>,
    /// The revision's registry, while it is there.
    pub registry: Option<Registry>,
    /// Digests of images that are kept here.
    pub kept: BTreeSet<String>,
    /// How the run stands that the status speaks of; `None` where nobody runs bundles.
    pub run: Option<RunState>,
    /// What that run handed out, if it ended well; `None` unless it was asked.
    pub credentials: Option<Result<Option<Map<String, Value>>, String>>,
}

/// Without credentials.
impl fmt::Debug for ActionDeps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActionDeps")
            .field("reference", &self.reference)
            .field("run", &self.run)
            .field("kept", &self.kept)
            .finish_non_exhaustive()
    }
}

/// Looks at everything that actions depend on. `run` is what the status says about the last one.
pub(crate) async fn observe(
    ctx: &Ctx,
    reference: RevisionReference,
    run: Option<&RunReport>,
) -> Result<ActionDeps, Error> {
    let revisions = Api::<BundleRevision>::all(ctx.client.clone());
    let pinned = revisions.get_opt(&reference.name).await?;
    let registry = match &pinned {
        Some(pinned) => {
            let registries = Api::<Registry>::all(ctx.client.clone());
            registries.get_opt(&pinned.spec.registry).await?
        }
        None => None,
    };
    let current = match pinned
        .as_ref()
        .filter(|_| may_use_latest(registry.as_ref()))
    {
        Some(pinned) => current(ctx, &revisions, pinned).await?,
        None => None,
    };
    let mut deps = ActionDeps {
        reference,
        pinned,
        current,
        registry,
        kept: BTreeSet::new(),
        run: None,
        credentials: None,
    };
    let Some(bundles) = ctx.bundles() else {
        return Ok(deps);
    };
    let both = [&deps.pinned, &deps.current];
    let digests = both
        .into_iter()
        .flatten()
        .map(|revision| revision.spec.manifest_digest.clone());
    deps.kept = digests.filter(|digest| bundles.is_kept(digest)).collect();
    let state = match run {
        Some(run) => bundles.look(&run.id).await,
        None => RunState::Unheard,
    };
    if let (Some(run), RunState::Ended(end)) = (run, &state)
        && run.result.is_none()
        && hands_out(run.action, end)
    {
        deps.credentials = Some(bundles.credentials(&run.id).await);
    }
    deps.run = Some(state);
    Ok(deps)
}

async fn current(
    ctx: &Ctx,
    revisions: &Api<BundleRevision>,
    pinned: &BundleRevision,
) -> Result<Option<BundleRevision>, Error> {
    let bundles = Api::<Bundle>::all(ctx.client.clone());
    let bundle = bundles.get_opt(&pinned.spec.bundle).await?;
    let name = bundle.and_then(|bundle| bundle.status?.current_revision);
    match name {
        Some(name) => Ok(revisions.get_opt(&name).await?),
        None => Ok(None),
    }
}

fn may_use_latest(registry: Option<&Registry>) -> bool {
    registry.is_some_and(|registry| {
        registry.spec.action_image == ActionImage::Latest
            || registry.spec.when_unavailable == WhenUnavailable::Latest
    })
}

impl ActionDeps {
    /// How the run stands; `Unheard` where nobody could have heard of it.
    pub(crate) fn state(&self) -> &RunState {
        self.run.as_ref().unwrap_or(&RunState::Unheard)
    }

    /// What comes next for the run of an object with that uid, whose status says `report` of its last run.
    pub(crate) fn next(
        &self,
        want: Option<&Want>,
        uid: &str,
        report: Option<&RunReport>,
        now: Timestamp,
    ) -> Next {
        if self.run.is_none() && report.is_some_and(|run| run.result.is_none()) {
            // Whoever ran it will know; nobody here does.
            return Next::Await;
        }
        super::next(want, uid, report, self.state(), now)
    }

    /// The run of an action with that image, as it was announced in the status.
    pub(crate) fn run(
        &self,
        action: Action,
        manifest_digest: String,
        announced: Option<&RunReport>,
        told: &ActionInputs<'_>,
        plan: &PlanDescription,
    ) -> Run {
        Run {
            id: announced.map_or_else(String::new, |run| run.id.clone()),
            action,
            manifest_digest,
            instance: told.instance.uid().unwrap_or_default(),
            variables: variables(told, plan),
            bundle_version: told.version.map(str::to_owned),
            limits: self.limits(),
        }
    }

    /// The plan that an id stands for, as the pinned revision describes it.
    pub(crate) fn plan(&self, service_id: &str, plan_id: &str) -> Option<PlanDescription> {
        plan_of(self.pinned.as_ref()?, service_id, plan_id)
    }

    /// Digest of the image that an action runs with, or what it waits for.
    pub(crate) fn image(&self, action: Action) -> Result<&str, String> {
        let Some(pinned) = &self.pinned else {
            return Err(format!(
                "BundleRevision {} does not exist",
                self.reference.name
            ));
        };
        let is_kept =
            |revision: &&BundleRevision| self.kept.contains(&revision.spec.manifest_digest);
        let latest = self.current.as_ref().filter(is_kept);
        let own = Some(pinned).filter(is_kept);
        let registry = self.registry.as_ref().map(|registry| &registry.spec);
        // Making an instance is not an action on an existing one.
        let registry = registry.filter(|_| action != Action::Provision);
        let prefers_latest = registry.is_some_and(|spec| spec.action_image == ActionImage::Latest);
        let accepts_latest = registry
            .is_some_and(|spec| spec.when_unavailable == WhenUnavailable::Latest)
            && is_unavailable(pinned);
        let chosen = if prefers_latest {
            latest.or(own)
        } else {
            own.or_else(|| latest.filter(|_| accepts_latest))
        };
        match chosen {
            Some(revision) => Ok(&revision.spec.manifest_digest),
            None => Err(self.missing(pinned)),
        }
    }

    fn missing(&self, pinned: &BundleRevision) -> String {
        let name = pinned.name_any();
        if self.run.is_none() {
            return "this server runs no bundles; configure it to".to_owned();
        }
        match cached(pinned).and_then(|cached| cached.message.as_deref()) {
            Some(why) => format!("the image of BundleRevision {name} is not kept here yet: {why}"),
            None => format!("the image of BundleRevision {name} is not kept here yet"),
        }
    }

    /// What runs may use, by the registry's settings or, where it is gone, by the defaults.
    pub(crate) fn limits(&self) -> Limits {
        let policy = self.registry.as_ref();
        let policy = policy.map_or_else(ActionPolicy::default, |found| found.spec.actions.clone());
        let count = |number: i32| u32::try_from(number).unwrap_or_default();
        Limits {
            memory_bytes: u64::from(count(policy.memory_megabytes)) * 1024 * 1024,
            processes: count(policy.processes),
            seconds: count(policy.timeout_seconds),
            network: policy.network,
            disk_bytes: u64::from(count(policy.disk_megabytes)) * 1024 * 1024,
            disk_files: count(policy.disk_files).into(),
        }
    }
}

fn cached(revision: &BundleRevision) -> Option<&Condition> {
    let status = revision.status.as_ref()?;
    let cached = status.conditions.find(condition::CACHED.name)?;
    Some(cached).filter(|cached| cached.status != Status::True)
}

/// Whether the image was asked for in vain.
fn is_unavailable(revision: &BundleRevision) -> bool {
    let why = cached(revision).and_then(|cached| cached.reason.as_deref());
    let in_vain = [reason::FETCH_FAILED.name, reason::DIGEST_MISMATCH.name];
    why.is_some_and(|why| in_vain.contains(&why))
}

/// The plan of a revision that an id stands for. Whoever writes an instance by hand may name the plan itself.
pub(crate) fn plan_of(
    revision: &BundleRevision,
    service_id: &str,
    plan_id: &str,
) -> Option<PlanDescription> {
    let spec = &revision.spec;
    // It was found sound when the revision was made, by the rules of that day.
    let description = Value::Object(spec.description.clone());
    let description: Description = serde_json::from_value(description).ok()?;
    let is_meant = |plan: &PlanDescription| {
        plan.name == plan_id
            || offer::bundle::plan_id(service_id, &spec.registry, &description.name, &plan.name)
                == plan_id
    };
    description
        .plans
        .iter()
        .find(|plan| is_meant(plan))
        .cloned()
}
