//! Changing instances.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::promises;
use crate::session::{CheckSession, Plan, instance};
use crate::wire::{BrokerRequest, BrokerResponse};

promises! { "update":
    Plan the_service_is_required "an update names the service of the instance"
        in "Updating a Service Instance",
    Plan the_unknown_cannot_be_changed "an instance that does not exist cannot be updated"
        in "Updating a Service Instance",
    PatientPlan patience_is_required "an asynchronous plan refuses platforms that do not ask again"
        in "Synchronous and Asynchronous Operations",
    Plan nothing_to_do_is_done "an update that changes nothing succeeds"
        in "Updating a Service Instance",
    Plan hints_are_hints "previous values are hints, right or wrong"
        in "Updating a Service Instance",
    Plan maintenance_must_agree "a maintenance version that the catalog does not have is a conflict"
        in "Updating a Service Instance",
    Plan refusals_change_nothing "a refused update leaves the instance as it was"
        in "Updating a Service Instance",
    Plan contexts_may_change "a context alone may be updated where the catalog says so"
        in "Updating a Service Instance",
}

fn patch<'a>(session: &'a CheckSession, id: &str, body: &Value) -> BrokerRequest<'a> {
    session.broker.call("PATCH", &instance(id)).json(body)
}

async fn settled(session: &CheckSession, id: &str, got: BrokerResponse) -> Result<()> {
    let got = got.is(&[200, 202])?;
    session.succeeded(id, &got).await
}

async fn the_service_is_required(session: &CheckSession) -> Result<()> {
    let plan = session.any_plan()?;
    let id = session.made("update", plan).await?;
    for body in [
        json!({}),
        json!({"service_id": ""}),
        json!({"service_id": null}),
        json!({"service_id": "other"}),
    ] {
        patch(session, &id, &body).patient().gets(&[400]).await?;
    }
    session.remove(&id, plan).await
}

async fn the_unknown_cannot_be_changed(session: &CheckSession) -> Result<()> {
    let plan = session.any_plan()?;
    let body = json!({"service_id": plan.service, "plan_id": plan.id});
    patch(session, &session.fresh("never"), &body)
        .patient()
        .gets(&[404])
        .await?;
    Ok(())
}

async fn patience_is_required(session: &CheckSession) -> Result<()> {
    let plan = session.plan(|plan| plan.is_patient)?;
    let id = session.made("patience", plan).await?;
    let body = json!({"service_id": plan.service});
    patch(session, &id, &body)
        .send()
        .await?
        .refuses("AsyncRequired")?;
    session.remove(&id, plan).await
}

async fn nothing_to_do_is_done(session: &CheckSession) -> Result<()> {
    for plan in &session.plans {
        let id = session.made("nothing", plan).await?;
        let before = read(session, &id).await?;
        for body in [
            json!({"service_id": plan.service}),
            json!({"service_id": plan.service, "plan_id": plan.id}),
        ] {
            let got = patch(session, &id, &body).patient().send().await?;
            settled(session, &id, got).await?;
        }
        ensure!(read(session, &id).await? == before, "it changed");
        session.remove(&id, plan).await?;
    }
    Ok(())
}

async fn read(session: &CheckSession, id: &str) -> Result<Value> {
    Ok(session.get(id).gets(&[200]).await?.body)
}

async fn hints_are_hints(session: &CheckSession) -> Result<()> {
    let plan = session.any_plan()?;
    let id = session.made("hints", plan).await?;
    for hint in [
        json!({}),
        json!({"plan_id": "other", "service_id": "other", "organization_id": "other"}),
    ] {
        let body =
            json!({"service_id": plan.service, "previous_values": hint, "maintenance_info": {}});
        let got = patch(session, &id, &body).patient().send().await?;
        settled(session, &id, got).await?;
    }
    session.remove(&id, plan).await
}

async fn maintenance_must_agree(session: &CheckSession) -> Result<()> {
    let plan = session.any_plan()?;
    let id = session.made("maintenance", plan).await?;
    let body = json!({"service_id": plan.service, "maintenance_info": {"version": "987.654.321"}});
    patch(session, &id, &body)
        .patient()
        .send()
        .await?
        .refuses("MaintenanceInfoConflict")?;
    session.remove(&id, plan).await
}

/// Requests that every broker must refuse for this plan.
fn refusals(session: &CheckSession, plan: &Plan) -> Vec<(Value, Vec<u16>)> {
    let service = &plan.service;
    let mut refusals = vec![
        (
            json!({"service_id": service, "plan_id": "no-such-plan"}),
            vec![400],
        ),
        (json!({"service_id": service, "parameters": []}), vec![400]),
    ];
    let sibling = session
        .plans
        .iter()
        .find(|other| other.service == *service && other.id != plan.id);
    if let Some(sibling) = sibling.filter(|_| !plan.says("plan_updateable")) {
        refusals.push((
            json!({"service_id": service, "plan_id": sibling.id}),
            vec![400, 422],
        ));
    }
    refusals
}

async fn refusals_change_nothing(session: &CheckSession) -> Result<()> {
    let plan = session.any_plan()?;
    let id = session.made("refusals", plan).await?;
    let before = read(session, &id).await?;
    for (body, expected) in refusals(session, plan) {
        patch(session, &id, &body)
            .patient()
            .send()
            .await?
            .is(&expected)?;
        ensure!(read(session, &id).await? == before, "{body} changed it");
    }
    session.remove(&id, plan).await
}

async fn contexts_may_change(session: &CheckSession) -> Result<()> {
    for plan in session
        .plans
        .iter()
        .filter(|plan| plan.says("allow_context_updates"))
    {
        let id = session.made("context", plan).await?;
        let body = json!({"service_id": plan.service, "context": {"platform": "check", "instance_name": "renamed"}});
        let got = patch(session, &id, &body).patient().send().await?;
        settled(session, &id, got).await?;
        session.remove(&id, plan).await?;
    }
    Ok(())
}
