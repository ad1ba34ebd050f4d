//! What an instance waits for, who must act, and until when: what `heddle explain instance` says.

use heddle_api::operation::OperationState;
use heddle_api::service_instance::waits::{self, InstanceWait};
use heddle_api::{EventFlow, ServiceInstance, span};
use maud::{Markup, html};
use serde::Deserialize as _;
use serde_json::Value;

use crate::pages::PageLook;
use crate::parts::verdict;
use crate::words;

/// Nothing where nothing is waited for.
pub(super) fn of(instance: &Value, flow: Option<&Value>, look: &PageLook) -> Markup {
    let Ok(instance) = ServiceInstance::deserialize(instance) else {
        return html! {};
    };
    let flow = flow.and_then(|flow| EventFlow::deserialize(flow).ok());
    let waits = waits::waits(&instance, flow.as_ref());
    let Some(who) = waits::who_acts(&waits) else {
        return html! {};
    };
    let fails_at = waits::fails_at(&instance).filter(|_| is_running(&instance));
    html! {
        section.card #waits aria-label="What it waits for" {
            h2 { "What it waits for" }
            ul.plain { @for wait in &waits { li { (one(wait, look)) } } }
            p { strong { (words::capital(&who)) "." } }
            @if let Some(at) = fails_at { p { "Unless it does, the platform is told that it failed at " (words::time(at)) "." } }
        }
    }
}

fn one(wait: &InstanceWait, look: &PageLook) -> Markup {
    let links = &look.links;
    let seconds = |since: jiff::Timestamp| u64::try_from(look.now.as_second() - since.as_second());
    let since = wait.since.and_then(|since| seconds(since).ok());
    html! {
        strong { (wait.condition) " of " (wait.object) }
        @if let Some(seconds) = since { " for " (span(std::time::Duration::from_secs(seconds))) }
        p { a href=(links.help(&wait.reason)) { (wait.reason) } ": " (wait.said()) }
        @if let Some(culprit) = &wait.culprit { p { "What must change: " (verdict::object(culprit, links)) } }
    }
}

/// Whether the platform is still told that it goes on.
fn is_running(instance: &ServiceInstance) -> bool {
    let request = instance.spec.operation.as_ref();
    let status = instance.status.as_ref();
    let progress = status.and_then(|status| status.operation.as_ref());
    let own = progress.filter(|found| request.is_some_and(|request| request.id == found.id));
    !own.is_some_and(|found| {
        matches!(
            found.state,
            OperationState::Succeeded | OperationState::Failed
        )
    })
}

/// Whom a platform asked for, as it says: a name where it has one.
pub(super) fn on_behalf(identity: &Value) -> Option<String> {
    let platform = identity["platform"].as_str()?;
    let value = &identity["value"];
    let names = ["username", "user_name", "user_id", "uid"];
    let user = names.iter().find_map(|name| value[*name].as_str());
    Some(match user {
        Some(user) => format!("{user} of {platform}"),
        None => format!("somebody of {platform}"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whoever_a_platform_asked_for_is_named_as_it_names_them() {
        for (identity, said) in [
            (
                json!({"platform": "kubernetes", "value": {"username": "ada"}}),
                Some("ada of kubernetes"),
            ),
            (
                json!({"platform": "cloudfoundry", "value": {"user_id": "683"}}),
                Some("683 of cloudfoundry"),
            ),
            (
                json!({"platform": "other", "value": {"x": 1}}),
                Some("somebody of other"),
            ),
            (json!(null), None),
        ] {
            assert_eq!(on_behalf(&identity).as_deref(), said, "{identity}");
        }
    }
}
