//! Removing instances, also those that hardly exist.

use anyhow::Result;

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
    session.get(&id).gets(&[200]).await?;
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
    call.patient().gets(&[410]).await?;
    Ok(())
}

async fn the_gone_is_gone(session: &CheckSession) -> Result<()> {
    for plan in &session.plans {
        let id = session.made("gone", plan).await?;
        session.remove(&id, plan).await?;
        session.delete(&id, plan).patient().gets(&[410]).await?;
        let got = session.put(&id, plan).patient().gets(&[201, 202]).await?;
        session.succeeded(&id, &got).await?;
        session.get(&id).gets(&[200]).await?;
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
    let got = call.gets(&[200, 202]).await?;
    session.succeeded(&id, &got).await?;
    session.get(&id).gets(&[404]).await?;
    Ok(())
}

async fn it_stops_a_creation(session: &CheckSession) -> Result<()> {
    for plan in &session.plans {
        let id = session.fresh("stopped");
        session.put(&id, plan).patient().gets(&[201, 202]).await?;
        let got = session
            .delete(&id, plan)
            .patient()
            .gets(&[200, 202])
            .await?;
        session.succeeded(&id, &got).await?;
        session.get(&id).gets(&[404]).await?;
        session.delete(&id, plan).patient().gets(&[410]).await?;
    }
    Ok(())
}

async fn a_repeat_is_the_same_operation(session: &CheckSession) -> Result<()> {
    for plan in &session.plans {
        let id = session.made("repeat", plan).await?;
        let first = session
            .delete(&id, plan)
            .patient()
            .gets(&[200, 202])
            .await?;
        let again = session
            .delete(&id, plan)
            .patient()
            .gets(&[202, 410])
            .await?;
        again.is_operation_of(&first)?;
        session.succeeded(&id, &first).await?;
    }
    Ok(())
}
