//! The catalog of a running system: what watches brought, compiled, rendered once and served from memory.
//!
//! Promises: a reader sees one state of everything; nothing is taken away because a watch broke; a document is rendered once
//! for as long as the catalog and the mappings of its namespace stay what they are; serving one asks nobody. What it leaves to
//! others: to keep the future of [`start`] running, not to take the emptiness before the first list for a catalog, and to let
//! one render what several ask for.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use futures::FutureExt as _;
use futures::future::{self, BoxFuture};
use heddle_api::tombstone::{self, Tombstone};
use heddle_api::well_known::{RECORD_LABEL, SYSTEM_NAMESPACE};
use heddle_api::{Application, ApplicationMapping, Bundle, BundleRevision, Registry};
use heddle_rt::{Chance, Clock};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::watcher::Event;
use kube::{Api, Client, Resource, ResourceExt};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use super::bundles::Bundles;
use super::compile::offerings;
use super::mirror::{Mirror, Moved, Watched, follow};
use super::{Catalog, Census, Coding, Document, Enabled, Level, Offering, Rules, Withdrawal};

#[derive(Debug, Clone)]
pub struct Options {
    pub clock: Clock,
    pub chance: Chance,
    pub rules: Rules,
    /// Everything is listed again this often, however quiet the watches are.
    pub resync: Duration,
}

impl Options {
    pub fn new(clock: Clock, chance: Chance, rules: Rules) -> Self {
        Self {
            clock,
            chance,
            rules,
            resync: Duration::from_secs(600),
        }
    }
}

/// Starts to follow what the catalog is made from: the catalog as it will be, and the future that keeps it so until it is
/// dropped.
pub fn start(client: Client, options: Options) -> (LiveOffers, BoxFuture<'static, ()>) {
    let offers = LiveOffers::new(options.rules);
    let all = vec![
        followed(&client, &options, &offers, LiveOffers::take_applications),
        followed(&client, &options, &offers, LiveOffers::take_mappings),
        followed(&client, &options, &offers, LiveOffers::take_bundles),
        followed(&client, &options, &offers, LiveOffers::take_revisions),
        followed(&client, &options, &offers, LiveOffers::take_registries),
        followed(&client, &options, &offers, |offers, events| {
            offers.census().take(events);
        }),
        tombstones(client, options, offers.clone()),
    ];
    (offers, future::join_all(all).map(|_| ()).boxed())
}

/// Follows a kind, wherever its objects are.
fn followed<K>(
    client: &Client,
    options: &Options,
    offers: &LiveOffers,
    take: fn(&LiveOffers, Vec<Event<K>>),
) -> BoxFuture<'static, ()>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let offers = offers.clone();
    let tell = move |events| take(&offers, events);
    follow(Api::<K>::all(client.clone()), None, options.clone(), tell).boxed()
}

/// Follows what is remembered of bundles that are gone.
fn tombstones(client: Client, options: Options, offers: LiveOffers) -> BoxFuture<'static, ()> {
    let api: Api<ConfigMap> = Api::namespaced(client, SYSTEM_NAMESPACE);
    async move {
        let labels = format!("{RECORD_LABEL}={}", tombstone::LABEL);
        let tell = move |events| offers.take_tombstones(events);
        follow(api, Some(&labels), options, tell).await;
    }
    .boxed()
}

/// What is offered at present. Cheap to clone; all clones are one.
#[derive(Debug, Clone)]
pub struct LiveOffers(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    rules: Rules,
    /// What the watches brought. Lock order: this before `documents`.
    sources: Mutex<Sources>,
    snapshot: ArcSwap<CatalogSnapshot>,
    documents: Mutex<HashMap<Key, Rendered>>,
    census: Census,
    ready: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Sources {
    applications: Mirror<Application>,
    mappings: Mirror<ApplicationMapping>,
    bundles: Mirror<Bundle>,
    revisions: Mirror<BundleRevision>,
    registries: Mirror<Registry>,
    tombstones: Mirror<ConfigMap>,
    /// What the Applications offer.
    of_applications: Vec<Arc<Offering>>,
    of_bundles: Bundles,
}

impl Sources {
    fn are_listed(&self) -> bool {
        self.applications.is_listed()
            && self.mappings.is_listed()
            && self.bundles.is_listed()
            && self.revisions.is_listed()
            && self.registries.is_listed()
            && self.tombstones.is_listed()
    }

    /// Makes the drafts of these bundles anew.
    fn redraft(&mut self, names: impl IntoIterator<Item = String>) {
        for name in names {
            let bundle = self.bundles.get(&name);
            let registry = bundle.and_then(|bundle| self.registries.get(&bundle.spec.registry));
            let track = registry.map_or("latest", |registry| &registry.spec.tags.default);
            self.of_bundles.redraft(&name, bundle, track);
        }
    }

    fn compile(&self) -> Catalog {
        let mut catalog = self.of_bundles.assemble(&self.of_applications);
        let known: HashSet<&str> = catalog
            .offerings
            .iter()
            .map(|one| one.id.as_str())
            .collect();
        for tombstone in self.tombstones.iter() {
            let Some(gone) = Tombstone::from_config_map(tombstone) else {
                continue;
            };
            // It may have come back.
            if !known.contains(gone.service_id.as_str()) {
                let withdrawal = Withdrawal {
                    name: gone.name,
                    registry: gone.registry,
                    since: Some(gone.withdrawn_at.0),
                    reason: Some(gone.reason),
                };
                catalog
                    .withdrawn
                    .entry(gone.service_id)
                    .or_insert(withdrawal);
            }
        }
        let living = |registry: &&Registry| registry.metadata.deletion_timestamp.is_none();
        let converged = |registry: &Registry| registry.status.as_ref()?.converged_generation;
        let mut never_read = false;
        for registry in self.registries.iter().filter(living) {
            let read = converged(registry);
            if read.is_none() || read != registry.metadata.generation {
                never_read |= read.is_none();
                catalog.unread.push(registry.name_any());
            }
        }
        catalog.is_fresh = never_read && self.bundles.iter().next().is_none();
        catalog
    }
}

/// What a batch of events changed.
enum ChangedNames {
    Nothing,
    /// The objects of these names.
    Some(BTreeSet<String>),
    /// Perhaps everything: it was listed anew.
    All,
}

fn take_in<K: Watched>(mirror: &mut Mirror<K>, events: Vec<Event<K>>) -> ChangedNames {
    let (mut names, mut listed) = (BTreeSet::new(), false);
    for event in events {
        match mirror.take_in(event) {
            Moved::Nothing => {}
            Moved::Object((_, name)) => {
                names.insert(name);
            }
            Moved::All => listed = true,
        }
    }
    match (listed, names.is_empty()) {
        (true, _) => ChangedNames::All,
        (false, true) => ChangedNames::Nothing,
        (false, false) => ChangedNames::Some(names),
    }
}

/// One state of everything. Parts that did not change are shared with the state before.
#[derive(Debug, Clone, Default)]
pub struct CatalogSnapshot {
    pub catalog: Arc<Catalog>,
    /// By namespace; one without mappings is not in it.
    enabled: BTreeMap<String, Arc<Enabled>>,
}

impl CatalogSnapshot {
    /// Whether a plan can be had in a namespace, or anywhere.
    #[must_use]
    pub fn is_offered(&self, namespace: Option<&str>, service_id: &str, plan_id: &str) -> bool {
        let Some((_, plan)) = self.catalog.find(service_id, plan_id) else {
            return false;
        };
        let none = Enabled::default();
        let enabled = |namespace| {
            let enabled = self
                .enabled
                .get(namespace)
                .map_or(&none, |enabled| &**enabled);
            enabled.enables(&plan.backing)
        };
        !plan.withdrawn && namespace.is_none_or(enabled)
    }
}

/// Whose document it is. Namespaces without mappings share one, so that asking for many that do not exist costs nothing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum CatalogScope {
    Everybody,
    Nobody,
    Namespace(String),
}

impl CatalogScope {
    /// Of a namespace, or of all, and what is enabled there.
    fn of(namespace: Option<&str>, snapshot: &CatalogSnapshot) -> (Self, Option<Arc<Enabled>>) {
        match namespace.map(|name| (name, snapshot.enabled.get(name))) {
            None => (Self::Everybody, None),
            Some((_, None)) => (Self::Nobody, Some(Arc::default())),
            Some((name, Some(enabled))) => {
                (Self::Namespace(name.to_owned()), Some(enabled.clone()))
            }
        }
    }
}

/// Whose document it is, for which platforms, in which form.
type Key = (CatalogScope, Level, Coding);

#[derive(Debug)]
struct Rendered {
    catalog: Arc<Catalog>,
    enabled: Option<Arc<Enabled>>,
    document: Document,
}

impl LiveOffers {
    pub(super) fn new(rules: Rules) -> Self {
        Self(Arc::new(Inner {
            rules,
            sources: Mutex::default(),
            snapshot: ArcSwap::default(),
            documents: Mutex::default(),
            census: Census::default(),
            ready: watch::Sender::new(false),
        }))
    }

    /// Which instances there are.
    #[must_use]
    pub fn census(&self) -> &Census {
        &self.0.census
    }

    /// Whether everything that the catalog is made from has been listed once. Until then nothing is known, rather than nothing
    /// offered.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        *self.0.ready.borrow()
    }

    /// Returns when they have been.
    pub async fn ready(&self) {
        let mut ready = self.0.ready.subscribe();
        // The sender lives as long as `self`, so waiting cannot fail.
        let _always_ok = ready.wait_for(|ready| *ready).await;
    }

    /// Everything, as it is now.
    #[must_use]
    pub fn snapshot(&self) -> Arc<CatalogSnapshot> {
        self.0.snapshot.load_full()
    }

    /// What is known. The same catalog is the same `Arc`.
    #[must_use]
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.0.snapshot.load().catalog)
    }

    /// Whether a plan can be had in a namespace, or anywhere.
    #[must_use]
    pub fn is_offered(&self, namespace: Option<&str>, service_id: &str, plan_id: &str) -> bool {
        let snapshot = self.0.snapshot.load();
        snapshot.is_offered(namespace, service_id, plan_id)
    }

    /// The catalog for platforms of a level: what a namespace is offered, or what is offered anywhere. Renders it unless it
    /// is [rendered](Self::rendered), which takes a while for a large one.
    #[must_use]
    pub fn document(&self, namespace: Option<&str>, level: Level, coding: Coding) -> Document {
        let snapshot = self.0.snapshot.load();
        let (scope, enabled) = CatalogScope::of(namespace, &snapshot);
        let key = (scope, level, coding);
        if let Some(known) = self.kept(&snapshot, &key) {
            return known;
        }
        let document = Document::of(&snapshot.catalog, enabled.as_deref(), level, coding);
        let rendered = Rendered {
            catalog: Arc::clone(&snapshot.catalog),
            enabled,
            document: document.clone(),
        };
        let mut documents = self.0.documents.lock();
        // A snapshot that came meanwhile has cleaned up already; what belongs to an older one is not kept.
        if rendered.is_of(&self.0.snapshot.load(), &key.0) {
            documents.insert(key, rendered);
        }
        document
    }

    /// The same, if nothing has to be rendered for it.
    #[must_use]
    pub fn rendered(
        &self,
        namespace: Option<&str>,
        level: Level,
        coding: Coding,
    ) -> Option<Document> {
        let snapshot = self.0.snapshot.load();
        let (scope, _) = CatalogScope::of(namespace, &snapshot);
        self.kept(&snapshot, &(scope, level, coding))
    }

    fn kept(&self, snapshot: &CatalogSnapshot, key: &Key) -> Option<Document> {
        let documents = self.0.documents.lock();
        let rendered = documents.get(key)?;
        rendered
            .is_of(snapshot, &key.0)
            .then(|| rendered.document.clone())
    }

    pub(super) fn take_applications(&self, events: Vec<Event<Application>>) {
        let mut sources = self.0.sources.lock();
        if let ChangedNames::Nothing = take_in(&mut sources.applications, events) {
            return;
        }
        sources.of_applications = offerings(sources.applications.iter(), self.0.rules);
        self.recompile(&sources);
    }

    pub(super) fn take_bundles(&self, events: Vec<Event<Bundle>>) {
        let mut sources = self.0.sources.lock();
        let names = match take_in(&mut sources.bundles, events) {
            ChangedNames::Nothing => return,
            ChangedNames::Some(names) => names,
            ChangedNames::All => {
                let listed = sources.bundles.iter().map(ResourceExt::name_any);
                listed.chain(sources.of_bundles.names()).collect()
            }
        };
        sources.redraft(names);
        self.recompile(&sources);
    }

    pub(super) fn take_revisions(&self, events: Vec<Event<BundleRevision>>) {
        let mut guard = self.0.sources.lock();
        let sources = &mut *guard;
        let names = match take_in(&mut sources.revisions, events) {
            ChangedNames::Nothing => return,
            ChangedNames::Some(names) => names,
            ChangedNames::All => {
                let listed = sources.revisions.iter().map(ResourceExt::name_any);
                listed.chain(sources.of_bundles.revisions()).collect()
            }
        };
        let mut bundles = BTreeSet::new();
        for name in names {
            let bundle = match sources.revisions.get(&name) {
                Some(revision) => sources.of_bundles.put_revision(revision),
                None => sources.of_bundles.remove_revision(&name),
            };
            bundles.extend(bundle);
        }
        sources.redraft(bundles);
        self.recompile(&guard);
    }

    pub(crate) fn take_registries(&self, events: Vec<Event<Registry>>) {
        let mut guard = self.0.sources.lock();
        let sources = &mut *guard;
        let changed = take_in(&mut sources.registries, events);
        // A registry says which tag is the one of all, and so how its bundles are called.
        let concerned: Vec<String> = match &changed {
            ChangedNames::Nothing => return,
            ChangedNames::Some(names) => {
                let bundles = sources.bundles.iter();
                let theirs = bundles.filter(|bundle| names.contains(&bundle.spec.registry));
                theirs.map(ResourceExt::name_any).collect()
            }
            ChangedNames::All => sources.bundles.iter().map(ResourceExt::name_any).collect(),
        };
        sources.redraft(concerned);
        self.recompile(&guard);
    }

    pub(super) fn take_tombstones(&self, events: Vec<Event<ConfigMap>>) {
        let mut sources = self.0.sources.lock();
        if let ChangedNames::Nothing = take_in(&mut sources.tombstones, events) {
            return;
        }
        self.recompile(&sources);
    }

    /// Puts the catalog together anew. One that is equal to the last is the last.
    fn recompile(&self, sources: &Sources) {
        let before = self.0.snapshot.load();
        let compiled = sources.compile();
        let catalog = if compiled == *before.catalog {
            Arc::clone(&before.catalog)
        } else {
            Arc::new(compiled)
        };
        let enabled = before.enabled.clone();
        self.publish(sources, CatalogSnapshot { catalog, enabled });
    }

    pub(super) fn take_mappings(&self, events: Vec<Event<ApplicationMapping>>) {
        let mut sources = self.0.sources.lock();
        let mut enabled = self.0.snapshot.load().enabled.clone();
        let (mut namespaces, mut listed) = (BTreeSet::new(), false);
        for event in events {
            match sources.mappings.take_in(event) {
                Moved::Nothing => {}
                Moved::Object((namespace, _)) => {
                    namespaces.insert(namespace);
                }
                Moved::All => {
                    listed = true;
                    namespaces.extend(enabled.keys().cloned());
                    namespaces.extend(sources.mappings.namespaces());
                }
            }
        }
        if namespaces.is_empty() && !listed {
            return;
        }
        for namespace in namespaces {
            let now = Enabled::by(sources.mappings.in_namespace(&namespace));
            if now == Enabled::default() {
                enabled.remove(&namespace);
            } else if enabled.get(&namespace).is_none_or(|before| **before != now) {
                enabled.insert(namespace, Arc::new(now));
            }
        }
        let catalog = self.catalog();
        self.publish(&sources, CatalogSnapshot { catalog, enabled });
    }

    /// Shows a new state to readers, and forgets documents of earlier ones. Whoever calls it holds the sources, so states
    /// are shown in the order in which they came about.
    fn publish(&self, sources: &Sources, snapshot: CatalogSnapshot) {
        let snapshot = Arc::new(snapshot);
        self.0.snapshot.store(Arc::clone(&snapshot));
        let mut documents = self.0.documents.lock();
        documents.retain(|(scope, _, _), rendered| rendered.is_of(&snapshot, scope));
        drop(documents);
        if sources.are_listed() {
            self.0
                .ready
                .send_if_modified(|ready| !std::mem::replace(ready, true));
        }
    }
}

impl Rendered {
    /// Whether the document is what `snapshot` would be rendered to.
    fn is_of(&self, snapshot: &CatalogSnapshot, scope: &CatalogScope) -> bool {
        let same_enabled = match scope {
            CatalogScope::Everybody | CatalogScope::Nobody => true,
            CatalogScope::Namespace(name) => match (&self.enabled, snapshot.enabled.get(name)) {
                (Some(before), Some(now)) => Arc::ptr_eq(before, now),
                _ => false,
            },
        };
        same_enabled && Arc::ptr_eq(&self.catalog, &snapshot.catalog)
    }
}
