//! An open connection to a NATS server, from its greeting on: TLS where it was asked for, and one thing after the other that it
//! says. Who asks is put into words here and said by whoever has the connection.

use bytes::BytesMut;
use heddle_rt::net::dial::{Connect, Place, Stream};
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, ReadHalf, WriteHalf};

use super::protocol::{ProtocolViolation, ServerOp, decode};
use super::{Credentials, NatsServer};
use crate::origin::Error;

/// What is received at once.
const CHUNK_BYTES: usize = 16 << 10;

/// An open connection, and what was received on it and not looked at.
pub(super) struct Conversation {
    pub(super) reader: ReadHalf<Box<dyn Stream>>,
    pub(super) writer: WriteHalf<Box<dyn Stream>>,
    pub(super) received: BytesMut,
}

/// What is of interest of a server's greeting.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Greeting {
    tls_required: bool,
    tls_available: bool,
    headers: bool,
}

impl Conversation {
    /// Connects and is greeted. Servers greet in plain words, and TLS begins behind that.
    pub(super) async fn begin(
        connect: &dyn Connect,
        server: &NatsServer,
    ) -> Result<(Self, Greeting), Error> {
        let plain = Place {
            tls: None,
            ..server.place.clone()
        };
        let stream = connect.connect(&plain).await;
        let mut conversation = Self::new(stream.map_err(unavailable)?);
        let ServerOp::Info(greeting) = conversation.hear().await? else {
            return Err(violated(ProtocolViolation("it does not greet")));
        };
        let greeting: Greeting = serde_json::from_slice(&greeting)
            .map_err(|_| violated(ProtocolViolation("its greeting is not what it should be")))?;
        let is_offered = greeting.tls_required || greeting.tls_available;
        match server.place.tls {
            Some(_) if is_offered => {
                conversation = conversation.secured(connect, &server.place).await?;
            }
            Some(_) => {
                let text = "the server offers no TLS, which it was to be spoken to with";
                return Err(Error::Invalid(text.to_owned()));
            }
            None if greeting.tls_required => {
                return Err(Error::Invalid("the server asks for TLS".to_owned()));
            }
            None => {}
        }
        Ok((conversation, greeting))
    }

    fn new(stream: Box<dyn Stream>) -> Self {
        let (reader, writer) = tokio::io::split(stream);
        let received = BytesMut::new();
        Self {
            reader,
            writer,
            received,
        }
    }

    /// The same over TLS. What was said behind the greeting in plain words could be anybody's, and is refused.
    async fn secured(self, connect: &dyn Connect, place: &Place) -> Result<Self, Error> {
        if !self.received.is_empty() {
            return Err(violated(ProtocolViolation(
                "it goes on in plain words before TLS",
            )));
        }
        let stream = self.reader.unsplit(self.writer);
        let stream = connect.secure(place, stream).await;
        Ok(Self::new(stream.map_err(unavailable)?))
    }

    pub(super) async fn hear(&mut self) -> Result<ServerOp, Error> {
        hear(&mut self.reader, &mut self.received).await
    }
}

impl Greeting {
    /// Who we are, in JSON. Headers are asked for where the server has them.
    pub(super) fn introduction(&self, server: &NatsServer) -> String {
        let mut said = json!({
            "verbose": false, "pedantic": false, "echo": false, "tls_required": server.place.tls.is_some(),
            "name": "heddle", "lang": "rust", "version": env!("CARGO_PKG_VERSION"), "protocol": 1,
            "headers": self.headers, "no_responders": self.headers,
        });
        match &server.credentials {
            Credentials::Nobody => {}
            Credentials::Password { user, password } => {
                said["user"] = user.as_str().into();
                said["pass"] = password.as_str().into();
            }
            Credentials::Token(token) => said["auth_token"] = token.as_str().into(),
        }
        said.to_string()
    }
}

/// The next thing that the server says. Dropping it in between loses nothing.
pub(super) async fn hear(
    reader: &mut ReadHalf<Box<dyn Stream>>,
    received: &mut BytesMut,
) -> Result<ServerOp, Error> {
    loop {
        if let Some(op) = decode(received).map_err(violated)? {
            return Ok(op);
        }
        received.reserve(CHUNK_BYTES);
        if reader.read_buf(received).await.map_err(unavailable)? == 0 {
            return Err(unavailable("the server hung up"));
        }
    }
}

fn violated(violation: ProtocolViolation) -> Error {
    Error::Corrupt(violation.to_string())
}

pub(super) fn unavailable(what: impl std::fmt::Display) -> Error {
    Error::Unavailable(what.to_string())
}
