//! The control listener's paths, and whether the server is well.
//!
//! ```text
//!   / /api /apis /openapi /version the resource API, which asks for a token
//!   /heddle/v1                     questions about events, bundles and pushed images, which ask for the same token
//!   /v2 /osb/{namespace}/v2        the Open Service Broker API, which asks for a platform's credentials
//!   /ui                            the page (heddle-ui), which asks the two first with the rights of whoever looks
//!   /livez /healthz                may this process go on, or must it be restarted; the reasons ask for a token
//!   /readyz                        should it be given work; likewise
//!   /metrics                       Prometheus, which asks for its own token or the administrator's
//!   anything else                  404, as a Status
//! ```
//! Whatever is asked, it is asked of this server by a name it has ([`Hosts`]). Who asks is told apart once, at the door
//! ([`crate::door`]), and what is behind it trusts the extensions that the door puts there: [`Control::inner`] can be asked in
//! process by whoever has an `Access` to show. Health is read from the parts themselves at every request, never remembered.

mod drain;
mod exposition;
mod page;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use heddle_api::audit::ChangeNote;
use heddle_apiserver::{
    ADMINS, ApiServer, CONTROLLERS, OPERATORS, SCRAPERS, VIEWERS, impersonates,
};
use heddle_bundles::workshop::Workshop;
use heddle_controllers::Metrics;
use heddle_front::Front;
use heddle_mesh::Mesh;
use heddle_mesh::questions;
use heddle_rt::metrics::process;
use heddle_rt::net::host::Hosts;
use heddle_store::Health;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use jiff::Timestamp;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::alerts::AlertsApi;
use crate::audit::doorway::{self, AuditDoorway};
use crate::audit::{self, AuditLog, Unrecordable};
use crate::backup::server::Backups;
use crate::bundles;
use crate::checks::ChecksApi;
use crate::door::{self, Entrance};
use crate::health::HealthApi;
use crate::osb;
use crate::otlp::Exporter;
use crate::rights;
use crate::session::PageSessions;
use crate::session::logins::Logins;
use crate::signing::SigningApi;
use crate::smoke::Smoke;

/// The paths of the resource API; it answers everything below them itself.
const API_PATHS: [&str; 4] = ["/api", "/apis", "/openapi", "/version"];

/// Where questions are asked.
const QUESTIONS_PATH: &str = "/heddle/v1";

/// The paths of the Open Service Broker API; the front answers everything below them itself.
const OSB_PATHS: [&str; 2] = ["/v2", "/osb"];

/// Who may read what names objects and tells of faults, though nothing else.
const OBSERVERS: [&str; 5] = [ADMINS, CONTROLLERS, OPERATORS, VIEWERS, SCRAPERS];

/// What the listener serves and asks for its health.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    pub(crate) server: ApiServer,
    pub(crate) mesh: Mesh,
    pub(crate) front: Front,
    /// Takes pushed images, and knows the logs of actions.
    pub(crate) workshop: Workshop,
    /// Who changed what.
    pub(crate) audit: AuditLog,
    /// Hands out copies of everything.
    pub(crate) backups: Backups,
    /// What the controllers count.
    pub(crate) numbers: Metrics,
    /// How well the mesh is.
    pub(crate) health: HealthApi,
    /// Whether controllers run here, and with them what feeds the mesh.
    pub(crate) controllers: bool,
    /// Set once the controllers that were asked for are running.
    pub(crate) controllers_started: Arc<AtomicBool>,
    /// Counts what it sends, if spans are sent.
    pub(crate) exporter: Option<Exporter>,
    /// Which alerts fire.
    pub(crate) alerts: AlertsApi,
    /// Tries everything once.
    pub(crate) smoke: Smoke,
    /// Makes the keys with which events are signed.
    pub(crate) signing: SigningApi,
    /// When the process was started.
    pub(crate) process_started: Timestamp,
    /// What stands before the paths of the page; nothing when it is left out.
    pub(crate) ui_base: Option<String>,
    /// Who logged in.
    pub(crate) sessions: PageSessions,
    /// The names this server is called by.
    pub(crate) hosts: Hosts,
    /// Cancelled when the doors close.
    pub(crate) closing: CancellationToken,
}

impl Control {
    /// Everything that asks who it is, without the door: the resource API and what is below `/heddle/v1`. Whoever calls this
    /// says who asks by an `Access` among the extensions of the request.
    pub(crate) fn inner(&self) -> Router {
        let questions = self.questions();
        let asked = self.objects().nest_service(
            QUESTIONS_PATH,
            questions.clone().layer(middleware::from_fn(rights::guard)),
        );
        let control = self.clone();
        let checks = ChecksApi::new(asked, self.health.clock.clone(), move || control.unready());
        let questions = questions
            .merge(checks.router())
            .layer(middleware::from_fn(rights::guard));
        self.objects()
            .nest_service(QUESTIONS_PATH, questions)
            .fallback(nothing_here)
    }

    /// The resource API.
    fn objects(&self) -> Router {
        let mut router = self.root();
        for path in API_PATHS {
            router = router.route_service(path, self.server.remote());
            router = router.route_service(&format!("{path}/"), self.server.remote());
            router = router.route_service(&format!("{path}/{{*rest}}"), self.server.remote());
        }
        router
    }

    /// What each part answers for itself.
    fn questions(&self) -> Router {
        questions::router(self.mesh.clone())
            .merge(bundles::router(self.workshop.clone()))
            .merge(osb::router(self.front.clone()))
            .merge(self.backups.clone().router())
            .merge(audit::question::router(self.audit.clone()))
            .merge(self.health.clone().router())
            .merge(self.alerts.clone().router())
            .merge(self.smoke.clone().router())
            .merge(self.signing.clone().router())
    }

    /// The service with the door around it.
    pub(crate) fn router(self) -> Router {
        let acting = middleware::from_fn_with_state(self.server.clone(), refuse_impersonation);
        let front = tower::Layer::layer(&acting, self.front.clone());
        let mut router = Router::new()
            .route("/livez", get(livez))
            .route("/healthz", get(livez))
            .route("/readyz", get(readyz))
            .route("/metrics", get(metrics));
        for path in OSB_PATHS {
            router = router.route_service(path, front.clone());
            router = router.route_service(&format!("{path}/{{*rest}}"), front.clone());
        }
        let logins = Logins::new(&self.server, &self.sessions, self.ui_base.as_deref());
        let entrance = Entrance::new(&self.server, &self.sessions, self.closing.clone());
        let doorway = AuditDoorway {
            log: self.audit.clone(),
            server: self.server.clone(),
        };
        let page = match self.ui_base {
            Some(_) => self.page().merge(logins.clone().forms()),
            None => Router::new(),
        };
        let recording = middleware::from_fn_with_state(doorway, doorway::record);
        let entering = middleware::from_fn_with_state(entrance, door::enter);
        let naming = middleware::from_fn_with_state(self.hosts.clone(), check_host);
        router
            .merge(logins.router())
            .merge(page)
            .fallback_service(self.inner())
            .layer(entering)
            .layer(recording)
            .layer(naming)
            .layer(middleware::from_fn(drain::hear_out))
            .with_state(self)
    }

    /// Whether somebody may know about objects and faults; who may not is answered.
    fn observer(&self, headers: &HeaderMap) -> Result<(), Response> {
        let Some(who) = self.server.who(headers) else {
            let mut response = refuse(
                StatusCode::UNAUTHORIZED,
                "unauthorized",
                "metrics name objects: send the token of the file metrics-token in the data directory, or the administrator's, as bearer",
            );
            let scheme = HeaderValue::from_static("Bearer realm=\"heddle\"");
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, scheme);
            return Err(response);
        };
        if OBSERVERS.iter().any(|group| who.is_in(group)) {
            return Ok(());
        }
        let message = format!("{} may not read metrics", who.user);
        Err(refuse(StatusCode::FORBIDDEN, "forbidden", &message))
    }

    /// Every number there is, as OpenMetrics.
    pub(crate) fn numbers_text(&self) -> String {
        let server = self.server.metrics_text();
        // One exposition has one end.
        let server = server.strip_suffix("# EOF\n").unwrap_or(&server);
        let (mesh, front) = (self.mesh.metrics_text(), self.front.metrics_text());
        let exporter = self.exporter.as_ref().map(Exporter::metrics_text);
        let exporter = exporter.unwrap_or_default();
        let now = self.health.clock.now();
        let numbers = self.numbers.text() + &self.numbers.progress_text(now);
        let health = self.health.metrics_text();
        let rest = self.smoke.metrics_text() + &process::text(self.process_started);
        format!("{server}{mesh}{front}{numbers}{health}{exporter}{rest}# EOF\n")
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
        if let Some(fault @ Unrecordable::Broken(_)) = self.audit.fault() {
            reasons.push(format!("audit: {fault}"));
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
        if let Some(fault) = self.audit.fault()
            && !matches!(fault, Unrecordable::Broken(_))
        {
            reasons.push(format!("audit: {fault}"));
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

async fn livez(State(control): State<Control>, headers: HeaderMap) -> Response {
    verdict(&control, &headers, &control.broken())
}

async fn readyz(State(control): State<Control>, headers: HeaderMap) -> Response {
    verdict(&control, &headers, &control.unready())
}

/// Anybody may know whether it is well; why it is not, names disks, directories and parts.
fn verdict(control: &Control, headers: &HeaderMap, reasons: &[String]) -> Response {
    if reasons.is_empty() {
        return "ok".into_response();
    }
    let known = control.observer(headers).is_ok();
    let text = if known {
        reasons.join("\n")
    } else {
        "not ok; with a token this tells why".to_owned()
    };
    (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
}

async fn metrics(State(control): State<Control>, headers: HeaderMap) -> Response {
    if let Err(refused) = control.observer(&headers) {
        return refused;
    }
    exposition::respond(&headers, control.numbers_text())
}

async fn nothing_here() -> Response {
    let message = format!(
        "nothing is served at this path; there are {}, {}, /livez, /readyz and /metrics",
        API_PATHS.join(", "),
        OSB_PATHS.join(", ")
    );
    status(StatusCode::NOT_FOUND, "NotFound", &message)
}

/// A refusal as clients of Kubernetes read it.
fn status(code: StatusCode, reason: &str, message: &str) -> Response {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": reason,
        "code": code.as_u16(), "message": message,
    });
    let kind = HeaderValue::from_static("application/json");
    (code, [(header::CONTENT_TYPE, kind)], status.to_string()).into_response()
}

/// Requests that a browser was tricked into sending here are for a name that this server does not have.
async fn check_host(State(hosts): State<Hosts>, request: Request, next: Next) -> Response {
    match hosts.check(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(misdirected) => {
            let message = misdirected.to_string();
            status(
                StatusCode::MISDIRECTED_REQUEST,
                "MisdirectedRequest",
                &message,
            )
        }
    }
}

/// A platform's password carries no right to act as somebody else, and ignoring the wish would be carrying it out as the
/// platform. Administrators were told apart already when their token was looked up.
async fn refuse_impersonation(
    State(server): State<ApiServer>,
    request: Request,
    next: Next,
) -> Response {
    if impersonates(request.headers()) && server.who(request.headers()).is_none() {
        let message =
            "Impersonate-* headers are for administrators of the resource API; leave them out";
        return refuse(StatusCode::FORBIDDEN, "Forbidden", message);
    }
    next.run(request).await
}

pub(crate) fn refuse(status: StatusCode, code: &str, message: &str) -> Response {
    let kind = HeaderValue::from_static("application/json");
    let body = json!({"code": code, "message": message}).to_string();
    let mut response = (status, [(header::CONTENT_TYPE, kind)], body).into_response();
    response.extensions_mut().insert(ChangeNote {
        reason: Some(code.to_owned().into()),
        ..ChangeNote::default()
    });
    response
}
