//! How well the mesh is, over HTTP, below `/heddle/v1/health`, and what else is read from the same board.
//!
//! ```text
//!   GET health[?applications]                         the mesh, and all applications with it
//!   GET health/schema.json                            the shape of all of these
//!   GET health/applications                           all, the worst first
//!   GET health/applications/{app}                     one, with its namespaces
//!   GET health/applications/{app}/namespaces/{ns}     one way
//!   GET health/inventory                              everything that is looked at, counted
//!   GET topology[?all][&q=&verdict=]                  every hop of every flow, as a picture
//!   GET topology?scope=application/{app}[/{ns}]       those of one application, or of one namespace of it
//!   GET stream[?topics=&scope=]                       verdicts and numbers as they change (`stream`)
//! ```
//! Bodies are what the controller of health has published, which is also what it writes to the Applications; nothing is judged
//! here. Whoever has a role in some namespaces only is told of what is bound to those. `?probe=1` answers 503 unless the scope is healthy or degraded. The tag follows everything in the body but ages and
//! evidence, so that whoever polls reads news only; with `?watch=1` the same news are told as they come.

mod feed;
mod projection;
mod query;
mod stream;
mod tag;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use heddle_api::access::Scope;
use heddle_api::health::{ApplicationHealth, ApplicationHealthList, HealthStatus};
use heddle_api::ledger::ErrorBody;
use heddle_controllers::{HealthBoard, Report, TopologyQuestion, draw_topology, draw_way};
use heddle_rt::Clock;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use serde_json::Value;

use self::query::HealthQuery;
use self::stream::HealthStreams;

/// What is asked.
#[derive(Clone, Debug)]
pub(crate) struct HealthApi {
    board: HealthBoard,
    pub(crate) clock: Clock,
    streams: Arc<HealthStreams>,
}

/// A body, and how well what it is about is.
struct ShownHealth {
    health: HealthStatus,
    body: Value,
}

/// A body, or why there is none.
type Found = Result<ShownHealth, String>;

impl HealthApi {
    /// `run` tells what this process says from what another said.
    pub(crate) fn new(board: HealthBoard, clock: Clock, run: u64) -> Self {
        Self {
            board,
            clock,
            streams: Arc::new(HealthStreams::new(run)),
        }
    }

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
            .route("/health/inventory", get(inventory))
            .route("/topology", get(topology))
            .route("/stream", get(stream::serve))
            .with_state(self)
    }

    /// The same in numbers.
    pub(crate) fn metrics_text(&self) -> String {
        heddle_controllers::health_metrics(&self.report())
    }

    fn report(&self) -> Arc<Report> {
        self.board.report(&self.clock)
    }

    /// What `find` finds, now or as it changes.
    fn answer(
        &self,
        asked: HealthQuery,
        find: impl Fn(&Report) -> Found + Send + 'static,
    ) -> Response {
        let scope = asked.within.clone();
        let find = move |report: &Report| match scope {
            Scope::All => find(report),
            Scope::Namespaces(_) => find(&report.within(&scope)),
        };
        let shown = match find(&self.report()) {
            Ok(shown) => shown,
            Err(message) => return refuse(StatusCode::NOT_FOUND, "not-found", &message),
        };
        if asked.watch {
            return stream::watch(self, asked, find);
        }
        respond(&asked, &shown)
    }
}

async fn mesh(State(api): State<HealthApi>, asked: HealthQuery) -> Response {
    let with_applications = asked.applications;
    api.answer(asked, move |report| {
        let mut mesh = report.mesh.clone();
        mesh.application_list = with_applications.then(|| worst_first(report));
        ShownHealth::of(mesh.verdict.health, &mesh)
    })
}

async fn applications(State(api): State<HealthApi>, asked: HealthQuery) -> Response {
    api.answer(asked, |report| {
        let items = worst_first(report);
        let worst = items.first().map(|first| first.eventing.verdict.health);
        let worst = worst.unwrap_or(HealthStatus::Healthy);
        ShownHealth::of(worst, &ApplicationHealthList { items })
    })
}

/// All applications without their namespaces.
fn worst_first(report: &Report) -> Vec<ApplicationHealth> {
    let applications = report.applications.values();
    let mut items: Vec<ApplicationHealth> = applications
        .map(|application| {
            let mut application = application.clone();
            application.eventing.namespaces.clear();
            application
        })
        .collect();
    items.sort_by_key(|application| std::cmp::Reverse(application.eventing.verdict.health));
    items
}

async fn application(
    State(api): State<HealthApi>,
    Path(name): Path<String>,
    asked: HealthQuery,
) -> Response {
    api.answer(asked, move |report| {
        let found = report.applications.get(&name);
        let mut found = found
            .ok_or_else(|| format!("there is no Application {name:?}"))?
            .clone();
        for namespace in &mut found.eventing.namespaces {
            let pair = (name.clone(), namespace.name.clone());
            if let Some(live) = report.pairs.get(&pair) {
                namespace.heartbeat.clone_from(&live.heartbeat);
            }
        }
        ShownHealth::of(found.eventing.verdict.health, &found)
    })
}

async fn pair(
    State(api): State<HealthApi>,
    Path(pair): Path<(String, String)>,
    asked: HealthQuery,
) -> Response {
    api.answer(asked, move |report| {
        let found = report.pairs.get(&pair).ok_or_else(|| {
            let (application, namespace) = &pair;
            format!(
                "Application {application:?} is not bound to namespace {namespace:?}: there is neither an ApplicationMapping nor an EventFlow"
            )
        })?;
        ShownHealth::of(found.verdict.health, found)
    })
}

async fn topology(State(api): State<HealthApi>, asked: HealthQuery) -> Response {
    let question = match asked_for(&asked) {
        Ok(question) => question,
        Err(message) => return refuse(StatusCode::BAD_REQUEST, "invalid", &message),
    };
    let scope = asked.scope.clone();
    api.answer(asked, move |report| {
        let graph = match scope.as_deref().and_then(way_of) {
            None => draw_topology(report, &question),
            Some((application, namespace)) => draw_way(report, application, namespace)
                .ok_or_else(|| format!("there is no Application {application:?}"))?,
        };
        ShownHealth::of(report.mesh.verdict.health, &graph)
    })
}

/// The application of a scope, and the namespace if it is about one.
fn way_of(scope: &str) -> Option<(&str, Option<&str>)> {
    let rest = scope.strip_prefix("application/")?;
    Some(match rest.split_once('/') {
        Some((application, namespace)) => (application, Some(namespace)),
        None => (rest, None),
    })
}

fn asked_for(asked: &HealthQuery) -> Result<TopologyQuestion, String> {
    let known = |word: &String| {
        let found = HealthStatus::ALL.into_iter().find(|one| one.word() == word);
        found.ok_or_else(|| {
            let words = HealthStatus::ALL.map(HealthStatus::word).join(", ");
            format!("verdict {word:?} is not known; it is one of {words}")
        })
    };
    let verdicts: Result<Vec<HealthStatus>, String> = asked.verdict.iter().map(known).collect();
    Ok(TopologyQuestion {
        all: asked.all,
        name: asked.name.clone(),
        verdicts: verdicts?,
    })
}

/// Counted when it is asked for, so it is not watched.
async fn inventory(State(api): State<HealthApi>) -> Response {
    let inventory = api.board.inventory(&api.clock).await;
    let body = serde_json::to_value(inventory).unwrap_or_default();
    json(StatusCode::OK, &body)
}

async fn schema() -> Response {
    let text = heddle_api::health::schema().to_string();
    let kind = HeaderValue::from_static("application/schema+json");
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

impl ShownHealth {
    fn of(health: HealthStatus, body: &impl Serialize) -> Found {
        let body = serde_json::to_value(body).map_err(|error| error.to_string())?;
        Ok(Self { health, body })
    }

    fn is_well(&self) -> bool {
        matches!(self.health, HealthStatus::Healthy | HealthStatus::Degraded)
    }
}

fn respond(asked: &HealthQuery, shown: &ShownHealth) -> Response {
    let tag = tag::of(&shown.body);
    if asked.probe && !shown.is_well() {
        return tagged(json(StatusCode::SERVICE_UNAVAILABLE, &shown.body), tag);
    }
    if asked.known.as_ref().is_some_and(|known| *known == *tag) {
        return tagged(StatusCode::NOT_MODIFIED.into_response(), tag);
    }
    tagged(json(StatusCode::OK, &shown.body), tag)
}

fn tagged(mut response: Response, tag: String) -> Response {
    let tag = HeaderValue::try_from(tag).expect("a tag has plain characters only");
    response.headers_mut().insert(header::ETAG, tag);
    response
}

fn json(status: StatusCode, body: &Value) -> Response {
    let kind = HeaderValue::from_static("application/json");
    (status, [(header::CONTENT_TYPE, kind)], body.to_string()).into_response()
}

fn refuse(status: StatusCode, code: &str, message: &str) -> Response {
    let refusal = ErrorBody {
        code: code.to_owned(),
        message: message.to_owned(),
        ..ErrorBody::default()
    };
    let body = serde_json::to_value(&refusal).unwrap_or_default();
    json(status, &body)
}
