//! An API server that refuses, dawdles or does not answer its controllers, as a test asks for.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use heddle_apiserver::{CONTROLLERS, Identity, InProcess};
use heddle_rt::Clock;
use heddle_sim::stage::Stage;
use heddle_sim::sweep::refusal;
use http::{Method, Request, Response};
use kube::Client;
use parking_lot::Mutex;

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Treatment {
    Refused(u16),
    /// Answered this much later.
    Delayed(Duration),
    /// Not answered until the trouble is over.
    Held,
}

/// Which requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Struck {
    Writes,
    /// What is only tried and not kept.
    Trials,
    /// Everything but watches.
    All,
}

#[derive(Clone, Copy, Debug)]
struct Rule {
    struck: Struck,
    /// What the path contains.
    path: &'static str,
    treatment: Treatment,
}

/// The API server as the controllers reach it. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct TroubledApi {
    inner: InProcess,
    clock: Clock,
    rules: Arc<Mutex<Vec<Rule>>>,
}

impl TroubledApi {
    pub(crate) fn new(stage: &Stage) -> Self {
        let controllers = Identity::new("controllers", &[CONTROLLERS]);
        Self {
            inner: stage.server.in_process(controllers).lean(),
            clock: stage.clock.clone(),
            rules: Arc::default(),
        }
    }

    pub(crate) fn client(&self) -> Client {
        let api = self.clone();
        let service = tower::service_fn(move |request| answer(api.clone(), request));
        Client::new(service, "default")
    }

    /// From now on requests whose path contains `path` are treated like that.
    pub(crate) fn strike(&self, struck: Struck, path: &'static str, treatment: Treatment) {
        self.rules.lock().push(Rule {
            struck,
            path,
            treatment,
        });
    }

    /// All is well again; what was held goes on.
    pub(crate) fn heal(&self) {
        self.rules.lock().clear();
    }

    fn treatment<B>(&self, request: &Request<B>) -> Option<Treatment> {
        let (path, query) = (request.uri().path(), request.uri().query());
        let query = query.unwrap_or_default();
        let (is_watch, is_trial) = (query.contains("watch=true"), query.contains("dryRun="));
        let is_write = request.method() != Method::GET;
        let strikes = |rule: &&Rule| {
            let counts = match rule.struck {
                Struck::Writes => is_write && !is_trial,
                Struck::Trials => is_trial,
                Struck::All => !is_watch,
            };
            counts && path.contains(rule.path)
        };
        self.rules
            .lock()
            .iter()
            .find(strikes)
            .map(|rule| rule.treatment)
    }
}

async fn answer(
    mut api: TroubledApi,
    request: Request<kube::client::Body>,
) -> Result<Response<Body>, Infallible> {
    match api.treatment(&request) {
        None => {}
        Some(Treatment::Refused(code)) => return Ok(refusal(code)),
        Some(Treatment::Delayed(by)) => api.clock.sleep(by).await,
        Some(Treatment::Held) => {
            while api.treatment(&request) == Some(Treatment::Held) {
                api.clock.sleep(Duration::from_secs(1)).await;
            }
        }
    }
    tower::Service::call(&mut api.inner, request).await
}
