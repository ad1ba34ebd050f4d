//! A destination, read once: everything about a URL that each delivery to it would otherwise work out again.

use std::sync::Arc;

use heddle_rt::budget::Holder;
use heddle_rt::net::dial::Place;
use heddle_rt::net::trust::{BadRoots, Roots};
use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};

use super::pool::OriginPool;
use super::sending::Account;

/// The longest URL that is taken; longer ones are refused by many servers anyway.
const URL_BYTES_MAX: usize = 8192;

/// A destination of deliveries. Equal origins share their connections.
#[derive(Debug)]
pub struct Address {
    /// How every request in HTTP/1 goes on behind its method.
    pub(super) opening: Box<[u8]>,
    /// What HTTP/2 wants: all of it.
    pub(super) whole: Uri,
    pub(super) pool: Arc<OriginPool>,
    /// On whose account its replies are read.
    pub(super) holder: Holder,
}

/// A URL that nothing can be delivered to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAddress {
    #[error("the address is not a URL: {0}")]
    NotUrl(String),
    #[error("the address is longer than {URL_BYTES_MAX} bytes")]
    TooLong,
    #[error("the address needs http:// or https://, not {0}")]
    Scheme(String),
    #[error(
        "the address must not carry a user name or password; credentials do not belong into a URL"
    )]
    Userinfo,
    #[error("the address has no host")]
    Host,
    #[error("the address has port {0}, which nobody listens on")]
    Port(String),
    #[error(transparent)]
    Roots(#[from] BadRoots),
}

/// The parts of an address before it has connections.
pub(super) struct Parsed {
    pub(super) place: Place,
    path: PathAndQuery,
    whole: Uri,
}

impl Address {
    /// What events on their way to its origin may hold.
    pub(super) fn account(&self) -> &Account {
        &self.pool.account
    }

    /// The place that is connected to, whatever is asked for there.
    pub(super) fn origin(&self) -> String {
        let (host, port) = self.pool.name();
        let scheme = self.whole.scheme_str().unwrap_or_default();
        format!("{scheme}://{host}:{port}")
    }

    /// The path, as it would be asked for.
    pub(super) fn path(&self) -> &str {
        self.whole.path()
    }
}

impl Parsed {
    pub(super) fn new(url: &str, ca_certs: Option<&str>) -> Result<Self, BadAddress> {
        if url.len() > URL_BYTES_MAX {
            return Err(BadAddress::TooLong);
        }
        let given: Uri = url
            .parse()
            .map_err(|error: http::uri::InvalidUri| BadAddress::NotUrl(error.to_string()))?;
        let tls = match given.scheme() {
            Some(scheme) if *scheme == Scheme::HTTP => false,
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            Some(scheme) => return Err(BadAddress::Scheme(scheme.to_string())),
            None => return Err(BadAddress::Scheme("a relative one".to_owned())),
        };
        let authority = given.authority().ok_or(BadAddress::Host)?;
        let (host, port) = host_and_port(authority, tls)?;
        let path = given.path_and_query().cloned();
        let path = path.unwrap_or_else(|| PathAndQuery::from_static("/"));
        let tls = if tls {
            Some(ca_certs.map(Roots::parse).transpose()?.unwrap_or_default())
        } else {
            None
        };
        Ok(Self {
            path,
            place: Place { host, port, tls },
            whole: given,
        })
    }

    pub(super) fn with(self, pool: Arc<OriginPool>) -> Address {
        Address {
            holder: Holder::Destination(format!("{}:{}", self.place.host, self.place.port).into()),
            opening: self.opening().into_bytes().into(),
            whole: self.whole,
            pool,
        }
    }

    fn opening(&self) -> String {
        let host = self.whole.authority().map_or("", Authority::as_str);
        let path = &self.path;
        format!(" {path} HTTP/1.1\r\nhost: {host}\r\nuser-agent: heddle\r\n")
    }
}

fn host_and_port(authority: &Authority, tls: bool) -> Result<(String, u16), BadAddress> {
    if authority.as_str().contains('@') {
        return Err(BadAddress::Userinfo);
    }
    let named = authority.host();
    let host = named
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let host = host.unwrap_or(named).to_ascii_lowercase();
    if host.is_empty() {
        return Err(BadAddress::Host);
    }
    // What follows the host is nothing, or a colon and a port that may be empty.
    let port = authority.as_str()[named.len()..].trim_start_matches(':');
    let port = match port {
        "" if tls => 443,
        "" => 80,
        digits => digits
            .parse()
            .ok()
            .filter(|port| *port != 0)
            .ok_or_else(|| BadAddress::Port(digits.to_owned()))?,
    };
    Ok((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> (String, u16, bool, String, String) {
        let parsed = Parsed::new(url, None).unwrap();
        let opening = parsed.opening();
        let mut lines = opening.lines();
        let mut between = |start: &str, end: &str| {
            let line = lines.next().unwrap().strip_prefix(start).unwrap();
            line.strip_suffix(end).unwrap().to_owned()
        };
        let path = between(" ", " HTTP/1.1");
        let host = between("host: ", "");
        let place = parsed.place;
        (place.host, place.port, place.tls.is_some(), host, path)
    }

    #[test]
    fn a_url_is_taken_apart_once() {
        let table = [
            ("http://shop", ("shop", 80, false, "shop", "/")),
            (
                "https://Shop.example",
                ("shop.example", 443, true, "Shop.example", "/"),
            ),
            (
                "http://shop:8080/a/b?c=d#e",
                ("shop", 8080, false, "shop:8080", "/a/b?c=d"),
            ),
            ("http://shop:", ("shop", 80, false, "shop:", "/")),
            ("http://[::1]:81/", ("::1", 81, false, "[::1]:81", "/")),
            (
                "https://[fe80::1]",
                ("fe80::1", 443, true, "[fe80::1]", "/"),
            ),
            ("http://shop?q", ("shop", 80, false, "shop", "/?q")),
        ];
        for (url, (host, port, tls, header, path)) in table {
            let expected = (
                host.to_owned(),
                port,
                tls,
                header.to_owned(),
                path.to_owned(),
            );
            assert_eq!(parsed(url), expected, "{url}");
        }
    }

    #[test]
    fn a_url_that_nothing_can_be_sent_to_is_refused() {
        let refused = |url: &str| Parsed::new(url, None).err();
        assert_eq!(
            refused("ftp://shop"),
            Some(BadAddress::Scheme("ftp".to_owned()))
        );
        assert!(matches!(
            refused("file:///etc/passwd"),
            Some(BadAddress::NotUrl(_))
        ));
        assert!(matches!(refused("/relative"), Some(BadAddress::Scheme(_))));
        assert!(matches!(refused("shop:80"), Some(BadAddress::Scheme(_))));
        assert_eq!(
            refused("http://me:secret@shop/"),
            Some(BadAddress::Userinfo)
        );
        assert_eq!(refused("http://me@shop/"), Some(BadAddress::Userinfo));
        assert_eq!(
            refused("http://shop:0/"),
            Some(BadAddress::Port("0".to_owned()))
        );
        assert_eq!(
            refused("http://shop:65536/"),
            Some(BadAddress::Port("65536".to_owned()))
        );
        assert!(matches!(refused(""), Some(BadAddress::NotUrl(_))));
        assert!(matches!(refused("http://"), Some(BadAddress::NotUrl(_))));
        assert!(matches!(
            refused("http://sh op/"),
            Some(BadAddress::NotUrl(_))
        ));
        assert!(matches!(
            refused("http://shöp/"),
            Some(BadAddress::NotUrl(_))
        ));
        assert!(matches!(
            refused("http://shop/\r\nx: y"),
            Some(BadAddress::NotUrl(_))
        ));
        let long = format!("http://shop/{}", "x".repeat(URL_BYTES_MAX));
        assert_eq!(refused(&long), Some(BadAddress::TooLong));
        let roots = Parsed::new("https://shop", Some("nothing"));
        assert!(matches!(roots.err(), Some(BadAddress::Roots(_))));
    }
}
