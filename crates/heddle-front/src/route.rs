//! From a method and a path to what is asked.
//!
//! ```text
//!   /v2/…                    all namespaces
//!   /osb/{namespace}/v2/…    one namespace: nothing of another is known there
//! ```
//! Ids are any text: a path is split first and decoded then, so that an id may hold a slash.

use http::Method;

use crate::error::OsbError;

/// The longest id that an object can carry.
const ID_CHARS_MAX: usize = 1024;
/// The longest name of a namespace.
const NAMESPACE_CHARS_MAX: usize = 63;

/// Which front was asked, and about what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Route {
    /// The namespace whose front was asked; `None` is the front of all.
    pub(crate) scope: Option<String>,
    pub(crate) target: Target,
}

/// What a path is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    Catalog,
    Instance { instance: String },
    InstanceOperation { instance: String },
    Binding { instance: String, binding: String },
    BindingOperation { instance: String, binding: String },
}

/// What is to be done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum OsbVerb {
    Catalog,
    Provision,
    FetchInstance,
    Update,
    Deprovision,
    PollInstance,
    Bind,
    FetchBinding,
    Unbind,
    PollBinding,
}

impl OsbVerb {
    /// As metrics and logs call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Catalog => "catalog",
            Self::Provision => "provision",
            Self::FetchInstance => "fetch_instance",
            Self::Update => "update",
            Self::Deprovision => "deprovision",
            Self::PollInstance => "poll_instance",
            Self::Bind => "bind",
            Self::FetchBinding => "fetch_binding",
            Self::Unbind => "unbind",
            Self::PollBinding => "poll_binding",
        }
    }
}

impl Route {
    pub(crate) fn of(path: &str) -> Result<Self, OsbError> {
        let parts: Vec<&str> = path.strip_prefix('/').unwrap_or(path).split('/').collect();
        let (scope, rest) = match parts.as_slice() {
            ["v2", rest @ ..] => (None, rest),
            ["osb", namespace, "v2", rest @ ..] => (Some(namespace_of(namespace)?), rest),
            _ => return Err(OsbError::NoSuchPath),
        };
        let target = match rest {
            ["catalog"] => Target::Catalog,
            ["service_instances", instance] => Target::Instance {
                instance: id(instance)?,
            },
            ["service_instances", instance, "last_operation"] => Target::InstanceOperation {
                instance: id(instance)?,
            },
            ["service_instances", instance, "service_bindings", binding] => Target::Binding {
                instance: id(instance)?,
                binding: id(binding)?,
            },
            [
                "service_instances",
                instance,
                "service_bindings",
                binding,
                "last_operation",
            ] => Target::BindingOperation {
                instance: id(instance)?,
                binding: id(binding)?,
            },
            _ => return Err(OsbError::NoSuchPath),
        };
        Ok(Self { scope, target })
    }
}

impl Target {
    pub(crate) fn verb(&self, method: &Method) -> Result<OsbVerb, OsbError> {
        let (allow, verb) = match self {
            Self::Catalog => ("GET", (method == Method::GET).then_some(OsbVerb::Catalog)),
            Self::Instance { .. } => (
                "GET, PUT, PATCH, DELETE",
                match *method {
                    Method::GET => Some(OsbVerb::FetchInstance),
                    Method::PUT => Some(OsbVerb::Provision),
                    Method::PATCH => Some(OsbVerb::Update),
                    Method::DELETE => Some(OsbVerb::Deprovision),
                    _ => None,
                },
            ),
            Self::InstanceOperation { .. } => (
                "GET",
                (method == Method::GET).then_some(OsbVerb::PollInstance),
            ),
            Self::Binding { .. } => (
                "GET, PUT, DELETE",
                match *method {
                    Method::GET => Some(OsbVerb::FetchBinding),
                    Method::PUT => Some(OsbVerb::Bind),
                    Method::DELETE => Some(OsbVerb::Unbind),
                    _ => None,
                },
            ),
            Self::BindingOperation { .. } => (
                "GET",
                (method == Method::GET).then_some(OsbVerb::PollBinding),
            ),
        };
        verb.ok_or(OsbError::MethodNotAllowed { allow })
    }

    /// The instance it is about.
    pub(crate) fn instance(&self) -> Option<&str> {
        match self {
            Self::Catalog => None,
            Self::Instance { instance }
            | Self::InstanceOperation { instance }
            | Self::Binding { instance, .. }
            | Self::BindingOperation { instance, .. } => Some(instance),
        }
    }
}

fn id(segment: &str) -> Result<String, OsbError> {
    if segment.is_empty() {
        return Err(OsbError::NoSuchPath);
    }
    let id = decoded(segment)
        .ok_or_else(|| OsbError::Invalid("an id in the path is not UTF-8".to_owned()))?;
    if id.chars().count() > ID_CHARS_MAX {
        let text = format!("an id in the path is longer than {ID_CHARS_MAX} characters");
        return Err(OsbError::Invalid(text));
    }
    Ok(id)
}

/// What cannot be a namespace has no front.
fn namespace_of(segment: &str) -> Result<String, OsbError> {
    let namespace = decoded(segment).ok_or(OsbError::NoSuchPath)?;
    if is_namespace(&namespace) {
        Ok(namespace)
    } else {
        Err(OsbError::NoSuchPath)
    }
}

/// Whether a text can be the name of a namespace.
pub(crate) fn is_namespace(text: &str) -> bool {
    let bytes = text.as_bytes();
    let inner = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    let edge = |byte: Option<&u8>| byte.is_some_and(|byte| *byte != b'-');
    bytes.len() <= NAMESPACE_CHARS_MAX
        && bytes.iter().all(inner)
        && edge(bytes.first())
        && edge(bytes.last())
}

/// Takes percent encoding away. A percent sign that starts no code stands for itself.
fn decoded(segment: &str) -> Option<String> {
    let mut out = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = match (first, tail) {
            (b'%', [high, low, ..]) => digit(*high).zip(digit(*low)),
            _ => None,
        };
        if let Some((high, low)) = code {
            out.push(high << 4 | low);
            rest = &tail[2..];
        } else {
            out.push(*first);
            rest = tail;
        }
    }
    String::from_utf8(out).ok()
}

fn digit(byte: u8) -> Option<u8> {
    let value = char::from(byte).to_digit(16)?;
    u8::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str) -> Result<Route, u16> {
        Route::of(path).map_err(|error| error.status().as_u16())
    }

    #[test]
    fn an_id_is_any_text() {
        for (segment, id) in [
            ("a~b.c_d-e", "a~b.c_d-e"),
            ("a%2Fb", "a/b"),
            ("a%20b", "a b"),
            ("a+b", "a+b"),
            ("%C3%BC", "ü"),
            ("100%", "100%"),
            ("%zz", "%zz"),
        ] {
            let route = of(&format!("/v2/service_instances/{segment}")).unwrap();
            assert_eq!(route.target.instance(), Some(id));
        }
        assert_eq!(of("/v2/service_instances/%FF"), Err(400));
        assert!(of(&format!("/v2/service_instances/{}", "x".repeat(200))).is_ok());
        assert_eq!(
            of(&format!("/v2/service_instances/{}", "x".repeat(1025))),
            Err(400)
        );
    }

    #[test]
    fn a_front_of_one_namespace_has_the_same_paths_below_another_root() {
        let target = Target::BindingOperation {
            instance: "i".to_owned(),
            binding: "b".to_owned(),
        };
        let tail = "v2/service_instances/i/service_bindings/b/last_operation";
        assert_eq!(
            of(&format!("/osb/team-a/{tail}")),
            Ok(Route {
                scope: Some("team-a".to_owned()),
                target: target.clone()
            })
        );
        assert_eq!(
            of(&format!("/{tail}")),
            Ok(Route {
                scope: None,
                target
            })
        );
        for path in [
            "/",
            "/v2",
            "/v2/",
            "/v2/catalog/",
            "/v2/service_instances",
            "/v2/service_instances/",
            "/osb/v2/catalog",
            "/osb/Team/v2/catalog",
            "/osb/-a/v2/catalog",
            "/osb/a%2Fb/v2/catalog",
            "/v2/service_instances/i/other",
            "/v3/catalog",
        ] {
            assert_eq!(of(path), Err(404), "{path}");
        }
    }

    #[test]
    fn a_known_path_says_which_methods_it_allows() {
        let target = Route::of("/v2/service_instances/i").unwrap().target;
        assert_eq!(target.verb(&Method::PATCH), Ok(OsbVerb::Update));
        for method in [Method::POST, Method::TRACE, Method::OPTIONS] {
            let error = target.verb(&method).unwrap_err();
            assert_eq!(
                error,
                OsbError::MethodNotAllowed {
                    allow: "GET, PUT, PATCH, DELETE"
                }
            );
        }
        let target = Route::of("/v2/catalog").unwrap().target;
        assert_eq!(
            target.verb(&Method::PUT),
            Err(OsbError::MethodNotAllowed { allow: "GET" })
        );
    }
}
