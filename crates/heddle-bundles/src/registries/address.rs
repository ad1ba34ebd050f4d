//! Addresses of registries: which server, which path, and nothing else that a URL could hide.

use std::fmt;

use heddle_rt::net::dial::Place;
use heddle_rt::net::trust::Roots;
use http::Uri;

/// A server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Origin {
    pub(super) tls: bool,
    pub(super) host: String,
    pub(super) port: u16,
}

impl Origin {
    /// As it stands in a `Host` header.
    pub(super) fn authority(&self) -> String {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        match (self.tls, self.port) {
            (true, 443) | (false, 80) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }

    /// Whether it is an address of this machine, which no name server decides.
    pub(super) fn is_loopback(&self) -> bool {
        let address = self.host.parse::<std::net::IpAddr>();
        self.host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }

    /// Where to connect to; `unverified` only for a registry whose settings say so.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where a registry's skipVerifyTLS takes effect"
    )]
    pub(super) fn place(&self, unverified: bool) -> Place {
        let roots = || {
            if unverified {
                Roots::unverified()
            } else {
                Roots::default()
            }
        };
        Place {
            host: self.host.clone(),
            port: self.port,
            tls: self.tls.then(roots),
        }
    }
}

/// A place on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) origin: Origin,
    /// Path and query; begins with a slash.
    pub(super) path: String,
}

/// The host without the brackets of IPv6. What could be neither a name nor an address is refused: shown again, it would be read
/// as something else.
fn host(text: &str) -> Result<&str, &'static str> {
    let bracketed = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    let is_name = |text: &str| {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        text.bytes().all(letter)
    };
    match bracketed {
        Some(address) if address.parse::<std::net::Ipv6Addr>().is_ok() => Ok(address),
        None if text.is_empty() => Err("names no host"),
        None if is_name(text) => Ok(text),
        _ => Err("names no host that could exist"),
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.origin.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.origin.authority(), self.path)
    }
}

impl Address {
    /// Reads the address that somebody configured. Without a scheme it is HTTPS; a slash at the end does not count.
    pub(super) fn configured(text: &str) -> Result<Self, String> {
        let whole = if text.contains("://") {
            text.to_owned()
        } else {
            format!("https://{text}")
        };
        let mut address = Self::absolute(&whole).map_err(|why| format!("url {text:?} {why}"))?;
        if address.path.contains('?') {
            return Err(format!("url {text:?} has a query"));
        }
        let path = address.path.trim_end_matches('/').len();
        address.path.truncate(path);
        Ok(address)
    }

    fn absolute(text: &str) -> Result<Self, String> {
        let uri: Uri = text
            .parse()
            .map_err(|error| format!("is not a URL: {error}"))?;
        let tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err("is neither http nor https".to_owned()),
        };
        let authority = uri.authority().ok_or("names no host")?;
        if authority.as_str().contains('@') {
            return Err("holds credentials; put them into the secret".to_owned());
        }
        let host = host(authority.host())?.to_ascii_lowercase();
        let port = authority.port_u16().unwrap_or(if tls { 443 } else { 80 });
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        Ok(Self {
            origin: Origin { tls, host, port },
            path: path.to_owned(),
        })
    }

    /// A place below this one. `path` begins with a slash.
    pub(super) fn below(&self, path: &str) -> Self {
        Self {
            origin: self.origin.clone(),
            path: format!("{}{path}", self.path),
        }
    }

    /// Where a link that was found here leads to: whole, or a path on the same server.
    pub(super) fn follow(&self, link: &str) -> Result<Self, String> {
        if link.contains("://") {
            return Self::absolute(link).map_err(|why| format!("{link:?} {why}"));
        }
        let base = format!(
            "{}://{}",
            if self.origin.tls { "https" } else { "http" },
            self.origin.authority()
        );
        let path = if link.starts_with('/') && !link.starts_with("//") {
            link.to_owned()
        } else if link.starts_with('?') {
            let path = self.path.split('?').next().unwrap_or_default();
            format!("{path}{link}")
        } else {
            return Err(format!("{link:?} is not a link that can be followed"));
        };
        Self::absolute(&format!("{base}{path}")).map_err(|why| format!("{link:?} {why}"))
    }

    /// With one more parameter in the query, encoded.
    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        let pair: String = form_urlencoded::Serializer::new(String::new())
            .append_pair(name, value)
            .finish();
        self.path
            .push(if self.path.contains('?') { '&' } else { '?' });
        self.path.push_str(&pair);
        self
    }
}

/// Whether text can be the name of a repository. Names come from strangers and become parts of paths.
pub(super) fn is_repository(name: &str) -> bool {
    let part = |part: &str| {
        let word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let inner = |byte: u8| word(byte) || matches!(byte, b'.' | b'_' | b'-');
        !part.is_empty()
            && part.bytes().all(inner)
            && part.bytes().next().is_some_and(word)
            && part.bytes().last().is_some_and(word)
            && !part.contains("..")
    };
    name.len() <= 255 && name.split('/').all(part)
}

/// Whether text can be a tag.
pub(super) fn is_tag(tag: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=128).contains(&tag.len())
        && tag
            .bytes()
            .all(|byte| word(byte) || matches!(byte, b'.' | b'-'))
        && tag.bytes().next().is_some_and(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_people_write_them() {
        let read = |text: &str| Address::configured(text).map(|address| address.to_string());
        assert_eq!(read("quay.io").unwrap(), "https://quay.io");
        assert_eq!(
            read("http://127.0.0.1:5000/").unwrap(),
            "http://127.0.0.1:5000"
        );
        assert_eq!(
            read("https://Host/prefix//").unwrap(),
            "https://host/prefix"
        );
        assert_eq!(read("http://[::1]:5000").unwrap(), "http://[::1]:5000");
        for bad in [
            "ftp://x",
            "https://me:secret@x",
            "https://",
            "a b",
            "https://x/?q=1",
            "~[r]",
            "https://[::1",
            "https://[x]",
        ] {
            let refused = read(bad).unwrap_err();
            assert!(
                !refused.contains("is not a URL")
                    || ["a b", "https://", "https://[::1"].contains(&bad),
                "{refused}"
            );
        }
    }

    #[test]
    fn links_lead_to_the_same_server_or_say_another() {
        let here = Address::configured("https://host/base")
            .unwrap()
            .below("/v2/_catalog?n=1");
        let follow = |link: &str| here.follow(link).map(|address| address.to_string());
        assert_eq!(
            follow("/v2/_catalog?n=1&last=a").unwrap(),
            "https://host/v2/_catalog?n=1&last=a"
        );
        assert_eq!(
            follow("?last=a").unwrap(),
            "https://host/base/v2/_catalog?last=a"
        );
        assert_eq!(follow("https://other:1/x").unwrap(), "https://other:1/x");
        for bad in ["//other/x", "x", "", "javascript:alert(1)", "ftp://x/"] {
            assert!(follow(bad).is_err(), "{bad}");
        }
        assert_eq!(
            here.clone().with("last", "a/b&c").path,
            "/base/v2/_catalog?n=1&last=a%2Fb%26c"
        );
    }

    #[test]
    fn only_this_machine_is_loopback() {
        let is = |text: &str| Address::configured(text).unwrap().origin.is_loopback();
        assert!(is("http://127.0.0.1:5000") && is("http://[::1]") && is("http://localhost:1"));
        for other in [
            "http://127.0.0.1.example",
            "http://localhost.example",
            "http://10.0.0.1",
        ] {
            assert!(!is(other), "{other}");
        }
    }

    #[test]
    fn names_cannot_be_paths_to_elsewhere() {
        for good in ["a", "org/hello-apb", "a/b/c", "a__b", "a.b", "a--b"] {
            assert!(is_repository(good), "{good}");
        }
        for bad in [
            "", "/a", "a/", "a//b", "../a", "a/..", "A", "a b", "a?b", "a%2fb", "a..b", ".a", "a-",
        ] {
            assert!(!is_repository(bad), "{bad}");
        }
        assert!(is_tag("v1.0") && is_tag("_x") && is_tag("latest"));
        assert!(
            !is_tag("")
                && !is_tag(".x")
                && !is_tag("a/b")
                && !is_tag("a b")
                && !is_tag(&"x".repeat(129))
        );
    }
}
