//! One HTTP/1.1 connection, written by hand: what a test sends is what goes over the wire.

use std::io;
use std::net::SocketAddr;

use heddle_rt::net;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A head or a body longer than this is nothing a test asked for.
const MESSAGE_BYTES_MAX: usize = 32 << 20;

/// A head with its body, as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// The request line or the status line.
    pub(crate) first: String,
    /// In their order, names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Message {
    /// The only header of this name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known == name);
        let (_, value) = found.next()?;
        assert!(found.next().is_none(), "{name} is there twice: {self:?}");
        Some(value)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The status of a response.
    pub(crate) fn status(&self) -> u16 {
        let status = self.first.split(' ').nth(1);
        status.and_then(|status| status.parse().ok()).unwrap()
    }

    /// The path of a request.
    pub(crate) fn path(&self) -> &str {
        self.first.split(' ').nth(1).unwrap()
    }
}

/// A connection to a server, opened when it is first needed and kept.
#[derive(Debug)]
pub(crate) struct Wire {
    address: SocketAddr,
    stream: Option<TcpStream>,
}

impl Wire {
    /// To `http://ADDRESS`.
    pub(crate) fn to(url: &str) -> Self {
        let address = url.strip_prefix("http://").unwrap();
        Self {
            address: address.parse().unwrap(),
            stream: None,
        }
    }

    /// One request and its answer. After an error the connection is a new one.
    pub(crate) async fn ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Message> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => net::connect(self.address).await?,
        };
        let mut request = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\n", self.address);
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
        let mut request = request.into_bytes();
        request.extend_from_slice(body);
        // Who is answered before everything was sent finds the connection closed in the middle, and the answer in it.
        let sent = stream.write_all(&request).await;
        let answer = match (read(&mut stream).await, sent) {
            (Ok(Some(answer)), _) => answer,
            (_, Err(error)) | (Err(error), _) => return Err(error),
            (Ok(None), Ok(())) => return Err(io::ErrorKind::UnexpectedEof.into()),
        };
        if answer.header("connection") != Some("close") {
            self.stream = Some(stream);
        }
        Ok(answer)
    }
}

/// The next message; `None` when the other side has hung up instead.
pub(crate) async fn read(stream: &mut TcpStream) -> io::Result<Option<Message>> {
    let mut bytes = Vec::with_capacity(1024);
    let head_bytes = loop {
        if let Some(end) = find(&bytes, b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
        assert!(bytes.len() < MESSAGE_BYTES_MAX, "a head without end");
    };
    let head = String::from_utf8_lossy(&bytes[..head_bytes]).into_owned();
    let mut lines = head.split("\r\n");
    let first = lines.next().unwrap().to_owned();
    let headers: Vec<(String, String)> = lines
        .map(|line| line.split_once(':').expect("a header has a colon"))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let mut message = Message {
        first,
        headers,
        body: bytes.split_off(head_bytes + 4),
    };
    assert_eq!(
        message.header("transfer-encoding"),
        None,
        "only bodies of a known length are read here"
    );
    let length = message.header("content-length").unwrap_or("0");
    let length: usize = length.parse().unwrap();
    assert!(length < MESSAGE_BYTES_MAX, "a body without end");
    while message.body.len() < length {
        if stream.read_buf(&mut message.body).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    assert_eq!(message.body.len(), length, "nobody pipelines here");
    Ok(Some(message))
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}
