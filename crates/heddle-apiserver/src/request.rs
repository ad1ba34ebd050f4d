//! A request line taken apart: what is meant (`Target`) and how (`Params`).
//!
//! Paths are matched by hand rather than by a router, because group, version and plural are data.

use http::Method;
use serde_json::json;

use crate::names;
use crate::status::{Result, StatusError};

/// What the path names, before it is known whether such a resource exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Path<'a> {
    /// `/`
    Root,
    Version,
    /// `/api`
    CoreVersions,
    /// `/apis`
    Groups,
    /// `/apis/G`
    Group(&'a str),
    /// `/api/v1`, `/apis/G/V`
    Resources {
        group: &'a str,
        version: &'a str,
    },
    OpenApiV2,
    OpenApiIndex,
    /// The part behind `/openapi/v3/`: `api/v1` or `apis/G/V`.
    OpenApi(&'a str),
    Object(Target<'a>),
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target<'a> {
    pub group: &'a str,
    pub version: &'a str,
    pub namespace: Option<&'a str>,
    pub plural: &'a str,
    pub name: Option<&'a str>,
    pub subresource: Option<&'a str>,
}

pub(crate) fn path(path: &str) -> Path<'_> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    match parts.as_slice() {
        [""] => Path::Root,
        ["version"] => Path::Version,
        ["api"] => Path::CoreVersions,
        ["apis"] => Path::Groups,
        ["openapi", "v2"] => Path::OpenApiV2,
        ["openapi", "v3"] => Path::OpenApiIndex,
        ["openapi", "v3", ..] => {
            Path::OpenApi(path.trim_matches('/').trim_start_matches("openapi/v3/"))
        }
        ["apis", group] => Path::Group(group),
        ["api", version] => Path::Resources { group: "", version },
        ["apis", group, version] => Path::Resources { group, version },
        ["api", version, rest @ ..] => object("", version, rest),
        ["apis", group, version, rest @ ..] => object(group, version, rest),
        _ => Path::Unknown,
    }
}

fn object<'a>(group: &'a str, version: &'a str, rest: &[&'a str]) -> Path<'a> {
    let at = |namespace, plural, name, subresource| {
        Path::Object(Target {
            group,
            version,
            namespace,
            plural,
            name,
            subresource,
        })
    };
    match *rest {
        // `namespaces/x/status` and `/finalize` are subresources of the namespace itself.
        ["namespaces", name, sub @ ("status" | "finalize")] if group.is_empty() => {
            at(None, "namespaces", Some(name), Some(sub))
        }
        ["namespaces", namespace, plural] => at(Some(namespace), plural, None, None),
        ["namespaces", namespace, plural, name] => at(Some(namespace), plural, Some(name), None),
        ["namespaces", namespace, plural, name, sub] => {
            at(Some(namespace), plural, Some(name), Some(sub))
        }
        [plural] => at(None, plural, None, None),
        [plural, name] => at(None, plural, Some(name), None),
        [plural, name, sub] => at(None, plural, Some(name), Some(sub)),
        _ => Path::Unknown,
    }
}

/// The longest time that a request may ask for. Longer ones are cut short, which clients of a watch live with anyway.
const TIMEOUT_SECONDS_MAX: u64 = 24 * 3600;

/// Everything a query string may say. Unknown parameters are ignored, as the real server does.
#[derive(Debug, Clone, Default)]
pub(crate) struct Params {
    pub watch: bool,
    pub limit: Option<usize>,
    pub continue_token: Option<String>,
    pub label_selector: String,
    pub field_selector: String,
    pub resource_version: String,
    pub resource_version_match: String,
    pub timeout_seconds: Option<u64>,
    pub bookmarks: bool,
    pub send_initial_events: Option<bool>,
    pub field_manager: Option<String>,
    pub force: bool,
    pub dry_run: bool,
    pub field_validation: FieldValidation,
    pub propagation_policy: Option<String>,
    pub include_object: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

impl Params {
    pub(crate) fn parse(method: &Method, query: &str) -> Result<Self> {
        let options = options_kind(method);
        let mut params = Self::default();
        for (key, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*key {
                "watch" => params.watch = flag(&key, &value)?,
                "allowWatchBookmarks" => params.bookmarks = flag(&key, &value)?,
                "force" => params.force = flag(&key, &value)?,
                "sendInitialEvents" => params.send_initial_events = Some(flag(&key, &value)?),
                "limit" => {
                    params.limit = number(&key, &value)?
                        .filter(|limit| *limit > 0)
                        .map(|l| l as usize)
                }
                "timeoutSeconds" => {
                    params.timeout_seconds =
                        number(&key, &value)?.map(|seconds| seconds.min(TIMEOUT_SECONDS_MAX));
                }
                "continue" if !value.is_empty() => params.continue_token = Some(value.into_owned()),
                "labelSelector" => params.label_selector = value.into_owned(),
                "fieldSelector" => params.field_selector = value.into_owned(),
                "resourceVersion" => params.resource_version = value.into_owned(),
                "resourceVersionMatch" => params.resource_version_match = value.into_owned(),
                "fieldManager" if !value.is_empty() => {
                    params.field_manager = Some(field_manager(options, &value)?)
                }
                "propagationPolicy" if !value.is_empty() => {
                    params.propagation_policy = Some(value.into_owned())
                }
                "orphanDependents" if value == "true" => {
                    params.propagation_policy = Some("Orphan".to_owned())
                }
                "includeObject" => params.include_object = Some(value.into_owned()),
                "dryRun" => params.dry_run = dry_run(options, &value)?,
                "fieldValidation" => params.field_validation = field_validation(options, &value)?,
                _ => {}
            }
        }
        Ok(params)
    }
}

/// Kubernetes' own bound on the name of a manager.
const FIELD_MANAGER_BYTES_MAX: usize = 128;

/// What Kubernetes calls the query parameters of a request, taken together.
fn options_kind(method: &Method) -> &'static str {
    match *method {
        Method::POST => "CreateOptions",
        Method::PUT => "UpdateOptions",
        Method::PATCH => "PatchOptions",
        Method::DELETE => "DeleteOptions",
        _ => "ListOptions",
    }
}

fn field_manager(options: &str, value: &str) -> Result<String> {
    if value.len() > FIELD_MANAGER_BYTES_MAX {
        let text = format!("Too long: may not be more than {FIELD_MANAGER_BYTES_MAX} bytes");
        let cause = names::cause("fieldManager", "FieldValueTooLong", &text);
        return Err(StatusError::invalid_options(options, cause));
    }
    match value.char_indices().find(|(_, c)| c.is_control()) {
        None => Ok(value.to_owned()),
        Some((at, c)) => {
            let why = format!(
                "invalid character U+{:04X} (at position {at})",
                u32::from(c)
            );
            let cause = names::invalid("fieldManager", value, &why);
            Err(StatusError::invalid_options(options, cause))
        }
    }
}

fn flag(key: &str, value: &str) -> Result<bool> {
    match value {
        "" | "1" | "t" | "T" | "true" | "True" | "TRUE" => Ok(true),
        "0" | "f" | "F" | "false" | "False" | "FALSE" => Ok(false),
        _ => Err(StatusError::bad_request(format!(
            "query parameter {key}: {value:?} is not a boolean"
        ))),
    }
}

fn number(key: &str, value: &str) -> Result<Option<u64>> {
    if value.is_empty() {
        return Ok(None);
    }
    let parsed = value.parse().map(Some);
    parsed.map_err(|_| {
        StatusError::bad_request(format!("query parameter {key}: {value:?} is not a number"))
    })
}

pub(crate) fn dry_run(options: &str, value: &str) -> Result<bool> {
    match value {
        "" => Ok(false),
        "All" => Ok(true),
        other => {
            // It may be given more than once, so the refused value is shown as a list.
            let cause = names::unsupported("dryRun", &json!([other]), &["All"]);
            Err(StatusError::invalid_options(options, cause))
        }
    }
}

fn field_validation(options: &str, value: &str) -> Result<FieldValidation> {
    match value {
        "" | "Warn" => Ok(FieldValidation::Warn),
        "Ignore" => Ok(FieldValidation::Ignore),
        "Strict" => Ok(FieldValidation::Strict),
        other => {
            let supported = ["", "Ignore", "Strict", "Warn"];
            let cause = names::unsupported("fieldValidation", &json!(other), &supported);
            Err(StatusError::invalid_options(options, cause))
        }
    }
}

/// The verb as authorisation, metrics and the audit log name it.
pub(crate) fn verb(method: &Method, target: &Target<'_>, watch: bool) -> Option<&'static str> {
    Some(match (method, target.name.is_some()) {
        (&Method::GET | &Method::HEAD, true) if !watch => "get",
        (&Method::GET | &Method::HEAD, _) if watch => "watch",
        (&Method::GET | &Method::HEAD, false) => "list",
        (&Method::POST, false) => "create",
        (&Method::PUT, true) => "update",
        (&Method::PATCH, true) => "patch",
        (&Method::DELETE, true) => "delete",
        (&Method::DELETE, false) => "deletecollection",
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
