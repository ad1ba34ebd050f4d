//! The way out of a sandbox: an HTTP proxy on its loopback, served by a thread of the shim.
//!
//! ```text
//!   program ── 127.0.0.1:3128, in the sandbox's network ──> this thread, in the machine's ── by the rules ──> the world
//! ```
//! A program names where it wants to go (`CONNECT host:port`, or a plain request with an absolute `http` URL). The name is
//! resolved here, every address is shown to the same policy as those of the server's own connections, and the very address
//! that was allowed is connected to. The server's listeners are refused however they are spelled. What is refused is in the log
//! of the run, with its destination and the rule, and in the answer.
//!
//! Bounded are the connections at once, the bytes that wait in each, and the time until one stands. After that it may last as long
//! as the run: there are operations that wait for hours on one connection, and it is the run's own share that it uses up.

mod head;

pub(crate) use head::fuzzing as head_fuzzing;

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use heddle_rt::Clock;
use heddle_rt::net::dial::{Connect as _, Network, Place, Stream};
use heddle_rt::net::own::OwnListener;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use super::super::log::Log;
use super::super::mask::Masker;
use super::super::network::NetworkRules;
use super::loopback;
use head::{HEAD_BYTES_MAX, Request};

/// The port that proxies often have. In a network of one's own none is taken.
const PORT: u16 = 3128;

/// How a program is told. There is nothing that it could reach directly, so nothing is exempt.
pub(super) const VARIABLES: [(&str, &str); 6] = [
    ("HTTP_PROXY", "http://127.0.0.1:3128"),
    ("HTTPS_PROXY", "http://127.0.0.1:3128"),
    ("http_proxy", "http://127.0.0.1:3128"),
    ("https_proxy", "http://127.0.0.1:3128"),
    ("NO_PROXY", ""),
    ("no_proxy", ""),
];

/// Connections of one run at once; further ones wait to be accepted.
const CONNECTIONS_MAX: usize = 64;

/// From the first byte of a request to the end of its head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// For the name, and for all of its addresses together.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// What is still read of a refused request, so that its sender can hear why: bytes, and how long.
const DRAIN_BYTES_MAX: u64 = 64 << 10;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Waits before another connection is accepted when that failed, as it does while there are no descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

/// Opens the proxy's port in the network that this thread has just got.
pub(super) fn listen() -> Result<TcpListener, String> {
    let told = |error: io::Error| format!("cannot open the sandbox's way to the network: {error}");
    loopback::bring_up().map_err(told)?;
    bind().map_err(told)
}

#[expect(
    clippy::disallowed_methods,
    reason = "it is opened in another network than the one it is served from, before there is a runtime"
)]
fn bind() -> io::Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, PORT))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// The proxy of one run.
pub(super) struct Proxy<'a> {
    clock: Clock,
    rules: &'a Path,
    log: &'a Mutex<Log>,
    masker: Masker,
    connections: AtomicUsize,
}

/// Why a request gets no connection.
struct Refusal {
    status: &'static str,
    why: String,
}

impl Refusal {
    fn new(status: &'static str, why: impl Into<String>) -> Self {
        let why = why.into();
        Self { status, why }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let Self { status, why } = self;
        let length = why.len() + 1;
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n\
             Connection: close\r\n\r\n{why}\n"
        )
        .into_bytes()
    }
}

impl<'a> Proxy<'a> {
    pub(super) fn new(clock: Clock, rules: &'a Path, log: &'a Mutex<Log>, masker: Masker) -> Self {
        Self {
            clock,
            rules,
            log,
            masker,
            connections: AtomicUsize::new(0),
        }
    }

    /// Serves until the other end of `over` is gone.
    pub(super) fn serve(&self, listener: TcpListener, over: oneshot::Receiver<()>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(error) => return self.note(&format!("the network cannot be used: {error}")),
        };
        runtime.block_on(async {
            tokio::select! {
                () = self.accept_all(listener) => {}
                _ = over => {}
            }
        });
        // A name that is still being looked up holds nobody.
        runtime.shutdown_background();
    }

    async fn accept_all(&self, listener: TcpListener) {
        let listener = match tokio::net::TcpListener::from_std(listener) {
            Ok(listener) => listener,
            Err(error) => return self.note(&format!("the network cannot be used: {error}")),
        };
        let accepted = futures::stream::unfold(listener, |listener| async {
            let client = self.accept(&listener).await;
            Some((client, listener))
        });
        accepted
            .for_each_concurrent(CONNECTIONS_MAX, |client| self.handle(client))
            .await;
    }

    async fn accept(&self, listener: &tokio::net::TcpListener) -> TcpStream {
        loop {
            match listener.accept().await {
                Ok((client, _)) => return client,
                Err(_) => self.clock.sleep(ACCEPT_PAUSE).await,
            }
        }
    }

    async fn handle(&self, mut client: TcpStream) {
        let before = self.connections.fetch_add(1, Ordering::Relaxed);
        if before + 1 == CONNECTIONS_MAX {
            self.note(&format!(
                "{CONNECTIONS_MAX} connections are open, which is as many as there may be at once: further ones wait"
            ));
        }
        if let Err(refusal) = self.carry(&mut client).await {
            self.refuse(client, &refusal).await;
        }
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }

    /// One connection from its first byte to its last.
    async fn carry(&self, client: &mut TcpStream) -> Result<(), Refusal> {
        let heard = self.clock.timeout(HEAD_TIMEOUT, read_head(client)).await;
        let late = |_| {
            Refusal::new(
                "408 Request Timeout",
                "the head of the request did not come",
            )
        };
        let Some((head, more)) = heard.map_err(late)?? else {
            return Ok(());
        };
        let request = head::parse(&head).map_err(|why| Refusal::new("400 Bad Request", why))?;
        let mut server = self.connect(&request).await.inspect_err(|refusal| {
            let Request { host, port, .. } = &request;
            self.note(&format!(
                "connection to {host}:{port} refused: {}",
                refusal.why
            ));
        })?;
        // From here on both are each other's; who goes away takes the other along.
        let begun = match &request.forwarded {
            Some(head) => server.write_all(head).await,
            None => client.write_all(ESTABLISHED).await,
        };
        if begun.is_ok() && server.write_all(&more).await.is_ok() {
            copy_bidirectional(client, &mut server).await.ok();
        }
        Ok(())
    }

    /// Connects by the rules that are in force now.
    async fn connect(&self, request: &Request) -> Result<Box<dyn Stream>, Refusal> {
        let rules = NetworkRules::read(self.rules).map_err(|error| {
            let why = format!("the rules of the network cannot be read: {error}");
            Refusal::new("503 Service Unavailable", why)
        })?;
        let own = rules.listeners();
        let network = Network::beside(self.clock.clone(), rules.egress, own);
        let place = Place {
            host: request.host.clone(),
            port: request.port,
            tls: None,
        };
        let connected = self.clock.timeout(CONNECT_TIMEOUT, network.connect(&place));
        match connected.await {
            Ok(connected) => connected.map_err(|error| refused(&error)),
            Err(_) => Err(Refusal::new(
                "504 Gateway Timeout",
                format!("it does not answer within {} s", CONNECT_TIMEOUT.as_secs()),
            )),
        }
    }

    /// Says why, and hears out for a moment whoever is still sending: else the answer might be lost with the rest.
    async fn refuse(&self, mut client: TcpStream, refusal: &Refusal) {
        let told = async {
            client.write_all(&refusal.to_bytes()).await?;
            client.shutdown().await?;
            tokio::io::copy(&mut client.take(DRAIN_BYTES_MAX), &mut tokio::io::sink()).await
        };
        // Whoever does not listen is not owed more.
        self.clock.timeout(DRAIN_TIMEOUT, told).await.ok();
    }

    /// A line in the log of the run.
    fn note(&self, text: &str) {
        let line = self.masker.text(&format!("[heddle] {text}"));
        self.log.lock().push_line(&line);
    }
}

fn refused(error: &io::Error) -> Refusal {
    if OwnListener::is_cause_of(error) {
        return Refusal::new("403 Forbidden", "heddle itself listens there");
    }
    match error.kind() {
        io::ErrorKind::PermissionDenied => Refusal::new("403 Forbidden", error.to_string()),
        _ => Refusal::new("502 Bad Gateway", error.to_string()),
    }
}

/// The head of a request and what came behind it; nothing when nobody asks for anything.
async fn read_head(client: &mut TcpStream) -> Result<Option<(Vec<u8>, Vec<u8>)>, Refusal> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = head::end_of(&bytes) {
            let more = bytes.split_off(end);
            return Ok(Some((bytes, more)));
        }
        if bytes.len() >= HEAD_BYTES_MAX {
            let status = "431 Request Header Fields Too Large";
            let why = format!("the head of a request may have {HEAD_BYTES_MAX} bytes");
            return Err(Refusal::new(status, why));
        }
        let room = HEAD_BYTES_MAX - bytes.len();
        match client.take(room as u64).read_buf(&mut bytes).await {
            Ok(0) | Err(_) => return Ok(None),
            Ok(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
