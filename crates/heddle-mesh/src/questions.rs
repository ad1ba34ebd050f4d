//! The questions people and programs ask about events, over HTTP, below `/heddle/v1/`.
//!
//! ```text
//!   GET  trace?id=[&source=][&from=&before=]   where is my event
//!   GET  dead-letters[?consumer=…&limit=&after=]   what rests          GET dead-letters/{name}   one of them
//!   POST dead-letters/redrive, …/discard       what becomes of it
//!   POST explain                               what would this filter have done
//!   GET  accounts[?verify=true]                is every event accounted for
//! ```
//! Who asks is decided before; whoever acts is named by the extension [`Asker`]. Bodies are `heddle_api::ledger`.

use std::ops::Range;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Extension, Path, RawQuery, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use heddle_api::ledger::{DeadLetterSelection, ErrorBody, ExplainRequest};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::ledger::Error;
use crate::log::Offset;
use crate::mesh::Mesh;

/// The longest question.
const QUESTION_BYTES_MAX: usize = 256 << 10;

/// Dead letters on one page when nobody says how many.
const PAGE: usize = 100;

/// On whose behalf something is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asker(pub String);

/// The router, without the prefix.
pub fn router(mesh: Mesh) -> Router {
    Router::new()
        .route("/trace", get(trace))
        .route("/dead-letters", get(list))
        .route("/dead-letters/redrive", post(redrive))
        .route("/dead-letters/discard", post(discard))
        .route("/dead-letters/{name}", get(show))
        .route("/explain", post(explain))
        .route("/accounts", get(accounts))
        .layer(axum::extract::DefaultBodyLimit::max(QUESTION_BYTES_MAX))
        .with_state(mesh)
}

async fn trace(State(mesh): State<Mesh>, RawQuery(query): RawQuery) -> Response {
    let query = QuestionQuery::of(query);
    let Some(id) = query.text("id") else {
        return refuse(&Error::Invalid(
            "say which event: ?id=…, and &source=… if you know it".to_owned(),
        ));
    };
    // What just happened is on its way to the journal; the answer should have it.
    mesh.settled().await;
    answer(match query.text("source") {
        Some(source) => mesh.trace(&id, &source),
        None => mesh.trace_by_id(&id, query.offsets()).await,
    })
}

async fn list(State(mesh): State<Mesh>, RawQuery(query): RawQuery) -> Response {
    let query = QuestionQuery::of(query);
    let selection = DeadLetterSelection {
        consumer: query.text("consumer"),
        namespace: query.text("namespace"),
        type_: query.text("type"),
        source: query.text("source"),
        id: query.text("id"),
        ..DeadLetterSelection::default()
    };
    let after = query.text("after").and_then(|after| after.parse().ok());
    let limit = query.text("limit").and_then(|limit| limit.parse().ok());
    json(
        StatusCode::OK,
        &mesh.dead_letters(&selection, after.unwrap_or(0), limit.unwrap_or(PAGE)),
    )
}

async fn show(State(mesh): State<Mesh>, Path(name): Path<String>) -> Response {
    answer(mesh.dead_letter(&name))
}

async fn redrive(
    State(mesh): State<Mesh>,
    asker: Option<Extension<Asker>>,
    body: Bytes,
) -> Response {
    answer(match read::<DeadLetterSelection>(&body) {
        Ok(selection) => Ok(mesh.redrive(&selection, &name_of(asker)).await),
        Err(error) => Err(error),
    })
}

async fn discard(
    State(mesh): State<Mesh>,
    asker: Option<Extension<Asker>>,
    body: Bytes,
) -> Response {
    answer(match read::<DeadLetterSelection>(&body) {
        Ok(selection) => Ok(mesh.discard(&selection, &name_of(asker)).await),
        Err(error) => Err(error),
    })
}

async fn explain(State(mesh): State<Mesh>, body: Bytes) -> Response {
    answer(match read::<ExplainRequest>(&body) {
        Ok(request) => mesh.explain(&request).await,
        Err(error) => Err(error),
    })
}

async fn accounts(State(mesh): State<Mesh>, RawQuery(query): RawQuery) -> Response {
    let verify = QuestionQuery::of(query)
        .text("verify")
        .is_some_and(|verify| verify == "true");
    json(StatusCode::OK, &mesh.accounts(verify))
}

/// What follows the question mark.
struct QuestionQuery(String);

impl QuestionQuery {
    fn of(query: Option<String>) -> Self {
        Self(query.unwrap_or_default())
    }

    /// The part of the log that is asked about: all of it, unless somebody says less.
    fn offsets(&self) -> Range<Offset> {
        let number = |key| self.text(key).and_then(|text| text.parse().ok());
        number("from").unwrap_or(0)..number("before").unwrap_or(Offset::MAX)
    }

    /// The value of a key, unless it is empty.
    fn text(&self, key: &str) -> Option<String> {
        let mut pairs = form_urlencoded::parse(self.0.as_bytes());
        let (_, value) = pairs.find(|(found, _)| found == key)?;
        (!value.is_empty()).then(|| value.into_owned())
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(body)
        .map_err(|error| Error::Invalid(format!("the question cannot be read: {error}")))
}

fn name_of(asker: Option<Extension<Asker>>) -> String {
    asker.map_or_else(|| "somebody".to_owned(), |Extension(Asker(name))| name)
}

fn answer<T: Serialize>(result: Result<T, Error>) -> Response {
    match result {
        Ok(value) => json(StatusCode::OK, &value),
        Err(error) => refuse(&error),
    }
}

fn refuse(error: &Error) -> Response {
    let (status, code) = match error {
        Error::Invalid(_) => (StatusCode::BAD_REQUEST, "invalid-question"),
        Error::NotFound(_) => (StatusCode::NOT_FOUND, "not-found"),
        Error::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, "log-unreadable"),
    };
    let refusal = ErrorBody {
        code: code.to_owned(),
        message: error.to_string(),
        ..ErrorBody::default()
    };
    json(status, &refusal)
}

fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let kind = HeaderValue::from_static("application/json");
    match serde_json::to_vec(value) {
        Ok(text) => (status, [(header::CONTENT_TYPE, kind)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
