//! Where in a trace something happens: W3C trace context, written in version 00 and read in any version that keeps to it.
//!
//! Pure but for the chance that names new spans. What is done with a span is left to an [`Observer`](crate::Observer).

use std::fmt;

use heddle_rt::Chance;

/// The last part of the text: whether whoever began the trace records it.
const SAMPLED: u8 = 1;

/// The length of a version 00 text. Later versions may go on behind another dash.
const TEXT_BYTES: usize = 55;

/// One span of one trace. Invariant: neither id is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    trace: u128,
    id: u64,
    flags: u8,
}

impl Span {
    /// The first span of a new trace, to be recorded.
    pub(crate) fn first(chance: &Chance) -> Self {
        let trace = (u128::from(chance.u64()) << 64) | u128::from(chance.u64());
        Self {
            // Zero is invalid, and so unlikely that one bit settles it.
            trace: trace | 1,
            id: chance.u64() | 1,
            flags: SAMPLED,
        }
    }

    /// A span that is part of this one.
    pub(crate) fn child(self, chance: &Chance) -> Self {
        Self {
            id: chance.u64() | 1,
            ..self
        }
    }

    /// The span in a `traceparent`. What is not well-formed, the specification tells to ignore.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let (head, rest) = text.split_at_checked(TEXT_BYTES)?;
        let mut parts = head.split('-');
        let mut part = |length: usize| parts.next().filter(|part| part.len() == length);
        let (version, trace, id, flags) = (part(2)?, part(32)?, part(16)?, part(2)?);
        // Lower-case hexadecimal only, so that the parsers below take nothing else.
        let plain =
            |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte) || byte == b'-';
        if !head.bytes().all(plain) {
            return None;
        }
        let goes_on = match version {
            "ff" => return None,
            "00" => rest.is_empty(),
            _ => rest.is_empty() || rest.starts_with('-'),
        };
        let span = Self {
            trace: u128::from_str_radix(trace, 16).ok()?,
            id: u64::from_str_radix(id, 16).ok()?,
            flags: u8::from_str_radix(flags, 16).ok()?,
        };
        (goes_on && span.trace != 0 && span.id != 0).then_some(span)
    }

    /// The id of the trace.
    #[must_use]
    pub fn trace(&self) -> u128 {
        self.trace
    }

    /// The id of the span.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The flags of the trace.
    #[must_use]
    pub fn flags(&self) -> u8 {
        self.flags
    }

    /// Whether the trace is recorded, as far as whoever is upstream knows.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }
}

/// As a `traceparent`.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trace, id, flags } = self;
        write!(f, "00-{trace:032x}-{id:016x}-{flags:02x}")
    }
}

#[cfg(test)]
mod tests;
