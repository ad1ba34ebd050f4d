//! Asking this very process, with the rights of whoever looks.
//!
//! A question is an ordinary request to an ordinary path: `curl` gets the same body. What the door found out about who looks
//! travels in the extensions, and is handed on as it is.

use std::fmt;

use axum::Router;
use axum::body::Body;
use heddle_api::ledger::ErrorBody;
use http::request::Builder;
use http::{Extensions, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tower::ServiceExt as _;

/// No answer that a page is made from is larger; what could be is asked for in parts.
const ANSWER_BYTES_MAX: usize = 32 << 20;

/// Somebody who asks.
#[derive(Clone, Debug)]
pub(crate) struct Inquirer {
    router: Router,
    extensions: Extensions,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AnswerFault {
    pub(crate) status: StatusCode,
    /// What was asked.
    pub(crate) path: String,
    pub(crate) message: String,
    /// The character of what was asked that is wrong, if it is about one.
    pub(crate) position: Option<usize>,
}

impl fmt::Display for AnswerFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Inquirer {
    pub(crate) fn new(router: Router, extensions: Extensions) -> Self {
        Self { router, extensions }
    }

    /// The body that answers a question.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, AnswerFault> {
        self.send(Request::get(path), path, Body::empty()).await
    }

    /// The same of a question with a body. It changes nothing: what does is asked by the browser itself.
    pub(crate) async fn query<T: DeserializeOwned>(
        &self,
        path: &str,
        question: &impl Serialize,
    ) -> Result<T, AnswerFault> {
        let body = serde_json::to_vec(question).unwrap_or_default();
        self.send(Request::post(path), path, Body::from(body)).await
    }

    async fn send<T: DeserializeOwned>(
        &self,
        request: Builder,
        path: &str,
        body: Body,
    ) -> Result<T, AnswerFault> {
        let fail = |status: StatusCode, message: String| AnswerFault {
            status,
            path: path.to_owned(),
            message,
            position: None,
        };
        let broken = |message: String| fail(StatusCode::INTERNAL_SERVER_ERROR, message);
        let mut request = request
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, "application/json")
            .body(body)
            .map_err(|error| fail(StatusCode::BAD_REQUEST, error.to_string()))?;
        *request.extensions_mut() = self.extensions.clone();
        let Ok(response) = self.router.clone().oneshot(request).await;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX);
        let body = body.collect().await;
        let body = body.map_err(|error| broken(format!("the answer cannot be read: {error}")))?;
        let body = body.to_bytes();
        if !status.is_success() {
            let mut refused = fail(status, refusal(status, &body));
            refused.position = position(&body);
            return Err(refused);
        }
        serde_json::from_slice(&body)
            .map_err(|error| broken(format!("the answer is not what was expected: {error}")))
    }

    /// The same, where something that is not there is an answer too.
    pub(crate) async fn find<T: DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<Option<T>, AnswerFault> {
        match self.get(path).await {
            Ok(found) => Ok(Some(found)),
            Err(refused) if refused.status == StatusCode::NOT_FOUND => Ok(None),
            Err(refused) => Err(refused),
        }
    }
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
