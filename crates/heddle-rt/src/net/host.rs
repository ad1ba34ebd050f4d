//! By which names a door may be called.
//!
//! A page of a stranger can have its own name resolve to this machine (DNS rebinding); the browser then sends whatever the
//! page likes to a loopback door, and shows it the answer. What it cannot choose is the `Host` it sends, which is the
//! page's name. So a door answers to addresses, to `localhost`, and to names it was given; addresses cannot be rebound.
//! A request without any host comes from no browser.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::uri::Authority;
use http::{HeaderMap, Uri, header};

/// The names that a door answers to besides addresses and `localhost`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    names: Arc<[String]>,
}

/// A request for somebody else.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{host:?} is no name of this server: call it by its address or localhost, or have it started with --tls-name {host}"
)]
pub struct Misdirected {
    pub host: String,
}

impl Hosts {
    /// Answers to these names too.
    #[must_use]
    pub fn named(names: &[String]) -> Self {
        let names = names.iter().map(|name| plain(name).to_ascii_lowercase());
        Self {
            names: names.collect(),
        }
    }

    /// Whether a request is meant for this door: both the authority it was sent with and each `Host` must be.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Misdirected> {
        if let Some(authority) = uri.authority() {
            self.check_one(authority.as_str())?;
        }
        for value in headers.get_all(header::HOST) {
            self.check_one(&String::from_utf8_lossy(value.as_bytes()))?;
        }
        Ok(())
    }

    fn check_one(&self, host: &str) -> Result<(), Misdirected> {
        if self.knows(host) {
            return Ok(());
        }
        // What a stranger sent is shown back, not more of it than a name has.
        let host = host.chars().take(NAME_CHARS_MAX).collect();
        Err(Misdirected { host })
    }

    fn knows(&self, host: &str) -> bool {
        // Nearly everybody comes by address, and that is known without a copy.
        if host.parse::<SocketAddr>().is_ok() {
            return true;
        }
        let Ok(authority) = host.parse::<Authority>() else {
            return false;
        };
        if host.contains('@') {
            return false;
        }
        let name = plain(authority.host());
        let address = name.trim_start_matches('[').trim_end_matches(']');
        address.parse::<IpAddr>().is_ok()
            || name.eq_ignore_ascii_case("localhost")
            || self
                .names
                .iter()
                .any(|known| name.eq_ignore_ascii_case(known))
    }
}

/// The longest name that DNS knows.
const NAME_CHARS_MAX: usize = 253;

/// A name without the dot that makes it absolute.
fn plain(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(hosts: &Hosts, uri: &str, host: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        if let Some(host) = host {
            headers.insert(header::HOST, host.parse().unwrap());
        }
        hosts.check(&uri.parse().unwrap(), &headers).is_ok()
    }

    #[test]
    fn addresses_localhost_and_names_that_were_given_are_answered_to() {
        let hosts = Hosts::named(&["heddle.example.org".to_owned()]);
        let known = [
            "127.0.0.1",
            "127.0.0.1:4333",
            "10.0.0.7:1",
            "[::1]",
            "[::1]:4333",
            "localhost",
            "LOCALHOST:80",
            "localhost.",
            "heddle.example.org",
            "Heddle.Example.Org.:443",
        ];
        for host in known {
            assert!(check(&hosts, "/livez", Some(host)), "{host}");
        }
        let strange = [
            "evil.example",
            "evil.example:4333",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "127.1",
            "0x7f000001",
            "2130706433",
            "user@127.0.0.1",
            "example.org",
            "xheddle.example.org",
            "",
            "a b",
            "[::1",
            "localhost..",
        ];
        for host in strange {
            assert!(!check(&hosts, "/livez", Some(host)), "{host}");
        }
        assert!(check(&hosts, "/livez", None), "no browser sends that");
    }

    #[test]
    fn the_authority_of_http_2_and_of_absolute_targets_counts_as_much() {
        let hosts = Hosts::default();
        assert!(check(&hosts, "http://127.0.0.1:1/x", Some("localhost")));
        assert!(!check(&hosts, "http://evil.example/x", Some("localhost")));
        assert!(!check(&hosts, "http://localhost/x", Some("evil.example")));
        assert!(!check(&hosts, "https://evil.example/x", None));
    }

    #[test]
    fn the_refusal_says_what_to_do_and_is_short() {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, "e".repeat(5_000).parse().unwrap());
        let refused = Hosts::default()
            .check(&Uri::from_static("/"), &headers)
            .unwrap_err()
            .to_string();
        assert!(
            refused.contains("--tls-name") && refused.len() < 1_000,
            "{refused}"
        );
    }
}
