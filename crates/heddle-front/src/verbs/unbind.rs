//! `DELETE` of a binding. It needs neither the catalog nor the instance to exist.

use heddle_api::operation::{OperationKind, OriginatingIdentity};
use heddle_api::service_binding::ServiceBinding;
use serde_json::{Map, json};

use super::bind::is_asynchronous;
use super::deprovision::required_ids;
use super::{Accepted, Call, Decision, Desk, Ended, Fresh, asked_anew};
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
    pub(crate) asynchronous: bool,
    pub(crate) identity: Option<&'a OriginatingIdentity>,
}

pub(crate) async fn answer(
    desk: &Desk,
    call: &Call,
    instance: &str,
    id: &str,
) -> Result<Answer, Refusal> {
    let ask = Ask {
        id,
        query: &call.query,
        asynchronous: is_asynchronous(call),
        identity: call.identity.as_ref(),
    };
    let shelf = desk.shelf(call);
    let scope = call.scope.as_deref();
    let read = || desk.objects.binding(scope, instance, id);
    let accepted = desk
        .write(read, |live, fresh| {
            decide(live.as_ref(), &ask, &shelf, fresh)
        })
        .await?;
    let (Accepted::Done(binding)
    | Accepted::Pending(binding)
    | Accepted::Created(binding)
    | Accepted::Replaced(binding)) = accepted;
    let settled = desk.settle(binding, ask.asynchronous).await;
    match settled.ended {
        Ended::Gone => Ok(Answer::ok(Map::new())),
        _ => settled.unfinished(&format!("removing binding {id}")),
    }
}

pub(crate) fn decide(
    live: Option<&ServiceBinding>,
    ask: &Ask<'_>,
    shelf: &Shelf<'_>,
    fresh: &Fresh,
) -> Result<Decision<ServiceBinding>, Refusal> {
    let plan_id = live
        .map(|binding| &binding.spec.plan_id)
        .or(ask.query.plan_id.as_ref());
    let plan = plan_id.and_then(|plan_id| shelf.plan(plan_id));
    let what = || title::<ServiceBinding>(ask.id);
    check_pace(plan.map(|plan| plan.bindings), ask.asynchronous, || {
        format!("removing {}", what())
    })?;
    let binding = live.ok_or_else(|| Refusal::Gone { what: what() })?;
    required_ids(ask.query)?;
    let asked = binding.asked().map(|asked| asked.kind);
    if Standing::of(binding) == Standing::Removing && asked == Some(OperationKind::Unbind) {
        return Ok(Decision::Pending(Box::new(binding.clone())));
    }
    let operation = fresh.operation(OperationKind::Unbind, hash(&json!(ask.id)), plan);
    Ok(Decision::Replace(asked_anew(
        binding,
        operation,
        ask.identity,
    )))
}

#[cfg(test)]
mod tests;
