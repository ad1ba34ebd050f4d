//! What the catalog says and to whom.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::promises;
use crate::session::CheckSession;

promises! { "catalog":
    Nothing it_is_well_formed "every offering and plan has what platforms need, within their bounds"
        in "Catalog Management",
    Nothing ids_and_names_are_unique "ids are unique over the whole catalog, names in their place"
        in "Catalog Management",
    Nothing old_platforms_see_old_fields "fields are shown only to those who announce a version that knows them"
        in "API Version Header",
    Nothing it_is_stable "asked twice it is the same bytes, and a validator saves the second answer",
    Nothing it_may_be_compressed "to a platform that takes gzip it says the same, and a cache is told of the difference",
}

/// JSON text of one schema may have so many bytes.
const SCHEMA_BYTES_MAX: usize = 64 << 10;

async fn services(session: &CheckSession, version: &str) -> Result<Vec<Value>> {
    let got = session
        .broker
        .call("GET", "/catalog")
        .version(version)
        .gets(&[200])
        .await?;
    let services = got.body["services"].as_array().cloned();
    services.context("the catalog has no services")
}

fn plans(service: &Value) -> impl Iterator<Item = &Value> {
    service["plans"].as_array().into_iter().flatten()
}

async fn it_is_well_formed(session: &CheckSession) -> Result<()> {
    for service in services(session, "2.17").await? {
        let name = &service["name"];
        for field in ["id", "name", "description"] {
            is_text(&service[field]).with_context(|| format!("{field} of offering {name}"))?;
        }
        ensure!(
            service["bindable"].is_boolean(),
            "bindable of {name} is missing"
        );
        let word = name.as_str().unwrap_or_default();
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        ensure!(
            word.chars().all(fits),
            "the name {name} is not easy to type"
        );
        for requirement in service["requires"].as_array().into_iter().flatten() {
            let known = ["syslog_drain", "route_forwarding", "volume_mount"];
            ensure!(
                known.iter().any(|word| requirement == word),
                "{name} requires {requirement}"
            );
        }
        let tags = service["tags"].as_array().into_iter().flatten();
        let length: usize = tags
            .map(|tag| tag.as_str().map_or(usize::MAX, str::len))
            .sum();
        ensure!(
            length <= 2048,
            "the tags of {name} are too long, or no text"
        );
        ensure!(plans(&service).next().is_some(), "{name} has no plan");
        for plan in plans(&service) {
            is_well_formed_plan(plan)
                .with_context(|| format!("plan {} of {name}", plan["name"]))?;
        }
    }
    Ok(())
}

fn is_text(value: &Value) -> Result<()> {
    let text = value.as_str().unwrap_or_default();
    ensure!(
        !text.is_empty() && text.len() <= 10_000,
        "{value} is no text of a fitting length"
    );
    Ok(())
}

fn is_well_formed_plan(plan: &Value) -> Result<()> {
    for field in ["id", "name", "description"] {
        is_text(&plan[field]).context(field)?;
    }
    if let Some(info) = plan.get("maintenance_info") {
        let parts = info["version"].as_str().unwrap_or_default().split('.');
        ensure!(parts.count() >= 3, "maintenance_info is {info}");
    }
    if let Some(seconds) = plan.get("maximum_polling_duration") {
        ensure!(
            seconds.as_u64().is_some(),
            "maximum_polling_duration is {seconds}"
        );
    }
    for (object, action) in [
        ("service_instance", "create"),
        ("service_instance", "update"),
        ("service_binding", "create"),
    ] {
        let schema = &plan["schemas"][object][action]["parameters"];
        if schema.is_null() {
            continue;
        }
        ensure!(
            schema["$schema"].is_string(),
            "a schema does not say which draft it follows"
        );
        let text = schema.to_string();
        ensure!(
            text.len() <= SCHEMA_BYTES_MAX,
            "a schema has {} bytes",
            text.len()
        );
        ensure!(
            !text.contains("\"$ref\":\"http"),
            "a schema refers to another place"
        );
    }
    Ok(())
}

async fn ids_and_names_are_unique(session: &CheckSession) -> Result<()> {
    let services = services(session, "2.17").await?;
    let mut ids = BTreeSet::new();
    let mut names = BTreeSet::new();
    for service in &services {
        ensure!(
            ids.insert(service["id"].to_string()),
            "the id {} is there twice",
            service["id"]
        );
        ensure!(
            names.insert(service["name"].to_string()),
            "the name {} is there twice",
            service["name"]
        );
        let mut names = BTreeSet::new();
        for plan in plans(service) {
            ensure!(
                ids.insert(plan["id"].to_string()),
                "the id {} is there twice",
                plan["id"]
            );
            ensure!(
                names.insert(plan["name"].to_string()),
                "the plan {} is there twice",
                plan["name"]
            );
        }
    }
    Ok(())
}

async fn old_platforms_see_old_fields(session: &CheckSession) -> Result<()> {
    let from_15 = [
        "plan_updateable",
        "maximum_polling_duration",
        "maintenance_info",
    ];
    for version in ["2.13", "2.14", "2.15", "2.16", "2.17"] {
        for service in services(session, version).await? {
            for plan in plans(&service) {
                let shown = |field: &str| plan.get(field).is_some();
                if matches!(version, "2.13" | "2.14") {
                    let new = from_15.iter().find(|field| shown(field));
                    ensure!(new.is_none(), "{version} is shown {new:?}");
                }
                ensure!(
                    version == "2.17" || !shown("binding_rotatable"),
                    "{version} is shown binding_rotatable"
                );
            }
        }
    }
    Ok(())
}

async fn it_is_stable(session: &CheckSession) -> Result<()> {
    let first = session.broker.call("GET", "/catalog").gets(&[200]).await?;
    let again = session.broker.call("GET", "/catalog").gets(&[200]).await?;
    ensure!(first.raw == again.raw, "two answers differ");
    let tag = first.header("etag");
    ensure!(!tag.is_empty(), "there is no ETag");
    let call = session
        .broker
        .call("GET", "/catalog")
        .header("If-None-Match", tag);
    call.gets(&[304]).await?;
    Ok(())
}

/// To compress is not asked of a broker; to do it right is.
async fn it_may_be_compressed(session: &CheckSession) -> Result<()> {
    let ask = async |accepted: &str| {
        let call = session.broker.call("GET", "/catalog");
        let call = call.header("Accept-Encoding", accepted);
        call.send().await?.is(&[200])
    };
    let (plain, gzip) = (ask("identity").await?, ask("gzip").await?);
    ensure!(
        plain.header("content-encoding").is_empty(),
        "it is compressed for a platform that refuses that"
    );
    ensure!(plain.raw == gzip.raw, "the compressed catalog is another");
    if gzip.header("content-encoding").is_empty() {
        return Ok(());
    }
    for got in [&plain, &gzip] {
        let vary = got.header("vary").to_ascii_lowercase();
        ensure!(
            vary.contains("accept-encoding") || vary == "*",
            "Vary is {vary:?}: a cache would hand out one form for the other"
        );
    }
    let (plain, gzip) = (plain.header("etag"), gzip.header("etag"));
    ensure!(
        plain.is_empty() || plain != gzip || plain.starts_with("W/"),
        "both forms have the strong tag {plain}"
    );
    Ok(())
}
