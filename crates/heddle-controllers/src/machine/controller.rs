//! What wakes a controller, and the loop that it wakes.
//!
//! An object is looked at when it changes, when something it refers to looks different, when the mesh answers differently
//! for it or its run moves on, and in any case once per resync period. None of these says why; the round reads everything again.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use heddle_rt::backoff::{KeyedBackoff, Limits};
use kube::runtime::applier;
use kube::runtime::controller::{Action, Config};
use kube::runtime::reflector::{ObjectRef, Store};
use parking_lot::Mutex;
use tokio::task::JoinSet;

use super::{Beats, Ctx, Echo, Error, Machine, on_error, reconcile};
use crate::outlook::Seen;
use crate::references::{Index, Target};
use crate::wake::Inbox;
use crate::watch::{Change, Hub, Watched, key_of, sorted};
use crate::{Bundles, DataPlane};

/// What one round causes (children, a status) comes back as several wake-ups; together they are one.
const DEBOUNCE: Duration = Duration::from_millis(50);

/// Objects whose failures are remembered; more than that fail together only when the API server does.
const KEYS_MAX: usize = 100_000;

/// One controller, while it is being connected to what wakes it.
pub(crate) struct Controller<B: Beats> {
    beats: B,
    store: Store<B::Kind>,
    inbox: Inbox<B::Kind>,
    index: Index<B::Kind>,
    echo: Echo<B>,
}

impl<B: Beats<Kind: Watched>> Controller<B> {
    /// A controller that is woken by its own kind. `targets` says what else an object refers to.
    pub(crate) fn new(
        beats: B,
        hub: &mut Hub<B::Kind>,
        targets: fn(&B::Kind) -> Vec<Target>,
    ) -> Self {
        let (inbox, index, echo) = (Inbox::new(), Index::new(), Echo::default());
        let store = hub.store();
        {
            let (inbox, index, echo) = (inbox.clone(), index.clone(), Echo::clone(&echo));
            hub.listen(move |change| {
                index.update(change, targets);
                // Nothing is left to do for what is gone.
                if !echo.recognises(change) && !matches!(change, Change::Deleted(_)) {
                    inbox.wake(key_of(&**change.object()));
                }
            });
        }
        Self {
            beats,
            store,
            inbox,
            index,
            echo,
        }
    }

    /// Wakes the object that `whom` names when anything changes in that kind.
    pub(crate) fn wakes<T: Watched>(
        self,
        hub: &mut Hub<T>,
        whom: fn(&T) -> Option<ObjectRef<B::Kind>>,
    ) -> Self {
        let inbox = self.inbox.clone();
        hub.listen(move |change| {
            whom(change.object())
                .into_iter()
                .for_each(|key| inbox.wake(key));
        });
        self
    }

    /// Wakes the objects that `whom` finds in a change of that kind.
    pub(crate) fn hears<T: Watched>(
        self,
        hub: &mut Hub<T>,
        whom: impl Fn(&Change<'_, T>) -> Vec<ObjectRef<B::Kind>> + Send + 'static,
    ) -> Self {
        let inbox = self.inbox.clone();
        hub.listen(move |change| {
            for key in whom(change) {
                inbox.wake(key);
            }
        });
        self
    }

    /// Wakes whoever refers to what `about` finds in a change of that kind.
    pub(crate) fn follows_by<T: Watched>(
        self,
        hub: &mut Hub<T>,
        about: fn(&Change<'_, T>) -> Vec<Target>,
    ) -> Self {
        let index = self.index.clone();
        self.hears(hub, move |change| {
            let targets = about(change);
            targets
                .iter()
                .flat_map(|target| index.referring(target))
                .collect()
        })
    }

    /// Wakes whoever refers to an object of that kind when anything changes in it.
    pub(crate) fn follows_closely<T: Watched>(self, hub: &mut Hub<T>) -> Self {
        let (inbox, index) = (self.inbox.clone(), self.index.clone());
        hub.listen(move |change| {
            for key in index.referrers(&**change.object()) {
                inbox.wake(key);
            }
        });
        self
    }

    /// Wakes whoever refers to an object of that kind when it comes or goes.
    pub(crate) fn follows_existence<T: Watched>(self, hub: &mut Hub<T>) -> Self {
        let (inbox, index) = (self.inbox.clone(), self.index.clone());
        hub.listen(move |change| {
            if matches!(change, Change::Applied { old: Some(_), .. }) {
                return;
            }
            for key in index.referrers(&**change.object()) {
                inbox.wake(key);
            }
        });
        self
    }

    /// Wakes whoever refers to an object of that kind when it looks different from outside.
    pub(crate) fn follows<T: Watched + Seen>(self, hub: &mut Hub<T>) -> Self {
        let (inbox, index) = (self.inbox.clone(), self.index.clone());
        hub.listen(move |change| {
            if !looks_different(change) {
                return;
            }
            for key in index.referrers(&**change.object()) {
                inbox.wake(key);
            }
        });
        self
    }

    /// Wakes objects for which the mesh answers differently, until the future is dropped. `view` hashes every answer
    /// that the status of an object depends on: the answers themselves and not what they mean for the object, which may
    /// be the same before and after both have moved on.
    pub(crate) fn heeds_mesh(
        &self,
        plane: Arc<dyn DataPlane>,
        view: fn(&dyn DataPlane, &B::Kind, &mut DefaultHasher),
    ) -> BoxFuture<'static, ()> {
        let (store, inbox) = (self.store.clone(), self.inbox.clone());
        async move {
            let mut seen = 0;
            let mut known: HashMap<ObjectRef<B::Kind>, u64> = HashMap::new();
            // Of an object for which nothing is asked, nothing has to be remembered.
            let unasked = DefaultHasher::new().finish();
            loop {
                seen = plane.changed(seen).await;
                let mut now = HashMap::with_capacity(known.len());
                for object in sorted(store.state()) {
                    let mut hasher = DefaultHasher::new();
                    view(&*plane, &object, &mut hasher);
                    let (key, stamp) = (key_of(&*object), hasher.finish());
                    if *known.get(&key).unwrap_or(&unasked) != stamp {
                        inbox.wake(key.clone());
                    }
                    if stamp != unasked {
                        now.insert(key, stamp);
                    }
                }
                known = now;
            }
        }
        .boxed()
    }

    /// Wakes objects whose run is under way, as `is_under_way` says, whenever some run may have moved on, until the future is
    /// dropped. Which run it was is not asked: few are under way at once.
    pub(crate) fn heeds_runs(
        &self,
        bundles: Arc<dyn Bundles>,
        is_under_way: fn(&B::Kind) -> bool,
    ) -> BoxFuture<'static, ()> {
        let (store, inbox) = (self.store.clone(), self.inbox.clone());
        async move {
            let mut seen = 0;
            loop {
                seen = bundles.changed(seen).await;
                let objects = sorted(store.state());
                for object in objects.iter().filter(|object| is_under_way(object)) {
                    inbox.wake(key_of(&**object));
                }
            }
        }
        .boxed()
    }

    /// Reconciles whatever is woken, until the future is dropped.
    pub(crate) async fn run(self, ctx: Ctx) {
        let config = Config::default()
            .concurrency(ctx.options.concurrency)
            .debounce(DEBOUNCE);
        let machine = Arc::new(Machine {
            backoff: Mutex::new(KeyedBackoff::new(
                Limits::default(),
                ctx.options.chance.clone(),
                KEYS_MAX,
            )),
            ctx,
            echo: self.echo,
            beats: self.beats,
        });
        applier(
            |wake, machine| task(reconcile::<B>(wake, machine)),
            on_error::<B>,
            machine,
            self.store,
            self.inbox.stream(),
            config,
        )
        .for_each(|outcome| {
            if let Err(error) = outcome {
                tracing::debug!(controller = B::NAME, %error, "a round ended early");
            }
            futures::future::ready(())
        })
        .await;
    }
}

/// Whether others see something else than before.
pub(crate) fn looks_different<T: Seen>(change: &Change<'_, T>) -> bool {
    match change {
        Change::Applied {
            old: Some(old),
            new,
            ..
        } => old.outlook() != new.outlook(),
        _ => true,
    }
}

/// A round as a task of its own, so that rounds use all cores; it is dropped with this future.
fn task(
    round: impl Future<Output = Result<Action, Error>> + Send + 'static,
) -> BoxFuture<'static, Result<Action, Error>> {
    let mut tasks = JoinSet::new();
    tasks.spawn(round);
    async move {
        match tasks.join_next().await {
            Some(Ok(outcome)) => outcome,
            // A round catches its own panics, and nobody else holds the task: the runtime is going down.
            _ => std::future::pending().await,
        }
    }
    .boxed()
}
