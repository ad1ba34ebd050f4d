//! An event by hand: to an Application's source or to a broker, with a stored event as a sample; then to its trace.

use heddle_api::test_event::SENT_BY;
use heddle_api::types::SeenTypes;
use maud::{Markup, html};
use serde_json::{Value, json};

use super::event::{ExactEvent, quoted};
use super::{PageLook, PageResult};
use crate::frame::RenderedPage;
use crate::links::part;
use crate::parts::command;
use crate::parts::content::indented;
use crate::parts::send_form::{self, SendForm};
use crate::words;

/// Types that are offered as samples.
const SAMPLES_MAX: usize = 30;
const PATH: &str = "/heddle/v1/publish";

/// What the form begins with.
#[derive(Default)]
struct TestDraft {
    to: String,
    type_: String,
    source: String,
    subject: String,
    datacontenttype: String,
    data: String,
}

pub(crate) async fn page(look: &PageLook) -> PageResult {
    let types: SeenTypes = look.ask.get("/heddle/v1/types?last=2000").await?;
    let draft = draft(look, &types).await?;
    let body = html! {
        h1 { "Send a test event" }
        p { "It is published as any other event, through the same checks, and goes wherever the filters lead it. Who sent it stands in its attribute " code { (SENT_BY) } "." }
        @if look.visit.may_operate((!draft.to.is_empty()).then_some(&*draft.to)) { section.card { (form(look, &draft)) (command::line(&said(&draft))) } }
        @else { section.card.state { p { "Sending events takes an operator: of this namespace for a broker, of all namespaces for an Application." } (command::line(&said(&draft))) } }
        (samples(look, &types, &draft))
    };
    let request = "/heddle/v1/types?last=2000";
    Ok(RenderedPage::new("publish", "none", "Test event", body)
        .behind("heddle types --last 2000", request))
}

/// From a stored event, if one was chosen.
async fn draft(look: &PageLook, types: &SeenTypes) -> Result<TestDraft, crate::ask::AnswerFault> {
    let sample = look
        .visit
        .text("sample")
        .and_then(|sample| sample.parse::<u64>().ok());
    let mut draft = TestDraft {
        to: look.visit.text("to").unwrap_or_default(),
        type_: look.visit.text("type").unwrap_or_default(),
        datacontenttype: "application/json".to_owned(),
        data: "{}".to_owned(),
        ..TestDraft::default()
    };
    if let Some(sample) = sample {
        let exact = ExactEvent::ask(sample, look).await?;
        let event = &exact.whole.event;
        let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        draft.type_ = text("type");
        draft.source = text("source");
        draft.subject = text("subject");
        draft.datacontenttype = text("datacontenttype");
        draft.data = data_of(&exact);
        if draft.to.is_empty() {
            draft.to = entry_as_door(&exact.whole.entry);
        }
    }
    if draft.to.is_empty() {
        let first = types.items.first();
        draft.to = first.map_or_else(String::new, |first| entry_as_door(&first.entry));
    }
    Ok(draft)
}

/// What the form has for the data of a sample: text as it is, and JSON with its numbers as they were written.
fn data_of(sample: &ExactEvent) -> String {
    match sample.whole.event.get("data").and_then(Value::as_str) {
        Some(text) => text.to_owned(),
        None => sample.json_data().map(indented).unwrap_or_default(),
    }
}

/// Where something that came in here is published.
fn entry_as_door(entry: &str) -> String {
    let own = format!("channel/{}/", heddle_api::well_known::INTEGRATION_NAMESPACE);
    match entry.strip_prefix(&own) {
        Some(application) => format!("application/{application}"),
        None => entry.to_owned(),
    }
}

fn form(look: &PageLook, draft: &TestDraft) -> Markup {
    let then = look.links.page("trace?id={id}&source={source}");
    let body = json!({});
    let form = SendForm {
        method: "POST",
        path: PATH,
        kind: send_form::JSON,
        body: &body,
        then: &then,
    };
    let field = |name: &str, pointer: &str, value: &str, required: bool| {
        html! { label { (name) input name=(pointer) value=(value) required[required] maxlength="1024" autocomplete="off" spellcheck="false" data-pointer=(format!("/{pointer}")); } }
    };
    send_form::draw(
        &form,
        &html! {
            (field("To: application/NAME or broker/NAMESPACE/NAME", "to", &draft.to, true))
            (field("Type", "type", &draft.type_, true))
            (field("Source", "source", &draft.source, false))
            (field("Subject", "subject", &draft.subject, false))
            (field("Content type", "datacontenttype", &draft.datacontenttype, false))
            label { "Data" textarea name="data" rows="8" spellcheck="false" data-pointer="/data" data-as="json" { "\n" (draft.data) } }
            button.primary type="submit" { "Send it" }
        },
    )
}

fn said(draft: &TestDraft) -> String {
    let to = match draft.to.split_once('/') {
        Some(("application", name)) => quoted(name),
        Some((kind @ ("broker" | "channel"), name)) => format!("--{kind} {}", quoted(name)),
        _ => "APP".to_owned(),
    };
    let type_ = if draft.type_.is_empty() {
        "TYPE"
    } else {
        &draft.type_
    };
    format!("heddle publish {to} --type {}", quoted(type_))
}

fn samples(look: &PageLook, types: &SeenTypes, draft: &TestDraft) -> Markup {
    html! {
        @if !types.items.is_empty() {
            section.card { h2 { "Like one of these" }
                ul.plain { @for seen in types.items.iter().take(SAMPLES_MAX) {
                    li data-row {
                        a href=(look.links.page(&format!("publish?sample={}&to={}", seen.sample, part(&door(draft, &seen.entry))))) { (seen.type_) }
                        " " span.quiet { "from " (seen.source) ", " (words::number(seen.count)) " seen, the last " (words::since(seen.last_seen, look.now)) }
                    }
                } }
            }
        }
    }
}

/// Somebody who came for a broker stays there.
fn door(draft: &TestDraft, entry: &str) -> String {
    match draft.to.starts_with("broker/") {
        true => draft.to.clone(),
        false => entry_as_door(entry),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_keeps_its_numbers() {
        let answer = r#"{"offset":7,"acceptedAt":"2026-05-01T12:00:00Z","entry":"broker/a/b","dataBytes":9,"event":{"specversion":"1.0","id":"1","type":"t","source":"/s","data":{"a":9007199254740993,"b":10.10,"c":123456789012345678901234567890}}}"#;
        let data = data_of(&ExactEvent::read(answer).unwrap());
        assert_eq!(
            data,
            "{\n  \"a\": 9007199254740993,\n  \"b\": 10.10,\n  \"c\": 123456789012345678901234567890\n}"
        );
    }

    #[test]
    fn what_came_in_at_a_channel_is_published_as_its_application() {
        assert_eq!(
            entry_as_door("channel/kyma-integration/shop"),
            "application/shop"
        );
        assert_eq!(
            entry_as_door("broker/team-a/default"),
            "broker/team-a/default"
        );
        assert_eq!(entry_as_door("channel/team-a/own"), "channel/team-a/own");
    }
}
