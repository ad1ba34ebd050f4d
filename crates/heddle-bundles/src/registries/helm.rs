//! Repositories of Helm charts: an index that says what there is, and a runner that makes it happen.
//!
//! ```text
//!   url/index.yaml ──> charts, newest version of each ──┐
//!   runner, by its digest ──────────────────────────────┴──> one bundle per chart, its image the runner's
//! ```
//! A chart has no program. The image of its bundle is the runner's, the same for all charts of the repository, and its
//! description is made of what the index says. So two things make a state of such a bundle, and a digest over both names it:
//! another newest version, another list of versions or another runner is another revision. An instance is pinned to the
//! runner it was made with, by the digest of the runner's image, which is kept like any other; neither the repository nor a
//! newer runner has a say in how it is removed.
//!
//! The index is one file: it is read whole or not at all, and only a whole one proves that a chart is gone. It is asked for
//! again only if it changed. Tracks are versions here: the registry's default one is whatever is newest, any other is the
//! version of that name.
//!
//! The runner fetches the chart by itself, for which its registry has to allow it the network.

pub(super) mod index;
mod offer;

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use heddle_api::bundle_source::FetchError;
use heddle_api::evidence::{ImageName, Trouble};
use heddle_rt::Tasks;
use http::header::{ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED};
use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use tokio::sync::mpsc;

use self::index::{INDEX_BYTES_MAX, Index};
use self::offer::Offer;
use super::address::Address;
use super::ask::RegistryRequest;
use super::client::Client;
use super::distribution::Distribution;
use super::evidence::{ImageResponse, Seen};
use super::label::DESCRIPTIONS;
use super::reference::{Reference, Version};
use super::source::{Listing, Source};
use crate::images::Digest;

/// Repositories whose index is remembered.
const INDEXES_MAX: usize = 100;

/// What repositories said last, by the address of their index, so that they need not say it again.
#[derive(Clone, Debug, Default)]
pub(super) struct Indexes(Arc<Mutex<HashMap<String, Remembered>>>);

#[derive(Clone, Debug)]
struct Remembered {
    index: Arc<Index>,
    /// What asks whether it is still so.
    conditions: HeaderMap,
}

/// What it takes to open a repository.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) client: Client,
    pub(super) base: Address,
    pub(super) default_track: String,
    pub(super) runner: Reference,
    /// Where the runner is.
    pub(super) images: Distribution,
}

/// A repository, as it was when it was opened.
#[derive(Debug)]
pub(super) struct Charts {
    opening: Opening,
    index: Arc<Index>,
    runner_digest: Digest,
    runner: Seen,
}

impl Charts {
    /// Reads the index and finds the runner. Without either, nothing can be said about any chart.
    pub(super) async fn open(
        opening: Opening,
        indexes: &Indexes,
        tasks: &Tasks,
    ) -> Result<Self, Trouble> {
        let index = fetch(&opening.client, &opening.base, indexes, tasks);
        let runner = resolve(&opening.images, &opening.runner);
        let (index, runner) = futures::try_join!(index, runner)?;
        let runner_digest = Digest::parse(&runner.manifest_digest)
            .map_err(|error| Trouble::Unreachable(error.to_string()))?;
        Ok(Self {
            opening,
            index,
            runner_digest,
            runner,
        })
    }

    fn is_default(&self, track: &str) -> bool {
        track == self.opening.default_track
    }
}

/// The index, which is the one that is remembered if the repository says so.
async fn fetch(
    client: &Client,
    base: &Address,
    indexes: &Indexes,
    tasks: &Tasks,
) -> Result<Arc<Index>, Trouble> {
    let address = base.below("/index.yaml");
    let key = address.to_string();
    let remembered = indexes.0.lock().get(&key).cloned();
    let mut ask = RegistryRequest::get(address, "");
    ask.bytes_max = INDEX_BYTES_MAX as u64;
    if let Some(remembered) = &remembered {
        ask.conditions = remembered.conditions.clone();
    }
    let unusable = |why: String| Trouble::Unreachable(format!("{key}: {why}"));
    let answer = client.ask(&ask).await;
    let answer = answer.map_err(|failure| unusable(failure.to_string()))?;
    match (answer.status, remembered) {
        (StatusCode::OK, _) => {}
        (StatusCode::NOT_MODIFIED, Some(remembered)) => return Ok(remembered.index),
        (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, _) => {
            let why = format!("{key}: the repository answered {}", answer.status);
            return Err(Trouble::AuthenticationFailed(why));
        }
        (status, _) => return Err(unusable(format!("the repository answered {status}"))),
    }
    let mut conditions = HeaderMap::new();
    for (said, asked) in [(ETAG, IF_NONE_MATCH), (LAST_MODIFIED, IF_MODIFIED_SINCE)] {
        if let Some(value) = answer.headers.get(said) {
            conditions.insert(asked, value.clone());
        }
    }
    // Megabytes of YAML take a while.
    let body = answer.body;
    let read = tasks
        .blocking("read an index of charts", move || index::read(&body))
        .await;
    let read = read.map_err(|error| unusable(error.to_string()))?;
    let index = Arc::new(read.map_err(|why| unusable(format!("it is no index: {why}")))?);
    let mut known = indexes.0.lock();
    known.remove(&key);
    if !conditions.is_empty() {
        if known.len() >= INDEXES_MAX {
            known.clear();
        }
        let index = index.clone();
        known.insert(key, Remembered { index, conditions });
    }
    Ok(index)
}

/// The runner's image, as it is now.
async fn resolve(images: &Distribution, runner: &Reference) -> Result<Seen, Trouble> {
    let image = ImageName {
        repository: runner.repository.clone(),
        track: runner.version.to_string(),
    };
    let name = format!("runner {}:{}", runner.location(), runner.version);
    let found = match images.read(&image).await {
        Ok(ImageResponse::Image(seen)) => seen,
        Ok(ImageResponse::Refusal {
            status: 401 | 403, ..
        }) => {
            let why = format!("{name}: its registry wants credentials");
            return Err(Trouble::AuthenticationFailed(why));
        }
        Ok(ImageResponse::Refusal { status: 404, .. }) => {
            return Err(Trouble::Misconfigured(format!("{name} is not there")));
        }
        Ok(ImageResponse::Refusal { status, .. }) => {
            let why = format!("{name}: its registry answered {status}");
            return Err(Trouble::Unreachable(why));
        }
        Ok(ImageResponse::Same) => {
            return Err(Trouble::Unreachable(format!("{name} was not read")));
        }
        Ok(ImageResponse::Failed(why)) => {
            return Err(Trouble::Unreachable(format!("{name}: {why}")));
        }
        Err(failure) => return Err(Trouble::Unreachable(format!("{name}: {failure}"))),
    };
    match &runner.version {
        Version::Digest(digest) if digest.as_str() != found.manifest_digest => {
            let why = format!("{name}: its registry sent {}", found.manifest_digest);
            Err(Trouble::Unreachable(why))
        }
        _ => Ok(found),
    }
}

impl Source for Charts {
    async fn list(&self) -> Listing {
        let why = "the index does not say when it was made, which tools write last: it may have been cut short";
        let cut_short = || Trouble::ListingIncomplete(why.to_owned());
        Listing {
            repositories: self.index.charts.keys().cloned().collect(),
            trouble: (!self.index.is_whole).then(cut_short),
            exists: true,
            silent: false,
        }
    }

    async fn tags(&self, chart: &str) -> Result<Vec<String>, String> {
        let releases = self.index.charts.get(chart).map(|chart| &chart.releases);
        let releases = releases.into_iter().flatten();
        Ok(releases.map(|release| release.spelled.clone()).collect())
    }

    async fn look(&self, image: &ImageName, known: Option<&str>) -> ImageResponse {
        let ImageName { repository, track } = image;
        let missing = |is_there: bool, what: &str| {
            if self.index.is_whole {
                ImageResponse::not_listed(is_there, format!("the index has no {what}"))
            } else {
                ImageResponse::Failed(format!("the index, as far as it goes, has no {what}"))
            }
        };
        let Some(chart) = self.index.charts.get(repository) else {
            return missing(false, &format!("chart {repository}"));
        };
        let is_default = self.is_default(track);
        let release = if is_default {
            chart.offered().next()
        } else {
            chart.release(track)
        };
        let Some(release) = release else {
            if is_default {
                let why = format!("no version of chart {repository} can be compared with others");
                return ImageResponse::Failed(why);
            }
            return missing(true, &format!("version {track} of chart {repository}"));
        };
        let offer = Offer {
            repository: &self.opening.base.to_string(),
            name: repository,
            chart,
            release,
            is_fixed: !is_default,
            runner: &self.runner_digest,
        };
        let description = offer.description().to_string();
        let state = Digest::of(format!("{}\n{description}", self.runner_digest).as_bytes());
        if known == Some(state.as_str()) {
            return ImageResponse::Same;
        }
        let mut labels = self.runner.labels.clone();
        labels.retain(|label, _| !DESCRIPTIONS.contains(&label.as_str()));
        labels.insert(DESCRIPTIONS[0].to_owned(), STANDARD.encode(description));
        ImageResponse::Image(Seen {
            state_digest: Some(state.to_string()),
            labels,
            ..self.runner.clone()
        })
    }

    async fn manifest(&self, _chart: &str, digest: &Digest) -> Result<Bytes, FetchError> {
        let Opening { images, runner, .. } = &self.opening;
        images.manifest(&runner.repository, digest).await
    }

    async fn blob(
        &self,
        _chart: &str,
        digest: &Digest,
        into: mpsc::Sender<Bytes>,
    ) -> Result<(), FetchError> {
        let Opening { images, runner, .. } = &self.opening;
        images.blob(&runner.repository, digest, into).await
    }

    fn location(&self, _chart: &str) -> String {
        self.opening.runner.location()
    }

    fn requests(&self) -> u64 {
        self.opening.client.requests() + self.opening.images.requests()
    }

    /// Everything was asked when it was opened.
    fn has_given_up(&self) -> bool {
        false
    }
}
