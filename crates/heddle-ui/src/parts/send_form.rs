//! Buttons that change something: each is a form that the script sends as JSON to where `curl` would, with the rights of
//! whoever looks. Without a script they are not shown, for the session that reads pages alone may change nothing. What they
//! do stands beside them as a command.

use maud::{Markup, html};
use serde_json::Value;

/// One request that a form sends. Its fields go into the body where their `data-pointer` says.
#[derive(Clone, Debug)]
pub(crate) struct SendForm<'a> {
    pub(crate) method: &'static str,
    pub(crate) path: &'a str,
    /// The type of the body.
    pub(crate) kind: &'static str,
    pub(crate) body: &'a Value,
    /// The page that is shown when it is done; `{name}` stands for what the answer calls so.
    pub(crate) then: &'a str,
}

pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";
pub(crate) const JSON: &str = "application/json";

/// The form around some fields and a button.
pub(crate) fn draw(form: &SendForm<'_>, inside: &Markup) -> Markup {
    html! {
        form.send hidden method="post" data-scripted data-send=(form.method) data-path=(form.path) data-kind=(form.kind)
            data-body=(form.body) data-then=(form.then) {
            (inside)
            p.notice.fault role="alert" hidden {}
        }
    }
}
