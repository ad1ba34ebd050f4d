//! Credentials, versions, routes, headers and bodies.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::promises;
use crate::session::{CheckSession, instance};
use crate::wire::{IDENTITY_HEADER, REQUEST_HEADER, VERSION_HEADER};

promises! { "transport":
    Nothing credentials_come_first "every route asks for credentials before it looks at anything else"
        in "Platform to Service Broker Authentication",
    Nothing a_version_is_wanted "a request without a version is refused"
        in "API Version Header",
    Nothing versions_are_numbers "every 2.x from 2.13 on is understood, and nothing else"
        in "API Version Header",
    Nothing wrong_routes_are_told_apart "an unknown path is 404 and a wrong method is 405 with Allow",
    Nothing the_request_identity_is_echoed "the request identity comes back, with refusals too"
        in "Request Identity",
    Nothing identities_are_optional_and_readable "an originating identity may be absent but not unreadable"
        in "Originating Identity",
    Plan bodies_are_objects "a body that is no JSON object is refused"
        in "Service Broker Errors",
    Plan media_types_matter "another media type is refused, and none is tried"
        in "Content Type",
    Plan strangers_are_ignored "unknown members are ignored at every level"
        in "Vendor Extension Fields",
    Plan ids_are_opaque "ids are any strings"
        in "URL Properties",
    PatientPlan only_true_is_true "only accepts_incomplete=true agrees to wait"
        in "Synchronous and Asynchronous Operations",
}

const ROUTES: [(&str, &str); 10] = [
    ("GET", "/catalog"),
    ("PUT", "/service_instances/x"),
    ("GET", "/service_instances/x"),
    ("PATCH", "/service_instances/x"),
    ("DELETE", "/service_instances/x"),
    ("GET", "/service_instances/x/last_operation"),
    ("PUT", "/service_instances/x/service_bindings/y"),
    ("GET", "/service_instances/x/service_bindings/y"),
    ("DELETE", "/service_instances/x/service_bindings/y"),
    (
        "GET",
        "/service_instances/x/service_bindings/y/last_operation",
    ),
];

async fn credentials_come_first(session: &CheckSession) -> Result<()> {
    for (method, path) in ROUTES {
        // `nobody:nothing`, and no credentials at all.
        for authorization in ["Basic bm9ib2R5Om5vdGhpbmc=", "Basic !", "Nonsense x", ""] {
            let mut call = session.broker.call(method, path).version("garbage");
            call = match authorization {
                "" => call.without("Authorization"),
                text => call.header("Authorization", text),
            };
            let got = call.gets(&[401]).await?;
            ensure!(
                !got.header("www-authenticate").is_empty(),
                "{method} {path}: no WWW-Authenticate"
            );
        }
    }
    Ok(())
}

async fn a_version_is_wanted(session: &CheckSession) -> Result<()> {
    for (method, path) in ROUTES {
        let call = session
            .broker
            .call(method, path)
            .without(VERSION_HEADER)
            .json(&json!({}));
        call.gets(&[session.missing_version]).await?;
    }
    Ok(())
}

async fn versions_are_numbers(session: &CheckSession) -> Result<()> {
    for (version, status) in [
        ("1.0", 412),
        ("3.0", 412),
        ("abc", 412),
        ("2", 412),
        ("2.9", 412),
        ("2.12", 412),
        ("2.13", 200),
        ("2.14", 200),
        ("2.15", 200),
        ("2.16", 200),
        ("2.17", 200),
        ("2.99", 200),
    ] {
        let call = session.broker.call("GET", "/catalog").version(version);
        call.gets(&[status]).await?;
    }
    Ok(())
}

async fn wrong_routes_are_told_apart(session: &CheckSession) -> Result<()> {
    for path in [
        "/nothing",
        "/service_instances",
        "/service_instances/x/y",
        "/catalog/x",
    ] {
        session.broker.call("GET", path).gets(&[404]).await?;
    }
    for (method, path, allowed) in [
        ("POST", "/catalog", "GET"),
        ("POST", "/service_instances/x", "PUT"),
        ("PUT", "/service_instances/x/last_operation", "GET"),
        ("PATCH", "/service_instances/x/service_bindings/y", "PUT"),
    ] {
        let got = session
            .broker
            .call(method, path)
            .json(&json!({}))
            .gets(&[405])
            .await?;
        let allow = got.header("allow");
        ensure!(
            allow.contains(allowed),
            "{method} {path}: Allow is {allow:?}"
        );
    }
    Ok(())
}

async fn the_request_identity_is_echoed(session: &CheckSession) -> Result<()> {
    let calls = [
        session.broker.call("GET", "/catalog"),
        session
            .broker
            .call("GET", "/catalog")
            .without("Authorization"),
        session.broker.call("GET", "/nothing"),
        session.broker.call("GET", "/service_instances/never-made"),
        session
            .broker
            .call("PUT", "/service_instances/x")
            .json(&json!({})),
    ];
    for call in calls {
        let got = call.header(REQUEST_HEADER, "b3a1-77").send().await?;
        let echoed = got.header(REQUEST_HEADER);
        ensure!(
            echoed == "b3a1-77",
            "with {} it comes back as {echoed:?}",
            got.status
        );
    }
    Ok(())
}

async fn identities_are_optional_and_readable(session: &CheckSession) -> Result<()> {
    // {"user_id":"ann"} in base64.
    for (identity, status) in [
        ("cloudfoundry eyJ1c2VyX2lkIjoiYW5uIn0=", 200),
        ("cloudfoundry", 400),
        ("cloudfoundry !!!", 400),
        ("cloudfoundry bm8ganNvbg==", 400),
    ] {
        let call = session
            .broker
            .call("GET", "/catalog")
            .header(IDENTITY_HEADER, identity);
        call.gets(&[status]).await?;
    }
    Ok(())
}

async fn bodies_are_objects(session: &CheckSession) -> Result<()> {
    let id = session.fresh("body");
    for path in [
        instance(&id),
        format!("{}/service_bindings/y", instance(&id)),
    ] {
        for body in ["{", "[]", "\"x\"", "", "null", "7"] {
            let call = session.broker.call("PUT", &path).patient();
            call.text("application/json", body).gets(&[400]).await?;
        }
    }
    session.poll(&id).gets(&[404]).await?;
    Ok(())
}

async fn media_types_matter(session: &CheckSession) -> Result<()> {
    let plan = session.any_plan()?;
    let id = session.fresh("media");
    let body = session.provision_body(plan).to_string();
    let put = || session.broker.call("PUT", &instance(&id)).patient();
    put().text("text/plain", &body).gets(&[400]).await?;
    let got = put().text("", &body).gets(&[200, 201, 202]).await?;
    session.succeeded(&id, &got).await?;
    session.remove(&id, plan).await
}

async fn strangers_are_ignored(session: &CheckSession) -> Result<()> {
    let plan = session.any_plan()?;
    let id = session.fresh("strangers");
    let mut body = session.provision_body(plan);
    body["x-stranger"] = json!({"deep": [1, {"er": null}]});
    body["context"]["x-stranger"] = json!({});
    body["previous_values"] = json!({});
    let put = session.broker.call("PUT", &instance(&id)).patient();
    let got = put.json(&body).gets(&[200, 201, 202]).await?;
    session.succeeded(&id, &got).await?;
    session.remove(&id, plan).await
}

async fn ids_are_opaque(session: &CheckSession) -> Result<()> {
    let plan = session.any_plan()?;
    let long = "l".repeat(190);
    for odd in [
        "a~b.c_d-e",
        "slash/and space",
        "Ünïcode",
        "UPPER",
        long.as_str(),
    ] {
        let id = format!("{odd}{}", session.fresh("odd"));
        let got = session
            .put(&id, plan)
            .patient()
            .gets(&[200, 201, 202])
            .await?;
        session.succeeded(&id, &got).await?;
        session.remove(&id, plan).await?;
    }
    Ok(())
}

async fn only_true_is_true(session: &CheckSession) -> Result<()> {
    let plan = session.plan(|plan| plan.is_patient)?;
    let id = session.fresh("true");
    let values: [Option<&str>; 5] = [None, Some("false"), Some("TRUE"), Some("1"), Some("")];
    for value in values {
        let mut call = session.put(&id, plan);
        if let Some(value) = value {
            call = call.query("accepts_incomplete", value);
        }
        call.send().await?.refuses("AsyncRequired")?;
    }
    let got = session.poll(&id).gets(&[404]).await?;
    ensure!(
        got.body["state"] == Value::Null,
        "a refused request left an operation"
    );
    Ok(())
}
