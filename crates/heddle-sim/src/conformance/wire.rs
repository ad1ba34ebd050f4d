//! Requests and answers as they are on the wire, and the refusals in them.
//!
//! Checks use this where a typed client would hide what matters: status codes, headers, unknown fields, the frames of a
//! watch. Everything goes through the same [`Client`], hence through the same authentication and transport.

use anyhow::{Context as _, Result, bail, ensure};
use futures::stream::BoxStream;
use futures::{AsyncBufReadExt as _, StreamExt as _};
use http::header::{ACCEPT, CONTENT_TYPE, WARNING};
use http::{HeaderMap, Method, Request};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use kube::core::Status;
use serde_json::Value;

use super::PATIENCE;

/// Content types of patches.
pub(super) const MERGE: &str = "application/merge-patch+json";
pub(super) const JSON_PATCH: &str = "application/json-patch+json";
pub(super) const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub(super) const APPLY: &str = "application/apply-patch+yaml";

/// What lists and watches that people read are asked for in.
pub(super) const AS_TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

/// An answer, whatever its code.
#[derive(Debug)]
pub(super) struct WireResponse {
    pub(super) code: u16,
    pub(super) headers: HeaderMap,
    /// The body, or a string of it where it is no JSON.
    pub(super) body: Value,
}

impl WireResponse {
    /// The body, if the code is this one.
    pub(super) fn accepted(self, code: u16) -> Result<Value> {
        ensure!(
            self.code == code,
            "answered {} {}, expected {code}",
            self.code,
            self.body
        );
        Ok(self.body)
    }

    /// The refusal, if it is one with this code and reason whose message contains this fragment.
    pub(super) fn refused(self, code: u16, reason: &str, fragment: &str) -> Result<Status> {
        let status: Status = serde_json::from_value(self.body.clone())
            .ok()
            .filter(|_| self.body["kind"] == "Status")
            .with_context(|| format!("answered {} {}, not a Status", self.code, self.body))?;
        ensure!(
            self.code == status.code && self.body["status"] == "Failure",
            "the code {} and the body {} do not agree",
            self.code,
            self.body
        );
        matching(status, code, reason, fragment)
    }

    /// The texts of the warnings sent along.
    pub(super) fn warnings(&self) -> Result<Vec<String>> {
        self.headers
            .get_all(WARNING)
            .iter()
            .map(|value| {
                let text = value.to_str()?;
                let quoted = text
                    .strip_prefix("299 - \"")
                    .and_then(|rest| rest.strip_suffix('"'))
                    .with_context(|| format!("unusual warning {text:?}"))?;
                Ok(quoted.replace("\\\"", "\""))
            })
            .collect()
    }
}

/// The refusal in a client's result, if it is one with this code and reason whose message contains this fragment.
pub(super) fn refused<T>(
    result: kube::Result<T>,
    code: u16,
    reason: &str,
    fragment: &str,
) -> Result<Status> {
    match result {
        Err(kube::Error::Api(status)) => matching(*status, code, reason, fragment),
        Err(error) => Err(error).context("expected a refusal by the server"),
        Ok(_) => bail!("accepted, expected {code} {reason} {fragment:?}"),
    }
}

fn matching(status: Status, code: u16, reason: &str, fragment: &str) -> Result<Status> {
    ensure!(
        status.code == code && status.reason == reason && status.message.contains(fragment),
        "refused with {} {} {:?}, expected {code} {reason} {fragment:?}",
        status.code,
        status.reason,
        status.message
    );
    Ok(status)
}

/// Sends a request and takes the answer as it is.
pub(super) async fn call(
    client: &Client,
    method: Method,
    path: &str,
    headers: &[(http::HeaderName, &str)],
    body: impl Into<Vec<u8>>,
) -> Result<WireResponse> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(name, *value);
    }
    let request = request.body(Body::from(body.into()))?;
    let answer = tokio::time::timeout(PATIENCE, async {
        let (parts, body) = client.send(request).await?.into_parts();
        anyhow::Ok((parts, body.collect().await?.to_bytes()))
    });
    let (parts, bytes) = answer
        .await
        .with_context(|| format!("no answer from {path}"))??;
    Ok(WireResponse {
        code: parts.status.as_u16(),
        headers: parts.headers,
        body: serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| Value::from(String::from_utf8_lossy(&bytes))),
    })
}

pub(super) async fn get(client: &Client, path: &str) -> Result<WireResponse> {
    call(client, Method::GET, path, &[], "").await
}

pub(super) async fn get_as(client: &Client, path: &str, accept: &str) -> Result<WireResponse> {
    call(client, Method::GET, path, &[(ACCEPT, accept)], "").await
}

pub(super) async fn post(client: &Client, path: &str, body: &Value) -> Result<WireResponse> {
    write(client, Method::POST, path, "application/json", body).await
}

pub(super) async fn put(client: &Client, path: &str, body: &Value) -> Result<WireResponse> {
    write(client, Method::PUT, path, "application/json", body).await
}

pub(super) async fn delete(client: &Client, path: &str, options: &Value) -> Result<WireResponse> {
    write(client, Method::DELETE, path, "application/json", options).await
}

pub(super) async fn patch(
    client: &Client,
    path: &str,
    content_type: &str,
    body: &Value,
) -> Result<WireResponse> {
    write(client, Method::PATCH, path, content_type, body).await
}

async fn write(
    client: &Client,
    method: Method,
    path: &str,
    content_type: &str,
    body: &Value,
) -> Result<WireResponse> {
    let headers = [(CONTENT_TYPE, content_type)];
    call(client, method, path, &headers, body.to_string()).await
}

/// One frame of a watch.
#[derive(Debug)]
pub(super) struct Frame {
    /// `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR`.
    pub(super) kind: String,
    pub(super) object: Value,
}

impl Frame {
    /// The name of the object, for comparing sequences at a glance.
    pub(super) fn brief(&self) -> (&str, &str) {
        (
            self.kind.as_str(),
            self.object["metadata"]["name"].as_str().unwrap_or_default(),
        )
    }

    /// The version that a watch could resume from.
    pub(super) fn version(&self) -> Result<u64> {
        version(&self.object)
    }
}

/// The resource version of an object or a list. heddle's clients never compare versions, the checks of order must.
pub(super) fn version(object: &Value) -> Result<u64> {
    object["metadata"]["resourceVersion"]
        .as_str()
        .and_then(|text| text.parse().ok())
        .with_context(|| format!("no resource version in {object}"))
}

/// An open watch.
pub(super) struct Watch {
    lines: BoxStream<'static, std::io::Result<String>>,
}

impl Watch {
    /// Opens a watch; `path` is a collection, `query` what follows `watch=true`.
    pub(super) async fn open(client: &Client, path: &str, query: &str) -> Result<Self> {
        Self::open_as(client, path, query, "application/json").await
    }

    pub(super) async fn open_as(
        client: &Client,
        path: &str,
        query: &str,
        accept: &str,
    ) -> Result<Self> {
        let request = Request::get(format!("{path}?watch=true&{query}"))
            .header(ACCEPT, accept)
            .body(Vec::new())?;
        let stream = tokio::time::timeout(PATIENCE, client.request_stream(request))
            .await
            .context("the watch was not opened")??;
        Ok(Self {
            lines: stream.lines().boxed(),
        })
    }

    /// The next frame; a stream that ends instead is an error.
    pub(super) async fn next(&mut self) -> Result<Frame> {
        self.frame()
            .await?
            .context("the watch ended where a frame was expected")
    }

    /// The next frame, if the stream does not end.
    pub(super) async fn frame(&mut self) -> Result<Option<Frame>> {
        let line = tokio::time::timeout(PATIENCE, self.lines.next())
            .await
            .context("the watch stays silent")?;
        let Some(line) = line else { return Ok(None) };
        let mut frame: Value = serde_json::from_str(&line?)?;
        Ok(Some(Frame {
            kind: frame["type"].as_str().unwrap_or_default().to_owned(),
            object: frame["object"].take(),
        }))
    }
}
