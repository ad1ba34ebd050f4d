//! `GET catalog`.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::Map;

use super::{Call, Desk};
use crate::error::Refusal;
use crate::wire::answer::Answer;

pub(crate) fn answer(desk: &Desk, call: &Call, headers: &HeaderMap) -> Result<Answer, Refusal> {
    // A catalog that is not whole would be taken for one from which things were withdrawn.
    if !desk.offers.is_ready() {
        return Err(Refusal::Unavailable);
    }
    if let Some(refusal) = too_early(desk) {
        return Err(refusal);
    }
    let document = desk.offers.document(call.scope.as_deref(), call.version);
    let known = headers
        .get(header::IF_NONE_MATCH)
        .is_some_and(|known| matches(known, &document.etag));
    let status = if known {
        StatusCode::NOT_MODIFIED
    } else {
        StatusCode::OK
    };
    let mut answer = Answer::new(status, Map::new());
    answer.rendered = Some(if known { Bytes::new() } else { document.bytes });
    answer.etag = Some(document.etag);
    Ok(answer)
}

/// An empty catalog on a fresh store would be taken for a broker without offerings. So registries get a moment to be read for
/// the first time, though not for ever: a broker with one that does not answer is a broker all the same.
fn too_early(desk: &Desk) -> Option<Refusal> {
    let catalog = desk.offers.catalog();
    let age = desk.clock.monotonic().saturating_sub(desk.started);
    let waits = catalog.is_fresh
        && age < desk.settings.initial_catalog_wait
        && catalog.offered().next().is_none();
    waits.then(|| {
        let names = catalog.unread.join(", ");
        Refusal::NotYet(format!(
            "the catalog is not known yet: waiting for the first reading of {names}"
        ))
    })
}

/// Whether one of the tags that the platform has is `etag`. It does not matter whether it calls it weak.
fn matches(known: &HeaderValue, etag: &HeaderValue) -> bool {
    let (Ok(known), Ok(etag)) = (known.to_str(), etag.to_str()) else {
        return false;
    };
    known
        .split(',')
        .map(str::trim)
        .any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}
