//! What platforms ask for: a file per verb.
//!
//! Each verb that writes has a pure `decide`, which holds the order of its checks, and an `answer`, which reads, lets
//! decide, writes, and says what came of it. Between reading and writing somebody else may have written; then everything
//! is read and decided anew.

pub(crate) mod bind;
pub(crate) mod catalog;
pub(crate) mod deprovision;
pub(crate) mod fetch_binding;
pub(crate) mod fetch_instance;
pub(crate) mod last_operation;
pub(crate) mod provision;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod unbind;
pub(crate) mod update;

use std::sync::Arc;
use std::time::Duration;

use heddle_api::operation::{
    OperationKind, OperationProgress, OperationRequest, OperationState, OriginatingIdentity,
};
use heddle_api::service_binding::ServiceBinding;
use heddle_api::service_instance::ServiceInstance;
use heddle_rt::{Chance, Clock, OnError, Tasks};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use kube::runtime::wait;
use tokio::sync::oneshot;

use crate::catalog::Plan;
use crate::contact::{self, Contacts};
use crate::error::OsbError;
use crate::id_locks::{IdLock, IdLocks};
use crate::lifecycle::{Lifecycle, Provisioned, Report};
use crate::metrics::Metrics;
use crate::objects::{Objects, Unwritten};
use crate::offers::{CatalogView, Offers};
use crate::parameters::Validators;
use crate::settings::Settings;
use crate::version::Version;
use crate::wire::query::OsbQuery;
use crate::wire::response::OsbResponse;

/// How often somebody else may come in between before the platform is asked to come back.
const ATTEMPTS_MAX: usize = 8;
/// How long platforms ask when a plan that is not known any more cannot say it, in seconds.
const POLLING_SECONDS: u32 = 3600;

/// What every verb needs.
#[derive(Debug)]
pub(crate) struct Deps {
    pub(crate) objects: Objects,
    pub(crate) offers: Arc<dyn Offers>,
    pub(crate) validators: Validators,
    pub(crate) contacts: Contacts,
    pub(crate) metrics: Metrics,
    pub(crate) settings: Settings,
    pub(crate) clock: Clock,
    pub(crate) chance: Chance,
    /// Held by whoever may create something at the front of all.
    pub(crate) id_locks: IdLocks,
    /// When the front was started, on the clock that never jumps.
    pub(crate) started: Duration,
    /// Held by whoever renders a catalog.
    pub(crate) rendering: Arc<tokio::sync::Mutex<()>>,
    pub(crate) tasks: Tasks,
}

/// What a verb comes to.
pub(crate) type OsbAnswer = Result<OsbResponse, OsbError>;

/// One request, without its body.
#[derive(Debug)]
pub(crate) struct Call {
    /// The namespace whose front was asked.
    pub(crate) scope: Option<String>,
    pub(crate) version: Version,
    pub(crate) query: OsbQuery,
    pub(crate) identity: Option<OriginatingIdentity>,
}

/// What a request comes to, given what is there.
#[derive(Debug, PartialEq)]
pub(crate) enum Decision<K> {
    /// It is as it was asked for.
    Done(Box<K>),
    /// It is on its way already.
    Pending(Box<K>),
    Create(Box<K>),
    Replace(Box<K>),
}

/// What a request came to.
#[derive(Debug)]
pub(crate) enum Accepted<K> {
    Done(K),
    /// It was on its way already.
    Pending(K),
    Created(K),
    Replaced(K),
}

/// How an operation ended while the platform waited.
#[derive(Debug)]
pub(crate) enum OperationEnd<K> {
    /// It has not.
    Running(K),
    Succeeded(K),
    Failed(OperationProgress),
    /// What it was about is no more.
    Gone,
    /// Something else was asked in the meantime.
    Overtaken(K),
}

/// An operation that a request has started or found under way, and how it ended while the platform waited.
#[derive(Debug)]
pub(crate) struct Settled<K> {
    pub(crate) ended: OperationEnd<K>,
    operation: Option<String>,
    asynchronous: bool,
}

/// What a new operation is made of.
#[derive(Debug, Clone)]
pub(crate) struct Fresh {
    /// Unlike any other.
    pub(crate) tail: String,
    pub(crate) now: Timestamp,
}

impl Fresh {
    /// An operation that starts now. Its id tells its kind, so that a question about an operation that is past can be told
    /// from one about the last.
    pub(crate) fn operation(
        &self,
        kind: OperationKind,
        hash: String,
        plan: Option<&Plan>,
    ) -> OperationRequest {
        // A tenth is kept back: the platform must hear of a failure before it stops asking.
        let seconds = plan.map_or(POLLING_SECONDS, |plan| plan.maximum_polling_duration);
        let patience = SignedDuration::from_secs(i64::from(seconds) * 9 / 10);
        OperationRequest {
            id: format!("{}-{}", word(kind), self.tail),
            kind,
            request_hash: hash,
            accepted_at: Time(self.now),
            deadline: self.now.checked_add(patience).ok().map(Time),
        }
    }
}

/// What an operation is called in ids and metrics.
pub(crate) fn word(kind: OperationKind) -> &'static str {
    match kind {
        OperationKind::Provision => "provision",
        OperationKind::Update => "update",
        OperationKind::Deprovision => "deprovision",
        OperationKind::Bind => "bind",
        OperationKind::Unbind => "unbind",
    }
}

/// An object with a new operation in the place of the last.
pub(crate) fn asked_anew<K: Provisioned>(
    object: &K,
    operation: OperationRequest,
    identity: Option<&OriginatingIdentity>,
) -> Box<K> {
    let ended = replaced(object, &operation);
    let mut object = Box::new(object.clone());
    contact::stamp(&mut *object, operation.accepted_at.0);
    if let Some(ended) = ended {
        object.remember(ended);
    }
    object.set_requested(operation, identity);
    object
}

/// How the last operation ended when another takes its place. One that was under way has failed: it will not be carried out.
fn replaced<K: Provisioned>(object: &K, by: &OperationRequest) -> Option<OperationProgress> {
    let asked = object.requested()?;
    let ends = [OperationState::Succeeded, OperationState::Failed];
    let ended = object
        .progress()
        .filter(|progress| ends.contains(&progress.state));
    Some(ended.cloned().unwrap_or_else(|| OperationProgress {
        id: asked.id.clone(),
        kind: asked.kind,
        state: OperationState::Failed,
        description: Some(format!("operation {} was asked for before it ended", by.id)),
        attempts: None,
        finished_at: Some(by.accepted_at.clone()),
        instance_usable: None,
        update_repeatable: None,
    }))
}

/// A refusal because of what is going on.
pub(crate) fn busy<K: Provisioned>(object: &K) -> OsbError {
    OsbError::Busy(format!(
        "{} is {}",
        object.title(),
        Lifecycle::of(object).describe()
    ))
}

impl Deps {
    pub(crate) fn catalog_view<'a>(&'a self, call: &'a Call) -> CatalogView<'a> {
        CatalogView::new(&*self.offers, call.scope.as_deref(), &self.validators)
    }

    /// Whatever is created at this front under an id is created once, wherever it goes.
    pub(crate) async fn lock_id<K: Provisioned>(
        &self,
        call: &Call,
        id: &str,
    ) -> Option<Arc<IdLock>> {
        match call.scope {
            Some(_) => None,
            None => Some(Arc::new(self.id_locks.lock(K::NOUN, id).await)),
        }
    }

    /// [`Self::write`] for an instance that may be there, by what its catalog says.
    pub(crate) async fn write_instance(
        &self,
        call: &Call,
        id: &str,
        decide: impl Fn(
            Option<&ServiceInstance>,
            &CatalogView<'_>,
            &Fresh,
        ) -> Result<Decision<ServiceInstance>, OsbError>,
    ) -> Result<Accepted<ServiceInstance>, OsbError> {
        let view = self.catalog_view(call);
        let read = || self.objects.instance(call.scope.as_deref(), id);
        self.write(read, |live, fresh| decide(live.as_ref(), &view, fresh))
            .await
    }

    /// The binding that a request is about, if it is there.
    pub(crate) async fn binding(
        &self,
        call: &Call,
        instance: &str,
        id: &str,
    ) -> Result<Option<ServiceBinding>, OsbError> {
        let scope = call.scope.as_deref();
        self.objects.binding(scope, instance, id).await
    }

    /// Creates something. Under a lock this goes on when nobody waits for it any more, and holds the lock as long: what the
    /// API server was told to write it writes, and whoever comes next must find it.
    async fn create<K: Provisioned>(
        &self,
        object: K,
        lock: Option<&Arc<IdLock>>,
    ) -> Result<K, Unwritten> {
        let Some(lock) = lock.cloned() else {
            return self.objects.create(&object).await;
        };
        let (tell, told) = oneshot::channel();
        let objects = self.objects.clone();
        self.tasks.spawn("create", OnError::Report, async move {
            let created = objects.create(&object).await;
            drop(lock);
            // Whoever has gone away asks again.
            tell.send(created).ok();
        });
        let unknown = |_| Err(Unwritten::Refused(OsbError::Unavailable));
        told.await.unwrap_or_else(unknown)
    }

    /// Reads, decides and writes, again while somebody else comes in between.
    pub(crate) async fn write<S, K: Provisioned, F>(
        &self,
        read: impl Fn() -> F,
        decide: impl Fn(&S, &Fresh) -> Result<Decision<K>, OsbError>,
    ) -> Result<Accepted<K>, OsbError>
    where
        F: Future<Output = Result<S, OsbError>>,
    {
        self.write_under(None, read, decide).await
    }

    /// The same for whoever has the lock of what may be created.
    pub(crate) async fn write_under<S, K: Provisioned, F>(
        &self,
        lock: Option<Arc<IdLock>>,
        read: impl Fn() -> F,
        decide: impl Fn(&S, &Fresh) -> Result<Decision<K>, OsbError>,
    ) -> Result<Accepted<K>, OsbError>
    where
        F: Future<Output = Result<S, OsbError>>,
    {
        for _ in 0..ATTEMPTS_MAX {
            let state = read().await?;
            let fresh = Fresh {
                tail: self.chance.uuid(),
                now: self.clock.now(),
            };
            let decision = decide(&state, &fresh)?;
            drop(state);
            let written = match decision {
                Decision::Done(object) => return Ok(Accepted::Done(*object)),
                Decision::Pending(object) => return Ok(Accepted::Pending(*object)),
                Decision::Create(object) => {
                    let created = self.create(*object, lock.as_ref()).await;
                    created.map(Accepted::Created)
                }
                Decision::Replace(object) => {
                    self.objects.replace(&*object).await.map(Accepted::Replaced)
                }
            };
            match written {
                Ok(accepted) => return Ok(accepted),
                Err(Unwritten::Overtaken) => {}
                Err(Unwritten::Refused(error)) => return Err(error),
            }
        }
        Err(OsbError::Busy(format!(
            "too many others write the same {}",
            K::NOUN
        )))
    }

    /// Waits for the operation that was asked last, as long as the platform can be kept waiting.
    pub(crate) async fn settle<K: Provisioned>(&self, object: K, asynchronous: bool) -> Settled<K> {
        let operation = object.requested().map(|asked| asked.id.clone());
        let patience = if asynchronous {
            self.settings.fast_wait
        } else {
            self.settings.sync_wait
        };
        let ended = match outcome(Some(&object), &object) {
            Some(ended) => ended,
            None if patience.is_zero() => OperationEnd::Running(object),
            None => self.watch(object, patience).await,
        };
        if let OperationEnd::Succeeded(object) = &ended {
            self.metrics
                .told(object, &Report::of(object, self.clock.now()));
        }
        Settled {
            ended,
            operation,
            asynchronous,
        }
    }

    async fn watch<K: Provisioned>(&self, object: K, patience: Duration) -> OperationEnd<K> {
        let api = self
            .objects
            .api::<K>(&object.namespace().unwrap_or_default());
        let name = object.name_any();
        let has_ended = |now: Option<&K>| outcome(now, &object).is_some();
        let waiting = wait::await_condition(api, &name, has_ended);
        match self.clock.timeout(patience, Box::pin(waiting)).await {
            Ok(Ok(now)) => outcome(now.as_ref(), &object).unwrap_or(OperationEnd::Gone),
            Ok(Err(error)) => {
                tracing::warn!(%error, "cannot watch an operation");
                OperationEnd::Running(object)
            }
            Err(_) => OperationEnd::Running(object),
        }
    }
}

/// How the operation that `asked` carries has ended, if it has.
fn outcome<K: Provisioned>(now: Option<&K>, asked: &K) -> Option<OperationEnd<K>> {
    let Some(now) = now.filter(|now| now.meta().uid == asked.meta().uid) else {
        return Some(OperationEnd::Gone);
    };
    if now.requested().map(|operation| &operation.id)
        != asked.requested().map(|operation| &operation.id)
    {
        return Some(OperationEnd::Overtaken(now.clone()));
    }
    match Lifecycle::of(now) {
        Lifecycle::Ready => Some(OperationEnd::Succeeded(now.clone())),
        Lifecycle::MakeFailed | Lifecycle::ChangeFailed | Lifecycle::RemoveFailed => {
            now.progress().cloned().map(OperationEnd::Failed)
        }
        // What is removed has ended when it is gone and no earlier: the platform may make it anew at once.
        Lifecycle::Making | Lifecycle::Changing | Lifecycle::Removing => None,
    }
}

impl<K> Settled<K> {
    /// The answer about something that has not succeeded while the platform waited.
    ///
    /// The request has been written, so it is never refused with a 4xx: that says that nothing was done, and platforms then
    /// leave behind what is still being made. Whoever asks again later is told what to ask about; whoever does not is told
    /// what makes it remove the thing or repeat the request.
    pub(crate) fn unfinished(self, what: &str) -> OsbAnswer {
        if self.asynchronous {
            return Ok(OsbResponse::accepted(self.operation.as_deref()));
        }
        Err(match self.ended {
            OperationEnd::Running(_) => OsbError::Unsettled(format!(
                "{what} takes longer than a request may and goes on"
            )),
            OperationEnd::Failed(progress) => failed(&progress, what),
            OperationEnd::Gone | OperationEnd::Overtaken(_) | OperationEnd::Succeeded(_) => {
                OsbError::Unsettled(format!(
                    "something else was asked while {what} was under way"
                ))
            }
        })
    }
}

fn failed(progress: &OperationProgress, what: &str) -> OsbError {
    let report = Report::of_progress(progress);
    OsbError::Failed {
        description: report
            .description
            .unwrap_or_else(|| format!("{what} failed")),
        instance_usable: report.instance_usable,
        update_repeatable: report.update_repeatable,
    }
}
