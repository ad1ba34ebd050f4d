//! A Trigger: how it is, what became of the events that it matched, what keeps them, how hard it tries, and what another
//! filter would do.

mod change;
mod pause;
pub(crate) mod playground;
mod rate;
pub(crate) mod resend;
mod sample;
mod signing;
mod silence;

use heddle_api::ResourceKind;
use heddle_api::account_terms::OUTCOMES;
use heddle_api::filter::{FilterSource, text};
use heddle_api::ledger::{Account, Accounts};
use heddle_api::trigger::TriggerSpec;
use maud::{Markup, html};
use serde::Deserialize as _;
use serde_json::Value;

use super::object::{facts, head, id};
use super::{PageLook, PageResult};
use crate::ask::AnswerFault;
use crate::draw::schedule;
use crate::frame::RenderedPage;
use crate::links::part;
use crate::objects;
use crate::parts::verdict;
use crate::words;

/// What is known of a Trigger, from the resource API.
#[derive(Clone, Debug)]
pub(super) struct ShownTrigger {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) object: Value,
    /// Where the resource API has it.
    pub(super) path: String,
}

impl ShownTrigger {
    pub(super) async fn ask(
        look: &PageLook,
        namespace: &str,
        name: &str,
    ) -> Result<Self, AnswerFault> {
        let path = objects::of(ResourceKind::Trigger).one(Some(namespace), name);
        Ok(Self {
            object: look.ask.get(&path).await?,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            path,
        })
    }

    /// `NAMESPACE/NAME`, as commands take it.
    fn qualified(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// Its events come from here.
    fn entry(&self) -> String {
        let broker = self.object["spec"]["broker"].as_str();
        let broker = broker.unwrap_or(heddle_api::broker::DEFAULT_NAME);
        format!("broker/{}/{broker}", self.namespace)
    }

    /// What it asks for, as text.
    fn filters(&self) -> String {
        let spec = TriggerSpec::deserialize(&self.object["spec"]).unwrap_or_default();
        text::print(&FilterSource::from(&spec).filters())
    }

    fn page(&self, look: &PageLook) -> String {
        look.links.trigger(&self.namespace, &self.name)
    }

    fn may_operate(&self, look: &PageLook) -> bool {
        look.visit.may_operate(Some(&self.entry()))
    }
}

pub(crate) async fn page(look: &PageLook, namespace: &str, name: &str) -> PageResult {
    let trigger = ShownTrigger::ask(look, namespace, name).await?;
    let kind = objects::of(ResourceKind::Trigger);
    let id = id(kind.kind, &trigger.object);
    let path = format!("/heddle/v1/accounts?consumer={}", part(&id));
    let accounts: Accounts = look.ask.get(&path).await?;
    let account = accounts.consumers.first();
    let played = playground::section(look, &trigger).await;
    let silence = silence::section(look, &trigger).await;
    let resend = resend::section(look, &trigger).await?;
    let body = html! {
        (head(&id, &trigger.object))
        (figures(account, &id, look))
        p { a href=(look.links.delays("type", &format!("consumer:\"{id}\""))) { "How long its events took" } }
        @if trigger.may_operate(look) { p { a href=(look.links.page(&format!("publish?to={}", part(&trigger.entry())))) { "Send a test event to its broker" } } }
        (change::changed(look, &trigger, account))
        (pause::section(look, &trigger, account))
        (rate::section(look, &trigger, account))
        (signing::section(look, &trigger, account))
        (played)
        (silence)
        (resend)
        @if let Some(account) = account { (numbers(account, look)) }
        (facts(kind, &trigger.object, look))
    };
    // What its filter would match has a command of its own, where it is tried.
    let command = kind.command(Some(namespace), name);
    Ok(RenderedPage::new("trigger", "none", &id, body).behind(&command, &trigger.path))
}

fn figures(account: Option<&Account>, id: &str, look: &PageLook) -> Markup {
    let links = &look.links;
    html! {
        ul.figures {
            li { span data-number=(id) data-of="trigger" { "–" } }
            @if let Some(account) = account {
                li { "to " @match &account.destination { Some(destination) => code { (destination) }, None => "nowhere: the subscriber has no address" } }
                li { strong { (waiting(account, look)) } " wait" @if let Some(at) = account.oldest_pending_at { ", the oldest came " (words::since(at, look.now)) } }
                li { strong { (account.in_flight) } " under way" }
                (rate::figure(account))
                (signing::figure(account))
                @for forecast in &account.forecasts { li data-forecast=(forecast.in_s) { (words::capital(&forecast.in_words())) } }
                @if account.dead_letters > 0 {
                    li { a href=(links.page(&format!("dead-letters?consumer={}", part(id)))) { strong { (words::number(account.dead_letters)) } " dead letters" } }
                }
            }
        }
        @if let Some(held) = account.and_then(|account| account.held.as_deref()) {
            p.notice #held { (verdict::mark("degraded")) " Nothing is sent: " (held) }
        }
        @if let Some(over) = account.and_then(|account| account.over_quota.as_deref()) { p.notice { (over) } }
    }
}

/// How many wait, and behind it which.
fn waiting(account: &Account, look: &PageLook) -> Markup {
    let pending = OUTCOMES.iter().find(|term| term.name == "pending");
    let query = pending.and_then(|term| term.query(&account.consumer));
    let count = account.pending;
    html! {
        @match query.filter(|_| count > 0) {
            Some(query) => a href=(look.links.counted_events(&query, count)) { (words::number(count)) },
            None => (words::number(count)),
        }
    }
}

/// What became of its events, and how hard it tries.
fn numbers(account: &Account, look: &PageLook) -> Markup {
    html! {
        section.card { h2 { "Account" } (super::mesh::consumers(std::slice::from_ref(account), look)) }
        section.card aria-labelledby="attempts" {
            h2 #attempts { "Attempts" }
            p { (account.schedule) }
            div.picture { (schedule::draw(&account.pauses_s, &account.schedule)) }
            @if let Some(from) = account.filter_from {
                p.quiet { "Its filter decides about events from place " (words::number(from)) " of the log on." }
            }
        }
    }
}
