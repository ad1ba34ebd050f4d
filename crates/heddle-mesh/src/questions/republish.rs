//! `POST /heddle/v1/events/{offset}/republish`: an event once more, as a new event (`path/source/republish.rs`).
//!
//! Whoever asks must be able to see the event, and to act in the namespace where it comes in. A copy of what somebody may not
//! read comes in where the original did, and nowhere else: otherwise it could be led to where they read it.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Extension, Path, RawQuery, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use heddle_api::access::{Access, Right, namespace_of};
use heddle_api::audit::ChangeNote;
use heddle_api::republish::{RepublishPreview, RepublishReach, RepublishedEvent};
use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::events::find;
use super::{AskedBy, QuestionQuery, check, json, noted, refuse};
use crate::event::Event;
use crate::ledger::{Error, ShownData, Visible, mask_for};
use crate::log::Offset;
use crate::mesh::Mesh;
use crate::path::source::republish::RefusedPublish;

/// Consumers in one preview.
const CONSUMERS_MAX: usize = 500;

pub(super) fn routes() -> Router<Mesh> {
    Router::new().route("/events/{offset}/republish", post(republish))
}

/// Why it is not done: a refusal of a question, or of a publish.
enum NotRepublished {
    Question(Error),
    Publish(RefusedPublish),
}

impl From<Error> for NotRepublished {
    fn from(error: Error) -> Self {
        Self::Question(error)
    }
}

impl From<RefusedPublish> for NotRepublished {
    fn from(refused: RefusedPublish) -> Self {
        Self::Publish(refused)
    }
}

async fn republish(
    State(mesh): State<Mesh>,
    Extension(access): AskedBy,
    Path(offset): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let query = QuestionQuery::of(query);
    let dry_run = query.text("dryRun");
    let is_dry = dry_run.is_some_and(|dry| dry != "0" && dry != "false");
    let made = prepare(&mesh, &access, &offset, &query, edited(&headers, body)).await;
    // Of an event that comes in nowhere, where it was to come in is said by whoever asked.
    let entry = match &made {
        Ok(made) => Some(made.entry.to_string()),
        Err(_) => query.text("entry"),
    };
    let done = match made {
        Ok(made) if is_dry => made.preview(&mesh, &access).await,
        Ok(made) => made.take_in(&mesh).await,
        Err(refused) => Err(refused),
    };
    let response = done.unwrap_or_else(|refused| match refused {
        NotRepublished::Question(error) => refuse(&error),
        NotRepublished::Publish(response) => response.map(Body::new),
    });
    let note = match is_dry {
        true => ChangeNote::question(),
        false => ChangeNote {
            namespace: entry.as_deref().and_then(namespace_of).map(str::to_owned),
            ..ChangeNote::default()
        },
    };
    noted(response, note)
}

/// The event in the body, if that is what it is.
fn edited(headers: &HeaderMap, body: Bytes) -> Option<Bytes> {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/cloudevents+json")
        .then_some(body)
}

/// A new event, ready to come in.
struct NewEvent {
    original: Offset,
    entry: Arc<str>,
    event: Event,
    edited: bool,
}

async fn prepare(
    mesh: &Mesh,
    access: &Access,
    offset: &str,
    query: &QuestionQuery,
    edited: Option<Bytes>,
) -> Result<NewEvent, NotRepublished> {
    let (record, envelope, data) = find(mesh, access, offset).await?;
    let wanted = query.text("entry");
    let entry = wanted.as_deref().unwrap_or(&envelope.entry);
    check(access, Right::Operate, namespace_of(entry))?;
    let carries_data = edited.is_none() && envelope.event.data().is_some();
    // What is hidden in a part of it is not to be led to where it is read whole.
    let reads_all = matches!(data, ShownData::Whole(_)) && mask_for(&mesh.shared, access).is_none();
    if carries_data && !reads_all && entry != &*envelope.entry {
        let text = "a copy of data that you may not read comes in where the event did; leave entry out, or ask for the right to payloads";
        return Err(Error::Forbidden(text.to_owned()).into());
    }
    let source = mesh.source();
    Ok(NewEvent {
        original: record.offset,
        entry: source.place(entry)?,
        event: source.made_from(&envelope.event, record.offset, edited.as_ref())?,
        edited: edited.is_some(),
    })
}

impl NewEvent {
    async fn preview(self, mesh: &Mesh, access: &Access) -> Result<Response, NotRepublished> {
        let visible = mesh.visible_to(access);
        let preview = mesh.aside(move |mesh| {
            let mut reach = reach(mesh, &self.entry, &self.event, &visible);
            reach.sort_by(|one, other| {
                (!one.wants, &one.consumer).cmp(&(!other.wants, &other.consumer))
            });
            let wanted = reach.iter().filter(|one| one.wants).count();
            let unwanted = reach.len() - wanted;
            reach.truncate(CONSUMERS_MAX);
            Ok(RepublishPreview {
                original: self.original,
                entry: self.entry.to_string(),
                source: self.event.source().to_owned(),
                type_: self.event.type_().to_owned(),
                data_bytes: self.event.data().map_or(0, |data| data.len() as u64),
                edited: self.edited,
                wanted: wanted as u64,
                unwanted: unwanted as u64,
                consumers: reach,
            })
        });
        Ok(json(StatusCode::OK, &preview.await?))
    }

    async fn take_in(self, mesh: &Mesh) -> Result<Response, NotRepublished> {
        let (source, id) = (self.event.source().to_owned(), self.event.id().to_owned());
        let type_ = self.event.type_().to_owned();
        let offset = mesh.source().take_in(&self.entry, self.event).await?;
        let answer = RepublishedEvent {
            offset,
            original: self.original,
            entry: self.entry.to_string(),
            source,
            id,
            type_,
        };
        let mut response = json(StatusCode::CREATED, &answer);
        if let Ok(place) = HeaderValue::from_str(&format!("/heddle/v1/events/{offset}")) {
            response.headers_mut().insert(header::LOCATION, place);
        }
        Ok(response.into_response())
    }
}

/// Who would be reached, as things are now, as far as somebody may know.
fn reach(mesh: &Mesh, entry: &str, event: &Event, visible: &Visible) -> Vec<RepublishReach> {
    let consumers = mesh.shared.user_consumers().into_iter();
    let seen = consumers.filter(|consumer| visible.shows_consumer(&consumer.key));
    let reached = seen.filter_map(|consumer| {
        let state = consumer.lock();
        let revision = state.routing.revision_at(Offset::MAX)?;
        revision.feeds.iter().find(|(feed, _)| feed == entry)?;
        let explained = revision.predicate.explain(event);
        Some(RepublishReach {
            consumer: consumer.key.to_string(),
            wants: explained.is_ok(),
            reason: explained.err().unwrap_or_default(),
        })
    });
    reached.collect()
}
