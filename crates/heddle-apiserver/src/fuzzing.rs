//! For the fuzzer: everything here that reads what strangers send.

use std::borrow::Cow;

use http::Method;
use serde_json::Value;

use crate::patch::{self, PatchError};
use crate::request::{self, Params, Path};
use crate::schema::within_depth;
use crate::select::{FieldSelector, LabelSelector};
use crate::{body, protobuf};

/// A line with an object, and behind it a patch: it is applied, or refused and the object untouched.
///
/// # Panics
/// When the promise does not hold.
pub fn patch(soup: &[u8]) {
    let end = soup.iter().position(|byte| *byte == b'\n');
    let (object, patch) = soup.split_at(end.unwrap_or(soup.len()));
    let (Ok(object), Ok(patch)) = (body::json(object), body::json(patch)) else {
        return;
    };
    type Apply = fn(&mut Value, &Value) -> Result<(), PatchError>;
    for apply in [patch::json as Apply, patch::merge, patch::strategic] {
        let mut patched = object.value.clone();
        match apply(&mut patched, &patch.value) {
            Ok(()) => assert!(within_depth(&patched) || !within_depth(&object.value)),
            Err(error) => {
                assert_eq!(patched, object.value, "{error}");
                assert!(!error.to_string().is_empty());
            }
        }
    }
}

/// A selector of either kind selects or is refused.
///
/// # Panics
/// When the promise does not hold.
pub fn selector(soup: &[u8]) {
    let Ok(text) = std::str::from_utf8(soup) else {
        return;
    };
    if let Ok(selector) = LabelSelector::parse(text) {
        let any =
            selector.matches(|_| None) | selector.matches(|key| (key == "app").then_some("1"));
        assert!(any || !selector.is_everything());
    }
    if let Ok(selector) = FieldSelector::parse(text) {
        let any =
            selector.matches(|_| None) | selector.matches(|path| Some(Cow::Owned(path.to_owned())));
        assert!(any || !selector.is_everything());
        assert_eq!(selector.terms().is_empty(), selector.is_everything());
    }
}

/// A line with a path, and behind it a query: both are understood or refused, whatever the method.
///
/// # Panics
/// When the promise does not hold.
pub fn request(soup: &[u8]) {
    let Ok(text) = std::str::from_utf8(soup) else {
        return;
    };
    let (path, query) = text.split_once('\n').unwrap_or((text, ""));
    for method in [
        Method::GET,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
    ] {
        let params = Params::parse(&method, query).unwrap_or_default();
        if let Path::Object(target) = request::path(path) {
            assert!(path.contains(target.plural));
            request::verb(&method, &target, params.watch);
        }
    }
}

/// Any bytes as the body of a request: another reader of JSON agrees on whether they are JSON, and YAML ends.
///
/// # Panics
/// When the promise does not hold.
pub fn document(soup: &[u8]) {
    let other = serde_json::from_slice::<Value>(soup);
    assert_eq!(body::json(soup).is_ok(), other.is_ok());
    if let Ok(decoded) = body::yaml(soup) {
        assert!(serde_json::to_string(&decoded.value).is_ok());
    }
}

/// Any bytes as a body in protobuf, with the magic number in front or without.
///
/// # Panics
/// When the promise does not hold.
pub fn protobuf(soup: &[u8]) {
    let whole = [&b"k8s\0"[..], soup].concat();
    for bytes in [soup, &whole[..]] {
        if let Ok(object) = protobuf::decode(bytes) {
            assert!(object["kind"].is_string() && object["apiVersion"].is_string());
        }
    }
}

#[cfg(test)]
mod tests;
