//! Registries, and what their answers prove.
//!
//! ```text
//!   settings ── admission ──> questions ──> source (distribution, layout, helm) ── answers ── evidence ──> verdicts
//! ```
//! A reading ends in bounded time and always with an answer: what could not be found out is part of it. It changes nothing,
//! neither there nor here. What follows from it is decided by whoever asked.

mod address;
mod admission;
mod ask;
mod auth;
mod client;
mod distribution;
pub mod evidence;
#[doc(hidden)]
pub mod fuzzing;
mod helm;
mod keep;
pub mod label;
mod layout;
mod listing;
mod pool;
pub mod push;
mod reference;
mod selector;
mod source;
mod upload;

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use heddle_api::bundle::MarkReason;
use heddle_api::bundle_source::{Fetch, FetchError, ReadRequest};
use heddle_api::evidence::{
    Credentials, ImageEvidence, ImageName, ImageSighting, Known, Reading, Trouble,
};
use heddle_api::registry::{RegistrySpec, RegistryType};
use heddle_rt::net::dial::Connect;
use heddle_rt::{Chance, Clock, Tasks};
use parking_lot::Mutex;
use tracing::Instrument as _;

use self::address::Address;
use self::admission::{Admission, Question};
use self::ask::Failure;
use self::client::Client;
use self::distribution::{Distribution, Strangers};
use self::evidence::{Circumstances, ImageResponse, classify};
use self::helm::{Charts, Indexes, Opening};
use self::layout::Layout;
use self::listing::{Kind, Lister};
use self::push::PushStore;
use self::reference::Reference;
use self::source::{Listing, Source};
use crate::images::{Digest, Image, Store};

pub use self::admission::check_pattern;
pub use self::client::{ClientDeps, Patience};
pub use self::upload::PushError;

/// A reading takes no longer, whatever a registry does.
const READING_TIME_MAX: Duration = Duration::from_secs(20 * 60);

/// What reading takes.
#[derive(Clone, Debug)]
pub struct Options {
    /// Owns the connections and threads of readings.
    pub tasks: Tasks,
    pub clock: Clock,
    pub chance: Chance,
    /// The network, with its policy.
    pub connect: Arc<dyn Connect>,
    /// Where images are kept.
    pub store: Store,
    /// What was pushed to heddle itself.
    pub pushed: PushStore,
    pub patience: Patience,
    /// Names on one page of a listing.
    pub page: usize,
}

/// As many names as every registry gives at once.
pub const PAGE: usize = 100;

/// Reads registries. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Registries {
    options: Arc<Options>,
    strangers: Strangers,
    indexes: Indexes,
    /// Names of registries that are believed unverified, as far as somebody was told.
    unverified: Arc<Mutex<HashSet<String>>>,
}

/// Where to push to.
#[derive(Clone, Debug)]
pub struct Destination {
    pub url: String,
    pub repository: String,
    pub tag: String,
    pub credentials: Credentials,
    pub skip_verify_tls: bool,
}

/// Pushes an image to somebody's registry, without reading any. Gives the digest of its manifest.
pub async fn push_to(
    deps: &ClientDeps,
    to: &Destination,
    image: &Image,
) -> Result<String, PushError> {
    let base = Address::configured(&to.url).map_err(PushError::Invalid)?;
    let credentials = to.credentials.clone();
    let client = Client::new(deps, &base, credentials, to.skip_verify_tls);
    let name = ImageName {
        repository: to.repository.clone(),
        track: to.tag.clone(),
    };
    Box::pin(upload::upload(&client, &base, &name, image)).await
}

/// A place that is ready to be asked.
#[derive(Debug)]
enum Opened {
    Distribution(Box<Distribution>),
    Layout(Layout),
    Charts(Box<Charts>),
}

impl Registries {
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self {
            options: Arc::new(options),
            strangers: Strangers::default(),
            indexes: Indexes::default(),
            unverified: Arc::default(),
        }
    }

    /// Reads a registry.
    pub async fn read(&self, request: ReadRequest) -> Reading {
        let span = tracing::info_span!("reading", registry = %request.registry, run = %request.run);
        span.in_scope(|| self.warn_if_unverified(&request));
        let clock = &self.options.clock;
        let reading = clock
            .timeout(READING_TIME_MAX, self.read_all(&request))
            .instrument(span);
        Box::pin(reading).await.unwrap_or_else(|late| {
            troubled(
                &request,
                Trouble::Unreachable(format!("the registry was not read within {:?}", late.0)),
            )
        })
    }

    async fn read_all(&self, request: &ReadRequest) -> Reading {
        let admission = match Admission::new(&request.spec) {
            Ok(admission) => admission,
            Err(why) => return troubled(request, Trouble::Misconfigured(why)),
        };
        match self.open(&request.spec, &request.credentials).await {
            Ok(Opened::Distribution(source)) => read_from(&*source, &admission, request).await,
            Ok(Opened::Layout(source)) => read_from(&source, &admission, request).await,
            Ok(Opened::Charts(source)) => read_from(&*source, &admission, request).await,
            Err(trouble) => troubled(request, trouble),
        }
    }

    /// Once for each registry that is set so, and again when it is set so again.
    fn warn_if_unverified(&self, request: &ReadRequest) {
        let mut told = self.unverified.lock();
        if !request.spec.skip_verify_tls {
            told.remove(&request.registry);
        } else if told.insert(request.registry.clone()) {
            tracing::warn!(
                "the registry's certificate is not verified, because its skipVerifyTLS says so: whoever sits in between can \
                 change what it holds"
            );
        }
    }

    /// Keeps all of an image.
    pub async fn keep(&self, fetch: Fetch) -> Result<(), FetchError> {
        let digest = Digest::parse(&fetch.manifest_digest)
            .map_err(|bad| FetchError::Refused(bad.to_string()))?;
        let Options { store, tasks, .. } = &*self.options;
        if store.is_kept(digest.as_str()) {
            return Ok(());
        }
        if fetch.spec.type_ == RegistryType::Helm {
            return self.keep_runner(&fetch, &digest).await;
        }
        if !address::is_repository(&fetch.repository) {
            return Err(FetchError::Refused(format!(
                "{:?} cannot be a repository",
                fetch.repository
            )));
        }
        let span = tracing::info_span!("keeping", registry = %fetch.registry, repository = %fetch.repository, %digest);
        let keeping = async {
            match self.open(&fetch.spec, &fetch.credentials).await {
                Ok(Opened::Distribution(source)) => {
                    keep::keep(&*source, store, tasks, &fetch.repository, &digest).await
                }
                Ok(Opened::Layout(source)) => {
                    keep::keep(&source, store, tasks, &fetch.repository, &digest).await
                }
                Ok(Opened::Charts(source)) => {
                    keep::keep(&*source, store, tasks, &fetch.repository, &digest).await
                }
                Err(trouble) => Err(FetchError::Unavailable(trouble.message().to_owned())),
            }
        };
        Box::pin(keeping.instrument(span)).await
    }

    /// Pushes an image to somebody's registry. Gives the digest of its manifest.
    pub async fn push_to(&self, to: &Destination, image: &Image) -> Result<String, PushError> {
        push_to(&self.deps(), to, image).await
    }

    /// What was pushed to heddle itself.
    #[must_use]
    pub fn pushed(&self) -> &PushStore {
        &self.options.pushed
    }

    fn deps(&self) -> ClientDeps {
        ClientDeps {
            tasks: self.options.tasks.clone(),
            clock: self.options.clock.clone(),
            chance: self.options.chance.clone(),
            connect: self.options.connect.clone(),
            patience: self.options.patience,
        }
    }

    async fn open(
        &self,
        spec: &RegistrySpec,
        credentials: &Credentials,
    ) -> Result<Opened, Trouble> {
        let tasks = &self.options.tasks;
        let kind = match spec.type_ {
            RegistryType::Push => {
                let dir = self.options.pushed.dir().to_owned();
                return Layout::open(tasks, dir, "push".to_owned())
                    .await
                    .map(Opened::Layout);
            }
            RegistryType::OciLayout => {
                let url = spec.url.as_deref().unwrap_or_default();
                let dir = PathBuf::from(url.strip_prefix("file://").unwrap_or(url));
                if !dir.is_absolute() {
                    let why = format!("url {url:?} must be the absolute path of a directory");
                    return Err(Trouble::Misconfigured(why));
                }
                let name = dir.display().to_string();
                return Layout::open(tasks, dir, name).await.map(Opened::Layout);
            }
            RegistryType::Helm => {
                let opened = self.open_charts(spec, credentials).await?;
                return Ok(Opened::Charts(Box::new(opened)));
            }
            RegistryType::ApiV2 => Kind::Catalog,
            RegistryType::DockerHub => Kind::DockerHub,
            RegistryType::Quay => Kind::Quay,
            RegistryType::Rhcc => Kind::Rhcc,
        };
        let opened = self.open_distribution(kind, spec, credentials).await?;
        Ok(Opened::Distribution(Box::new(opened)))
    }

    async fn open_distribution(
        &self,
        kind: Kind,
        spec: &RegistrySpec,
        credentials: &Credentials,
    ) -> Result<Distribution, Trouble> {
        let url = spec.url.as_deref().or(match kind {
            Kind::Catalog => None,
            Kind::DockerHub => Some("https://registry-1.docker.io"),
            Kind::Quay => Some("https://quay.io"),
            Kind::Rhcc => Some("https://registry.access.redhat.com"),
        });
        let url = url.ok_or_else(|| Trouble::Misconfigured("url is missing".to_owned()))?;
        let base = Address::configured(url).map_err(Trouble::Misconfigured)?;
        if matches!(kind, Kind::DockerHub | Kind::Quay)
            && spec.org.is_none()
            && !spec.white_list.is_empty()
        {
            let why = "org is missing: this registry lists the repositories of one organisation";
            return Err(Trouble::Misconfigured(why.to_owned()));
        }
        let deps = self.deps();
        let elsewhere = match kind {
            Kind::DockerHub => Some(self.open_hub(&deps, spec, &base, credentials).await?),
            _ => None,
        };
        Ok(Distribution {
            client: Client::new(&deps, &base, credentials.clone(), spec.skip_verify_tls),
            kind,
            lister: Lister {
                kind,
                org: spec.org.clone(),
                page: self.options.page,
                elsewhere,
            },
            strangers: self.strangers.clone(),
            base,
        })
    }

    async fn open_charts(
        &self,
        spec: &RegistrySpec,
        credentials: &Credentials,
    ) -> Result<Charts, Trouble> {
        let missing = |field: &str| Trouble::Misconfigured(format!("{field} is missing"));
        let url = spec.url.as_deref().ok_or_else(|| missing("url"))?;
        let base = Address::configured(url).map_err(Trouble::Misconfigured)?;
        let runner = spec.runner.as_deref().ok_or_else(|| missing("runner"))?;
        let runner = Reference::parse(runner)
            .map_err(|why| Trouble::Misconfigured(format!("runner {why}")))?;
        if spec.org.is_some() {
            let why = "org means nothing in a repository of charts; remove it";
            return Err(Trouble::Misconfigured(why.to_owned()));
        }
        let opening = Opening {
            client: Client::new(
                &self.deps(),
                &base,
                credentials.clone(),
                spec.skip_verify_tls,
            ),
            images: self.runner_images(&runner, spec, credentials),
            base,
            default_track: spec.tags.default.clone(),
            runner,
        };
        Charts::open(opening, &self.indexes, &self.options.tasks).await
    }

    /// Where a runner is. What opens the repository of charts, and what is believed of it, holds for its own server alone.
    fn runner_images(
        &self,
        runner: &Reference,
        spec: &RegistrySpec,
        credentials: &Credentials,
    ) -> Distribution {
        let charts = Address::configured(spec.url.as_deref().unwrap_or_default());
        let is_home = charts.is_ok_and(|charts| charts.origin == runner.base.origin);
        let credentials = match is_home {
            true => credentials.clone(),
            false => Credentials::None,
        };
        let unverified = is_home && spec.skip_verify_tls;
        Distribution {
            client: Client::new(&self.deps(), &runner.base, credentials, unverified),
            kind: Kind::Catalog,
            lister: Lister {
                kind: Kind::Catalog,
                org: None,
                page: self.options.page,
                elsewhere: None,
            },
            // A runner describes no bundle, and is looked into nevertheless.
            strangers: Strangers::default(),
            base: runner.base.clone(),
        }
    }

    /// Keeps the runner that a revision was made with, from where it was then.
    async fn keep_runner(&self, fetch: &Fetch, digest: &Digest) -> Result<(), FetchError> {
        let runner = Reference::parse(&fetch.location).map_err(FetchError::Refused)?;
        let images = self.runner_images(&runner, &fetch.spec, &fetch.credentials);
        let Options { store, tasks, .. } = &*self.options;
        let span = tracing::info_span!("keeping", registry = %fetch.registry, runner = %fetch.location, %digest);
        let keeping = keep::keep(&images, store, tasks, &runner.repository, digest);
        Box::pin(keeping.instrument(span)).await
    }

    /// Docker Hub lists at another server than it serves, and with other credentials.
    async fn open_hub(
        &self,
        deps: &ClientDeps,
        spec: &RegistrySpec,
        base: &Address,
        credentials: &Credentials,
    ) -> Result<(Client, Address), Trouble> {
        let hub = match spec.url {
            Some(_) => base.clone(),
            None => {
                Address::configured("https://hub.docker.com").map_err(Trouble::Misconfigured)?
            }
        };
        let anonymous = Client::new(deps, &hub, Credentials::None, spec.skip_verify_tls);
        let session = listing::open_hub(&anonymous, &hub, credentials).await;
        let session = session.map_err(|failure| match failure {
            Failure::Silent(why) => Trouble::Unreachable(format!("Docker Hub: {why}")),
            Failure::Garbled(why) => Trouble::AuthenticationFailed(format!("Docker Hub: {why}")),
        })?;
        Ok((Client::new(deps, &hub, session, spec.skip_verify_tls), hub))
    }
}

/// A reading that came to nothing: everything that is known is unknown.
fn troubled(request: &ReadRequest, trouble: Trouble) -> Reading {
    tracing::warn!(registry = %request.registry, run = %request.run, why = %trouble.message(), "a registry cannot be read");
    let unknown = |known: &Known| ImageSighting {
        image: known.image.clone(),
        verdict: ImageEvidence::Unknown {
            why: trouble.message().to_owned(),
        },
    };
    Reading {
        sightings: request.known.iter().map(unknown).collect(),
        trouble: Some(trouble),
        requests: 0,
    }
}

async fn read_from<S: Source>(source: &S, admission: &Admission, request: &ReadRequest) -> Reading {
    let mut listing = if admission.wants_listing() {
        source.list().await
    } else {
        Listing::default()
    };
    if listing.silent
        && let Some(trouble) = listing.trouble.take()
    {
        return Reading {
            requests: source.requests(),
            ..troubled(request, trouble)
        };
    }
    if admission.wants_listing() && !listing.exists && !admission.names_images() {
        let why = "the registry has no listing; name what to look at in images or tags.named";
        listing.trouble = Some(Trouble::ListingIncomplete(why.to_owned()));
    }
    let tags = tags_of(source, admission, &mut listing).await;
    let plan = admission.plan(&listing.repositories, &tags, &request.known);
    let listing = &listing;
    let asked = stream::iter(plan.questions).map(|question| async move {
        let answer = if source.has_given_up() {
            ImageResponse::Failed(
                "not asked, because the registry does not answer any more".to_owned(),
            )
        } else {
            source
                .look(&question.image, question.known.as_deref())
                .await
        };
        (question, answer)
    });
    let answers: Vec<(Question, ImageResponse)> =
        asked.buffer_unordered(pool::OPEN_MAX).collect().await;
    let trouble = listing
        .trouble
        .clone()
        .or_else(|| trouble_of(source, &answers));
    let mut sightings: Vec<ImageSighting> = plan.filtered.into_iter().map(filtered).collect();
    for (question, answer) in answers {
        let verdict = classify(
            answer,
            Circumstances {
                image: &question.image,
                location: &source.location(&question.image.repository),
                listing_complete: listing.trouble.is_none(),
                listed: listing
                    .exists
                    .then(|| listing.repositories.contains(&question.image.repository)),
            },
        );
        // A repository without the tag that is looked for is not worth a word, nor is one that holds something else.
        if question.expected || !matches!(verdict, ImageEvidence::Absent { .. }) {
            sightings.push(ImageSighting {
                image: question.image,
                verdict,
            });
        }
    }
    Reading {
        sightings,
        trouble,
        requests: source.requests(),
    }
}

/// The tags of every repository in which some are selected. One whose tags cannot be had makes the listing incomplete.
async fn tags_of<S: Source>(
    source: &S,
    admission: &Admission,
    listing: &mut Listing,
) -> BTreeMap<String, Vec<String>> {
    let repositories = admission.wants_tags(&listing.repositories);
    let asked = stream::iter(repositories).map(|repository| async move {
        let tags = source.tags(&repository).await;
        (repository, tags)
    });
    let answers: Vec<_> = asked.buffer_unordered(pool::OPEN_MAX).collect().await;
    let mut found = BTreeMap::new();
    for (repository, tags) in answers {
        match tags {
            Ok(tags) => {
                found.insert(repository, tags);
            }
            Err(why) => {
                let why = format!("tags of {repository}: {why}");
                listing
                    .trouble
                    .get_or_insert(Trouble::ListingIncomplete(why));
            }
        }
    }
    found
}

fn filtered(image: ImageName) -> ImageSighting {
    let why = "the registry's settings do not admit it any more".to_owned();
    ImageSighting {
        image,
        verdict: ImageEvidence::Absent {
            reason: MarkReason::Filtered,
            why,
        },
    }
}

/// What the answers together say about the registry, when its listing said nothing.
fn trouble_of<S: Source>(source: &S, answers: &[(Question, ImageResponse)]) -> Option<Trouble> {
    if source.has_given_up() {
        let why = "the registry stopped answering while it was read";
        return Some(Trouble::Unreachable(why.to_owned()));
    }
    let denied = |answer: &ImageResponse| {
        matches!(
            answer,
            ImageResponse::Refusal {
                status: 401 | 403,
                ..
            }
        )
    };
    let every = !answers.is_empty() && answers.iter().all(|(_, answer)| denied(answer));
    every.then(|| Trouble::AuthenticationFailed("the registry refuses every image".to_owned()))
}
