//! A mesh that only pretends: it routes nothing and answers the controllers as if it did.
//!
//! What is handed to it comes into force a little later, as with a real mesh, or only when told to: tests that ask
//! whether anything is promised too early hold the table back. Compiling is trivial, and nothing is ever rejected.

use std::collections::{BTreeMap, HashMap};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use heddle_api::dataplane::{Fate, GivenUp, Held, MeshReading, Resources, RoutedConsumer};
use heddle_api::well_known::INTEGRATION_NAMESPACE;
use heddle_controllers::{DataPlane, GivingUp};
use heddle_rt::Clock;
use kube::{Resource, ResourceExt as _};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// How long a table takes from resources to being in force.
const LAG: Duration = Duration::from_millis(100);
/// Where publishers would reach this mesh.
pub const BASE_URL: &str = "http://mesh.example";

#[derive(Debug, Clone)]
pub struct TestPlane(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    clock: Clock,
    state: Mutex<State>,
    bell: Notify,
}

#[derive(Debug)]
struct State {
    in_force: Resources,
    /// The next table, and when it comes into force.
    next: Option<(Duration, Resources)>,
    /// Nothing comes into force for now.
    held_back: bool,
    listening: bool,
    log: Result<(), String>,
    held: HashMap<String, Held>,
    /// Events that have not ended, by the channel they came in at and the broker whose consumers want them.
    pending: BTreeMap<(String, String), u64>,
    /// What was given up, in order.
    given_up: Vec<(String, String, Fate, u64)>,
    mark: u64,
    /// How often resources were handed over.
    routed: usize,
}

impl TestPlane {
    pub fn new(clock: Clock) -> Self {
        Self(Arc::new(Inner {
            clock,
            state: Mutex::new(State {
                in_force: Resources::default(),
                next: None,
                held_back: false,
                listening: true,
                log: Ok(()),
                held: HashMap::new(),
                pending: BTreeMap::new(),
                given_up: Vec::new(),
                mark: 0,
                routed: 0,
            }),
            bell: Notify::new(),
        }))
    }

    /// Keeps the table in force as it is until [`TestPlane::release`].
    pub fn hold_back(&self) {
        self.0.change(|state| state.held_back = true);
    }

    pub fn release(&self) {
        self.0.change(|state| state.held_back = false);
    }

    pub fn set_listening(&self, listening: bool) {
        self.0.change(|state| state.listening = listening);
    }

    pub fn set_log(&self, log: Result<(), String>) {
        self.0.change(|state| state.log = log);
    }

    /// Says of a consumer that nothing is sent to it.
    pub fn set_held(&self, key: &str, held: Held) {
        self.0
            .change(|state| drop(state.held.insert(key.to_owned(), held)));
    }

    /// Says how many events that came in at a channel have not ended for a broker's consumers. As with a real mesh, nobody
    /// is woken by it.
    pub fn set_pending(&self, channel: &str, broker: &str, count: u64) {
        let key = (channel.to_owned(), broker.to_owned());
        self.0.state.lock().pending.insert(key, count);
    }

    /// What was given up, in order: channel, broker, how it ended, how much it was.
    pub fn given_up(&self) -> Vec<(String, String, Fate, u64)> {
        self.0.state.lock().given_up.clone()
    }

    /// How often resources were handed over.
    pub fn routed_count(&self) -> usize {
        self.0.state.lock().routed
    }
}

impl Inner {
    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock();
        change(&mut state);
        state.mark += 1;
        self.bell.notify_waiters();
    }

    /// Brings into force what is due, and looks.
    fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        let mut state = self.state.lock();
        let now = self.clock.monotonic();
        if !state.held_back && state.next.as_ref().is_some_and(|(due, _)| *due <= now) {
            state.in_force = state.next.take().map(|(_, next)| next).unwrap_or_default();
            state.mark += 1;
            self.bell.notify_waiters();
        }
        look(&state)
    }

    async fn changed(&self, seen: u64) -> u64 {
        loop {
            let mut rung = pin!(self.bell.notified());
            rung.as_mut().enable();
            let (mark, due) = self.look(|state| {
                let due = state.next.as_ref().map(|(due, _)| *due);
                (state.mark, due.filter(|_| !state.held_back))
            });
            if mark > seen {
                return mark;
            }
            match due {
                Some(due) => {
                    let left = due.saturating_sub(self.clock.monotonic());
                    self.clock.timeout(left, rung).await.ok();
                }
                None => rung.await,
            }
        }
    }
}

impl State {
    fn entry(&self, name: &str) -> bool {
        let mut parts = name.splitn(3, '/');
        let (word, namespace, name) = (parts.next(), parts.next(), parts.next());
        let (namespace, name) = (namespace.unwrap_or_default(), name.unwrap_or_default());
        match word {
            Some("channel") => find(&self.in_force.channels, namespace, name).is_some(),
            Some("broker") => find(&self.in_force.brokers, namespace, name).is_some(),
            _ => false,
        }
    }

    fn consumer(&self, key: &str) -> Option<RoutedConsumer> {
        let mut parts = key.splitn(3, '/');
        let (word, namespace, name) = (parts.next()?, parts.next()?, parts.next()?);
        let (meta, from) = match word {
            "trigger" => {
                let trigger = find(&self.in_force.triggers, namespace, name)?;
                let from = format!("broker/{namespace}/{}", trigger.spec.broker);
                (&trigger.metadata, from)
            }
            "subscription" => {
                let subscription = find(&self.in_force.subscriptions, namespace, name)?;
                let from = format!("channel/{namespace}/{}", subscription.spec.channel.name);
                (&subscription.metadata, from)
            }
            _ => return None,
        };
        self.entry(&from).then(|| RoutedConsumer {
            uid: meta.uid.clone().unwrap_or_default(),
            generation: meta.generation.unwrap_or_default(),
            held: self.held.get(key).cloned(),
            ..RoutedConsumer::default()
        })
    }

    fn application_open(&self, name: &str) -> Result<(), String> {
        let Some(application) = find(&self.in_force.applications, "", name) else {
            return Err(format!("there is no Application {name}"));
        };
        if application.spec.skip_installation {
            return Err("its installation is skipped".to_owned());
        }
        if find(&self.in_force.http_sources, INTEGRATION_NAMESPACE, name).is_none() {
            return Err("it has no source".to_owned());
        }
        if find(&self.in_force.channels, INTEGRATION_NAMESPACE, name).is_none() {
            return Err("it has no channel".to_owned());
        }
        Ok(())
    }
}

/// The object of that name, unless it is on its way out.
fn find<'a, K: Resource>(objects: &'a [Arc<K>], namespace: &str, name: &str) -> Option<&'a Arc<K>> {
    objects.iter().find(|object| {
        object.namespace().unwrap_or_default() == namespace
            && object.name_any() == name
            && object.meta().deletion_timestamp.is_none()
    })
}

impl DataPlane for TestPlane {
    fn base_url(&self) -> Option<String> {
        self.0
            .look(|state| state.listening.then(|| BASE_URL.to_owned()))
    }

    fn log_health(&self) -> Result<(), String> {
        self.0.look(|state| state.log.clone())
    }

    fn consumer(&self, key: &str) -> Option<RoutedConsumer> {
        self.0.look(|state| state.consumer(key))
    }

    fn rejected(&self, _: &str) -> Option<String> {
        None
    }

    fn entry(&self, name: &str) -> bool {
        self.0.look(|state| state.entry(name))
    }

    fn asks_who(&self) -> bool {
        true
    }

    fn application_open(&self, application: &str) -> Result<(), String> {
        self.0.look(|state| state.application_open(application))
    }

    fn pending(&self, broker: &str) -> u64 {
        self.0.look(|state| {
            let of_broker = |((_, to), count): (&(String, String), &u64)| {
                if to == broker { *count } else { 0 }
            };
            state.pending.iter().map(of_broker).sum()
        })
    }

    fn pending_through(&self, channel: &str, broker: &str) -> u64 {
        let key = (channel.to_owned(), broker.to_owned());
        self.0
            .look(|state| state.pending.get(&key).copied().unwrap_or_default())
    }

    fn give_up(&self, channel: &str, broker: &str, fate: Fate, _: &str) -> GivingUp {
        let inner = Arc::clone(&self.0);
        let (channel, broker) = (channel.to_owned(), broker.to_owned());
        async move {
            let mut state = inner.state.lock();
            let key = (channel.clone(), broker.clone());
            let count = state.pending.remove(&key).unwrap_or_default();
            state.given_up.push((channel, broker, fate, count));
            Ok(GivenUp::of(fate, count))
        }
        .boxed()
    }

    fn reading(&self) -> MeshReading {
        MeshReading::default()
    }

    fn route(&self, resources: Resources) {
        let mut state = self.0.state.lock();
        let due = self.0.clock.monotonic() + LAG;
        // A table that is already on its way keeps its time.
        let due = state.next.as_ref().map_or(due, |(earlier, _)| *earlier);
        state.next = Some((due, resources));
        state.routed += 1;
        self.0.bell.notify_waiters();
    }

    fn changed(&self, seen: u64) -> BoxFuture<'static, u64> {
        let inner = Arc::clone(&self.0);
        async move { inner.changed(seen).await }.boxed()
    }
}
