//! `DELETE` of an instance.
//!
//! It wins over making: a platform that lost the answer to its `PUT` must be able to clean up. Who names another service or
//! plan than the instance has is believed all the same, for after a failed change a platform may name either.

use heddle_api::operation::{OperationKind, OriginatingIdentity};
use heddle_api::service_instance::ServiceInstance;
use serde_json::{Map, json};

use super::{Accepted, Call, Decision, Deps, Fresh, OperationEnd, OsbAnswer, asked_anew, busy};
use crate::compare::hash;
use crate::error::OsbError;
use crate::lifecycle::{Lifecycle, Provisioned as _, title};
use crate::offers::{CatalogView, check_pace};
use crate::wire::query::OsbQuery;
use crate::wire::response::OsbResponse;

/// Everything a decision hangs on besides what exists.
#[derive(Debug)]
pub(crate) struct DeprovisionInput<'a> {
    pub(crate) id: &'a str,
    pub(crate) query: &'a OsbQuery,
    pub(crate) identity: Option<&'a OriginatingIdentity>,
}

pub(crate) async fn answer(deps: &Deps, call: &Call, id: &str) -> OsbAnswer {
    let asynchronous = call.query.accepts_incomplete;
    let input = DeprovisionInput {
        id,
        query: &call.query,
        identity: call.identity.as_ref(),
    };
    let accepted = deps.write_instance(call, id, |live, view, fresh| {
        decide(live, &input, view, fresh)
    });
    let instance = match accepted.await? {
        Accepted::Done(instance) | Accepted::Pending(instance) | Accepted::Created(instance) => {
            instance
        }
        Accepted::Replaced(instance) => {
            warn_about_other_ids(&instance, &call.query);
            instance
        }
    };
    let settled = deps.settle(instance, asynchronous).await;
    match settled.ended {
        OperationEnd::Gone => Ok(OsbResponse::ok(Map::new())),
        _ => settled.unfinished(&format!("removing instance {id}")),
    }
}

pub(crate) fn decide(
    live: Option<&ServiceInstance>,
    input: &DeprovisionInput<'_>,
    view: &CatalogView<'_>,
    fresh: &Fresh,
) -> Result<Decision<ServiceInstance>, OsbError> {
    let (_, plan_id) = required_ids(input.query)?;
    let plan = view.plan(live.map_or(plan_id, |instance| &instance.spec.plan_id));
    let what = || title::<ServiceInstance>(input.id);
    check_pace(
        plan.map(|plan| plan.instances),
        input.query.accepts_incomplete,
        || format!("removing {}", what()),
    )?;
    let instance = live.ok_or_else(|| OsbError::Gone { what: what() })?;
    let asked = instance.requested().map(|asked| asked.kind);
    match Lifecycle::of(instance) {
        Lifecycle::Removing if asked == Some(OperationKind::Deprovision) => {
            Ok(Decision::Pending(Box::new(instance.clone())))
        }
        Lifecycle::Changing => Err(busy(instance)),
        _ => {
            let operation =
                fresh.operation(OperationKind::Deprovision, hash(&json!(input.id)), plan);
            Ok(Decision::Replace(asked_anew(
                instance,
                operation,
                input.identity,
            )))
        }
    }
}

/// Both ids, which the query of every removal has to have.
pub(crate) fn required_ids(query: &OsbQuery) -> Result<(&str, &str), OsbError> {
    let missing =
        |field: &str| OsbError::Invalid(format!("{field} is missing or empty in the query"));
    let service_id = query
        .service_id
        .as_deref()
        .ok_or_else(|| missing("service_id"))?;
    let plan_id = query.plan_id.as_deref().ok_or_else(|| missing("plan_id"))?;
    Ok((service_id, plan_id))
}

fn warn_about_other_ids(instance: &ServiceInstance, query: &OsbQuery) {
    let spec = &instance.spec;
    let same = query.service_id.as_ref() == Some(&spec.service_id)
        && query.plan_id.as_ref() == Some(&spec.plan_id);
    if !same {
        tracing::warn!(service = %spec.service_id, plan = %spec.plan_id, "an instance is removed under another service or plan");
    }
}

#[cfg(test)]
mod tests;
