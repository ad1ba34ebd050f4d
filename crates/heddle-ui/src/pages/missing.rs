//! What is shown where there is nothing to show: each says what to do.

use http::StatusCode;
use maud::html;

use crate::ask::AnswerFault;
use crate::frame::RenderedPage;
use crate::links::PageLinks;

/// A page that does not exist.
pub(crate) fn page(links: &PageLinks) -> RenderedPage {
    let body = html! {
        section.card.state {
            h1 { "There is no such page" }
            p { "The address may have been cut, or the page may belong to a newer version of heddle." }
            p { a href=(links.page("")) { "To the mesh" } " · " a href=(links.page("help")) { "What can go wrong, and what helps" } }
        }
    };
    RenderedPage::new("missing", "none", "No such page", body).with_status(StatusCode::NOT_FOUND)
}

/// A question that was refused, and what its answer says about it.
pub(crate) fn refused(refused: &AnswerFault, links: &PageLinks) -> RenderedPage {
    let (title, advice) = match refused.status {
        StatusCode::NOT_FOUND => (
            "It is not there",
            "It may have been removed, or never existed. Check the name.",
        ),
        StatusCode::FORBIDDEN => (
            "You may not see this",
            "Ask an administrator for a token with the role or the namespace that it needs.",
        ),
        StatusCode::UNAUTHORIZED => ("The session is over", "Log in again."),
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => (
            "Not now",
            "The server is busy or has not started whole yet. Try again in a moment.",
        ),
        StatusCode::BAD_REQUEST => ("It cannot be asked like this", "Change what was asked for."),
        _ => ("It cannot be shown", "The log of the server tells more."),
    };
    let body = html! {
        section.card.state {
            h1 { (title) }
            p { (refused.message) }
            p.quiet { (advice) }
            p.quiet { "Asked: " code { "GET " (refused.path) } ", answered " (refused.status.as_u16()) "." }
            p { a href=(links.page("")) { "To the mesh" } }
        }
    };
    RenderedPage::new("refused", "none", title, body).with_status(refused.status)
}
