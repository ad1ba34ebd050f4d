//! `GET /heddle/v1/delays?by=[&q=][&since=][&until=][&columns=][&events=]`: how long did events take to be delivered?
//!
//! Whoever may look is told of events and consumers that they may see.

use axum::extract::{Extension, RawQuery, State};
use axum::response::Response;
use heddle_api::access::Access;
use heddle_api::delays::DelayRows;
use heddle_api::search::{EventQuery, moment};

use super::{AskedBy, QuestionQuery, answer, asked};
use crate::ledger::{DelaysRequest, Error};
use crate::mesh::Mesh;

/// How far back is looked when nobody says.
const SINCE: &str = "1h";

pub(super) async fn show(
    State(mesh): State<Mesh>,
    Extension(access): AskedBy,
    RawQuery(query): RawQuery,
) -> Response {
    let query = QuestionQuery::of(query);
    answer(match request(&query, &mesh, &access) {
        Ok(request) => asked(&mesh, &access, &query, mesh.delays(request)).await,
        Err(error) => Err(error),
    })
}

fn request(query: &QuestionQuery, mesh: &Mesh, access: &Access) -> Result<DelaysRequest, Error> {
    let now = mesh.shared.clock.now();
    let at = |key: &str, text: &str| {
        moment(text, now).map_err(|wanted| Error::Invalid(format!("{key} is {text:?}: {wanted}")))
    };
    let since = query.text("since").unwrap_or_else(|| SINCE.to_owned());
    let by = query.text("by").unwrap_or_default();
    let by = match &*by {
        "" => DelayRows::default(),
        by => DelayRows::read(by).ok_or_else(|| {
            Error::Invalid(format!("by is {by:?}: write trigger, application or type"))
        })?,
    };
    let columns = query.number("columns")?;
    let events = query.number("events")?;
    Ok(DelaysRequest {
        by,
        query: EventQuery::parse(&query.text("q").unwrap_or_default(), now)?,
        since: at("since", &since)?,
        until: match query.text("until") {
            Some(until) => Some(at("until", &until)?),
            None => None,
        },
        columns: columns.unwrap_or(DelaysRequest::COLUMNS_DEFAULT),
        events: events.unwrap_or(DelaysRequest::EVENTS_DEFAULT),
        visible: mesh.visible_to(access),
    })
}
