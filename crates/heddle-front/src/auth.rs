//! Who may ask.
//!
//! Platforms show a user name and a password; there may be several of them at once, so that one can be replaced without an
//! instant in which none is good. They come from wherever somebody puts them under a name, and from Secrets, which are
//! watched. The administrator's bearer token is good too; whether it is one is for others to say.
//!
//! Only hashes are kept. A comparison goes through all of them and through all of their bytes, whatever it finds.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt as _;
use heddle_api::well_known::SYSTEM_NAMESPACE;
use heddle_rt::backoff::{Backoff, Limits};
use heddle_rt::{Chance, Clock};
use http::{HeaderMap, header};
use k8s_openapi::api::core::v1::Secret;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, ResourceExt as _};
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

/// Label of Secrets in the system namespace that hold a platform's user name and password.
pub const CREDENTIALS_LABEL: &str = "heddle.dev/osb-credentials";
/// The type that such a Secret has.
const SECRET_TYPE: &str = "kubernetes.io/basic-auth";

type Hash = [u8; 32];
type IsAdministrator = Arc<dyn Fn(&HeaderMap) -> bool + Send + Sync>;

/// A platform's user name and password.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    pub username: String,
    pub password: String,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential")
            .field("username", &self.username)
            .finish_non_exhaustive()
    }
}

impl Credential {
    fn hash(&self) -> Hash {
        hash(format!("{}:{}", self.username, self.password).as_bytes())
    }
}

/// Everybody who may ask. Clones are the same.
#[derive(Clone)]
pub struct Credentials {
    /// By where they came from.
    sources: Arc<Mutex<BTreeMap<String, Vec<Hash>>>>,
    /// All of them, for whoever asks.
    all: Arc<ArcSwap<Vec<Hash>>>,
    is_administrator: IsAdministrator,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("count", &self.all.load().len())
            .finish_non_exhaustive()
    }
}

impl Credentials {
    /// Nobody yet, except for those of whom `is_administrator` says so.
    pub fn new(is_administrator: impl Fn(&HeaderMap) -> bool + Send + Sync + 'static) -> Self {
        Self {
            sources: Arc::default(),
            all: Arc::default(),
            is_administrator: Arc::new(is_administrator),
        }
    }

    /// Replaces what came from `source`. Whoever is not among them any more is refused from now on.
    pub fn put(&self, source: &str, credentials: &[Credential]) {
        let mut sources = self.sources.lock();
        sources.insert(
            source.to_owned(),
            credentials.iter().map(Credential::hash).collect(),
        );
        self.all
            .store(Arc::new(sources.values().flatten().copied().collect()));
    }

    fn retain(&self, keep: impl Fn(&str) -> bool) {
        let mut sources = self.sources.lock();
        sources.retain(|source, _| keep(source));
        self.all
            .store(Arc::new(sources.values().flatten().copied().collect()));
    }

    /// Whether the request shows a credential that is good.
    pub fn admits(&self, headers: &HeaderMap) -> bool {
        match basic(headers) {
            Some(shown) => {
                let shown = hash(&shown);
                let all = self.all.load();
                all.iter()
                    .fold(false, |good, known| good | equal(known, &shown))
            }
            None => (self.is_administrator)(headers),
        }
    }

    /// Follows the Secrets until the future is dropped.
    pub(crate) async fn follow(self, client: Client, clock: Clock, chance: Chance) {
        let api: Api<Secret> = Api::namespaced(client, SYSTEM_NAMESPACE);
        let labelled = watcher::Config::default().labels(CREDENTIALS_LABEL);
        let limits = Limits {
            min: Duration::from_millis(100),
            max: Duration::from_secs(5),
        };
        let mut pauses = Backoff::new(limits, chance);
        let mut listed = Vec::new();
        let mut events = pin!(watcher::watcher(api, labelled));
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    pauses.reset();
                    self.take_in(event, &mut listed);
                }
                Err(error) => {
                    tracing::debug!(%error, "the watch of credentials broke off");
                    clock.sleep(pauses.failed()).await;
                }
            }
        }
    }

    fn take_in(&self, event: Event<Secret>, listed: &mut Vec<String>) {
        match event {
            Event::Apply(secret) => self.put(&source(&secret), &read(&secret)),
            Event::Delete(secret) => {
                let gone = source(&secret);
                self.retain(|source| source != gone);
            }
            Event::Init => listed.clear(),
            Event::InitApply(secret) => {
                listed.push(source(&secret));
                self.put(&source(&secret), &read(&secret));
            }
            Event::InitDone => {
                let there: Vec<String> = std::mem::take(listed);
                self.retain(|source| {
                    !source.starts_with(SECRET_SOURCE) || there.iter().any(|known| known == source)
                });
            }
        }
    }
}

const SECRET_SOURCE: &str = "secret/";

fn source(secret: &Secret) -> String {
    format!("{SECRET_SOURCE}{}", secret.name_any())
}

/// What a Secret holds: one credential, or none if it is not of the right make.
fn read(secret: &Secret) -> Vec<Credential> {
    let text = |key: &str| {
        let bytes = secret.data.as_ref().and_then(|data| data.get(key))?;
        String::from_utf8(bytes.0.clone())
            .ok()
            .filter(|text| !text.is_empty())
    };
    let typed = secret.type_.as_deref() == Some(SECRET_TYPE);
    match (typed, text("username"), text("password")) {
        (true, Some(username), Some(password)) => vec![Credential { username, password }],
        _ => {
            let name = secret.name_any();
            tracing::warn!(%name, "a Secret for platforms is not of type {SECRET_TYPE} with username and password");
            Vec::new()
        }
    }
}

/// `user:password` as the request shows it.
fn basic(headers: &HeaderMap) -> Option<Vec<u8>> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, encoded) = value.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    STANDARD.decode(encoded.trim()).ok()
}

/// The user name that a request shows, whether it is known or not; the password is not even looked at.
pub(crate) fn username(headers: &HeaderMap) -> Option<String> {
    let shown = basic(headers)?;
    let name = shown.split(|byte| *byte == b':').next()?;
    String::from_utf8(name.to_vec()).ok()
}

fn hash(bytes: &[u8]) -> Hash {
    Sha256::digest(bytes).into()
}

/// Looks at every byte, so that the time taken says nothing.
fn equal(one: &Hash, other: &Hash) -> bool {
    let difference = one
        .iter()
        .zip(other)
        .fold(0, |seen, (one, other)| seen | (one ^ other));
    std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use k8s_openapi::ByteString;

    fn shown(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::AUTHORIZATION, HeaderValue::from_str(value).unwrap())])
    }

    fn user(name: &str, password: &str) -> HeaderMap {
        shown(&format!(
            "Basic {}",
            STANDARD.encode(format!("{name}:{password}"))
        ))
    }

    fn credential(username: &str, password: &str) -> Credential {
        Credential {
            username: username.to_owned(),
            password: password.to_owned(),
        }
    }

    fn secret(name: &str, username: &str, password: &str) -> Secret {
        let data = [("username", username), ("password", password)];
        let data = data.map(|(key, value)| (key.to_owned(), ByteString(value.as_bytes().to_vec())));
        let mut secret = Secret {
            type_: Some(SECRET_TYPE.to_owned()),
            data: Some(data.into_iter().collect()),
            ..Secret::default()
        };
        secret.metadata.name = Some(name.to_owned());
        secret
    }

    #[test]
    fn several_credentials_are_good_until_they_are_replaced() {
        let credentials = Credentials::new(|headers| {
            headers
                .get(header::AUTHORIZATION)
                .is_some_and(|value| value == "Bearer root")
        });
        credentials.put("file", &[credential("heddle", "one")]);
        credentials.put("other", &[credential("cf", "two:three")]);
        assert!(credentials.admits(&user("heddle", "one")));
        assert!(credentials.admits(&user("cf", "two:three")));
        assert!(credentials.admits(&shown("Bearer root")));
        for headers in [
            HeaderMap::new(),
            user("heddle", "two"),
            user("jo", "one"),
            user("", ""),
            shown("Bearer x"),
            shown("Basic"),
            shown("Basic !"),
            shown("basic"),
        ] {
            assert!(!credentials.admits(&headers), "{headers:?}");
        }
        credentials.put("file", &[credential("heddle", "new")]);
        assert!(!credentials.admits(&user("heddle", "one")));
        assert!(credentials.admits(&user("heddle", "new")));
    }

    #[test]
    fn secrets_come_and_go_without_touching_what_others_brought() {
        let credentials = Credentials::new(|_| false);
        credentials.put("file", &[credential("heddle", "one")]);
        let mut listed = Vec::new();
        let mut tell = |event| credentials.take_in(event, &mut listed);
        tell(Event::Apply(secret("a", "a", "x")));
        tell(Event::Apply(secret("b", "b", "x")));
        assert!(credentials.admits(&user("a", "x")) && credentials.admits(&user("b", "x")));
        tell(Event::Apply(secret("a", "a", "y")));
        assert!(!credentials.admits(&user("a", "x")) && credentials.admits(&user("a", "y")));
        tell(Event::Delete(secret("b", "b", "x")));
        assert!(!credentials.admits(&user("b", "x")));
        // A new list from which one is missing.
        tell(Event::Init);
        tell(Event::InitApply(secret("c", "c", "x")));
        tell(Event::InitDone);
        assert!(!credentials.admits(&user("a", "y")));
        assert!(credentials.admits(&user("c", "x")) && credentials.admits(&user("heddle", "one")));
        let mut wrong = secret("c", "c", "x");
        wrong.type_ = Some("Opaque".to_owned());
        tell(Event::Apply(wrong));
        assert!(!credentials.admits(&user("c", "x")));
    }
}
