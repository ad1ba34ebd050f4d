//! Many at once, and platforms with bad habits.

use anyhow::{Result, ensure};
use futures::future::join_all;

use super::promises;
use crate::session::CheckSession;

promises! { "crowd":
    Plan equal_requests_make_one_instance "fifty equal requests at once make one instance and one operation"
        in "Provisioning",
    BindablePlan many_bindings_at_once "many bindings of one instance are made side by side"
        in "Binding",
    Plan impatient_removals_leave_nothing "a removal right after the request leaves nothing, every time"
        in "Orphan Mitigation",
    Plan a_stutter_changes_nothing "a platform that says everything three times gets the same"
        in "Blocking Operations",
}

const MANY: usize = 50;
const TIMES: usize = 20;

async fn equal_requests_make_one_instance(session: &CheckSession) -> Result<()> {
    let plan = session.any_plan()?;
    let id = session.fresh("crowd");
    let calls = (0..MANY).map(|_| session.put(&id, plan).patient().send());
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
    session.ends(|| session.poll(&id), &["succeeded"]).await?;
    session.remove(&id, plan).await
}

async fn many_bindings_at_once(session: &CheckSession) -> Result<()> {
    let plan = session.plan(|plan| plan.says("bindable"))?;
    let id = session.made("crowd", plan).await?;
    let made = join_all((0..MANY).map(|_| session.bound(&id, plan))).await;
    for binding in made {
        let (binding, _) = binding?;
        session.binding(&id, &binding).gets(&[200]).await?;
    }
    session.remove(&id, plan).await
}

async fn impatient_removals_leave_nothing(session: &CheckSession) -> Result<()> {
    let plan = session.any_plan()?;
    for _ in 0..TIMES {
        let id = session.fresh("impatient");
        session.put(&id, plan).patient().gets(&[201, 202]).await?;
        session.remove(&id, plan).await?;
        session.get(&id).gets(&[404]).await?;
        session.put(&id, plan).patient().gets(&[201, 202]).await?;
        session.remove(&id, plan).await?;
    }
    Ok(())
}

async fn a_stutter_changes_nothing(session: &CheckSession) -> Result<()> {
    for plan in &session.plans {
        let id = session.fresh("stutter");
        for _ in 0..3 {
            session
                .put(&id, plan)
                .patient()
                .gets(&[200, 201, 202])
                .await?;
        }
        session.ends(|| session.poll(&id), &["succeeded"]).await?;
        if plan.says("bindable") {
            let binding = session.fresh("stutter");
            for _ in 0..3 {
                session
                    .bind(&id, &binding, plan)
                    .patient()
                    .gets(&[200, 201, 202])
                    .await?;
            }
            session.binding_succeeded(&id, &binding).await?;
            for _ in 0..3 {
                session
                    .unbind(&id, &binding, plan)
                    .patient()
                    .gets(&[200, 202, 410])
                    .await?;
            }
        }
        for _ in 0..3 {
            session
                .delete(&id, plan)
                .patient()
                .gets(&[200, 202, 410])
                .await?;
        }
        session.ends(|| session.poll(&id), &["succeeded"]).await?;
        session.get(&id).gets(&[404]).await?;
    }
    Ok(())
}
