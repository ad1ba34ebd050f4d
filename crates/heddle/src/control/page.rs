//! The page, and the two routers of this process that it asks.

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use heddle_ui::PageOptions;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use super::Control;

impl Control {
    /// Everything below `/ui/`, unless it is left out. The page asks what everybody can ask.
    pub(super) fn page<S: Clone + Send + Sync + 'static>(&self) -> Router<S> {
        let Some(base) = &self.ui_base else {
            return Router::new();
        };
        let page = heddle_ui::router(PageOptions {
            ask: self.inner(),
            clock: self.health.clock.clone(),
            base: base.clone(),
        });
        page.with_state(())
    }

    /// The root belongs to the resource API; a browser is led to the page.
    pub(super) fn root(&self) -> Router {
        let api = Router::new().route_service("/", self.server.remote());
        match self.ui_base.clone() {
            None => api,
            Some(base) => api.layer(middleware::from_fn_with_state(base, lead_browsers)),
        }
    }
}

async fn lead_browsers(State(base): State<String>, request: Request, next: Next) -> Response {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    if !reads || !is_browser(request.headers()) {
        return next.run(request).await;
    }
    let to = HeaderValue::try_from(format!("{base}/ui/"));
    let to = to.unwrap_or_else(|_| HeaderValue::from_static("/ui/"));
    let headers = [
        (header::LOCATION, to),
        (header::VARY, HeaderValue::from_static("Accept")),
    ];
    (StatusCode::SEE_OTHER, headers).into_response()
}

/// Whoever asks for HTML by name looks at it; clients of the API ask for JSON or for anything.
fn is_browser(headers: &HeaderMap) -> bool {
    let wishes = headers.get_all(header::ACCEPT).into_iter();
    let wishes = wishes.filter_map(|value| value.to_str().ok());
    wishes
        .flat_map(|value| value.split(','))
        .any(|range| range.split(';').next().map(str::trim) == Some("text/html"))
}
