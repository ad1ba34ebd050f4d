//! The tokens that people are given: Secrets of a type of their own in `heddle-system`, watched.
//!
//! ```text
//!   digest       SHA-256 of the token, in hexadecimal: the token itself is kept nowhere
//!   role         viewer, operator or administrator
//!   namespaces   where, with commas between; absent for everywhere
//!   payloads     true if they may read the data of events
//!   expires      when it is no longer good, in RFC 3339; absent for never
//! ```
//! The Secret's name is the user's. One that cannot be understood lets nobody in. When a Secret is removed or changed, what was
//! opened with its token ends a moment later; while the watch is broken, what was known last goes on to count.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;

use futures::StreamExt as _;
use heddle_api::access::token::{ACCESS_TOKEN_TYPE, AccessToken};
use heddle_api::well_known::SYSTEM_NAMESPACE;
use heddle_apiserver::{Identity, IssuedTokens};
use k8s_openapi::api::core::v1::Secret;
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use kube::{Api, Client, ResourceExt as _};

/// Follows the Secrets until the future is dropped.
pub(crate) async fn follow(client: Client, issued: IssuedTokens) {
    let (secrets, writer) = reflector::store::<Secret>();
    let api: Api<Secret> = Api::namespaced(client, SYSTEM_NAMESPACE);
    let ours = watcher::Config::default().fields(&format!("type={ACCESS_TOKEN_TYPE}"));
    let changes = watcher(api, ours).default_backoff().reflect(writer);
    let mut changes = pin!(changes);
    while let Some(change) = changes.next().await {
        match change {
            // The old ones count until all of the new ones are known.
            Ok(watcher::Event::Init | watcher::Event::InitApply(_)) => {}
            Ok(_) => issued.replace(known(&secrets.state())),
            Err(error) => tracing::debug!(%error, "the watch of tokens broke off"),
        }
    }
}

type KnownTokens = HashMap<heddle_apiserver::TokenDigest, (Identity, Option<jiff::Timestamp>)>;

fn known(secrets: &[Arc<Secret>]) -> KnownTokens {
    let mut known = KnownTokens::new();
    for secret in secrets {
        if secret.metadata.deletion_timestamp.is_some() {
            continue;
        }
        let name = secret.name_any();
        match AccessToken::read(&name, secret.data.as_ref()) {
            Ok(token) => {
                let identity = Identity::of(&token.access);
                known.insert(token.digest, (identity, token.expires));
            }
            Err(reason) => {
                tracing::warn!(secret = name, reason, "an access token lets nobody in");
            }
        }
    }
    known
}
