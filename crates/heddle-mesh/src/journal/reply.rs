//! Replies that could not go on: why, and what is kept of one.
//!
//! The event was delivered, whatever came back for it; nothing here touches its account.

use bytes::Bytes;

use crate::codec::{Put, Take, Unreadable};

/// What is kept of a reply that is no event: its beginning.
pub const REPLY_BYTES_MAX: usize = 16 * 1024;
/// What is kept of the content type of one.
const CONTENT_TYPE_BYTES_MAX: usize = 128;

/// Why a reply could not go on. The numbers are on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ReplyFault {
    /// It says that it is an event, and is none.
    NotAnEvent = 1,
    /// It is longer than an event may be.
    TooLarge = 2,
    /// It is in a form, an encoding or a character set that is not read here.
    Undecodable = 3,
    /// It is an event, and where it was to go it is refused for what it is.
    Refused = 4,
    /// It is an event, and where replies go has no address.
    NoDestination = 5,
}

impl ReplyFault {
    pub const ALL: [Self; 5] = [
        Self::NotAnEvent,
        Self::TooLarge,
        Self::Undecodable,
        Self::Refused,
        Self::NoDestination,
    ];

    /// The same for metrics and in JSON.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::NotAnEvent => "not-an-event",
            Self::TooLarge => "too-large",
            Self::Undecodable => "undecodable",
            Self::Refused => "refused",
            Self::NoDestination => "no-destination",
        }
    }

    pub(super) const fn code(self) -> u8 {
        self as u8
    }

    pub(super) fn of_code(code: u8) -> Result<Self, Unreadable> {
        let known = Self::ALL.into_iter().find(|fault| fault.code() == code);
        known.ok_or(Unreadable::Newer("the fault of a reply"))
    }
}

/// A reply that could not go on, as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadReply {
    pub fault: ReplyFault,
    /// What is wrong with it, for people.
    pub reason: String,
    /// Cut off where it is long; empty when there was none.
    pub content_type: String,
    /// At most [`REPLY_BYTES_MAX`] of it.
    pub beginning: Bytes,
}

impl BadReply {
    #[must_use]
    pub fn new(fault: ReplyFault, reason: String, content_type: &[u8], body: &[u8]) -> Self {
        let content_type = String::from_utf8_lossy(content_type);
        let end = content_type.floor_char_boundary(CONTENT_TYPE_BYTES_MAX);
        Self {
            fault,
            reason,
            content_type: content_type[..end].to_owned(),
            // A copy: a slice would hold on to the whole buffer of the connection.
            beginning: Bytes::copy_from_slice(&body[..body.len().min(REPLY_BYTES_MAX)]),
        }
    }
}

/// What checkpoints a dead letter as that of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadReply {
    pub fault: ReplyFault,
    pub content_type: String,
}

impl DeadReply {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.u8(self.fault.code());
        out.str(&self.content_type);
    }

    pub(super) fn decode(take: &mut Take<'_>) -> Result<Self, Unreadable> {
        Ok(Self {
            fault: ReplyFault::of_code(take.u8()?)?,
            content_type: take.string()?,
        })
    }
}
