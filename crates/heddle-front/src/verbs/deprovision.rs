//! `DELETE` of an instance.
//!
//! It wins over making: a platform that lost the answer to its `PUT` must be able to clean up. Who names another service or
//! plan than the instance has is believed all the same, for after a failed change a platform may name either.

use heddle_api::operation::{OperationKind, OriginatingIdentity};
use heddle_api::service_instance::ServiceInstance;
use serde_json::{Map, json};

use super::{Accepted, Call, Decision, Desk, Ended, Fresh, asked_anew, busy};
use crate::compare::hash;
use crate::error::Refusal;
use crate::offers::{Shelf, check_pace};
use crate::standing::{Provisioned as _, Standing, title};
use crate::wire::answer::Answer;
use crate::wire::query::Query;

/// Everything a decision hangs on besides what exists.
#[derive(Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) id: &'a str,
    pub(crate) query: &'a Query,
    pub(crate) identity: Option<&'a OriginatingIdentity>,
}

pub(crate) async fn answer(desk: &Desk, call: &Call, id: &str) -> Result<Answer, Refusal> {
    let asynchronous = call.query.accepts_incomplete;
    let ask = Ask {
        id,
        query: &call.query,
        identity: call.identity.as_ref(),
    };
    let shelf = desk.shelf(call);
    let read = || desk.objects.instance(call.scope.as_deref(), id);
    let accepted = desk
        .write(read, |live, fresh| {
            decide(live.as_ref(), &ask, &shelf, fresh)
        })
        .await?;
    let instance = match accepted {
        Accepted::Done(instance) | Accepted::Pending(instance) | Accepted::Created(instance) => {
            instance
        }
        Accepted::Replaced(instance) => {
            warn_about_other_ids(&instance, &call.query);
            instance
        }
    };
    let settled = desk.settle(instance, asynchronous).await;
    match settled.ended {
        Ended::Gone => Ok(Answer::ok(Map::new())),
        _ => settled.unfinished(&format!("removing instance {id}")),
    }
}

pub(crate) fn decide(
    live: Option<&ServiceInstance>,
    ask: &Ask<'_>,
    shelf: &Shelf<'_>,
    fresh: &Fresh,
) -> Result<Decision<ServiceInstance>, Refusal> {
    let (_, plan_id) = required_ids(ask.query)?;
    let plan = shelf.plan(live.map_or(plan_id, |instance| &instance.spec.plan_id));
    let what = || title::<ServiceInstance>(ask.id);
    check_pace(
        plan.map(|plan| plan.instances),
        ask.query.accepts_incomplete,
        || format!("removing {}", what()),
    )?;
    let instance = live.ok_or_else(|| Refusal::Gone { what: what() })?;
    let asked = instance.asked().map(|asked| asked.kind);
    match Standing::of(instance) {
        Standing::Removing if asked == Some(OperationKind::Deprovision) => {
            Ok(Decision::Pending(Box::new(instance.clone())))
        }
        Standing::Changing => Err(busy(instance)),
        _ => {
            let operation = fresh.operation(OperationKind::Deprovision, hash(&json!(ask.id)), plan);
            Ok(Decision::Replace(asked_anew(
                instance,
                operation,
                ask.identity,
            )))
        }
    }
}

/// Both ids, which the query of every removal has to have.
pub(crate) fn required_ids(query: &Query) -> Result<(&str, &str), Refusal> {
    let missing =
        |field: &str| Refusal::Invalid(format!("{field} is missing or empty in the query"));
    let service_id = query
        .service_id
        .as_deref()
        .ok_or_else(|| missing("service_id"))?;
    let plan_id = query.plan_id.as_deref().ok_or_else(|| missing("plan_id"))?;
    Ok((service_id, plan_id))
}

fn warn_about_other_ids(instance: &ServiceInstance, query: &Query) {
    let spec = &instance.spec;
    let same = query.service_id.as_ref() == Some(&spec.service_id)
        && query.plan_id.as_ref() == Some(&spec.plan_id);
    if !same {
        tracing::warn!(service = %spec.service_id, plan = %spec.plan_id, "an instance is removed under another service or plan");
    }
}

#[cfg(test)]
mod tests;
