//! Asking this very process, with the rights of whoever looks.
//!
//! A question is an ordinary request to an ordinary path: `curl` gets the same body. What the door found out about who looks
//! travels in the extensions, and is handed on as it is.

use std::fmt;

use axum::Router;
use axum::body::{Body, Bytes};
use heddle_api::ledger::ErrorBody;
use http::{Extensions, Request, StatusCode, header, request};
use http_body_util::{BodyExt as _, Limited};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tower::ServiceExt as _;

/// No answer that a page is made from is larger; what could be is asked for in parts.
const ANSWER_BYTES_MAX: usize = 32 << 20;

/// Somebody who asks.
#[derive(Clone, Debug)]
pub struct Inquirer {
    router: Router,
    extensions: Extensions,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerFault {
    pub status: StatusCode,
    /// What was asked.
    pub path: String,
    /// For people.
    pub message: String,
    /// The character of what was asked that is wrong, if it is about one.
    pub position: Option<usize>,
}

impl fmt::Display for AnswerFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Inquirer {
    /// `extensions` say who asks, as the door does: an `Access` at least.
    #[must_use]
    pub fn new(router: Router, extensions: Extensions) -> Self {
        Self { router, extensions }
    }

    /// The body that answers a question.
    ///
    /// # Errors
    /// The refusal, or an answer that cannot be read.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, AnswerFault> {
        self.ask(Request::get(path), path, Body::empty()).await
    }

    /// The same, of a question that has a body. A page is looked at and changes nothing, so it is a question all the same.
    pub(crate) async fn query<T: DeserializeOwned>(
        &self,
        path: &str,
        question: &impl Serialize,
    ) -> Result<T, AnswerFault> {
        let body = serde_json::to_vec(question).unwrap_or_default();
        let request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
        self.ask(request, path, Body::from(body)).await
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        request: request::Builder,
        path: &str,
        body: Body,
    ) -> Result<T, AnswerFault> {
        let body = self.body(request, path, body).await?;
        serde_json::from_slice(&body).map_err(|error| AnswerFault {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            path: path.to_owned(),
            message: format!("the answer is not what was expected: {error}"),
            position: None,
        })
    }

    async fn body(
        &self,
        request: request::Builder,
        path: &str,
        body: Body,
    ) -> Result<Bytes, AnswerFault> {
        let fail = |status: StatusCode, message: String| AnswerFault {
            status,
            path: path.to_owned(),
            message,
            position: None,
        };
        let mut request = request
            .header(header::ACCEPT, "application/json")
            .body(body)
            .map_err(|error| fail(StatusCode::BAD_REQUEST, error.to_string()))?;
        *request.extensions_mut() = self.extensions.clone();
        let Ok(response) = self.router.clone().oneshot(request).await;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX);
        let body = body.collect().await.map_err(|error| {
            let message = format!("the answer cannot be read: {error}");
            fail(StatusCode::INTERNAL_SERVER_ERROR, message)
        })?;
        let body = body.to_bytes();
        match status.is_success() {
            true => Ok(body),
            false => Err(AnswerFault {
                position: position(&body),
                ..fail(status, refusal(status, &body))
            }),
        }
    }

    /// The body that answers a question, as it was written: to read it would round its numbers.
    pub(crate) async fn text(&self, path: &str) -> Result<String, AnswerFault> {
        let body = self.body(Request::get(path), path, Body::empty()).await?;
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    /// The same, where something that is not there is an answer too; so is what whoever asks may not see.
    ///
    /// # Errors
    /// Any other refusal.
    pub async fn find<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, AnswerFault> {
        match self.get(path).await {
            Ok(found) => Ok(Some(found)),
            Err(refused) if is_hidden(refused.status) => Ok(None),
            Err(refused) => Err(refused),
        }
    }
}

fn is_hidden(status: StatusCode) -> bool {
    matches!(status, StatusCode::NOT_FOUND | StatusCode::FORBIDDEN)
}

fn position(body: &[u8]) -> Option<usize> {
    let body: ErrorBody = serde_json::from_slice(body).ok()?;
    usize::try_from(body.details.get("position")?.as_u64()?).ok()
}

/// What a refusal says: ours and those of the resource API have the same field for it.
fn refusal(status: StatusCode, body: &[u8]) -> String {
    let ours = serde_json::from_slice::<ErrorBody>(body).map(|body| body.message);
    let theirs = || {
        let status = serde_json::from_slice::<Value>(body).ok()?;
        status["message"].as_str().map(str::to_owned)
    };
    let message = ours.ok().or_else(theirs);
    message.unwrap_or_else(|| format!("the server answered {status}"))
}
