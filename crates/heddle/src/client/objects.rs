//! Objects as the commands know them: one, or all of a kind, page by page, so that no answer is larger than it has to be.

use anyhow::Context as _;
use http::StatusCode;
use kube::Resource;
use kube::api::{ListParams, Patch, PatchParams};
use kube::core::params::GetParams;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{FIELD_MANAGER, Remote};

const PAGE_OBJECTS_MAX: u32 = 500;

/// All objects of a kind, in one namespace or in all.
pub(crate) async fn all<K>(remote: &Remote, namespace: Option<&str>) -> anyhow::Result<Vec<K>>
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    let kind = K::plural(&());
    let items = below(remote, &K::url_path(&(), namespace), &kind).await?;
    let read =
        |item| serde_json::from_value(item).with_context(|| format!("cannot read one of {kind}"));
    items.into_iter().map(read).collect()
}

/// The same, as they are.
pub(crate) async fn below(remote: &Remote, path: &str, kind: &str) -> anyhow::Result<Vec<Value>> {
    let mut params = ListParams::default().limit(PAGE_OBJECTS_MAX);
    let mut found = Vec::new();
    loop {
        let request = kube::core::Request::new(path).list(&params)?;
        let mut page = remote.send(request).await?.ok(kind)?;
        let items = page["items"].as_array_mut().map(std::mem::take);
        found.extend(items.with_context(|| format!("{kind}: the answer is no list"))?);
        match page["metadata"]["continue"].as_str() {
            Some(next) if !next.is_empty() => params = params.continue_token(next),
            _ => return Ok(found),
        }
    }
}

/// One object, if there is one of that name. Who asked for the name checked that it is one.
pub(crate) async fn one<K>(
    remote: &Remote,
    namespace: Option<&str>,
    name: &str,
) -> anyhow::Result<Option<K>>
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    let request = kube::core::Request::new(K::url_path(&(), namespace));
    let answer = remote
        .send(request.get(name, &GetParams::default())?)
        .await?;
    if answer.code == StatusCode::NOT_FOUND {
        return Ok(None);
    }
    let object = shown::<K>(name);
    let found = serde_json::from_value(answer.ok(&object)?);
    found
        .map(Some)
        .with_context(|| format!("cannot read {object}"))
}

/// Sets an annotation, or takes it away, and answers with the object.
pub(crate) async fn annotate<K>(
    remote: &Remote,
    name: &str,
    key: &str,
    value: Option<&str>,
) -> anyhow::Result<K>
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    let patch = json!({"metadata": {"annotations": {key: value}}});
    let found = merge::<K>(remote, None, name, &patch).await?;
    let object = shown::<K>(name);
    serde_json::from_value(found).with_context(|| format!("cannot read {object}"))
}

/// Changes an object, and answers with what it is then.
pub(crate) async fn merge<K>(
    remote: &Remote,
    namespace: Option<&str>,
    name: &str,
    patch: &Value,
) -> anyhow::Result<Value>
where
    K: Resource<DynamicType = ()>,
{
    let request = kube::core::Request::new(K::url_path(&(), namespace));
    let params = PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let request = request.patch(name, &params, &Patch::Merge(patch))?;
    remote.send(request).await?.ok(&shown::<K>(name))
}

/// `registry/dh`.
fn shown<K: Resource<DynamicType = ()>>(name: &str) -> String {
    format!("{}/{name}", K::kind(&()).to_lowercase())
}
