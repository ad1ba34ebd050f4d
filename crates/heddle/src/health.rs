//! How well the mesh is, over HTTP, below `/heddle/v1/health`.
//!
//! ```text
//!   GET health                                        the mesh              GET health/schema.json   the shape of all of these
//!   GET health/applications                           all, the worst first
//!   GET health/applications/{app}                     one, with its namespaces
//!   GET health/applications/{app}/namespaces/{ns}     one way
//!   GET topology[?all]                                every hop of every flow, as a picture
//! ```
//! Bodies are what the controller of health has published, which is also what it writes to the Applications; nothing is judged
//! here. `?probe=1` answers 503 unless the scope is healthy or degraded. The tag changes when a verdict does, not with every
//! heartbeat, so that whoever polls reads news only.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use heddle_api::health::{ApplicationHealth, ApplicationHealthList, HealthStatus};
use heddle_api::ledger::ErrorBody;
use heddle_controllers::{HealthBoard, Report, draw_topology};
use heddle_rt::Clock;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Serialize;

/// What is asked.
#[derive(Clone, Debug)]
pub(crate) struct HealthApi {
    pub(crate) board: HealthBoard,
    pub(crate) clock: Clock,
    /// Tells the reports of this process from those of another.
    pub(crate) run: u64,
}

impl HealthApi {
    /// The router, without the prefix.
    pub(crate) fn router(self) -> Router {
        Router::new()
            .route("/health", get(mesh))
            .route("/health/schema.json", get(schema))
            .route("/health/applications", get(applications))
            .route("/health/applications/{application}", get(application))
            .route(
                "/health/applications/{application}/namespaces/{namespace}",
                get(pair),
            )
            .route("/topology", get(topology))
            .with_state(self)
    }

    /// The same in numbers.
    pub(crate) fn metrics_text(&self) -> String {
        heddle_controllers::health_metrics(&self.report())
    }

    fn report(&self) -> Arc<Report> {
        self.board.report(&self.clock)
    }
}

/// What was asked besides the path.
struct HealthQuery {
    probe: bool,
    known: Option<HeaderValue>,
}

impl HealthQuery {
    fn of(query: Option<String>, headers: &HeaderMap) -> Self {
        let query = query.unwrap_or_default();
        let mut pairs = query
            .split('&')
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        Self {
            probe: pairs.any(|(key, value)| key == "probe" && !matches!(value, "0" | "false")),
            known: headers.get(header::IF_NONE_MATCH).cloned(),
        }
    }
}

async fn mesh(
    State(api): State<HealthApi>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let report = api.report();
    let health = report.mesh.verdict.health;
    answer(
        &api,
        &report,
        &HealthQuery::of(query, &headers),
        health,
        &report.mesh,
    )
}

async fn applications(
    State(api): State<HealthApi>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let report = api.report();
    let mut items: Vec<ApplicationHealth> = report
        .applications
        .values()
        .map(|application| {
            let mut application = application.clone();
            application.eventing.namespaces.clear();
            application
        })
        .collect();
    items.sort_by_key(|application| std::cmp::Reverse(application.eventing.verdict.health));
    let worst = items.first().map(|first| first.eventing.verdict.health);
    let worst = worst.unwrap_or(HealthStatus::Healthy);
    let list = ApplicationHealthList { items };
    answer(
        &api,
        &report,
        &HealthQuery::of(query, &headers),
        worst,
        &list,
    )
}

async fn application(
    State(api): State<HealthApi>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let report = api.report();
    let Some(found) = report.applications.get(&name) else {
        return nothing(&format!("there is no Application {name:?}"));
    };
    let mut found = found.clone();
    for namespace in &mut found.eventing.namespaces {
        let pair = (name.clone(), namespace.name.clone());
        if let Some(live) = report.pairs.get(&pair) {
            namespace.heartbeat.clone_from(&live.heartbeat);
        }
    }
    let health = found.eventing.verdict.health;
    answer(
        &api,
        &report,
        &HealthQuery::of(query, &headers),
        health,
        &found,
    )
}

async fn pair(
    State(api): State<HealthApi>,
    Path(pair): Path<(String, String)>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let report = api.report();
    let Some(found) = report.pairs.get(&pair) else {
        let (application, namespace) = pair;
        return nothing(&format!(
            "Application {application:?} is not bound to namespace {namespace:?}: there is neither an ApplicationMapping nor an EventFlow"
        ));
    };
    let health = found.verdict.health;
    answer(
        &api,
        &report,
        &HealthQuery::of(query, &headers),
        health,
        found,
    )
}

async fn topology(
    State(api): State<HealthApi>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let report = api.report();
    let wants_all = |pair: &str| matches!(pair, "all" | "all=1" | "all=true");
    let all = query
        .as_deref()
        .unwrap_or_default()
        .split('&')
        .any(wants_all);
    let graph = draw_topology(&report, all);
    let health = report.mesh.verdict.health;
    answer(
        &api,
        &report,
        &HealthQuery::of(query, &headers),
        health,
        &graph,
    )
}

async fn schema() -> Response {
    let text = heddle_api::health::schema().to_string();
    let kind = HeaderValue::from_static("application/schema+json");
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

fn answer(
    api: &HealthApi,
    report: &Report,
    asked: &HealthQuery,
    health: HealthStatus,
    body: &impl Serialize,
) -> Response {
    // Weak: ages in the body move on while the verdict stays.
    let tag = format!("W/\"{:x}-{}-{}\"", api.run, report.revision, health.level());
    let tag = HeaderValue::try_from(tag).expect("a tag has plain characters only");
    let status = match health {
        HealthStatus::Unhealthy | HealthStatus::Unknown if asked.probe => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        _ => StatusCode::OK,
    };
    let unchanged = asked.known.as_ref() == Some(&tag) && status == StatusCode::OK;
    let mut response = if unchanged {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let text = serde_json::to_vec(body).unwrap_or_default();
        let kind = HeaderValue::from_static("application/json");
        (status, [(header::CONTENT_TYPE, kind)], text).into_response()
    };
    response.headers_mut().insert(header::ETAG, tag);
    response
}

fn nothing(message: &str) -> Response {
    let refusal = ErrorBody {
        code: "not-found".to_owned(),
        message: message.to_owned(),
        ..ErrorBody::default()
    };
    let text = serde_json::to_vec(&refusal).unwrap_or_default();
    let kind = HeaderValue::from_static("application/json");
    (StatusCode::NOT_FOUND, [(header::CONTENT_TYPE, kind)], text).into_response()
}
