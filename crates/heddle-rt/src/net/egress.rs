//! Where heddle may connect to, whatever a URL or a name server says.
//!
//! Heddle stands where its users often cannot: next to the services of a cluster and to the address at which a cloud hands
//! out credentials. A user who names a destination must not borrow that place. The policy judges addresses, never
//! names, because a name means what its owner wants it to mean at the moment of the question. Which addresses a name has,
//! and that the judged one is the one connected to, is left to [`dial`](super::dial).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

mod prefix;

pub use prefix::{NoPrefix, Prefix};

/// Which addresses are allowed. An address that `allow` or `deny` name is what the longer prefix says, and denied by two of
/// the same length; all others go by their sort, of which public ones are allowed. Those nobody can connect to never are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Egress {
    pub allow: Vec<Prefix>,
    pub deny: Vec<Prefix>,
    /// This machine. A single binary on a laptop delivers to its neighbours there.
    pub allow_loopback: bool,
    /// Private and shared networks, unique local addresses: inside a cluster every subscriber has one.
    pub allow_private: bool,
    /// Link-local addresses, and the well-known ones at which clouds serve metadata and credentials.
    pub allow_link_local: bool,
}

impl Default for Egress {
    fn default() -> Self {
        Self {
            allow: Vec::new(),
            deny: Vec::new(),
            allow_loopback: true,
            allow_private: true,
            allow_link_local: false,
        }
    }
}

/// The address is outside of what the policy allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("connections to {address}, {sort}, are not allowed{}", rule_in_words(.denied_by, .sort))]
pub struct Denied {
    pub address: IpAddr,
    pub sort: Sort,
    /// The range that forbids it; without one it is forbidden for its sort.
    pub denied_by: Option<Prefix>,
}

fn rule_in_words(denied_by: &Option<Prefix>, sort: &Sort) -> String {
    match denied_by {
        Some(prefix) => format!(" by egressDeny {prefix}"),
        None if *sort == Sort::Unusable => String::new(),
        None => " unless egressAllow has it".to_owned(),
    }
}

/// What an address is, as far as the policy cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    Public,
    Loopback,
    Private,
    LinkLocal,
    Metadata,
    /// Unspecified, multicast, broadcast or reserved: nobody's address.
    Unusable,
}

impl std::fmt::Display for Sort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Public => "a public address",
            Self::Loopback => "a loopback address",
            Self::Private => "a private address",
            Self::LinkLocal => "a link-local address",
            Self::Metadata => "an address of cloud metadata",
            Self::Unusable => "an address that belongs to nobody",
        })
    }
}

impl Egress {
    /// Everything that has an owner. For tests and closed networks.
    pub const ANYWHERE: Self = Self {
        allow: Vec::new(),
        deny: Vec::new(),
        allow_loopback: true,
        allow_private: true,
        allow_link_local: true,
    };

    /// Whether a connection to `address` is allowed.
    pub fn check(&self, address: IpAddr) -> Result<(), Denied> {
        let sort = sort(address);
        let by_sort = match sort {
            Sort::Public => true,
            Sort::Loopback => self.allow_loopback,
            Sort::Private => self.allow_private,
            Sort::LinkLocal | Sort::Metadata => self.allow_link_local,
            Sort::Unusable => false,
        };
        let (allow, deny) = (longest(&self.allow, address), longest(&self.deny, address));
        let allowed = match (allow, deny) {
            _ if sort == Sort::Unusable => false,
            (None, None) => by_sort,
            (allow, deny) => allow.map(Prefix::length) > deny.map(Prefix::length),
        };
        if allowed {
            return Ok(());
        }
        Err(Denied {
            address,
            sort,
            denied_by: deny.copied(),
        })
    }
}

/// The longest prefix that an address begins with.
fn longest(prefixes: &[Prefix], address: IpAddr) -> Option<&Prefix> {
    let address = match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => wrapped(v6).map_or(address, IpAddr::V4),
    };
    let own = prefixes.iter().filter(|prefix| prefix.holds(address));
    own.max_by_key(|prefix| prefix.length())
}

/// The sort of an address. One that only wraps an IPv4 address is what it wraps.
#[must_use]
pub fn sort(address: IpAddr) -> Sort {
    match address {
        IpAddr::V4(v4) => sort_v4(v4),
        IpAddr::V6(v6) => wrapped(v6).map_or_else(|| sort_v6(v6), sort_v4),
    }
}

/// Where clouds serve metadata beside 169.254.169.254: AWS tasks, Alibaba, Azure, Oracle.
const METADATA_V4: [Ipv4Addr; 5] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(192, 0, 0, 192),
];

/// The same over IPv6: AWS instances, AWS pods, Google.
const METADATA_V6: [Ipv6Addr; 3] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
];

fn sort_v4(v4: Ipv4Addr) -> Sort {
    let [a, b, ..] = v4.octets();
    if METADATA_V4.contains(&v4) {
        Sort::Metadata
    } else if v4.is_loopback() {
        Sort::Loopback
    } else if v4.is_link_local() {
        Sort::LinkLocal
    } else if a == 0 || a >= 224 {
        // All of 0/8 is "this host", which Linux takes for loopback; from 224 on multicast, reserved and broadcast.
        Sort::Unusable
    } else if v4.is_private() || (a == 100 && (64..128).contains(&b)) {
        Sort::Private
    } else {
        Sort::Public
    }
}

fn sort_v6(v6: Ipv6Addr) -> Sort {
    let first = v6.segments()[0];
    if METADATA_V6.contains(&v6) {
        Sort::Metadata
    } else if v6.is_loopback() {
        Sort::Loopback
    } else if v6.is_unspecified() || v6.is_multicast() {
        Sort::Unusable
    } else if v6.is_unicast_link_local() {
        Sort::LinkLocal
    } else if v6.is_unique_local() || first & 0xffc0 == 0xfec0 {
        // fec0::/10 is the old site-local range.
        Sort::Private
    } else {
        Sort::Public
    }
}

/// The IPv4 address inside a mapped, compatible, NAT64 (well-known and local-use) or 6to4 address.
fn wrapped(v6: Ipv6Addr) -> Option<Ipv4Addr> {
    let from = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match v6.segments() {
        // :: and ::1 are addresses of their own.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0 | 1, _, _, _, high, low]
        | [0x2002, high, low, ..] => Some(from(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
