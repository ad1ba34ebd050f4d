//! Registries that only pretend: shelves with images, doors that can be shut, and a book of what was asked.
//!
//! They outlive the controllers that read them, as real ones do. Evidence is given as a real reader gives it: what is on a
//! shelf is seen, what is not is proven absent if the registry answers, and nothing is known if it does not. Regular
//! expressions are not spoken here: a black list holds whole names.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use heddle_api::action::{Run, RunState};
use heddle_api::bundle::MarkReason;
use heddle_api::bundle_revision::VersionSource;
use heddle_api::bundle_source::{Fetch, FetchError, ReadRequest};
use heddle_api::evidence::{
    Credentials, Found, ImageEvidence, ImageName, ImageSighting, Known, Reading, Trouble,
};
use heddle_api::registry::RegistrySpec;
use heddle_controllers::Bundles;
use heddle_rt::Clock;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

/// What is there to be read.
#[derive(Debug, Clone)]
pub struct TestRegistries(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    fakes: BTreeMap<String, FakeRegistry>,
    kept: BTreeSet<String>,
    readings: BTreeMap<String, usize>,
    under_way: BTreeMap<String, usize>,
    /// Readings of one registry that overlapped.
    overlaps: usize,
    /// Images that were looked at closely.
    looks: usize,
}

/// One registry.
#[derive(Debug, Clone, Default)]
struct FakeRegistry {
    /// By repository and tag.
    images: BTreeMap<(String, String), Image>,
    /// Digests that can still be fetched.
    stock: BTreeSet<String>,
    trouble: Option<Trouble>,
    password: Option<String>,
    takes: Duration,
    /// Repositories about which it says nothing of use.
    muddled: BTreeSet<String>,
}

#[derive(Debug, Clone)]
struct Image {
    digest: String,
    version: String,
    /// Why it cannot be offered, if it cannot.
    fault: Option<String>,
}

/// Something that happens to a registry.
#[derive(Debug, Clone)]
pub enum Event {
    /// A tag is set to an image of this version.
    Push {
        repository: String,
        tag: String,
        version: String,
    },
    /// A tag is set to an image that cannot be offered.
    PushBroken { repository: String, tag: String },
    /// A tag is removed.
    Remove { repository: String, tag: String },
    /// All of it is replaced by nothing.
    Empty,
    /// It is in trouble from now on, or not.
    Trouble(Option<Trouble>),
    /// It wants this password from now on, or none.
    Password(Option<String>),
    /// It takes this long from now on.
    Takes(Duration),
    /// What it says about a repository is of no use from now on, or is again.
    Muddle { repository: String, on: bool },
    /// Images without a tag are thrown away.
    CollectGarbage,
}

impl Event {
    pub fn push(repository: &str, tag: &str, version: &str) -> Self {
        Self::Push {
            repository: repository.to_owned(),
            tag: tag.to_owned(),
            version: version.to_owned(),
        }
    }

    pub fn remove(repository: &str, tag: &str) -> Self {
        Self::Remove {
            repository: repository.to_owned(),
            tag: tag.to_owned(),
        }
    }

    pub fn down() -> Self {
        Self::Trouble(Some(Trouble::Unreachable("connection refused".to_owned())))
    }

    pub fn up() -> Self {
        Self::Trouble(None)
    }
}

/// The digest of an image, which follows from what is in it.
pub fn digest(repository: &str, version: &str) -> String {
    let name = heddle_api::names::hashed("image", &[repository, version]);
    format!("sha256:{name}")
}

impl TestRegistries {
    /// Whether no registry was set up.
    pub fn is_empty(&self) -> bool {
        self.0.state.lock().fakes.is_empty()
    }

    pub fn new(clock: Clock) -> Self {
        Self(Arc::new(Inner {
            clock,
            state: Mutex::default(),
        }))
    }

    /// Lets something happen to a registry, which is there from then on.
    pub fn happen(&self, registry: &str, event: Event) {
        let mut state = self.0.state.lock();
        let fake = state.fakes.entry(registry.to_owned()).or_default();
        fake.happen(event);
    }

    /// How often a registry was read.
    pub fn readings(&self, registry: &str) -> usize {
        let state = self.0.state.lock();
        state.readings.get(registry).copied().unwrap_or_default()
    }

    /// How often two readings of one registry overlapped.
    pub fn overlaps(&self) -> usize {
        self.0.state.lock().overlaps
    }

    /// How many images were looked at closely, because their digest was new.
    pub fn looks(&self) -> usize {
        self.0.state.lock().looks
    }

    /// Digests of the images that are kept here.
    pub fn kept(&self) -> BTreeSet<String> {
        self.0.state.lock().kept.clone()
    }

    async fn read(self, request: ReadRequest) -> Reading {
        let name = request.registry.clone();
        let takes = {
            let mut state = self.0.state.lock();
            *state.readings.entry(name.clone()).or_default() += 1;
            let under_way = state.under_way.entry(name.clone()).or_default();
            *under_way += 1;
            if *under_way > 1 {
                state.overlaps += 1;
            }
            state.fakes.get(&name).map(|fake| fake.takes)
        };
        // Whoever stops listening, as a crash does, ends the reading.
        let _ends = Ends(&self, &name);
        self.0.clock.sleep(takes.unwrap_or_default()).await;
        let mut state = self.0.state.lock();
        let fake = state.fakes.get(&name).cloned().unwrap_or_default();
        let (reading, looks) = fake.read(&request);
        state.looks += looks;
        reading
    }
}

struct Ends<'a>(&'a TestRegistries, &'a str);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        let mut state = self.0.0.state.lock();
        if let Some(under_way) = state.under_way.get_mut(self.1) {
            *under_way -= 1;
        }
    }
}

impl FakeRegistry {
    fn happen(&mut self, event: Event) {
        match event {
            Event::Push {
                repository,
                tag,
                version,
            } => {
                let digest = digest(&repository, &version);
                self.stock.insert(digest.clone());
                let image = Image {
                    digest,
                    version,
                    fault: None,
                };
                self.images.insert((repository, tag), image);
            }
            Event::PushBroken { repository, tag } => {
                let image = Image {
                    digest: digest(&repository, "broken"),
                    version: String::new(),
                    fault: Some("runtime 99 is not known".to_owned()),
                };
                self.images.insert((repository, tag), image);
            }
            Event::Remove { repository, tag } => drop(self.images.remove(&(repository, tag))),
            Event::Empty => {
                self.images.clear();
                self.stock.clear();
            }
            Event::Trouble(trouble) => self.trouble = trouble,
            Event::Password(password) => self.password = password,
            Event::Takes(takes) => self.takes = takes,
            Event::Muddle { repository, on } => {
                if on {
                    self.muddled.insert(repository);
                } else {
                    self.muddled.remove(&repository);
                }
            }
            Event::CollectGarbage => {
                let tagged: BTreeSet<&String> =
                    self.images.values().map(|image| &image.digest).collect();
                self.stock.retain(|digest| tagged.contains(digest));
            }
        }
    }

    fn trouble(&self, credentials: &Credentials) -> Option<Trouble> {
        let given = match credentials {
            Credentials::Basic { password, .. } => Some(password),
            Credentials::None | Credentials::Token(_) => None,
        };
        if self.password.is_some() && self.password.as_ref() != given {
            return Some(Trouble::AuthenticationFailed(
                "the registry refuses the credentials".to_owned(),
            ));
        }
        self.trouble.clone()
    }

    /// What a reading brings, and how many images it looked at closely.
    fn read(&self, request: &ReadRequest) -> (Reading, usize) {
        let spec = &*request.spec;
        if let Some(trouble) = self.trouble(&request.credentials) {
            let why = trouble.message().to_owned();
            let unknown = |known: &Known| ImageSighting {
                image: known.image.clone(),
                verdict: ImageEvidence::Unknown { why: why.clone() },
            };
            let reading = Reading {
                sightings: request.known.iter().map(unknown).collect(),
                trouble: Some(trouble),
                requests: 1,
            };
            return (reading, 0);
        }
        let here = self.images.keys().map(|(repository, track)| ImageName {
            repository: repository.clone(),
            track: track.clone(),
        });
        let known = request.known.iter().map(|known| known.image.clone());
        let wanted = here.filter(|image| is_wanted(spec, image));
        let all: BTreeSet<ImageName> = wanted.chain(known).collect();
        let mut looks = 0;
        let sightings = all.into_iter().map(|image| {
            let known = request.known.iter().find(|known| known.image == image);
            let known = known.and_then(|known| known.digest.as_deref());
            let verdict = self.verdict(spec, &image, known);
            looks += usize::from(matches!(
                verdict,
                ImageEvidence::Present(_) | ImageEvidence::Rejected { .. }
            ));
            ImageSighting { image, verdict }
        });
        let sightings: Vec<ImageSighting> = sightings.collect();
        let reading = Reading {
            requests: 1 + sightings.len() as u64,
            sightings,
            trouble: None,
        };
        (reading, looks)
    }

    fn verdict(
        &self,
        spec: &RegistrySpec,
        image: &ImageName,
        known: Option<&str>,
    ) -> ImageEvidence {
        if !is_wanted(spec, image) {
            return ImageEvidence::Absent {
                reason: MarkReason::Filtered,
                why: "the registry's settings do not admit it".to_owned(),
            };
        }
        if self.muddled.contains(&image.repository) {
            return ImageEvidence::Unknown {
                why: "503 Service Unavailable".to_owned(),
            };
        }
        let key = (image.repository.clone(), image.track.clone());
        let Some(found) = self.images.get(&key) else {
            let has_others = self.images.keys().any(|(name, _)| *name == key.0);
            return ImageEvidence::Absent {
                reason: if has_others {
                    MarkReason::TagRemoved
                } else {
                    MarkReason::RemovedFromRegistry
                },
                why: "404 MANIFEST_UNKNOWN".to_owned(),
            };
        };
        if known == Some(&found.digest) {
            return ImageEvidence::Unchanged;
        }
        match &found.fault {
            Some(why) => ImageEvidence::Rejected {
                digest: found.digest.clone(),
                why: why.clone(),
            },
            None => ImageEvidence::Present(Box::new(found.found(image))),
        }
    }
}

impl Image {
    fn found(&self, image: &ImageName) -> Found {
        let name = image.repository.rsplit('/').next().unwrap_or_default();
        let description = json!({
            "version": "1.0", "name": name, "description": format!("{name} for tests"),
            "bindable": true, "async": "optional",
            "plans": [{"name": "default", "description": "the only one"}],
        });
        Found {
            state_digest: None,
            manifest_digest: self.digest.clone(),
            config_digest: format!("{}-config", self.digest),
            location: format!("registry.example/{}", image.repository),
            description: description.as_object().cloned().unwrap_or_default(),
            version: Some((self.version.clone(), VersionSource::Description)),
            runtime: 2,
        }
    }
}

fn is_wanted(spec: &RegistrySpec, image: &ImageName) -> bool {
    let is_named = spec.tags.named.iter().any(|named| {
        let is_same = image.repository == named.image
            || image.repository.ends_with(&format!("/{}", named.image));
        is_same && named.tag == image.track
    });
    let is_followed = is_named || image.track == spec.tags.default;
    is_followed && !spec.black_list.contains(&image.repository)
}

impl Bundles for TestRegistries {
    fn read(&self, request: ReadRequest) -> BoxFuture<'static, Reading> {
        self.clone().read(request).boxed()
    }

    fn is_kept(&self, manifest_digest: &str) -> bool {
        self.0.state.lock().kept.contains(manifest_digest)
    }

    fn keep(&self, fetch: Fetch) -> BoxFuture<'static, Result<(), FetchError>> {
        let mut state = self.0.state.lock();
        let fake = state.fakes.get(&fetch.registry).cloned();
        let fake = fake.unwrap_or_default();
        let outcome = match fake.trouble(&fetch.credentials) {
            Some(trouble) => Err(FetchError::Unavailable(trouble.message().to_owned())),
            None if !fake.stock.contains(&fetch.manifest_digest) => Err(FetchError::Unavailable(
                format!("404 for {}", fetch.manifest_digest),
            )),
            None => {
                state.kept.insert(fetch.manifest_digest);
                Ok(())
            }
        };
        std::future::ready(outcome).boxed()
    }

    fn keep_only(&self, manifest_digests: Vec<String>) -> BoxFuture<'static, Result<(), String>> {
        let needed: BTreeSet<String> = manifest_digests.into_iter().collect();
        let mut state = self.0.state.lock();
        state.kept.retain(|digest| needed.contains(digest));
        std::future::ready(Ok(())).boxed()
    }

    fn start(&self, _: Run) -> BoxFuture<'static, Result<(), String>> {
        let refusal = Err("nothing runs in this world".to_owned());
        std::future::ready(refusal).boxed()
    }

    fn look(&self, _: &str) -> BoxFuture<'static, RunState> {
        std::future::ready(RunState::Unheard).boxed()
    }

    fn credentials(
        &self,
        _: &str,
    ) -> BoxFuture<'static, Result<Option<Map<String, Value>>, String>> {
        std::future::ready(Ok(None)).boxed()
    }

    fn cancel(&self, _: &str) -> BoxFuture<'static, Result<(), String>> {
        std::future::ready(Ok(())).boxed()
    }

    fn forget(&self, _: &str) -> BoxFuture<'static, Result<(), String>> {
        std::future::ready(Ok(())).boxed()
    }

    fn forget_instance(&self, _: &str) -> BoxFuture<'static, Result<(), String>> {
        std::future::ready(Ok(())).boxed()
    }

    fn changed(&self, _: u64) -> BoxFuture<'static, u64> {
        std::future::pending().boxed()
    }
}
