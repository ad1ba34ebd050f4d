//! `GET /heddle/v1/silence?consumer=&since=&until=`: why did nothing arrive between two moments?
//!
//! Whoever may see a consumer may ask; they are told of events that they may see.

use axum::extract::{Extension, RawQuery, State};
use axum::response::Response;
use heddle_api::search::moment;
use jiff::Timestamp;

use super::{AskedBy, QuestionQuery, answer, asked};
use crate::ledger::{Error, SilenceRequest};
use crate::mesh::Mesh;

/// How far back is looked when nobody says.
const SINCE: &str = "1h";

pub(super) async fn explain(
    State(mesh): State<Mesh>,
    Extension(access): AskedBy,
    RawQuery(query): RawQuery,
) -> Response {
    let query = QuestionQuery::of(query);
    let now = mesh.shared.clock.now();
    answer(match request(&query, now) {
        Ok(request) => {
            let visible = mesh.visible_to(&access);
            asked(&mesh, &access, &query, mesh.silence(&request, &visible)).await
        }
        Err(error) => Err(error),
    })
}

fn request(query: &QuestionQuery, now: Timestamp) -> Result<SilenceRequest, Error> {
    let at = |key: &str, text: &str| {
        moment(text, now).map_err(|wanted| Error::Invalid(format!("{key} is {text:?}: {wanted}")))
    };
    let Some(consumer) = query.text("consumer") else {
        let text = "say whose silence: ?consumer=trigger/NAMESPACE/NAME";
        return Err(Error::Invalid(text.to_owned()));
    };
    let since = query.text("since").unwrap_or_else(|| SINCE.to_owned());
    Ok(SilenceRequest {
        consumer,
        since: at("since", &since)?,
        until: match query.text("until") {
            Some(until) => Some(at("until", &until)?),
            None => None,
        },
    })
}
