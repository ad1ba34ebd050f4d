//! Where the mesh's own heartbeats arrive: a listener on loopback that nobody else is told of.
//!
//! Deliveries reach it over the machine's network like every subscriber, by a name that this process draws, so that the
//! policy for subscribers need not let anything onto loopback. It is not one of the listeners that deliveries are led past
//! the door of, for then nothing would be delivered. Strangers who find the port are answered 404.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use heddle_mesh::HeartbeatSink;
use heddle_rt::Budget;
use heddle_rt::net::dial::Internal;
use heddle_rt::net::{self, Door, Listener};
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use tower::Service;

use crate::wire::World;

/// Connections to the sink. The mesh makes fewer than this attempts at heartbeats at once.
const CONNECTIONS_MAX: usize = 32;
/// Bytes of chance in the name.
const NAME_BYTES: usize = 16;
/// Whoever is still being answered when the process ends is the process itself.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(100);

/// A bound port that nobody serves yet, and its name.
pub(crate) struct BoundSink {
    pub(crate) listener: Listener,
    host: String,
}

pub(crate) async fn bind(world: &World) -> anyhow::Result<BoundSink> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = net::bind(address).await;
    Ok(BoundSink {
        listener: listener.context("cannot listen on loopback for heartbeats")?,
        // No name server knows anything below it.
        host: format!("{}.invalid", world.chance.token(NAME_BYTES)),
    })
}

impl BoundSink {
    pub(crate) fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    pub(crate) fn internal(&self) -> Internal {
        Internal {
            host: self.host.clone(),
            address: self.address(),
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.host)
    }

    /// The service behind the listener.
    pub(crate) fn sink(
        &self,
        sink: HeartbeatSink,
    ) -> impl Service<
        Request<Incoming>,
        Response = Response<Full<Bytes>>,
        Error = Infallible,
        Future: Send,
    > + Clone
    + Send
    + Sync
    + use<> {
        tower::service_fn(move |request: Request<Incoming>| {
            let sink = sink.clone();
            async move { Ok::<_, Infallible>(sink.handle(request).await) }
        })
    }

    pub(crate) fn door(&self, world: &World, budget: &Budget) -> Door {
        Door {
            clock: world.clock.clone(),
            tls: None,
            plain_on_loopback: true,
            limits: net::Limits {
                connections_max: CONNECTIONS_MAX,
                address_connections_max: CONNECTIONS_MAX,
                resting_max: CONNECTIONS_MAX,
                drain_timeout: DRAIN_TIMEOUT,
                ..net::Limits::default()
            },
            budget: budget.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
