//! A server that answers whatever bytes a test wants, well-formed or not.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use heddle_rt::net::{Listener, bind};
use heddle_rt::{OnError, Tasks};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

/// What to do about a request.
#[derive(Clone, Debug)]
pub(super) enum Act {
    /// Say these bytes and wait for the next request.
    Say(Vec<u8>),
    /// Say these bytes and close the connection.
    SayAndClose(Vec<u8>),
    /// Say the first bytes, then the second again and again until nobody listens.
    Repeat(Vec<u8>, Vec<u8>),
    /// Say these bytes and never anything again.
    Hang(Vec<u8>),
}

impl Act {
    pub(super) fn say(text: &str) -> Self {
        Self::Say(text.as_bytes().to_vec())
    }

    pub(super) fn say_and_close(text: &str) -> Self {
        Self::SayAndClose(text.as_bytes().to_vec())
    }

    pub(super) fn repeat(first: &str, then: &str) -> Self {
        Self::Repeat(first.as_bytes().to_vec(), then.as_bytes().to_vec())
    }

    pub(super) fn hang(text: &str) -> Self {
        Self::Hang(text.as_bytes().to_vec())
    }
}

/// A request as it came: which one on which connection, counted from one, and its text.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) connection: usize,
    pub(super) request: usize,
    pub(super) text: String,
}

type Script = dyn Fn(&Asked) -> Act + Send + Sync;

#[derive(Debug)]
pub(super) struct Server {
    address: SocketAddr,
    seen: Arc<Seen>,
    tasks: Tasks,
}

#[derive(Debug, Default)]
struct Seen {
    connections: AtomicUsize,
    requests: Mutex<Vec<Asked>>,
    /// Cancelled when a connection that hung was let go of by the other side.
    let_go: CancellationToken,
}

impl Server {
    pub(super) async fn start(script: impl Fn(&Asked) -> Act + Send + Sync + 'static) -> Self {
        let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let (seen, tasks) = (Arc::new(Seen::default()), Tasks::new("server"));
        let address = listener.address();
        let accepting = accept(listener, seen.clone(), tasks.clone(), Arc::new(script));
        tasks.spawn("accept", OnError::Report, accepting);
        Self {
            address,
            seen,
            tasks,
        }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/in?key=k", self.address)
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::Relaxed)
    }

    pub(super) fn requests(&self) -> Vec<Asked> {
        self.seen.requests.lock().clone()
    }

    /// Waits until a connection that was kept hanging has been closed by the other side.
    pub(super) async fn let_go(&self) {
        self.seen.let_go.cancelled().await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

async fn accept(listener: Listener, seen: Arc<Seen>, tasks: Tasks, script: Arc<Script>) {
    while let Ok(stream) = listener.accept().await {
        let connection = seen.connections.fetch_add(1, Ordering::Relaxed) + 1;
        let serving = serve(stream, connection, seen.clone(), script.clone());
        tasks.spawn("serve", OnError::Report, async move {
            // Whoever hangs up early has seen enough.
            let _ended: std::io::Result<()> = serving.await;
        });
    }
}

async fn serve(
    mut stream: TcpStream,
    connection: usize,
    seen: Arc<Seen>,
    script: Arc<Script>,
) -> std::io::Result<()> {
    for request in 1.. {
        let Some(text) = read_request(&mut stream).await? else {
            return Ok(());
        };
        let asked = Asked {
            connection,
            request,
            text,
        };
        let act = script(&asked);
        seen.requests.lock().push(asked);
        match act {
            Act::Say(bytes) => stream.write_all(&bytes).await?,
            Act::SayAndClose(bytes) => {
                stream.write_all(&bytes).await?;
                return stream.shutdown().await;
            }
            Act::Repeat(first, then) => {
                stream.write_all(&first).await?;
                loop {
                    stream.write_all(&then).await?;
                    tokio::task::yield_now().await;
                }
            }
            Act::Hang(bytes) => {
                stream.write_all(&bytes).await?;
                let mut more = [0; 64];
                while matches!(stream.read(&mut more).await, Ok(count) if count > 0) {}
                seen.let_go.cancel();
                return Ok(());
            }
        }
    }
    Ok(())
}

/// One request with its body; `None` when there is no more.
async fn read_request(stream: &mut TcpStream) -> std::io::Result<Option<String>> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let mut lines = head.lines();
            let length = lines.find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return Ok(Some(text));
            }
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    }
}
