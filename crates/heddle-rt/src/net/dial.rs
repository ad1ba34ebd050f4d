//! Going out: how a connection to somebody else's server is made.
//!
//! [`Network`] asks for the addresses of a name, shows each to the [`Egress`] policy and connects to the very address that
//! was allowed, so that a name which changes its mind between the question and the connection gains nothing. A listener of
//! this process is not connected to: the error says so ([`OwnListener`](super::own::OwnListener)), and the caller, who
//! stands on both sides of that door, decides what to do. One address of this process may have a name of its own
//! ([`Internal`]), which no policy is asked about and nobody outside can know. TLS is verified against the name in the URL. A simulation puts its own [`Connect`] in place.
//! What is said on the connection, and how long all of this may take, is left to the caller.

use std::fmt::Debug;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::egress::Egress;
use super::own::OwnListeners;
use super::rustls;
use super::trust::{Roots, Trust};
use crate::Clock;
use crate::vfs::is_exhausted;

/// How long an address may keep us when the name has more of them. The last one has all the time that is left.
const ADDRESS_PATIENCE: Duration = Duration::from_secs(2);

/// Where to connect to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// A name, or an address without brackets.
    pub host: String,
    pub port: u16,
    /// The roots that count beside the system's; `None` speaks without TLS.
    pub tls: Option<Roots>,
}

/// What both sides agreed to speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Http1,
    Http2,
}

/// An open connection.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {
    /// HTTP/1 unless the handshake said otherwise.
    fn protocol(&self) -> Protocol {
        Protocol::Http1
    }
}

impl Stream for TcpStream {}

/// A pipe in memory, which is what simulated networks are made of.
impl Stream for DuplexStream {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for TlsStream<S> {
    fn protocol(&self) -> Protocol {
        match self.get_ref().1.alpn_protocol() {
            Some(b"h2") => Protocol::Http2,
            _ => Protocol::Http1,
        }
    }
}

/// A connection that is being made.
pub type Connecting = Pin<Box<dyn Future<Output = io::Result<Box<dyn Stream>>> + Send>>;

/// Makes connections: over the machine's network, or a simulated one.
pub trait Connect: Send + Sync + Debug {
    fn connect(&self, place: &Place) -> Connecting;

    /// Begins TLS with `place` on a connection to it that is open already, for protocols that agree on it in plain words.
    /// Networks in memory have none.
    fn secure(&self, place: &Place, stream: Box<dyn Stream>) -> Connecting {
        drop(stream);
        let text = format!("there is no TLS with {} on this network", place.host);
        Box::pin(async { Err(io::Error::new(io::ErrorKind::Unsupported, text)) })
    }
}

/// The addresses of a name, being asked for.
pub type Resolving = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;

/// Knows the addresses of names. Every answer is checked by the policy, so it need not be trusted.
pub trait Resolve: Send + Sync + Debug {
    fn resolve(&self, host: &str, port: u16) -> Resolving;
}

/// An address of this process under a name that is a secret of it. Whoever knows the name connects there whatever the
/// policy says of the address; under any other name of the address the policy decides as always.
#[derive(Clone, Debug)]
pub struct Internal {
    pub host: String,
    pub address: SocketAddr,
}

/// The machine's network.
#[derive(Clone, Debug)]
pub struct Network {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    clock: Clock,
    egress: Egress,
    own: OwnListeners,
    internal: Option<Internal>,
    resolve: Box<dyn Resolve>,
    trust: Trust,
}

impl Network {
    /// Asks the system's resolver.
    #[must_use]
    pub fn new(clock: Clock, egress: Egress) -> Self {
        Self::resolving(clock, egress, Box::new(SystemResolver))
    }

    /// Asks `resolve` instead.
    #[must_use]
    pub fn resolving(clock: Clock, egress: Egress, resolve: Box<dyn Resolve>) -> Self {
        let own = OwnListeners::default();
        Self::with(Inner::new(clock, egress, own, resolve))
    }

    /// Asks the system's resolver, and tells apart what leads to one of `own`.
    #[must_use]
    pub fn beside(clock: Clock, egress: Egress, own: OwnListeners) -> Self {
        Self::with(Inner::new(clock, egress, own, Box::new(SystemResolver)))
    }

    /// The same, and one address under a name of its own.
    #[must_use]
    pub fn beside_and_within(
        clock: Clock,
        egress: Egress,
        own: OwnListeners,
        internal: Internal,
    ) -> Self {
        Self::with(Inner {
            internal: Some(internal),
            ..Inner::new(clock, egress, own, Box::new(SystemResolver))
        })
    }

    /// Goes anywhere, and has every certificate verified on every connection: a session that is taken up again would hide one
    /// that has expired since.
    #[must_use]
    pub fn verifying_always(clock: Clock) -> Self {
        let own = OwnListeners::default();
        let mut inner = Inner::new(clock, Egress::ANYWHERE, own, Box::new(SystemResolver));
        inner.trust.always_verified = true;
        Self::with(inner)
    }

    fn with(inner: Inner) -> Self {
        let inner = Arc::new(inner);
        Self { inner }
    }
}

impl Connect for Network {
    fn connect(&self, place: &Place) -> Connecting {
        let (inner, place) = (self.inner.clone(), place.clone());
        Box::pin(async move { inner.connect(&place).await })
    }

    fn secure(&self, place: &Place, stream: Box<dyn Stream>) -> Connecting {
        let (inner, place) = (self.inner.clone(), place.clone());
        Box::pin(async move {
            let roots = place.tls.clone().unwrap_or_default();
            inner.secure(&place, &roots, stream).await
        })
    }
}

impl Inner {
    fn new(clock: Clock, egress: Egress, own: OwnListeners, resolve: Box<dyn Resolve>) -> Self {
        Self {
            clock,
            egress,
            own,
            internal: None,
            resolve,
            trust: Trust::default(),
        }
    }

    async fn connect(&self, place: &Place) -> io::Result<Box<dyn Stream>> {
        let addresses = self.allowed(place).await?;
        let stream = self.reach(&addresses).await?;
        // Deliveries are written whole: waiting for more to fill a packet only delays them.
        stream.set_nodelay(true)?;
        let Some(roots) = &place.tls else {
            return Ok(Box::new(stream));
        };
        self.secure(place, roots, stream).await
    }

    async fn secure<S>(
        &self,
        place: &Place,
        roots: &Roots,
        stream: S,
    ) -> io::Result<Box<dyn Stream>>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let name = ServerName::try_from(place.host.clone())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let config = self.trust.client(roots).await?;
        let secured = TlsConnector::from(config).connect(name, stream).await?;
        Ok(Box::new(secured))
    }

    /// The addresses of a place that the policy allows; an error when there are none.
    async fn allowed(&self, place: &Place) -> io::Result<Vec<SocketAddr>> {
        let internal = self.internal.as_ref();
        if let Some(internal) = internal.filter(|internal| internal.host == place.host) {
            return Ok(vec![internal.address]);
        }
        let mut addresses = self.addresses(place).await?;
        let mut denied = None;
        addresses.retain(|address| match self.egress.check(address.ip()) {
            Ok(()) => true,
            Err(denial) => {
                denied = Some(denial);
                false
            }
        });
        match denied {
            _ if !addresses.is_empty() => Ok(addresses),
            Some(denial) => Err(io::Error::new(io::ErrorKind::PermissionDenied, denial)),
            None => {
                let text = format!("{} has no address", place.host);
                Err(io::Error::new(io::ErrorKind::NotFound, text))
            }
        }
    }

    async fn addresses(&self, place: &Place) -> io::Result<Vec<SocketAddr>> {
        let resolved = self.resolve.resolve(&place.host, place.port).await;
        resolved.map_err(|error| {
            if is_exhausted(&error) {
                return error;
            }
            io::Error::new(
                error.kind(),
                format!("cannot resolve {}: {error}", place.host),
            )
        })
    }

    /// Connects to the first address that answers.
    async fn reach(&self, addresses: &[SocketAddr]) -> io::Result<TcpStream> {
        let mut failure = None;
        for (index, address) in addresses.iter().enumerate() {
            self.own.check(*address)?;
            let connecting = super::connect(*address);
            let connected = if index + 1 == addresses.len() {
                connecting.await
            } else {
                let patience = self.clock.timeout(ADDRESS_PATIENCE, connecting).await;
                patience.unwrap_or_else(|late| Err(io::Error::new(io::ErrorKind::TimedOut, late)))
            };
            match connected {
                Ok(stream) => return Ok(stream),
                // No address would do better, and whoever called tells it apart from what a destination did.
                Err(error) if is_exhausted(&error) => return Err(error),
                Err(error) => {
                    let text = format!("cannot connect to {address}: {error}");
                    failure = Some(io::Error::new(error.kind(), text));
                }
            }
        }
        Err(failure.expect("there is at least one address"))
    }
}

/// What the operating system answers, from its files and its name servers.
#[derive(Debug)]
struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, host: &str, port: u16) -> Resolving {
        let host = host.to_owned();
        Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
    }
}

#[cfg(test)]
mod tests;
