//! What is said to a sender whose message is no CloudEvent.
//!
//! The status tells machines what to do, the code stays the same for ever, and the message tells people what is wrong
//! and what to send instead. Text that came with the message is quoted shortened and escaped, so that an answer or a
//! line in a log cannot be made long or misleading by it.

use ::http::StatusCode;

/// The codes of refusals. They may be relied upon: a code is retired, never given another meaning.
pub mod code {
    /// A required attribute is not there.
    pub const ATTRIBUTE_MISSING: &str = "attribute-missing";
    /// An attribute is there more than once.
    pub const ATTRIBUTE_DUPLICATE: &str = "attribute-duplicate";
    /// Something has a name that no attribute may have.
    pub const ATTRIBUTE_NAME: &str = "attribute-name";
    /// A value is not of the type its attribute has.
    pub const ATTRIBUTE_TYPE: &str = "attribute-type";
    /// A value is of the right type, and yet not one its attribute may have.
    pub const ATTRIBUTE_INVALID: &str = "attribute-invalid";
    /// The `Content-Type` header is not UTF-8.
    pub const ATTRIBUTE_ENCODING: &str = "attribute-encoding";
    /// One value is longer than is kept.
    pub const ATTRIBUTE_TOO_LONG: &str = "attribute-too-long";
    /// More attributes than an event may have.
    pub const ATTRIBUTES_TOO_MANY: &str = "attributes-too-many";
    /// A version of CloudEvents that is not spoken here.
    pub const SPECVERSION_UNSUPPORTED: &str = "specversion-unsupported";
    /// An event format other than JSON.
    pub const FORMAT_UNSUPPORTED: &str = "format-unsupported";
    /// JSON in something other than UTF-8.
    pub const CHARSET_UNSUPPORTED: &str = "charset-unsupported";
    /// A compressed body.
    pub const ENCODING_UNSUPPORTED: &str = "encoding-unsupported";
    /// Several events where one was expected.
    pub const BATCH_UNEXPECTED: &str = "batch-unexpected";
    /// Data that does not fit its content type, or is given twice.
    pub const DATA_INVALID: &str = "data-invalid";
    /// A body that is not the JSON it claims to be.
    pub const JSON_INVALID: &str = "json-invalid";
    /// JSON that is nested deeper than is read.
    pub const JSON_TOO_DEEP: &str = "json-too-deep";
    /// An event larger than is kept.
    pub const EVENT_TOO_LARGE: &str = "event-too-large";
    /// A batch with more bytes or more events than are taken at once.
    pub const BATCH_TOO_LARGE: &str = "batch-too-large";
}

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
