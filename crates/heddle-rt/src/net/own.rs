//! The listeners of this process, recognised by where a connection would end up and not by how that was written.
//!
//! `localhost`, `127.1`, `::ffff:127.0.0.1` and whatever a name server invents all end in an address and a port. A
//! listener on every address of the machine is reached by each of them, so an address is also looked up among the
//! machine's own. What lies behind a forwarder or a NAT is somebody else's address and is not recognised here.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

use parking_lot::RwLock;

/// Addresses for documentation (RFC 5737, RFC 3849), which no machine has.
const NOBODY_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const NOBODY_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));

/// The listeners that are open. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct OwnListeners {
    bound: Arc<RwLock<Vec<SocketAddr>>>,
}

/// The connection would have led to a listener of this process. Nothing was connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is a listener of this process")]
pub struct OwnListener(pub SocketAddr);

impl OwnListener {
    /// Whether this is why a connection was not made.
    #[must_use]
    pub fn is_cause_of(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|cause| cause.is::<Self>())
    }
}

impl From<OwnListener> for io::Error {
    fn from(own: OwnListener) -> Self {
        Self::other(own)
    }
}

impl OwnListeners {
    /// A listener is open at this address, as the system told it.
    pub fn add(&self, bound: SocketAddr) {
        self.bound.write().push(bound);
    }

    /// Fails for an address at which one of these listens.
    pub fn check(&self, address: SocketAddr) -> Result<(), OwnListener> {
        let mine = |bound: &SocketAddr| {
            bound.port() == address.port() && listens(bound.ip(), address.ip().to_canonical())
        };
        if self.bound.read().iter().any(mine) {
            return Err(OwnListener(address));
        }
        Ok(())
    }
}

/// Whether what is bound to one address is reached by another.
fn listens(bound: IpAddr, address: IpAddr) -> bool {
    if !bound.is_unspecified() {
        return bound.to_canonical() == address;
    }
    // The IPv4 wildcard hears IPv4 only; the IPv6 one usually both.
    (bound.is_ipv6() || address.is_ipv4()) && is_of_this_machine(address)
}

/// Whether an address is one of this machine's: then, and only then, a socket can be bound to it. Where the system lets
/// anything be bound (`ip_nonlocal_bind`), what counts is that packets to it would come from it.
fn is_of_this_machine(address: IpAddr) -> bool {
    if address.is_loopback() || address.is_unspecified() {
        return true;
    }
    let nobody = match address {
        IpAddr::V4(_) => NOBODY_V4,
        IpAddr::V6(_) => NOBODY_V6,
    };
    if can_bind(nobody) {
        return routes_to_itself(address).unwrap_or(false);
    }
    can_bind(address)
}

fn can_bind(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

/// Asks the routing table; nothing is sent.
fn routes_to_itself(address: IpAddr) -> io::Result<bool> {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect((address, 9))?;
    Ok(socket.local_addr()?.ip() == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(bound: &[&str]) -> OwnListeners {
        let own = OwnListeners::default();
        for bound in bound {
            own.add(bound.parse().unwrap());
        }
        own
    }

    #[test]
    fn a_listener_is_its_address_and_port_and_nothing_else() {
        let own = own(&["127.0.0.1:4334", "[::1]:4335"]);
        let table = [
            ("127.0.0.1:4334", true),
            ("[::ffff:127.0.0.1]:4334", true),
            ("[::1]:4335", true),
            ("127.0.0.1:4335", false),
            ("127.0.0.2:4334", false),
            ("[::1]:4334", false),
            ("192.0.2.1:4334", false),
        ];
        for (address, mine) in table {
            let address: SocketAddr = address.parse().unwrap();
            assert_eq!(own.check(address).is_err(), mine, "{address}");
        }
    }

    #[test]
    fn a_listener_on_every_address_is_reached_by_each_of_this_machine() {
        let (v4, both) = (own(&["0.0.0.0:80"]), own(&["[::]:80"]));
        let table = [
            ("127.0.0.1:80", true, true),
            ("127.9.9.9:80", true, true),
            ("0.0.0.0:80", true, true),
            ("[::ffff:127.0.0.1]:80", true, true),
            ("[::1]:80", false, true),
            ("127.0.0.1:81", false, false),
            ("192.0.2.1:80", false, false),
            ("[2001:db8::1]:80", false, false),
        ];
        for (address, by_v4, by_both) in table {
            let address: SocketAddr = address.parse().unwrap();
            assert_eq!(v4.check(address).is_err(), by_v4, "{address}");
            assert_eq!(both.check(address).is_err(), by_both, "{address}");
        }
    }

    #[test]
    fn what_packets_would_not_leave_the_machine_for_is_this_machine() {
        assert!(routes_to_itself(Ipv4Addr::LOCALHOST.into()).unwrap());
        assert!(is_of_this_machine(Ipv4Addr::LOCALHOST.into()));
    }
}
