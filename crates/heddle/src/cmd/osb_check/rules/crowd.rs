//! Many at once, and platforms with bad habits.

use anyhow::{Result, ensure};
use futures::future::join_all;

use super::promises;
use crate::cmd::osb_check::lab::{Lab, bound};

promises! { "crowd":
    Plan equal_requests_make_one_instance "fifty equal requests at once make one instance and one operation",
    BindablePlan many_bindings_at_once "many bindings of one instance are made side by side",
    Plan impatient_removals_leave_nothing "a removal right after the request leaves nothing, every time",
    Plan a_stutter_changes_nothing "a platform that says everything three times gets the same",
}

const MANY: usize = 50;
const TIMES: usize = 20;

async fn equal_requests_make_one_instance(lab: &Lab) -> Result<()> {
    let plan = lab.any_plan()?;
    let id = lab.fresh("crowd");
    let calls = (0..MANY).map(|_| lab.put(&id, plan).patient().send());
    let mut operations = std::collections::BTreeSet::new();
    let mut created = 0;
    for got in join_all(calls).await {
        let got = got?.is(&[200, 201, 202])?;
        created += usize::from(got.status == 201);
        if got.status == 202 {
            operations.insert(got.text("operation").to_owned());
        }
    }
    ensure!(
        created <= 1 && operations.len() <= 1,
        "{created} were created, operations {operations:?}"
    );
    lab.ends(|| lab.poll(&id), &["succeeded"]).await?;
    lab.remove(&id, plan).await
}

async fn many_bindings_at_once(lab: &Lab) -> Result<()> {
    let plan = lab.plan(|plan| plan.says("bindable"))?;
    let id = lab.made("crowd", plan).await?;
    let made = join_all((0..MANY).map(|_| lab.bound(&id, plan))).await;
    for binding in made {
        let (binding, _) = binding?;
        lab.binding(&id, &binding).send().await?.is(&[200])?;
    }
    lab.remove(&id, plan).await
}

async fn impatient_removals_leave_nothing(lab: &Lab) -> Result<()> {
    let plan = lab.any_plan()?;
    for _ in 0..TIMES {
        let id = lab.fresh("impatient");
        lab.put(&id, plan).patient().send().await?.is(&[201, 202])?;
        lab.remove(&id, plan).await?;
        lab.get(&id).send().await?.is(&[404])?;
        lab.put(&id, plan).patient().send().await?.is(&[201, 202])?;
        lab.remove(&id, plan).await?;
    }
    Ok(())
}

async fn a_stutter_changes_nothing(lab: &Lab) -> Result<()> {
    for plan in &lab.plans {
        let id = lab.fresh("stutter");
        for _ in 0..3 {
            lab.put(&id, plan)
                .patient()
                .send()
                .await?
                .is(&[200, 201, 202])?;
        }
        lab.ends(|| lab.poll(&id), &["succeeded"]).await?;
        if plan.says("bindable") {
            let binding = lab.fresh("stutter");
            for _ in 0..3 {
                lab.bind(&id, &binding, plan)
                    .patient()
                    .send()
                    .await?
                    .is(&[200, 201, 202])?;
            }
            let path = format!("{}/last_operation", bound(&id, &binding));
            lab.ends(|| lab.broker.call("GET", &path), &["succeeded"])
                .await?;
            for _ in 0..3 {
                lab.unbind(&id, &binding, plan)
                    .patient()
                    .send()
                    .await?
                    .is(&[200, 202, 410])?;
            }
        }
        for _ in 0..3 {
            lab.delete(&id, plan)
                .patient()
                .send()
                .await?
                .is(&[200, 202, 410])?;
        }
        lab.ends(|| lab.poll(&id), &["succeeded"]).await?;
        lab.get(&id).send().await?.is(&[404])?;
    }
    Ok(())
}
