//! An answer that says it is an event and cannot be taken for one: why, and what is kept of it.

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, StatusCode};

use super::Reply;
use crate::event::http as ce;
use crate::journal::{BadReply, ReplyFault};

/// Why a reply cannot be one.
pub(super) struct Unfit {
    fault: ReplyFault,
    reason: String,
}

impl Unfit {
    pub(super) fn too_large(bytes_max: usize) -> Self {
        Self {
            fault: ReplyFault::TooLarge,
            reason: format!("the reply has more than {bytes_max} bytes"),
        }
    }

    pub(super) fn reply(self, headers: &HeaderMap, body: &[u8]) -> Reply {
        let content_type = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        let content_type = content_type.unwrap_or_default();
        let bad = BadReply::new(self.fault, self.reason, content_type, body);
        Reply::Bad(Box::new(bad))
    }
}

impl From<ce::Refused> for Unfit {
    fn from(refused: ce::Refused) -> Self {
        let fault = match refused.status {
            StatusCode::PAYLOAD_TOO_LARGE => ReplyFault::TooLarge,
            StatusCode::UNSUPPORTED_MEDIA_TYPE => ReplyFault::Undecodable,
            _ => ReplyFault::NotAnEvent,
        };
        Self {
            fault,
            reason: format!("the reply is no event: {refused}"),
        }
    }
}
