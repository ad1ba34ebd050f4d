//! Names of images as people write them: `host/repository:tag`, or with a digest instead of the tag.

use super::address::{Address, is_repository, is_tag};
use crate::images::Digest;

/// An image somewhere. Where it is must be said: there is no registry that everything else is meant to be in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) base: Address,
    pub(super) repository: String,
    pub(super) version: Version,
    /// Host as it was written, with `http://` where that was.
    host: String,
}

/// Which of a repository's images.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Version {
    Tag(String),
    Digest(Digest),
}

impl Reference {
    /// Reads a reference. Without a scheme it is HTTPS, without a tag `latest`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let bad = |why: &str| format!("{text:?} {why}");
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (format!("{scheme}://"), rest),
            None => (String::new(), text),
        };
        let (host, path) = rest.split_once('/').unwrap_or_default();
        if host != "localhost" && !host.contains(['.', ':']) {
            return Err(bad("does not say in which registry it is"));
        }
        // Where Docker Hub's images are known to be is not where they are.
        let server = if host == "docker.io" {
            "registry-1.docker.io"
        } else {
            host
        };
        let base = Address::configured(&format!("{scheme}{server}"))?;
        let (repository, version) = match path.split_once('@') {
            Some((name, digest)) => {
                let digest = Digest::parse(digest).map_err(|error| bad(&error.to_string()))?;
                let (repository, _) = name.split_once(':').unwrap_or((name, ""));
                (repository, Version::Digest(digest))
            }
            None => {
                let (repository, tag) = path.split_once(':').unwrap_or((path, "latest"));
                if !is_tag(tag) {
                    return Err(bad("has a tag that cannot be one"));
                }
                (repository, Version::Tag(tag.to_owned()))
            }
        };
        if !is_repository(repository) {
            return Err(bad("has no repository that can be one"));
        }
        let host = match scheme.as_str() {
            "https://" => host.to_owned(),
            scheme => format!("{scheme}{host}"),
        };
        Ok(Self {
            base,
            repository: repository.to_owned(),
            version,
            host,
        })
    }

    /// Where it is, without a tag. Reading that again leads to the same repository.
    pub(super) fn location(&self) -> String {
        format!("{}/{}", self.host, self.repository)
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tag(tag) => f.write_str(tag),
            Self::Digest(digest) => f.write_str(digest.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_says_where_what_and_which() {
        let read = |text: &str| {
            let found = Reference::parse(text).unwrap();
            let again = Reference::parse(&found.location()).unwrap();
            assert_eq!(
                (&again.base, &again.repository),
                (&found.base, &found.repository)
            );
            format!("{} {} {}", found.base, found.repository, found.version)
        };
        assert_eq!(
            read("ghcr.io/acme/helm-runner:v1.2"),
            "https://ghcr.io acme/helm-runner v1.2"
        );
        assert_eq!(
            read("docker.io/acme/runner"),
            "https://registry-1.docker.io acme/runner latest"
        );
        assert_eq!(
            read("http://127.0.0.1:5000/runner:x"),
            "http://127.0.0.1:5000 runner x"
        );
        assert_eq!(read("localhost/runner"), "https://localhost runner latest");
        let digest = Digest::of(b"x");
        assert_eq!(
            read(&format!("https://r.example/a/b:v1@{digest}")),
            format!("https://r.example a/b {digest}")
        );
    }

    #[test]
    fn what_is_no_reference_is_refused() {
        for bad in [
            "",
            "runner",
            "acme/runner:v1",
            "ghcr.io",
            "ghcr.io/",
            "ghcr.io/A",
            "ghcr.io/a:",
            "ghcr.io/a:b:c",
            "ghcr.io/../a",
            "ghcr.io/a@sha256:00",
            "ftp://ghcr.io/a",
            "https://me:secret@ghcr.io/a",
            "ghcr.io/a?x=1",
        ] {
            assert!(Reference::parse(bad).is_err(), "{bad:?}");
        }
    }
}
