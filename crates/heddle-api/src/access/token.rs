//! A token that somebody was given, as its Secret holds it. Pure.
//!
//! The Secret is in `heddle-system` and has the user's name. It holds the digest of the token and not the token, so that whoever
//! reads a backup has none.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use jiff::Timestamp;
use k8s_openapi::ByteString;

use super::{Access, Role, Scope};
use crate::well_known::SYSTEM_NAMESPACE;

/// Type of the Secrets.
pub const ACCESS_TOKEN_TYPE: &str = "heddle.dev/access-token";

/// Names that would be taken for heddle itself.
const RESERVED_PREFIX: &str = "heddle-";

const DIGEST: &str = "digest";
const ROLE: &str = "role";
const NAMESPACES: &str = "namespaces";
const PAYLOADS: &str = "payloads";
const EXPIRES: &str = "expires";

/// Who has a token, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessToken {
    /// SHA-256 of the token.
    pub digest: [u8; 32],
    pub access: Access,
    pub expires: Option<Timestamp>,
}

impl AccessToken {
    /// What the Secret of a name says, or why it says nothing.
    pub fn read(name: &str, data: Option<&BTreeMap<String, ByteString>>) -> Result<Self, String> {
        let text = |key: &str| {
            let value = data.and_then(|data| data.get(key));
            let value = value.map(|value| std::str::from_utf8(&value.0).map(str::trim));
            value.transpose().map_err(|_| format!("{key} is not text"))
        };
        let digest = text(DIGEST)?.ok_or("there is no digest")?;
        let digest = bytes_of(digest).ok_or("digest is not a SHA-256 in hexadecimal")?;
        let role = text(ROLE)?.ok_or("there is no role")?;
        let role = Role::ALL.into_iter().find(|known| known.name() == role);
        let role = role.ok_or("role is none of viewer, operator and administrator")?;
        let scope = match text(NAMESPACES)? {
            None => Scope::All,
            Some(names) => {
                let names = names.split(',').map(|name| name.trim().to_owned());
                Scope::Namespaces(names.filter(|name| !name.is_empty()).collect())
            }
        };
        let payloads = match text(PAYLOADS)? {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => return Err("payloads is neither true nor false".to_owned()),
        };
        let expires = text(EXPIRES)?.map(str::parse).transpose();
        let expires = expires.map_err(|_| "expires is no time such as 2030-01-31T00:00:00Z")?;
        let token = Self {
            digest,
            access: Access {
                user: name.to_owned(),
                role,
                scope,
                payloads,
            },
            expires,
        };
        token.check()?;
        Ok(token)
    }

    /// Why there may be no such token.
    pub fn check(&self) -> Result<(), String> {
        let user = &self.access.user;
        if user.starts_with(RESERVED_PREFIX) {
            return Err(format!(
                "names that begin with {RESERVED_PREFIX} are heddle's own: choose another than {user}"
            ));
        }
        match &self.access.scope {
            Scope::Namespaces(names) if names.is_empty() => {
                Err("namespaces names none: leave it out for all of them".to_owned())
            }
            Scope::Namespaces(names)
                if self.access.role == Role::Administrator && names.contains(SYSTEM_NAMESPACE) =>
            {
                Err(format!(
                    "an administrator of {SYSTEM_NAMESPACE} would be one of everything: leave it out, or name no namespaces"
                ))
            }
            _ => Ok(()),
        }
    }

    /// The data of the Secret, as text.
    #[must_use]
    pub fn data(&self) -> BTreeMap<&'static str, String> {
        let mut data = BTreeMap::from([
            (DIGEST, hex(&self.digest)),
            (ROLE, self.access.role.name().to_owned()),
        ]);
        if let Scope::Namespaces(names) = &self.access.scope {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            data.insert(NAMESPACES, names.join(","));
        }
        if self.access.payloads {
            data.insert(PAYLOADS, "true".to_owned());
        }
        if let Some(expires) = self.expires {
            data.insert(EXPIRES, expires.to_string());
        }
        data
    }
}

/// Namespaces as they were given; none are all.
#[must_use]
pub fn scope_of(namespaces: &[String]) -> Scope {
    match namespaces {
        [] => Scope::All,
        names => Scope::Namespaces(names.iter().cloned().collect::<BTreeSet<_>>()),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string succeeds");
        text
    })
}

fn bytes_of(hex: &str) -> Option<[u8; 32]> {
    if hex.len() != 64 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; 32];
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&hex[2 * place..2 * place + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(data: &BTreeMap<&'static str, String>) -> BTreeMap<String, ByteString> {
        let bytes = |text: &String| ByteString(text.clone().into_bytes());
        data.iter()
            .map(|(key, text)| ((*key).to_owned(), bytes(text)))
            .collect()
    }

    fn token(role: Role, namespaces: &[&str]) -> AccessToken {
        let namespaces: Vec<String> = namespaces.iter().map(|name| (*name).to_owned()).collect();
        AccessToken {
            digest: [0xa7; 32],
            access: Access {
                user: "ada".to_owned(),
                role,
                scope: scope_of(&namespaces),
                payloads: role == Role::Operator,
            },
            expires: (role == Role::Viewer).then_some(Timestamp::UNIX_EPOCH),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for role in Role::ALL {
            for namespaces in [&[][..], &["team-a"], &["team-a", "team-b"]] {
                let token = token(role, namespaces);
                let data = bytes(&token.data());
                assert_eq!(AccessToken::read("ada", Some(&data)), Ok(token));
            }
        }
    }

    #[test]
    fn what_cannot_be_understood_lets_nobody_in() {
        let good = token(Role::Viewer, &["team-a"]).data();
        let with = |key: &'static str, value: Option<&str>| {
            let mut data = good.clone();
            match value {
                Some(value) => data.insert(key, value.to_owned()),
                None => data.remove(key),
            };
            AccessToken::read("ada", Some(&bytes(&data)))
        };
        for (key, value) in [
            (DIGEST, None),
            (DIGEST, Some("a7")),
            (
                DIGEST,
                Some("+7+7+7+7+7+7+7+7+7+7+7+7+7+7+7+7+7+7+7+7+7+7+7+7+7+7+7+7+7+7+7+7"),
            ),
            (ROLE, None),
            (ROLE, Some("Viewer")),
            (NAMESPACES, Some("")),
            (NAMESPACES, Some(" , ")),
            (PAYLOADS, Some("yes")),
            (EXPIRES, Some("tomorrow")),
        ] {
            assert!(with(key, value).is_err(), "{key} {value:?}");
        }
        assert!(AccessToken::read("ada", None).is_err());
        assert!(AccessToken::read("heddle-admin", Some(&bytes(&good))).is_err());
        let system = token(Role::Administrator, &["team-a", SYSTEM_NAMESPACE]);
        assert!(system.check().is_err());
        assert!(token(Role::Operator, &[SYSTEM_NAMESPACE]).check().is_ok());
    }
}
