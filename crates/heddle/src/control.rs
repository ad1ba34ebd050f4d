//! The control listener's paths, and whether the server is well.
//!
//! ```text
//!   /api /apis /openapi /version   the resource API, which asks for a token
//!   /heddle/v1                     questions about events, bundles and pushed images, which ask for the same token
//!   /v2 /osb/{namespace}/v2        the Open Service Broker API, which asks for a platform's credentials
//!   /livez /healthz                may this process go on, or must it be restarted
//!   /readyz                        should it be given work
//!   /metrics                       Prometheus
//!   anything else                  404, as a Status
//! ```
//! Health is read from the parts themselves at every request, never remembered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::body::{Body, HttpBody as _};
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use futures::StreamExt as _;
use heddle_apiserver::{ADMINS, ApiServer};
use heddle_bundles::workshop::Workshop;
use heddle_controllers::Numbers;
use heddle_front::Front;
use heddle_mesh::Mesh;
use heddle_mesh::questions::{self, Asker};
use heddle_store::Health;
use http::{HeaderValue, StatusCode, header};
use parking_lot::Mutex;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::bundles;
use crate::osb;
use crate::otlp::Exporter;

/// The paths of the resource API; it answers everything below them itself.
const API_PATHS: [&str; 4] = ["/api", "/apis", "/openapi", "/version"];

/// The paths of the Open Service Broker API; the front answers everything below them itself.
const OSB_PATHS: [&str; 2] = ["/v2", "/osb"];

/// A body of this size is in the socket's buffers already; its sender is not waiting for us.
const SMALL_BODY_BYTES: u64 = 64 << 10;

/// How much of a refused body is read so that its sender hears the refusal.
const HEARD_OUT_BYTES_MAX: usize = 16 << 20;

/// What the listener serves and asks for its health.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    pub(crate) server: ApiServer,
    pub(crate) mesh: Mesh,
    pub(crate) front: Front,
    /// Takes pushed images, and knows the logs of actions.
    pub(crate) workshop: Workshop,
    /// What the controllers count.
    pub(crate) numbers: Numbers,
    /// Whether controllers run here, and with them what feeds the mesh.
    pub(crate) controllers: bool,
    /// Set once the controllers that were asked for are running.
    pub(crate) controllers_started: Arc<AtomicBool>,
    /// Counts what it sends, if spans are sent.
    pub(crate) exporter: Option<Exporter>,
    /// Cancelled when the doors close.
    pub(crate) closing: CancellationToken,
}

impl Control {
    /// The service behind the door.
    pub(crate) fn router(self) -> Router {
        let mut router = Router::new()
            .route("/livez", get(livez))
            .route("/healthz", get(livez))
            .route("/readyz", get(readyz))
            .route("/metrics", get(metrics));
        for path in API_PATHS {
            router = router.route_service(path, self.server.remote());
            router = router.route_service(&format!("{path}/{{*rest}}"), self.server.remote());
        }
        for path in OSB_PATHS {
            router = router.route_service(path, self.front.clone());
            router = router.route_service(&format!("{path}/{{*rest}}"), self.front.clone());
        }
        let asking = middleware::from_fn_with_state(self.server.clone(), ask_who);
        let questions = questions::router(self.mesh.clone())
            .merge(bundles::router(self.workshop.clone()))
            .merge(osb::router(self.front.clone()))
            .layer(asking);
        let ending = middleware::from_fn_with_state(self.closing.clone(), end_watches);
        router
            .nest_service("/heddle/v1", questions)
            .fallback(nothing_here)
            .layer(ending)
            .layer(middleware::from_fn(hear_out))
            .with_state(self)
    }

    /// What would be cured by a restart.
    fn broken(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        if let Health::Poisoned(reason) = self.server.store().health() {
            reasons.push(format!("store: the disk failed: {reason}"));
        }
        if self.mesh.is_broken()
            && let Err(reason) = self.mesh.health()
        {
            reasons.push(format!("events: {reason}"));
        }
        reasons
    }

    /// Why no work should be sent here, for now.
    fn unready(&self) -> Vec<String> {
        let mut reasons = self.broken();
        if self.server.store().health() == Health::Full {
            reasons.push("store: the disk is full".to_owned());
        }
        if !self.mesh.is_broken()
            && let Err(reason) = self.mesh.health()
        {
            reasons.push(format!("events: {reason}"));
        }
        if self.controllers && !self.mesh.is_routing() {
            reasons.push("events: no routes yet".to_owned());
        }
        if !self.front.is_ready() {
            reasons.push("osb: the catalog has not been read yet".to_owned());
        }
        if !self.controllers_started.load(Ordering::Acquire) {
            reasons.push("controllers: not started yet".to_owned());
        }
        if self.closing.is_cancelled() {
            reasons.push("listener: shutting down".to_owned());
        }
        reasons
    }
}

async fn livez(State(control): State<Control>) -> Response {
    verdict(&control.broken())
}

async fn readyz(State(control): State<Control>) -> Response {
    verdict(&control.unready())
}

fn verdict(reasons: &[String]) -> Response {
    if reasons.is_empty() {
        return "ok".into_response();
    }
    (StatusCode::SERVICE_UNAVAILABLE, reasons.join("\n")).into_response()
}

async fn metrics(State(control): State<Control>) -> Response {
    let kind =
        HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    let server = control.server.metrics_text();
    // One exposition has one end.
    let server = server.strip_suffix("# EOF\n").unwrap_or(&server);
    let (mesh, front) = (control.mesh.metrics_text(), control.front.metrics_text());
    let exporter = control.exporter.as_ref().map(Exporter::metrics_text);
    let exporter = exporter.unwrap_or_default();
    let numbers = control.numbers.text();
    let text = format!("{server}{mesh}{front}{numbers}{exporter}# EOF\n");
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

async fn nothing_here() -> Response {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "NotFound", "code": 404,
        "message": format!("nothing is served at this path; there are {}, {}, /livez, /readyz and /metrics", API_PATHS.join(", "), OSB_PATHS.join(", ")),
    });
    let kind = HeaderValue::from_static("application/json");
    (
        StatusCode::NOT_FOUND,
        [(header::CONTENT_TYPE, kind)],
        status.to_string(),
    )
        .into_response()
}

/// Questions about events are for whoever may read everything; what is done, is done in their name.
async fn ask_who(State(server): State<ApiServer>, mut request: Request, next: Next) -> Response {
    let Some(who) = server.who(request.headers()) else {
        return refuse(
            StatusCode::UNAUTHORIZED,
            "unauthorized",
            "send the bearer token of the kubeconfig",
        );
    };
    if !who.is_in(ADMINS) {
        let message = format!("{} may not ask about events", who.user);
        return refuse(StatusCode::FORBIDDEN, "forbidden", &message);
    }
    request.extensions_mut().insert(Asker(who.user.to_string()));
    next.run(request).await
}

fn refuse(status: StatusCode, code: &str, message: &str) -> Response {
    let kind = HeaderValue::from_static("application/json");
    let body = json!({"code": code, "message": message}).to_string();
    (status, [(header::CONTENT_TYPE, kind)], body).into_response()
}

/// A watch has no end of its own, so the closing door gives it one: a clean end of the stream,
/// after which clients resume elsewhere or later. Everything else is left to finish.
async fn end_watches(
    State(closing): State<CancellationToken>,
    request: Request,
    next: Next,
) -> Response {
    let pairs = request.uri().query().unwrap_or_default().split('&');
    let watch = pairs
        .filter_map(|pair| pair.split_once('='))
        .any(|(key, value)| key == "watch" && !matches!(value, "false" | "0"));
    let response = next.run(request).await;
    if !watch {
        return response;
    }
    response.map(|body| {
        Body::from_stream(
            body.into_data_stream()
                .take_until(closing.cancelled_owned()),
        )
    })
}

/// Reads on for a while when a request was answered before its body had arrived: on HTTP/1 a client
/// that is still sending when the connection closes sees a broken pipe instead of the answer.
async fn hear_out(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    if body
        .size_hint()
        .upper()
        .is_some_and(|bytes| bytes <= SMALL_BODY_BYTES)
    {
        return next.run(Request::from_parts(parts, body)).await;
    }
    let rest = Arc::new(Mutex::new(body.into_data_stream()));
    let shared = rest.clone();
    let handed = futures::stream::poll_fn(move |cx| shared.lock().poll_next_unpin(cx));
    let response = next
        .run(Request::from_parts(parts, Body::from_stream(handed)))
        .await;
    let mut left = HEARD_OUT_BYTES_MAX;
    while let Some(Ok(chunk)) = futures::future::poll_fn(|cx| rest.lock().poll_next_unpin(cx)).await
    {
        left = left.saturating_sub(chunk.len());
        if left == 0 {
            break;
        }
    }
    response
}
