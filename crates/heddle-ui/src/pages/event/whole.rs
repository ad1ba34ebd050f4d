//! An event with all that it has, beside what became of it, with its numbers as they were written.

use heddle_api::search::WholeEvent;
use maud::{Markup, html};

use super::PageLook;
use crate::ask::AnswerFault;
use crate::links::PageLinks;
use crate::parts::content;
use crate::words;

/// An event as the log has it.
#[derive(Clone, Debug)]
pub(crate) struct ExactEvent {
    pub(crate) whole: WholeEvent,
    /// In the JSON format of CloudEvents, byte for byte.
    pub(crate) text: String,
}

impl ExactEvent {
    /// Where a question asks for it.
    pub(crate) fn path(offset: u64) -> String {
        format!("/heddle/v1/events/{offset}")
    }

    pub(crate) async fn ask(offset: u64, look: &PageLook) -> Result<Self, AnswerFault> {
        let path = Self::path(offset);
        let answer = look.ask.text(&path).await?;
        let exact = Self::read(&answer).or_else(|| Self::read_around_data(&answer));
        exact.ok_or_else(|| AnswerFault {
            status: http::StatusCode::INTERNAL_SERVER_ERROR,
            path,
            message: "the answer is not what was expected".to_owned(),
            position: None,
        })
    }

    /// The event is the last member of the answer, and no text before it can contain its name unescaped.
    pub(crate) fn read(answer: &str) -> Option<Self> {
        let whole = serde_json::from_str(answer).ok()?;
        let (_, text) = answer.split_once("\"event\":")?;
        let text = text.trim_end().strip_suffix('}')?.to_owned();
        Some(Self { whole, text })
    }

    /// The same where the data has a number that no float can hold, such as `1E+400`: nobody reads it, and it is shown as text.
    fn read_around_data(answer: &str) -> Option<Self> {
        let (before, _) = answer.split_once(",\"data\":")?;
        let without = Self::read(&format!("{before},\"data\":null}}}}"))?;
        let (_, text) = answer.split_once("\"event\":")?;
        let text = text.trim_end().strip_suffix('}')?.to_owned();
        Some(Self { text, ..without })
    }

    /// The text of its data, if that is JSON. Data is the last member of an event.
    pub(crate) fn json_data(&self) -> Option<&str> {
        self.whole.event.get("data")?;
        let (_, data) = self.text.split_once("\"data\":")?;
        data.trim_end().strip_suffix('}')
    }
}

/// Attributes, and the data for those who may read it: as much as is read on a page, and all of it as a file.
pub(super) fn shown(exact: &ExactEvent, links: &PageLinks) -> Markup {
    let (whole, event) = (&exact.whole, &exact.whole.event);
    let file = ExactEvent::path(whole.offset) + "/data";
    let name = format!("event-{}.bin", whole.offset);
    let data = event.get("data").and_then(|data| data.as_str());
    let encoded = event.get("data_base64").and_then(|data| data.as_str());
    html! {
        details.content open {
            summary { "Attributes" }
            div.inside { (content::attributes(event)) }
        }
        @if let Some(data) = data { (content::text(data, "data")) }
        @else if let Some(data) = exact.json_data() { (content::exact_json(data, "data")) }
        @if let Some(encoded) = encoded { (content::base64(encoded)) }
        @if whole.data_withheld { (content::withheld()) }
        @else if whole.data_bytes > 0 {
            p.quiet { a href=(links.server(&file)) download=(name) data-file { "Download the data" } ", " (words::bytes(whole.data_bytes)) @if whole.data_masked { ", without what is hidden from you" } @else { ", byte for byte" } }
        }
        @if whole.data_masked { (content::masked()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_read_as_it_was_written() {
        let answer = r#"{"offset":7,"acceptedAt":"2026-05-01T12:00:00Z","entry":"broker/a/b","requestId":"\"event\":{","dataBytes":9,"event":{"specversion":"1.0","id":"1","type":"t","source":"\"data\":1","data":{"n":1.10,"m":12345678901234567890123}}}"#;
        let exact = ExactEvent::read(answer).unwrap();
        assert!(exact.text.starts_with("{\"specversion\"") && exact.text.ends_with("123}}"));
        assert_eq!(
            exact.json_data(),
            Some(r#"{"n":1.10,"m":12345678901234567890123}"#)
        );
        let drawn = shown(&exact, &PageLinks::new("/mesh")).into_string();
        assert!(drawn.contains("12345678901234567890123"), "{drawn}");
        let file = "href=\"/mesh/heddle/v1/events/7/data\" download=\"event-7.bin\" data-file";
        assert!(drawn.contains(file), "{drawn}");
        let mut exact = exact;
        exact.whole.data_withheld = true;
        let drawn = shown(&exact, &PageLinks::new("")).into_string();
        assert!(!drawn.contains("/data\""), "{drawn}");
        assert!(ExactEvent::read("{}").is_none());
        let huge = answer.replace("1.10", "1E+400");
        assert!(ExactEvent::read(&huge).is_none(), "it is too large");
        let exact = ExactEvent::read_around_data(&huge).unwrap();
        assert_eq!(exact.whole.offset, 7);
        let drawn = shown(&exact, &PageLinks::new("")).into_string();
        assert!(drawn.contains("1E+400") && drawn.contains("12345678901234567890123"));
        assert!(ExactEvent::read_around_data("{}").is_none());
    }
}
