//! Credentials: given, read, rotated, taken back.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::promises;
use crate::cmd::osb_check::lab::{Lab, Plan, bound};

promises! { "bind":
    BindablePlan required_members_are_required "service and plan must be there, be known and be the instance's",
    Plan the_instance_must_exist "an instance that does not exist cannot be bound",
    UnbindablePlan some_plans_cannot_be_bound "a plan that is not bindable refuses",
    BindablePlan credentials_are_given_and_read "credentials are given once and can be read again",
    BindablePlan a_repeat_is_the_same "the same request again answers with the same credentials",
    BindablePlan another_request_is_a_conflict "the same id with other attributes is a conflict, before anything else",
    BindablePlan one_goes_the_other_stays "taking one binding back leaves the others alone",
    BindablePlan a_second_unbinding_finds_nothing "a binding that is gone is gone, whatever else is missing",
    BindablePlan an_existing_binding_needs_its_ids "unbinding names service and plan",
    BindablePlan an_instance_takes_its_bindings_along "removing an instance ends its bindings",
    RigidPlan only_rotatable_plans_rotate "a predecessor is refused where bindings do not rotate",
    RotatablePlan rotation_gives_a_successor "a successor has credentials of its own, and both work",
}

fn is_bindable(plan: &Plan) -> bool {
    plan.says("bindable")
}

async fn required_members_are_required(lab: &Lab) -> Result<()> {
    let plan = lab.plan(is_bindable)?;
    let id = lab.made("bind", plan).await?;
    let binding = lab.fresh("binding");
    for field in ["service_id", "plan_id"] {
        for wrong in [
            None,
            Some(Value::Null),
            Some(json!("")),
            Some(json!("unknown")),
        ] {
            let mut body = lab.bind_body(plan);
            let members = body.as_object_mut().expect("a body is an object");
            match &wrong {
                None => members.remove(field),
                Some(value) => members.insert(field.to_owned(), value.clone()),
            };
            let call = lab.broker.call("PUT", &bound(&id, &binding)).patient();
            call.json(&body).send().await?.is(&[400])?;
        }
    }
    lab.binding(&id, &binding).send().await?.is(&[404])?;
    lab.remove(&id, plan).await
}

async fn the_instance_must_exist(lab: &Lab) -> Result<()> {
    let plan = lab.any_plan()?;
    let call = lab.bind(&lab.fresh("never"), &lab.fresh("binding"), plan);
    call.patient().send().await?.is(&[404])?;
    Ok(())
}

async fn some_plans_cannot_be_bound(lab: &Lab) -> Result<()> {
    let plan = lab.plan(|plan| !plan.says("bindable"))?;
    let id = lab.made("unbindable", plan).await?;
    lab.bind(&id, &lab.fresh("binding"), plan)
        .patient()
        .send()
        .await?
        .is(&[400])?;
    lab.remove(&id, plan).await
}

async fn credentials_are_given_and_read(lab: &Lab) -> Result<()> {
    let plan = lab.plan(is_bindable)?;
    let id = lab.made("bind", plan).await?;
    lab.binding(&id, &lab.fresh("never"))
        .send()
        .await?
        .is(&[404])?;
    let (binding, body) = lab.bound(&id, plan).await?;
    ensure!(
        body["credentials"].is_object(),
        "there are no credentials in {:?}",
        keys(&body)
    );
    let read = lab.binding(&id, &binding).send().await?.is(&[200])?;
    ensure!(
        read.body["credentials"] == body["credentials"],
        "other credentials are read than were given"
    );
    lab.remove(&id, plan).await
}

/// What an answer with secrets may be described by.
fn keys(body: &Value) -> Vec<&String> {
    body.as_object()
        .map(|body| body.keys().collect())
        .unwrap_or_default()
}

async fn a_repeat_is_the_same(lab: &Lab) -> Result<()> {
    let plan = lab.plan(is_bindable)?;
    let id = lab.made("bind", plan).await?;
    let (binding, body) = lab.bound(&id, plan).await?;
    let again = lab
        .bind(&id, &binding, plan)
        .patient()
        .send()
        .await?
        .is(&[200])?;
    ensure!(
        again.body["credentials"] == body["credentials"],
        "the credentials are others"
    );
    lab.remove(&id, plan).await
}

async fn another_request_is_a_conflict(lab: &Lab) -> Result<()> {
    let plan = lab.plan(is_bindable)?;
    let id = lab.made("bind", plan).await?;
    let (binding, _) = lab.bound(&id, plan).await?;
    let changes: [fn(&mut Value); 3] = [
        |body| body["plan_id"] = json!("another"),
        |body| body["parameters"] = json!({"another": true}),
        |body| body["bind_resource"] = json!({"app_guid": "another"}),
    ];
    for change in changes {
        let mut body = lab.bind_body(plan);
        change(&mut body);
        let call = lab.broker.call("PUT", &bound(&id, &binding)).patient();
        call.json(&body).send().await?.is(&[409])?;
    }
    lab.remove(&id, plan).await
}

async fn unbound(lab: &Lab, id: &str, binding: &str, plan: &Plan) -> Result<()> {
    let got = lab
        .unbind(id, binding, plan)
        .patient()
        .send()
        .await?
        .is(&[200, 202])?;
    if got.status == 202 {
        let path = format!("{}/last_operation", bound(id, binding));
        lab.ends(|| lab.broker.call("GET", &path), &["succeeded"])
            .await?;
    }
    Ok(())
}

async fn one_goes_the_other_stays(lab: &Lab) -> Result<()> {
    let plan = lab.plan(is_bindable)?;
    let id = lab.made("bind", plan).await?;
    let (one, _) = lab.bound(&id, plan).await?;
    let (other, body) = lab.bound(&id, plan).await?;
    unbound(lab, &id, &one, plan).await?;
    lab.binding(&id, &one).send().await?.is(&[404])?;
    let read = lab.binding(&id, &other).send().await?.is(&[200])?;
    ensure!(
        read.body["credentials"] == body["credentials"],
        "the other's credentials changed"
    );
    lab.remove(&id, plan).await
}

async fn a_second_unbinding_finds_nothing(lab: &Lab) -> Result<()> {
    let plan = lab.plan(is_bindable)?;
    let id = lab.made("bind", plan).await?;
    let (binding, _) = lab.bound(&id, plan).await?;
    unbound(lab, &id, &binding, plan).await?;
    lab.unbind(&id, &binding, plan)
        .patient()
        .send()
        .await?
        .is(&[410])?;
    let call = lab.broker.call("DELETE", &bound(&id, &lab.fresh("never")));
    call.patient().send().await?.is(&[410])?;
    lab.remove(&id, plan).await
}

async fn an_existing_binding_needs_its_ids(lab: &Lab) -> Result<()> {
    let plan = lab.plan(is_bindable)?;
    let id = lab.made("bind", plan).await?;
    let (binding, _) = lab.bound(&id, plan).await?;
    let call = || lab.broker.call("DELETE", &bound(&id, &binding)).patient();
    call().send().await?.is(&[400])?;
    call()
        .query("service_id", &plan.service)
        .send()
        .await?
        .is(&[400])?;
    call().query("plan_id", &plan.id).send().await?.is(&[400])?;
    lab.binding(&id, &binding).send().await?.is(&[200])?;
    lab.remove(&id, plan).await
}

async fn an_instance_takes_its_bindings_along(lab: &Lab) -> Result<()> {
    let plan = lab.plan(is_bindable)?;
    let id = lab.made("bind", plan).await?;
    let (binding, _) = lab.bound(&id, plan).await?;
    lab.remove(&id, plan).await?;
    lab.binding(&id, &binding).send().await?.is(&[404])?;
    lab.unbind(&id, &binding, plan)
        .patient()
        .send()
        .await?
        .is(&[410])?;
    Ok(())
}

async fn rotate(lab: &Lab, id: &str, binding: &str, plan: &Plan, old: &str) -> Result<u16> {
    let mut body = lab.bind_body(plan);
    body["predecessor_binding_id"] = json!(old);
    let call = lab.broker.call("PUT", &bound(id, binding)).patient();
    Ok(call
        .json(&body)
        .send()
        .await?
        .is(&[200, 201, 202, 400])?
        .status)
}

async fn only_rotatable_plans_rotate(lab: &Lab) -> Result<()> {
    let plan = lab.plan(|plan| plan.says("bindable") && !plan.says("binding_rotatable"))?;
    let id = lab.made("bind", plan).await?;
    let (old, _) = lab.bound(&id, plan).await?;
    let status = rotate(lab, &id, &lab.fresh("successor"), plan, &old).await?;
    ensure!(status == 400, "it answered {status}");
    lab.remove(&id, plan).await
}

async fn rotation_gives_a_successor(lab: &Lab) -> Result<()> {
    let plan = lab.plan(|plan| plan.says("binding_rotatable"))?;
    let id = lab.made("bind", plan).await?;
    let (old, _) = lab.bound(&id, plan).await?;
    let status = rotate(lab, &id, &lab.fresh("successor"), plan, "never-made").await?;
    ensure!(status == 400, "an unknown predecessor gave {status}");
    let new = lab.fresh("successor");
    let status = rotate(lab, &id, &new, plan, &old).await?;
    ensure!(matches!(status, 201 | 202), "it answered {status}");
    let path = format!("{}/last_operation", bound(&id, &new));
    lab.ends(|| lab.broker.call("GET", &path), &["succeeded"])
        .await?;
    ensure!(
        rotate(lab, &id, &new, plan, &old).await? == 200,
        "the repeat is not the same"
    );
    for binding in [&old, &new] {
        lab.binding(&id, binding).send().await?.is(&[200])?;
    }
    lab.remove(&id, plan).await
}
