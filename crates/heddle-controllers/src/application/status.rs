//! Status: what was observed, as conditions an operator can act on.

use heddle_api::application::{
    ApplicationStatus, CONDITIONS, InstallationStatus, condition, installation, reason,
};
use heddle_api::conditions::{Condition, ConditionType, Reason, Severity, Status};
use heddle_api::well_known::INTEGRATION_NAMESPACE;
use jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::Value;

use super::observe::World;
use super::plan::{is_owned, may_hold};
use super::{CHANNEL, SOURCE};
use crate::reconcile::StepName;
use crate::referenced::{Readiness, Referenced};

/// A child as the status speaks of it.
struct Child {
    condition: ConditionType,
    missing: Reason,
    taken: Reason,
    not_ready: Reason,
    step_name: StepName,
    kind: &'static str,
}

const CHILDREN: [Child; 2] = [
    Child {
        condition: condition::SOURCE_PROVIDED,
        missing: reason::SOURCE_MISSING,
        taken: reason::SOURCE_TAKEN,
        not_ready: reason::SOURCE_NOT_READY,
        step_name: SOURCE,
        kind: "HTTPSource",
    },
    Child {
        condition: condition::CHANNEL_PROVIDED,
        missing: reason::CHANNEL_MISSING,
        taken: reason::CHANNEL_TAKEN,
        not_ready: reason::CHANNEL_NOT_READY,
        step_name: CHANNEL,
        kind: "Channel",
    },
];

pub(super) fn status(world: &World, now: Timestamp) -> Option<Value> {
    let application = &world.application;
    if application.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let mut status = ApplicationStatus {
        observed_generation: application.metadata.generation,
        rejected_services: world.rejected.clone(),
        // Earlier conditions keep the time of their last transition.
        conditions: application
            .status
            .as_ref()
            .map(|status| status.conditions.clone())
            .unwrap_or_default(),
        installation_status: None,
        // Another controller's.
        eventing: None,
    };
    let [source, channel] = CHILDREN;
    status
        .conditions
        .set(source.condition(world, world.source.as_ref()), now);
    status
        .conditions
        .set(channel.condition(world, world.channel.as_ref()), now);
    status.conditions.set(services_valid(&status), now);
    CONDITIONS.conclude(&mut status.conditions, now);
    status.installation_status = Some(installation_status(world, &status));
    serde_json::to_value(status).ok()
}

impl Child {
    fn condition<K: Referenced>(&self, world: &World, live: Option<&K>) -> Condition {
        let application = &world.application;
        let name = application.name_any();
        let object = format!("{} {INTEGRATION_NAMESPACE}/{name}", self.kind);
        if application.spec.skip_installation {
            let message = "spec.skipInstallation is set: nothing is set up until it is removed";
            return Condition::unmet(self.condition, reason::INSTALLATION_SKIPPED, message);
        }
        match live {
            Some(live)
                if is_owned(application, live) && live.meta().deletion_timestamp.is_none() =>
            {
                self.readiness(world, &object, live.referenced_state().ready)
            }
            Some(live)
                if !may_hold(application, live) && live.meta().deletion_timestamp.is_none() =>
            {
                let message = format!(
                    "{object} belongs to another object; delete it, or rename the Application"
                );
                Condition::unmet(self.condition, self.taken, message)
            }
            _ => {
                let trouble = world
                    .trouble
                    .as_ref()
                    .filter(|(step_name, _)| *step_name == self.step_name);
                let why = trouble
                    .map(|(_, error)| format!(": {error}"))
                    .unwrap_or_default();
                let message = format!(
                    "{object} is not there yet; creating it is tried until it succeeds{why}"
                );
                Condition::unmet(self.condition, self.missing, message)
            }
        }
    }

    /// The child is there as asked. Where no mesh runs nothing can become ready, and existing is all there is to ask.
    fn readiness(&self, world: &World, object: &str, ready: Readiness) -> Condition {
        if ready.is_true() || !world.meshed {
            return Condition::met(self.condition);
        }
        let message = format!("{object} is not ready: {}", ready.why);
        match ready.status {
            Status::Unknown => Condition::unknown(self.condition, self.not_ready, message),
            _ => Condition::unmet(self.condition, self.not_ready, message),
        }
    }
}

fn services_valid(status: &ApplicationStatus) -> Condition {
    let rejected = &status.rejected_services;
    if rejected.is_empty() {
        return Condition::met(condition::SERVICES_VALID);
    }
    let ids: Vec<&str> = rejected.iter().map(|service| service.id.as_str()).collect();
    let message = format!(
        "not offered: {}; status.rejectedServices says why",
        ids.join(", ")
    );
    // One reason for all: the one that can be mended in this object comes first.
    let reasons = [reason::SERVICE_INVALID, reason::ID_TAKEN];
    let given = |reason: &Reason| rejected.iter().any(|service| service.reason == reason.name);
    let reason = reasons
        .into_iter()
        .find(given)
        .unwrap_or(reason::NAME_TAKEN);
    Condition::unmet(condition::SERVICES_VALID, reason, message).with_severity(Severity::Warning)
}

fn installation_status(world: &World, status: &ApplicationStatus) -> InstallationStatus {
    let word = if world.application.spec.skip_installation {
        installation::SKIPPED
    } else if status.conditions.is_ready() {
        installation::DEPLOYED
    } else {
        installation::PENDING
    };
    InstallationStatus {
        status: word.to_owned(),
        description: String::new(),
    }
}
