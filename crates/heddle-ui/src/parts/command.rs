//! The command and the request behind a page, to be copied.

use maud::{Markup, html};

use crate::links::PageLinks;

/// A command that does what a button does, or what no button does.
pub(crate) fn line(command: &str) -> Markup {
    html! {
        p.copyable { code { span.prompt aria-hidden="true" { "$ " } (command) } button.plain.copy type="button" hidden data-copy=(command) { "Copy" } }
    }
}

/// Both, at the bottom of a page.
pub(crate) fn behind(command: Option<&str>, request: Option<&str>, links: &PageLinks) -> Markup {
    html! {
        footer.behind aria-label="The same without this page" {
            @if let Some(command) = command {
                span.copyable { code { span.prompt aria-hidden="true" { "$ " } (command) } button.plain.copy type="button" hidden data-copy=(command) { "Copy" } }
            }
            @if let Some(request) = request {
                a.request href=(links.server(request)) data-plain { "GET " (request) }
            }
        }
    }
}
