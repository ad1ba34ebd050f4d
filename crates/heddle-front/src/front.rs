//! The door: from a request to an answer, in one order.
//!
//! ```text
//!   who? 401 ─> version? 400, 412 ─> path and method? 404, 405 ─> syntax? 400 ─> the verb
//! ```
//! Every answer carries the identity that the request came with. What is logged of a request is what was asked about which
//! instance; never a body, a header or a parameter.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use heddle_rt::net::receive::RequestBody;
use heddle_rt::{Chance, Clock, OnError, Tasks};
use http::request::Parts;
use http::{HeaderName, Request, Response};
use http_body_util::Full;
use kube::Client;
use tracing::Instrument as _;

use crate::account;
use crate::auth::Credentials;
use crate::catalog::Catalog;
use crate::contact::Contacts;
use crate::error::OsbError;
use crate::id_locks::IdLocks;
use crate::identity::{self, AdmittedPerson, REQUEST_IDENTITY};
use crate::metrics::Metrics;
use crate::objects::Objects;
use crate::offers::Offers;
use crate::parameters::Validators;
use crate::route::{OsbVerb, Route, Target};
use crate::settings::Settings;
use crate::verbs::{
    Call, Deps, OsbAnswer, bind, catalog, deprovision, fetch_binding, fetch_instance,
    last_operation, provision, unbind, update,
};
use crate::version::Version;
use crate::wire::body;
use crate::wire::query::OsbQuery;

/// What a front is made of.
pub struct Options {
    /// May read and write instances and bindings, and read Secrets, and ConfigMaps of the system namespace.
    pub client: Client,
    pub clock: Clock,
    pub chance: Chance,
    /// What goes on behind answers runs here: following credentials, noting contacts, rendering the catalog.
    pub tasks: Tasks,
    pub offers: Arc<dyn Offers>,
    pub credentials: Credentials,
    pub settings: Settings,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// The service behind `/v2` and `/osb/{namespace}/v2`. Clones are the same front.
#[derive(Clone, Debug)]
pub struct Front {
    deps: Arc<Deps>,
    credentials: Credentials,
}

impl Front {
    /// Starts what goes on behind answers.
    #[must_use]
    pub fn start(options: Options) -> Self {
        let Options {
            client,
            clock,
            chance,
            tasks,
            offers,
            credentials,
            settings,
        } = options;
        let following = credentials
            .clone()
            .follow(client.clone(), clock.clone(), chance.clone());
        tasks.spawn("credentials", OnError::Report, following);
        let contacts = Contacts::start(client.clone(), clock.clone(), &tasks);
        let started = clock.monotonic();
        let deps = Deps {
            objects: Objects::new(client),
            offers,
            validators: Validators::default(),
            contacts,
            metrics: Metrics::default(),
            settings,
            clock,
            chance,
            id_locks: IdLocks::default(),
            started,
            rendering: Arc::default(),
            tasks,
        };
        Self {
            deps: Arc::new(deps),
            credentials,
        }
    }

    /// Numbers for Prometheus.
    #[must_use]
    pub fn metrics_text(&self) -> String {
        let census = self.deps.offers.census();
        let catalog = self.deps.offers.catalog();
        self.deps.metrics.text(&census, &catalog)
    }

    /// Everything that is known at present, offered or not.
    #[must_use]
    pub fn catalog(&self) -> Arc<Catalog> {
        self.deps.offers.catalog()
    }

    /// Whether the catalog has been read, so that platforms can be answered.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.deps.offers.is_ready()
    }

    /// Answers one request, with its path from the root.
    pub async fn handle<B: RequestBody>(&self, request: Request<B>) -> Response<Full<Bytes>> {
        let started = self.deps.clock.monotonic();
        let (parts, body) = request.into_parts();
        let identity = parts.headers.get(REQUEST_IDENTITY).cloned();
        let mut note = account::asked(&parts);
        let (name, version, result) = self.hear(&parts, body).await;
        if !matches!(result, Err(OsbError::Unauthorized)) {
            account::by(&mut note, &parts);
        }
        note.reason = result.as_ref().err().map(|error| error.word().into());
        if let Err(error) = &result
            && error.is_out_of_sync()
        {
            self.deps.metrics.out_of_sync(error.word());
        }
        let answer = result.unwrap_or_else(|error| error.into_answer(version));
        let took = self.deps.clock.monotonic().saturating_sub(started);
        self.deps
            .metrics
            .answered(name, answer.status.as_u16(), took);
        let mut response = answer.into_response();
        response.extensions_mut().insert(note);
        if let Some(identity) = identity {
            response
                .headers_mut()
                .insert(HeaderName::from_static(REQUEST_IDENTITY), identity);
        }
        response
    }

    /// What was asked, in which version, and what came of it.
    async fn hear<B: RequestBody>(
        &self,
        parts: &Parts,
        body: B,
    ) -> (&'static str, Version, OsbAnswer) {
        const NOTHING: &str = "none";
        let is_admitted = parts.extensions.get::<AdmittedPerson>().is_some();
        if !is_admitted && !self.credentials.admits(&parts.headers) {
            return (NOTHING, Version::OLDEST, Err(OsbError::Unauthorized));
        }
        let version = match Version::announced(&parts.headers, self.deps.settings.missing_version) {
            Ok(version) => version,
            Err(error) => return (NOTHING, Version::OLDEST, Err(error)),
        };
        let route = Route::of(parts.uri.path());
        let route =
            route.and_then(|route| route.target.verb(&parts.method).map(|verb| (route, verb)));
        let (route, verb) = match route {
            Ok(known) => known,
            Err(error) => return (NOTHING, version, Err(error)),
        };
        let span = tracing::info_span!(
            "osb",
            verb = verb.name(),
            instance = route.target.instance(),
            request = parts
                .headers
                .get(REQUEST_IDENTITY)
                .and_then(|value| value.to_str().ok()),
        );
        let answering = Box::pin(self.answer(parts, body, route, verb, version));
        let result = async {
            let result = answering.await;
            match &result {
                Ok(answer) => tracing::debug!(code = answer.status.as_u16(), "answered"),
                Err(error) => tracing::info!(
                    code = error.status().as_u16(),
                    error = error.word(),
                    "refused"
                ),
            }
            result
        };
        (verb.name(), version, result.instrument(span).await)
    }

    async fn answer<B: RequestBody>(
        &self,
        parts: &Parts,
        body: B,
        route: Route,
        verb: OsbVerb,
        version: Version,
    ) -> OsbAnswer {
        let call = Call {
            scope: route.scope,
            version,
            query: OsbQuery::of(parts.uri.query()),
            identity: match parts.extensions.get::<AdmittedPerson>() {
                Some(person) => Some(person.identity()),
                None => identity::originating(&parts.headers)?,
            },
        };
        let (deps, call) = (&*self.deps, &call);
        let body = match verb {
            OsbVerb::Provision | OsbVerb::Update | OsbVerb::Bind => {
                body::read(&parts.headers, &parts.extensions, body).await?
            }
            _ => body::Body::default(),
        };
        match (verb, &route.target) {
            (OsbVerb::Provision, Target::Instance { instance }) => {
                provision::answer(deps, call, instance, &body).await
            }
            (OsbVerb::FetchInstance, Target::Instance { instance }) => {
                fetch_instance::answer(deps, call, instance).await
            }
            (OsbVerb::Update, Target::Instance { instance }) => {
                update::answer(deps, call, instance, &body).await
            }
            (OsbVerb::Deprovision, Target::Instance { instance }) => {
                deprovision::answer(deps, call, instance).await
            }
            (_, Target::InstanceOperation { instance }) => {
                last_operation::of_instance(deps, call, instance).await
            }
            (OsbVerb::Bind, Target::Binding { instance, binding }) => {
                bind::answer(deps, call, instance, binding, &body).await
            }
            (OsbVerb::FetchBinding, Target::Binding { instance, binding }) => {
                fetch_binding::answer(deps, call, instance, binding).await
            }
            (OsbVerb::Unbind, Target::Binding { instance, binding }) => {
                unbind::answer(deps, call, instance, binding).await
            }
            (_, Target::BindingOperation { instance, binding }) => {
                last_operation::of_binding(deps, call, instance, binding).await
            }
            (_, Target::Catalog) => catalog::answer(deps, call, &parts.headers).await,
            (_, Target::Instance { .. } | Target::Binding { .. }) => Err(OsbError::NoSuchPath),
        }
    }
}

impl<B: RequestBody + 'static> tower::Service<Request<B>> for Front {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let front = self.clone();
        Box::pin(async move { Ok(front.handle(request).await) })
    }
}
