//! `DELETE` of a binding. It needs neither the catalog nor the instance to exist.

use heddle_api::operation::{OperationKind, OriginatingIdentity};
use heddle_api::service_binding::ServiceBinding;
use serde_json::{Map, json};

use super::bind::is_asynchronous;
use super::deprovision::required_ids;
use super::{Accepted, Call, Decision, Deps, Fresh, OperationEnd, OsbAnswer, asked_anew};
use crate::compare::hash;
use crate::error::OsbError;
use crate::lifecycle::{Lifecycle, Provisioned as _, title};
use crate::offers::{CatalogView, check_pace};
use crate::wire::query::OsbQuery;
use crate::wire::response::OsbResponse;

/// Everything a decision hangs on besides what exists.
#[derive(Debug)]
pub(crate) struct UnbindInput<'a> {
    pub(crate) id: &'a str,
    pub(crate) query: &'a OsbQuery,
    pub(crate) asynchronous: bool,
    pub(crate) identity: Option<&'a OriginatingIdentity>,
}

pub(crate) async fn answer(deps: &Deps, call: &Call, instance: &str, id: &str) -> OsbAnswer {
    let input = UnbindInput {
        id,
        query: &call.query,
        asynchronous: is_asynchronous(call),
        identity: call.identity.as_ref(),
    };
    let view = deps.catalog_view(call);
    let read = || deps.binding(call, instance, id);
    let accepted = deps
        .write(read, |live, fresh| {
            decide(live.as_ref(), &input, &view, fresh)
        })
        .await?;
    let (Accepted::Done(binding)
    | Accepted::Pending(binding)
    | Accepted::Created(binding)
    | Accepted::Replaced(binding)) = accepted;
    let settled = deps.settle(binding, input.asynchronous).await;
    match settled.ended {
        OperationEnd::Gone => Ok(OsbResponse::ok(Map::new())),
        _ => settled.unfinished(&format!("removing binding {id}")),
    }
}

pub(crate) fn decide(
    live: Option<&ServiceBinding>,
    input: &UnbindInput<'_>,
    view: &CatalogView<'_>,
    fresh: &Fresh,
) -> Result<Decision<ServiceBinding>, OsbError> {
    let plan_id = live
        .map(|binding| &binding.spec.plan_id)
        .or(input.query.plan_id.as_ref());
    let plan = plan_id.and_then(|plan_id| view.plan(plan_id));
    let what = || title::<ServiceBinding>(input.id);
    check_pace(plan.map(|plan| plan.bindings), input.asynchronous, || {
        format!("removing {}", what())
    })?;
    let binding = live.ok_or_else(|| OsbError::Gone { what: what() })?;
    required_ids(input.query)?;
    let asked = binding.requested().map(|asked| asked.kind);
    if Lifecycle::of(binding) == Lifecycle::Removing && asked == Some(OperationKind::Unbind) {
        return Ok(Decision::Pending(Box::new(binding.clone())));
    }
    let operation = fresh.operation(OperationKind::Unbind, hash(&json!(input.id)), plan);
    Ok(Decision::Replace(asked_anew(
        binding,
        operation,
        input.identity,
    )))
}

#[cfg(test)]
mod tests;
