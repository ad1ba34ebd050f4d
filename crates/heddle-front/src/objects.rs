//! Reading and writing objects: live reads, compare-and-swap writes, bounded waits.
//!
//! This is the only file that talks to the API server about instances and bindings. A read that fails has written nothing,
//! so it is refused as something that time heals; a write that fails without an answer may have been carried out, and is
//! refused so that the platform cleans up after itself.

use heddle_api::bundle::Bundle;
use heddle_api::bundle_revision::BundleRevision;
use heddle_api::names;
use heddle_api::record::{About, Record};
use heddle_api::service_binding::ServiceBinding;
use heddle_api::service_instance::ServiceInstance;
use heddle_api::well_known::{RECORD_LABEL, SYSTEM_NAMESPACE, field_manager};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, ListParams, PostParams, Preconditions};
use kube::core::Status;
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Map, Value};

use crate::error::OsbError;
use crate::lifecycle::{Provisioned, title};
use crate::ownership;
use crate::places::ObjectPlaces;

/// The key of a binding's Secret under which the credentials stand, as a JSON object.
const CREDENTIALS_KEY: &str = "credentials";

/// The API server, as the front uses it.
#[derive(Clone)]
pub(crate) struct Objects {
    client: Client,
    places: std::sync::Arc<ObjectPlaces>,
}

impl std::fmt::Debug for Objects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Objects").finish_non_exhaustive()
    }
}

/// Why nothing was written.
#[derive(Debug)]
pub(crate) enum Unwritten {
    /// Somebody else wrote in between: read again, decide again.
    Overtaken,
    Refused(OsbError),
}

impl Objects {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            places: std::sync::Arc::default(),
        }
    }

    pub(crate) fn api<K: Provisioned>(&self, namespace: &str) -> Api<K> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// An instance by its id: in `scope`, or wherever it is.
    pub(crate) async fn instance(
        &self,
        scope: Option<&str>,
        id: &str,
    ) -> Result<Option<ServiceInstance>, OsbError> {
        let is_it = |found: &ServiceInstance| found.spec.instance_id == id;
        self.find(scope, scope, &names::instance(id), is_it).await
    }

    /// A binding by its id and its instance's.
    pub(crate) async fn binding(
        &self,
        scope: Option<&str>,
        instance: &str,
        id: &str,
    ) -> Result<Option<ServiceBinding>, OsbError> {
        self.binding_in(scope, scope, instance, id).await
    }

    /// The same where the namespace is known besides the front that is asked.
    pub(crate) async fn binding_in(
        &self,
        namespace: Option<&str>,
        scope: Option<&str>,
        instance: &str,
        id: &str,
    ) -> Result<Option<ServiceBinding>, OsbError> {
        let of = names::instance(instance);
        let is_it = |found: &ServiceBinding| {
            found.spec.binding_id == id && found.spec.instance_ref.name == of
        };
        let name = names::binding(id);
        self.find(namespace, scope, &name, is_it).await
    }

    /// A binding by its id, whichever instance it is of.
    pub(crate) async fn any_binding(
        &self,
        scope: Option<&str>,
        id: &str,
    ) -> Result<Option<ServiceBinding>, OsbError> {
        let is_it = |found: &ServiceBinding| found.spec.binding_id == id;
        self.find(scope, scope, &names::binding(id), is_it).await
    }

    /// What is known at the front of `scope`, or at the front of all: in `namespace`, or wherever it is.
    async fn find<K: Provisioned>(
        &self,
        namespace: Option<&str>,
        scope: Option<&str>,
        name: &str,
        is_it: impl Fn(&K) -> bool,
    ) -> Result<Option<K>, OsbError> {
        let is_it = |found: &K| is_it(found) && ownership::is_known(found.meta(), scope);
        let recalled = self.places.recall(K::NOUN, name);
        if let Some(place) = namespace.or(recalled.as_deref()) {
            let found = self.api::<K>(place).get_opt(name).await.map_err(unread)?;
            let found = found.filter(&is_it);
            if found.is_some() || namespace.is_some() {
                return Ok(found);
            }
        }
        let everywhere = Api::<K>::all(self.client.clone());
        let named = ListParams::default().fields(&format!("metadata.name={name}"));
        let listed = everywhere.list(&named).await.map_err(unread)?;
        // What this front was asked for comes before what somebody wrote by hand; of those the first is as good as any, if it
        // stays the same.
        let by_hand = |found: &K| ownership::owner(found.meta()).is_none();
        let found = listed
            .items
            .into_iter()
            .filter(is_it)
            .min_by_key(|found| (by_hand(found), found.namespace()));
        if let Some(found) = &found {
            self.places
                .remember(K::NOUN, name, &found.namespace().unwrap_or_default());
        }
        Ok(found)
    }

    /// Writes something that was not there.
    pub(crate) async fn create<K: Provisioned>(&self, object: &K) -> Result<K, Unwritten> {
        let namespace = object.namespace().unwrap_or_default();
        let api = self.api::<K>(&namespace);
        match api.create(&params(), object).await {
            Ok(created) => {
                self.places
                    .remember(K::NOUN, &created.name_any(), &namespace);
                Ok(created)
            }
            Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {
                let name = object.name_any();
                let there = api
                    .get_opt(&name)
                    .await
                    .map_err(|error| Unwritten::Refused(unread(error)))?;
                match there.and_then(|there| in_the_way(&there, object)) {
                    Some(error) => Err(Unwritten::Refused(error)),
                    None => Err(Unwritten::Overtaken),
                }
            }
            Err(kube::Error::Api(status)) if status.code == 404 => {
                Err(Unwritten::Refused(OsbError::NamespaceMissing { namespace }))
            }
            Err(kube::Error::Api(status)) if is_ending(&status) => {
                Err(Unwritten::Refused(OsbError::NamespaceEnding { namespace }))
            }
            Err(error) => Err(Unwritten::Refused(unwritten(error, object))),
        }
    }

    /// Writes over the version that was read, and over no other.
    pub(crate) async fn replace<K: Provisioned>(&self, object: &K) -> Result<K, Unwritten> {
        let api = self.api::<K>(&object.namespace().unwrap_or_default());
        match api.replace(&object.name_any(), &params(), object).await {
            Ok(replaced) => Ok(replaced),
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {
                Err(Unwritten::Overtaken)
            }
            Err(error) => Err(Unwritten::Refused(unwritten(error, object))),
        }
    }

    /// A Bundle, as it is at this moment.
    pub(crate) async fn bundle(&self, name: &str) -> Result<Option<Bundle>, kube::Error> {
        Api::<Bundle>::all(self.client.clone()).get_opt(name).await
    }

    /// A BundleRevision, as it is at this moment.
    pub(crate) async fn revision(&self, name: &str) -> Result<Option<BundleRevision>, kube::Error> {
        let revisions = Api::<BundleRevision>::all(self.client.clone());
        revisions.get_opt(name).await
    }

    /// Takes back something that was just created: that object, and no other of its name.
    pub(crate) async fn take_back<K: Provisioned>(&self, object: &K) -> Result<(), kube::Error> {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: object.meta().uid.clone(),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        let api = self.api::<K>(&object.namespace().unwrap_or_default());
        match api.delete(&object.name_any(), &params).await {
            Ok(_) => Ok(()),
            // Somebody else was faster, or it is another's by now.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// What is remembered of something that is gone.
    pub(crate) async fn record(
        &self,
        scope: Option<&str>,
        about: &About,
    ) -> Result<Option<Record>, OsbError> {
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), SYSTEM_NAMESPACE);
        let (noun, name) = match about {
            About::Instance(id) => (ServiceInstance::NOUN, names::instance(id)),
            About::Binding { binding, .. } => (ServiceBinding::NOUN, names::binding(binding)),
        };
        let recalled = self.places.recall(noun, &name);
        if let Some(namespace) = scope.or(recalled.as_deref()) {
            let kept = api
                .get_opt(&about.record_name(namespace))
                .await
                .map_err(unread)?;
            let record = kept.as_ref().and_then(Record::from_config_map);
            let record = record.filter(|record| ownership::is_remembered(record, scope));
            if record.is_some() || scope.is_some() {
                return Ok(record);
            }
        }
        let all = ListParams::default().labels(&format!("{RECORD_LABEL}={noun}"));
        let listed = api.list(&all).await.map_err(unread)?;
        let records = listed.items.iter().filter_map(Record::from_config_map);
        let found = records
            .filter(|record| record.about == *about)
            .filter(|record| ownership::is_remembered(record, scope))
            .max_by_key(|record| record.gone_at.0);
        if let Some(found) = &found {
            self.places.remember(noun, &name, &found.namespace);
        }
        Ok(found)
    }

    /// The credentials of a binding, from the Secret that its status names.
    pub(crate) async fn credentials(
        &self,
        binding: &ServiceBinding,
    ) -> Result<Map<String, Value>, OsbError> {
        let missing = || {
            OsbError::Busy(format!(
                "the credentials of {} are not there yet",
                binding.title()
            ))
        };
        let status = binding.status.as_ref();
        let reference = status
            .and_then(|status| status.secret_ref.as_ref())
            .ok_or_else(missing)?;
        let api: Api<Secret> = Api::namespaced(
            self.client.clone(),
            &binding.namespace().unwrap_or_default(),
        );
        let secret = api
            .get_opt(&reference.name)
            .await
            .map_err(unread)?
            .ok_or_else(missing)?;
        let bytes = secret
            .data
            .as_ref()
            .and_then(|data| data.get(CREDENTIALS_KEY))
            .ok_or_else(missing)?;
        serde_json::from_slice(&bytes.0).map_err(|_| {
            tracing::error!(secret = %reference.name, "a binding's Secret holds no JSON object under `credentials`");
            missing()
        })
    }
}

/// Why an object of the same name is not the one that is asked for, and never will be.
fn in_the_way<K: Provisioned>(there: &K, object: &K) -> Option<OsbError> {
    let conflict = |what, attribute| Some(OsbError::Conflict { what, attribute });
    let fronts = (
        ownership::owner(there.meta()),
        ownership::owner(object.meta()),
    );
    match fronts {
        // Ids that look like the name of another's object are possible, if nobody's accident.
        _ if there.id() != object.id() => {
            conflict(format!("an object named {}", object.name_any()), "id")
        }
        (Some(theirs), Some(ours)) if theirs != ours => {
            conflict(object.title(), "address of the broker")
        }
        _ if there.parent() != object.parent() => conflict(object.title(), "instance"),
        _ => None,
    }
}

fn params() -> PostParams {
    PostParams {
        field_manager: Some(field_manager::OSB.to_owned()),
        ..PostParams::default()
    }
}

fn unread(error: kube::Error) -> OsbError {
    tracing::warn!(%error, "cannot read from the API server");
    OsbError::Busy("the broker cannot read its records now".to_owned())
}

fn unwritten<K: Provisioned>(error: kube::Error, object: &K) -> OsbError {
    match error {
        kube::Error::Api(status) if matches!(status.code, 400 | 413 | 422) => {
            // The message may quote what was sent, parameters among it; who reads the log may see as much as that.
            tracing::warn!(reason = %status.reason, code = status.code, "the API server does not take an object");
            OsbError::Invalid(format!(
                "{} cannot be kept as it was asked for: {}",
                title::<K>(object.id()),
                places(&status)
            ))
        }
        kube::Error::Api(status) if status.code == 429 => {
            OsbError::Busy("the broker has too much to do".to_owned())
        }
        error => {
            tracing::warn!(%error, "cannot write to the API server");
            OsbError::Unavailable
        }
    }
}

/// Which fields the API server found wrong, without their values.
fn places(status: &Status) -> String {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let fields: Vec<&str> = causes
        .map(|cause| cause.field.as_str())
        .filter(|field| !field.is_empty())
        .collect();
    if fields.is_empty() {
        status.reason.clone()
    } else {
        fields.join(", ")
    }
}

fn is_ending(status: &Status) -> bool {
    let mut causes = status.details.iter().flat_map(|details| &details.causes);
    causes.any(|cause| cause.reason == "NamespaceTerminating")
}
