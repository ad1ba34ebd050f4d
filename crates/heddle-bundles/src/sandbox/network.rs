//! Where runs may connect to: the server's own rules, in a file that shims read.
//!
//! A shim outlives the server that started it. It reads the file anew for each connection, so that what a restarted server is
//! told, and where that one listens, counts from then on.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use heddle_rt::net::egress::{Egress, Prefix};
use heddle_rt::net::own::OwnListeners;
use serde::Deserialize;
use serde_json::json;

use super::files::{read_bounded, write_whole};

/// Thousands of ranges of addresses.
const RULES_BYTES_MAX: u64 = 1 << 20;

/// Which connections are made for runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkRules {
    /// What counts for every connection of the server.
    pub egress: Egress,
    /// Where the server itself listens. It is never connected to.
    pub own_listeners: Vec<SocketAddr>,
}

/// The file, as it is read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    allow: Vec<String>,
    deny: Vec<String>,
    allow_loopback: bool,
    allow_private: bool,
    allow_link_local: bool,
    own_listeners: Vec<SocketAddr>,
}

impl NetworkRules {
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        let texts = |prefixes: &[Prefix]| -> Vec<String> {
            prefixes.iter().map(Prefix::to_string).collect()
        };
        let text = json!({
            "allow": texts(&self.egress.allow),
            "deny": texts(&self.egress.deny),
            "allowLoopback": self.egress.allow_loopback,
            "allowPrivate": self.egress.allow_private,
            "allowLinkLocal": self.egress.allow_link_local,
            "ownListeners": self.own_listeners,
        });
        write_whole(path, text.to_string().as_bytes())
    }

    pub(super) fn read(path: &Path) -> io::Result<Self> {
        let bytes = read_bounded(path, RULES_BYTES_MAX)?;
        let written: Written = serde_json::from_slice(&bytes)?;
        Ok(Self {
            egress: Egress {
                allow: prefixes(&written.allow)?,
                deny: prefixes(&written.deny)?,
                allow_loopback: written.allow_loopback,
                allow_private: written.allow_private,
                allow_link_local: written.allow_link_local,
            },
            own_listeners: written.own_listeners,
        })
    }

    pub(super) fn listeners(&self) -> OwnListeners {
        let own = OwnListeners::default();
        for address in &self.own_listeners {
            own.add(*address);
        }
        own
    }
}

fn prefixes(texts: &[String]) -> io::Result<Vec<Prefix>> {
    let parsed = texts.iter().map(|text| text.parse());
    parsed.collect::<Result<_, _>>().map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("network.json");
        let told = [
            NetworkRules::default(),
            NetworkRules {
                egress: Egress {
                    allow: vec!["169.254.1.0/24".parse().unwrap()],
                    deny: vec!["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()],
                    allow_loopback: false,
                    allow_private: false,
                    allow_link_local: true,
                },
                own_listeners: vec!["[::]:4334".parse().unwrap()],
            },
        ];
        for rules in told {
            rules.write(&path).unwrap();
            assert_eq!(NetworkRules::read(&path).unwrap(), rules);
        }
    }
}
