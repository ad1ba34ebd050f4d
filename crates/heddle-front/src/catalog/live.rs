//! The catalog of a running system: what watches brought, compiled, rendered once and served from memory.
//!
//! Promises: a reader sees one state of everything; nothing is taken away because a watch broke; a document is rendered once
//! for as long as the catalog and the mappings of its namespace stay what they are; serving one asks nobody. What it leaves to
//! others: to keep the future of [`start`] running, and not to take the emptiness before the first list for a catalog.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use futures::FutureExt as _;
use futures::future::{self, BoxFuture};
use heddle_api::{Application, ApplicationMapping};
use heddle_rt::{Chance, Clock};
use kube::runtime::watcher::Event;
use kube::{Api, Client};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::mirror::{Mirror, Moved, follow};
use super::{Catalog, Document, Enabled, Level, Rules, compile};

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

/// Starts to follow Applications and their mappings: the catalog as it will be, and the future that keeps it so until it is
/// dropped.
pub fn start(client: Client, options: Options) -> (LiveOffers, BoxFuture<'static, ()>) {
    let offers = LiveOffers::new(options.rules);
    let (of_applications, of_mappings) = (offers.clone(), offers.clone());
    let applications = follow(
        Api::<Application>::all(client.clone()),
        options.clone(),
        move |events| of_applications.take_applications(events),
    );
    let mappings = follow(
        Api::<ApplicationMapping>::all(client),
        options,
        move |events| of_mappings.take_mappings(events),
    );
    (
        offers,
        future::join(applications, mappings).map(|_| ()).boxed(),
    )
}

/// What is offered at present. Cheap to clone; all clones are one.
#[derive(Debug, Clone)]
pub struct LiveOffers(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    rules: Rules,
    /// What the watches brought. Lock order: this before `documents`.
    sources: Mutex<Sources>,
    snapshot: ArcSwap<Snapshot>,
    documents: Mutex<HashMap<(Scope, Level), Rendered>>,
    ready: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Sources {
    applications: Mirror<Application>,
    mappings: Mirror<ApplicationMapping>,
}

/// One state of everything. Parts that did not change are shared with the state before.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    pub catalog: Arc<Catalog>,
    /// By namespace; one without mappings is not in it.
    enabled: BTreeMap<String, Arc<Enabled>>,
}

impl Snapshot {
    /// Whether a plan can be had in a namespace, or anywhere.
    #[must_use]
    pub fn is_offered(&self, namespace: Option<&str>, service_id: &str, plan_id: &str) -> bool {
        let Some((_, plan)) = self.catalog.find(service_id, plan_id) else {
            return false;
        };
        let enabled = |namespace| {
            let enabled = self.enabled.get(namespace);
            enabled.is_some_and(|enabled| enabled.enables(&plan.backing))
        };
        !plan.withdrawn && namespace.is_none_or(enabled)
    }
}

/// Whose document it is. Namespaces without mappings share one, so that asking for many that do not exist costs nothing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Scope {
    Everybody,
    Nobody,
    Namespace(String),
}

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
            ready: watch::Sender::new(false),
        }))
    }

    /// Whether Applications and mappings have been listed once. Until then nothing is known, rather than nothing offered.
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
    pub fn snapshot(&self) -> Arc<Snapshot> {
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

    /// The catalog for platforms of a level: what a namespace is offered, or what is offered anywhere.
    #[must_use]
    pub fn document(&self, namespace: Option<&str>, level: Level) -> Document {
        let snapshot = self.0.snapshot.load();
        let (scope, enabled) = match namespace.map(|name| (name, snapshot.enabled.get(name))) {
            None => (Scope::Everybody, None),
            Some((_, None)) => (Scope::Nobody, Some(Arc::default())),
            Some((name, Some(enabled))) => {
                (Scope::Namespace(name.to_owned()), Some(enabled.clone()))
            }
        };
        let key = (scope, level);
        if let Some(rendered) = self.0.documents.lock().get(&key)
            && rendered.is_of(&snapshot, &key.0)
        {
            return rendered.document.clone();
        }
        let document = Document::of(&snapshot.catalog, enabled.as_deref(), level);
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

    pub(super) fn take_applications(&self, events: Vec<Event<Application>>) {
        let mut sources = self.0.sources.lock();
        let mut moved = false;
        for event in events {
            moved |= sources.applications.take_in(event) != Moved::Nothing;
        }
        if !moved {
            return;
        }
        let before = self.0.snapshot.load();
        let compiled = compile(sources.applications.iter(), self.0.rules);
        let catalog = if compiled == *before.catalog {
            Arc::clone(&before.catalog)
        } else {
            Arc::new(compiled)
        };
        let enabled = before.enabled.clone();
        self.publish(&sources, Snapshot { catalog, enabled });
    }

    pub(super) fn take_mappings(&self, events: Vec<Event<ApplicationMapping>>) {
        let mut sources = self.0.sources.lock();
        let mut enabled = self.0.snapshot.load().enabled.clone();
        let (mut namespaces, mut listed) = (BTreeSet::new(), false);
        for event in events {
            match sources.mappings.take_in(event) {
                Moved::Nothing => {}
                Moved::Within(namespace) => {
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
        self.publish(&sources, Snapshot { catalog, enabled });
    }

    /// Shows a new state to readers, and forgets documents of earlier ones. Whoever calls it holds the sources, so states
    /// are shown in the order in which they came about.
    fn publish(&self, sources: &Sources, snapshot: Snapshot) {
        let snapshot = Arc::new(snapshot);
        self.0.snapshot.store(Arc::clone(&snapshot));
        let mut documents = self.0.documents.lock();
        documents.retain(|(scope, _), rendered| rendered.is_of(&snapshot, scope));
        drop(documents);
        if sources.applications.is_listed() && sources.mappings.is_listed() {
            self.0
                .ready
                .send_if_modified(|ready| !std::mem::replace(ready, true));
        }
    }
}

impl Rendered {
    /// Whether the document is what `snapshot` would be rendered to.
    fn is_of(&self, snapshot: &Snapshot, scope: &Scope) -> bool {
        let same_enabled = match scope {
            Scope::Everybody | Scope::Nobody => true,
            Scope::Namespace(name) => match (&self.enabled, snapshot.enabled.get(name)) {
                (Some(before), Some(now)) => Arc::ptr_eq(before, now),
                _ => false,
            },
        };
        same_enabled && Arc::ptr_eq(&self.catalog, &snapshot.catalog)
    }
}
