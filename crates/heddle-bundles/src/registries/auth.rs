//! Proving to a registry who asks: what it wants, and what it is given.
//!
//! A registry answers 401 and says what it wants: a password, or a token that another server hands out for one repository.
//! Secrets go to the registry itself (its scheme, host and port) and to the token server that it names, over TLS unless that is
//! on this machine or the registry itself; never to where a redirect leads, and never to whom such a place names. Tokens are kept until they expire, each for its scope.

use std::collections::HashMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use heddle_api::evidence::Credentials;
use http::HeaderValue;
use parking_lot::Mutex;
use serde::Deserialize;

use super::address::Address;

/// What the token servers of old mean when they say nothing.
const EXPIRES_SECONDS: u64 = 60;
/// A token is not used up to its last moment.
const SLACK: Duration = Duration::from_secs(5);
/// Scopes whose tokens are kept. Beyond that, all are asked for again.
const TOKENS_MAX: usize = 10_000;

/// What a registry wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    Basic,
    Bearer {
        realm: String,
        service: Option<String>,
        scope: Option<String>,
    },
}

/// Reads a `WWW-Authenticate` header.
pub(super) fn challenge(header: &str) -> Option<Challenge> {
    let (scheme, rest) = header
        .trim()
        .split_once(' ')
        .unwrap_or_else(|| (header.trim(), ""));
    if scheme.eq_ignore_ascii_case("basic") {
        return Some(Challenge::Basic);
    }
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let mut parameters: HashMap<String, String> = parameters(rest).into_iter().collect();
    Some(Challenge::Bearer {
        realm: parameters.remove("realm")?,
        service: parameters.remove("service"),
        scope: parameters.remove("scope"),
    })
}

/// `name="value"` or `name=value`, between commas. A value in quotes may hold commas.
fn parameters(mut text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    while let Some((name, rest)) = text.split_once('=') {
        let name = name.trim_matches([' ', ',']).to_ascii_lowercase();
        let (value, rest) = match rest.strip_prefix('"') {
            Some(quoted) => match quoted.split_once('"') {
                Some((value, rest)) => (value, rest),
                None => return found,
            },
            None => rest.split_once(',').unwrap_or((rest, "")),
        };
        found.push((name, value.trim().to_owned()));
        text = rest;
    }
    found
}

/// What a token server answers.
#[derive(Deserialize)]
struct Granted {
    token: Option<String>,
    access_token: Option<String>,
    expires_in: Option<u64>,
}

/// What is known about how a registry wants to be asked.
#[derive(Debug)]
pub(super) struct Auth {
    credentials: Credentials,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// It asked for a password.
    basic: bool,
    /// It sends everybody to this token server.
    server: Option<(Address, Option<String>)>,
    tokens: HashMap<String, (HeaderValue, Duration)>,
}

impl Auth {
    pub(super) fn new(credentials: Credentials) -> Self {
        Self {
            credentials,
            state: Mutex::default(),
        }
    }

    /// What to send to the registry for a scope, as far as it is known now.
    pub(super) fn header(&self, scope: &str, now: Duration) -> Option<HeaderValue> {
        if let Credentials::Token(token) = &self.credentials {
            return secret(&format!("Bearer {token}"));
        }
        let state = self.state.lock();
        if state.basic {
            return self.basic();
        }
        let (token, until) = state.tokens.get(scope)?;
        (now < *until).then(|| token.clone())
    }

    /// User and password, for the registry or its token server.
    pub(super) fn basic(&self) -> Option<HeaderValue> {
        let Credentials::Basic { username, password } = &self.credentials else {
            return None;
        };
        secret(&format!(
            "Basic {}",
            STANDARD.encode(format!("{username}:{password}"))
        ))
    }

    /// Notes that the registry wants a password, and gives it if there is one.
    pub(super) fn use_basic(&self) -> Option<HeaderValue> {
        let basic = self.basic()?;
        self.state.lock().basic = true;
        Some(basic)
    }

    /// Whether there is a token that no token server handed out, so that none can hand out another.
    pub(super) fn is_given(&self) -> bool {
        matches!(self.credentials, Credentials::Token(_))
    }

    /// A token server that is known already, so that the registry need not say no first.
    pub(super) fn server(&self) -> Option<(Address, Option<String>)> {
        if self.is_given() {
            return None;
        }
        self.state.lock().server.clone()
    }

    pub(super) fn remember_server(&self, realm: Address, service: Option<String>) {
        self.state.lock().server = Some((realm, service));
    }

    /// Forgets a token that was refused.
    pub(super) fn forget(&self, scope: &str) {
        self.state.lock().tokens.remove(scope);
    }

    /// Keeps what a token server handed out.
    pub(super) fn grant(
        &self,
        scope: &str,
        answer: &[u8],
        now: Duration,
    ) -> Result<HeaderValue, String> {
        let granted: Granted = serde_json::from_slice(answer)
            .map_err(|_| "the token server's answer cannot be read".to_owned())?;
        let token = granted.token.or(granted.access_token);
        let token = token.filter(|token| !token.is_empty());
        let token = token.ok_or("the token server handed out no token")?;
        let header = secret(&format!("Bearer {token}")).ok_or("the token cannot be sent")?;
        let lifetime = Duration::from_secs(granted.expires_in.unwrap_or(EXPIRES_SECONDS));
        let mut state = self.state.lock();
        if state.tokens.len() >= TOKENS_MAX {
            state.tokens.clear();
        }
        let until = now.saturating_add(lifetime.saturating_sub(SLACK));
        state
            .tokens
            .insert(scope.to_owned(), (header.clone(), until));
        Ok(header)
    }
}

/// A header that stays out of logs.
fn secret(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read_as_registries_write_them() {
        let bearer = |realm: &str, service: Option<&str>, scope: Option<&str>| {
            Some(Challenge::Bearer {
                realm: realm.to_owned(),
                service: service.map(str::to_owned),
                scope: scope.map(str::to_owned),
            })
        };
        let table = [
            (r#"Basic realm="x""#, Some(Challenge::Basic)),
            ("basic", Some(Challenge::Basic)),
            (
                r#"Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:a/b:pull,push""#,
                bearer(
                    "https://auth.docker.io/token",
                    Some("registry.docker.io"),
                    Some("repository:a/b:pull,push"),
                ),
            ),
            (
                r#"bearer Realm="r", service=s"#,
                bearer("r", Some("s"), None),
            ),
            (r#"Bearer service="s""#, None),
            (r#"Bearer realm="unfinished"#, None),
            ("Negotiate", None),
            ("", None),
        ];
        for (header, expected) in table {
            assert_eq!(challenge(header), expected, "{header}");
        }
    }

    #[test]
    fn tokens_are_kept_for_their_scope_until_they_expire() {
        let auth = Auth::new(Credentials::None);
        let second = Duration::from_secs;
        assert_eq!(auth.header("a", second(0)), None);
        auth.grant(
            "a",
            br#"{"access_token": "t", "expires_in": 30}"#,
            second(0),
        )
        .unwrap();
        auth.grant("b", br#"{"token": "u"}"#, second(0)).unwrap();
        assert_eq!(auth.header("a", second(24)).unwrap(), "Bearer t");
        assert_eq!(auth.header("a", second(25)), None);
        assert_eq!(auth.header("b", second(50)).unwrap(), "Bearer u");
        auth.forget("b");
        assert_eq!(auth.header("b", second(0)), None);
        assert!(
            auth.grant("c", b"{}", second(0)).is_err()
                && auth.grant("c", b"<html>", second(0)).is_err()
        );
        assert!(
            format!("{:?}", auth.grant("d", br#"{"token": "hush"}"#, second(0)))
                .contains("Sensitive")
        );
    }

    #[test]
    fn a_password_is_sent_only_once_it_was_asked_for_and_a_token_at_once() {
        let auth = Auth::new(Credentials::Basic {
            username: "me".into(),
            password: "secret".into(),
        });
        assert_eq!(auth.header("a", Duration::ZERO), None);
        assert!(auth.use_basic().is_some());
        assert_eq!(
            auth.header("a", Duration::ZERO).unwrap(),
            "Basic bWU6c2VjcmV0"
        );
        let auth = Auth::new(Credentials::Token("t".into()));
        assert_eq!(auth.header("a", Duration::ZERO).unwrap(), "Bearer t");
        assert!(auth.use_basic().is_none() && auth.is_given());
    }
}
