//! Events, found, shown and watched: `/heddle/v1/events`.
//!
//! ```text
//!   GET events?q=[&limit=][&before=][&from=][&ask=]   newest first; Accept says in which form
//!       application/json                     what was found within two seconds, and where to go on
//!       application/jsonl                    line by line, with how far it is, to the end
//!       application/cloudevents-batch+json   the events themselves, to be published again
//!   GET events?watch=1&q=                    what comes in from now on, line by line, at most fifty a second
//!   GET events/{offset}   one with all it has            GET events/{offset}/data   its data, byte for byte
//!   GET events/refused[?id=][&source=][&code=][&namespace=][&limit=]   what was refused lately, the newest first
//! ```
//! `ask` names the question: of those with the same name only the newest of whoever asks goes on.

use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Extension, Path, RawQuery, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use futures::{Stream, stream};
use heddle_api::access::{Access, Right};
use heddle_api::ledger::Cause;
use heddle_api::search::{EventPage, EventQuery, EventStreamEnd, StreamedEvents, WholeEvent};
use heddle_rt::Clock;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Serialize;

use super::{AskedBy, QuestionQuery, answer, refuse};
use crate::envelope::Envelope;
use crate::event::json;
use crate::ledger::{
    Error, EventSearch, RefusedQuery, SearchRequest, SearchStep, ShownData, Tail, Visible,
    shown_event,
};
use crate::log::{Lookup, Offset, Record};
use crate::mesh::Mesh;

/// Events in one answer when nobody says how many, and at most.
const PAGE: usize = 100;
const PAGE_MAX: usize = 500;
/// What one answer may take and read; a longer one is streamed.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);
/// What of that is for events whose name the question is.
const DIRECT_TIME_MAX: Duration = Duration::from_secs(1);
const ANSWER_BYTES_MAX: usize = 1 << 30;
/// How far a search is, is said after so many steps that found nothing: about 32 MiB.
const QUIET_STEPS_MAX: u32 = 32;

const JSON_LINES: &str = "application/jsonl";
const BATCH: &str = "application/cloudevents-batch+json";

pub(super) fn router() -> Router<Mesh> {
    Router::new()
        .route("/events", get(list))
        .route("/events/refused", get(refused))
        .route("/events/{offset}", get(show))
        .route("/events/{offset}/data", get(data))
}

async fn list(
    State(mesh): State<Mesh>,
    Extension(access): AskedBy,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Response {
    let query = QuestionQuery::of(query);
    let asked = EventsQuestion::read(&mesh, &access, &query);
    let begun = match asked {
        Ok(asked) => asked.answer(&mesh, &headers, &query).await,
        Err(error) => Err(error),
    };
    begun.unwrap_or_else(|error| refuse(&error))
}

/// From memory, so it is no question that is worked on.
async fn refused(
    State(mesh): State<Mesh>,
    Extension(access): AskedBy,
    RawQuery(query): RawQuery,
) -> Response {
    let query = QuestionQuery::of(query);
    let limit = query.number("limit");
    answer(limit.map(|limit| {
        let asked = RefusedQuery {
            id: query.text("id"),
            source: query.text("source"),
            code: query.text("code"),
            namespace: query.text("namespace"),
            limit,
        };
        mesh.refused_for(&asked, &access)
    }))
}

/// What is asked, and by whom.
struct EventsQuestion {
    user: String,
    name: Option<String>,
    query: EventQuery,
    visible: Visible,
}

impl EventsQuestion {
    fn read(mesh: &Mesh, access: &Access, query: &QuestionQuery) -> Result<Self, Error> {
        let text = query.text("q").unwrap_or_default();
        Ok(Self {
            query: EventQuery::parse(&text, mesh.shared.clock.now())?,
            user: access.user.clone(),
            name: query.text("ask"),
            visible: mesh.visible_to(access),
        })
    }

    async fn answer(
        self,
        mesh: &Mesh,
        headers: &HeaderMap,
        query: &QuestionQuery,
    ) -> Result<Response, Error> {
        let name = self.name.as_deref();
        if query
            .text("watch")
            .is_some_and(|watch| watch != "0" && watch != "false")
        {
            let tail = mesh.tail(self.query, self.visible, &self.user, name)?;
            return Ok(streamed(JSON_LINES, tail_lines(tail)));
        }
        let accepts = |kind: &str| {
            let accept = headers
                .get(header::ACCEPT)
                .and_then(|accept| accept.to_str().ok());
            accept.is_some_and(|accept| accept.contains(kind))
        };
        let (lines, batch) = (accepts(JSON_LINES), accepts(BATCH));
        let limit = match query.text("limit") {
            Some(limit) => limit
                .parse()
                .ok()
                .filter(|limit| *limit > 0)
                .ok_or_else(|| Error::Invalid("limit is a number above 0".to_owned()))?,
            None if lines || batch => usize::MAX,
            None => PAGE,
        };
        if batch && !self.visible.may_ask_for_data() {
            let text = "events with their data are for those who may read data; ask for application/json, or for the right to payloads";
            return Err(Error::Forbidden(text.to_owned()));
        }
        let word = self.query.bare_word().map(str::to_owned);
        let word = word.filter(|_| query.text("before").is_none());
        let (clock, visible) = (&mesh.shared.clock, self.visible.clone());
        let begun = clock.monotonic();
        let request = SearchRequest {
            query: self.query,
            range: query.offsets()?,
            limit: match lines || batch {
                true => limit,
                false => limit.min(PAGE_MAX),
            },
            visible: self.visible,
            whole: batch,
        };
        let mut search = mesh.search(request, &self.user, name).await?;
        if batch {
            return Ok(streamed(BATCH, batch_pieces(search)));
        }
        if lines {
            return Ok(streamed(JSON_LINES, search_lines(search)));
        }
        let direct = match word {
            Some(word) => search.named(&word, &visible, DIRECT_TIME_MAX).await?,
            None => Vec::new(),
        };
        let page = page(search, clock, begun).await?;
        Ok(super::json(StatusCode::OK, &EventPage { direct, ..page }))
    }
}

/// As much as one answer may take that was begun at that time.
async fn page(mut search: EventSearch, clock: &Clock, begun: Duration) -> Result<EventPage, Error> {
    let mut page = EventPage::default();
    loop {
        let step = search.step().await?;
        page.items.extend(step.items);
        (page.looked_at, page.next) = (step.looked_at, step.next);
        let took = clock.monotonic().saturating_sub(begun);
        if !step.going || took >= ANSWER_TIME_MAX || search.bytes() >= ANSWER_BYTES_MAX {
            return Ok(page);
        }
    }
}

fn streamed(
    kind: &'static str,
    pieces: impl Stream<Item = Result<Bytes, std::convert::Infallible>> + Send + 'static,
) -> Response {
    let kind = HeaderValue::from_static(kind);
    let body = Body::from_stream(pieces);
    ([(header::CONTENT_TYPE, kind)], body).into_response()
}

fn line(out: &mut Vec<u8>, line: &impl Serialize) {
    // There is nothing in them that cannot be written.
    if serde_json::to_writer(&mut *out, line).is_ok() {
        out.push(b'\n');
    }
}

/// Each poll is a step: whoever does not read on is not searched for.
fn search_lines(
    search: EventSearch,
) -> impl Stream<Item = Result<Bytes, std::convert::Infallible>> {
    stream::unfold((Some(search), 0_u32), |(search, mut quiet)| async move {
        let mut search = search?;
        let mut out = Vec::new();
        loop {
            let step = match search.step().await {
                Ok(step) => step,
                Err(error) => {
                    line(&mut out, &failed(&error));
                    return Some((Ok(out.into()), (None, 0)));
                }
            };
            let (going, end) = (step.going, end_of(&step));
            quiet += 1;
            let looked_at = step.looked_at;
            for item in step.items {
                quiet = 0;
                line(&mut out, &StreamedEvents::Item { item });
            }
            if !going {
                line(&mut out, &end);
                return Some((Ok(out.into()), (None, 0)));
            }
            if quiet >= QUIET_STEPS_MAX {
                quiet = 0;
                line(&mut out, &StreamedEvents::Progress { looked_at });
            }
            if !out.is_empty() {
                return Some((Ok(out.into()), (Some(search), quiet)));
            }
        }
    })
}

fn end_of(step: &SearchStep) -> EventStreamEnd {
    EventStreamEnd {
        looked_at: step.looked_at,
        end: true,
        next: step.next,
        error: None,
    }
}

fn failed(error: &Error) -> EventStreamEnd {
    EventStreamEnd {
        end: true,
        error: Some(error.to_string()),
        ..EventStreamEnd::default()
    }
}

/// An array of events. One that failed has no end, so that nobody takes it for all there is.
fn batch_pieces(
    search: EventSearch,
) -> impl Stream<Item = Result<Bytes, std::convert::Infallible>> {
    stream::unfold((Some(search), true), |(search, mut first)| async move {
        let mut search = search?;
        let mut out = Vec::new();
        if first {
            out.push(b'[');
        }
        loop {
            let Ok(step) = search.step().await else {
                return Some((Ok(out.into()), (None, false)));
            };
            for document in step.documents {
                if !std::mem::replace(&mut first, false) {
                    out.extend_from_slice(b",\n");
                }
                out.extend_from_slice(&document);
            }
            if !step.going {
                out.extend_from_slice(b"]\n");
                return Some((Ok(out.into()), (None, false)));
            }
            if out.len() > 1 {
                return Some((Ok(out.into()), (Some(search), first)));
            }
        }
    })
}

fn tail_lines(tail: Tail) -> impl Stream<Item = Result<Bytes, std::convert::Infallible>> {
    stream::unfold(Some(tail), |tail| async move {
        let mut tail = tail?;
        let mut out = Vec::new();
        loop {
            let step = match tail.step().await {
                Ok(step) => step,
                Err(error) => {
                    line(&mut out, &failed(&error));
                    return Some((Ok(out.into()), None));
                }
            };
            for item in step.items {
                line(&mut out, &StreamedEvents::Item { item });
            }
            if let Some(rate) = step.rate {
                line(&mut out, &StreamedEvents::Rate { rate });
            }
            if !out.is_empty() {
                return Some((Ok(out.into()), Some(tail)));
            }
        }
    })
}

/// An event that whoever asks may see, and as much of its data as they may.
pub(super) async fn find(
    mesh: &Mesh,
    access: &Access,
    offset: &str,
) -> Result<(Record, Envelope, ShownData), Error> {
    let missing = format!(
        "there is no event at place {offset}; it was never there, or retention has let it go"
    );
    let Ok(offset) = offset.parse::<Offset>() else {
        return Err(Error::NotFound(missing));
    };
    let visible = mesh.visible_to(access);
    mesh.aside(move |mesh| {
        let record = match mesh.shared.log.get(offset)? {
            Lookup::Found(record) => record,
            Lookup::Damaged => {
                let text = format!("the event at place {offset} is damaged and its bytes are lost");
                return Err(Error::NotFound(text));
            }
            Lookup::Gone => return Err(Error::NotFound(missing)),
        };
        match Envelope::decode(&record.payload) {
            Ok(envelope) if visible.shows(&envelope.entry, record.offset) => {
                let data = visible.data(&envelope.entry, record.offset, &envelope.event);
                Ok((record, envelope, data))
            }
            // Whoever may not see it is not told that it is there.
            _ => Err(Error::NotFound(missing)),
        }
    })
    .await
}

async fn show(
    State(mesh): State<Mesh>,
    Extension(access): AskedBy,
    Path(offset): Path<String>,
) -> Response {
    match find(&mesh, &access, &offset).await {
        Ok((record, envelope, data)) => {
            let cause = envelope.cause.as_ref().map(|cause| Cause {
                offset: cause.offset,
                consumer: cause.consumer.to_string(),
            });
            let cause = cause.filter(|cause| access.sees(&cause.consumer));
            whole(&record, &envelope, cause, data)
        }
        Err(error) => refuse(&error),
    }
}

fn whole(record: &Record, envelope: &Envelope, cause: Option<Cause>, data: ShownData) -> Response {
    let event = &envelope.event;
    let data_bytes = event.data().map_or(0, |data| data.len() as u64);
    let around = WholeEvent {
        offset: record.offset,
        accepted_at: record.at,
        entry: envelope.entry.to_string(),
        request_id: envelope.request_id.as_deref().map(str::to_owned),
        trace_id: envelope.trace_id().map(str::to_owned),
        data_bytes,
        cause,
        data_withheld: data_bytes > 0 && data == ShownData::Withheld,
        data_masked: matches!(data, ShownData::Part(_)),
        event: serde_json::Value::Null,
    };
    let mut text = match serde_json::to_vec(&around) {
        Ok(text) => text,
        Err(error) => return answer::<()>(Err(Error::Invalid(error.to_string()))),
    };
    // The event is its last member. It is put there as it is: to read it would round its numbers.
    text.truncate(text.len() - "null}".len());
    json::write(&shown_event(event, data), &mut text);
    text.push(b'}');
    let kind = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

/// As a file, so that no browser takes it for a page of this server. Hidden places are hidden here too.
async fn data(
    State(mesh): State<Mesh>,
    Extension(access): AskedBy,
    Path(offset): Path<String>,
) -> Response {
    let (record, data) = match find(&mesh, &access, &offset).await {
        Ok((record, _, ShownData::Whole(data))) => (record, data.unwrap_or_default()),
        Ok((record, _, ShownData::Part(data))) => (record, data),
        Ok((_, _, ShownData::Withheld)) => {
            let text = match access.has(Right::Payloads) {
                true => {
                    "this data is hidden from you: parts of data are, and it is no JSON in which they could be found"
                }
                false => "data is for those who may read it; ask for the right to payloads",
            };
            return refuse(&Error::Forbidden(text.to_owned()));
        }
        Err(error) => return refuse(&error),
    };
    let name = format!("attachment; filename=\"event-{}\"", record.offset);
    let Ok(name) = HeaderValue::from_str(&name) else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let kind = HeaderValue::from_static("application/octet-stream");
    let plain = HeaderValue::from_static("nosniff");
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_DISPOSITION, name),
        (header::X_CONTENT_TYPE_OPTIONS, plain),
    ];
    (headers, data).into_response()
}
