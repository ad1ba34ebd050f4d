//! What codes mean: health codes from their catalogue and checks from their table, without a network.

use heddle_api::checks;
use heddle_api::health::catalogue;
use heddle_api::health::{HealthPlane, HealthStatus};
use http::StatusCode;
use maud::{Markup, html};

use super::{PageLook, PageResult};
use crate::frame::RenderedPage;
use crate::parts::verdict;
use crate::words::capital;

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

/// One code.
pub(crate) async fn one(look: &PageLook, code: &str) -> PageResult {
    let links = &look.links;
    let back = html! { p.quiet { a href=(links.page("help")) { "All codes" } } };
    if let Some(fault) = catalogue::find(code) {
        let body = html! {
            (back)
            section.card data-code=(fault.code) {
                h1 { (verdict::mark(fault.health.word())) " " (fault.code) }
                p.lead { (fault.meaning) }
                dl.facts {
                    @for (label, text) in fault.facts() { dt { (capital(label)) } dd { (text) } }
                }
                @if !fault.diagnosis.is_empty() {
                    h2 { "To see more" }
                    (commands(fault.diagnosis))
                }
            }
        };
        return Ok(RenderedPage::new("help", "help", fault.code, body));
    }
    if let Some(check) = checks::find(code) {
        let body = html! {
            (back)
            section.card data-code=(check.id) {
                h1 { (check.id) " " span.quiet { (check.category.word()) } }
                p.lead { (check.holds) }
                p { "When it does not hold: " (check.otherwise) }
                (commands(&["heddle doctor"]))
            }
        };
        return Ok(RenderedPage::new("help", "help", check.id, body));
    }
    let body = html! {
        (back)
        section.card.state {
            h1 { "No entry for " (code) }
            p { "It is the reason that a condition gives. The object that has the condition says what it means, and what would change it." }
            (verdict::badge(HealthStatus::Unknown.word()))
        }
    };
    Ok(RenderedPage::new("help", "help", code, body).with_status(StatusCode::NOT_FOUND))
}

fn commands(commands: &[&str]) -> Markup {
    html! {
        ul.plain {
            @for command in commands {
                li { span.copyable { code { span.prompt aria-hidden="true" { "$ " } (command) } button.plain.copy type="button" hidden data-copy=(command) { "Copy" } } }
            }
        }
    }
}
