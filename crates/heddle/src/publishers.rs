//! Whose credentials are whose: the tokens and certificates with which Applications publish.
//!
//! Tokens are in the Secrets that the Application controller keeps; they are known here by digest only. A certificate is
//! an Application's if its common name is the Application's or one of its client ids, and if it names the tenant and the
//! group that the Application asks for. Both are watched, so a token that is rotated or an Application that is gone counts
//! no longer a moment later. While a watch is broken, what was known last goes on to count.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::select;
use heddle_api::Application;
use heddle_api::well_known::{
    INTEGRATION_NAMESPACE, PUBLISHER_TOKEN_KEY, PUBLISHER_TOKEN_TYPE, publisher_secret,
};
use heddle_apiserver::{Identity, Tokens};
use heddle_mesh::who::Who;
use heddle_rt::net::subject::Subject;
use k8s_openapi::api::core::v1::Secret;
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use kube::{Api, Client, Resource as _, ResourceExt as _};
use parking_lot::RwLock;

/// Changes taken in together: making a table anew costs the same for one as for many.
const CHANGES_MAX: usize = 1024;

/// Everybody who can prove who they are.
#[derive(Debug, Default)]
pub(crate) struct Publishers {
    known: RwLock<Arc<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    tokens: Tokens,
    /// By common name. One that two Applications claim is nobody's.
    certificates: HashMap<String, Option<Holder>>,
}

/// An Application, as a certificate must describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Holder {
    application: Box<str>,
    tenant: Option<String>,
    group: Option<String>,
}

impl Publishers {
    /// Follows Secrets and Applications until the future is dropped.
    pub(crate) async fn watch(&self, client: Client) {
        let (secrets, secrets_writer) = reflector::store::<Secret>();
        let (applications, applications_writer) = reflector::store::<Application>();
        let api: Api<Secret> = Api::namespaced(client.clone(), INTEGRATION_NAMESPACE);
        let secret_changes = watcher(api, watcher::Config::default())
            .default_backoff()
            .reflect(secrets_writer)
            .map(|change| change.map(drop));
        let application_changes = watcher(Api::all(client), watcher::Config::default())
            .default_backoff()
            .reflect(applications_writer)
            .map(|change| change.map(drop));
        let changes = select(secret_changes, application_changes).ready_chunks(CHANGES_MAX);
        let mut changes = pin!(changes);
        while let Some(chunk) = changes.next().await {
            for error in chunk.iter().filter_map(|change| change.as_ref().err()) {
                tracing::debug!(%error, "a watch of publishers broke off");
            }
            let known = Known::new(&secrets.state(), &applications.state());
            *self.known.write() = Arc::new(known);
        }
    }

    /// Who a bearer token belongs to.
    pub(crate) fn by_token(&self, token: &str) -> Option<Who> {
        let known = Arc::clone(&self.known.read());
        let identity = known.tokens.identity(token)?;
        Some(Who::Application((&*identity.user).into()))
    }

    /// Who a certificate belongs to.
    pub(crate) fn by_subject(&self, subject: &Subject) -> Option<Who> {
        let known = Arc::clone(&self.known.read());
        let holder = known.certificates.get(subject.common_name.as_deref()?)?;
        let holder = holder.as_ref()?;
        let names = |wanted: &Option<String>, found: &[String]| {
            wanted.as_ref().is_none_or(|wanted| found.contains(wanted))
        };
        (names(&holder.tenant, &subject.organizations) && names(&holder.group, &subject.units))
            .then(|| Who::Application(holder.application.clone()))
    }
}

impl Known {
    fn new(secrets: &[Arc<Secret>], applications: &[Arc<Application>]) -> Self {
        let mut known = Self::default();
        for secret in secrets {
            if let Some((application, token)) = publisher(secret) {
                let identity = Identity::new(application, &[]);
                known.tokens = known.tokens.with(token, identity);
            }
        }
        let stays = |one: &&Arc<Application>| one.metadata.deletion_timestamp.is_none();
        for application in applications.iter().filter(stays) {
            known.certify(application);
        }
        // The name of an Application is its own, whatever others put among their client ids.
        for application in applications.iter().filter(stays) {
            let name = application.name_any();
            known.certificates.insert(name, Some(holder(application)));
        }
        known
    }

    fn certify(&mut self, application: &Application) {
        let compass = application.spec.compass_metadata.as_ref();
        let clients = compass.and_then(|compass| compass.authentication.as_ref());
        for id in clients.iter().flat_map(|clients| &clients.client_ids) {
            self.certificates
                .entry(id.clone())
                .and_modify(|claimed| *claimed = None)
                .or_insert_with(|| Some(holder(application)));
        }
    }
}

fn holder(application: &Application) -> Holder {
    let set = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    Holder {
        application: application.name_any().into(),
        tenant: set(&application.spec.tenant),
        group: set(&application.spec.group),
    }
}

/// The Application and the token that a Secret stands for, if it is one that the controller keeps.
fn publisher(secret: &Secret) -> Option<(&str, &str)> {
    if secret.type_.as_deref() != Some(PUBLISHER_TOKEN_TYPE)
        || secret.metadata.deletion_timestamp.is_some()
    {
        return None;
    }
    let owners = secret.owner_references().iter();
    let mut owners = owners.filter(|owner| owner.controller == Some(true));
    let owner = owners.find(|owner| owner.kind == Application::kind(&()))?;
    let token = secret.data.as_ref()?.get(PUBLISHER_TOKEN_KEY)?;
    let token = std::str::from_utf8(&token.0).ok()?;
    let own = secret.name_any() == publisher_secret(&owner.name) && !token.is_empty();
    own.then_some((&*owner.name, token))
}

#[cfg(test)]
mod tests;
