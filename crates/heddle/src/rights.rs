//! What each route below `/heddle/v1` needs: one row each, and the check that reads them.
//!
//! ```text
//!   Everywhere   the answer is about all namespaces: for those who have the right in all of them
//!   Within       the handler answers for the namespaces of whoever asks, by `Access::may` and `Access::sees`
//!   InPath       the path names the namespace
//! ```
//! A question that names a namespace with `?namespace=` is refused here if that is not theirs. A path without a row is for
//! administrators, so that a route that somebody forgot to add is closed rather than open.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use heddle_api::access::{Access, Right};
use heddle_apiserver::Identity;
use http::{Method, StatusCode};

use crate::control::refuse;

/// One row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RouteRight {
    pub(crate) method: &'static str,
    /// Below `/heddle/v1`, with names in braces for what varies.
    pub(crate) path: &'static str,
    pub(crate) right: Right,
    pub(crate) place: Place,
}

/// How the namespace is found that a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Everywhere,
    Within,
    InPath,
}

const fn get(path: &'static str, right: Right, place: Place) -> RouteRight {
    RouteRight {
        method: "GET",
        path,
        right,
        place,
    }
}

const fn post(path: &'static str, right: Right, place: Place) -> RouteRight {
    RouteRight {
        method: "POST",
        path,
        right,
        place,
    }
}

const GROUP_MARK: &str = "/dead-letters/groups/{key}/mark";
const OSB_INSTANCE: &str = "/osb/{namespace}/v2/service_instances/{instance}";
const OSB_BINDING: &str =
    "/osb/{namespace}/v2/service_instances/{instance}/service_bindings/{binding}";

/// What changes an instance or a binding.
const fn osb(method: &'static str, path: &'static str) -> RouteRight {
    RouteRight {
        method,
        path,
        right: Right::Operate,
        place: Place::InPath,
    }
}

/// Every route that is not about logging in.
pub(crate) const ROUTES: &[RouteRight] = &[
    get("/trace", Right::Look, Place::Within),
    get("/dead-letters", Right::Look, Place::Within),
    get("/dead-letters/groups", Right::Look, Place::Within),
    post(GROUP_MARK, Right::Operate, Place::Within),
    RouteRight {
        method: "DELETE",
        path: GROUP_MARK,
        right: Right::Operate,
        place: Place::Within,
    },
    get("/dead-letters/operations", Right::Look, Place::Within),
    get("/dead-letters/operations/{id}", Right::Look, Place::Within),
    post(
        "/dead-letters/operations/{id}/stop",
        Right::Operate,
        Place::Within,
    ),
    get("/dead-letters/{name}", Right::Look, Place::Within),
    post("/dead-letters/{name}/try", Right::Operate, Place::Within),
    post("/dead-letters/redrive", Right::Operate, Place::Within),
    post("/dead-letters/discard", Right::Operate, Place::Within),
    get("/events", Right::Look, Place::Within),
    get("/events/refused", Right::Look, Place::Within),
    post("/events/resend", Right::Operate, Place::Within),
    get("/events/operations", Right::Look, Place::Within),
    get("/events/operations/{id}", Right::Look, Place::Within),
    post(
        "/events/operations/{id}/stop",
        Right::Operate,
        Place::Within,
    ),
    get("/events/{offset}", Right::Look, Place::Within),
    get("/events/{offset}/data", Right::Payloads, Place::Within),
    post("/events/{offset}/republish", Right::Operate, Place::Within),
    post("/explain", Right::Look, Place::Within),
    post("/what-if", Right::Operate, Place::Within),
    get("/silence", Right::Look, Place::Within),
    get("/delays", Right::Look, Place::Within),
    get("/accounts", Right::Look, Place::Within),
    get("/types", Right::Look, Place::Within),
    post("/publish", Right::Operate, Place::Within),
    post("/subscribers/try", Right::Operate, Place::Within),
    // Their answers have a key, once.
    post(
        "/triggers/{namespace}/{name}/sign",
        Right::Operate,
        Place::InPath,
    ),
    post(
        "/triggers/{namespace}/{name}/rotate-key",
        Right::Operate,
        Place::InPath,
    ),
    post(
        "/triggers/{namespace}/{name}/unsign",
        Right::Operate,
        Place::InPath,
    ),
    get("/health", Right::Look, Place::Within),
    get("/health/schema.json", Right::Look, Place::Within),
    get("/health/applications", Right::Look, Place::Within),
    get(
        "/health/applications/{application}",
        Right::Look,
        Place::Within,
    ),
    get(
        "/health/applications/{application}/namespaces/{namespace}",
        Right::Look,
        Place::InPath,
    ),
    get("/health/inventory", Right::Look, Place::Everywhere),
    get("/topology", Right::Look, Place::Within),
    get("/alerts", Right::Look, Place::Within),
    get("/checks", Right::Look, Place::Within),
    get("/stream", Right::Look, Place::Within),
    get("/catalog/bundles", Right::Look, Place::Everywhere),
    get("/osb/{namespace}/v2/catalog", Right::Look, Place::InPath),
    get(OSB_INSTANCE, Right::Look, Place::InPath),
    osb("PUT", OSB_INSTANCE),
    osb("PATCH", OSB_INSTANCE),
    osb("DELETE", OSB_INSTANCE),
    get(
        "/osb/{namespace}/v2/service_instances/{instance}/last_operation",
        Right::Look,
        Place::InPath,
    ),
    // Its answer has credentials.
    get(OSB_BINDING, Right::Administer, Place::InPath),
    osb("PUT", OSB_BINDING),
    osb("DELETE", OSB_BINDING),
    get(
        "/osb/{namespace}/v2/service_instances/{instance}/service_bindings/{binding}/last_operation",
        Right::Look,
        Place::InPath,
    ),
    get("/runs/{id}/log", Right::Administer, Place::Everywhere),
    get("/backup", Right::Administer, Place::Everywhere),
    get("/audit", Right::Administer, Place::Within),
    post("/bundles", Right::Administer, Place::Everywhere),
    post("/smoke", Right::Administer, Place::Everywhere),
];

/// What a path without a row needs.
const UNKNOWN: (Right, Place) = (Right::Administer, Place::Everywhere);

impl RouteRight {
    /// The namespace in the path of a request for this route, if it is for this route at all.
    fn matches<'a>(&self, path: &'a str) -> Option<Option<&'a str>> {
        let (mut wanted, mut found) = (self.path.split('/'), path.split('/'));
        let mut namespace = None;
        loop {
            match (wanted.next(), found.next()) {
                (None, None) => return Some(namespace),
                (Some(part), Some(value)) if part.starts_with('{') && !value.is_empty() => {
                    if part == "{namespace}" {
                        namespace = Some(value);
                    }
                }
                (Some(part), Some(value)) if part == value => {}
                _ => return None,
            }
        }
    }
}

/// The row of a request, if there is one, by its method and its path below `/heddle/v1`.
pub(crate) fn row(method: &Method, path: &str) -> Option<&'static RouteRight> {
    row_and_namespace(method, path).map(|(row, _)| row)
}

/// The same, with the namespace in the path.
fn row_and_namespace<'a>(
    method: &Method,
    path: &'a str,
) -> Option<(&'static RouteRight, Option<&'a str>)> {
    let method = match *method {
        Method::HEAD => Method::GET.as_str(),
        _ => method.as_str(),
    };
    let rows = ROUTES.iter().filter(|row| row.method == method);
    // A name in braces may look like the last word of another path: the one without wins, as it does in the router.
    let found = rows.filter_map(|row| Some((row, row.matches(path)?)));
    found.min_by_key(|(row, _)| row.path.matches('{').count())
}

/// Why somebody may not ask this, if they may not.
pub(crate) fn check(
    access: &Access,
    method: &Method,
    path: &str,
    query: &str,
) -> Result<(), String> {
    let (right, place, named) = match row_and_namespace(method, path) {
        Some((row, named)) => (row.right, row.place, named),
        None => (UNKNOWN.0, UNKNOWN.1, None),
    };
    let mut asked = form_urlencoded::parse(query.as_bytes());
    let asked = asked.find_map(|(key, value)| {
        (key == "namespace" && !value.is_empty()).then(|| value.into_owned())
    });
    let allowed = match place {
        Place::Everywhere => access.may(right, None),
        Place::Within => access.has(right),
        Place::InPath => access.may(right, named),
    };
    if !allowed {
        return Err(access.refusal(right, named));
    }
    match asked {
        Some(asked) if !access.may(right, Some(&asked)) => Err(access.refusal(right, Some(&asked))),
        _ => Ok(()),
    }
}

/// Lets through who may ask; everybody else is answered here. The path has lost its prefix.
pub(crate) async fn guard(request: Request, next: Next) -> Response {
    let extensions = request.extensions();
    let Some(access) = extensions.get::<Access>() else {
        let Some(who) = extensions.get::<Identity>() else {
            let message = "send the bearer token of the kubeconfig";
            return refuse(StatusCode::UNAUTHORIZED, "unauthorized", message);
        };
        let message = format!("{} may not ask about events", who.user);
        return refuse(StatusCode::FORBIDDEN, "forbidden", &message);
    };
    let uri = request.uri();
    let query = uri.query().unwrap_or_default();
    match check(access, request.method(), uri.path(), query) {
        Ok(()) => next.run(request).await,
        Err(message) => refuse(StatusCode::FORBIDDEN, "forbidden", &message),
    }
}

#[cfg(test)]
mod tests {
    use heddle_api::access::{Role, Scope};

    use super::*;

    fn somebody(role: Role, scope: &Scope) -> Access {
        Access {
            user: "ada".to_owned(),
            role,
            scope: scope.clone(),
            payloads: false,
        }
    }

    /// Every row × role × namespace.
    #[test]
    fn a_route_is_open_to_those_whom_its_row_names() {
        let some = Scope::Namespaces(["team-a".to_owned()].into());
        for row in ROUTES {
            for role in Role::ALL {
                let granted = match row.right {
                    Right::Look => true,
                    Right::Operate => role >= Role::Operator,
                    Right::Payloads | Right::Administer => role == Role::Administrator,
                };
                for scope in [&Scope::All, &some] {
                    for namespace in ["team-a", "team-b"] {
                        let path = row.path.replace("{namespace}", namespace);
                        let access = somebody(role, scope);
                        let here = *scope == Scope::All || namespace == "team-a";
                        let is_open = granted
                            && match row.place {
                                Place::Everywhere => *scope == Scope::All,
                                Place::Within => true,
                                Place::InPath => here,
                            };
                        let method = row.method.parse().unwrap();
                        let asked = |query: &str| check(&access, &method, &path, query);
                        let told = asked("");
                        assert_eq!(told.is_ok(), is_open, "{row:?} {access:?} {told:?}");
                        let told = asked(&format!("x=1&namespace={namespace}"));
                        assert_eq!(told.is_ok(), is_open && here, "{row:?} {access:?} {told:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_has_no_row_is_for_administrators() {
        let everywhere = |role| somebody(role, &Scope::All);
        for (method, path) in [
            (Method::GET, "/nothing"),
            (Method::DELETE, "/trace"),
            (Method::GET, "/trace/"),
            (Method::POST, "/dead-letters/redrive/1"),
            (Method::POST, "/dead-letters/17"),
        ] {
            let asked = |role| check(&everywhere(role), &method, path, "").is_ok();
            assert!(!asked(Role::Viewer) && !asked(Role::Operator), "{path}");
            assert!(asked(Role::Administrator), "{path}");
        }
        let viewer = everywhere(Role::Viewer);
        assert!(check(&viewer, &Method::HEAD, "/trace", "").is_ok());
    }
}
