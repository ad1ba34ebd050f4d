//! The token an Application publishes with: made once, and again when its Secret is gone or holds none.
//!
//! Nobody but the API server keeps it: what a reconcile draws and does not need is forgotten with the reconcile.

use heddle_api::well_known::{
    APPLICATION_LABEL, INTEGRATION_NAMESPACE, MANAGED_BY, MANAGED_BY_LABEL, PUBLISHER_TOKEN_KEY,
    PUBLISHER_TOKEN_TYPE, publisher_secret,
};
use heddle_rt::Chance;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ApiResource;
use kube::{Resource as _, ResourceExt as _};
use serde_json::json;

use super::PUBLISHER;
use super::observe::World;
use super::plan::{is_owned, may_hold};
use crate::reconcile::Step;

/// 256 bits: nobody guesses that.
const TOKEN_BYTES: usize = 32;

/// A token that nobody has yet. It does not show itself.
#[derive(Clone)]
pub(crate) struct Token(String);

impl Token {
    pub(super) fn new(chance: &Chance) -> Self {
        Self(chance.token(TOKEN_BYTES))
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

pub(super) fn plan(world: &World) -> Option<Step> {
    let (application, live) = (&world.application, world.publisher.as_ref());
    if live.is_some_and(|live| !may_hold(application, live)) {
        return None;
    }
    if application.spec.skip_installation {
        let own = live.filter(|live| is_owned(application, *live));
        return Step::remove(PUBLISHER, own);
    }
    if live.is_some_and(holds_token) {
        return None;
    }
    let name = publisher_secret(&application.name_any());
    let token = ByteString(world.fresh_token.0.clone().into_bytes());
    // Applied without the fingerprint that other children carry: no trace of the token belongs into an annotation.
    Some(Step::Apply {
        step_name: PUBLISHER,
        resource: ApiResource::erase::<Secret>(&()),
        namespace: Some(INTEGRATION_NAMESPACE.to_owned()),
        object: json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {
                "name": name,
                "namespace": INTEGRATION_NAMESPACE,
                "labels": {APPLICATION_LABEL: application.name_any(), MANAGED_BY_LABEL: MANAGED_BY},
                "ownerReferences": [application.controller_owner_ref(&())],
            },
            "type": PUBLISHER_TOKEN_TYPE,
            "data": {PUBLISHER_TOKEN_KEY: token},
        }),
        name,
        of_status: false,
    })
}

fn holds_token(secret: &Secret) -> bool {
    let data = secret.data.as_ref();
    data.and_then(|data| data.get(PUBLISHER_TOKEN_KEY))
        .is_some_and(|token| !token.0.is_empty())
}
