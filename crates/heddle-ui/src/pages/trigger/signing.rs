//! Signatures on what is sent: whether there are, a first key, another one, and none. A key is in the answer to whoever has it
//! made, and stays on their screen until they leave; no page has it.

use heddle_api::ledger::Account;
use heddle_api::signing::SigningFacts;
use heddle_api::well_known::annotation;
use maud::{Markup, html};

use super::ShownTrigger;
use crate::links::part;
use crate::pages::PageLook;
use crate::parts::act::{self, ActRequest};
use crate::parts::command;

/// How long the key before signs, too: words, and as the server takes them.
const OVERLAPS: [(&str, &str); 5] = [
    ("24 hours", "24h"),
    ("1 hour", "1h"),
    ("7 days", "7d"),
    ("30 days", "30d"),
    ("not at all: it ends now", "none"),
];

/// What holds now, among the figures of a trigger.
pub(super) fn figure(account: &Account) -> Markup {
    html! {
        @if let Some(signing) = &account.signing {
            li #signed { "signed " (schemes(signing)) @if signing.keys.len() > 1 { ", and by the key before" } }
        }
    }
}

fn schemes(signing: &SigningFacts) -> String {
    let newest = signing.keys.first();
    newest.map_or_else(String::new, |key| format!("with {}", key.scheme))
}

pub(super) fn section(
    look: &PageLook,
    trigger: &ShownTrigger,
    account: Option<&Account>,
) -> Markup {
    if !trigger.may_operate(look) {
        return html! {};
    }
    let signing = account.and_then(|account| account.signing.as_ref());
    // One that asks for signatures and has no key is as one that has none yet, but for what to do about it.
    let is_wanted = trigger.object["metadata"]["annotations"][annotation::SIGNING].is_string();
    html! {
        details #signing.card {
            summary { "Signing" }
            @match signing {
                Some(signing) => { (facts(signing)) (rotate(look, trigger)) (unsign(look, trigger)) }
                None => {
                    p.quiet { "With signatures of the Standard Webhooks specification its subscriber can tell what this trigger sends from what others do. Libraries for many languages verify them. In binary form attributes are headers, which are not signed; with " code { "format: json" } " they are." }
                    (sign(look, trigger))
                    @if is_wanted { (unsign(look, trigger)) }
                }
            }
        }
    }
}

fn facts(signing: &SigningFacts) -> Markup {
    html! {
        dl.facts {
            @for key in &signing.keys {
                dt { @if key.until.is_some() { "And by the key before" } @else { "Signed with" } }
                dd {
                    (key.scheme)
                    @if let Some(public) = &key.public_key { ", which " code { (public) } " verifies" }
                    @if let Some(until) = key.until { " until " time datetime=(until) { (until.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()) } }
                }
            }
            dt { "Kept in" } dd { "Secret " code { (signing.secret) } }
        }
    }
}

/// What is asked for, one word of it.
fn request(trigger: &ShownTrigger, word: &str) -> ActRequest {
    ActRequest::bare(format!(
        "/heddle/v1/triggers/{}/{}/{word}",
        part(&trigger.namespace),
        part(&trigger.name)
    ))
}

fn command_of(trigger: &ShownTrigger, flags: &str) -> Markup {
    command::line(&format!(
        "heddle trigger sign {}{flags}",
        trigger.qualified()
    ))
}

/// The words around a key that has been made. It is shown here and never again.
fn made(look: &PageLook, trigger: &ShownTrigger) -> Markup {
    let words = html! {
        p.lead { "Give its subscriber this key. " strong { "It is shown only now." } }
        p.copyable { code data-key data-slot="key" {} }
        p.quiet { "It is kept in Secret " code data-slot="secret" {} "." span data-with="previousUntil" { " The key before signs, too, until " span data-slot="previousUntil" {} "." } }
        div.acts { a.button href=(trigger.page(look)) { "I have it" } }
    };
    act::outcome("done", &words)
}

fn sign(look: &PageLook, trigger: &ShownTrigger) -> Markup {
    let inside = html! {
        label { "With "
            select data-at="/scheme" {
                option value="v1" { "a shared secret (HMAC-SHA256, v1)" }
                option value="v1a" { "a key pair (Ed25519, v1a)" }
            }
        }
        div.acts { button.primary type="submit" { "Sign what it sends" } }
    };
    html! {
        div #sign {
            (act::form(&request(trigger, "sign"), &inside, &made(look, trigger), &look.links))
            (command_of(trigger, ""))
        }
    }
}

fn rotate(look: &PageLook, trigger: &ShownTrigger) -> Markup {
    let inside = html! {
        label { "The key before signs, too, for "
            select data-at="/overlap" {
                @for (words, value) in OVERLAPS { option value=(value) { (words) } }
            }
        }
        div.acts { button type="submit" { "Make another key" } }
    };
    html! {
        div #rotate {
            (act::form(&request(trigger, "rotate-key"), &inside, &made(look, trigger), &look.links))
            (command_of(trigger, " --rotate --overlap 24h"))
        }
    }
}

fn unsign(look: &PageLook, trigger: &ShownTrigger) -> Markup {
    let inside = html! {
        p.quiet { "A subscriber that verifies refuses what is not signed." }
        div.acts { button type="submit" { "Sign no more" } }
    };
    let done = html! {
        p.lead { "What it sends is not signed any more, and its key is removed." }
        div.acts { a.button href=(trigger.page(look)) { "Look at it" } }
    };
    html! {
        div #unsign {
            (act::form(&request(trigger, "unsign"), &inside, &act::outcome("done", &done), &look.links))
            (command_of(trigger, " --off"))
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use heddle_api::signing::{SigningKeyFacts, SigningScheme};
    use serde_json::{Value, json};

    use super::*;
    use crate::pages::fixture;

    fn trigger(annotations: &Value) -> ShownTrigger {
        ShownTrigger {
            namespace: "team-a".to_owned(),
            name: "orders".to_owned(),
            object: json!({"metadata": {"annotations": annotations}, "spec": {"broker": "default"}}),
            path: String::new(),
        }
    }

    fn account(keys: Vec<SigningKeyFacts>) -> Account {
        let signing = SigningFacts {
            secret: "team-a/orders-signing".to_owned(),
            keys,
        };
        Account {
            signing: Some(signing).filter(|signing| !signing.keys.is_empty()),
            ..Account::default()
        }
    }

    async fn drawn(annotations: Value, account: &Account) -> String {
        let look = fixture::looking(Router::new(), "/ui/triggers/team-a/orders", false).await;
        section(&look, &trigger(&annotations), Some(account)).into_string()
    }

    #[tokio::test]
    async fn what_can_be_done_depends_on_what_holds() {
        let key = SigningKeyFacts {
            scheme: SigningScheme::Ed25519,
            public_key: Some("whpk_abc".to_owned()),
            until: None,
        };
        let wanted = json!({"heddle.dev/signing": "true"});
        for (annotations, keys, expected) in [
            (json!({}), vec![], [true, false, false]),
            (wanted.clone(), vec![], [true, false, true]),
            (wanted, vec![key], [false, true, true]),
        ] {
            let shown = drawn(annotations, &account(keys)).await;
            let found = ["/orders/sign\"", "/orders/rotate-key\"", "/orders/unsign\""]
                .map(|path| shown.contains(path));
            assert_eq!(found, expected, "{shown}");
            assert_eq!(shown.contains("whpk_abc"), expected[1], "{shown}");
        }
    }

    #[test]
    fn what_signs_is_a_figure() {
        let key = |until: Option<&str>| SigningKeyFacts {
            scheme: SigningScheme::HmacSha256,
            public_key: None,
            until: until.map(|until| until.parse().unwrap()),
        };
        assert_eq!(figure(&Account::default()).into_string(), "");
        let both = account(vec![key(None), key(Some("2026-06-01T12:00:00Z"))]);
        let shown = figure(&both).into_string();
        assert!(
            shown.contains("HMAC-SHA256 (v1), and by the key before"),
            "{shown}"
        );
    }
}
