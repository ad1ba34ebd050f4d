//! The questions people and programs ask about events, over HTTP, below `/heddle/v1/`.
//!
//! ```text
//!   GET  trace?id=[&source=][&from=&before=]   where is my event
//!   …    dead-letters…                         what rests, and what becomes of it (`dead_letters`)
//!   POST explain                               what would this filter have done
//!   GET  accounts[?verify=true][&consumer=]    is every event accounted for
//!   POST publish                               an event by hand (`questions/publish.rs`)
//!   POST subscribers/try                       would this subscriber be reached (`questions/subscribers.rs`)
//!   GET  types                                 which types of events there are (`questions/types.rs`)
//!   GET  events…                               which events are there (`questions/events.rs`)
//! ```
//! Whatever reads the log is done aside (`aside.rs`), and `?ask=NAME` gives up the asker's older question of this name.
//! Who asks is told apart before and travels as the extension [`Access`]: everybody is answered as far as they may know, and what
//! is done is done in their name. Bodies are `heddle_api::ledger`.

mod dead_letters;
mod events;
mod publish;
mod subscribers;
mod types;
mod within;

use std::future::Future;
use std::ops::Range;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Extension, RawQuery, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use heddle_api::access::{Access, Right, namespace_of};
use heddle_api::ledger::{ErrorBody, ExplainRequest};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::aside::AsideError;
use crate::ledger::Error;
use crate::log::Offset;
use crate::mesh::Mesh;

/// The longest question.
const QUESTION_BYTES_MAX: usize = 256 << 10;

/// Dead letters on one page when nobody says how many.
const PAGE: usize = 100;

/// Whoever asks, and what they may do; nobody comes this far without.
type AskedBy = Extension<Access>;

/// The router, without the prefix.
pub fn router(mesh: Mesh) -> Router {
    Router::new()
        .route("/trace", get(trace))
        .merge(dead_letters::routes())
        .route("/explain", post(explain))
        .route("/accounts", get(accounts))
        .route("/publish", post(publish::publish))
        .route("/subscribers/try", post(subscribers::try_one))
        .route("/types", get(types::list))
        .merge(events::router())
        .layer(axum::extract::DefaultBodyLimit::max(QUESTION_BYTES_MAX))
        .with_state(mesh)
}

async fn trace(
    State(mesh): State<Mesh>,
    Extension(access): AskedBy,
    RawQuery(query): RawQuery,
) -> Response {
    let query = QuestionQuery::of(query);
    let Some(id) = query.text("id") else {
        return refuse(&Error::Invalid(
            "say which event: ?id=…, and &source=… if you know it".to_owned(),
        ));
    };
    let tracing = async {
        // What just happened is on its way to the journal; the answer should have it.
        mesh.settled().await;
        let found = match query.text("source") {
            Some(source) => mesh.aside(move |mesh| mesh.trace(&id, &source)).await?,
            None => mesh.trace_by_id(&id, query.offsets()).await?,
        };
        Ok(within::trace(found, &access))
    };
    answer(asked(&mesh, &access, &query, tracing).await)
}

async fn explain(
    State(mesh): State<Mesh>,
    Extension(access): AskedBy,
    RawQuery(query): RawQuery,
    body: Bytes,
) -> Response {
    let query = QuestionQuery::of(query);
    let request = read::<ExplainRequest>(&body).and_then(|request| {
        within::check(&access, Right::Look, namespace_of(&request.entry))?;
        Ok(request)
    });
    answer(match request {
        Ok(request) => asked(&mesh, &access, &query, mesh.explain(&request)).await,
        Err(error) => Err(error),
    })
}

async fn accounts(
    State(mesh): State<Mesh>,
    Extension(access): AskedBy,
    RawQuery(query): RawQuery,
) -> Response {
    let query = QuestionQuery::of(query);
    let verify = query.text("verify").is_some_and(|verify| verify == "true");
    let consumer = query.text("consumer");
    let counting = mesh.aside(move |mesh| {
        Ok(match consumer {
            Some(consumer) => mesh.account_of(&consumer),
            None => mesh.accounts(verify),
        })
    });
    let counted = asked(&mesh, &access, &query, counting).await;
    answer(counted.map(|accounts| within::accounts(accounts, &access)))
}

/// Answers within the bounds of questions: as many as there may be, and the newest of those with a name.
async fn asked<T>(
    mesh: &Mesh,
    access: &Access,
    query: &QuestionQuery,
    answer: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let name = query.text("ask");
    let mut place = mesh.shared.aside.enter(&access.user, name.as_deref())?;
    tokio::select! {
        biased;
        answer = answer => answer,
        () = place.superseded() => Err(AsideError::Superseded.into()),
    }
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

fn answer<T: Serialize>(result: Result<T, Error>) -> Response {
    match result {
        Ok(value) => json(StatusCode::OK, &value),
        Err(error) => refuse(&error),
    }
}

fn refuse(error: &Error) -> Response {
    let (status, code) = match error {
        Error::Invalid(_) => (StatusCode::BAD_REQUEST, "invalid-question"),
        Error::Query(_) => (StatusCode::BAD_REQUEST, "invalid-query"),
        Error::Filter { .. } => (StatusCode::BAD_REQUEST, "invalid-filter"),
        Error::NotFound(_) => (StatusCode::NOT_FOUND, "not-found"),
        Error::Forbidden(_) => (StatusCode::FORBIDDEN, "forbidden"),
        Error::Conflict(_) => (StatusCode::CONFLICT, "conflict"),
        Error::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, "log-unreadable"),
        Error::Aside(AsideError::Busy) => (StatusCode::TOO_MANY_REQUESTS, "too-many-questions"),
        Error::Aside(AsideError::Superseded) => (StatusCode::CONFLICT, "superseded"),
        Error::Aside(AsideError::Closed) => (StatusCode::SERVICE_UNAVAILABLE, "closing"),
    };
    let position = match error {
        Error::Query(fault) => Some(fault.position),
        Error::Filter { position, .. } => *position,
        _ => None,
    };
    let mut refusal = ErrorBody {
        code: code.to_owned(),
        message: error.to_string(),
        ..ErrorBody::default()
    };
    if let Some(position) = position {
        // Of the query or of the expression, counted in characters from 0.
        refusal
            .details
            .insert("position".to_owned(), position.into());
    }
    json(status, &refusal)
}

fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let kind = HeaderValue::from_static("application/json");
    match serde_json::to_vec(value) {
        Ok(text) => (status, [(header::CONTENT_TYPE, kind)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
