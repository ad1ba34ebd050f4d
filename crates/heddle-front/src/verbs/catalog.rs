//! `GET catalog`: whole, compressed, or nothing if the platform has it already.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::Map;

use super::{Call, Deps, OsbAnswer};
use crate::catalog::{Coding, Document};
use crate::error::OsbError;
use crate::wire::encoding;
use crate::wire::response::OsbResponse;

pub(crate) async fn answer(deps: &Deps, call: &Call, headers: &HeaderMap) -> OsbAnswer {
    // A catalog that is not whole would be taken for one from which things were withdrawn.
    if !deps.offers.is_ready() {
        return Err(OsbError::Unavailable);
    }
    if let Some(error) = too_early(deps) {
        return Err(error);
    }
    let coding = if encoding::accepts_gzip(headers) {
        Coding::Gzip
    } else {
        Coding::Plain
    };
    let document = document(deps, call, coding).await?;
    let known = headers.get(header::IF_NONE_MATCH);
    let mut answer = match known.and_then(|known| held(known, &document)) {
        Some(etag) => {
            let mut answer = OsbResponse::new(StatusCode::NOT_MODIFIED, Map::new());
            answer.rendered = Some(Bytes::new());
            answer.etag = Some(etag);
            answer
        }
        None => {
            let mut answer = OsbResponse::ok(Map::new());
            answer.rendered = Some(document.bytes);
            answer.etag = Some(document.etag);
            answer
        }
    };
    answer.coding = Some(document.coding);
    Ok(answer)
}

/// The document, rendered if need be: by one, on a thread of its own, while other requests go on and those for the catalog
/// wait without one.
async fn document(deps: &Deps, call: &Call, coding: Coding) -> Result<Document, OsbError> {
    let scope = call.scope.as_deref();
    let at_hand = || deps.offers.rendered(scope, call.version, coding);
    if let Some(document) = at_hand() {
        return Ok(document);
    }
    let alone = Arc::clone(&deps.rendering).lock_owned().await;
    // Whoever waited finds what they waited for.
    if let Some(document) = at_hand() {
        return Ok(document);
    }
    let (offers, scope, version) = (Arc::clone(&deps.offers), call.scope.clone(), call.version);
    let rendering = deps.tasks.blocking("render the catalog", move || {
        // Held to the end, also if the platform has hung up: others would render beside it.
        let _alone = alone;
        offers.document(scope.as_deref(), version, coding)
    });
    rendering.await.map_err(|_| OsbError::Unavailable)
}

/// An empty catalog on a fresh store would be taken for a broker without offerings. So registries get a moment to be read for
/// the first time, though not for ever: a broker with one that does not answer is a broker all the same.
fn too_early(deps: &Deps) -> Option<OsbError> {
    let catalog = deps.offers.catalog();
    let age = deps.clock.monotonic().saturating_sub(deps.started);
    let waits = catalog.is_fresh
        && age < deps.settings.initial_catalog_wait
        && catalog.offered().next().is_none();
    waits.then(|| {
        let names = catalog.unread.join(", ");
        OsbError::NotYet(format!(
            "the catalog is not known yet: waiting for the first reading of {names}"
        ))
    })
}

/// The tag by which the platform has this very catalog, in whichever form; it does not matter whether it calls it weak. It is
/// told the tag that it has, because a cache renews what it keeps under that one.
fn held(known: &HeaderValue, document: &Document) -> Option<HeaderValue> {
    let mut tags = known.to_str().ok()?.split(',').map(str::trim);
    tags.find_map(|tag| match tag.strip_prefix("W/").unwrap_or(tag) {
        "*" => Some(document.etag.clone()),
        tag if document.is_known_as(tag) => HeaderValue::from_str(tag).ok(),
        _ => None,
    })
}
