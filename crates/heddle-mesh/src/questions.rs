//! The questions people and programs ask about events, over HTTP, below `/heddle/v1/`.
//!
//! ```text
//!   GET  trace?id=[&source=][&from=&before=]   where is my event
//!   …    dead-letters…                         what rests, and what becomes of it (`dead_letters`)
//!   POST explain                               what would this filter have done
//!   POST what-if                               what would this change have done
//!   GET  silence?consumer=[&since=][&until=]   why did nothing arrive (`questions/silence.rs`)
//!   GET  delays?by=[&q=][&since=]…            how long did events take (`questions/delays.rs`)
//!   GET  accounts[?depth=][&consumer=]         is every event accounted for; `tallied` reads nothing, `verified` everything
//!   POST publish                               an event by hand (`questions/publish.rs`)
//!   POST subscribers/try                       would this subscriber be reached (`questions/subscribers.rs`)
//!   GET  types                                 which types of events there are (`questions/types.rs`)
//!   GET  events…                               which events are there (`questions/events.rs`)
//!   POST events/{offset}/republish             one of them once more, as a new event (`questions/republish.rs`)
//!   POST events/resend                         many of them once more, to one consumer (`questions/resend.rs`)
//! ```
//! Whatever reads the log is done aside (`aside.rs`), and `?ask=NAME` gives up the asker's older question of this name.
//! Who asks is told apart before and travels as the extension [`Access`]: everybody is answered as far as they may know, and what
//! is done is done in their name. Bodies are `heddle_api::ledger`.

mod dead_letters;
mod delays;
mod events;
mod publish;
mod republish;
mod resend;
mod silence;
mod subscribers;
mod types;

use std::future::Future;
use std::ops::Range;
use std::str::FromStr;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Extension, RawQuery, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use heddle_api::access::{Access, Right, namespace_of};
use heddle_api::audit::ChangeNote;
use heddle_api::ledger::{ErrorBody, ExplainRequest};
use heddle_api::what_if::WhatIfRequest;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::aside::AsideError;
use crate::ledger::{Depth, Error, what_if};
use crate::log::Offset;
use crate::mesh::Mesh;

/// The longest question, and the longest with manifests.
const QUESTION_BYTES_MAX: usize = 256 << 10;
const MANIFEST_BYTES_MAX: usize = 8 << 20;

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
        .route(
            "/what-if",
            post(what_if).layer(DefaultBodyLimit::max(MANIFEST_BYTES_MAX)),
        )
        .route("/silence", get(silence::explain))
        .route("/delays", get(delays::show))
        .route("/accounts", get(accounts))
        .route("/publish", post(publish::publish))
        .route("/subscribers/try", post(subscribers::try_one))
        .route("/types", get(types::list))
        .merge(events::router())
        .merge(republish::routes())
        .merge(resend::routes())
        .layer(DefaultBodyLimit::max(QUESTION_BYTES_MAX))
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
        let (source, visible) = (query.text("source"), mesh.visible_to(&access));
        mesh.trace_for(&id, source.as_deref(), query.offsets()?, &visible)
            .await
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
        check(&access, Right::Look, namespace_of(&request.entry))?;
        Ok(request)
    });
    answer(match request {
        Ok(request) => {
            let visible = mesh.visible_to(&access);
            asked(&mesh, &access, &query, mesh.explain(&request, &visible)).await
        }
        Err(error) => Err(error),
    })
}

/// Whoever may make the change may know what it would do.
async fn what_if(
    State(mesh): State<Mesh>,
    Extension(access): AskedBy,
    RawQuery(query): RawQuery,
    body: Bytes,
) -> Response {
    let query = QuestionQuery::of(query);
    let request = read::<WhatIfRequest>(&body).and_then(|request| {
        for object in what_if::objects(&request)? {
            let right = match &*object.kind {
                "Trigger" => Right::Operate,
                _ => Right::Administer,
            };
            check(&access, right, Some(&object.namespace))?;
        }
        Ok(request)
    });
    answer(match request {
        Ok(request) => {
            let visible = mesh.visible_to(&access);
            asked(&mesh, &access, &query, mesh.what_if(request, &visible)).await
        }
        Err(error) => Err(error),
    })
}

async fn accounts(
    State(mesh): State<Mesh>,
    Extension(access): AskedBy,
    RawQuery(query): RawQuery,
) -> Response {
    let query = QuestionQuery::of(query);
    let consumer = query.text("consumer");
    answer(match accounts_depth(&query, &access) {
        Ok(depth) => {
            let counting = mesh.accounts_for(&access, consumer.as_deref(), depth);
            asked(&mesh, &access, &query, counting).await
        }
        Err(error) => Err(error),
    })
}

/// How much is read for the accounts. All of every backlog is for those who look after the whole.
fn accounts_depth(query: &QuestionQuery, access: &Access) -> Result<Depth, Error> {
    let verify = query.text("verify").is_some_and(|verify| verify == "true");
    let depth = match query.text("depth") {
        _ if verify => Depth::Verified,
        None => Depth::Counted,
        Some(word) => Depth::read(&word)
            .ok_or_else(|| Error::Invalid("depth is tallied, counted or verified".to_owned()))?,
    };
    match depth == Depth::Verified && !access.has(Right::Administer) {
        true => Err(Error::Forbidden(access.refusal(Right::Administer, None))),
        false => Ok(depth),
    }
}

/// Whether somebody may do something in a namespace.
fn check(access: &Access, right: Right, namespace: Option<&str>) -> Result<(), Error> {
    match access.may(right, namespace) {
        true => Ok(()),
        false => Err(Error::Forbidden(access.refusal(right, namespace))),
    }
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
    fn offsets(&self) -> Result<Range<Offset>, Error> {
        let (from, before) = (self.number("from")?, self.number("before")?);
        Ok(from.unwrap_or(0)..before.unwrap_or(Offset::MAX))
    }

    /// The number that a key has, if it has one. Anything else is no number that somebody meant.
    fn number<T: FromStr>(&self, key: &str) -> Result<Option<T>, Error> {
        let Some(text) = self.text(key) else {
            return Ok(None);
        };
        let number = text.parse().map(Some);
        number.map_err(|_| Error::Invalid(format!("{key} is a whole number, as answers have it")))
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
    let mut response = json(status, &refusal);
    response.extensions_mut().insert(ChangeNote {
        reason: Some(code.into()),
        ..ChangeNote::default()
    });
    response
}

/// Tells the log of changes what a request was about. Why it was refused, if it was, stays.
fn noted(mut response: Response, note: ChangeNote) -> Response {
    let extensions = response.extensions_mut();
    let refused = extensions.remove::<ChangeNote>();
    extensions.insert(ChangeNote {
        reason: refused.and_then(|refused| refused.reason),
        ..note
    });
    response
}

fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let kind = HeaderValue::from_static("application/json");
    match serde_json::to_vec(value) {
        Ok(text) => (status, [(header::CONTENT_TYPE, kind)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
