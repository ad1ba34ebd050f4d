//! A step of a plan: one request, safe to repeat.

use std::fmt::Debug;

use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GetParams, Patch, PatchParams, PostParams,
    Preconditions,
};
use kube::core::{ClusterResourceScope, Request};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Error;

/// Names a step within its plan, so that the answer finds its place in the world.
pub type StepName = &'static str;

/// Annotation with the fingerprint of what was applied: tells "as we left it" from "we want less now".
const APPLIED: &str = "heddle.dev/applied";

/// One request.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Server-side apply of these fields, by this controller.
    Apply {
        step_name: StepName,
        resource: ApiResource,
        namespace: Option<String>,
        name: String,
        object: Value,
        /// Whether these are fields of its status. The object then has to be there.
        of_status: bool,
    },
    /// Creation of what must not exist yet: applying would take in what somebody else has made in the meantime.
    Create {
        step_name: StepName,
        resource: ApiResource,
        namespace: Option<String>,
        name: String,
        object: Value,
    },
    /// Server-side apply that gives way to whoever has said otherwise.
    Offer {
        step_name: StepName,
        resource: ApiResource,
        namespace: Option<String>,
        name: String,
        object: Value,
    },
    /// Replaces the named fields of exactly the state that was looked at. For fields that several writers share, where
    /// applying one's own would not do: claims, finalizers.
    Swap {
        step_name: StepName,
        resource: ApiResource,
        namespace: Option<String>,
        name: String,
        /// A merge patch that names the uid and the version it expects.
        patch: Value,
        /// Whether the fields are those of its status.
        of_status: bool,
    },
    /// Deletion of exactly the object that was looked at.
    Delete {
        step_name: StepName,
        resource: ApiResource,
        namespace: Option<String>,
        name: String,
        uid: String,
        /// Set where the object must not even have changed, since its content is the reason for its removal.
        version: Option<String>,
    },
}

impl Step {
    /// The step that makes `live` what is wanted, or `None` if it is already.
    ///
    /// `wanted` must name its apiVersion, kind and metadata.name.
    pub fn ensure<K>(step_name: StepName, wanted: Value, live: Option<&K>) -> Option<Self>
    where
        K: Resource<DynamicType = ()> + Serialize,
    {
        let fingerprint = fingerprint(&wanted);
        let mut object = wanted;
        object["metadata"]["annotations"][APPLIED] = json!(fingerprint);
        if let Some(live) = live {
            let same = live
                .annotations()
                .get(APPLIED)
                .is_some_and(|found| *found == fingerprint);
            let live = serde_json::to_value(live).unwrap_or_default();
            if same && contains(&live, &object) {
                return None;
            }
        }
        Some(Self::Apply {
            step_name,
            resource: ApiResource::erase::<K>(&()),
            namespace: object["metadata"]["namespace"].as_str().map(str::to_owned),
            name: object["metadata"]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            object,
            of_status: false,
        })
    }

    /// The step that states fields of the status of another object than the one that the reconcile is about. What this
    /// controller stated there before and does not state now is taken back.
    pub fn state<K>(step_name: StepName, name: &str, status: &Value) -> Self
    where
        K: Resource<DynamicType = (), Scope = ClusterResourceScope>,
    {
        let object = json!({
            "apiVersion": K::api_version(&()), "kind": K::kind(&()), "metadata": {"name": name},
            "status": status,
        });
        Self::Apply {
            step_name,
            resource: ApiResource::erase::<K>(&()),
            namespace: None,
            name: name.to_owned(),
            object,
            of_status: true,
        }
    }

    /// The step that makes something new; `object` must name its apiVersion, kind and metadata.name.
    pub fn create<K>(step_name: StepName, object: Value) -> Self
    where
        K: Resource<DynamicType = ()>,
    {
        let text = |field: &str| object["metadata"][field].as_str().map(str::to_owned);
        Self::Create {
            step_name,
            resource: ApiResource::erase::<K>(&()),
            namespace: text("namespace"),
            name: text("name").unwrap_or_default(),
            object,
        }
    }

    /// The step that states `fields` of exactly the object that was looked at, and takes back what was stated before and
    /// is not among them; `None` for an object that never was on a server.
    pub fn offer<K>(step_name: StepName, live: &K, fields: Value) -> Option<Self>
    where
        K: Resource<DynamicType = ()>,
    {
        let mut object = fields;
        object["apiVersion"] = json!(K::api_version(&()));
        object["kind"] = json!(K::kind(&()));
        object["metadata"]["name"] = json!(live.name_any());
        object["metadata"]["uid"] = json!(live.uid()?);
        Some(Self::Offer {
            step_name,
            resource: ApiResource::erase::<K>(&()),
            namespace: live.namespace(),
            name: live.name_any(),
            object,
        })
    }

    /// The step that removes what was looked at, or `None` if there is nothing.
    pub fn remove<K>(step_name: StepName, live: Option<&K>) -> Option<Self>
    where
        K: Resource<DynamicType = ()>,
    {
        let live = live.filter(|live| live.meta().deletion_timestamp.is_none())?;
        Some(Self::Delete {
            step_name,
            resource: ApiResource::erase::<K>(&()),
            namespace: live.namespace(),
            name: live.name_any(),
            uid: live.uid()?,
            version: None,
        })
    }

    /// The same, but only if the object has not changed in any way since.
    pub fn remove_unchanged<K>(step_name: StepName, live: Option<&K>) -> Option<Self>
    where
        K: Resource<DynamicType = ()>,
    {
        let mut step = Self::remove(step_name, live)?;
        if let Self::Delete { version, .. } = &mut step {
            *version = Some(live?.resource_version()?);
        }
        Some(step)
    }

    /// The step that replaces the fields in `change` if `live` is still what it was; `None` for an object that never was
    /// on a server.
    pub fn swap<K>(step_name: StepName, live: &K, change: Value) -> Option<Self>
    where
        K: Resource<DynamicType = ()>,
    {
        let mut patch = change;
        patch["metadata"]["uid"] = json!(live.uid()?);
        patch["metadata"]["resourceVersion"] = json!(live.resource_version()?);
        Some(Self::Swap {
            step_name,
            resource: ApiResource::erase::<K>(&()),
            namespace: live.namespace(),
            name: live.name_any(),
            patch,
            of_status: false,
        })
    }

    /// The same for fields of the status.
    pub fn swap_status<K>(step_name: StepName, live: &K, status: &Value) -> Option<Self>
    where
        K: Resource<DynamicType = ()>,
    {
        let mut step = Self::swap(step_name, live, json!({"status": status}))?;
        if let Self::Swap { of_status, .. } = &mut step {
            *of_status = true;
        }
        Some(step)
    }

    /// The step that puts `finalizer` on `live`, or `None` if it is there, or if it is too late.
    pub fn hold<K>(step_name: StepName, live: &K, finalizer: &str) -> Option<Self>
    where
        K: Resource<DynamicType = ()>,
    {
        if live.meta().deletion_timestamp.is_some() || holds(live, finalizer) {
            return None;
        }
        let mut finalizers = live.finalizers().to_vec();
        finalizers.push(finalizer.to_owned());
        Self::swap(
            step_name,
            live,
            json!({"metadata": {"finalizers": finalizers}}),
        )
    }

    /// The step that takes `finalizer` off `live` and leaves those of others, or `None` if it is not there.
    pub fn release<K>(step_name: StepName, live: &K, finalizer: &str) -> Option<Self>
    where
        K: Resource<DynamicType = ()>,
    {
        if !holds(live, finalizer) {
            return None;
        }
        let finalizers = live.finalizers().iter();
        let others: Vec<&String> = finalizers.filter(|name| *name != finalizer).collect();
        Self::swap(step_name, live, json!({"metadata": {"finalizers": others}}))
    }

    pub fn step_name(&self) -> StepName {
        match self {
            Self::Apply { step_name, .. }
            | Self::Create { step_name, .. }
            | Self::Offer { step_name, .. }
            | Self::Swap { step_name, .. }
            | Self::Delete { step_name, .. } => step_name,
        }
    }

    /// Of what kind, where and how called the object is that the request is about.
    fn target(&self) -> (&ApiResource, Option<&str>, &str) {
        let (Self::Apply {
            resource,
            namespace,
            name,
            ..
        }
        | Self::Create {
            resource,
            namespace,
            name,
            ..
        }
        | Self::Offer {
            resource,
            namespace,
            name,
            ..
        }
        | Self::Swap {
            resource,
            namespace,
            name,
            ..
        }
        | Self::Delete {
            resource,
            namespace,
            name,
            ..
        }) = self;
        (resource, namespace.as_deref(), name)
    }

    /// Sends the request. The answer is the object as the server has it now, `None` if it is gone.
    pub(super) async fn execute(
        self,
        client: &Client,
        manager: &str,
    ) -> Result<Option<DynamicObject>, Error> {
        let (resource, namespace, name) = self.target();
        let api = api(client, resource, namespace);
        let (what, name) = (format!("{} {name}", resource.kind), name.to_owned());
        match self {
            Self::Apply {
                object, of_status, ..
            } => {
                let params = PatchParams::apply(manager).force();
                let patch = Patch::Apply(&object);
                if of_status {
                    let answer = api.patch_status(&name, &params, &patch).await;
                    return answer.map(Some).map_err(|error| unless_gone(error, what));
                }
                Ok(Some(api.patch(&name, &params, &patch).await?))
            }
            Self::Create { object, .. } => {
                let object: DynamicObject =
                    serde_json::from_value(object).map_err(|source| Error::Shape {
                        what: what.clone(),
                        source,
                    })?;
                let params = PostParams {
                    field_manager: Some(manager.to_owned()),
                    ..PostParams::default()
                };
                let answer = api.create(&params, &object).await;
                answer.map(Some).map_err(|error| unless_moved(error, what))
            }
            Self::Offer { object, .. } => {
                let params = PatchParams::apply(manager);
                let answer = api.patch(&name, &params, &Patch::Apply(&object)).await;
                answer.map(Some).map_err(|error| unless_moved(error, what))
            }
            Self::Swap {
                patch, of_status, ..
            } => {
                let params = PatchParams {
                    field_manager: Some(manager.to_owned()),
                    ..PatchParams::default()
                };
                let patch = Patch::Merge(&patch);
                let answer = if of_status {
                    api.patch_status(&name, &params, &patch).await
                } else {
                    api.patch(&name, &params, &patch).await
                };
                // Gone is changed as well: steps that rely on this one must not follow.
                answer.map(Some).map_err(|error| unless_gone(error, what))
            }
            Self::Delete { uid, version, .. } => {
                let preconditions = Preconditions {
                    uid: Some(uid),
                    resource_version: version.clone(),
                };
                let params = DeleteParams {
                    preconditions: Some(preconditions),
                    ..DeleteParams::background()
                };
                match api.delete(&name, &params).await {
                    Ok(answer) => Ok(answer.left()),
                    // It is there, and no longer what was looked at.
                    Err(kube::Error::Api(status)) if status.is_conflict() && version.is_some() => {
                        Err(Error::Moved(what))
                    }
                    // Gone already, or a namesake stands there now: either way not ours to delete.
                    Err(kube::Error::Api(status))
                        if status.is_not_found() || status.is_conflict() =>
                    {
                        Ok(None)
                    }
                    Err(error) => Err(error.into()),
                }
            }
        }
    }
}

/// A refusal because of what somebody else has done since is not an error: the next reconcile starts from there.
fn unless_moved(error: kube::Error, what: String) -> Error {
    match error {
        kube::Error::Api(status) if status.code == 409 => Error::Moved(what),
        other => other.into(),
    }
}

/// The same where having gone counts as well.
fn unless_gone(error: kube::Error, what: String) -> Error {
    match error {
        kube::Error::Api(status) if status.is_conflict() || status.is_not_found() => {
            Error::Moved(what)
        }
        other => other.into(),
    }
}

fn api(client: &Client, resource: &ApiResource, namespace: Option<&str>) -> Api<DynamicObject> {
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
        None => Api::all_with(client.clone(), resource),
    }
}

fn holds<K: Resource<DynamicType = ()>>(live: &K, finalizer: &str) -> bool {
    live.finalizers().iter().any(|name| name == finalizer)
}

/// A live read of what woke us; `None` when it is gone.
pub(super) async fn read<K>(client: &Client, wake: &K) -> Result<Option<K>, Error>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let request = Request::new(K::url_path(&(), wake.namespace().as_deref()))
        .get(&wake.name_any(), &GetParams::default())
        .map_err(kube::Error::BuildRequest)?;
    match client.request::<K>(request).await {
        Ok(object) => Ok(Some(object)),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether everything wanted is there. Lists of objects are compared item by item, in any order.
fn contains(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, value)| live.get(key).is_some_and(|found| contains(found, value))),
        (Value::Array(live), Value::Array(wanted)) => wanted
            .iter()
            .all(|value| live.iter().any(|found| contains(found, value))),
        _ => live == wanted,
    }
}

/// Stable over releases and machines; not a secret, so a simple hash will do.
fn fingerprint(value: &Value) -> String {
    let hash = value
        .to_string()
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
    format!("{hash:016x}")
}
