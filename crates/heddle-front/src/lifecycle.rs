//! Where an instance or a binding stands, read from its object.
//!
//! The spec says what was asked last, the status how far that has come, and an id says whether both speak of the same. All
//! that verbs decide by is the [`Lifecycle`] that follows; platforms are told the [`Report`].

use std::fmt::Debug;

use heddle_api::operation::{
    EARLIER_OPERATIONS_MAX, OperationKind, OperationProgress, OperationRequest, OperationState,
    OriginatingIdentity,
};
use heddle_api::service_binding::ServiceBinding;
use heddle_api::service_instance::ServiceInstance;
use heddle_api::{Conditions, conditions};
use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What instances and bindings have in common.
pub(crate) trait Provisioned:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + DeserializeOwned
    + Serialize
    + Send
    + Sync
    + 'static
{
    /// What people call it.
    const NOUN: &'static str;

    /// The id under which the platform knows it.
    fn id(&self) -> &str;
    /// What was asked last.
    fn requested(&self) -> Option<&OperationRequest>;
    /// How far something asked has come, though perhaps not what was asked last.
    fn told(&self) -> Option<&OperationProgress>;
    /// Puts a new operation in the place of the last.
    fn set_requested(
        &mut self,
        operation: OperationRequest,
        identity: Option<&OriginatingIdentity>,
    );
    /// Whether it has ever been finished.
    fn is_in_force(&self) -> bool;
    /// Conditions, and the generation they are about.
    fn observed(&self) -> Option<(&Conditions, Option<i64>)>;

    /// How operations before the last ended, the latest first.
    fn earlier(&self) -> &[OperationProgress];
    /// Remembers how one more has ended.
    fn remember(&mut self, ended: OperationProgress);

    /// The name of what it belongs to.
    fn parent(&self) -> Option<&str> {
        None
    }

    /// Whether nothing is known yet that it could be made from.
    fn is_unresolved(&self) -> bool {
        false
    }

    /// What it is called in a sentence.
    fn title(&self) -> String {
        title::<Self>(self.id())
    }

    /// How far the operation that was asked last has come; `None` before a controller has looked at it.
    fn progress(&self) -> Option<&OperationProgress> {
        let asked = self.requested()?;
        self.told().filter(|told| told.id == asked.id)
    }

    /// Whether the controllers find it as its spec wants it.
    fn is_ready(&self) -> bool {
        self.observed().is_some_and(|(conditions, generation)| {
            let ready = conditions.find(conditions::READY);
            generation == self.meta().generation
                && ready.is_some_and(|ready| ready.status == conditions::Status::True)
        })
    }
}

/// What something with that id is called in a sentence.
pub(crate) fn title<K: Provisioned>(id: &str) -> String {
    format!("{} {id}", K::NOUN)
}

fn push(earlier: &mut Vec<OperationProgress>, ended: OperationProgress) {
    earlier.insert(0, ended);
    earlier.truncate(EARLIER_OPERATIONS_MAX);
}

/// What both kinds keep in fields of the same names.
macro_rules! operation_fields {
    () => {
        fn requested(&self) -> Option<&OperationRequest> {
            self.spec.operation.as_ref()
        }
        fn told(&self) -> Option<&OperationProgress> {
            self.status.as_ref()?.operation.as_ref()
        }
        fn set_requested(
            &mut self,
            operation: OperationRequest,
            identity: Option<&OriginatingIdentity>,
        ) {
            self.spec.operation = Some(operation);
            self.spec.originating_identity = identity.cloned();
        }
        fn earlier(&self) -> &[OperationProgress] {
            &self.spec.earlier_operations
        }
        fn remember(&mut self, ended: OperationProgress) {
            push(&mut self.spec.earlier_operations, ended);
        }
        fn observed(&self) -> Option<(&Conditions, Option<i64>)> {
            let status = self.status.as_ref()?;
            Some((&status.conditions, status.observed_generation))
        }
    };
}

impl Provisioned for ServiceInstance {
    const NOUN: &'static str = "instance";

    fn id(&self) -> &str {
        &self.spec.instance_id
    }
    operation_fields!();
    fn is_in_force(&self) -> bool {
        self.status
            .as_ref()
            .is_some_and(|status| status.applied.is_some())
    }
    fn is_unresolved(&self) -> bool {
        self.spec.application.is_none()
            && self.spec.revision_ref.is_none()
            && matches!(Lifecycle::of(self), Lifecycle::Making)
    }
}

impl Provisioned for ServiceBinding {
    const NOUN: &'static str = "binding";

    fn id(&self) -> &str {
        &self.spec.binding_id
    }
    operation_fields!();
    fn parent(&self) -> Option<&str> {
        Some(&self.spec.instance_ref.name)
    }
    /// Nothing changes a binding, so it was never in force if its making failed.
    fn is_in_force(&self) -> bool {
        false
    }
}

/// Where something stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifecycle {
    Making,
    /// It was given up, though the controllers may still bring it about.
    MakeFailed,
    Ready,
    Changing,
    /// What was before is in force.
    ChangeFailed,
    Removing,
    RemoveFailed,
}

impl Lifecycle {
    pub(crate) fn of<K: Provisioned>(object: &K) -> Self {
        let kind = object.requested().map(|asked| asked.kind);
        let state = object.progress().map(|progress| progress.state);
        let failed = state == Some(OperationState::Failed);
        let leaving = object.meta().deletion_timestamp.is_some();
        match kind {
            Some(OperationKind::Deprovision | OperationKind::Unbind) if failed => {
                Self::RemoveFailed
            }
            Some(OperationKind::Deprovision | OperationKind::Unbind) => Self::Removing,
            _ if leaving => Self::Removing,
            _ if state == Some(OperationState::Succeeded) => Self::Ready,
            // Work goes on after a failure, and without anybody having asked.
            _ if (failed || kind.is_none()) && object.is_ready() => Self::Ready,
            _ if failed && object.is_in_force() => Self::ChangeFailed,
            _ if failed => Self::MakeFailed,
            Some(OperationKind::Update) => Self::Changing,
            _ => Self::Making,
        }
    }

    /// What is going on, after "is".
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Making => "being made",
            Self::MakeFailed => "not there, for making it failed",
            Self::Ready => "ready",
            Self::Changing => "being changed",
            Self::ChangeFailed => "ready, though a change of it failed",
            Self::Removing => "being removed",
            Self::RemoveFailed => "half removed, for removing it failed; remove it again",
        }
    }
}

/// What a platform is told about the last operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) state: &'static str,
    pub(crate) description: Option<String>,
    pub(crate) instance_usable: Option<bool>,
    pub(crate) update_repeatable: Option<bool>,
    pub(crate) retry_seconds: Option<u32>,
}

impl Report {
    pub(crate) const IN_PROGRESS: &'static str = "in progress";
    pub(crate) const SUCCEEDED: &'static str = "succeeded";
    pub(crate) const FAILED: &'static str = "failed";

    pub(crate) fn of<K: Provisioned>(object: &K, now: Timestamp) -> Self {
        let accepted = object.requested().map(|asked| asked.accepted_at.0);
        let mut report = match object.progress() {
            Some(progress) => Self::of_progress(progress),
            None if object.requested().is_none() && object.is_ready() => {
                Self::plain(Self::SUCCEEDED, None)
            }
            None => Self::plain(
                Self::IN_PROGRESS,
                Some("accepted; no controller has looked at it yet"),
            ),
        };
        let removed = object.meta().deletion_timestamp.is_some();
        let asked_to = matches!(
            object.requested().map(|asked| asked.kind),
            Some(OperationKind::Deprovision | OperationKind::Unbind)
        );
        if removed && !asked_to {
            let text = format!(
                "the {} is being removed, though not by its platform",
                K::NOUN
            );
            report = Self::plain(Self::IN_PROGRESS, Some(&text));
        }
        if report.state == Self::IN_PROGRESS {
            report.retry_seconds = Some(retry_seconds(accepted, now));
        }
        report
    }

    /// How an operation ended or how far it has come, wherever that is kept.
    pub(crate) fn of_progress(progress: &OperationProgress) -> Self {
        let state = match progress.state {
            OperationState::Queued | OperationState::InProgress => Self::IN_PROGRESS,
            OperationState::Succeeded => Self::SUCCEEDED,
            OperationState::Failed => Self::FAILED,
        };
        let mut report = Self::plain(state, progress.description.as_deref());
        if progress.state == OperationState::Failed {
            let update = progress.kind == OperationKind::Update;
            let usable = update || progress.kind == OperationKind::Deprovision;
            report.instance_usable = progress.instance_usable.filter(|_| usable);
            report.update_repeatable = progress.update_repeatable.filter(|_| update);
        }
        report
    }

    pub(crate) fn plain(state: &'static str, description: Option<&str>) -> Self {
        Self {
            state,
            description: description
                .filter(|text| !text.is_empty())
                .map(str::to_owned),
            instance_usable: None,
            update_repeatable: None,
            retry_seconds: None,
        }
    }
}

/// The longer something takes, the less often it is worth asking.
fn retry_seconds(accepted: Option<Timestamp>, now: Timestamp) -> u32 {
    let age = accepted.map_or(0, |accepted| now.duration_since(accepted).as_secs());
    match age {
        ..10 => 1,
        10..60 => 5,
        60..600 => 15,
        _ => 60,
    }
}

#[cfg(test)]
mod tests;
