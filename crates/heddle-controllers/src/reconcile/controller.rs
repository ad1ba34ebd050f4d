//! What enqueues an object for its controller, and the loop that takes it from the queue.
//!
//! An object is looked at when it changes, when something it refers to looks different, when the mesh answers differently
//! for it or its run moves on, and in any case once per resync period. None of these says why; the reconcile reads everything again.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use heddle_rt::Clock;
use heddle_rt::backoff::{KeyedBackoff, Limits};
use kube::runtime::applier;
use kube::runtime::controller::{Action, Config};
use kube::runtime::reflector::{ObjectRef, Store};
use parking_lot::Mutex;
use tokio::task::JoinSet;

use super::{Ctx, Error, OwnStatusWrites, ReconcileLoop, Reconciler, on_error, reconcile};
use crate::pulse::{self, Pulse};
use crate::referenced::Referenced;
use crate::references::{Index, Target};
use crate::watch::{Change, SharedWatch, Watched, key_of, sorted};
use crate::work_queue::WorkQueue;
use crate::{Bundles, DataPlane, HealthBoard, Report};

/// What one reconcile causes (children, a status) comes back as several wake-ups; together they are one.
const DEBOUNCE: Duration = Duration::from_millis(50);

/// Objects whose failures are remembered; more than that fail together only when the API server does.
const BACKOFF_KEYS_MAX: usize = 100_000;

/// One controller, while it is being connected to what wakes it.
pub(crate) struct Controller<B: Reconciler> {
    reconciler: B,
    store: Store<B::Kind>,
    queue: WorkQueue<B::Kind>,
    index: Index<B::Kind>,
    own_writes: OwnStatusWrites<B>,
}

impl<B: Reconciler<Kind: Watched>> Controller<B> {
    /// A controller that is woken by its own kind. `targets` says what else an object refers to.
    pub(crate) fn new(
        reconciler: B,
        shared_watch: &mut SharedWatch<B::Kind>,
        targets: fn(&B::Kind) -> Vec<Target>,
    ) -> Self {
        let (queue, index, own_writes) =
            (WorkQueue::new(), Index::new(), OwnStatusWrites::default());
        let store = shared_watch.store();
        {
            let (queue, index, own_writes) = (
                queue.clone(),
                index.clone(),
                OwnStatusWrites::clone(&own_writes),
            );
            shared_watch.on_change(move |change| {
                index.update(change, targets);
                // Nothing is left to do for what is gone.
                if !own_writes.is_own_write(change) && !matches!(change, Change::Deleted(_)) {
                    queue.enqueue(key_of(&**change.object()));
                }
            });
        }
        Self {
            reconciler,
            store,
            queue,
            index,
            own_writes,
        }
    }

    /// Wakes the object that `whom` names when anything changes in that kind.
    pub(crate) fn requeue_mapped<T: Watched>(
        self,
        shared_watch: &mut SharedWatch<T>,
        whom: fn(&T) -> Option<ObjectRef<B::Kind>>,
    ) -> Self {
        let queue = self.queue.clone();
        shared_watch.on_change(move |change| {
            whom(change.object())
                .into_iter()
                .for_each(|key| queue.enqueue(key));
        });
        self
    }

    /// Wakes the objects that `whom` finds in a change of that kind.
    pub(crate) fn requeue_each_mapped<T: Watched>(
        self,
        shared_watch: &mut SharedWatch<T>,
        whom: impl Fn(&Change<'_, T>) -> Vec<ObjectRef<B::Kind>> + Send + 'static,
    ) -> Self {
        let queue = self.queue.clone();
        shared_watch.on_change(move |change| {
            for key in whom(change) {
                queue.enqueue(key);
            }
        });
        self
    }

    /// Wakes whoever refers to what `about` finds in a change of that kind.
    pub(crate) fn requeue_referrers_of<T: Watched>(
        self,
        shared_watch: &mut SharedWatch<T>,
        about: fn(&Change<'_, T>) -> Vec<Target>,
    ) -> Self {
        let index = self.index.clone();
        self.requeue_each_mapped(shared_watch, move |change| {
            let targets = about(change);
            targets
                .iter()
                .flat_map(|target| index.referring(target))
                .collect()
        })
    }

    /// Wakes whoever refers to an object of that kind when anything changes in it.
    pub(crate) fn requeue_referrers_on_change<T: Watched>(
        self,
        shared_watch: &mut SharedWatch<T>,
    ) -> Self {
        let (queue, index) = (self.queue.clone(), self.index.clone());
        shared_watch.on_change(move |change| {
            for key in index.referrers(&**change.object()) {
                queue.enqueue(key);
            }
        });
        self
    }

    /// Wakes whoever refers to an object of that kind when it comes or goes.
    pub(crate) fn requeue_referrers_on_existence<T: Watched>(
        self,
        shared_watch: &mut SharedWatch<T>,
    ) -> Self {
        let (queue, index) = (self.queue.clone(), self.index.clone());
        shared_watch.on_change(move |change| {
            if matches!(change, Change::Applied { old: Some(_), .. }) {
                return;
            }
            for key in index.referrers(&**change.object()) {
                queue.enqueue(key);
            }
        });
        self
    }

    /// Wakes whoever refers to an object of that kind when it looks different from outside.
    pub(crate) fn requeue_referrers<T: Watched + Referenced>(
        self,
        shared_watch: &mut SharedWatch<T>,
    ) -> Self {
        let (queue, index) = (self.queue.clone(), self.index.clone());
        shared_watch.on_change(move |change| {
            if !referenced_state_changed(change) {
                return;
            }
            for key in index.referrers(&**change.object()) {
                queue.enqueue(key);
            }
        });
        self
    }

    /// Wakes objects for which the mesh answers differently, until the future is dropped. `view` hashes every answer
    /// that the status of an object depends on: the answers themselves and not what they mean for the object, which may
    /// be the same before and after both have moved on.
    pub(crate) fn requeue_on_mesh_change(
        &self,
        plane: Arc<dyn DataPlane>,
        view: fn(&dyn DataPlane, &B::Kind, &mut DefaultHasher),
    ) -> BoxFuture<'static, ()> {
        let (store, queue) = (self.store.clone(), self.queue.clone());
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
                        queue.enqueue(key.clone());
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
    pub(crate) fn requeue_on_run_change(
        &self,
        bundles: Arc<dyn Bundles>,
        is_under_way: fn(&B::Kind) -> bool,
    ) -> BoxFuture<'static, ()> {
        let (store, queue) = (self.store.clone(), self.queue.clone());
        async move {
            let mut seen = 0;
            loop {
                seen = bundles.changed(seen).await;
                let objects = sorted(store.state());
                for object in objects.iter().filter(|object| is_under_way(object)) {
                    queue.enqueue(key_of(&**object));
                }
            }
        }
        .boxed()
    }

    /// Wakes objects of which health says something else than before, until the future is dropped.
    pub(crate) fn requeue_on_health_change<T: PartialEq + Send + 'static>(
        &self,
        board: HealthBoard,
        view: fn(&Report, &B::Kind) -> Option<T>,
    ) -> BoxFuture<'static, ()> {
        let (store, queue) = (self.store.clone(), self.queue.clone());
        async move {
            let mut changes = board.changes();
            let mut known: HashMap<ObjectRef<B::Kind>, T> = HashMap::new();
            while changes.changed().await.is_ok() {
                changes.borrow_and_update();
                let Some(report) = board.published() else {
                    continue;
                };
                let mut now = HashMap::with_capacity(known.len());
                for object in sorted(store.state()) {
                    let key = key_of(&*object);
                    let seen = view(&report, &object);
                    if known.get(&key) != seen.as_ref() {
                        queue.enqueue(key.clone());
                    }
                    now.extend(seen.map(|seen| (key, seen)));
                }
                known = now;
            }
        }
        .boxed()
    }

    /// Reconciles whatever is woken, until the future is dropped.
    pub(crate) async fn run(self, ctx: Ctx) {
        let config = Config::default()
            .concurrency(ctx.options.concurrency)
            .debounce(DEBOUNCE);
        let (clock, queue) = (ctx.options.clock.clone(), self.queue.clone());
        let pulse = ctx.options.pulses.of(B::NAME, &clock);
        let beating = beat(Arc::clone(&pulse), queue, clock);
        let reconcile_loop = Arc::new(ReconcileLoop {
            pulse,
            backoff: Mutex::new(KeyedBackoff::new(
                Limits::default(),
                ctx.options.chance.clone(),
                BACKOFF_KEYS_MAX,
            )),
            ctx,
            own_writes: self.own_writes,
            reconciler: self.reconciler,
        });
        let working = applier(
            |wake, reconcile_loop| task(reconcile::<B>(wake, reconcile_loop)),
            on_error::<B>,
            reconcile_loop,
            self.store,
            self.queue.stream(),
            config,
        )
        .for_each(|outcome| {
            if let Err(error) = outcome {
                tracing::debug!(controller = B::NAME, %error, "a round ended early");
            }
            futures::future::ready(())
        });
        // In one future, so that a loop which is not polled does not beat.
        futures::future::join(working, beating).await;
    }
}

/// Beats until the future is dropped.
async fn beat<K: Watched>(pulse: Arc<Pulse>, queue: WorkQueue<K>, clock: Clock) {
    loop {
        let (queued, taken) = queue.depth();
        pulse.beat(clock.monotonic(), queued, taken);
        clock.sleep(pulse::PERIOD).await;
    }
}

/// Whether others see something else than before.
pub(crate) fn referenced_state_changed<T: Referenced>(change: &Change<'_, T>) -> bool {
    match change {
        Change::Applied {
            old: Some(old),
            new,
            ..
        } => old.referenced_state() != new.referenced_state(),
        _ => true,
    }
}

/// A reconcile as a task of its own, so that reconciles use all cores; it is dropped with this future.
fn task(
    round: impl Future<Output = Result<Action, Error>> + Send + 'static,
) -> BoxFuture<'static, Result<Action, Error>> {
    let mut tasks = JoinSet::new();
    tasks.spawn(round);
    async move {
        match tasks.join_next().await {
            Some(Ok(outcome)) => outcome,
            // A reconcile catches its own panics, and nobody else holds the task: the runtime is going down.
            _ => std::future::pending().await,
        }
    }
    .boxed()
}
