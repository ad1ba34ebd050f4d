//! What is the same for every object that carries an operation, be it an instance or a binding.

use std::time::Duration;

use heddle_api::conditions::{Condition, ConditionSet, ConditionType, Conditions, Reason};
use heddle_api::operation::{OperationProgress, OperationRequest};
use heddle_api::well_known::FINALIZER;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{Accepted, FailureReport, Fulfilment, StepFailure, removes, with_trouble};

/// Makes an [`OperationSubject`] of what a reconcile sees, whose object is in that field.
macro_rules! operation_subject {
    ($world:ty, $object:ident) => {
        impl $crate::operation::OperationSubject for $world {
            fn metadata(&self) -> &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &self.$object.metadata
            }
            fn request(&self) -> Option<&heddle_api::operation::OperationRequest> {
                self.$object.spec.operation.as_ref()
            }
            fn trouble(&self) -> Option<&$crate::operation::StepFailure> {
                self.trouble.as_ref()
            }
            fn is_released(&self) -> bool {
                self.released
            }
        }
    };
}
pub(crate) use operation_subject;

/// An object with an operation, as one reconcile sees it.
pub(crate) trait OperationSubject {
    fn metadata(&self) -> &ObjectMeta;
    /// The operation that was accepted last.
    fn request(&self) -> Option<&OperationRequest>;
    /// The step that failed in this reconcile.
    fn trouble(&self) -> Option<&StepFailure>;
    /// Whether our finalizer was released in this reconcile: the object is gone.
    fn is_released(&self) -> bool;

    fn uid(&self) -> &str {
        self.metadata().uid.as_deref().unwrap_or_default()
    }

    /// Whether it is on its way out for good.
    fn is_deleted(&self) -> bool {
        self.metadata().deletion_timestamp.is_some()
    }

    /// Whether it is to go.
    fn is_leaving(&self) -> bool {
        self.is_deleted() || removes(self.request())
    }

    /// Whether it would go if we let it.
    fn is_held(&self) -> bool {
        let mut held = self.metadata().finalizers.iter().flatten();
        self.is_deleted() && !self.is_released() && held.any(|name| name == FINALIZER)
    }

    fn accepted(&self) -> Option<Accepted<'_>> {
        let request = self.request()?;
        Some(Accepted::new(request, self.metadata()))
    }

    /// `message`, and what went wrong when it was tried.
    fn with_trouble(&self, message: String) -> String {
        with_trouble(message, self.trouble())
    }

    /// How far the operation has come; see [`Accepted::progress`].
    fn progress(
        &self,
        before: Option<&OperationProgress>,
        fulfilment: &Fulfilment,
        damage: FailureReport,
        now: Timestamp,
    ) -> Option<OperationProgress> {
        let attempts = self.trouble().map(|trouble| trouble.attempts);
        let accepted = self.accepted()?;
        Some(accepted.progress(before, fulfilment, damage, attempts, now))
    }

    /// How long until time alone changes what is said about the operation.
    fn verdict_after(
        &self,
        told: Option<&OperationProgress>,
        fulfilment: &Fulfilment,
        now: Timestamp,
    ) -> Option<Duration> {
        self.accepted()?.requeue_after(told, fulfilment, now)
    }

    /// How the operation stands when its action failed. One that was called off because its time was over is told as that.
    fn failed(&self, why: String, now: Timestamp) -> Fulfilment {
        let accepted = self.accepted();
        match accepted.is_some_and(|accepted| accepted.is_late(now)) {
            true => Fulfilment::Waiting(why),
            false => Fulfilment::Hopeless(why),
        }
    }

    /// After the deadline the condition that is not met says so, since that is what the platform was told.
    fn tell_deadline(
        &self,
        told: Option<&OperationProgress>,
        unmet: Option<Condition>,
        as_what: (ConditionType, Reason),
        (set, conditions): (&ConditionSet, &mut Conditions),
        now: Timestamp,
    ) {
        let unmet = unmet.filter(|_| !self.is_leaving());
        let accepted = self.accepted();
        let reached = accepted
            .zip(unmet)
            .and_then(|(accepted, unmet)| accepted.deadline_reached(told, &unmet, as_what, now));
        if let Some(reached) = reached {
            conditions.set(reached, now);
            set.conclude(conditions, now);
        }
    }
}
