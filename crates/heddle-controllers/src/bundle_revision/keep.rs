//! Keeping images: fetched when they are needed, tried again with growing pauses, and let go when no revision needs them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use heddle_api::bundle_revision::condition;
use heddle_api::bundle_source::{Fetch, FetchError};
use heddle_api::{Bundle, BundleRevision};
use heddle_rt::backoff::{KeyedBackoff, Limits};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;
use kube::api::ListParams;
use parking_lot::Mutex;
use tokio::sync::RwLock;

use super::observe::World;
use crate::Options;
use crate::reconcile::{Ctx, Error};
use crate::usage::Usage;

/// Pauses between attempts. What is needed is needed now, and a registry that is down stays down for minutes.
const PAUSES: Limits = Limits {
    min: Duration::from_secs(2),
    max: Duration::from_secs(120),
};
/// What was refused for what it is will be refused again, unless limits or the registry change.
const REFUSED_PAUSE: Duration = Duration::from_secs(600);
/// Revisions whose failures are remembered.
const KEYS_MAX: usize = 10_000;
/// How often images that nobody needs are let go.
const TIDY_PERIOD: Duration = Duration::from_secs(3600);

/// When images are fetched.
#[derive(Debug)]
pub(crate) struct Keeper {
    attempts: Mutex<Attempts>,
    /// Held for reading by whoever fetches, for writing by whoever tidies up: what is being fetched is not let go.
    tidying: RwLock<()>,
}

#[derive(Debug)]
struct Attempts {
    backoff: KeyedBackoff<String>,
    /// When the next attempt may be made, by name of the revision.
    next: HashMap<String, Timestamp>,
}

impl Keeper {
    pub(super) fn new(options: &Options) -> Self {
        let backoff = KeyedBackoff::new(PAUSES, options.chance.clone(), KEYS_MAX);
        Self {
            attempts: Mutex::new(Attempts {
                backoff,
                next: HashMap::new(),
            }),
            tidying: RwLock::new(()),
        }
    }

    /// Fetches the image if something refers to the revision and it is not kept yet.
    pub(super) async fn keep(&self, ctx: &Ctx, world: &mut World) {
        let name = world.revision.name_any();
        let (Some(false), Some(bundles)) = (world.is_kept, ctx.bundles()) else {
            self.forget(&name);
            return;
        };
        if world.is_released || !world.is_used(&world.revision) {
            self.forget(&name);
            return;
        }
        let now = ctx.options.clock.now();
        if self.next(&name).is_some_and(|next| now < next) {
            return;
        }
        let fetched = match fetch(world) {
            Ok(fetch) => {
                let _fetching = self.tidying.read().await;
                bundles.keep(fetch).await
            }
            Err(trouble) => Err(trouble),
        };
        match fetched {
            Ok(()) => {
                self.forget(&name);
                world.is_kept = Some(true);
            }
            Err(trouble) => {
                tracing::warn!(revision = name, %trouble, "an image cannot be kept");
                self.failed(name, &trouble, ctx.options.clock.now());
                world.trouble = Some(trouble);
            }
        }
    }

    pub(super) fn requeue_after(&self, world: &World, now: Timestamp) -> Option<Duration> {
        let next = self.next(&world.revision.name_any())?;
        Some(Duration::try_from(next.duration_since(now)).unwrap_or_default())
    }

    fn next(&self, name: &str) -> Option<Timestamp> {
        self.attempts.lock().next.get(name).copied()
    }

    fn forget(&self, name: &str) {
        let mut attempts = self.attempts.lock();
        if attempts.next.remove(name).is_some() {
            attempts.backoff.reset(&name.to_owned());
        }
    }

    fn failed(&self, name: String, trouble: &FetchError, now: Timestamp) {
        let mut attempts = self.attempts.lock();
        let pause = match trouble {
            FetchError::Refused(_) => REFUSED_PAUSE,
            // Never at once: a failure that is worded anew each time would be tried in a circle.
            _ => PAUSES.min / 2 + attempts.backoff.failed(&name),
        };
        let pause = SignedDuration::try_from(pause).unwrap_or(SignedDuration::MAX);
        let next = now.checked_add(pause).unwrap_or(Timestamp::MAX);
        attempts.next.insert(name, next);
    }
}

/// What to ask for, or why nobody can be asked.
fn fetch(world: &World) -> Result<Fetch, FetchError> {
    let spec = &world.revision.spec;
    let Some(registry) = &world.registry else {
        let text = format!("Registry {} is gone", spec.registry);
        return Err(FetchError::Unavailable(text));
    };
    let credentials = world.credentials.clone();
    let credentials =
        credentials.map_err(|trouble| FetchError::Unavailable(trouble.message().to_owned()))?;
    Ok(Fetch {
        registry: spec.registry.clone(),
        spec: Arc::new(registry.spec.clone()),
        credentials,
        repository: repository(world.bundle.as_ref(), &spec.image),
        location: spec.image.clone(),
        manifest_digest: spec.manifest_digest.clone(),
    })
}

/// The repository of an image; without its bundle, what its location says: `host/repository`.
fn repository(bundle: Option<&Bundle>, image: &str) -> String {
    match bundle {
        Some(bundle) => bundle.spec.repository.clone(),
        None => image
            .split_once('/')
            .map_or(image, |(_, repository)| repository)
            .to_owned(),
    }
}

/// Lets images go that no revision needs, until the future is dropped.
pub(super) async fn tidy(ctx: Ctx, keeper: Arc<Keeper>) {
    let (clock, chance) = (&ctx.options.clock, &ctx.options.chance);
    loop {
        clock
            .sleep(TIDY_PERIOD + chance.jitter(TIDY_PERIOD / 10))
            .await;
        if let Err(error) = tidy_once(&ctx, &keeper).await {
            tracing::debug!(%error, "unneeded images could not be let go; they are looked for again later");
        }
    }
}

async fn tidy_once(ctx: &Ctx, keeper: &Keeper) -> Result<(), Error> {
    let Some(bundles) = ctx.bundles() else {
        return Ok(());
    };
    // While something is fetched there is a better time.
    let Ok(_tidying) = keeper.tidying.try_write() else {
        return Ok(());
    };
    let revisions: Vec<BundleRevision> = ctx.list_all(&ListParams::default()).await?;
    let usage = Usage::read(ctx).await?;
    let kept = needed(&revisions, &usage);
    bundles.keep_only(kept).await.map_err(Error::Bundles)
}

/// Digests of the images that are needed: of revisions that are kept or in use.
pub(super) fn needed(revisions: &[BundleRevision], usage: &Usage) -> Vec<String> {
    let is_cached = |revision: &BundleRevision| {
        let status = revision.status.as_ref();
        status.is_some_and(|status| status.conditions.is_true(condition::CACHED.name))
    };
    let is_used =
        |revision: &BundleRevision| !usage.of_revision(&revision.name_any(), None).is_empty();
    let needed = revisions
        .iter()
        .filter(|revision| is_cached(revision) || is_used(revision));
    let mut digests: Vec<String> = needed
        .map(|revision| revision.spec.manifest_digest.clone())
        .collect();
    digests.sort();
    digests.dedup();
    digests
}
