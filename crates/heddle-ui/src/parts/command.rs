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
            @if let Some(command) = command { (copyable(command)) }
            @if let Some(request) = request {
                a.request href=(links.server(request)) data-plain { "GET " (request) }
            }
        }
    }
}

/// The same of something that is changed.
pub(crate) fn behind_change(command: &str, path: &str, body: &str) -> Markup {
    html! {
        footer.behind aria-label="The same without this page" {
            (copyable(command))
            span.request { "POST " (path) " " (body) }
        }
    }
}

fn copyable(command: &str) -> Markup {
    html! {
        span.copyable { code { span.prompt aria-hidden="true" { "$ " } (command) } button.plain.copy type="button" hidden data-copy=(command) { "Copy" } }
    }
}

/// As a shell takes it for one word.
pub(crate) fn quoted(text: &str) -> String {
    let is_plain =
        |character: char| character.is_ascii_alphanumeric() || "-_./:@%+=,".contains(character);
    if !text.is_empty() && text.chars().all(is_plain) && !text.starts_with('-') {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_one_that_can_be_pasted() {
        assert_eq!(quoted("ord-77121"), "ord-77121");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("x'; rm -rf /"), "'x'\\''; rm -rf /'");
        assert_eq!(quoted("$(id)"), "'$(id)'");
        assert_eq!(quoted("--help"), "'--help'");
        assert_eq!(quoted(""), "''");
    }
}
