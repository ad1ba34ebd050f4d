//! Removing instances, also those that hardly exist.

use anyhow::{Result, ensure};

use super::promises;
use crate::session::{CheckSession, instance};

promises! { "deprovision":
    Plan ids_are_required "service and plan must be named, whether the instance exists or not"
        in "Deprovisioning",
    PatientPlan patience_comes_first "an asynchronous plan asks for patience before it looks for the instance"
        in "Synchronous and Asynchronous Operations",
    Plan the_unknown_is_gone "what never existed is gone"
        in "Deprovisioning",
    Plan the_gone_is_gone "what was removed is gone, and its id can be used again"
        in "Deprovisioning",
    Plan wrong_ids_do_not_stop_it "a removal that names another plan of the past is carried out"
        in "Deprovisioning",
    Plan it_stops_a_creation "a removal is accepted while the instance is being made"
        in "Blocking Operations",
    Plan a_repeat_is_the_same_operation "the same request meanwhile answers with the same operation"
        in "Deprovisioning",
}

async fn ids_are_required(session: &CheckSession) -> Result<()> {
    let plan = session.any_plan()?;
    let id = session.made("ids", plan).await?;
    for id in [id.clone(), session.fresh("never")] {
        session.needs_both_ids(&instance(&id), plan).await?;
    }
    session.get(&id).send().await?.is(&[200])?;
    session.remove(&id, plan).await
}

async fn patience_comes_first(session: &CheckSession) -> Result<()> {
    let plan = session.plan(|plan| plan.is_patient)?;
    session
        .delete(&session.fresh("never"), plan)
        .send()
        .await?
        .refuses("AsyncRequired")
}

async fn the_unknown_is_gone(session: &CheckSession) -> Result<()> {
    let call = session.delete(&session.fresh("never"), session.any_plan()?);
    call.patient().send().await?.is(&[410])?;
    Ok(())
}

async fn the_gone_is_gone(session: &CheckSession) -> Result<()> {
    for plan in &session.plans {
        let id = session.made("gone", plan).await?;
        session.remove(&id, plan).await?;
        session
            .delete(&id, plan)
            .patient()
            .send()
            .await?
            .is(&[410])?;
        let got = session
            .put(&id, plan)
            .patient()
            .send()
            .await?
            .is(&[201, 202])?;
        session.succeeded(&id, &got).await?;
        session.get(&id).send().await?.is(&[200])?;
        session.remove(&id, plan).await?;
    }
    Ok(())
}

async fn wrong_ids_do_not_stop_it(session: &CheckSession) -> Result<()> {
    let plan = session.any_plan()?;
    let id = session.made("wrong", plan).await?;
    let call = session.broker.call("DELETE", &instance(&id)).patient();
    let call = call
        .query("service_id", &plan.service)
        .query("plan_id", "an-older-plan");
    let got = call.send().await?.is(&[200, 202])?;
    session.succeeded(&id, &got).await?;
    session.get(&id).send().await?.is(&[404])?;
    Ok(())
}

async fn it_stops_a_creation(session: &CheckSession) -> Result<()> {
    for plan in &session.plans {
        let id = session.fresh("stopped");
        session
            .put(&id, plan)
            .patient()
            .send()
            .await?
            .is(&[201, 202])?;
        let got = session
            .delete(&id, plan)
            .patient()
            .send()
            .await?
            .is(&[200, 202])?;
        session.succeeded(&id, &got).await?;
        session.get(&id).send().await?.is(&[404])?;
        session
            .delete(&id, plan)
            .patient()
            .send()
            .await?
            .is(&[410])?;
    }
    Ok(())
}

async fn a_repeat_is_the_same_operation(session: &CheckSession) -> Result<()> {
    for plan in &session.plans {
        let id = session.made("repeat", plan).await?;
        let first = session
            .delete(&id, plan)
            .patient()
            .send()
            .await?
            .is(&[200, 202])?;
        let again = session
            .delete(&id, plan)
            .patient()
            .send()
            .await?
            .is(&[202, 410])?;
        if first.status == 202 && again.status == 202 {
            let (first, again) = (first.text("operation"), again.text("operation"));
            ensure!(first == again, "the operation {first} became {again}");
        }
        session.succeeded(&id, &first).await?;
    }
    Ok(())
}
