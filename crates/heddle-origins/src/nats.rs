//! Speaking NATS: one connection to one server, kept up, with what two adapters need of the protocol and nothing else.
//!
//! Ours and not a library's, because it goes through the network port of heddle-rt (egress, simulation) and because a server
//! that lies must cost a bounded amount: of a line, of a payload, of what is received and not looked at, of time.

pub(crate) mod client;
mod conversation;
pub(crate) mod headers;
pub(crate) mod protocol;

use std::sync::Arc;
use std::time::Duration;

use heddle_rt::net::dial::{Connect, Place};
use heddle_rt::{Chance, Clock, Tasks};

pub(crate) use client::{Inbox, NatsClient, NatsMessage};

/// Who asks.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    Nobody,
    Password { user: String, password: String },
    Token(String),
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Nobody => "Nobody",
            Self::Password { .. } => "Password",
            Self::Token(_) => "Token",
        })
    }
}

/// A server, and who asks it.
#[derive(Clone, Debug)]
pub struct NatsServer {
    /// With roots, TLS is spoken as soon as the server has greeted, and nothing is said to one that offers none.
    pub place: Place,
    pub credentials: Credentials,
}

/// How long an old mesh may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NatsTimeouts {
    /// Until there is a connection that was greeted.
    pub connect: Duration,
    /// For an answer to a question.
    pub answer: Duration,
    /// For everything that is unacknowledged to come, after the last of it came.
    pub quiet: Duration,
}

impl Default for NatsTimeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            answer: Duration::from_secs(10),
            quiet: Duration::from_secs(90),
        }
    }
}

/// What connections are made of.
#[derive(Clone, Debug)]
pub struct NatsDeps {
    pub tasks: Tasks,
    pub clock: Clock,
    pub chance: Chance,
    pub connect: Arc<dyn Connect>,
    pub patience: NatsTimeouts,
}
