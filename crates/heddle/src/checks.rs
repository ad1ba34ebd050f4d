//! `GET /heddle/v1/checks`: look everywhere at once and say what is wrong, and what would help.
//!
//! `gather` asks this process, with the rights of whoever wants to know, for its readiness, its accounts and the conditions of the
//! objects that events pass through. What that means is decided in `findings` and, for flows, in `flows`, which are pure. The
//! command `heddle doctor` and the page show the same answer. Nothing is changed.

pub(crate) mod findings;
pub(crate) mod flows;
mod gather;
#[cfg(test)]
pub(crate) mod tests;

use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use heddle_api::access::Access;
use heddle_rt::Clock;
use heddle_ui::Inquirer;
use http::Extensions;
use tokio::sync::Mutex;

use self::gather::CheckReader;
use crate::bundles::axum_json;
use crate::control::refuse;

/// Tells why the server is not ready.
type UnreadyReasons = Arc<dyn Fn() -> Vec<String> + Send + Sync>;

/// What is asked.
#[derive(Clone)]
pub(crate) struct ChecksApi {
    /// The resource API and the questions, as this process answers them.
    ask: Router,
    unready: UnreadyReasons,
    clock: Clock,
    /// One look at a time: each reads all objects.
    looking: Arc<Mutex<()>>,
}

impl fmt::Debug for ChecksApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChecksApi").finish_non_exhaustive()
    }
}

impl ChecksApi {
    pub(crate) fn new(
        ask: Router,
        clock: Clock,
        unready: impl Fn() -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            ask,
            unready: Arc::new(unready),
            clock,
            looking: Arc::default(),
        }
    }

    /// The router, without the prefix.
    pub(crate) fn router(self) -> Router {
        Router::new().route("/checks", get(look)).with_state(self)
    }
}

async fn look(State(checks): State<ChecksApi>, Extension(access): Extension<Access>) -> Response {
    let _turn = checks.looking.lock().await;
    let mut asker = Extensions::new();
    asker.insert(access.clone());
    let reader = CheckReader {
        ask: Inquirer::new(checks.ask.clone(), asker),
        scope: access.scope,
    };
    let now = checks.clock.now();
    match reader.gather((checks.unready)(), now).await {
        Ok(facts) => axum_json(&findings::report(&facts, now)).into_response(),
        Err(fault) => {
            let message = format!("cannot look at {}: {}", fault.path, fault.message);
            refuse(fault.status, "unavailable", &message)
        }
    }
}
