//! A stand-in for the server, for tests: answers what it was told, remembers what it was asked.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use heddle_rt::net::{self, Door};
use heddle_rt::{Clock, OnError, Tasks};
use http::{HeaderMap, Method, StatusCode, Uri};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::Remote;

/// One request, as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// `POST /shop/events?x=y`.
    pub(crate) line: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Asked {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).map(|value| value.to_str().unwrap());
        value.unwrap_or_default()
    }
}

/// What to answer to `METHOD /path`: the answers in turn, the last one for ever.
#[derive(Debug, Default)]
struct Script {
    answers: HashMap<String, Vec<(StatusCode, String)>>,
    asked: Vec<Asked>,
}

/// The server and its script. Dropping it ends the server.
#[derive(Debug)]
pub(crate) struct StandIn {
    script: Arc<Mutex<Script>>,
    pub(crate) url: String,
    tasks: Tasks,
}

impl StandIn {
    pub(crate) async fn start() -> Self {
        let script: Arc<Mutex<Script>> = Arc::default();
        let listener = net::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        let url = format!("http://{}", listener.address());
        let door = Door {
            clock: Clock::system(),
            tls: None,
            plain_on_loopback: true,
            limits: net::Limits::default(),
            budget: heddle_rt::Budget::default(),
        };
        let router = Router::new().fallback(answer).with_state(script.clone());
        let tasks = Tasks::new("stand-in");
        let closing = tasks.cancellation();
        tasks.spawn(
            "door",
            OnError::Report,
            net::serve(listener, door, router, closing),
        );
        Self { script, url, tasks }
    }

    /// Adds the next answer to `METHOD /path`, whatever its query.
    pub(crate) fn answers(&self, line: &str, code: u16, body: &Value) -> &Self {
        self.answers_text(line, code, &body.to_string())
    }

    /// The same with a body that is not JSON.
    pub(crate) fn answers_text(&self, line: &str, code: u16, body: &str) -> &Self {
        let code = StatusCode::from_u16(code).unwrap();
        let mut script = self.script.lock();
        let answers = script.answers.entry(line.to_owned()).or_default();
        answers.push((code, body.to_owned()));
        self
    }

    pub(crate) fn remote(&self) -> Remote {
        Remote::anonymous(self.url.parse().unwrap(), self.url.clone()).unwrap()
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.script.lock().asked.clone()
    }

    /// The request lines, in order.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.line).collect()
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

async fn answer(
    State(script): State<Arc<Mutex<Script>>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mut script = script.lock();
    script.asked.push(Asked {
        line: format!("{method} {uri}"),
        headers,
        body,
    });
    let Some(answers) = script.answers.get_mut(&format!("{method} {}", uri.path())) else {
        let status = json!({"kind": "Status", "message": format!("nothing is served at {uri}")});
        return (StatusCode::NOT_FOUND, status.to_string()).into_response();
    };
    let answer = if answers.len() > 1 {
        answers.remove(0)
    } else {
        answers[0].clone()
    };
    answer.into_response()
}
