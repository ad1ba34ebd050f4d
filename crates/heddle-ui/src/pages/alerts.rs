//! Alerts that hold, the most urgent first, each with the way to what it is about and to what it means.

use heddle_api::health::alerts::told::{AlertList, AlertState, ToldAlert};
use maud::{Markup, html};

use super::{PageLook, PageResult};
use crate::frame::RenderedPage;
use crate::parts::verdict;
use crate::words;

pub(crate) const QUESTION: &str = "/heddle/v1/alerts";

pub(crate) async fn page(look: &PageLook) -> PageResult {
    let list: AlertList = look.ask.get(QUESTION).await?;
    let firing = firing(&list);
    let body = html! {
        h1 data-fresh="30000" { "Alerts" }
        p.lead {
            @match (list.looked_at, firing) {
                (None, _) => "Nobody has looked yet; look again in a moment.",
                (Some(_), 0) => "No alert fires.",
                (Some(_), firing) => { (heddle_api::counted_that(firing as u64, "alert", "fires", "fire")) "." }
            }
        }
        @if !list.items.is_empty() { (table(&list, look)) }
        p.quiet {
            "These are the rules that " code { "heddle export alerts" } " prints for a Prometheus, evaluated here every half minute. "
            @if let Some(at) = list.looked_at { "Last looked " (words::since(at, look.now)) ". " }
            @if list.left_out > 0 { (words::number(list.left_out)) " series were too many to look at." }
        }
    };
    Ok(RenderedPage::new("alerts", "", "Alerts", body).behind("heddle alerts", QUESTION))
}

fn firing(list: &AlertList) -> usize {
    let firing = list.items.iter();
    firing
        .filter(|alert| alert.state == AlertState::Firing)
        .count()
}

/// The way to them from the first page, with how many fire.
pub(crate) fn way(list: &AlertList, look: &PageLook) -> Markup {
    let firing = firing(list);
    html! {
        a href=(look.links.page("alerts")) data-firing=(firing) {
            @match firing {
                0 => "No alert fires",
                firing => { strong { (firing) } @if firing == 1 { " alert fires" } @else { " alerts fire" } }
            }
        }
    }
}

fn table(list: &AlertList, look: &PageLook) -> Markup {
    html! {
        section.card { div.table { table {
            thead { tr { th scope="col" { "Alert" } th scope="col" { "State" } th scope="col" { "Since" } th scope="col" { "What it says" } } }
            tbody { @for alert in &list.items { (row(alert, look)) } }
        } } }
    }
}

fn row(alert: &ToldAlert, look: &PageLook) -> Markup {
    let word = match (&*alert.severity, alert.state) {
        (_, AlertState::Pending) => "unknown",
        ("critical", AlertState::Firing) => "unhealthy",
        (_, AlertState::Firing) => "degraded",
    };
    html! {
        tr data-row data-alert=(alert.name) data-state=(alert.state.name()) data-verdict=(word) {
            th scope="row" { a href=(look.links.help(&alert.name)) { (alert.name) } }
            td data-label="State" { (verdict::mark(word)) " " (alert.state.name()) ", " (alert.severity) }
            td data-label="Since" { (words::since(alert.since, look.now)) }
            td data-label="What it says" { (alert.summary) " " a href=(look.links.page(&alert.page)) { "Look there" span.unseen { ": " (alert.summary) } } }
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::routing::get;
    use serde_json::json;

    use crate::pages::fixture::looking;

    #[tokio::test]
    async fn what_fires_is_told_with_the_way_to_it_and_to_what_it_means() {
        let list = json!({"lookedAt": "2026-05-01T12:00:00Z", "items": [
            {"name": "HeddleLogRefuses", "state": "firing", "severity": "critical", "since": "2026-05-01T11:00:00Z", "value": 0.0, "summary": "events are refused <b>", "codes": ["LogFull"], "page": "checks"},
            {"name": "HeddleBacklogAge", "state": "pending", "severity": "warning", "since": "2026-05-01T11:59:00Z", "summary": "s", "codes": [], "page": "objects/trigger/team-a/orders"},
        ]});
        let answers = Router::new().route("/heddle/v1/alerts", get(async move || list.to_string()));
        let look = looking(answers, "/ui/alerts", false).await;
        let body = super::page(&look).await.unwrap().body.into_string();
        assert!(body.contains("1 alert fires."), "{body}");
        assert!(
            body.contains("/ui/help/HeddleLogRefuses") && body.contains("href=\"/ui/checks\""),
            "{body}"
        );
        assert!(
            body.contains("data-verdict=\"unhealthy\"") && body.contains("pending, warning"),
            "{body}"
        );
        assert!(!body.contains("<b>"), "{body}");
        let nobody = Router::new().route("/heddle/v1/alerts", get(async || r#"{"items": []}"#));
        let look = looking(nobody, "/ui/alerts", false).await;
        let body = super::page(&look).await.unwrap().body.into_string();
        assert!(body.contains("Nobody has looked yet"), "{body}");
    }
}
