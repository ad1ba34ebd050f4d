//! Acting as somebody else: the `Impersonate-*` headers of kubectl and of proxies that log people in themselves.
//!
//! Administrators may impersonate anybody, and then have the rights of that user and no others: a proxy that forwards each
//! of its users under their own name makes none of them an administrator. Users and groups that heddle does not know are
//! allowed, and may do nothing. Nobody becomes one of heddle's own controllers, which are more than administrators.
//! A request whose headers cannot be honoured is refused; it is never carried out with the rights of whoever sent it.

use http::{HeaderMap, HeaderName, HeaderValue};

use super::{ADMINS, CONTROLLERS, Identity};
use crate::status::{Result, StatusError};

const PREFIX: &str = "impersonate-";
const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";

/// The group of everybody who proved who they are.
const AUTHENTICATED: &str = "system:authenticated";

/// The groups that one request may name.
const GROUPS_MAX: usize = 64;

/// Whether a request asks to be carried out as somebody else.
#[must_use]
pub fn impersonates(headers: &HeaderMap) -> bool {
    headers.keys().any(is_about)
}

fn is_about(name: &HeaderName) -> bool {
    name.as_str().starts_with(PREFIX)
}

/// Whose rights a request of `identity` has.
pub(super) fn effective(identity: &Identity, headers: &HeaderMap) -> Result<Identity> {
    if !impersonates(headers) {
        return Ok(identity.clone());
    }
    let wanted = wanted(headers)?;
    if !identity.is_in(ADMINS) {
        return Err(forbidden(identity, "users", &wanted.user));
    }
    if wanted.is_in(CONTROLLERS) {
        return Err(forbidden(identity, "groups", CONTROLLERS));
    }
    tracing::debug!(
        target: "heddle::audit",
        user = %identity.user, acts_as = %wanted.user, groups = ?wanted.groups, "impersonation"
    );
    Ok(wanted)
}

/// Who the headers name. Uid and extra fields are understood, and decide nothing here.
fn wanted(headers: &HeaderMap) -> Result<Identity> {
    let known = |name: &str| [USER, GROUP, UID].contains(&name) || name.starts_with(EXTRA);
    if let Some(name) = headers
        .keys()
        .find(|name| is_about(name) && !known(name.as_str()))
    {
        let message = format!(
            "the header {name} is not known; Impersonate-User, -Group, -Uid and -Extra-* are"
        );
        return Err(StatusError::bad_request(message));
    }
    let mut users = headers.get_all(USER).iter();
    let user = match (users.next().map(text).transpose()?, users.next()) {
        (Some(user), None) if !user.is_empty() => user,
        (_, None) => {
            let message = "Impersonate-Group, -Uid and -Extra-* need an Impersonate-User";
            return Err(StatusError::bad_request(message));
        }
        (_, Some(_)) => return Err(StatusError::bad_request("Impersonate-User is given twice")),
    };
    let named = headers.get_all(GROUP).iter().map(text);
    let mut groups: Vec<&str> = named.take(GROUPS_MAX + 1).collect::<Result<_>>()?;
    if groups.len() > GROUPS_MAX {
        let message = format!("Impersonate-Group is given more than {GROUPS_MAX} times");
        return Err(StatusError::bad_request(message));
    }
    groups.push(AUTHENTICATED);
    Ok(Identity::new(user, &groups))
}

fn text(value: &HeaderValue) -> Result<&str> {
    let text = value.to_str();
    text.map_err(|_| StatusError::bad_request("an Impersonate-* header is not ASCII text"))
}

fn forbidden(identity: &Identity, plural: &str, name: &str) -> StatusError {
    StatusError::forbidden(format!(
        "{plural} \"{name}\" is forbidden: User \"{}\" cannot impersonate resource \"{plural}\" in API group \"\" at the cluster scope",
        identity.user
    ))
}
