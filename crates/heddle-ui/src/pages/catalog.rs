//! The catalog: where offerings come from, and what of it could be read.

use heddle_api::ResourceKind;
use maud::{Markup, html};
use serde_json::Value;

use super::instances::{ROWS_MAX, items};
use super::{PageLook, PageResult};
use crate::frame::RenderedPage;
use crate::objects;
use crate::parts::{conditions, verdict};

/// The pages about what can be provisioned.
pub(crate) fn tabs(here: &str, look: &PageLook) -> Markup {
    html! {
        nav.tabs aria-label="Catalog" {
            @for (name, path) in [("Catalog", "catalog"), ("Instances", "instances")] {
                a href=(look.links.page(path)) aria-current=[(path == here).then_some("page")] { (name) }
            }
        }
    }
}

async fn all(look: &PageLook, kind: ResourceKind) -> Result<Vec<Value>, crate::ask::AnswerFault> {
    let path = format!("{}?limit={ROWS_MAX}", objects::of(kind).all());
    let list: Option<Value> = look.ask.find(&path).await?;
    Ok(list.as_ref().map(items).unwrap_or_default().to_vec())
}

pub(crate) async fn page(look: &PageLook) -> PageResult {
    let applications = all(look, ResourceKind::Application).await?;
    let registries = all(look, ResourceKind::Registry).await?;
    let bundles = all(look, ResourceKind::Bundle).await?;
    let services = |object: &Value| {
        object["spec"]["services"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    };
    let body = html! {
        (tabs("catalog", look))
        h1 { "Catalog" }
        section.card { h2 { "Services of applications" }
            @if applications.iter().all(|object| services(object).is_empty()) { p.quiet { "No Application offers a service yet." } } @else {
                div.table { table {
                    thead { tr { th scope="col" { "Service" } th scope="col" { "Application" } th scope="col" { "What it is" } } }
                    tbody { @for object in &applications { @for service in services(object) {
                        @let application = object["metadata"]["name"].as_str().unwrap_or_default();
                        tr data-row {
                            th scope="row" { (service["displayName"].as_str().or_else(|| service["name"].as_str()).unwrap_or_default()) }
                            td data-label="Application" { a href=(look.links.application(application, None)) { (application) } }
                            td data-label="What it is" { (service["description"].as_str().unwrap_or_default()) }
                        }
                    } } }
                } }
            }
        }
        (objects_of("Registries", "No registry is declared. One is where bundles come from.", ResourceKind::Registry, &registries, look))
        (objects_of("Bundles", "No bundle has been read from a registry.", ResourceKind::Bundle, &bundles, look))
    };
    let path = objects::of(ResourceKind::Application).all();
    Ok(RenderedPage::new("catalog", "catalog", "Catalog", body).behind("heddle catalog", &path))
}

fn objects_of(
    title: &str,
    none: &str,
    kind: ResourceKind,
    all: &[Value],
    look: &PageLook,
) -> Markup {
    html! {
        section.card { h2 { (title) }
            @if all.is_empty() { p.quiet { (none) } } @else { ul.objects {
                @for object in all {
                    @let ready = conditions::readiness(object);
                    @let word = ready.as_ref().map_or("unknown", |(word, _)| word);
                    li data-verdict=(word) {
                        details open[word == "unhealthy"] {
                            summary { (verdict::mark(word)) " " span.object { (super::object::id(kind, object)) } }
                            @if let Some(link) = look.links.object(&super::object::id(kind, object)) { p { a href=(link) { "The object itself" } } }
                            (conditions::list(&conditions::of(object), objects::of(kind).conditions, look.now))
                        }
                    }
                }
            } }
        }
    }
}
