//! All objects of a kind, page by page, so that no answer is larger than it has to be.

use anyhow::Context as _;
use kube::Resource;
use kube::api::ListParams;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Remote;

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
