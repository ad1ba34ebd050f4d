//! What somebody typed, and where that is.

#[cfg(test)]
mod tests;

use heddle_api::health::ApplicationHealth;
use heddle_api::search::{EventPage, EventQuery};

use super::PageLook;
use crate::ask::AnswerFault;
use crate::links::part;
use crate::objects;

/// The page that answers: an object by its name, a code, an application, the event that is called so, or a list of events.
pub(crate) async fn where_to(look: &PageLook) -> Result<String, AnswerFault> {
    let links = &look.links;
    let Some(wanted) = look.visit.text("q") else {
        return Ok(links.page(""));
    };
    let wanted = wanted.trim();
    let kind = wanted.split('/').next().unwrap_or_default();
    if objects::kind(kind).is_some()
        && let Some(page) = links.object(wanted)
    {
        return Ok(page);
    }
    if super::help::entries::is_known(wanted) {
        return Ok(links.help(wanted));
    }
    let path = format!("/heddle/v1/health/applications/{}", part(wanted));
    let found: Option<ApplicationHealth> = look.ask.find(&path).await?;
    if found.is_some() {
        return Ok(links.application(wanted, None));
    }
    event(wanted, look).await
}

/// Events by their id, place, request id or trace id. What reads as a query is a name all the same if an event has it.
async fn event(wanted: &str, look: &PageLook) -> Result<String, AnswerFault> {
    let links = &look.links;
    let quoted = quoted(wanted);
    let is_word = |query: &str| {
        let query = EventQuery::parse(query, look.now);
        query.is_ok_and(|query| query.bare_word().is_some())
    };
    let as_written = is_word(wanted);
    let word = if as_written { wanted } else { &*quoted };
    if !is_word(word) {
        return Ok(links.events(wanted));
    }
    let path = format!("/heddle/v1/events?limit=1&q={}", part(word));
    let found: EventPage = look.ask.get(&path).await?;
    Ok(match found.direct.as_slice() {
        [place] => links.place(*place),
        [] if as_written && found.items.is_empty() => links.trace(wanted, None),
        [] => links.events(wanted),
        _ => links.events(word),
    })
}

/// As one word of a query, whatever is in it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
