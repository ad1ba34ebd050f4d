//! Bringing a filter into force: what would change in the manifest, who may do it, from which place it holds, and the way
//! back.

use heddle_api::filter::{Filter, text};
use heddle_api::ledger::Account;
use maud::{Markup, html};
use serde_json::{Value, json};

use super::super::event::quoted;
use super::ShownTrigger;
use super::playground::TriedFilter;
use crate::links::part;
use crate::pages::{PageLook, what_if};
use crate::parts::command;
use crate::parts::send_form::{self, SendForm};
use crate::words;

/// What is asked for, when it is not what is in force.
pub(super) fn section(
    look: &PageLook,
    trigger: &ShownTrigger,
    tried: &TriedFilter,
    filters: &[Filter],
) -> Markup {
    let former = trigger.filters();
    let wanted = text::print(filters);
    if wanted == former {
        return html! { p.quiet { "This is the filter that the trigger asks for." } };
    }
    let change = command(trigger, &wanted);
    html! {
        section.way #change {
            h2 { "What would change" }
            (difference(trigger, filters))
            p.quiet { "It takes effect at one place of the log: events that came before it stay judged by the former filter." }
            @if trigger.may_operate(look) {
                @let body = patch(trigger, filters);
                @let then = format!("{}?changed=1&was={}", trigger.page(look), part(&former));
                @let form = SendForm { method: "PATCH", path: &trigger.path, kind: send_form::MERGE_PATCH, body: &body, then: &then };
                (send_form::draw(&form, &html! { button.primary type="submit" { "Apply" } }))
                p { a #whatif href=(what_if::link(&look.links, &manifest(trigger, filters))) { "What would it do to everybody?" } }
            } @else { p.quiet { "An operator of this namespace may apply it." } }
            (command::line(&change))
            @if tried.text != wanted && !tried.text.trim().is_empty() { p.quiet { "It is kept without remarks and blank lines." } }
        }
    }
}

fn command(trigger: &ShownTrigger, filters: &str) -> String {
    format!(
        "heddle trigger filter {} {}",
        trigger.qualified(),
        quoted(filters)
    )
}

/// Against the object as it was looked at: what somebody else did meanwhile is not overwritten.
fn patch(trigger: &ShownTrigger, filters: &[Filter]) -> Value {
    json!({
        "metadata": {"resourceVersion": trigger.object["metadata"]["resourceVersion"]},
        "spec": {"filters": filters, "filter": null},
    })
}

/// The trigger as it would be applied; JSON is YAML.
fn manifest(trigger: &ShownTrigger, filters: &[Filter]) -> String {
    let mut spec = trigger.object["spec"].clone();
    if let Some(members) = spec.as_object_mut() {
        members.remove("filter");
        members.insert("filters".to_owned(), json!(filters));
    }
    let object = json!({
        "apiVersion": "eventing.knative.dev/v1",
        "kind": "Trigger",
        "metadata": {"name": trigger.name, "namespace": trigger.namespace},
        "spec": spec,
    });
    format!("{object:#}")
}

/// The lines of the manifest that go, and those that come. JSON is YAML, so each filter is a line.
fn difference(trigger: &ShownTrigger, filters: &[Filter]) -> Markup {
    let spec = &trigger.object["spec"];
    let mut before: Vec<String> = Vec::new();
    if !spec["filter"].is_null() {
        before.push(format!("  filter: {}", spec["filter"]));
    }
    let listed = spec["filters"].as_array().map_or(&[][..], Vec::as_slice);
    before.extend(lines(listed));
    let after: Vec<Value> = filters.iter().map(|filter| json!(filter)).collect();
    let after: Vec<String> = lines(&after).collect();
    let gone = before.iter().filter(|line| !after.contains(line));
    let come = after.iter().filter(|line| !before.contains(line));
    html! {
        pre.difference tabindex="0" aria-label="Difference of the manifest" {
            "  spec:\n"
            @for line in gone { del { "- " (line) } "\n" }
            @for line in come { ins { "+ " (line) } "\n" }
        }
    }
}

fn lines(filters: &[Value]) -> impl Iterator<Item = String> {
    let head = (!filters.is_empty()).then(|| "  filters:".to_owned());
    head.into_iter()
        .chain(filters.iter().map(|filter| format!("  - {filter}")))
}

/// After a change: from where on it holds, and how to take it back.
pub(super) fn changed(
    look: &PageLook,
    trigger: &ShownTrigger,
    account: Option<&Account>,
) -> Markup {
    if look.visit.text("changed").is_none() {
        return html! {};
    }
    let former = look.visit.any_text("was").unwrap_or_default();
    let generation = trigger.object["metadata"]["generation"].as_i64();
    let in_force = account.filter(|account| account.generation == generation);
    let page = trigger.page(look);
    html! {
        section #changed.card aria-labelledby="was" {
            h2 #was { "The filter was changed" }
            @match in_force.and_then(|account| account.filter_from) {
                Some(from) => p { "It holds from place " strong { (words::number(from)) } " of the log on." },
                None => p { "It comes into force; " a href=(look.links.server(&look.visit.path)) { "look again" } " for the place from which it holds." },
            }
            p { "To go back:" }
            (command::line(&command(trigger, &former)))
            p { a href=(format!("{page}?try=1&filters={}", part(&former))) { "Look at the former filter" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trigger(spec: Value) -> ShownTrigger {
        ShownTrigger {
            namespace: "team-a".to_owned(),
            name: "orders".to_owned(),
            object: json!({"metadata": {"resourceVersion": "17"}, "spec": spec}),
            path: String::new(),
        }
    }

    #[test]
    fn what_goes_and_what_comes_are_lines_of_the_manifest() {
        let filters = text::parse("exact type = a\nprefix subject = <b>").unwrap();
        let kept = trigger(json!({"filters": [{"exact": {"type": "a"}}, {"cesql": "TRUE"}]}));
        let shown = difference(&kept, &filters).into_string();
        assert!(
            shown.contains("<del>-   - {&quot;cesql&quot;:&quot;TRUE&quot;}</del>"),
            "{shown}"
        );
        assert!(
            shown.contains("&lt;b&gt;") && !shown.contains("<b>"),
            "{shown}"
        );
        assert!(
            !shown.contains("&quot;a&quot;"),
            "what stays is no difference: {shown}"
        );
        let older = trigger(json!({"filter": {"attributes": {"type": "a"}}}));
        let shown = difference(&older, &filters).into_string();
        assert!(
            shown.contains("<del>-   filter: ") && shown.contains("<ins>+   filters:"),
            "{shown}"
        );
        assert!(
            difference(&kept, &[])
                .into_string()
                .contains("<del>-   filters:")
        );
    }

    #[test]
    fn a_change_is_against_what_was_looked_at() {
        let patch = patch(&trigger(json!({})), &[]);
        assert_eq!(patch["metadata"]["resourceVersion"], "17");
        assert_eq!(patch["spec"], json!({"filters": [], "filter": null}));
    }
}
