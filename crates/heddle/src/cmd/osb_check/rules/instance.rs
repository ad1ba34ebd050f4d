//! Making instances and looking at them.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::promises;
use crate::cmd::osb_check::lab::{Lab, has_schema, instance};
use crate::cmd::osb_check::wire::IDENTITY_HEADER;

promises! { "provision":
    Plan required_members_are_required "service, plan, organisation and space must be there and not be empty",
    Plan the_catalog_decides "an unknown service or plan is refused",
    TwoOfferings plans_belong_to_offerings "a plan of another offering is refused",
    Plan parameters_are_an_object "parameters that are no object are refused",
    PlanWithSchema parameters_follow_the_schema "parameters that break the schema are refused with the place",
    Plan maintenance_must_agree "a maintenance version that the catalog does not have is a conflict",
    PatientPlan patience_is_required "an asynchronous plan refuses platforms that do not ask again",
    Plan a_repeat_is_the_same "the same request again answers 200 with the same body",
    PatientPlan a_repeat_meanwhile_is_the_same_operation "the same request meanwhile answers with the same operation",
    Plan another_request_is_a_conflict "the same id with other attributes is a conflict",
    Plan only_attributes_count "key order, number form, context and identity are no difference",
    Plan operations_travel_unencoded "an operation is a short string of unreserved characters",
    Plan what_is_made_can_be_read "an instance can be read once it is made, and not before",
}

async fn required_members_are_required(lab: &Lab) -> Result<()> {
    let plan = lab.any_plan()?;
    let id = lab.fresh("required");
    for field in ["service_id", "plan_id", "organization_guid", "space_guid"] {
        for wrong in [None, Some(Value::Null), Some(json!("")), Some(json!(7))] {
            let mut body = lab.provision_body(plan);
            let members = body.as_object_mut().expect("a body is an object");
            match &wrong {
                None => members.remove(field),
                Some(value) => members.insert(field.to_owned(), value.clone()),
            };
            let put = lab.broker.call("PUT", &instance(&id)).patient();
            put.json(&body).send().await?.is(&[400])?;
        }
    }
    lab.poll(&id).send().await?.is(&[404])?;
    Ok(())
}

async fn refused_with(lab: &Lab, change: impl Fn(&mut Value)) -> Result<()> {
    let id = lab.fresh("refused");
    let mut body = lab.provision_body(lab.any_plan()?);
    change(&mut body);
    let put = lab.broker.call("PUT", &instance(&id)).patient();
    put.json(&body).send().await?.is(&[400])?;
    lab.poll(&id).send().await?.is(&[404])?;
    Ok(())
}

async fn the_catalog_decides(lab: &Lab) -> Result<()> {
    refused_with(lab, |body| body["service_id"] = json!("no-such-service")).await?;
    refused_with(lab, |body| body["plan_id"] = json!("no-such-plan")).await
}

async fn plans_belong_to_offerings(lab: &Lab) -> Result<()> {
    let first = &lab.plans[0];
    let other = lab.plans.iter().find(|plan| plan.service != first.service);
    let other = other.map(|plan| plan.id.clone()).unwrap_or_default();
    refused_with(lab, |body| body["plan_id"] = json!(other)).await
}

async fn parameters_are_an_object(lab: &Lab) -> Result<()> {
    for wrong in [json!([]), json!("x"), json!(7)] {
        refused_with(lab, |body| body["parameters"] = wrong.clone()).await?;
    }
    Ok(())
}

async fn parameters_follow_the_schema(lab: &Lab) -> Result<()> {
    let plan = lab.plan(has_schema)?;
    let mut body = lab.provision_body(plan);
    body["parameters"] = json!({"no-schema-knows-this": {"x": []}});
    let put = lab
        .broker
        .call("PUT", &instance(&lab.fresh("schema")))
        .patient();
    put.json(&body).send().await?.is(&[400])?;
    Ok(())
}

async fn maintenance_must_agree(lab: &Lab) -> Result<()> {
    for plan in &lab.plans {
        let id = lab.fresh("maintenance");
        let mut body = lab.provision_body(plan);
        body["maintenance_info"] = json!({"version": "987.654.321"});
        let put = || lab.broker.call("PUT", &instance(&id)).patient();
        put()
            .json(&body)
            .send()
            .await?
            .refuses("MaintenanceInfoConflict")?;
        lab.delete(&id, plan).patient().send().await?.is(&[410])?;
    }
    let plan = lab.any_plan()?;
    let id = lab.fresh("maintenance");
    let mut body = lab.provision_body(plan);
    body["maintenance_info"] = json!({});
    let put = lab.broker.call("PUT", &instance(&id)).patient();
    let got = put.json(&body).send().await?.is(&[200, 201, 202])?;
    lab.succeeded(&id, &got).await?;
    lab.remove(&id, plan).await
}

async fn patience_is_required(lab: &Lab) -> Result<()> {
    let plan = lab.plan(|plan| plan.is_patient)?;
    lab.put(&lab.fresh("patience"), plan)
        .send()
        .await?
        .refuses("AsyncRequired")
}

async fn a_repeat_is_the_same(lab: &Lab) -> Result<()> {
    for plan in &lab.plans {
        let id = lab.made("repeat", plan).await?;
        let first = lab.put(&id, plan).patient().send().await?.is(&[200])?;
        let again = lab.put(&id, plan).patient().send().await?.is(&[200])?;
        ensure!(
            first.body == again.body,
            "{} became {}",
            first.body,
            again.body
        );
        lab.remove(&id, plan).await?;
    }
    Ok(())
}

async fn a_repeat_meanwhile_is_the_same_operation(lab: &Lab) -> Result<()> {
    let plan = lab.plan(|plan| plan.is_patient)?;
    let id = lab.fresh("meanwhile");
    let first = lab.put(&id, plan).patient().send().await?.is(&[201, 202])?;
    let again = lab.put(&id, plan).patient().send().await?.is(&[200, 202])?;
    if first.status == 202 && again.status == 202 {
        let (first, again) = (first.text("operation"), again.text("operation"));
        ensure!(first == again, "the operation {first} became {again}");
    }
    lab.succeeded(&id, &first).await?;
    lab.remove(&id, plan).await
}

async fn another_request_is_a_conflict(lab: &Lab) -> Result<()> {
    let plan = lab.any_plan()?;
    let id = lab.fresh("conflict");
    let changes: [fn(&mut Value); 3] = [
        |body| body["organization_guid"] = json!("another"),
        |body| body["space_guid"] = json!("another"),
        |body| body["parameters"] = json!({"another": true}),
    ];
    let got = lab.put(&id, plan).patient().send().await?.is(&[201, 202])?;
    for when in ["while it is made", "when it is made"] {
        for change in changes {
            let mut body = lab.provision_body(plan);
            change(&mut body);
            let put = lab.broker.call("PUT", &instance(&id)).patient();
            let got = put.json(&body).send().await?;
            ensure!(
                got.status == 409,
                "{when}: {} with {}",
                got.status,
                got.body
            );
        }
        lab.succeeded(&id, &got).await?;
    }
    lab.remove(&id, plan).await
}

async fn only_attributes_count(lab: &Lab) -> Result<()> {
    let plan = lab.any_plan()?;
    let id = lab.fresh("attributes");
    let mut body = lab.provision_body(plan);
    let put = || lab.broker.call("PUT", &instance(&id)).patient();
    // Plans that accept no parameters are tried without.
    body["parameters"] = json!({"n": 1, "o": {"a": 1, "b": [2]}});
    let mut got = put().json(&body).send().await?;
    let with_parameters = got.status != 400;
    if !with_parameters {
        body["parameters"] = json!({});
        got = put().json(&body).send().await?;
    }
    let got = got.is(&[201, 202])?;
    lab.succeeded(&id, &got).await?;
    let mut same = body.clone();
    if with_parameters {
        same["parameters"] = serde_json::from_str(r#"{"o": {"b": [2.0], "a": 1.0}, "n": 1.0}"#)?;
    } else {
        same.as_object_mut().map(|body| body.remove("parameters"));
    }
    same["context"]["instance_name"] = json!("renamed");
    same["x-unknown"] = json!(1);
    let call = put().header(IDENTITY_HEADER, "cloudfoundry eyJ1c2VyX2lkIjoiYW5uIn0=");
    call.json(&same).send().await?.is(&[200])?;
    lab.remove(&id, plan).await
}

async fn operations_travel_unencoded(lab: &Lab) -> Result<()> {
    for plan in &lab.plans {
        let id = lab.fresh("operation");
        let got = lab.put(&id, plan).patient().send().await?.is(&[201, 202])?;
        if let Some(operation) = got.body.get("operation") {
            let text = operation.as_str().unwrap_or_default();
            let fits = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
            let short = !text.is_empty() && text.len() <= 10_000;
            ensure!(
                short && text.chars().all(fits),
                "the operation is {operation}"
            );
        }
        lab.succeeded(&id, &got).await?;
        lab.remove(&id, plan).await?;
    }
    Ok(())
}

async fn what_is_made_can_be_read(lab: &Lab) -> Result<()> {
    for plan in &lab.plans {
        lab.get(&lab.fresh("unknown")).send().await?.is(&[404])?;
        let id = lab.made("read", plan).await?;
        let got = lab.get(&id).send().await?.is(&[200])?;
        ensure!(
            got.body["service_id"] == plan.service,
            "it says {}",
            got.body
        );
        ensure!(got.body["plan_id"] == plan.id, "it says {}", got.body);
        let hints = lab
            .get(&id)
            .query("service_id", "other")
            .query("plan_id", "other");
        hints.send().await?.is(&[200])?;
        lab.remove(&id, plan).await?;
        lab.get(&id).send().await?.is(&[404])?;
    }
    Ok(())
}
