//! Requests to a broker, as right or as wrong as a rule wants them.

use std::io::Read as _;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use base64::Engine as _;
use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use futures::future::BoxFuture;
use heddle_rt::Clock;
use heddle_rt::net::percent_encoded;
use http::{HeaderMap, Request, Response};
use serde_json::{Value, json};

use crate::Settings;

/// Platforms wait so long for an answer and no longer; so the specification advises them.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

pub(crate) const VERSION_HEADER: &str = "X-Broker-API-Version";
pub(crate) const IDENTITY_HEADER: &str = "X-Broker-API-Originating-Identity";
pub(crate) const REQUEST_HEADER: &str = "X-Broker-API-Request-Identity";

/// The way to a broker.
pub trait Transport: std::fmt::Debug + Send + Sync {
    /// Sends a request once, and hands out the whole answer whatever its status. The target begins with `/v2`; what comes
    /// before it is the transport's to know.
    fn send(
        &self,
        request: Request<Vec<u8>>,
    ) -> BoxFuture<'_, Result<Response<Bytes>, Unreachable>>;
}

/// Nothing answered, or the answer broke off. The text says where, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreachable(pub String);

/// The broker under test.
#[derive(Debug)]
pub(crate) struct Broker {
    transport: Box<dyn Transport>,
    clock: Clock,
    authorization: String,
}

/// One request, not sent yet.
#[derive(Debug, Clone)]
pub(crate) struct BrokerRequest<'a> {
    broker: &'a Broker,
    method: &'static str,
    path: String,
    query: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

/// One answer.
#[derive(Debug, Clone)]
pub(crate) struct BrokerResponse {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    /// `Null` when it is no JSON.
    pub(crate) body: Value,
    pub(crate) raw: Vec<u8>,
    asked: String,
}

impl Broker {
    pub(crate) fn new(transport: Box<dyn Transport>, clock: Clock, settings: &Settings) -> Self {
        let pair = format!("{}:{}", settings.username, settings.password);
        let token = base64::engine::general_purpose::STANDARD.encode(pair);
        Self {
            transport,
            clock,
            authorization: format!("Basic {token}"),
        }
    }

    /// A request as a good platform sends it: with credentials and a version.
    pub(crate) fn call(&self, method: &'static str, path: &str) -> BrokerRequest<'_> {
        BrokerRequest {
            broker: self,
            method,
            path: path.to_owned(),
            query: Vec::new(),
            headers: Vec::new(),
            body: Vec::new(),
        }
        .header("Authorization", &self.authorization)
        .header(VERSION_HEADER, "2.17")
    }

    async fn answer(
        &self,
        asked: &str,
        request: Request<Vec<u8>>,
    ) -> Result<Response<Bytes>, Unreachable> {
        let answer = self.transport.send(request);
        match self.clock.timeout(ANSWER_WITHIN, answer).await {
            Ok(answer) => answer,
            Err(_) => Err(Unreachable(format!(
                "no answer to {asked} within {} s",
                ANSWER_WITHIN.as_secs()
            ))),
        }
    }
}

impl BrokerRequest<'_> {
    /// Sets a header, in place of what was there.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self = self.without(name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    pub(crate) fn version(self, version: &str) -> Self {
        self.header(VERSION_HEADER, version)
    }

    pub(crate) fn query(mut self, name: &str, value: &str) -> Self {
        self.query.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The platform agrees to ask again.
    pub(crate) fn patient(self) -> Self {
        self.query("accepts_incomplete", "true")
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.text("application/json", &body.to_string())
    }

    pub(crate) fn text(mut self, media_type: &str, body: &str) -> Self {
        self.body = body.as_bytes().to_vec();
        match media_type {
            "" => self.without("Content-Type"),
            media_type => self.header("Content-Type", media_type),
        }
    }

    /// Sends it, and fails unless the answer has one of these states; see [`BrokerResponse::is`].
    pub(crate) async fn gets(self, expected: &[u16]) -> Result<BrokerResponse> {
        self.send().await?.is(expected)
    }

    pub(crate) async fn send(self) -> Result<BrokerResponse> {
        let mut target = format!("/v2{}", self.path);
        for (index, (name, value)) in self.query.iter().enumerate() {
            target.push(if index == 0 { '?' } else { '&' });
            target.push_str(&format!("{name}={}", percent_encoded(value)));
        }
        let asked = format!("{} {target}", self.method);
        let mut request = Request::builder().method(self.method).uri(target);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let answer = self.broker.answer(&asked, request.body(self.body)?).await?;
        let raw = decoded(&answer).with_context(|| format!("cannot read the answer to {asked}"))?;
        Ok(BrokerResponse {
            status: answer.status().as_u16(),
            headers: answer.headers().clone(),
            body: serde_json::from_slice(&raw).unwrap_or_default(),
            raw,
            asked,
        })
    }
}

/// A compressed body grows to so many bytes at most: a broker that is asked need not be a friend.
const BODY_BYTES_MAX: u64 = 256 << 20;

/// The body without its coding. Compressed bodies come only to those who asked for them.
fn decoded(answer: &Response<Bytes>) -> Result<Vec<u8>> {
    let coding = answer.headers().get(http::header::CONTENT_ENCODING);
    match coding {
        None => Ok(answer.body().to_vec()),
        Some(coding) if coding == "gzip" => {
            let mut raw = Vec::new();
            let decoder = MultiGzDecoder::new(&answer.body()[..]);
            decoder.take(BODY_BYTES_MAX + 1).read_to_end(&mut raw)?;
            ensure!(
                raw.len() as u64 <= BODY_BYTES_MAX,
                "it grows beyond {BODY_BYTES_MAX} bytes"
            );
            Ok(raw)
        }
        Some(coding) => bail!("nobody asked for the coding {coding:?}"),
    }
}

impl BrokerResponse {
    /// Fails unless the answer has one of these states, and is well formed whatever it says.
    pub(crate) fn is(self, expected: &[u16]) -> Result<Self> {
        self.is_well_formed()?;
        ensure!(
            expected.contains(&self.status),
            "{} answered {} with {}, expected {expected:?}",
            self.asked,
            self.status,
            self.shown()
        );
        Ok(self)
    }

    /// An answer to the same request again: where both were accepted, it is the same operation.
    pub(crate) fn is_operation_of(&self, first: &Self) -> Result<()> {
        if first.status == 202 && self.status == 202 {
            let (first, again) = (first.text("operation"), self.text("operation"));
            ensure!(first == again, "the operation {first} became {again}");
        }
        Ok(())
    }

    /// The answer is a refusal with one of the words that the specification reserves.
    pub(crate) fn refuses(self, word: &str) -> Result<()> {
        let got = self.is(&[422])?;
        ensure!(
            got.body["error"] == word,
            "{} refuses with {}, expected the word {word}",
            got.asked,
            got.body
        );
        Ok(())
    }

    /// The body as it may be written down: a report is read by more people than may use a binding.
    pub(crate) fn shown(&self) -> Value {
        let mut body = self.body.clone();
        if let Some(credentials) = body.get_mut("credentials") {
            *credentials = json!("(hidden)");
        }
        body
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default()
    }

    pub(crate) fn text(&self, field: &str) -> &str {
        self.body[field].as_str().unwrap_or_default()
    }

    /// What holds for every answer: JSON objects that say so, no redirects, errors in words, and no `null` where old
    /// platforms expect nothing or a string.
    fn is_well_formed(&self) -> Result<()> {
        let asked = &self.asked;
        if self.status == 304 {
            return Ok(());
        }
        ensure!(!(300..400).contains(&self.status), "{asked} redirects");
        ensure!(
            self.status < 500,
            "{asked} answered {}: {}",
            self.status,
            self.body
        );
        let Value::Object(body) = &self.body else {
            bail!(
                "{asked} answered {} with a body that is no JSON object: {:?}",
                self.status,
                String::from_utf8_lossy(&self.raw)
            );
        };
        ensure!(
            self.header("content-type").starts_with("application/json"),
            "{asked} answers as {:?}",
            self.header("content-type")
        );
        for field in [
            "operation",
            "dashboard_url",
            "credentials",
            "description",
            "error",
        ] {
            ensure!(
                body.get(field) != Some(&Value::Null),
                "{asked} answers {field}: null"
            );
        }
        if self.status >= 400 && self.status != 410 {
            let word = self.text("error");
            ensure!(
                body.get("error").is_none()
                    || (word.starts_with(|c: char| c.is_ascii_uppercase())
                        && word.chars().all(|c| c.is_ascii_alphanumeric())),
                "{asked}: the error {word:?} is no single word"
            );
            ensure!(
                !self.text("description").is_empty(),
                "{asked}: {} does not say what is wrong",
                self.body
            );
        }
        let states = ["in progress", "succeeded", "failed"];
        if asked.contains("/last_operation") && self.status == 200 {
            ensure!(
                states.contains(&self.text("state")),
                "{asked} answered {}",
                self.body
            );
            ensure!(
                body.get("description") != Some(&Value::from("")),
                "{asked}: an empty description"
            );
        }
        Ok(())
    }
}
