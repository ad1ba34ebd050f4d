//! Which front an instance or binding belongs to.
//!
//! Two platforms may use the same id, one at the front of a namespace and one at the front of all. What was asked for at one
//! of them is unknown at the other: it is not shown there, not changed and not removed. The path of the front is an annotation
//! of the object. What somebody wrote by hand has none and is known at both.

use std::collections::BTreeMap;

use heddle_api::record::Record;
use heddle_api::well_known::OSB_FRONT_ANNOTATION;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// The path of the front of a namespace, or of all.
pub(crate) fn path(scope: Option<&str>) -> String {
    match scope {
        Some(namespace) => format!("/osb/{namespace}/v2"),
        None => "/v2".to_owned(),
    }
}

/// Notes on a new object which front it belongs to.
pub(crate) fn stamp(meta: &mut ObjectMeta, scope: Option<&str>) {
    let annotations = meta.annotations.get_or_insert_with(BTreeMap::new);
    annotations.insert(OSB_FRONT_ANNOTATION.to_owned(), path(scope));
}

/// The front that an object belongs to, unless somebody wrote it by hand.
pub(crate) fn owner(meta: &ObjectMeta) -> Option<&str> {
    let annotations = meta.annotations.as_ref()?;
    annotations.get(OSB_FRONT_ANNOTATION).map(String::as_str)
}

/// Whether an object is known at a front.
pub(crate) fn is_known(meta: &ObjectMeta, scope: Option<&str>) -> bool {
    owner(meta).is_none_or(|owner| owner == path(scope))
}

/// The same for what is remembered of one that is gone.
pub(crate) fn is_remembered(record: &Record, scope: Option<&str>) -> bool {
    let owner = record.front.as_deref();
    owner.is_none_or(|owner| owner == path(scope))
}
