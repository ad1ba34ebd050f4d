//! Bundles, as this binary has them: the workshop below the data directory, as the controllers know it, and the door
//! through which developers push images to heddle itself.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use heddle_api::action::{Run, RunState};
use heddle_api::bundle_source::{Fetch, FetchError, ReadRequest};
use heddle_api::evidence::Reading;
use heddle_bundles::images::{Image, Limits};
use heddle_bundles::registries::push;
use heddle_bundles::sandbox::NetworkRules;
use heddle_bundles::workshop::{self, Workshop};
use heddle_controllers::Bundles;
use heddle_rt::Tasks;
use heddle_rt::net::dial::Network;
use http::StatusCode;
use serde::Deserialize;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::wire::World;

/// The hidden command that becomes a shim, followed by a directory.
pub const SHIM: &str = "sandbox-run";
/// Where images are pushed to, below `/heddle/v1`.
pub(crate) const PUSH_PATH: &str = "/bundles";
/// A pushed image with everything around it. Larger ones belong into a registry.
const PUSH_BYTES_MAX: usize = 256 << 20;

/// Opens the workshop below the data directory.
pub(crate) fn open(
    directory: &Path,
    world: &World,
    tasks: &Tasks,
    network: NetworkRules,
) -> anyhow::Result<Workshop> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let options = workshop::Options {
        directory: directory.join("bundles"),
        shim: vec![program.into_os_string(), OsString::from(SHIM)],
        limits: Limits::default(),
        vfs: world.vfs.clone(),
        clock: world.clock.clone(),
        chance: world.chance.clone(),
        tasks: tasks.child("bundles"),
        connect: Arc::new(Network::new(world.clock.clone(), network.egress.clone())),
        network,
    };
    Workshop::open(options).context("cannot open what bundles need")
}

/// The workshop, as the controllers know it.
#[derive(Debug)]
pub(crate) struct Port(pub(crate) Workshop);

impl Bundles for Port {
    fn read(&self, request: ReadRequest) -> BoxFuture<'static, Reading> {
        let workshop = self.0.clone();
        async move { workshop.read(request).await }.boxed()
    }

    fn is_kept(&self, manifest_digest: &str) -> bool {
        self.0.is_kept(manifest_digest)
    }

    fn keep(&self, fetch: Fetch) -> BoxFuture<'static, Result<(), FetchError>> {
        let workshop = self.0.clone();
        async move { workshop.keep(fetch).await }.boxed()
    }

    fn keep_only(&self, manifest_digests: Vec<String>) -> BoxFuture<'static, Result<(), String>> {
        let workshop = self.0.clone();
        async move { workshop.keep_only(manifest_digests).await }.boxed()
    }

    fn start(&self, run: Run) -> BoxFuture<'static, Result<(), String>> {
        let workshop = self.0.clone();
        async move { workshop.start(run).await }.boxed()
    }

    fn look(&self, id: &str) -> BoxFuture<'static, RunState> {
        std::future::ready(self.0.look(id)).boxed()
    }

    fn credentials(
        &self,
        id: &str,
    ) -> BoxFuture<'static, Result<Option<Map<String, Value>>, String>> {
        std::future::ready(self.0.credentials(id)).boxed()
    }

    fn cancel(&self, id: &str) -> BoxFuture<'static, Result<(), String>> {
        let (workshop, id) = (self.0.clone(), id.to_owned());
        async move { workshop.cancel(id).await }.boxed()
    }

    fn forget(&self, id: &str) -> BoxFuture<'static, Result<(), String>> {
        let (workshop, id) = (self.0.clone(), id.to_owned());
        async move { workshop.forget(id).await }.boxed()
    }

    fn forget_instance(&self, instance: &str) -> BoxFuture<'static, Result<(), String>> {
        let (workshop, instance) = (self.0.clone(), instance.to_owned());
        async move { workshop.forget_instance(instance).await }.boxed()
    }

    fn changed(&self, seen: u64) -> BoxFuture<'static, u64> {
        let workshop = self.0.clone();
        async move { workshop.changed(seen).await }.boxed()
    }
}

/// The door for images, and the logs of actions. Whoever asks has been let in already.
pub(crate) fn router(workshop: Workshop) -> Router {
    Router::new()
        .route(PUSH_PATH, post(take))
        .route("/runs/{id}/log", axum::routing::get(log))
        .layer(DefaultBodyLimit::max(PUSH_BYTES_MAX))
        .with_state(workshop)
}

/// An image on its way, and what it is to be called.
#[derive(Deserialize)]
struct Parcel {
    repository: String,
    tag: String,
    manifest: String,
    config: String,
    layers: Vec<String>,
}

/// The body of a push.
pub(crate) fn parcel(repository: &str, tag: &str, image: &Image) -> Value {
    let encode = |bytes: &Bytes| STANDARD.encode(bytes);
    json!({
        "repository": repository,
        "tag": tag,
        "manifest": encode(&image.manifest),
        "config": encode(&image.config),
        "layers": image.layers.iter().map(encode).collect::<Vec<_>>(),
    })
}

fn unpacked(body: &[u8]) -> Result<(String, String, Image), String> {
    let parcel: Parcel = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let decode = |text: &String| {
        let bytes = STANDARD.decode(text).map_err(|error| error.to_string());
        bytes.map(Bytes::from)
    };
    let layers: Result<Vec<Bytes>, String> = parcel.layers.iter().map(decode).collect();
    let image = Image {
        manifest: decode(&parcel.manifest)?,
        config: decode(&parcel.config)?,
        layers: layers?,
    };
    Ok((parcel.repository, parcel.tag, image))
}

async fn take(State(workshop): State<Workshop>, body: Bytes) -> Response {
    let (repository, tag, image) = match unpacked(&body) {
        Ok(parcel) => parcel,
        Err(why) => return refusal(StatusCode::BAD_REQUEST, &format!("this is no image: {why}")),
    };
    match workshop.push(repository, tag, image).await {
        Ok(digest) => (StatusCode::CREATED, axum_json(&json!({"digest": digest}))).into_response(),
        Err(push::Error::Invalid(why)) => refusal(StatusCode::UNPROCESSABLE_ENTITY, &why),
        Err(error @ push::Error::Io { .. }) => {
            let why = format!("{:#}", anyhow::Error::new(error));
            refusal(StatusCode::INTERNAL_SERVER_ERROR, &why)
        }
    }
}

async fn log(
    State(workshop): State<Workshop>,
    axum::extract::Path(id): axum::extract::Path<String>,
) -> Response {
    match workshop.log(&id) {
        Ok(text) => text.into_response(),
        Err(why) => refusal(StatusCode::NOT_FOUND, &why),
    }
}

fn refusal(status: StatusCode, message: &str) -> Response {
    let body = json!({"code": status.as_u16(), "message": message});
    (status, axum_json(&body)).into_response()
}

/// A body of JSON, and the header that says so.
pub(crate) fn axum_json(value: &impl Serialize) -> ([(http::HeaderName, &'static str); 1], String) {
    let kind = (http::header::CONTENT_TYPE, "application/json");
    ([kind], serde_json::to_string(value).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_comes_out_of_its_parcel_as_it_went_in() {
        let image = Image {
            manifest: Bytes::from_static(b"{}"),
            config: Bytes::from_static(b"\x00\xff"),
            layers: vec![Bytes::new(), Bytes::from_static(b"layer")],
        };
        let body = parcel("acme/db", "v1", &image).to_string();
        let expected = ("acme/db".to_owned(), "v1".to_owned(), image);
        assert_eq!(unpacked(body.as_bytes()), Ok(expected));
        assert!(unpacked(b"{\"manifest\": 1}").is_err());
        assert!(
            unpacked(
                br#"{"repository": "a", "tag": "b", "manifest": "*", "config": "", "layers": []}"#
            )
            .is_err()
        );
    }
}
