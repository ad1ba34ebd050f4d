//! The Open Service Broker front, as this binary runs it.
//!
//! Platforms come in at the control listener with what `osb-credentials.json` says, or with what Secrets say, or as the
//! administrator; people come in below `/heddle/v1/osb` with the rights of their role. The file is looked at again and again, so that a password is replaced without a restart: first both the
//! old and the new one are put into it, as a list, and later the old one is taken out. A file that cannot be read changes
//! nothing.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Extension, Path, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use bytes::Bytes;
use heddle_api::access::{Access, Right};
use heddle_apiserver::ADMINS;
use heddle_front::catalog;
use heddle_front::{AdmittedPerson, Credential, Credentials, Front, Options};
use heddle_rt::{Clock, OnError, Vfs};
use http::{HeaderValue, Method, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::bundles::axum_json;
use crate::config::Config;
use crate::wire::{Ground, World};

const VERSION_HEADER: &str = "x-broker-api-version";
const VERSION: &str = "2.17";

/// How soon a new password is good and an old one is not.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// What the credentials of the file are kept under.
const SOURCE: &str = "file";

/// Starts the front, and what it hangs on; all of it ends with the controllers, when the doors have closed.
pub(crate) fn start(
    config: &Config,
    world: &World,
    ground: &Ground,
    credentials_file: PathBuf,
) -> Front {
    let (client, tasks) = (ground.client(), ground.tasks.child("osb"));
    let administrators = ground.server.clone();
    let credentials = Credentials::new(move |headers| {
        let who = administrators.who(headers);
        who.is_some_and(|who| who.is_in(ADMINS))
    });
    let mut file = CredentialsFile::new(world.vfs.clone(), credentials_file, credentials.clone());
    file.look();
    tasks.spawn(
        "credentials-file",
        OnError::Report,
        file.follow(world.clock.clone()),
    );
    let options = catalog::Options::new(world.clock.clone(), world.chance.clone(), config.catalog);
    let (offers, following) = catalog::start(client.clone(), options);
    tasks.spawn("catalog", OnError::EndProcess, following);
    Front::start(Options {
        client,
        clock: world.clock.clone(),
        chance: world.chance.clone(),
        tasks,
        offers: Arc::new(offers),
        credentials,
        settings: config.osb.clone(),
    })
}

/// Where to ask what became of bundles in the catalog, below `/heddle/v1`.
pub(crate) const STANDINGS_PATH: &str = "/catalog/bundles";

/// Answers what no platform asks and people do, and people who ask as platforms do. Whoever asks has been let in already.
pub(crate) fn router(front: Front) -> Router {
    Router::new()
        .route(STANDINGS_PATH, get(standings))
        .route("/osb/{namespace}/v2/{*rest}", any(as_person))
        .with_state(front)
}

/// The protocol of platforms, for people within the namespaces of their role. The path is the front's own.
async fn as_person(
    State(front): State<Front>,
    Extension(access): Extension<Access>,
    Path((namespace, _)): Path<(String, String)>,
    mut request: Request,
) -> Response {
    let is_bind =
        *request.method() == Method::PUT && request.uri().path().contains("/service_bindings/");
    let person = AdmittedPerson {
        user: access.user.clone(),
    };
    request.extensions_mut().insert(person);
    // Platforms must say which version they mean; people mean this one.
    let version = request.headers_mut().entry(VERSION_HEADER);
    version.or_insert(HeaderValue::from_static(VERSION));
    let response = front.handle(request).await;
    // Asking again for a binding that is there would tell its credentials as often as somebody likes.
    let is_old = is_bind && response.status() == StatusCode::OK;
    if is_old && !access.may(Right::Administer, Some(&namespace)) {
        return without_credentials(response).await;
    }
    response.into_response()
}

async fn without_credentials(response: http::Response<Full<Bytes>>) -> Response {
    let (mut parts, body) = response.into_parts();
    let Ok(body) = body.collect().await;
    let mut body: Value = serde_json::from_slice(&body.to_bytes()).unwrap_or_default();
    if let Some(members) = body.as_object_mut() {
        members.remove("credentials");
    }
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, body.to_string().into())
}

/// By the names of Bundles: under which name each is offered, and why it is left out if it is.
async fn standings(State(front): State<Front>) -> impl IntoResponse {
    let catalog = front.catalog();
    let standings = catalog.bundles().into_iter().map(|(bundle, standing)| {
        let told = json!({"name": standing.name, "leftOut": standing.left_out});
        (bundle.to_owned(), told)
    });
    axum_json(&Value::Object(standings.collect::<Map<_, _>>()))
}

/// The file, and what it said when it was read last.
#[derive(Debug)]
struct CredentialsFile {
    vfs: Arc<dyn Vfs>,
    path: PathBuf,
    credentials: Credentials,
    last: Vec<u8>,
}

impl CredentialsFile {
    fn new(vfs: Arc<dyn Vfs>, path: PathBuf, credentials: Credentials) -> Self {
        Self {
            vfs,
            path,
            credentials,
            last: Vec::new(),
        }
    }

    /// Looks again and again, until the future is dropped.
    async fn follow(mut self, clock: Clock) {
        let mut looks = clock.interval(LOOK_EVERY);
        loop {
            looks.tick().await;
            // A hundred bytes out of the page cache: a thread for it would cost more than it saves.
            self.look();
        }
    }

    fn look(&mut self) {
        let bytes = match self.vfs.read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) => {
                tracing::debug!(path = %self.path.display(), %error, "cannot read the credentials of platforms");
                return;
            }
        };
        if bytes == self.last {
            return;
        }
        match parse(&bytes) {
            Some(known) => {
                self.credentials.put(SOURCE, &known);
                tracing::info!(path = %self.path.display(), count = known.len(), "took up the credentials of platforms");
            }
            None => warn_about(&self.path),
        }
        self.last = bytes;
    }
}

fn warn_about(path: &std::path::Path) {
    let path = path.display();
    tracing::warn!(%path, "the credentials of platforms are not {{username, password}} or a list of these; the last ones stay good");
}

/// One credential or a list of them, none of them empty.
pub(crate) fn parse(bytes: &[u8]) -> Option<Vec<Credential>> {
    let entries = match serde_json::from_slice(bytes).ok()? {
        Shape::One(entry) => vec![entry],
        Shape::Several(entries) => entries,
    };
    let good = |entry: &Entry| !entry.username.is_empty() && !entry.password.is_empty();
    if entries.is_empty() || !entries.iter().all(good) {
        return None;
    }
    let credential = |entry: Entry| Credential {
        username: entry.username,
        password: entry.password,
    };
    Some(entries.into_iter().map(credential).collect())
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Shape {
    One(Entry),
    Several(Vec<Entry>),
}

#[derive(Deserialize)]
struct Entry {
    username: String,
    password: String,
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use base64::Engine as _;
    use heddle_rt::MemoryVfs;
    use http::HeaderMap;

    #[tokio::test]
    async fn of_a_binding_that_is_there_everything_but_its_credentials_is_told() {
        let body = r#"{"credentials": {"password": "secret"}, "endpoints": []}"#;
        let response = http::Response::builder()
            .header(header::CONTENT_LENGTH, body.len())
            .body(Full::from(body))
            .unwrap();
        let told = without_credentials(response).await;
        assert_eq!(told.headers().get(header::CONTENT_LENGTH), None);
        let told = axum::body::to_bytes(told.into_body(), 1 << 10).await;
        assert_eq!(told.unwrap(), r#"{"endpoints":[]}"#.as_bytes());
    }

    #[test]
    fn a_file_holds_one_credential_or_several_and_nothing_else() {
        let count = |text: &str| parse(text.as_bytes()).map(|known| known.len());
        assert_eq!(count(r#"{"username": "a", "password": "b"}"#), Some(1));
        assert_eq!(
            count(r#"[{"username": "a", "password": "b"}, {"username": "a", "password": "c"}]"#),
            Some(2)
        );
        for text in [
            "",
            "{}",
            "[]",
            "[{}]",
            r#"{"username": "", "password": "b"}"#,
            r#"{"username": "a"}"#,
            "[1]",
        ] {
            assert_eq!(count(text), None, "{text}");
        }
    }

    #[test]
    fn a_new_password_is_good_at_the_next_look_and_a_broken_file_changes_nothing() {
        let vfs: Arc<dyn Vfs> = MemoryVfs::new().shared();
        let path = PathBuf::from("/data/osb-credentials.json");
        vfs.create_dir_all(Path::new("/data")).unwrap();
        let write = |text: &str| vfs.write_atomic(&path, text.as_bytes(), 0o600).unwrap();
        let credentials = Credentials::new(|_| false);
        let mut file = CredentialsFile::new(vfs.clone(), path.clone(), credentials.clone());
        let admits = |password: &str| {
            let text =
                base64::engine::general_purpose::STANDARD.encode(format!("heddle:{password}"));
            let value = HeaderValue::from_str(&format!("Basic {text}")).unwrap();
            credentials.admits(&HeaderMap::from_iter([(header::AUTHORIZATION, value)]))
        };
        file.look();
        assert!(!admits("one"), "there is no file yet");
        write(r#"{"username": "heddle", "password": "one"}"#);
        file.look();
        assert!(admits("one"));
        write(
            r#"[{"username": "heddle", "password": "one"}, {"username": "heddle", "password": "two"}]"#,
        );
        file.look();
        assert!(admits("one") && admits("two"));
        write("{");
        file.look();
        assert!(admits("one") && admits("two"));
        write(r#"{"username": "heddle", "password": "two"}"#);
        file.look();
        assert!(!admits("one") && admits("two"));
    }
}
