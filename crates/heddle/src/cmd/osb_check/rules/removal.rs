//! Removing instances, also those that hardly exist.

use anyhow::{Result, ensure};

use super::promises;
use crate::cmd::osb_check::lab::{Lab, instance};

promises! { "deprovision":
    Plan ids_are_required "service and plan must be named, whether the instance exists or not",
    PatientPlan patience_comes_first "an asynchronous plan asks for patience before it looks for the instance",
    Plan the_unknown_is_gone "what never existed is gone",
    Plan the_gone_is_gone "what was removed is gone, and its id can be used again",
    Plan wrong_ids_do_not_stop_it "a removal that names another plan of the past is carried out",
    Plan it_stops_a_creation "a removal is accepted while the instance is being made",
    Plan a_repeat_is_the_same_operation "the same request meanwhile answers with the same operation",
}

async fn ids_are_required(lab: &Lab) -> Result<()> {
    let plan = lab.any_plan()?;
    let id = lab.made("ids", plan).await?;
    for id in [id.clone(), lab.fresh("never")] {
        let call = || lab.broker.call("DELETE", &instance(&id)).patient();
        call().send().await?.is(&[400])?;
        call()
            .query("service_id", &plan.service)
            .send()
            .await?
            .is(&[400])?;
        call().query("plan_id", &plan.id).send().await?.is(&[400])?;
    }
    lab.get(&id).send().await?.is(&[200])?;
    lab.remove(&id, plan).await
}

async fn patience_comes_first(lab: &Lab) -> Result<()> {
    let plan = lab.plan(|plan| plan.is_patient)?;
    lab.delete(&lab.fresh("never"), plan)
        .send()
        .await?
        .refuses("AsyncRequired")
}

async fn the_unknown_is_gone(lab: &Lab) -> Result<()> {
    let call = lab.delete(&lab.fresh("never"), lab.any_plan()?);
    call.patient().send().await?.is(&[410])?;
    Ok(())
}

async fn the_gone_is_gone(lab: &Lab) -> Result<()> {
    for plan in &lab.plans {
        let id = lab.made("gone", plan).await?;
        lab.remove(&id, plan).await?;
        lab.delete(&id, plan).patient().send().await?.is(&[410])?;
        let got = lab.put(&id, plan).patient().send().await?.is(&[201, 202])?;
        lab.succeeded(&id, &got).await?;
        lab.get(&id).send().await?.is(&[200])?;
        lab.remove(&id, plan).await?;
    }
    Ok(())
}

async fn wrong_ids_do_not_stop_it(lab: &Lab) -> Result<()> {
    let plan = lab.any_plan()?;
    let id = lab.made("wrong", plan).await?;
    let call = lab.broker.call("DELETE", &instance(&id)).patient();
    let call = call
        .query("service_id", &plan.service)
        .query("plan_id", "an-older-plan");
    let got = call.send().await?.is(&[200, 202])?;
    lab.succeeded(&id, &got).await?;
    lab.get(&id).send().await?.is(&[404])?;
    Ok(())
}

async fn it_stops_a_creation(lab: &Lab) -> Result<()> {
    for plan in &lab.plans {
        let id = lab.fresh("stopped");
        lab.put(&id, plan).patient().send().await?.is(&[201, 202])?;
        let got = lab
            .delete(&id, plan)
            .patient()
            .send()
            .await?
            .is(&[200, 202])?;
        lab.succeeded(&id, &got).await?;
        lab.get(&id).send().await?.is(&[404])?;
        lab.delete(&id, plan).patient().send().await?.is(&[410])?;
    }
    Ok(())
}

async fn a_repeat_is_the_same_operation(lab: &Lab) -> Result<()> {
    for plan in &lab.plans {
        let id = lab.made("repeat", plan).await?;
        let first = lab
            .delete(&id, plan)
            .patient()
            .send()
            .await?
            .is(&[200, 202])?;
        let again = lab
            .delete(&id, plan)
            .patient()
            .send()
            .await?
            .is(&[202, 410])?;
        if first.status == 202 && again.status == 202 {
            let (first, again) = (first.text("operation"), again.text("operation"));
            ensure!(first == again, "the operation {first} became {again}");
        }
        lab.succeeded(&id, &first).await?;
    }
    Ok(())
}
