//! The service: one request in, one response out, whatever carried it here.
//!
//! Two doors lead in. `Remote` authenticates by token, or was told who it is; `InProcess` carries an identity given when it was made,
//! and runs the handler in the caller's task. A handler may be dropped at any await: nothing is half done,
//! because a commit is handed to the store's writer whole and finishes there.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use heddle_api::access::Access;
use heddle_api::audit::ChangeNote;
use heddle_rt::net::receive::RequestBody;
use http::{Extensions, HeaderValue, Method, Request, Response, StatusCode, header, request};
use serde_json::Value;

use crate::auth::{self, Identity};
use crate::registry::{BuiltIn, Nature, Registry, Resource};
use crate::request::{Params, Path, Target};
use crate::status::{Result, StatusError};
use crate::strategy::Part;
use crate::{Inner, body, delete, discovery, negotiate, openapi, read, reviews, watch, write};

type ResponseFuture = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

/// The door for peers.
#[derive(Debug, Clone)]
pub struct Remote {
    inner: Arc<Inner>,
}

/// The door for this process.
#[derive(Debug, Clone)]
pub struct InProcess {
    inner: Arc<Inner>,
    identity: Identity,
    is_lean: bool,
}

impl Remote {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        Self { inner }
    }
}

impl InProcess {
    pub(crate) fn new(inner: Arc<Inner>, identity: Identity) -> Self {
        Self {
            inner,
            identity,
            is_lean: false,
        }
    }

    /// The same, with custom objects as those want them who act on them: without the notes of who wrote which field. Objects
    /// of Kubernetes' own kinds keep them, since a namespace's say who labelled it.
    #[must_use]
    pub fn lean(self) -> Self {
        Self {
            is_lean: true,
            ..self
        }
    }
}

impl<B: RequestBody + 'static> tower::Service<Request<B>> for Remote {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> ResponseFuture {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            let identity = told_by_door(request.extensions()).map_or_else(
                || {
                    let holder = inner
                        .tokens
                        .authenticate(request.headers(), inner.clock.now());
                    holder.map(|holder| holder.identity)
                },
                Ok,
            );
            Ok(answer(inner, identity, request).await)
        })
    }
}

/// Who it is, if that was told apart before the request came here. No peer can set an extension.
fn told_by_door(extensions: &Extensions) -> Option<Identity> {
    let access = || extensions.get::<Access>().map(Identity::of);
    extensions.get::<Identity>().cloned().or_else(access)
}

impl<B: RequestBody + 'static> tower::Service<Request<B>> for InProcess {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> ResponseFuture {
        let inner = Arc::clone(&self.inner);
        let identity = self.identity.clone();
        if self.is_lean && request.uri().path().starts_with("/apis/") {
            negotiate::prefer_lean(request.headers_mut());
        }
        Box::pin(async move { Ok(answer(inner, Ok(identity), request).await) })
    }
}

/// A request whose meaning is settled: what every verb's handler works from.
#[derive(Debug)]
pub(crate) struct Call {
    pub resource: Arc<Resource>,
    pub namespace: Option<String>,
    pub name: Option<String>,
    pub part: Part,
    pub params: Params,
    pub identity: Identity,
    pub parts: request::Parts,
}

impl Call {
    /// Who is recorded as the writer: what the client says, else what it calls itself.
    pub(crate) fn field_manager(&self) -> String {
        if let Some(manager) = &self.params.field_manager {
            return manager.clone();
        }
        let agent = self
            .parts
            .headers
            .get(header::USER_AGENT)
            .and_then(|value| value.to_str().ok());
        let agent = agent
            .map(|agent| agent.split('/').next().unwrap_or(agent))
            .filter(|agent| !agent.is_empty());
        agent.map_or_else(|| self.identity.user.to_string(), str::to_owned)
    }

    pub(crate) fn name(&self) -> &str {
        self.name
            .as_deref()
            .expect("verbs on one object are dispatched only with a name")
    }
}

async fn answer<B: RequestBody + 'static>(
    inner: Arc<Inner>,
    identity: Result<Identity>,
    request: Request<B>,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let started = inner.clock.monotonic();
    let label = Label::of(&inner.registry, &parts);
    let response = match identity {
        Ok(identity) => route(&inner, identity, parts, body).await,
        Err(refusal) => Err(refusal),
    };
    let response = response.unwrap_or_else(refused);
    inner.metrics.request(
        label.verb,
        &label.resource,
        response.status(),
        inner.clock.monotonic() - started,
    );
    response
}

/// What metrics call a request. Whatever its path says, there are only as many of these as there are kinds.
struct Label {
    verb: &'static str,
    resource: String,
}

impl Label {
    const UNKNOWN: &str = "unknown";

    fn of(registry: &Registry, parts: &request::Parts) -> Self {
        let Path::Object(target) = crate::request::path(parts.uri.path()) else {
            return Self {
                verb: "get",
                resource: "discovery".to_owned(),
            };
        };
        let watch = parts
            .uri
            .query()
            .is_some_and(|query| query.contains("watch="));
        let verb = crate::request::verb(&parts.method, &target, watch).unwrap_or("other");
        let known = registry.find(target.group, target.version, target.plural);
        let resource = known.map_or(Self::UNKNOWN, |resource| resource.plural.as_str());
        Self {
            verb,
            resource: resource.to_owned(),
        }
    }
}

async fn route<B: RequestBody + 'static>(
    inner: &Arc<Inner>,
    identity: Identity,
    parts: request::Parts,
    body: B,
) -> Result<Response<Body>> {
    let registry = &inner.registry;
    let path = parts.uri.path().to_owned();
    let found = |value: Option<Value>| {
        value
            .map(|value| json_response(StatusCode::OK, &value))
            .ok_or_else(StatusError::unknown_path)
    };
    match crate::request::path(&path) {
        Path::Object(target) => object(inner, identity, target, parts, body).await,
        Path::Unknown => Err(StatusError::unknown_path()),
        _ if parts.method != Method::GET && parts.method != Method::HEAD => {
            Err(StatusError::method_not_allowed())
        }
        Path::Root => found(Some(discovery::root(registry))),
        Path::Version => found(Some(discovery::version())),
        Path::CoreVersions => Ok(discovery_response(&parts, discovery::core_versions, || {
            discovery::aggregated(registry, true)
        })),
        Path::Groups => Ok(discovery_response(
            &parts,
            || discovery::api_groups(registry),
            || discovery::aggregated(registry, false),
        )),
        Path::Group(group) => found(discovery::api_group(registry, group)),
        Path::Resources { group, version } => {
            found(discovery::api_resources(registry, group, version))
        }
        Path::OpenApiIndex => found(Some(openapi::index(registry))),
        Path::OpenApi(document) => found(openapi::document(registry, document)),
        Path::OpenApiV2 if negotiate::accepts_openapi_protobuf(&parts.headers) => {
            let mut response = Response::new(Body::from(openapi::v2::as_protobuf(registry)));
            let media = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
            response
                .headers_mut()
                .insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
            Ok(response)
        }
        Path::OpenApiV2 => found(Some(openapi::v2::as_json(registry))),
    }
}

async fn object<B: RequestBody + 'static>(
    inner: &Arc<Inner>,
    identity: Identity,
    target: Target<'_>,
    parts: request::Parts,
    body: B,
) -> Result<Response<Body>> {
    if let Some(review) = reviews::of(&target) {
        return review.ask(&inner.registry, &identity, &parts, body).await;
    }
    let params = Params::parse(&parts.method, parts.uri.query().unwrap_or_default())?;
    let resource = inner
        .registry
        .find(target.group, target.version, target.plural)
        .cloned();
    let resource = resource.ok_or_else(StatusError::unknown_path)?;
    if target.namespace.is_some() != resource.namespaced
        && (target.namespace.is_some() || target.name.is_some())
    {
        return Err(StatusError::unknown_path());
    }
    let verb = crate::request::verb(&parts.method, &target, params.watch)
        .ok_or_else(StatusError::method_not_allowed)?;
    let part = match target.subresource {
        None => Part::Main,
        Some("status") if resource.has_status => Part::Status,
        Some(_) => return Err(StatusError::unknown_path()),
    };
    if part == Part::Status && !matches!(verb, "get" | "update" | "patch") {
        return Err(StatusError::method_not_allowed());
    }
    if resource.namespaced && target.namespace.is_none() && !matches!(verb, "list" | "watch") {
        return Err(StatusError::method_not_allowed());
    }
    let wanted = auth::ObjectRequest {
        verb,
        resource: &resource,
        namespace: target.namespace,
        name: target.name,
        is_status: part == Part::Status,
    };
    auth::authorize(&identity, &wanted)?;
    if !resource.verbs().contains(&verb) {
        return Err(match resource.nature {
            Nature::BuiltIn(BuiltIn::Absent) => StatusError::not_kept(&resource),
            _ => StatusError::method_not_allowed(),
        });
    }
    let call = Call {
        namespace: target.namespace.map(str::to_owned),
        name: target.name.map(str::to_owned),
        resource,
        part,
        params,
        identity,
        parts,
    };
    if verb == "watch" {
        if negotiate::wants_websocket(&call.parts.headers) {
            return Err(StatusError::no_websocket());
        }
        return watch::watch(inner, call);
    }
    let _permit = inner
        .inflight
        .try_acquire()
        .map_err(|_| StatusError::too_many_requests())?;
    let limit = Duration::from_secs(inner.limits.request_seconds_max);
    let work = handle(inner, &call, verb, body);
    inner
        .clock
        .timeout(limit, work)
        .await
        .unwrap_or_else(|_| Err(StatusError::timeout()))
}

async fn handle<B: RequestBody + 'static>(
    inner: &Arc<Inner>,
    call: &Call,
    verb: &str,
    body: B,
) -> Result<Response<Body>> {
    let response = match verb {
        "get" => return read::get(inner, call),
        "list" => return read::list(inner, call),
        _ => {
            let bytes = body::read(body, &call.parts, &call.identity).await?;
            let bytes = &bytes.bytes;
            match verb {
                "create" => write::create(inner, call, bytes).await,
                "update" => write::replace(inner, call, bytes).await,
                "patch" => write::patch(inner, call, bytes).await,
                "delete" => delete::one(inner, call, bytes).await,
                "deletecollection" => delete::collection(inner, call, bytes).await,
                other => Err(StatusError::internal(format!(
                    "verb {other} has no handler"
                ))),
            }
        }
    };
    audit(call, verb, &response);
    response
}

/// Every attempt to change something leaves a line: who, what, and how it ended. Bodies are never logged.
fn audit(call: &Call, verb: &str, response: &Result<Response<Body>>) {
    let code = match response {
        Ok(response) => response.status().as_u16(),
        Err(refusal) => refusal.code.as_u16(),
    };
    tracing::debug!(
        target: "heddle::audit",
        user = %call.identity.user, verb, resource = %call.resource.plural, group = %call.resource.group,
        namespace = call.namespace.as_deref(), name = call.name.as_deref(), code, dry_run = call.params.dry_run,
        "write"
    );
}

fn discovery_response(
    parts: &request::Parts,
    legacy: impl FnOnce() -> Value,
    aggregated: impl FnOnce() -> Value,
) -> Response<Body> {
    let mut response = match negotiate::aggregated_discovery(&parts.headers) {
        Some(_) => {
            let mut response = json_response(StatusCode::OK, &aggregated());
            let media = HeaderValue::from_static(discovery::AGGREGATED_MEDIA_TYPE);
            response.headers_mut().insert(header::CONTENT_TYPE, media);
            response
        }
        None => json_response(StatusCode::OK, &legacy()),
    };
    response
        .headers_mut()
        .insert(header::VARY, HeaderValue::from_static("Accept"));
    response
}

pub(crate) fn json_response(status: StatusCode, value: &Value) -> Response<Body> {
    bytes_response(status, Bytes::from(value.to_string()))
}

pub(crate) fn bytes_response(status: StatusCode, bytes: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = status;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    response
}

fn refused(refusal: StatusError) -> Response<Body> {
    let mut response = json_response(refusal.code, &refusal.to_json());
    if let Some(seconds) = refusal.retry_after {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response.extensions_mut().insert(ChangeNote {
        reason: Some(refusal.reason.into()),
        ..ChangeNote::default()
    });
    if refusal.code == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(
            header::WWW_AUTHENTICATE,
            HeaderValue::from_static("Bearer realm=\"heddle\""),
        );
    }
    response
}
