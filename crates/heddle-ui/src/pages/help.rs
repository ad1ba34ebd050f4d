//! What codes mean: alerts, health codes, checks and the reasons of conditions, from their tables and without a network.

pub(crate) mod entries;
#[cfg(test)]
mod tests;

use heddle_api::checks;
use heddle_api::health::alerts::ALERTS;
use heddle_api::health::catalogue;
use heddle_api::health::{HealthPlane, HealthStatus};
use http::StatusCode;
use maud::html;

use super::{PageLook, PageResult};
use crate::frame::RenderedPage;
use crate::parts::verdict;

/// Everything that can go wrong.
pub(crate) async fn list(look: &PageLook) -> PageResult {
    let links = &look.links;
    let body = html! {
        h1 { "What can go wrong, and what helps" }
        @for plane in HealthPlane::ALL {
            section.card {
                h2 { (title(plane)) }
                ul.plain {
                    @for fault in catalogue::ALL.iter().filter(|fault| fault.plane == plane) {
                        li { (verdict::mark(fault.health.word())) " " a href=(links.help(fault.code)) { (fault.code) } " " span.quiet { (fault.meaning) } }
                    }
                }
            }
        }
        section.card {
            h2 { "Checks" }
            ul.plain {
                @for check in checks::ALL {
                    li { a href=(links.help(check.id)) { (check.id) } " " span.quiet { (check.holds) } }
                }
            }
        }
        section.card {
            h2 { "Alerts" }
            ul.plain {
                @for alert in ALERTS {
                    li { a href=(links.help(alert.name)) { (alert.name) } " " span.quiet { (alert.said()) } }
                }
            }
        }
        section.card {
            h2 { "Reasons of conditions" }
            p.quiet { "Why an object is not ready. What an object waits for is on its own page." }
            p { @for (index, reason) in entries::reason_names().iter().enumerate() { @if index > 0 { ", " } a href=(links.help(reason)) { (reason) } } }
        }
    };
    Ok(RenderedPage::new("help", "help", "Help", body))
}

fn title(plane: HealthPlane) -> &'static str {
    match plane {
        HealthPlane::Control => "Control plane: objects and the controllers that keep them",
        HealthPlane::Data => "Data plane: the path that events take",
        HealthPlane::User => "User plane: subscribers, filters, publishers",
        HealthPlane::Dependencies => "Dependencies: disk, store, clock",
    }
}

/// One code: everything that is called so.
pub(crate) async fn one(look: &PageLook, code: &str) -> PageResult {
    let links = &look.links;
    let found = entries::of(code, links);
    let is_known = !found.is_empty();
    let body = html! {
        p.quiet { a href=(links.page("help")) { "All codes" } }
        @for entry in &found { (entry) }
        @if !is_known {
            section.card.state {
                h1 { "No entry for " (code) }
                p { "No alert, check, health code or reason of a condition is called so." }
                (verdict::badge(HealthStatus::Unknown.word()))
            }
        }
    };
    let page = RenderedPage::new("help", "help", code, body);
    Ok(match is_known {
        true => page,
        false => page.with_status(StatusCode::NOT_FOUND),
    })
}
