//! What is said to a sender whose message is no CloudEvent.
//!
//! The status tells machines what to do, the code stays the same for ever, and the message tells people what is wrong
//! and what to send instead. Text that came with the message is quoted shortened and escaped, so that an answer or a
//! line in a log cannot be made long or misleading by it.

use ::http::StatusCode;
pub use heddle_api::refusals as code;

/// How much of a sender's own text an answer repeats.
const SHOWN_CHARS_MAX: usize = 64;

/// Why a message was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    /// 400, 413 or 415.
    pub status: StatusCode,
    /// One of [`code`].
    pub code: &'static str,
    /// What is wrong and what to send instead.
    pub message: String,
    /// The attribute at fault, where it is one.
    pub attribute: Option<String>,
    /// The place of the event at fault, where there is a batch.
    pub index: Option<usize>,
}

impl Refused {
    /// The message is wrong: sending it again will not help.
    pub(in crate::event) fn invalid(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message.into())
    }

    /// The message is larger than what is taken.
    pub(in crate::event) fn too_large(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, code, message.into())
    }

    /// The message may be right, in a form that is not spoken here.
    pub(in crate::event) fn unsupported(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, code, message.into())
    }

    fn new(status: StatusCode, code: &'static str, message: String) -> Self {
        debug_assert!(code::is_known(code, status.as_u16()), "{status} {code}");
        Self {
            status,
            code,
            message,
            attribute: None,
            index: None,
        }
    }

    pub(in crate::event) fn about(mut self, attribute: &str) -> Self {
        self.attribute = Some(shown(attribute));
        self
    }

    pub(in crate::event) fn at(mut self, index: usize) -> Self {
        self.index = Some(index);
        self
    }
}

/// Text of a sender, fit to be repeated.
pub(in crate::event) fn shown(text: &str) -> String {
    let mut short: String = text
        .chars()
        .take(SHOWN_CHARS_MAX)
        .flat_map(char::escape_debug)
        .collect();
    if text.chars().nth(SHOWN_CHARS_MAX).is_some() {
        short.push('…');
    }
    short
}
