//! Registries and the bundles that came from them: what the last reading said, what is withdrawn and who still uses it.

use heddle_api::access::Right;
use heddle_api::well_known::APPROVED_ANNOTATION;
use heddle_api::{ResourceKind, counted};
use jiff::Timestamp;
use maud::{Markup, html};
use serde_json::Value;

use super::{PageLook, PageResult, catalog};
use crate::frame::RenderedPage;
use crate::objects;
use crate::parts::schema_form::fixed;
use crate::parts::{conditions, verdict};
use crate::words;

pub(crate) async fn page(look: &PageLook) -> PageResult {
    let registries = look.objects(objects::of(ResourceKind::Registry)).await?;
    let bundles = look.objects(objects::of(ResourceKind::Bundle)).await?;
    let is_withdrawn = |bundle: &Value| bundle["status"]["mark"].is_object();
    // Only who uses something that is withdrawn is of interest.
    let instances = match bundles.iter().any(is_withdrawn) {
        true => {
            let kind = objects::of(ResourceKind::ServiceInstance);
            look.objects(kind).await?
        }
        false => Vec::new(),
    };
    let body = html! {
        (catalog::tabs("registries", look))
        h1 { "Registries" }
        @if registries.is_empty() {
            section.card.state { p { "No registry is declared." } p.quiet { "One is where bundles come from: " code { "heddle registry add" } "." } }
        }
        @for registry in &registries { (one(registry, &bundles, &instances, look)) }
    };
    let path = objects::of(ResourceKind::Registry).all();
    let page = RenderedPage::new("registries", "catalog", "Registries", body);
    Ok(page.behind("heddle get registries", &path))
}

fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// How ready an object is, and why.
fn readiness(object: &Value) -> (&'static str, String) {
    let Some((word, found)) = conditions::readiness(object) else {
        return ("unknown", "nobody has looked at it yet".to_owned());
    };
    let words = [found.reason, found.message];
    let words: Vec<String> = words.into_iter().flatten().collect();
    (word, words.join(": "))
}

fn since(time: &Value, look: &PageLook) -> Markup {
    let at = time.as_str().and_then(|at| at.parse::<Timestamp>().ok());
    html! { @match at { Some(at) => (words::since(at, look.now)), None => "never" } }
}

fn one(registry: &Value, bundles: &[Value], instances: &[Value], look: &PageLook) -> Markup {
    let (name, status) = (name_of(registry), &registry["status"]);
    let (word, why) = readiness(registry);
    let own = bundles
        .iter()
        .filter(|bundle| bundle["spec"]["registry"] == name);
    let own: Vec<&Value> = own.collect();
    let positive = |value: &Value| value.as_u64().filter(|count| *count > 0);
    html! {
        section.card data-registry=(name) data-verdict=(word) {
            h2 { (verdict::mark(word)) " " (verdict::object(&format!("registry/{name}"), &look.links)) }
            p { (why) }
            dl.facts {
                dt { "Read" } dd { (since(&status["lastReading"], look)) }
                dt { "Read without a fault" } dd { (since(&status["lastSuccess"], look)) @if let Some(failures) = positive(&status["consecutiveFailures"]) { ", " (failures) " in vain since; nothing is withdrawn meanwhile" } }
                dt { "Bundles" } dd { (own.len()) @if let Some(marked) = positive(&status["markedBundleCount"]) { ", " (marked) " of them withdrawn" } }
                @if let Some(run) = status["lastSyncRun"].as_str() { dt { "Last reading" } dd { (verdict::object(&format!("syncrun/{run}"), &look.links)) } }
            }
            @if status["suspicion"].is_object() { (suspicion(name, &status["suspicion"], look)) }
            @if !own.is_empty() { details open[word != "healthy"] { summary { (counted(own.len() as u64, "bundle")) } (table(&own, instances, look)) } }
        }
    }
}

/// What disappeared all at once is not believed until somebody says so, and sees what it is about.
fn suspicion(registry: &str, suspicion: &Value, look: &PageLook) -> Markup {
    let count = suspicion["count"].as_u64().unwrap_or_default();
    let named = suspicion["bundles"].as_array().into_iter().flatten();
    let named: Vec<&str> = named.filter_map(Value::as_str).collect();
    let more = count.saturating_sub(named.len() as u64);
    let may = look.may(Right::Administer, None);
    let annotation = APPROVED_ANNOTATION.replace('/', "~1");
    let pointer = format!("/metadata/annotations/{annotation}");
    let to = objects::of(ResourceKind::Registry).one(None, registry);
    html! {
        div.notice data-verdict="degraded" {
            p { (verdict::mark("degraded")) " " (counted(count, "bundle")) " disappeared at once. What was there stays in the catalog until somebody says that it is really gone." }
            ul.plain data-suspects { @for name in &named { li { (verdict::object(&format!("bundle/{name}"), &look.links)) } } }
            @if more > 0 { p.quiet { "And " (more) " more." } }
            @if may {
                form hidden data-change="PATCH" data-kind="application/merge-patch+json" data-to=(to) data-done="Approved: they are withdrawn at the next reading." {
                    (fixed(&pointer, suspicion["id"].as_str().unwrap_or_default()))
                    div.bar { button type="submit" { "They are gone: withdraw " (counted(count, "bundle")) } output role="status" {} }
                }
            }
            p.quiet { code { "heddle registry approve " (registry) } }
        }
    }
}

/// Users of one bundle that are named.
const USERS_MAX: usize = 20;

/// Who keeps a bundle that is withdrawn.
fn users(bundle: &Value, instances: &[Value], look: &PageLook) -> Markup {
    let service = bundle["spec"]["serviceID"].as_str().unwrap_or_default();
    let is_own = |instance: &&Value| {
        let spec = &instance["spec"];
        spec["revisionRef"].is_object() && spec["serviceID"] == service
    };
    let own: Vec<&Value> = instances.iter().filter(is_own).collect();
    html! {
        @for (index, instance) in own.iter().take(USERS_MAX).enumerate() {
            @let metadata = &instance["metadata"];
            @let namespace = metadata["namespace"].as_str().unwrap_or_default();
            @let id = instance["spec"]["instanceID"].as_str().unwrap_or_default();
            @if index > 0 { ", " }
            a href=(look.links.instance(namespace, name_of(instance))) { (namespace) "/" (id) }
        }
        @if own.len() > USERS_MAX { " and " (own.len() - USERS_MAX) " more" }
        @if own.is_empty() { "nobody" }
    }
}

fn table(bundles: &[&Value], instances: &[Value], look: &PageLook) -> Markup {
    html! {
        div.table { table {
            thead { tr { th scope="col" { "Bundle" } th scope="col" { "Repository" } th scope="col" { "Version" } th scope="col" { "In the catalog" } th scope="col" { "Why" } } }
            tbody { @for bundle in bundles {
                @let status = &bundle["status"];
                @let (word, why) = readiness(bundle);
                tr data-row data-verdict=(word) {
                    th scope="row" { (verdict::mark(word)) " " (verdict::object(&format!("bundle/{}", name_of(bundle)), &look.links)) }
                    td data-label="Repository" { (bundle["spec"]["repository"].as_str().unwrap_or_default()) }
                    td data-label="Version" { (status["bundleVersion"].as_str().unwrap_or("–")) }
                    td data-label="In the catalog" { (phase(&status["phase"])) @if status["mark"].is_object() { ", since " (since(&status["mark"]["since"], look)) "; used by " (users(bundle, instances, look)) } }
                    td data-label="Why" { (why) }
                }
            } }
        } }
    }
}

fn phase(phase: &Value) -> &'static str {
    match phase.as_str() {
        Some("Live") => "offered",
        Some("Marked") => "withdrawn, kept for who uses it",
        Some("Sweeping") => "being removed",
        _ => "not looked at yet",
    }
}
