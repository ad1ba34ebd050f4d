//! The one place where a refusal becomes a Kubernetes `Status`.
//!
//! Clients branch on `reason`, people read `message`, tools look into `details.causes`; all three follow the
//! texts of kube-apiserver, because kube-rs, client-go and kubectl match on them. A refusal never carries
//! anything the caller did not send or may not see: no path of this machine, no token, no stack.

use std::fmt;

use http::StatusCode;
use serde_json::{Value, json};

use crate::registry::Resource;
use crate::schema::Cause;

/// Why a request was not carried out. Grouped by what the caller can do about it, as `reason` is.
#[derive(Debug, Clone)]
pub struct StatusError {
    pub code: StatusCode,
    pub reason: &'static str,
    pub message: String,
    pub details: Option<Value>,
    /// Seconds after which trying again makes sense; becomes `Retry-After`.
    pub retry_after: Option<u32>,
}

impl fmt::Display for StatusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for StatusError {}

pub(crate) type Result<T, E = StatusError> = std::result::Result<T, E>;

impl StatusError {
    fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: None,
            retry_after: None,
        }
    }

    fn about(mut self, resource: &Resource, name: &str) -> Self {
        self.details =
            Some(json!({"name": name, "group": resource.group, "kind": resource.plural}));
        self
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    pub fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message)
    }

    pub fn forbidden_object(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!("{} \"{name}\" is forbidden: {why}", resource.qualified());
        Self::forbidden(message).about(resource, name)
    }

    pub fn unknown_path() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "NotFound",
            "the server could not find the requested resource",
        )
    }

    pub fn not_found(resource: &Resource, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", resource.qualified());
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).about(resource, name)
    }

    pub fn namespace_not_found(name: &str) -> Self {
        let mut refusal = Self::new(
            StatusCode::NOT_FOUND,
            "NotFound",
            format!("namespaces \"{name}\" not found"),
        );
        refusal.details = Some(json!({"name": name, "kind": "namespaces"}));
        refusal
    }

    pub fn already_exists(resource: &Resource, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", resource.qualified());
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message).about(resource, name)
    }

    pub fn conflict(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{name}\": {why}",
            resource.qualified()
        );
        Self::new(StatusCode::CONFLICT, "Conflict", message).about(resource, name)
    }

    /// A deletion that asked for another state of the object. Unlike other conflicts it names the kind.
    pub fn precondition_failed(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{name}\": {why}",
            resource.kind_qualified()
        );
        let mut refusal = Self::new(StatusCode::CONFLICT, "Conflict", message);
        refusal.details =
            Some(json!({"name": name, "group": resource.group, "kind": resource.kind}));
        refusal
    }

    pub fn modified(resource: &Resource, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, name, why)
    }

    /// Field ownership conflicts of server-side apply: one cause per field, so that kubectl can list them.
    pub fn apply_conflict(message: String, causes: &[Cause]) -> Self {
        let mut refusal = Self::new(StatusCode::CONFLICT, "Conflict", message);
        refusal.details = Some(json!({"causes": causes_json(causes)}));
        refusal
    }

    pub fn invalid(resource: &Resource, name: &str, causes: &[Cause]) -> Self {
        let mut texts: Vec<String> = causes
            .iter()
            .map(|c| format!("{}: {}", c.field, c.message))
            .collect();
        texts.dedup();
        let list = if texts.len() == 1 {
            texts.remove(0)
        } else {
            format!("[{}]", texts.join(", "))
        };
        let message = format!(
            "{} \"{name}\" is invalid: {list}",
            resource.kind_qualified()
        );
        let mut refusal = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message);
        refusal.details = Some(json!({
            "name": name, "group": resource.group, "kind": resource.kind, "causes": causes_json(causes),
        }));
        refusal
    }

    /// A query parameter, or a field of the options in a body, that makes no sense. `kind` is the kind of the options.
    pub fn invalid_options(kind: &str, cause: Cause) -> Self {
        let message = format!(
            "{kind}.meta.k8s.io \"\" is invalid: {}: {}",
            cause.field, cause.message
        );
        let mut refusal = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message);
        refusal.details = Some(json!({
            "group": "meta.k8s.io", "kind": kind, "causes": causes_json(&[cause]),
        }));
        refusal
    }

    /// An `Invalid` that is about the request rather than about one field of an object.
    pub fn unprocessable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message)
    }

    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
    }

    /// A write to a kind that only a cluster has.
    pub fn not_kept(resource: &Resource) -> Self {
        let message = format!(
            "{} are not kept here: heddle is not a cluster, and the list of them is always empty",
            resource.qualified()
        );
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
    }

    /// Clients that try a WebSocket first take a 503 as the word to watch by plain HTTP. They would take advice to wait
    /// literally, so there is none.
    pub fn no_websocket() -> Self {
        let message = "watches are not served over WebSocket; ask again without the Upgrade header";
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "ServiceUnavailable",
            message,
        )
    }

    pub fn not_acceptable(accepted: &str) -> Self {
        let message = format!("only the following media types are accepted: {accepted}");
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    pub fn unsupported_media_type(accepted: &str) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {accepted}"
        );
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "UnsupportedMediaType",
            message,
        )
    }

    pub fn too_large(limit: usize) -> Self {
        Self::too_large_because(format!("Request entity too large: limit is {limit}"))
    }

    pub fn too_large_because(message: impl Into<String>) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "RequestEntityTooLarge",
            message,
        )
    }

    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    pub fn future_version(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let mut refusal = Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message);
        refusal.details = Some(json!({
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        }));
        refusal.retry_after = Some(1);
        refusal
    }

    pub fn timeout() -> Self {
        let message = "the request did not finish in time; it may have been carried out: read again before repeating it";
        let mut refusal = Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message);
        refusal.retry_after = Some(1);
        refusal
    }

    pub fn too_slow() -> Self {
        let message = "the request body arrived too slowly; send it again, at once";
        Self::new(StatusCode::REQUEST_TIMEOUT, "Timeout", message)
    }

    pub fn too_many_requests() -> Self {
        let message = "too many requests are in flight, please try again later";
        let mut refusal = Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message);
        refusal.retry_after = Some(1);
        refusal
    }

    pub fn storage_full() -> Self {
        let message =
            "the disk is full: nothing was stored; free some space and repeat the request";
        let mut refusal = Self::new(
            StatusCode::INSUFFICIENT_STORAGE,
            "InsufficientStorage",
            message,
        );
        refusal.retry_after = Some(5);
        refusal
    }

    pub fn unavailable(message: impl Into<String>) -> Self {
        let mut refusal = Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "ServiceUnavailable",
            message,
        );
        refusal.retry_after = Some(1);
        refusal
    }

    pub fn internal(message: impl Into<String>) -> Self {
        let message = format!("Internal error occurred: {}", message.into());
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
    }

    pub fn to_json(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason, "code": self.code.as_u16(),
        });
        if let Some(details) = &self.details {
            status["details"] = details.clone();
        }
        if let Some(seconds) = self.retry_after {
            status["details"]["retryAfterSeconds"] = json!(seconds);
        }
        status
    }
}

/// What a finished deletion answers: the object is gone, so there is nothing else to show.
pub(crate) fn deleted(resource: &Resource, name: &str, uid: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": {"name": name, "group": resource.group, "kind": resource.plural, "uid": uid},
    })
}

fn causes_json(causes: &[Cause]) -> Vec<Value> {
    causes
        .iter()
        .map(|c| json!({"reason": c.reason, "message": c.message, "field": c.field}))
        .collect()
}
