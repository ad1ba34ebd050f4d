//! Keys with which events of Triggers are signed, as this binary has them made: `POST /heddle/v1/triggers/{namespace}/{name}/…`.
//!
//! ```text
//!   sign         a key, its Secret, and then the wish on the Trigger
//!   rotate-key   another key in the Secret; the one before signs for a while longer
//!   unsign       the wish goes, and then the Secret
//! ```
//! Whoever may change a Trigger has its events signed, though they may not read Secrets: the key is in the answer, once, and in
//! no other. It is drawn here and written as the controllers write; who asked is in the audit log, which has no bodies. An
//! order of two writes that breaks off in between leaves a Secret that signs nothing, or a wish without one; never an event
//! that goes out unsigned.

mod decide;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use heddle_api::Trigger;
use heddle_api::names::signing_secret;
use heddle_api::signing::{
    MadeKey, OVERLAP, OVERLAP_WANTED, RotateKeyRequest, SignRequest, SigningKey, SigningKeys,
    SigningScheme, overlap, patch,
};
use heddle_api::well_known::field_manager;
use heddle_mesh::path::delivery::signing::verification_key;
use heddle_rt::{Chance, Clock};
use http::{HeaderValue, StatusCode, header};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::json;

use self::decide::SigningState;
use crate::bundles::axum_json;
use crate::client::target::check_name;
use crate::control::refuse;

/// Answers what is asked about the keys of Triggers.
#[derive(Clone)]
pub(crate) struct SigningApi {
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    pub(crate) chance: Chance,
}

impl std::fmt::Debug for SigningApi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SigningApi")
    }
}

/// Why nothing was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SigningRefusal {
    status: StatusCode,
    code: &'static str,
    message: String,
}

impl SigningRefusal {
    fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid", message.into())
    }

    fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", message.into())
    }

    fn new(status: StatusCode, code: &'static str, message: String) -> Self {
        Self {
            status,
            code,
            message,
        }
    }
}

/// What the API server says in the way of a write.
impl From<kube::Error> for SigningRefusal {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) if matches!(status.code, 404 | 409) => Self::conflict(
                "somebody changed the trigger or its Secret at the same time; look, and try again",
            ),
            kube::Error::Api(status) => {
                let code = StatusCode::from_u16(status.code);
                let code = code.unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
                Self::new(code, "unavailable", status.message.clone())
            }
            error => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "unavailable",
                error.to_string(),
            ),
        }
    }
}

impl SigningApi {
    /// The router, without the prefix.
    pub(crate) fn router(self) -> Router {
        Router::new()
            .route("/triggers/{namespace}/{name}/sign", post(sign))
            .route("/triggers/{namespace}/{name}/rotate-key", post(rotate))
            .route("/triggers/{namespace}/{name}/unsign", post(unsign))
            .with_state(self)
    }

    /// A Trigger, and its Secret if there is one.
    async fn look(&self, namespace: &str, name: &str) -> Result<SigningState, SigningRefusal> {
        for part in [namespace, name] {
            // It becomes a part of a path that is asked for with all rights.
            check_name(part).map_err(|error| SigningRefusal::invalid(error.to_string()))?;
        }
        let triggers: Api<Trigger> = Api::namespaced(self.client.clone(), namespace);
        let Some(trigger) = triggers.get_opt(name).await? else {
            let message = format!("there is no trigger {namespace}/{name}");
            return Err(SigningRefusal::new(
                StatusCode::NOT_FOUND,
                "notFound",
                message,
            ));
        };
        if trigger.metadata.deletion_timestamp.is_some() {
            let message = format!("trigger {namespace}/{name} is being deleted");
            return Err(SigningRefusal::conflict(message));
        }
        let secret = self
            .secrets(namespace)
            .get_opt(&signing_secret(name))
            .await?;
        Ok(SigningState { trigger, secret })
    }

    fn secrets(&self, namespace: &str) -> Api<Secret> {
        Api::namespaced(self.client.clone(), namespace)
    }

    fn draw(&self, scheme: SigningScheme) -> SigningKey {
        SigningKey::draw(scheme, |bytes| self.chance.fill(bytes))
    }

    /// Puts keys where the mesh finds them, unless somebody else changed the Secret since it was looked at.
    async fn keep(&self, state: &SigningState, keys: &SigningKeys) -> Result<(), SigningRefusal> {
        let secret = state.secret_with(keys);
        let secrets = self.secrets(&state.namespace());
        let params = PostParams {
            field_manager: Some(field_manager::SIGNING.to_owned()),
            ..PostParams::default()
        };
        match &state.secret {
            None => secrets.create(&params, &secret).await?,
            Some(live) => secrets.replace(&live.name_any(), &params, &secret).await?,
        };
        Ok(())
    }

    /// Says on the Trigger whether its events are signed.
    async fn wish(&self, state: &SigningState, wanted: bool) -> Result<(), SigningRefusal> {
        let triggers: Api<Trigger> = Api::namespaced(self.client.clone(), &state.namespace());
        let params = PatchParams {
            field_manager: Some(field_manager::SIGNING.to_owned()),
            ..PatchParams::default()
        };
        let uid = state.trigger.uid().unwrap_or_default();
        let patch = Patch::Merge(patch(&uid, wanted));
        let name = state.trigger.name_any();
        triggers.patch(&name, &params, &patch).await?;
        Ok(())
    }

    async fn remove(&self, state: &SigningState) -> Result<(), SigningRefusal> {
        let Some(secret) = state.own_secret() else {
            return Ok(());
        };
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: secret.uid(),
                resource_version: secret.resource_version(),
            }),
            ..DeleteParams::default()
        };
        let secrets = self.secrets(&state.namespace());
        match secrets.delete(&secret.name_any(), &params).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    async fn sign(
        &self,
        (namespace, name): (&str, &str),
        request: &SignRequest,
    ) -> Result<MadeKey, SigningRefusal> {
        let state = self.look(namespace, name).await?;
        let keys = state.begin(self.draw(request.scheme))?;
        self.keep(&state, &keys).await?;
        self.wish(&state, true).await?;
        made(&state, &keys)
    }

    async fn rotate(
        &self,
        (namespace, name): (&str, &str),
        request: &RotateKeyRequest,
    ) -> Result<MadeKey, SigningRefusal> {
        let lasts = match request.overlap.as_deref() {
            None => OVERLAP,
            Some(text) => overlap(text).ok_or_else(|| {
                SigningRefusal::invalid(format!(
                    "the overlap is {text:?}, wanted is {OVERLAP_WANTED}"
                ))
            })?,
        };
        let state = self.look(namespace, name).await?;
        let before = state.signing_keys()?;
        let key = self.draw(request.scheme.unwrap_or(before.current.scheme));
        let keys = decide::rotate(before, key, lasts, self.clock.now())?;
        self.keep(&state, &keys).await?;
        made(&state, &keys)
    }

    async fn unsign(&self, (namespace, name): (&str, &str)) -> Result<(), SigningRefusal> {
        let state = self.look(namespace, name).await?;
        self.wish(&state, false).await?;
        self.remove(&state).await
    }
}

/// What is told once.
fn made(state: &SigningState, keys: &SigningKeys) -> Result<MadeKey, SigningRefusal> {
    let key = verification_key(&keys.current);
    let namespace = state.namespace();
    let trigger = state.trigger.name_any();
    Ok(MadeKey {
        secret: format!("{namespace}/{}", signing_secret(&trigger)),
        trigger: format!("{namespace}/{trigger}"),
        scheme: keys.current.scheme,
        key: key.map_err(|why| {
            SigningRefusal::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", why)
        })?,
        previous_until: keys.previous.as_ref().map(|(_, until)| *until),
    })
}

/// Namespace and name.
type WhichTrigger = Path<(String, String)>;

async fn sign(
    State(api): State<SigningApi>,
    Path((namespace, name)): WhichTrigger,
    body: Bytes,
) -> Response {
    let done = async { api.sign((&namespace, &name), &read(&body)?).await };
    told(done.await)
}

async fn rotate(
    State(api): State<SigningApi>,
    Path((namespace, name)): WhichTrigger,
    body: Bytes,
) -> Response {
    let done = async { api.rotate((&namespace, &name), &read(&body)?).await };
    told(done.await)
}

async fn unsign(State(api): State<SigningApi>, Path((namespace, name)): WhichTrigger) -> Response {
    let done = api.unsign((&namespace, &name)).await;
    let trigger = format!("{namespace}/{name}");
    told(done.map(|()| json!({"trigger": trigger})))
}

/// What was asked for; nothing asks for what is usual.
fn read<T: DeserializeOwned + Default>(body: &[u8]) -> Result<T, SigningRefusal> {
    if body.is_empty() {
        return Ok(T::default());
    }
    serde_json::from_slice(body).map_err(|error| SigningRefusal::invalid(error.to_string()))
}

/// The answer, which nobody keeps.
fn told<T: serde::Serialize>(done: Result<T, SigningRefusal>) -> Response {
    match done {
        Ok(done) => {
            let mut response = axum_json(&done).into_response();
            let nobody = HeaderValue::from_static("no-store");
            response.headers_mut().insert(header::CACHE_CONTROL, nobody);
            response
        }
        Err(refused) => refuse(refused.status, refused.code, &refused.message),
    }
}
