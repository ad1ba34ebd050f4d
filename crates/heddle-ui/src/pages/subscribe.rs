//! A new subscriber in three steps: what it wants, where it is, how events are sent to it. They end in a manifest, and in a
//! button for whoever may apply it.
//!
//! A subscriber is tried by the script alone: a request that makes this server connect to somewhere is not one that a link
//! could make a browser send.

use heddle_api::ResourceKind;
use heddle_api::access::Scope;
use heddle_api::duck::DeliverySpec;
use heddle_api::filter::text;
use heddle_api::ledger::{ExplainRequest, Explanation};
use heddle_api::subscriber_trial::{SubscriberTrial, SubscriberTrialRequest};
use heddle_api::types::SeenTypes;
use heddle_api::well_known::annotation;
use maud::{Markup, html};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::trigger::playground;
use super::{PageLook, PageResult};
use crate::ask::AnswerFault;
use crate::draw::schedule;
use crate::frame::RenderedPage;
use crate::links::part;
use crate::objects;
use crate::parts::send_form::{self, SendForm};
use crate::parts::{command, manifest, verdict};
use crate::words;

/// Types that are offered.
const TYPES_MAX: usize = 20;
/// Brokers that are offered.
const BROKERS_MAX: usize = 500;

/// What somebody filled in.
#[derive(Clone, Debug, Default)]
struct WantedSubscriber {
    /// `NAMESPACE/NAME`.
    broker: String,
    name: String,
    filters: String,
    url: String,
    origin: String,
    retry: String,
    backoff: String,
    delay: String,
    order: String,
}

impl WantedSubscriber {
    fn of(look: &PageLook) -> Self {
        let text = |key| look.visit.text(key).unwrap_or_default().trim().to_owned();
        Self {
            broker: text("broker"),
            name: text("name"),
            filters: text("filters").replace('\r', ""),
            url: text("url"),
            origin: text("origin"),
            retry: text("retry"),
            backoff: text("backoff"),
            delay: text("delay"),
            order: text("order"),
        }
    }

    fn namespace(&self) -> &str {
        self.broker.split('/').next().unwrap_or_default()
    }

    fn delivery(&self) -> Result<DeliverySpec, String> {
        let mut spec = Map::new();
        if !self.retry.is_empty() {
            let retry: u32 = self
                .retry
                .parse()
                .map_err(|_| format!("{:?} is no number of further attempts", self.retry))?;
            spec.insert("retry".to_owned(), json!(retry));
        }
        for (name, value) in [
            ("backoffPolicy", &self.backoff),
            ("backoffDelay", &self.delay),
        ] {
            if !value.is_empty() {
                spec.insert(name.to_owned(), json!(value));
            }
        }
        DeliverySpec::deserialize(Value::Object(spec)).map_err(|error| error.to_string())
    }

    /// The Trigger that was described.
    fn trigger(&self, filters: &[heddle_api::filter::Filter], delivery: &DeliverySpec) -> Value {
        let broker = self.broker.split_once('/').map_or("", |(_, name)| name);
        let mut annotations = Map::new();
        if self.order == "ordered" {
            annotations.insert(annotation::DELIVERY_ORDER.to_owned(), json!("ordered"));
        }
        if !self.origin.is_empty() {
            annotations.insert(annotation::WEBHOOK_ORIGIN.to_owned(), json!(self.origin));
        }
        let mut metadata = json!({"name": self.name, "namespace": self.namespace()});
        if !annotations.is_empty() {
            metadata["annotations"] = Value::Object(annotations);
        }
        let mut spec = json!({"broker": broker, "subscriber": {"uri": self.url}});
        if !filters.is_empty() {
            spec["filters"] = json!(filters);
        }
        if *delivery != DeliverySpec::default() {
            spec["delivery"] = json!(delivery);
        }
        json!({"apiVersion": "eventing.knative.dev/v1", "kind": "Trigger", "metadata": metadata, "spec": spec})
    }
}

pub(crate) async fn page(look: &PageLook) -> PageResult {
    let mut wanted = WantedSubscriber::of(look);
    let brokers = brokers(look).await?;
    if wanted.broker.is_empty() {
        wanted.broker = brokers.first().cloned().unwrap_or_default();
    }
    let namespace = wanted.namespace();
    let types = format!("/heddle/v1/types?last=2000&namespace={}", part(namespace));
    let command = match namespace {
        "" => "heddle types --last 2000".to_owned(),
        namespace => format!("heddle types --last 2000 -n {}", command::quoted(namespace)),
    };
    let seen: SeenTypes = look.ask.get(&types).await?;
    let result = match look.visit.text("url") {
        Some(_) => answer(look, false).await,
        None => {
            html! { section #trial.card.state { p.quiet { "Its manifest is shown here, once it is known what goes where." } } }
        }
    };
    let body = html! {
        h1 { "New subscriber" }
        @if brokers.is_empty() {
            section.card.state { p { "There is no broker here that you may put a trigger on. A namespace gets one with its first provisioned service, or by " code { "heddle apply" } " of a Broker." } }
        } @else { (steps(look, &wanted, &brokers, &seen)) (result) }
    };
    Ok(RenderedPage::new("subscribe", "none", "New subscriber", body).behind(&command, &types))
}

/// Brokers in namespaces in which whoever looks may make a Trigger, or could see one.
async fn brokers(look: &PageLook) -> Result<Vec<String>, AnswerFault> {
    let kind = objects::of(ResourceKind::Broker);
    let scope = look.visit.access().map(|access| access.scope.clone());
    let paths = match scope {
        Some(Scope::Namespaces(namespaces)) => namespaces
            .iter()
            .map(|namespace| kind.within(namespace))
            .collect(),
        _ => vec![kind.all()],
    };
    let mut names = Vec::new();
    for path in paths {
        let list: Value = look.ask.get(&path).await?;
        let items = list["items"].as_array().into_iter().flatten();
        names.extend(items.filter_map(|broker| {
            let metadata = &broker["metadata"];
            Some(format!(
                "{}/{}",
                metadata["namespace"].as_str()?,
                metadata["name"].as_str()?
            ))
        }));
        if names.len() > BROKERS_MAX {
            break;
        }
    }
    names.sort();
    names.truncate(BROKERS_MAX);
    Ok(names)
}

fn steps(
    look: &PageLook,
    wanted: &WantedSubscriber,
    brokers: &[String],
    seen: &SeenTypes,
) -> Markup {
    let (page, piece) = (
        look.links.page("subscribe"),
        look.links.page("subscribe/try"),
    );
    let chosen = |value: &str, now: &str| value == now;
    html! {
        form #subscriber method="get" action=(page) data-try=(piece) data-into="trial" data-on="submit" {
            section.card.step aria-labelledby="what" {
                h2 #what { "1 · What" }
                label { "Broker" select name="broker" { @for broker in brokers { option value=(broker) selected[chosen(broker, &wanted.broker)] { (broker) } } } }
                label { "Events, one filter on a line; nothing means all" textarea #filters name="filters" rows="3" spellcheck="false" placeholder="exact type = order.created" { "\n" (wanted.filters) } }
                @if !seen.items.is_empty() { (offered(look, wanted, seen)) }
            }
            section.card.step aria-labelledby="where" {
                h2 #where { "2 · Where" }
                label { "Name of the trigger" input name="name" value=(wanted.name) required maxlength="253" pattern="[a-z0-9]([a-z0-9.\\-]*[a-z0-9])?" autocomplete="off" spellcheck="false" placeholder="orders"; }
                label { "URL of the subscriber" input name="url" type="url" value=(wanted.url) required maxlength="2048" autocomplete="off" spellcheck="false" placeholder="http://orders.team-a.svc/"; }
                label { "Ask for its consent in the name of (empty: it is not asked)" input name="origin" value=(wanted.origin) maxlength="253" autocomplete="off" spellcheck="false" placeholder="events.example.com"; }
            }
            section.card.step aria-labelledby="how" {
                h2 #how { "3 · How" }
                label { "Further attempts when one fails" input name="retry" value=(wanted.retry) inputmode="numeric" pattern="[0-9]*" maxlength="6" placeholder="as the broker says, or 10"; }
                label { "Pauses" select name="backoff" { @for (value, words) in [("", "as the broker says"), ("exponential", "each twice the one before"), ("linear", "each longer by the first")] { option value=(value) selected[chosen(value, &wanted.backoff)] { (words) } } } }
                label { "First pause" input name="delay" value=(wanted.delay) maxlength="40" placeholder="PT0.2S"; }
                label { "Order" select name="order" { @for (value, words) in [("", "as fast as it can"), ("ordered", "one after the other, by partition key")] { option value=(value) selected[chosen(value, &wanted.order)] { (words) } } } }
                button.primary type="submit" { "Try it" }
            }
        }
    }
}

/// Types that were seen, as filters.
fn offered(look: &PageLook, wanted: &WantedSubscriber, seen: &SeenTypes) -> Markup {
    let offers = seen.items.iter().take(TYPES_MAX);
    let offers = offers.filter_map(|seen| {
        Some((
            seen,
            text::by_example(&wanted.filters, "type", &seen.type_)?,
        ))
    });
    html! {
        p.quiet { "Seen here; click one to ask for it:" }
        ul.plain { @for (seen, filters) in offers {
            li { a href=(look.links.page(&format!("subscribe?broker={}&filters={}", part(&wanted.broker), part(&filters)))) data-filters=(filters) { (seen.type_) }
                " " span.quiet { "from " (seen.source) ", " (words::number(seen.count)) " seen" } }
        } }
    }
}

/// What came of it: whether the subscriber is there, how it is sent events, and the manifest.
pub(crate) async fn answer(look: &PageLook, tries: bool) -> Markup {
    let wanted = WantedSubscriber::of(look);
    let filters = match text::parse(&wanted.filters) {
        Ok(filters) => filters,
        Err(fault) => {
            return html! { section #trial.card.state data-settled { (playground::misread(&wanted.filters, &fault)) } };
        }
    };
    let delivery = match wanted.delivery() {
        Ok(delivery) => delivery,
        Err(fault) => {
            return html! { section #trial.card.state data-settled { p.notice role="alert" { (fault) } } };
        }
    };
    let matched = matched(look, &wanted, &filters).await;
    let trial = match tries {
        true => Some(try_it(look, &wanted, &delivery).await),
        false => None,
    };
    let trigger = wanted.trigger(&filters, &delivery);
    html! {
        section #trial.card data-settled {
            h2 { "What comes of it" }
            @match matched {
                Ok(found) => p { "It would have been sent " strong { (words::number(found.matched)) } " of the newest " (heddle_api::counted(found.examined, "event")) " that reached " code { "broker/" (wanted.broker) } "." },
                Err(fault) => p.notice { (fault.message) },
            }
            @match &trial {
                Some(Ok(trial)) => (tried(trial)),
                Some(Err(fault)) => p.notice role="alert" { (fault.message) },
                None => p.quiet { "The subscriber was not tried: that takes a script." },
            }
            (manifest_of(look, &wanted, &trigger))
        }
    }
}

async fn matched(
    look: &PageLook,
    wanted: &WantedSubscriber,
    filters: &[heddle_api::filter::Filter],
) -> Result<Explanation, AnswerFault> {
    let question = ExplainRequest {
        entry: format!("broker/{}", wanted.broker),
        filters: filters.to_vec(),
        last: ExplainRequest::default_last(),
        ..ExplainRequest::default()
    };
    look.ask.query("/heddle/v1/explain", &question).await
}

async fn try_it(
    look: &PageLook,
    wanted: &WantedSubscriber,
    delivery: &DeliverySpec,
) -> Result<SubscriberTrial, AnswerFault> {
    let question = SubscriberTrialRequest {
        namespace: wanted.namespace().to_owned(),
        url: wanted.url.clone(),
        origin: (!wanted.origin.is_empty()).then(|| wanted.origin.clone()),
        delivery: delivery.clone(),
    };
    look.ask
        .query("/heddle/v1/subscribers/try", &question)
        .await
}

fn tried(trial: &SubscriberTrial) -> Markup {
    let word = if trial.reachable {
        "healthy"
    } else {
        "unhealthy"
    };
    html! {
        p #reached data-verdict=(word) {
            (verdict::mark(word)) " "
            @match (trial.status, &trial.why) {
                (Some(status), _) => { "It is there: it answered OPTIONS with " strong { (status) } " in " (words::seconds(trial.took_ms / 1000.0)) "." },
                (None, Some(why)) => { "It was not reached: " (why) },
                (None, None) => { "It was not reached." },
            }
        }
        @if let Some(consents) = trial.consents {
            @let word = if consents { "healthy" } else { "degraded" };
            p #consent data-verdict=(word) { (verdict::mark(word)) " " @if consents { "It consents to be sent events." } @else { "It does not consent: " (trial.consent_lacks.as_deref().unwrap_or_default()) ". Until it does, its events are kept." } }
        }
        p { (trial.schedule) }
        div.picture { (schedule::draw(&trial.pauses_s, &trial.schedule)) }
    }
}

fn manifest_of(look: &PageLook, wanted: &WantedSubscriber, trigger: &Value) -> Markup {
    let yaml = manifest::yaml(trigger);
    let path = objects::of(ResourceKind::Trigger).within(wanted.namespace());
    let then = look.links.trigger(wanted.namespace(), &wanted.name);
    let form = SendForm {
        method: "POST",
        path: &path,
        kind: send_form::JSON,
        body: trigger,
        then: &then,
    };
    let piped = format!("heddle apply -f - <<'EOF'\n{yaml}EOF");
    html! {
        h2 { "The manifest" }
        pre #manifest tabindex="0" aria-label="Manifest" { (yaml) }
        @if look.visit.may_operate(Some(&format!("broker/{}", wanted.broker))) {
            (send_form::draw(&form, &html! { button.primary type="submit" { "Apply" } }))
        } @else { p.quiet { "An operator of " (wanted.namespace()) " may apply it." } }
        (command::line(&piped))
        (command::line(&piped.replacen("heddle", "kubectl", 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_filled_in_becomes_a_trigger() {
        let wanted = WantedSubscriber {
            broker: "team-a/default".to_owned(),
            name: "orders".to_owned(),
            url: "http://orders/".to_owned(),
            origin: "events.example.com".to_owned(),
            retry: "3".to_owned(),
            backoff: "linear".to_owned(),
            delay: "PT1S".to_owned(),
            order: "ordered".to_owned(),
            filters: String::new(),
        };
        let filters = text::parse("exact type = order.created").unwrap();
        let trigger = wanted.trigger(&filters, &wanted.delivery().unwrap());
        assert_eq!(
            trigger,
            json!({
                "apiVersion": "eventing.knative.dev/v1", "kind": "Trigger",
                "metadata": {"name": "orders", "namespace": "team-a", "annotations": {
                    "heddle.dev/delivery-order": "ordered", "heddle.dev/webhook-origin": "events.example.com",
                }},
                "spec": {
                    "broker": "default", "subscriber": {"uri": "http://orders/"},
                    "filters": [{"exact": {"type": "order.created"}}],
                    "delivery": {"retry": 3, "backoffPolicy": "linear", "backoffDelay": "PT1S"},
                },
            })
        );
        assert!(serde_json::from_value::<heddle_api::Trigger>(trigger).is_ok());
        let bad = WantedSubscriber {
            retry: "many".to_owned(),
            ..WantedSubscriber::default()
        };
        assert!(bad.delivery().unwrap_err().contains("many"));
    }
}
