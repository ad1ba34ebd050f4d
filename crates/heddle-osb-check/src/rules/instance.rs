//! Making instances and looking at them.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::promises;
use crate::session::{CheckSession, has_schema, instance};
use crate::wire::IDENTITY_HEADER;

promises! { "provision":
    Plan required_members_are_required "service, plan, organisation and space must be there and not be empty"
        in "Provisioning",
    Plan the_catalog_decides "an unknown service or plan is refused"
        in "Provisioning",
    TwoOfferings plans_belong_to_offerings "a plan of another offering is refused"
        in "Provisioning",
    Plan parameters_are_an_object "parameters that are no object are refused"
        in "Provisioning",
    PlanWithSchema parameters_follow_the_schema "parameters that break the schema are refused with the place"
        in "Catalog Management",
    Plan maintenance_must_agree "a maintenance version that the catalog does not have is a conflict"
        in "Provisioning",
    PatientPlan patience_is_required "an asynchronous plan refuses platforms that do not ask again"
        in "Synchronous and Asynchronous Operations",
    Plan a_repeat_is_the_same "the same request again answers 200 with the same body"
        in "Provisioning",
    PatientPlan a_repeat_meanwhile_is_the_same_operation "the same request meanwhile answers with the same operation"
        in "Provisioning",
    Plan another_request_is_a_conflict "the same id with other attributes is a conflict"
        in "Provisioning",
    Plan only_attributes_count "key order, number form, context and identity are no difference"
        in "Provisioning",
    Plan operations_travel_unencoded "an operation is a short string of unreserved characters"
        in "Provisioning",
    Plan what_is_made_can_be_read "an instance can be read once it is made, and not before"
        in "Fetching a Service Instance",
}

async fn required_members_are_required(session: &CheckSession) -> Result<()> {
    let plan = session.any_plan()?;
    let id = session.fresh("required");
    for field in ["service_id", "plan_id", "organization_guid", "space_guid"] {
        for wrong in [None, Some(Value::Null), Some(json!("")), Some(json!(7))] {
            let mut body = session.provision_body(plan);
            let members = body.as_object_mut().expect("a body is an object");
            match &wrong {
                None => members.remove(field),
                Some(value) => members.insert(field.to_owned(), value.clone()),
            };
            let put = session.broker.call("PUT", &instance(&id)).patient();
            put.json(&body).gets(&[400]).await?;
        }
    }
    session.poll(&id).gets(&[404]).await?;
    Ok(())
}

async fn refused_with(session: &CheckSession, change: impl Fn(&mut Value)) -> Result<()> {
    let id = session.fresh("refused");
    let mut body = session.provision_body(session.any_plan()?);
    change(&mut body);
    let put = session.broker.call("PUT", &instance(&id)).patient();
    put.json(&body).gets(&[400]).await?;
    session.poll(&id).gets(&[404]).await?;
    Ok(())
}

async fn the_catalog_decides(session: &CheckSession) -> Result<()> {
    refused_with(session, |body| {
        body["service_id"] = json!("no-such-service")
    })
    .await?;
    refused_with(session, |body| body["plan_id"] = json!("no-such-plan")).await
}

async fn plans_belong_to_offerings(session: &CheckSession) -> Result<()> {
    let first = &session.plans[0];
    let other = session
        .plans
        .iter()
        .find(|plan| plan.service != first.service);
    let other = other.map(|plan| plan.id.clone()).unwrap_or_default();
    refused_with(session, |body| body["plan_id"] = json!(other)).await
}

async fn parameters_are_an_object(session: &CheckSession) -> Result<()> {
    for wrong in [json!([]), json!("x"), json!(7)] {
        refused_with(session, |body| body["parameters"] = wrong.clone()).await?;
    }
    Ok(())
}

async fn parameters_follow_the_schema(session: &CheckSession) -> Result<()> {
    let plan = session.plan(has_schema)?;
    let mut body = session.provision_body(plan);
    body["parameters"] = json!({"no-schema-knows-this": {"x": []}});
    let put = session
        .broker
        .call("PUT", &instance(&session.fresh("schema")))
        .patient();
    put.json(&body).gets(&[400]).await?;
    Ok(())
}

async fn maintenance_must_agree(session: &CheckSession) -> Result<()> {
    for plan in &session.plans {
        let id = session.fresh("maintenance");
        let mut body = session.provision_body(plan);
        body["maintenance_info"] = json!({"version": "987.654.321"});
        let put = || session.broker.call("PUT", &instance(&id)).patient();
        put()
            .json(&body)
            .send()
            .await?
            .refuses("MaintenanceInfoConflict")?;
        session.delete(&id, plan).patient().gets(&[410]).await?;
    }
    let plan = session.any_plan()?;
    let id = session.fresh("maintenance");
    let mut body = session.provision_body(plan);
    body["maintenance_info"] = json!({});
    let put = session.broker.call("PUT", &instance(&id)).patient();
    let got = put.json(&body).gets(&[200, 201, 202]).await?;
    session.succeeded(&id, &got).await?;
    session.remove(&id, plan).await
}

async fn patience_is_required(session: &CheckSession) -> Result<()> {
    let plan = session.plan(|plan| plan.is_patient)?;
    session
        .put(&session.fresh("patience"), plan)
        .send()
        .await?
        .refuses("AsyncRequired")
}

async fn a_repeat_is_the_same(session: &CheckSession) -> Result<()> {
    for plan in &session.plans {
        let id = session.made("repeat", plan).await?;
        let first = session.put(&id, plan).patient().gets(&[200]).await?;
        let again = session.put(&id, plan).patient().gets(&[200]).await?;
        ensure!(
            first.body == again.body,
            "{} became {}",
            first.body,
            again.body
        );
        session.remove(&id, plan).await?;
    }
    Ok(())
}

async fn a_repeat_meanwhile_is_the_same_operation(session: &CheckSession) -> Result<()> {
    let plan = session.plan(|plan| plan.is_patient)?;
    let id = session.fresh("meanwhile");
    let first = session.put(&id, plan).patient().gets(&[201, 202]).await?;
    let again = session.put(&id, plan).patient().gets(&[200, 202]).await?;
    again.is_operation_of(&first)?;
    session.succeeded(&id, &first).await?;
    session.remove(&id, plan).await
}

async fn another_request_is_a_conflict(session: &CheckSession) -> Result<()> {
    let plan = session.any_plan()?;
    let id = session.fresh("conflict");
    let changes: [fn(&mut Value); 3] = [
        |body| body["organization_guid"] = json!("another"),
        |body| body["space_guid"] = json!("another"),
        |body| body["parameters"] = json!({"another": true}),
    ];
    let got = session.put(&id, plan).patient().gets(&[201, 202]).await?;
    for when in ["while it is made", "when it is made"] {
        for change in changes {
            let mut body = session.provision_body(plan);
            change(&mut body);
            let put = session.broker.call("PUT", &instance(&id)).patient();
            let got = put.json(&body).send().await?;
            ensure!(
                got.status == 409,
                "{when}: {} with {}",
                got.status,
                got.body
            );
        }
        session.succeeded(&id, &got).await?;
    }
    session.remove(&id, plan).await
}

async fn only_attributes_count(session: &CheckSession) -> Result<()> {
    let plan = session.any_plan()?;
    let id = session.fresh("attributes");
    let mut body = session.provision_body(plan);
    let put = || session.broker.call("PUT", &instance(&id)).patient();
    // Plans that accept no parameters are tried without.
    body["parameters"] = json!({"n": 1, "o": {"a": 1, "b": [2]}});
    let mut got = put().json(&body).send().await?;
    let with_parameters = got.status != 400;
    if !with_parameters {
        body["parameters"] = json!({});
        got = put().json(&body).send().await?;
    }
    let got = got.is(&[201, 202])?;
    session.succeeded(&id, &got).await?;
    let mut same = body.clone();
    if with_parameters {
        same["parameters"] = serde_json::from_str(r#"{"o": {"b": [2.0], "a": 1.0}, "n": 1.0}"#)?;
    } else {
        same.as_object_mut().map(|body| body.remove("parameters"));
    }
    same["context"]["instance_name"] = json!("renamed");
    same["x-unknown"] = json!(1);
    let call = put().header(IDENTITY_HEADER, "cloudfoundry eyJ1c2VyX2lkIjoiYW5uIn0=");
    call.json(&same).gets(&[200]).await?;
    session.remove(&id, plan).await
}

async fn operations_travel_unencoded(session: &CheckSession) -> Result<()> {
    for plan in &session.plans {
        let id = session.fresh("operation");
        let got = session.put(&id, plan).patient().gets(&[201, 202]).await?;
        if let Some(operation) = got.body.get("operation") {
            let text = operation.as_str().unwrap_or_default();
            let fits = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
            let short = !text.is_empty() && text.len() <= 10_000;
            ensure!(
                short && text.chars().all(fits),
                "the operation is {operation}"
            );
        }
        session.succeeded(&id, &got).await?;
        session.remove(&id, plan).await?;
    }
    Ok(())
}

async fn what_is_made_can_be_read(session: &CheckSession) -> Result<()> {
    for plan in &session.plans {
        session.get(&session.fresh("unknown")).gets(&[404]).await?;
        let id = session.made("read", plan).await?;
        let got = session.get(&id).gets(&[200]).await?;
        ensure!(
            got.body["service_id"] == plan.service,
            "it says {}",
            got.body
        );
        ensure!(got.body["plan_id"] == plan.id, "it says {}", got.body);
        let hints = session
            .get(&id)
            .query("service_id", "other")
            .query("plan_id", "other");
        hints.gets(&[200]).await?;
        session.remove(&id, plan).await?;
        session.get(&id).gets(&[404]).await?;
    }
    Ok(())
}
