//! Credentials: given, read, rotated, taken back.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::promises;
use crate::session::{CheckSession, Plan, bound};

promises! { "bind":
    BindablePlan required_members_are_required "service and plan must be there, be known and be the instance's"
        in "Binding",
    Plan the_instance_must_exist "an instance that does not exist cannot be bound"
        in "Binding",
    UnbindablePlan some_plans_cannot_be_bound "a plan that is not bindable refuses"
        in "Binding",
    BindablePlan credentials_are_given_and_read "credentials are given once and can be read again"
        in "Fetching a Service Binding",
    BindablePlan a_repeat_is_the_same "the same request again answers with the same credentials"
        in "Binding",
    BindablePlan another_request_is_a_conflict "the same id with other attributes is a conflict, before anything else"
        in "Binding",
    BindablePlan one_goes_the_other_stays "taking one binding back leaves the others alone"
        in "Unbinding",
    BindablePlan a_second_unbinding_finds_nothing "a binding that is gone is gone, whatever else is missing"
        in "Unbinding",
    BindablePlan an_existing_binding_needs_its_ids "unbinding names service and plan"
        in "Unbinding",
    BindablePlan an_instance_takes_its_bindings_along "removing an instance ends its bindings"
        in "Deprovisioning",
    RigidPlan only_rotatable_plans_rotate "a predecessor is refused where bindings do not rotate"
        in "Binding",
    RotatablePlan rotation_gives_a_successor "a successor has credentials of its own, and both work"
        in "Binding",
}

fn is_bindable(plan: &Plan) -> bool {
    plan.says("bindable")
}

async fn required_members_are_required(session: &CheckSession) -> Result<()> {
    let plan = session.plan(is_bindable)?;
    let id = session.made("bind", plan).await?;
    let binding = session.fresh("binding");
    for field in ["service_id", "plan_id"] {
        for wrong in [
            None,
            Some(Value::Null),
            Some(json!("")),
            Some(json!("unknown")),
        ] {
            let mut body = session.bind_body(plan);
            let members = body.as_object_mut().expect("a body is an object");
            match &wrong {
                None => members.remove(field),
                Some(value) => members.insert(field.to_owned(), value.clone()),
            };
            let call = session.broker.call("PUT", &bound(&id, &binding)).patient();
            call.json(&body).gets(&[400]).await?;
        }
    }
    session.binding(&id, &binding).gets(&[404]).await?;
    session.remove(&id, plan).await
}

async fn the_instance_must_exist(session: &CheckSession) -> Result<()> {
    let plan = session.any_plan()?;
    let call = session.bind(&session.fresh("never"), &session.fresh("binding"), plan);
    call.patient().gets(&[404]).await?;
    Ok(())
}

async fn some_plans_cannot_be_bound(session: &CheckSession) -> Result<()> {
    let plan = session.plan(|plan| !plan.says("bindable"))?;
    let id = session.made("unbindable", plan).await?;
    session
        .bind(&id, &session.fresh("binding"), plan)
        .patient()
        .gets(&[400])
        .await?;
    session.remove(&id, plan).await
}

async fn credentials_are_given_and_read(session: &CheckSession) -> Result<()> {
    let plan = session.plan(is_bindable)?;
    let id = session.made("bind", plan).await?;
    session
        .binding(&id, &session.fresh("never"))
        .gets(&[404])
        .await?;
    let (binding, body) = session.bound(&id, plan).await?;
    ensure!(
        body["credentials"].is_object(),
        "there are no credentials in {:?}",
        keys(&body)
    );
    let read = session.binding(&id, &binding).gets(&[200]).await?;
    ensure!(
        read.body["credentials"] == body["credentials"],
        "other credentials are read than were given"
    );
    session.remove(&id, plan).await
}

/// What an answer with secrets may be described by.
fn keys(body: &Value) -> Vec<&String> {
    body.as_object()
        .map(|body| body.keys().collect())
        .unwrap_or_default()
}

/// An instance of a bindable plan and a binding of it: plan, both ids, and the binding's body.
async fn first_binding(session: &CheckSession) -> Result<(&Plan, String, String, Value)> {
    let plan = session.plan(is_bindable)?;
    let id = session.made("bind", plan).await?;
    let (binding, body) = session.bound(&id, plan).await?;
    Ok((plan, id, binding, body))
}

async fn a_repeat_is_the_same(session: &CheckSession) -> Result<()> {
    let (plan, id, binding, body) = first_binding(session).await?;
    let again = session
        .bind(&id, &binding, plan)
        .patient()
        .gets(&[200])
        .await?;
    ensure!(
        again.body["credentials"] == body["credentials"],
        "the credentials are others"
    );
    session.remove(&id, plan).await
}

async fn another_request_is_a_conflict(session: &CheckSession) -> Result<()> {
    let (plan, id, binding, _) = first_binding(session).await?;
    let changes: [fn(&mut Value); 3] = [
        |body| body["plan_id"] = json!("another"),
        |body| body["parameters"] = json!({"another": true}),
        |body| body["bind_resource"] = json!({"app_guid": "another"}),
    ];
    for change in changes {
        let mut body = session.bind_body(plan);
        change(&mut body);
        let call = session.broker.call("PUT", &bound(&id, &binding)).patient();
        call.json(&body).gets(&[409]).await?;
    }
    session.remove(&id, plan).await
}

async fn unbound(session: &CheckSession, id: &str, binding: &str, plan: &Plan) -> Result<()> {
    let got = session
        .unbind(id, binding, plan)
        .patient()
        .gets(&[200, 202])
        .await?;
    if got.status == 202 {
        session.binding_succeeded(id, binding).await?;
    }
    Ok(())
}

async fn one_goes_the_other_stays(session: &CheckSession) -> Result<()> {
    let (plan, id, one, _) = first_binding(session).await?;
    let (other, body) = session.bound(&id, plan).await?;
    unbound(session, &id, &one, plan).await?;
    session.binding(&id, &one).gets(&[404]).await?;
    let read = session.binding(&id, &other).gets(&[200]).await?;
    ensure!(
        read.body["credentials"] == body["credentials"],
        "the other's credentials changed"
    );
    session.remove(&id, plan).await
}

async fn a_second_unbinding_finds_nothing(session: &CheckSession) -> Result<()> {
    let (plan, id, binding, _) = first_binding(session).await?;
    unbound(session, &id, &binding, plan).await?;
    session
        .unbind(&id, &binding, plan)
        .patient()
        .gets(&[410])
        .await?;
    let call = session
        .broker
        .call("DELETE", &bound(&id, &session.fresh("never")));
    call.patient().gets(&[410]).await?;
    session.remove(&id, plan).await
}

async fn an_existing_binding_needs_its_ids(session: &CheckSession) -> Result<()> {
    let (plan, id, binding, _) = first_binding(session).await?;
    session.needs_both_ids(&bound(&id, &binding), plan).await?;
    session.binding(&id, &binding).gets(&[200]).await?;
    session.remove(&id, plan).await
}

async fn an_instance_takes_its_bindings_along(session: &CheckSession) -> Result<()> {
    let (plan, id, binding, _) = first_binding(session).await?;
    session.remove(&id, plan).await?;
    session.binding(&id, &binding).gets(&[404]).await?;
    session
        .unbind(&id, &binding, plan)
        .patient()
        .gets(&[410])
        .await?;
    Ok(())
}

async fn rotate(
    session: &CheckSession,
    id: &str,
    binding: &str,
    plan: &Plan,
    old: &str,
) -> Result<u16> {
    let mut body = session.bind_body(plan);
    body["predecessor_binding_id"] = json!(old);
    let call = session.broker.call("PUT", &bound(id, binding)).patient();
    Ok(call.json(&body).gets(&[200, 201, 202, 400]).await?.status)
}

async fn only_rotatable_plans_rotate(session: &CheckSession) -> Result<()> {
    let plan = session.plan(|plan| plan.says("bindable") && !plan.says("binding_rotatable"))?;
    let id = session.made("bind", plan).await?;
    let (old, _) = session.bound(&id, plan).await?;
    let status = rotate(session, &id, &session.fresh("successor"), plan, &old).await?;
    ensure!(status == 400, "it answered {status}");
    session.remove(&id, plan).await
}

async fn rotation_gives_a_successor(session: &CheckSession) -> Result<()> {
    let plan = session.plan(|plan| plan.says("binding_rotatable"))?;
    let id = session.made("bind", plan).await?;
    let (old, _) = session.bound(&id, plan).await?;
    let status = rotate(
        session,
        &id,
        &session.fresh("successor"),
        plan,
        "never-made",
    )
    .await?;
    ensure!(status == 400, "an unknown predecessor gave {status}");
    let new = session.fresh("successor");
    let status = rotate(session, &id, &new, plan, &old).await?;
    ensure!(matches!(status, 201 | 202), "it answered {status}");
    session.binding_succeeded(&id, &new).await?;
    ensure!(
        rotate(session, &id, &new, plan, &old).await? == 200,
        "the repeat is not the same"
    );
    for binding in [&old, &new] {
        session.binding(&id, binding).gets(&[200]).await?;
    }
    session.remove(&id, plan).await
}
