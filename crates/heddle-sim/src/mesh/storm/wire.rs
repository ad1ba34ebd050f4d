//! Lines over the simulated network, as the courier sees them.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use heddle_rt::net::dial::{Connect, Connecting, Place, Stream};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use turmoil::net::TcpStream;

/// The life of the process that opened each line, by the line's near end. What is under way when a process dies arrives
/// after it, and must not be taken for something that the next one sent.
pub(super) type Lines = Arc<Mutex<BTreeMap<SocketAddr, u64>>>;

/// The network of one life of the process.
#[derive(Debug)]
pub(super) struct Wires {
    pub(super) lines: Lines,
    pub(super) life: u64,
}

impl Connect for Wires {
    fn connect(&self, place: &Place) -> Connecting {
        let (lines, life) = (Arc::clone(&self.lines), self.life);
        let (host, port) = (place.host.clone(), place.port);
        Box::pin(async move {
            let stream = TcpStream::connect((host, port)).await?;
            lines.lock().insert(stream.local_addr()?, life);
            Ok(Box::new(Wire(stream)) as Box<dyn Stream>)
        })
    }
}

#[derive(Debug)]
struct Wire(TcpStream);

impl Stream for Wire {}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Lines that rest say goodbye when they are dropped, which for the last ones is when the network is gone.
        if turmoil::in_simulation() {
            Pin::new(&mut self.0).poll_shutdown(cx)
        } else {
            Poll::Ready(Ok(()))
        }
    }
}
