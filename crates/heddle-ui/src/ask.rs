//! Asking this very process, with the rights of whoever looks.
//!
//! A question is an ordinary request to an ordinary path: `curl` gets the same body. What the door found out about who looks
//! travels in the extensions, and is handed on as it is.

use std::fmt;

use axum::Router;
use axum::body::Body;
use heddle_api::ledger::ErrorBody;
use http::{Extensions, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
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
        let fail = |status: StatusCode, message: String| AnswerFault {
            status,
            path: path.to_owned(),
            message,
        };
        let broken = |message: String| fail(StatusCode::INTERNAL_SERVER_ERROR, message);
        let mut request = Request::get(path)
            .header(header::ACCEPT, "application/json")
            .body(Body::empty())
            .map_err(|error| fail(StatusCode::BAD_REQUEST, error.to_string()))?;
        *request.extensions_mut() = self.extensions.clone();
        let Ok(response) = self.router.clone().oneshot(request).await;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX);
        let body = body.collect().await;
        let body = body.map_err(|error| broken(format!("the answer cannot be read: {error}")))?;
        let body = body.to_bytes();
        if !status.is_success() {
            return Err(fail(status, refusal(status, &body)));
        }
        serde_json::from_slice(&body)
            .map_err(|error| broken(format!("the answer is not what was expected: {error}")))
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
