//! Asking how far an operation has come.

use anyhow::{Result, ensure};

use super::promises;
use crate::session::{CheckSession, bound};

promises! { "poll":
    Nothing the_unknown_is_not_found "what never existed is not found"
        in "Polling Last Operation for Service Instances",
    Plan it_answers_at_once "an accepted operation can be asked about at once"
        in "Polling Last Operation for Service Instances",
    Plan hints_never_hurt "an absent, empty or unknown operation means the latest, and hints may be wrong"
        in "Polling Last Operation for Service Instances",
    Plan the_end_is_remembered "the end of an operation is told again and again"
        in "Polling Last Operation for Service Instances",
}

async fn the_unknown_is_not_found(session: &CheckSession) -> Result<()> {
    let id = session.fresh("never");
    session.poll(&id).gets(&[404]).await?;
    let path = format!("{}/last_operation", bound(&id, "never"));
    session.broker.call("GET", &path).gets(&[404]).await?;
    Ok(())
}

async fn it_answers_at_once(session: &CheckSession) -> Result<()> {
    for plan in &session.plans {
        let id = session.fresh("at-once");
        let got = session.put(&id, plan).patient().gets(&[201, 202]).await?;
        let polled = session.poll(&id).gets(&[200]).await?;
        ensure!(
            polled.text("state") != "failed",
            "it failed at once: {}",
            polled.body
        );
        session.succeeded(&id, &got).await?;
        session.remove(&id, plan).await?;
    }
    Ok(())
}

async fn hints_never_hurt(session: &CheckSession) -> Result<()> {
    let plan = session.any_plan()?;
    let id = session.made("hints", plan).await?;
    for operation in [
        "",
        "provision",
        "update",
        "deprovision",
        "no-such-operation",
    ] {
        let call = session.poll(&id).query("operation", operation);
        let got = call
            .query("service_id", "other")
            .query("plan_id", "other")
            .send()
            .await?;
        let got = got.is(&[200])?;
        ensure!(
            got.text("state") == "succeeded",
            "{operation:?} gives {}",
            got.body
        );
    }
    session.remove(&id, plan).await
}

async fn the_end_is_remembered(session: &CheckSession) -> Result<()> {
    let plan = session.any_plan()?;
    let id = session.made("remembered", plan).await?;
    for _ in 0..3 {
        let got = session.poll(&id).gets(&[200]).await?;
        ensure!(got.text("state") == "succeeded", "it says {}", got.body);
    }
    session.remove(&id, plan).await?;
    for _ in 0..3 {
        let got = session.poll(&id).gets(&[200, 410]).await?;
        let state = got.text("state");
        ensure!(
            got.status == 410 || state == "succeeded",
            "after its removal it says {}",
            got.body
        );
    }
    Ok(())
}
