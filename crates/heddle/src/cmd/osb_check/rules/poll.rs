//! Asking how far an operation has come.

use anyhow::{Result, ensure};

use super::promises;
use crate::cmd::osb_check::lab::{Lab, bound};

promises! { "poll":
    Nothing the_unknown_is_not_found "what never existed is not found",
    Plan it_answers_at_once "an accepted operation can be asked about at once",
    Plan hints_never_hurt "an absent, empty or unknown operation means the latest, and hints may be wrong",
    Plan the_end_is_remembered "the end of an operation is told again and again",
}

async fn the_unknown_is_not_found(lab: &Lab) -> Result<()> {
    let id = lab.fresh("never");
    lab.poll(&id).send().await?.is(&[404])?;
    let path = format!("{}/last_operation", bound(&id, "never"));
    lab.broker.call("GET", &path).send().await?.is(&[404])?;
    Ok(())
}

async fn it_answers_at_once(lab: &Lab) -> Result<()> {
    for plan in &lab.plans {
        let id = lab.fresh("at-once");
        let got = lab.put(&id, plan).patient().send().await?.is(&[201, 202])?;
        let polled = lab.poll(&id).send().await?.is(&[200])?;
        ensure!(
            polled.text("state") != "failed",
            "it failed at once: {}",
            polled.body
        );
        lab.succeeded(&id, &got).await?;
        lab.remove(&id, plan).await?;
    }
    Ok(())
}

async fn hints_never_hurt(lab: &Lab) -> Result<()> {
    let plan = lab.any_plan()?;
    let id = lab.made("hints", plan).await?;
    for operation in [
        "",
        "provision",
        "update",
        "deprovision",
        "no-such-operation",
    ] {
        let call = lab.poll(&id).query("operation", operation);
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
    lab.remove(&id, plan).await
}

async fn the_end_is_remembered(lab: &Lab) -> Result<()> {
    let plan = lab.any_plan()?;
    let id = lab.made("remembered", plan).await?;
    for _ in 0..3 {
        let got = lab.poll(&id).send().await?.is(&[200])?;
        ensure!(got.text("state") == "succeeded", "it says {}", got.body);
    }
    lab.remove(&id, plan).await?;
    for _ in 0..3 {
        let got = lab.poll(&id).send().await?.is(&[200, 410])?;
        let state = got.text("state");
        ensure!(
            got.status == 410 || state == "succeeded",
            "after its removal it says {}",
            got.body
        );
    }
    Ok(())
}
