//! One object: whether it is ready, and its conditions.

use heddle_api::ResourceKind;
use http::StatusCode;
use maud::{Markup, html};
use serde_json::Value;

use super::{PageLook, PageResult};
use crate::ask::AnswerFault;
use crate::frame::RenderedPage;
use crate::objects::{self, KindPath};
use crate::parts::{conditions, content, verdict};

/// As verdicts call an object: `trigger/team-a/orders`.
pub(crate) fn id(kind: ResourceKind, object: &Value) -> String {
    let (word, metadata) = (kind.name().to_lowercase(), &object["metadata"]);
    let name = metadata["name"].as_str().unwrap_or_default();
    match metadata["namespace"].as_str() {
        Some(namespace) => format!("{word}/{namespace}/{name}"),
        None => format!("{word}/{name}"),
    }
}

pub(crate) async fn namespaced(
    look: &PageLook,
    kind: &str,
    namespace: &str,
    name: &str,
) -> PageResult {
    any(look, known(kind)?, Some(namespace), name).await
}

pub(crate) async fn global(look: &PageLook, kind: &str, name: &str) -> PageResult {
    any(look, known(kind)?, None, name).await
}

fn known(word: &str) -> Result<&'static KindPath, AnswerFault> {
    objects::kind(word).ok_or_else(|| AnswerFault {
        status: StatusCode::NOT_FOUND,
        path: format!("/apis (kind {word:?})"),
        message: format!("there is no kind {word:?} here"),
        position: None,
    })
}

async fn any(look: &PageLook, kind: &KindPath, namespace: Option<&str>, name: &str) -> PageResult {
    let path = kind.one(namespace, name);
    let object: Value = look.ask.get(&path).await?;
    let id = id(kind.kind, &object);
    let body = html! { (head(&id, &object)) (facts(kind, &object, look)) };
    let command = kind.command(namespace, name);
    Ok(RenderedPage::new("object", "none", &id, body).behind(&command, &path))
}

pub(super) fn head(id: &str, object: &Value) -> Markup {
    let ready = conditions::readiness(object);
    let word = ready.as_ref().map_or("unknown", |(word, _)| word);
    html! {
        section #verdict.headline data-verdict=(word) {
            h1 { (verdict::mark(word)) " " (id) " " span.word { @match word { "healthy" => "is ready", "unhealthy" => "is not ready", _ => "says nothing yet" } } }
            @if let Some((_, condition)) = &ready {
                @if let Some(message) = &condition.message { p.lead { (message) } }
            }
        }
    }
}

pub(super) fn facts(kind: &KindPath, object: &Value, look: &PageLook) -> Markup {
    let all = conditions::of(object);
    html! {
        section.card { h2 { "Conditions" } (conditions::list(&all, kind.conditions, look.now)) }
        section.card {
            h2 { "What was asked for" }
            (content::json(&object["spec"], "spec"))
            @if let Some(status) = object.get("status") { (content::json(status, "status")) }
        }
    }
}
