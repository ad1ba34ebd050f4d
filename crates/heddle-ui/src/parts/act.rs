//! Something that can be done from a page: what is asked, what it would do, and the words for everything that may come of it.
//!
//! The script sends what the form says, fills in what the answer has, and shows the words that belong to it; all of them are
//! written here. Without a script a form is not shown, and the command beside it does the same.

use heddle_api::ledger::DeadLetterSelection;
use maud::{Markup, html};
use serde_json::Value;

use crate::links::PageLinks;

/// What is asked of the server.
#[derive(Clone, Debug)]
pub(crate) struct ActRequest {
    /// Below `/heddle/v1`, to be asked with POST.
    pub(crate) path: String,
    pub(crate) body: Value,
}

impl ActRequest {
    pub(crate) fn of(path: &str, selection: &DeadLetterSelection) -> Self {
        Self {
            path: path.to_owned(),
            body: serde_json::to_value(selection).unwrap_or_default(),
        }
    }

    /// Of something whose path says all.
    pub(crate) fn bare(path: String) -> Self {
        Self {
            path,
            body: Value::Object(serde_json::Map::new()),
        }
    }
}

/// A form that asks once: what stands in it, and the outcomes that it knows.
pub(crate) fn form(
    request: &ActRequest,
    inside: &Markup,
    outcomes: &Markup,
    links: &PageLinks,
) -> Markup {
    html! {
        form.act method="post" hidden data-act=(links.server(&request.path)) data-body=(request.body) {
            div.asking { (inside) }
            (faults(links))
        }
        (outcomes)
    }
}

/// One button that does it at once and looks at the page again. For what takes nothing from anybody.
pub(crate) fn button(request: &ActRequest, label: &str, name: &str, links: &PageLinks) -> Markup {
    html! {
        form.act.inline method="post" hidden data-act=(links.server(&request.path)) data-body=(request.body) data-then="again" {
            button type="submit" aria-label=(name) { (label) }
            (faults(links))
        }
    }
}

/// What is said when an answer has this `outcome`, or for an answer without one when it is done, or `begun`. Elements with
/// `data-slot` get the member of the answer that they name; `data-with` hides what has none.
pub(crate) fn outcome(name: &str, words: &Markup) -> Markup {
    html! {
        div.outcome hidden data-outcome=(name) role="status" tabindex="-1" { (words) }
    }
}

/// Closes a dialog, or goes to a page where there is none.
pub(crate) fn leave(label: &str, to: &str) -> Markup {
    html! { a.button href=(to) data-close { (label) } }
}

fn faults(links: &PageLinks) -> Markup {
    html! {
        p.notice role="alert" hidden data-fault {}
        p.notice role="alert" hidden data-fault-of="silence" {
            "The server did not answer. Whether it was done is not known: look at the page, then try again. Nothing that you wrote is lost."
        }
        p.notice role="alert" hidden data-fault-of="session" {
            "Your session is over, and nothing was changed. "
            a href=(links.page("login")) target="_blank" { "Log in again" } ", then try once more here."
        }
    }
}
