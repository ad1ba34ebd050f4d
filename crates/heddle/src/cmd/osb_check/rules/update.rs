//! Changing instances.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::promises;
use crate::cmd::osb_check::lab::{Lab, Plan, instance};
use crate::cmd::osb_check::wire::{Call, Got};

promises! { "update":
    Plan the_service_is_required "an update names the service of the instance",
    Plan the_unknown_cannot_be_changed "an instance that does not exist cannot be updated",
    PatientPlan patience_is_required "an asynchronous plan refuses platforms that do not ask again",
    Plan nothing_to_do_is_done "an update that changes nothing succeeds",
    Plan hints_are_hints "previous values are hints, right or wrong",
    Plan maintenance_must_agree "a maintenance version that the catalog does not have is a conflict",
    Plan refusals_change_nothing "a refused update leaves the instance as it was",
    Plan contexts_may_change "a context alone may be updated where the catalog says so",
}

fn patch<'a>(lab: &'a Lab, id: &str, body: &Value) -> Call<'a> {
    lab.broker.call("PATCH", &instance(id)).json(body)
}

async fn settled(lab: &Lab, id: &str, got: Got) -> Result<()> {
    let got = got.is(&[200, 202])?;
    lab.succeeded(id, &got).await
}

async fn the_service_is_required(lab: &Lab) -> Result<()> {
    let plan = lab.any_plan()?;
    let id = lab.made("update", plan).await?;
    for body in [
        json!({}),
        json!({"service_id": ""}),
        json!({"service_id": null}),
        json!({"service_id": "other"}),
    ] {
        patch(lab, &id, &body).patient().send().await?.is(&[400])?;
    }
    lab.remove(&id, plan).await
}

async fn the_unknown_cannot_be_changed(lab: &Lab) -> Result<()> {
    let plan = lab.any_plan()?;
    let body = json!({"service_id": plan.service, "plan_id": plan.id});
    patch(lab, &lab.fresh("never"), &body)
        .patient()
        .send()
        .await?
        .is(&[404])?;
    Ok(())
}

async fn patience_is_required(lab: &Lab) -> Result<()> {
    let plan = lab.plan(|plan| plan.is_patient)?;
    let id = lab.made("patience", plan).await?;
    let body = json!({"service_id": plan.service});
    patch(lab, &id, &body)
        .send()
        .await?
        .refuses("AsyncRequired")?;
    lab.remove(&id, plan).await
}

async fn nothing_to_do_is_done(lab: &Lab) -> Result<()> {
    for plan in &lab.plans {
        let id = lab.made("nothing", plan).await?;
        let before = read(lab, &id).await?;
        for body in [
            json!({"service_id": plan.service}),
            json!({"service_id": plan.service, "plan_id": plan.id}),
        ] {
            let got = patch(lab, &id, &body).patient().send().await?;
            settled(lab, &id, got).await?;
        }
        ensure!(read(lab, &id).await? == before, "it changed");
        lab.remove(&id, plan).await?;
    }
    Ok(())
}

async fn read(lab: &Lab, id: &str) -> Result<Value> {
    Ok(lab.get(id).send().await?.is(&[200])?.body)
}

async fn hints_are_hints(lab: &Lab) -> Result<()> {
    let plan = lab.any_plan()?;
    let id = lab.made("hints", plan).await?;
    for hint in [
        json!({}),
        json!({"plan_id": "other", "service_id": "other", "organization_id": "other"}),
    ] {
        let body =
            json!({"service_id": plan.service, "previous_values": hint, "maintenance_info": {}});
        let got = patch(lab, &id, &body).patient().send().await?;
        settled(lab, &id, got).await?;
    }
    lab.remove(&id, plan).await
}

async fn maintenance_must_agree(lab: &Lab) -> Result<()> {
    let plan = lab.any_plan()?;
    let id = lab.made("maintenance", plan).await?;
    let body = json!({"service_id": plan.service, "maintenance_info": {"version": "987.654.321"}});
    patch(lab, &id, &body)
        .patient()
        .send()
        .await?
        .refuses("MaintenanceInfoConflict")?;
    lab.remove(&id, plan).await
}

/// Requests that every broker must refuse for this plan.
fn refusals(lab: &Lab, plan: &Plan) -> Vec<(Value, Vec<u16>)> {
    let service = &plan.service;
    let mut refusals = vec![
        (
            json!({"service_id": service, "plan_id": "no-such-plan"}),
            vec![400],
        ),
        (json!({"service_id": service, "parameters": []}), vec![400]),
    ];
    let sibling = lab
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

async fn refusals_change_nothing(lab: &Lab) -> Result<()> {
    let plan = lab.any_plan()?;
    let id = lab.made("refusals", plan).await?;
    let before = read(lab, &id).await?;
    for (body, expected) in refusals(lab, plan) {
        patch(lab, &id, &body)
            .patient()
            .send()
            .await?
            .is(&expected)?;
        ensure!(read(lab, &id).await? == before, "{body} changed it");
    }
    lab.remove(&id, plan).await
}

async fn contexts_may_change(lab: &Lab) -> Result<()> {
    for plan in lab
        .plans
        .iter()
        .filter(|plan| plan.says("allow_context_updates"))
    {
        let id = lab.made("context", plan).await?;
        let body = json!({"service_id": plan.service, "context": {"platform": "check", "instance_name": "renamed"}});
        let got = patch(lab, &id, &body).patient().send().await?;
        settled(lab, &id, got).await?;
        lab.remove(&id, plan).await?;
    }
    Ok(())
}
