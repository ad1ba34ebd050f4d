//! What somebody typed, and where that is.

use heddle_api::health::ApplicationHealth;

use super::PageLook;
use crate::ask::AnswerFault;
use crate::links::part;
use crate::objects;

/// The page that answers: an object by its name, an application, or the event with that id.
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
    if heddle_api::health::catalogue::find(wanted).is_some()
        || heddle_api::checks::find(wanted).is_some()
    {
        return Ok(links.help(wanted));
    }
    let path = format!("/heddle/v1/health/applications/{}", part(wanted));
    let found: Option<ApplicationHealth> = look.ask.find(&path).await?;
    if found.is_some() {
        return Ok(links.application(wanted, None));
    }
    Ok(links.trace(wanted, None))
}
